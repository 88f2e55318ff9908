"""What a session looks up of the library it may read: documents, collections, generations, quarantine, governance."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Collection, Document, Evidence, Hit, Message, Passage, SearchFilter, Status
from localmed.errors import Damaged, NoLibrary, UnknownName
from localmed.library import generations
from localmed.library.originals import KEPT
from localmed.library.sketches import ALIKE, likeness, sketch
from localmed.library.state import Quarantined, State
from localmed.messages import from_text
from localmed.operations import governing
from localmed.operations.importing import manifest_of

if TYPE_CHECKING:
    from localmed.ingest.governance import Fault
    from localmed.library.summaries import Summary
    from localmed.session import Session
    from localmed.workspace import Workspace

PASSAGES_SEARCHED = 5  # of a withdrawn document, for near copies of it
NEAR_SEARCHED = 20  # passages found by each
TERMS_SEARCHED = 64  # of each, the rarest

# --- documents -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DocumentDetails:
    """All that is known of a document; ``overdue`` is the date by which it was to be reviewed, if that has passed."""

    document: Document
    passages: Sequence[Passage]
    summary: Summary | None
    chain: governing.Chain
    overdue: str


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
        return DocumentDetails(
            stored,
            library.lexical.of_document(stored.id),
            library.catalogue.summaries.of(stored.id),
            governing.chain(library, stored.id),
            library.holding.overdue(stored.id),
        )


def to_review(session: Session, collection: str, within: int) -> tuple[list[Document], frozenset[str]]:
    """The documents whose review is late or due within so many days, the longest first, then those whose text is not
    the one that was approved; and the ids of the latter.
    """
    with session.workspace() as workspace:
        stored, holding = _documents(workspace, collection), workspace.library.holding
        last = (date.fromisoformat(holding.day) + timedelta(within)).isoformat()
        lapsed = workspace.library.catalogue.governed.lapsed()
    due = sorted((document for document in stored if _due(document.governance.review_by, document, last)), key=_review)
    return due + [document for document in stored if document.id in lapsed and document not in due], lapsed


def _due(review: str, stored: Document, last: str) -> bool:
    """Whether the review is late on ``last``, or due by then."""
    return bool(review) and (stored.governance.overdue(last) or (len(review) == len(last) and review == last))


def _review(stored: Document) -> str:
    return stored.governance.review_by


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
        library = workspace.library
        passages = library.lexical.of_document(withdrawn.id)
        documents_near = {
            row[1]
            for passage in passages[:PASSAGES_SEARCHED]
            for row in library.search_lexical(passage.text, NEAR_SEARCHED, SearchFilter(), 1.0, TERMS_SEARCHED)
        }
        text = sketch(passage.text for passage in passages)
        return [
            _document(workspace, near)
            for near in sorted(documents_near - {withdrawn.id})
            if likeness(text, sketch(passage.text for passage in library.lexical.of_document(near))) >= ALIKE
        ]


def quarantine(session: Session, collection: str = "") -> list[Quarantined]:
    """What was refused at imports, of a collection or all that the caller may read."""
    hidden = session.hidden()
    with closing(State(session.data)) as state:
        return [file for file in state.quarantined(collection) if file.collection not in hidden]


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
        counts, groups = catalogue.counts(), session.access.all()
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
    with suppress(NoLibrary), session.workspace() as workspace:
        return {collection.name for collection in workspace.library.catalogue.collections()}
    return set()


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
    """The numbers of the generations kept, newest last; none of an empty library."""
    with suppress(NoLibrary):
        return generations.numbers(session.data)
    return []


def generations_kept(session: Session) -> list[GenerationRow]:
    """The generations kept, newest last; for librarians, since counts and reasons tell of every collection."""
    session.may_change()
    served = generations.served_number(session.data)
    rows: list[GenerationRow] = []
    for number in generations.numbers(session.data):
        with suppress(UnknownName):  # pruned meanwhile
            rows.append(_generation(session.data, number, served))
    return rows


def _generation(data: Path, number: int, served: int) -> GenerationRow:
    try:
        known = generations.manifest_of(data, number)
    except Damaged:
        return GenerationRow(number, number == served)
    return GenerationRow(
        number, number == served, known.created, from_text(known.reason), known.documents, known.passages
    )


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
    rows = {row.number: row for row in generations_kept(session)}
    served = next((row for row in rows.values() if row.served), None)
    if served is None:
        raise Damaged("generation.incomplete", name=f"{generations.served_number(session.data):04d}")
    chosen = generations.before(session.data) if number is None else number
    if chosen not in rows:
        raise UnknownName("generation.unknown", number=chosen)
    undone = tuple(
        rows[row_number] for row_number in sorted(rows, reverse=True) if chosen < row_number <= served.number
    )
    return Undone(chosen, served.number, undone, served.documents, rows[chosen].documents)


def verified(session: Session, number: int | None) -> dict[int, tuple[Message, ...]]:
    """What is wrong with every file of generation ``number`` (None: of each), every byte read.

    Of all generations together with what is stored beside them, which has the number 0.
    """
    from localmed.operations import stored

    data = session.data
    generations.served_number(data)  # says so if there is no library
    if number is not None:
        return {number: tuple(stored.of_generation(data, number))}
    results = stored.of_generations(data)
    results[0] = tuple(fault.full_message for fault in stored.beside(data))
    if session.caller.groups is None:
        stored.note_whole_check(data, sum(map(len, results.values())))
    return results


def has_library(session: Session) -> None:
    """Raise ``NoLibrary`` if nothing has been imported."""
    generations.served_number(session.data)


def built_with(session: Session) -> str:
    """The encoder of the generation being served; "" if nothing has been imported."""
    return generations.encoder(session.data)


# --- passages ------------------------------------------------------------------------------------------------------


def evidence_of(session: Session, prefix: str) -> Evidence:
    """The passage whose id starts with ``prefix``, as evidence."""
    with session.workspace() as workspace:
        return workspace.mint((Hit(workspace.library.passage(prefix), 0.0),))[0]


def pages_of(session: Session, evidence: Evidence) -> int:
    """How many pages the document of ``evidence`` has; 0 where that is not known (any more)."""
    document = evidence.passage.document_id
    with session.workspace() as workspace:
        known = workspace.library.catalogue.by_ids([document])
    return known[document].pages if document in known else 0


def draw_page(
    session: Session, evidence: Evidence, image: Path, page: int | None = None, span: tuple[int, int] | None = None
) -> None:
    """See ``ingest.draw.cited``; raise ``UnknownName`` for an original of which the caller may see no document."""
    from localmed.ingest import draw

    with session.workspace() as workspace:
        if not workspace.library.catalogue.shows_file(evidence.file_sha256):
            raise UnknownName("kept.no_source", sources=())
        whole = partial(workspace.library.lexical.of_document, evidence.passage.document_id)
        draw.cited(session.data, evidence, image, page, span, whole)


def kept_folder(data: Path) -> Path:
    """Where answers are kept, made if it is not there."""
    folder = data / KEPT
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder
