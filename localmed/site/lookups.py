"""Read access of a session to its library: documents, collections, generations, quarantine, governance.

A governance table is edited by cells: only changed cells are set, and only if the stored value is still the one shown,
so that two people with the same table open do not undo each other's work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Collection, Document, Evidence, Hit, Kind, Message, Passage, SearchFilter, Status, message
from localmed.domain.accounts import Right
from localmed.domain.errors import Damaged, NoLibrary, NotAllowed, UnknownName
from localmed.library import generations, originals
from localmed.library.catalogue import Pair, document_changes
from localmed.library.governed import FIELDS, Heading, value_of
from localmed.library.in_force import in_force
from localmed.library.originals import KEPT
from localmed.library.remarks import Remark
from localmed.library.sketches import ALIKE, likeness, sketch
from localmed.library.state import Quarantined, quarantined, rows
from localmed.messages import from_text
from localmed.site import governing, stops
from localmed.site.importing import manifest_of
from localmed.text.differences import Line, lines
from localmed.text.language import content_words

if TYPE_CHECKING:
    from localmed.ingest.governance import Fault
    from localmed.library.journal import Withdrawal
    from localmed.site.session import Session
    from localmed.site.workspace import Workspace


FAVOURITE = "favourite"  # the tag of documents on the first page
FAVOURITES, NEWEST = 12, 4  # documents shown there; more would be a list to search
# A search for near copies of a document: passages searched with, passages that each finds, rarest terms of each.
PASSAGES_SEARCHED, NEAR_SEARCHED, TERMS_SEARCHED = 5, 20, 64

# --- documents -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentDetails:
    """A document with its passages, chain, headings and withdrawal.

    ``overdue`` is the date of an overdue review. ``headings`` include corrections. ``withdrawal`` is None unless the
    site withdrew the document.
    """

    document: Document
    passages: Sequence[Passage]
    chain: governing.Chain
    overdue: str
    headings: Sequence[Heading]
    withdrawal: Withdrawal | None


def documents(session: Session, collection: str = "") -> list[Document]:
    """The documents of a collection or all, with their current status."""
    with session.workspace() as workspace:
        return _documents(workspace, collection)


def in_use(workspace: Workspace, collection: str) -> list[Document]:
    """The current documents of a collection."""
    return [it for it in _documents(workspace, collection) if it.status is Status.CURRENT]


def documents_overdue(session: Session, collection: str = "") -> list[tuple[Document, str]]:
    """``documents``, each with the date of its overdue review ("": none)."""
    with session.workspace() as workspace:
        late = workspace.library.holding.overdue
        return [(document, late(document.id)) for document in _documents(workspace, collection)]


def document(session: Session, prefix: str) -> Document:
    """The document whose id starts with ``prefix``, with its current status."""
    with session.workspace() as workspace:
        return _document(workspace, prefix)


def document_details(session: Session, prefix: str) -> DocumentDetails:
    """The details of the document whose id starts with ``prefix``."""
    with session.workspace() as workspace:
        library, stored = workspace.library, _document(workspace, prefix)
        passages = library.lexical.of_document(stored.id)
        return DocumentDetails(
            stored,
            passages,
            governing.chain(library, stored.id),
            library.holding.overdue(stored.id),
            library.catalogue.governed.headings(stored, passages),
            library.holding.withdrawal(stored.id, stored.content),
        )


def headings_named(
    session: Session, document: Document, names: Mapping[str, str], none: Sequence[str]
) -> dict[str, str]:
    """The fields that rename headings of ``document`` by ``names`` or mark them as no headings (``none``).

    Raise ``UnknownName`` for a heading that was not read.
    """
    known_headings, fields = document_details(session, document.id).headings, dict[str, str]()
    for read, name in {**names, **dict.fromkeys(none, "")}.items():
        known_as = (one for one in known_headings if read in (one.path[-1], one.value))
        own = {one.field: one.set_to(name.strip(), read in none) for one in known_as}
        if not own:
            raise UnknownName("documents.no_heading", heading=read, document=document.id[:12], title=document.title)
        fields |= own
    return fields


def matches_words(document: Document, text: str) -> bool:
    """Whether title, file name, tags or owner of a document contain every word of ``text``."""
    names = (document.title, Path(document.source).name, *document.tags, document.governance.owner)
    held = " ".join(names).casefold()
    return all(word in held for word in text.casefold().split())


def settable_values(document: Document) -> dict[str, str]:
    """The current values of a document's settable fields."""
    return {name: value_of(document, name) for name in FIELDS}


