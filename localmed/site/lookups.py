"""What a session looks up of the library it may read: documents, collections, generations, quarantine, governance.

Governance may be edited cell by cell. Only cells that somebody changed are set, and only where what stands there is
still what they saw: two people with the same table open do not undo each other's work.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Collection, Document, Evidence, Hit, Message, Passage, SearchFilter, Status, message
from localmed.domain.errors import Damaged, UnknownName
from localmed.library import generations, originals
from localmed.library.catalogue import Pair, document_changes
from localmed.library.governed import FIELDS, Heading, known
from localmed.library.in_force import in_force
from localmed.library.originals import KEPT
from localmed.library.remarks import Remark
from localmed.library.sketches import ALIKE, likeness, sketch
from localmed.library.state import Quarantined, quarantined, rows
from localmed.messages import from_text
from localmed.site import governing, stops
from localmed.site.importing import manifest_of
from localmed.text.language import content_words

if TYPE_CHECKING:
    from localmed.ingest.governance import Fault
    from localmed.library.journal import Withdrawal
    from localmed.site.session import Session
    from localmed.site.workspace import Workspace


FAVOURITE = "favourite"  # the tag of what stands on the first page
FAVOURITES, NEWEST = 12, 4  # documents shown there; more would be a list to search
NEWEST_OF_ONE = 2  # of the newest editions, of one collection
PASSAGES_SEARCHED = 5  # of a document, for near copies of it
NEAR_SEARCHED = 20  # passages found by each
TERMS_SEARCHED = 64  # of each, the rarest

# --- documents -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentDetails:
    """All that is known of a document; ``overdue`` is the date by which it was to be reviewed, if that has passed.

    ``headings`` are as they were read, with what was set of them. ``withdrawal`` says when it was withdrawn, by whom
    and why; None where it is not, or its source did.
    """

    document: Document
    passages: Sequence[Passage]
    chain: governing.Chain
    overdue: str
    headings: Sequence[Heading]
    withdrawal: Withdrawal | None


def documents(session: Session, collection: str = "") -> list[Document]:
    """The documents, of a collection or all, each with the status in force now."""
    with session.workspace() as workspace:
        return _documents(workspace, collection)


def documents_overdue(session: Session, collection: str = "") -> list[tuple[Document, str]]:
    """``documents``, each with the date by which it was to be reviewed, if that has passed."""
    with session.workspace() as workspace:
        late = workspace.library.holding.overdue
        return [(document, late(document.id)) for document in _documents(workspace, collection)]


def document(session: Session, prefix: str) -> Document:
    """The document whose id starts with ``prefix``, with the status in force now."""
    with session.workspace() as workspace:
        return _document(workspace, prefix)


def document_details(session: Session, prefix: str) -> DocumentDetails:
    """All that is known of the document whose id starts with ``prefix``."""
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
    """What to set of headings of ``document``, by field: their ``names``, or that they are ``none``.

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


def named_by(document: Document, text: str) -> bool:
    """Whether title, file name, tags or owner of a document hold every word of ``text``."""
    names = (document.title, Path(document.source).name, *document.tags, document.governance.owner)
    held = " ".join(names).casefold()
    return all(word in held for word in text.casefold().split())


def set_of(document: Document) -> dict[str, str]:
    """What is known of a document of what a librarian may set, by the field."""
    return {name: known(document, name) for name in FIELDS}


def successors(session: Session, old: Document) -> list[Document]:
    """What may take the place of ``old``: current documents in its language, first those named most like it."""
    words = set(content_words(old.title))

    def unlike(other: Document) -> tuple[bool, int, str]:
        return other.collection != old.collection, -len(words & set(content_words(other.title))), other.title

    listed = (it for it in documents(session) if it.id != old.id and it.status is Status.CURRENT)
    return sorted((it for it in listed if it.language == old.language), key=unlike)


def to_review(session: Session, collection: str, within: int) -> tuple[list[Document], frozenset[str]]:
    """The documents whose review is late or due within so many days, the longest first, then those whose text is not
    the one that was approved; and the ids of the latter. Nobody reviews what is withdrawn.
    """
    with session.workspace() as workspace:
        stored = [it for it in _documents(workspace, collection) if it.status is not Status.WITHDRAWN]
        holding = workspace.library.holding
        last = (date.fromisoformat(holding.day) + timedelta(within)).isoformat()
        lapsed = workspace.library.catalogue.governed.lapsed()
    due = sorted(
        (document for document in stored if _due(document.governance.review_by, document, last)),
        key=attrgetter("governance.review_by"),
    )
    return due + [document for document in stored if document.id in lapsed and document not in due], lapsed


def _due(review: str, stored: Document, last: str) -> bool:
    """Whether the review is late on ``last``, or due by then."""
    return bool(review) and (stored.governance.overdue(last) or (len(review) == len(last) and review == last))


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
    """The documents that may answer and hold nearly the text of ``withdrawn``: those that its words find, compared."""
    with session.workspace() as workspace:
        passages = workspace.library.lexical.of_document(withdrawn.id)
    return [near for near in alike(session, passages) if near.id != withdrawn.id]


