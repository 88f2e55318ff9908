"""Setting details of documents (title, edition, tags, governance, headings), and chains of editions.

A collection's manifest has priority, but for the title: a field that it states is refused here, with a pointer to it.
All changes of a call are published together or not at all. A new title or edition is written to the indexes without
reading the file again; a new title or heading is encoded again with each passage, because it gives the passage its
context.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Document, Message, Status, is_date, message
from localmed.domain.errors import UsageError
from localmed.domain.ports import Embedder
from localmed.ingest.governance import Fault, Row, differs, match_rows
from localmed.ingest.manifest import Manifest
from localmed.ingest.sources import Source
from localmed.library import layout
from localmed.library.catalogue import Catalogue
from localmed.library.governed import DATES, FIELDS, GOVERNANCE, HEADING, KEPT, STATED, of_heading, tags_of, value_of
from localmed.library.library import Builder, Library
from localmed.library.vectors import VectorCache

IDS_TOLD = 20  # of one change, in the audit log
LONGEST = 200  # characters of a name or a date; names with titles and departments have fewer


@dataclass(frozen=True, slots=True)
class Change:
    """Values to set on ``documents``: field (of ``FIELDS``) -> value; an empty value clears the field."""

    documents: tuple[Document, ...]
    values: Mapping[str, str]

    @property
    def subject(self) -> str:
        """The ids, for the audit log."""
        first = " ".join(document.id[:12] for document in self.documents[:IDS_TOLD])
        more = len(self.documents) - IDS_TOLD
        return f"{first} and {more} more" if more > 0 else first

    @property
    def fields(self) -> str:
        """The field names, for the audit log; never the values, which may be names of staff."""
        return " ".join(sorted({name.split()[0] for name in self.values}))


def problem(field: str, value: str) -> Message | None:
    """Why ``value`` cannot be set; None if it can."""
    name = HEADING if of_heading(field) else field
    if name not in (*FIELDS, HEADING):
        return message("governance.no_field", field=field)
    if field in KEPT and not value:
        return message(f"governance.{field}")
    if field in DATES and value and not is_date(value):
        return message("governance.no_date", field=message(f"column.{field}"))
    if len(value) > LONGEST or not value.isprintable():
        return message("governance.long", field=name, most=LONGEST)
    return None


def facts_of(catalogue: Catalogue, manifest: Manifest, document: Document) -> dict[str, str]:
    """The fields of ``document`` in which its collection's manifest has priority, with its values."""
    file = catalogue.file(document.collection, document.source)
    facts = manifest.facts(Source(Path(document.source), file.root if file else ""))
    return {name: value for name, value in facts.items() if name in STATED}


def contradicted_field(catalogue: Catalogue, manifest: Manifest, change: Change) -> str:
    """The first field of ``change`` that the manifest states with another value; "" if there is none."""
    for document in change.documents:
        facts = facts_of(catalogue, manifest, document)
        for field, value in change.values.items():
            if facts.get(field, value) != value:
                return field
    return ""


def _refusal(change: Change) -> Message | None:
    """Why ``change`` is invalid, apart from the manifest."""
    wrong = next(filter(None, (problem(name, value) for name, value in change.values.items())), None)
    one_title = "title" in change.values and len(change.documents) > 1
    return wrong or (message("governance.one_title") if one_title else None)


def planned(catalogue: Catalogue, manifest: Manifest, rows: Sequence[Row]) -> tuple[list[Change], list[Fault]]:
    """The changes of the rows of a sheet about the manifest's collection, and the faults of invalid rows.

    A row without any new value changes nothing.
    """
    matches, faults = match_rows(catalogue, manifest.collection.name, rows)
    changes = []
    for row, documents in matches:
        values = {
            name: value for name, value in row.values.items() if any(differs(it, name, value) for it in documents)
        }
        change = Change(documents, values)
        wrong = _refusal(change)
        if not wrong and (field := contradicted_field(catalogue, manifest, change)):
            wrong = message("governance.stated", field=field)
        if wrong:
            faults.append(Fault(row.number, UsageError(wrong).messages[0]))
        elif values:
            changes.append(change)
    return changes, sorted(faults, key=lambda fault: fault.row)


def require_agreement(catalogue: Catalogue, manifest: Manifest, changes: Sequence[Change]) -> None:
    """Raise ``UsageError`` where a change is invalid or contradicts the manifest."""
    for change in changes:
        if wrong := _refusal(change):
            raise UsageError(wrong)
        mine = tuple(document for document in change.documents if document.collection == manifest.collection.name)
        if field := contradicted_field(catalogue, manifest, replace(change, documents=mine)):
            raise UsageError(
                "governance.manifest", field=field, document=mine[0].id[:12], name=manifest.collection.name
            )


def apply(
    builder: Builder,
    changes: Sequence[Change],
    manifest_of: Callable[[str], Manifest],
    encoder: Embedder,
    settings: Settings,
) -> None:
    """Apply ``changes`` to the generation being built.

    Raise ``UsageError``, with nothing set, for an invalid value and where the manifest of a collection contradicts.
    """
    for name in {document.collection for change in changes for document in change.documents}:
        require_agreement(builder.catalogue, manifest_of(name), changes)
    with closing(VectorCache(settings.data / layout.VECTORS, encoder)) as cache:
        for change in changes:
            stored = builder.catalogue.by_ids(document.id for document in change.documents)
            for document in stored.values():  # of their own status, not the day's
                _apply(builder, document, change.values, cache, settings.library.batch)


def _apply(builder: Builder, document: Document, values: Mapping[str, str], cache: VectorCache, batch: int) -> None:
    before = [value_of(document, name) for name in KEPT]
    title, edition = kept = [values.get(name, value_of(document, name)) for name in KEPT]
    again = kept != before or any(map(of_heading, values))
    passages = builder.lexical.of_document(document.id) if again else []
    if passages:
        builder.remove([document.id])
    builder.catalogue.governed.set(document, values)
    changed = replace(document.governance, **{name: value for name, value in values.items() if name in GOVERNANCE})
    tags = tags_of(values["tags"]) if "tags" in values else document.tags
    builder.put(replace(document, title=title, edition=edition, tags=tags, governance=changed))
    over = builder.catalogue.governed.apply_to_passages(passages)
    for start in range(0, len(over), batch):
        part = over[start : start + batch]
        builder.add(part, cache.encode_passages(part))


# --- chains of editions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Link:
    """A document in a chain of editions; ``removed`` is the day of its removal."""

    id: str
    title: str
    edition: str
    status: str
    removed: str = ""


@dataclass(frozen=True, slots=True)
class Chain:
    """The documents that a document supersedes, and those that supersede it, nearest first."""

    older: tuple[Link, ...]
    newer: tuple[Link, ...]


def chain(library: Library, document: str) -> Chain:
    """The chain of ``document``, including removed documents."""
    older: dict[str, None] = {}
    waiting = [document]
    while waiting:
        superseded = [id_ for id_ in library.catalogue.succeeding(waiting.pop(0))[1] if id_ not in older]
        older |= dict.fromkeys(superseded)
        waiting += superseded
    newer: dict[str, None] = {}
    after = library.catalogue.succeeding(document)[0]
    while after and after not in newer:
        newer[after] = None
        after = library.catalogue.succeeding(after)[0]
    return Chain(_links(library, older), _links(library, newer))


def _links(library: Library, ids: Mapping[str, None]) -> tuple[Link, ...]:
    there = library.catalogue.by_ids(ids)
    links = []
    for id_ in ids:
        if document := there.get(id_):
            links.append(Link(id_, document.title, document.edition, library.status(id_).value))
        elif removed := library.catalogue.removed(id_):
            links.append(Link(id_, removed[0], removed[1], "removed", removed[2]))
        else:  # named by a file that came before the one it names, or in a collection that is hidden
            links.append(Link(id_, "", "", "unknown"))
    return tuple(links)


def mark(builder: Builder, document: str, status: Status, replaced_by: str, reason: str) -> None:
    """Mark a document current or superseded; without ``replaced_by`` its earlier successor stays.

    Raise ``UsageError`` if its source withdrew it, which no mark changes, and for a cycle.
    """
    stored = builder.catalogue.document(document)  # its own status, not that of a withdrawal
    if stored.status is Status.WITHDRAWN:
        raise UsageError("governance.withdrawn", document=document[:12], collection=stored.collection)
    if status is Status.SUPERSEDED:
        replaced_by = replaced_by or stored.replaced_by
    after, seen = replaced_by, {""}
    while after not in seen:
        if after == document:
            raise UsageError("governance.circle")
        seen.add(after)
        after = builder.catalogue.succeeding(after)[0]
    builder.mark(stored, status, replaced_by, reason)