def lines_of(session: Session, document: str) -> tuple[Document, list[Line]]:
    """A document and its headings and sentences; raise ``UnknownName`` if it is not in the library."""
    with session.workspace() as workspace:
        return _document(workspace, document), lines(workspace.library.lexical.of_document(document))


def is_title_set(session: Session, document: Document) -> bool:
    """Whether a librarian has set the document's title."""
    with session.workspace() as workspace:
        return "title" in workspace.library.catalogue.governed.of(document)


def newer_edition(session: Session, document: str) -> tuple[Document, str] | None:
    """The document in use that replaced ``document``, and its first passage; None if there is none to open."""
    with session.workspace() as workspace:
        library = workspace.library
        links = [it for it in governing.chain(library, document).newer if it.status == Status.CURRENT.value]
        after = library.catalogue.by_ids([links[-1].id]).get(links[-1].id) if links else None
        first = next(iter(library.lexical.of_document(after.id)), None) if after else None
        return (after, first.id) if after and first else None


def stated_fields(session: Session, document: Document) -> frozenset[str]:
    """The fields of a document that its collection's manifest states, which cannot be set here."""
    with session.workspace() as workspace:
        manifest = manifest_of(session, document.collection, None)
        return frozenset(governing.facts_of(workspace.library.catalogue, manifest, document))


def successors(session: Session, old: Document) -> list[Document]:
    """Current documents in the language of ``old`` that may replace it, the most similar titles first."""
    words = set(content_words(old.title))

    def unlike(other: Document) -> tuple[bool, int, str]:
        return other.collection != old.collection, -len(words & set(content_words(other.title))), other.title

    listed = (it for it in documents(session) if it.id != old.id and it.status is Status.CURRENT)
    return sorted((it for it in listed if it.language == old.language), key=unlike)


def to_review(session: Session, collection: str, within: int) -> tuple[list[Document], frozenset[str]]:
    """The documents to review, longest overdue first, then those with a lapsed approval; and the ids of the latter.

    ``within`` adds documents due in that many days. An approval lapses when the text changes. Withdrawn and superseded
    documents need no review.
    """
    with session.workspace() as workspace:
        unused = (Status.WITHDRAWN, Status.SUPERSEDED)
        stored = [it for it in _documents(workspace, collection) if it.status not in unused]
        holding = workspace.library.holding
        last = (date.fromisoformat(holding.day) + timedelta(within)).isoformat()
        lapsed = workspace.library.catalogue.governed.lapsed()
    # A review due on the last day itself is not overdue on it.
    due = [it for it in stored if it.governance.overdue(last) or it.governance.review_by == last]
    due.sort(key=attrgetter("governance.review_by"))
    return due + [document for document in stored if document.id in lapsed and document not in due], lapsed


def count_lacking(session: Session, collection: str) -> dict[str, int]:
    """How many documents in use have no owner ("unowned"), and how many no date of review ("undated")."""
    governed = [it.governance for it in documents(session, collection) if it.status is Status.CURRENT]
    return {"unowned": sum(not it.owner for it in governed), "undated": sum(not it.review_by for it in governed)}


def _documents(workspace: Workspace, collection: str) -> list[Document]:
    library = workspace.library
    if collection:
        library.catalogue.collection(collection)
    return [
        replace(document, status=library.status(document.id)) for document in library.catalogue.documents(collection)
    ]


def _document(workspace: Workspace, prefix: str) -> Document:
    stored = workspace.library.catalogue.document(prefix)
    return replace(stored, status=workspace.library.status(stored.id))


def near_copies(session: Session, withdrawn: Document) -> list[Document]:
    """The documents in use whose text is nearly that of ``withdrawn``."""
    with session.workspace() as workspace:
        passages = workspace.library.lexical.of_document(withdrawn.id)
    return [near for near in near_documents(session, passages) if near.id != withdrawn.id]


def near_documents(session: Session, passages: Sequence[Passage]) -> list[Document]:
    """The documents in use whose text is nearly that of ``passages``, among those that a search for its words finds."""
    with session.workspace() as workspace:
        library = workspace.library
        documents_near = {
            row[1]
            for passage in passages[:PASSAGES_SEARCHED]
            for row in library.search_lexical(passage.text, NEAR_SEARCHED, SearchFilter(), 1.0, TERMS_SEARCHED)
        }
        text = sketch(passage.text for passage in passages)
        return [
            _document(workspace, near)
            for near in sorted(documents_near)
            if likeness(text, sketch(passage.text for passage in library.lexical.of_document(near))) >= ALIKE
        ]