def alike(session: Session, passages: Sequence[Passage]) -> list[Document]:
    """The documents that may answer and hold nearly the text of ``passages``."""
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
    """What was refused at imports, of a collection or all that the caller may read."""
    hidden = session.hidden()
    with rows(session.data) as state:
        return [file for file in quarantined(state, collection) if file.collection not in hidden]


def waiting(session: Session) -> frozenset[str] | None:
    """The documents that are not yet effective; None where the library cannot be read, a reason to go back."""
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
    """A passage, its document's title, and what is said of it."""

    passage: Passage
    title: str
    remark: Remark


def remarked(session: Session, document: str = "") -> list[RemarkedPassage]:
    """The passages, of a document or all, that speak to a language model, are switched off or carry a note."""
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
    """What a governance sheet would change; nothing may be changed while there are ``faults``."""

    rows: int
    unused: Sequence[str]
    changes: Sequence[governing.Change]
    faults: Sequence[Fault]


def planned_sheet(session: Session, sheet: Path, collection: str) -> PlannedSheet:
    """Read ``sheet`` about ``collection``; raise ``InputError`` for what is none."""
    from localmed.ingest import governance

    read = governance.read(sheet)
    session.may_change()
    manifest = manifest_of(session, collection, None)
    with session.workspace() as workspace:
        changes, faults = governing.planned(workspace.library.catalogue, manifest, read.rows)
    return PlannedSheet(len(read.rows), read.unused, changes, faults)


def sheet_rows(session: Session, collection: str) -> list[list[str]]:
    """The rows of a sheet with what is known of the files of ``collection``, the column names first."""
    from localmed.ingest import governance

    with session.workspace() as workspace:
        workspace.library.catalogue.collection(collection)
        return governance.template(workspace.library.catalogue, collection)


# --- collections ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """A collection, what it holds and which groups may read it (none: everybody)."""

    collection: Collection
    documents: int
    passages: int
    terms: int
    groups: tuple[str, ...]


def collections(session: Session) -> list[CollectionRow]:
    """The collections that the caller may read, first priority first."""
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
    """The collection ``name``; raise ``UnknownName`` if the caller knows none of that name."""
    with session.workspace() as workspace:
        return workspace.library.catalogue.collection(name)


def collection_names(session: Session) -> set[str]:
    """The names of the collections that the caller may read; none where there is no library yet."""
    return set(session.collection_titles())


# --- generations ---------------------------------------------------------------------------------------------------


UNREAD = Message("generation.manifest_damaged")


@dataclass(frozen=True, slots=True)
class GenerationRow:
    """A generation kept, and the change that made it; of one with a damaged manifest only the number is known."""

    number: int
    served: bool
    created: str = ""
    reason: Message = UNREAD
    documents: int = 0
    passages: int = 0


def generation_numbers(session: Session) -> list[int]:
    """The numbers of the generations kept, newest last."""
    return generations.numbers(session.data)


def generations_kept(session: Session) -> list[GenerationRow]:
    """The generations kept, newest last; for librarians, since counts and reasons tell of every collection."""
    session.may_change()
    served = generations.served_number(session.data)
    kept: list[GenerationRow] = []
    for number in generations.numbers(session.data):
        with suppress(UnknownName):  # pruned meanwhile
            kept.append(_generation(session.data, number, served))
    return kept


def _generation(data: Path, number: int, served: int) -> GenerationRow:
    try:
        known = generations.manifest_of(data, number)
    except Damaged:
        return GenerationRow(number, number == served)
    return GenerationRow(
        number, number == served, known.created, from_text(known.reason), known.documents, known.passages
    )


def generation_date(session: Session, name: str) -> str:
    """When the generation called ``name`` was made; "" where it is no longer kept or its manifest is damaged."""
    with suppress(UnknownName, Damaged):
        return generations.manifest_of(session.data, int(name)).created
    return ""


def changed_between(session: Session, before: int, after: int, most: int) -> list[Pair] | None:
    """The documents that two generations have otherwise, the first ``most``; None where one is not kept any more."""
    session.may_change()
    try:
        with generations.lease(session.data, before) as old, generations.lease(session.data, after) as new:
            return document_changes(old, new, most)
    except (UnknownName, Damaged):
        return None


@dataclass(frozen=True, slots=True)
class Undone:
    """What going back from generation ``served`` to ``number`` takes back: the changes between them, newest first."""

    number: int
    served: int
    changes: tuple[GenerationRow, ...]
    documents_now: int
    documents_then: int