def quarantine(session: Session, collection: str = "") -> list[Quarantined]:
    """The files refused at imports, of a collection or all that the caller may read."""
    hidden = session.hidden()
    with rows(session.data) as state:
        return [file for file in quarantined(state, collection) if file.collection not in hidden]


def pending_documents(session: Session) -> frozenset[str] | None:
    """The documents that are not yet effective; None where the library is damaged, a reason to roll back."""
    try:
        with session.workspace() as workspace:
            statuses = workspace.library.holding.statuses()
            return frozenset(id_ for id_, status in statuses.items() if status is Status.PENDING)
    except Damaged:
        return None


def effective_among(session: Session, ids: frozenset[str]) -> list[str]:
    """Those of ``ids`` that are in the library and current now."""
    with session.workspace() as workspace:
        statuses = workspace.library.holding.statuses()
        return sorted(workspace.library.catalogue.by_ids(id_ for id_ in ids if id_ not in statuses))


# --- passages that something is said of -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RemarkedPassage:
    """A passage, its document's title, and the remark on it."""

    passage: Passage
    title: str
    remark: Remark


def remarked(session: Session, document: str = "") -> list[RemarkedPassage]:
    """The passages, of a document or all, that address a language model, are switched off or have a note."""
    with session.workspace() as workspace:
        library = workspace.library
        said = {name: it for name, it in library.remarks.items() if not document or it.document == document}
        stored = library.passages(list(said))
        titles = library.catalogue.by_ids({passage.document_id for passage in stored.values()})
    pairs = [(titles.get(it.document_id), it) for it in stored.values()]
    listed = [RemarkedPassage(passage, one.title, said[passage.id]) for one, passage in pairs if one]
    return sorted(listed, key=lambda row: (row.title, row.passage.page, row.passage.id))


def passage(session: Session, prefix: str) -> Passage:
    """The passage whose id starts with ``prefix``."""
    with session.workspace() as workspace:
        return workspace.library.passage(prefix)


# --- governance sheets ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PlannedSheet:
    """The changes of a governance sheet; nothing may be changed while there are ``faults``."""

    rows: int
    unused: Sequence[str]
    changes: Sequence[governing.Change]
    faults: Sequence[Fault]


def planned_sheet(session: Session, sheet: Path, collection: str) -> PlannedSheet:
    """Read ``sheet`` about ``collection``; raise ``InputError`` for a file that is not a sheet."""
    from localmed.ingest import governance

    read = governance.read_sheet(sheet)
    session.may_change()
    manifest = manifest_of(session, collection, None)
    with session.workspace() as workspace:
        changes, faults = governing.planned(workspace.library.catalogue, manifest, read.rows)
    return PlannedSheet(len(read.rows), read.unused, changes, faults)


def sheet_rows(session: Session, collection: str) -> list[list[str]]:
    """A sheet of the current details of the files of ``collection``, column names first."""
    from localmed.ingest import governance

    with session.workspace() as workspace:
        workspace.library.catalogue.collection(collection)
        return governance.make_template(workspace.library.catalogue, collection)


# --- collections ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """A collection with its counts and the groups that may read it (none: everybody)."""

    collection: Collection
    documents: int
    passages: int
    terms: int
    groups: tuple[str, ...]


def collections(session: Session) -> list[CollectionRow]:
    """The collections that the caller may read, by priority."""
    with session.workspace() as workspace:
        catalogue, terms = workspace.library.catalogue, workspace.library.graph.counts()
        counts, groups = catalogue.counts(), in_force(session.data).access
        return [
            CollectionRow(
                collection,
                *counts.get(collection.name, (0, 0)),
                terms=terms.get(collection.name, 0),
                groups=tuple(sorted(groups.get(collection.name, ()))),
            )
            for collection in catalogue.collections()
        ]


def collection(session: Session, name: str) -> Collection:
    """The collection ``name``; raise ``UnknownName`` if the caller may not read it."""
    with session.workspace() as workspace:
        return workspace.library.catalogue.collection(name)


def collection_names(session: Session) -> set[str]:
    """The names of the collections that the caller may read; empty without a library."""
    return set(session.collection_titles())


# --- generations ---------------------------------------------------------------------------------------------------


UNREAD = Message("generation.manifest_damaged")


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """A stored generation and the change that made it; with a damaged manifest only the number is known."""

    number: int
    served: bool
    created: str = ""
    reason: Message = UNREAD
    documents: int = 0
    passages: int = 0


def generation_numbers(session: Session) -> list[int]:
    """The numbers of the stored generations, newest last."""
    return generations.numbers(session.data)


def generations_kept(session: Session) -> list[GenerationRow]:
    """The stored generations, newest last; for librarians, because counts and reasons reveal every collection."""
    session.may_change()
    served = generations.served_number(session.data)
    kept: list[GenerationRow] = []
    for number in generations.numbers(session.data):
        try:
            known = generations.manifest_of(session.data, number)
        except UnknownName:  # pruned meanwhile
            continue
        except Damaged:
            kept.append(GenerationRow(number, number == served))
            continue
        shown = known.created, from_text(known.reason), known.documents, known.passages
        kept.append(GenerationRow(number, number == served, *shown))
    return kept


def generation_date(session: Session, name: str) -> str:
    """When the generation called ``name`` was made; "" where it is no longer kept or its manifest is damaged."""
    with suppress(UnknownName, Damaged):
        return generations.manifest_of(session.data, int(name)).created
    return ""


def changed_between(session: Session, before: int, after: int, most: int) -> list[Pair] | None:
    """The first ``most`` documents that differ between two generations; None where one is gone."""
    session.may_change()
    try:
        with generations.lease(session.data, before) as old, generations.lease(session.data, after) as new:
            return document_changes(old, new, most)
    except (UnknownName, Damaged):
        return None


@dataclass(frozen=True, slots=True)
class Undone:
    """The changes, newest first, that a rollback from generation ``served`` to ``number`` undoes."""

    number: int
    served: int
    changes: tuple[GenerationRow, ...]
    documents_now: int
    documents_then: int


def undone_by_rollback(session: Session, number: int | None) -> Undone:
    """The changes that ``changes.rollback`` to generation ``number`` (None: the one before) would undo."""
    kept = {row.number: row for row in generations_kept(session)}
    served = next((row for row in kept.values() if row.served), None)
    if served is None:
        raise Damaged("generation.incomplete", name=f"{generations.served_number(session.data):04d}")
    chosen = generations.rollback_target(session.data) if number is None else number
    if chosen not in kept:
        raise UnknownName("generation.unknown", number=chosen)
    undone = tuple(
        kept[row_number] for row_number in sorted(kept, reverse=True) if chosen < row_number <= served.number
    )
    return Undone(chosen, served.number, undone, served.documents, kept[chosen].documents)


def require_library(session: Session) -> None:
    """Raise ``NoLibrary`` if nothing has been imported."""
    generations.served_number(session.data)


def built_with(session: Session) -> str:
    """The encoder of the generation in use; "" if nothing has been imported."""
    return generations.encoder(session.data)


# --- passages ------------------------------------------------------------------------------------------------------


def evidence_of(session: Session, prefix: str) -> Evidence:
    """The passage whose id starts with ``prefix`` as evidence.

    Raise ``NotAllowed`` if its collection is stopped or, for a reader, its document is withdrawn.
    """
    with session.stopped_too() as workspace:
        stops.require_running(session, workspace.library.passage(prefix).collection)
    with session.workspace() as workspace:
        evidence = workspace.mint((Hit(workspace.library.passage(prefix), 0.0),))[0]
    require_in_use(session, evidence)
    return evidence


def require_in_use(session: Session, evidence: Evidence) -> None:
    """Raise ``NotAllowed`` with when and why for a reader and a withdrawn document."""
    if session.may(Right.LIBRARY) or session.may(Right.SAFETY):
        return
    with suppress(NoLibrary), session.workspace() as workspace:
        if told := workspace.withdrawal(evidence.passage.document_id, evidence.document_title):
            raise NotAllowed(told.code, **dict(told.parameters))


def withdrawn(session: Session) -> list[tuple[Document, Message, str]]:
    """The withdrawn documents, each with when and why, and its first passage ("": none)."""
    with session.workspace() as workspace:
        stored = (it for it in _documents(workspace, "") if it.status is Status.WITHDRAWN)
        told = ((it, workspace.withdrawal(it.id, it.title)) for it in stored)
        passages = workspace.library.lexical.of_document
        return [(it, line, next((one.id for one in passages(it.id)), "")) for it, line in told if line]


def documents_of(session: Session, ids: Iterable[str]) -> dict[str, Document]:
    """The stored documents among ``ids``."""
    with session.workspace() as workspace:
        return workspace.library.catalogue.by_ids(set(ids))