def undone_by_rollback(session: Session, number: int | None) -> Undone:
    """What ``changes.rollback`` to generation ``number`` (None: the one before) would undo."""
    kept = {row.number: row for row in generations_kept(session)}
    served = next((row for row in kept.values() if row.served), None)
    if served is None:
        raise Damaged("generation.incomplete", name=f"{generations.served_number(session.data):04d}")
    chosen = generations.before(session.data) if number is None else number
    if chosen not in kept:
        raise UnknownName("generation.unknown", number=chosen)
    undone = tuple(
        kept[row_number] for row_number in sorted(kept, reverse=True) if chosen < row_number <= served.number
    )
    return Undone(chosen, served.number, undone, served.documents, kept[chosen].documents)


def has_library(session: Session) -> None:
    """Raise ``NoLibrary`` if nothing has been imported."""
    generations.served_number(session.data)


def built_with(session: Session) -> str:
    """The encoder of the generation being served; "" if nothing has been imported."""
    return generations.encoder(session.data)


# --- passages ------------------------------------------------------------------------------------------------------


def evidence_of(session: Session, prefix: str) -> Evidence:
    """The passage whose id starts with ``prefix``, as evidence; raise ``NotAllowed`` where a reader's is stopped."""
    with session.stopped_too() as workspace:
        stops.require_running(session, workspace.library.passage(prefix).collection)
    with session.workspace() as workspace:
        return workspace.mint((Hit(workspace.library.passage(prefix), 0.0),))[0]


def documents_of(session: Session, ids: Iterable[str]) -> dict[str, Document]:
    """Those of ``ids`` that are in the library, as they are stored."""
    with session.workspace() as workspace:
        return workspace.library.catalogue.by_ids(set(ids))


def first_documents(session: Session, language: str) -> tuple[list[Document], list[Document]]:
    """The documents of the first page: the ward's favourites by title, and the newest other editions by their date.

    A tag ``favourite`` is for everybody, ``favourite:GROUP`` for a group. New editions are in ``language``, and their
    day has come. A collection has at most ``NEWEST_OF_ONE``: imported literature would leave no place for guidelines.
    """
    groups = session.caller.groups
    with session.answering() as workspace:
        stored = [one for one in _documents(workspace, "") if one.status is Status.CURRENT]
        today = workspace.library.holding.day
    tags = {FAVOURITE} | {f"{FAVOURITE}:{group.casefold()}" for group in groups or ()}
    starred = [one for one in stored if tags & {tag.casefold() for tag in one.tags}]
    dated = (one for one in stored if one.language == language and one not in starred and _has_come(one.edition, today))
    newest, places = list[Document](), Counter[str]()
    for one in sorted(dated, key=attrgetter("edition"), reverse=True):
        places[one.collection] += 1
        if places[one.collection] <= NEWEST_OF_ONE:
            newest.append(one)
    return sorted(starred, key=attrgetter("title"))[:FAVOURITES], newest[:NEWEST]


def _has_come(edition: str, today: str) -> bool:
    """Whether an edition is told by its day, and that has come."""
    return len(edition) == len(today) and edition <= today


def places_in(session: Session, document: str, words: str) -> list[tuple[Passage, int, int]]:
    """Where a document holds all of ``words``: its passages in order, each with the first of them, ``start:end``."""
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
    """What a document begins with; raise ``UnknownName`` for one that the caller does not know, else as above."""
    with session.stopped_too() as workspace:
        stops.require_running(session, workspace.library.catalogue.document(document).collection)
    with session.workspace() as workspace:
        stored = workspace.library.catalogue.document(document)
        if passages := workspace.library.lexical.of_document(stored.id):
            return passages[0]
    raise UnknownName("kept.no_source", sources=())


def original_of(session: Session, evidence: Evidence) -> Path:
    """The file of ``evidence`` as it was imported; raise ``UnknownName`` where the caller may see none of it."""
    with session.workspace() as workspace:
        require_shown(workspace, evidence)
    return originals.whole(session.data, evidence.file_sha256)


def require_shown(workspace: Workspace, evidence: Evidence) -> None:
    """Raise ``UnknownName`` for an original of which the caller may see no document."""
    if not workspace.library.catalogue.shows_file(evidence.file_sha256):
        raise UnknownName("kept.no_source", sources=())


def draw_page(
    session: Session, evidence: Evidence, image: Path, page: int | None = None, span: tuple[int, int] | None = None
) -> None:
    """See ``ingest.draw.cited``; raise as ``require_shown`` does."""
    from localmed.ingest import draw

    with session.workspace() as workspace:
        require_shown(workspace, evidence)
        whole = partial(workspace.library.lexical.of_document, evidence.passage.document_id)
        draw.cited(session.data, evidence, image, page, span, whole)


def kept_folder(data: Path) -> Path:
    """Where answers are kept, made if it is not there."""
    folder = data / KEPT
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


@dataclass(frozen=True, slots=True)
class EditedRow:
    """A row by its number: its cells (file first, then the fields) as they were shown and as they are now."""

    number: int
    shown: tuple[str, ...]
    typed: tuple[str, ...]


def planned_edits(session: Session, collection: str, edited: Sequence[EditedRow]) -> PlannedSheet:
    """What the ``edited`` rows of the table of ``collection`` would change; nothing may be while there are faults."""
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