def first_documents(session: Session, language: str) -> tuple[list[Document], list[Document]]:
    """The documents on the first page: the ward's favourites by title, then the newest other editions in ``language``.

    Favourites have the tag ``favourite`` (for everybody) or ``favourite:GROUP``. Only editions with a full date that
    is not in the future count, and none of literature, which would leave guidelines no place.
    """
    groups = session.caller.groups
    with session.answering() as workspace:
        stored = in_use(workspace, "")
        today, studies = workspace.library.holding.day, workspace.of_kinds((Kind.LITERATURE,))
    tags = {FAVOURITE} | {f"{FAVOURITE}:{group.casefold()}" for group in groups or ()}
    starred = [one for one in stored if tags & {tag.casefold() for tag in one.tags}]
    dated = (
        one
        for one in stored
        if one.language == language and one not in starred and one.collection not in studies
        if len(one.edition) == len(today) and one.edition <= today
    )
    newest = sorted(dated, key=attrgetter("edition"), reverse=True)
    return sorted(starred, key=attrgetter("title"))[:FAVOURITES], newest[:NEWEST]


def places_in(session: Session, document: str, words: str) -> list[tuple[Passage, int, int]]:
    """The passages of a document with all of ``words``, each with the ``start`` and ``end`` of the first match."""
    wanted = [re.compile(re.escape(word), re.IGNORECASE) for word in words.split()]
    with session.workspace() as workspace:
        passages = workspace.library.lexical.of_document(document)
    places = []
    for passage in passages:
        matches = [pattern.search(passage.text) for pattern in wanted]
        first = next((match for match in matches if match), None)
        if first and all(matches):
            places.append((passage, *first.span()))
    return places


def first_passage(session: Session, document: str) -> Passage:
    """The first passage; raise ``UnknownName`` if document or passage is unknown, ``NotAllowed`` if it is stopped."""
    with session.stopped_too() as workspace:
        stops.require_running(session, workspace.library.catalogue.document(document).collection)
    with session.workspace() as workspace:
        stored = workspace.library.catalogue.document(document)
        if passages := workspace.library.lexical.of_document(stored.id):
            return passages[0]
    raise UnknownName("kept.no_source", sources=())


def original_of(session: Session, evidence: Evidence) -> Path:
    """The original file of ``evidence``; raise as ``require_shown`` does."""
    with session.workspace() as workspace:
        require_shown(workspace, evidence)
    return originals.whole(session.data, evidence.file_sha256)


def require_shown(workspace: Workspace, evidence: Evidence) -> None:
    """Raise ``UnknownName`` for an original none of whose documents the caller may see."""
    if not workspace.library.catalogue.shows_file(evidence.file_sha256):
        raise UnknownName("kept.no_source", sources=())


def draw_page(
    session: Session, evidence: Evidence, image: Path, page: int | None = None, span: tuple[int, int] | None = None
) -> None:
    """See ``ingest.draw.draw_evidence``; raise as ``require_shown`` does."""
    from localmed.ingest import draw

    with session.workspace() as workspace:
        require_shown(workspace, evidence)
        whole = partial(workspace.library.lexical.of_document, evidence.passage.document_id)
        draw.draw_evidence(session.data, evidence, image, page, span, whole)


def kept_folder(data: Path) -> Path:
    """The folder of kept answers, made if it is missing."""
    folder = data / KEPT
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


@dataclass(frozen=True, slots=True)
class EditedRow:
    """A row by its number: its cells (file first, then the fields) as shown and as edited."""

    number: int
    shown: tuple[str, ...]
    typed: tuple[str, ...]


def planned_edits(session: Session, collection: str, edited: Sequence[EditedRow]) -> PlannedSheet:
    """The changes of the ``edited`` rows of the table of ``collection``; apply none while there are faults."""
    from localmed.ingest.governance import Fault, Row

    session.may_change()
    header, *stored = sheet_rows(session, collection)
    fields, cells = [name.replace(" ", "_") for name in header], {row[0]: tuple(row) for row in stored}
    faults, sheet = [], []
    for row in edited:
        edits = [place for place in range(1, len(row.shown)) if row.typed[place] != row.shown[place]]
        now = cells.get(row.shown[0])
        if now is None or len(row.shown) != len(fields) or any(now[place] != row.shown[place] for place in edits):
            faults.append(Fault(row.number, message("governance.meanwhile")))
        else:
            sheet.append(Row(row.number, row.shown[0], {fields[place]: row.typed[place] for place in edits}))
    manifest = manifest_of(session, collection, None)
    with session.workspace() as workspace:
        changes, wrong = governing.planned(workspace.library.catalogue, manifest, sheet)
    return PlannedSheet(len(edited), (), changes, sorted([*faults, *wrong], key=lambda fault: fault.row))
