"""Fields that a librarian has set on documents, in ``library.sqlite``: title, edition, tags, owner, approver, two
dates, and corrected names of headings (or that a line is no heading).

They override what the file says and outlive re-imports. The collection's manifest overrides them, but for the title: an
import that finds a field there drops the librarian's value (``drop_stated``), and setting such a field is refused.

An approval covers a text under its headings. The digests of the text, of the file and of the heading fields are stored
beside the approver (``APPROVED``). If both text and file change, or the heading fields do, there is no approver until
one is set again or the approved version returns. A file that is only read differently, or moved within a larger one,
stays approved.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from localmed.domain import Document, Governance, Message, Passage, digest, message
from localmed.library.journal import now

GOVERNANCE = ("owner", "approver", "effective_from", "review_by")
FIELDS = ("title", "edition", *GOVERNANCE, "tags")
KEPT = ("title", "edition")  # also kept with each passage, which the indexes find and filter by
STATED = tuple(name for name in FIELDS if name != "title")  # in which a manifest has priority
DATES = ("edition", "effective_from", "review_by")
APPROVED = "approved"  # the row beside an approver
HEADING = "heading"  # begins the field of a heading: the path to it follows, as it was read
NO_HEADING = "-"  # value of a line that was read as a heading but is text


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, at the end of its ``path``, on a page; ``value`` is the librarian's correction, "" without one."""

    path: tuple[str, ...]
    page: int
    value: str

    @property
    def field(self) -> str:
        """The name of its field."""
        return heading_field(self.path)

    @property
    def removed(self) -> bool:
        """Whether a librarian said that it is no heading."""
        return self.value == NO_HEADING

    def set_to(self, name: str, none: bool) -> str:
        """Return the field's value for a heading called ``name``, or for ``none``."""
        return NO_HEADING if none else "" if name == self.path[-1] else name


class Governed:
    """The table ``governed`` of an open catalogue; written only in a generation that is being built."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def set(self, document: Document, values: Mapping[str, str]) -> None:
        """Set fields of a document; an empty value removes the field."""
        for field, value in values.items():
            if value:
                self._put(document.id, field, value)
            else:
                self._drop(document.id, field)
        if values.get("approver"):
            texts = (document.content, document.file_sha256, *_headings_digest(self._set(document.id)))
            self._put(document.id, APPROVED, " ".join(texts))

    def drop_stated(self, documents: Iterable[str], stated: Iterable[str]) -> None:
        """Drop the fields of ``documents`` that their manifest states now."""
        fields = [name for name in STATED if name in set(stated)]
        for document in documents if fields else ():
            for field in fields:
                self._drop(document, field)

    def rename(self, old: str, new: str) -> None:
        """Transfer the fields of document ``old`` to ``new``."""
        self._database.execute("UPDATE OR REPLACE governed SET document = ? WHERE document = ?", (new, old))

    def of(self, document: Document) -> dict[str, str]:
        """Return the valid fields of a document; ``approver`` is "" if the approval lapsed."""
        set_ = self._set(document.id)
        values = {field: value for field, value in set_.items() if field != APPROVED and not of_heading(field)}
        return values | ({"approver": ""} if _has_lapsed(set_, document.content, document.file_sha256) else {})

    def lapsed(self) -> frozenset[str]:
        """Return the documents that have changed since their approval."""
        query = "SELECT id, content, file_sha256 FROM governed JOIN documents ON id = document WHERE field = ?"
        rows = self._database.execute(query, (APPROVED,)).fetchall()
        return frozenset(document for document, *texts in rows if _has_lapsed(self._set(document), *texts))

    def outdated(self, document: Document, before: Document | None) -> list[Message]:
        """Return notes on fields to review because the text of ``document`` may differ from ``before``."""
        fields = self.of(document)
        lapsed = fields.get("approver") == ""
        dated = [date_ for date_ in DATES if date_ in fields] if before and before.content != document.content else []
        notes = [message("governance.lapsed")] if lapsed else []
        fields_set = tuple(message(f"column.{name}") for name in dated)
        return notes + ([message("governance.dated", fields=fields_set)] if dated else [])

    def apply(self, document: Document) -> Document:
        """Return ``document`` with its fields applied."""
        values = self.of(document)
        if not values:
            return document
        tags = tags_of(values.pop("tags")) if "tags" in values else document.tags
        title, edition = (values.pop(name, value_of(document, name)) for name in KEPT)
        changed = replace(document.governance, **values)
        return replace(document, title=title, edition=edition, tags=tags, governance=changed)

    def apply_to_passages(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        """Return ``passages`` (whole documents in order) with titles, editions and headings applied."""
        said = {document: self._set(document) for document in {passage.document_id for passage in passages}}
        made: list[Passage] = []
        for document, together in groupby(passages, key=lambda passage: passage.document_id):
            set_, own = said[document], list(together)
            if set_ or any(passage.found for passage in own):
                own = [
                    replace(it, title=set_.get("title", it.title), edition=set_.get("edition", it.edition))
                    for it in _with_headings(own, set_)
                ]
            made += own
        return made

    def headings(self, document: Document, passages: Iterable[Passage]) -> list[Heading]:
        """Return the headings of a document as read, in the order of its ``passages``, without its title."""
        set_, first = self._set(document.id), dict[tuple[str, ...], Passage]()
        for passage in passages:
            path = passage.found or passage.headings
            for level in range(1, len(path) + 1):
                first.setdefault(path[:level], passage)
        first.pop((document.title,), None)
        return [Heading(path, passage.page, set_.get(heading_field(path), "")) for path, passage in first.items()]

    def _set(self, document: str) -> dict[str, str]:
        return dict(self._database.execute("SELECT field, value FROM governed WHERE document = ?", (document,)))

    def _put(self, document: str, field: str, value: str) -> None:
        self._database.execute("INSERT OR REPLACE INTO governed VALUES (?, ?, ?, ?)", (document, field, value, now()))

    def _drop(self, document: str, field: str) -> None:
        self._database.execute("DELETE FROM governed WHERE document = ? AND field = ?", (document, field))
        if field == "approver":
            self._drop(document, APPROVED)


def heading_field(path: Sequence[str]) -> str:
    """Return the field of the heading at the end of ``path``, as read."""
    return f"{HEADING} {json.dumps(path, ensure_ascii=False)}"


def of_heading(field: str) -> bool:
    """Whether ``field`` belongs to a heading."""
    return field.startswith(f"{HEADING} ")


def _has_lapsed(set_: Mapping[str, str], content: str, file_sha256: str) -> bool:
    """Whether text and file both differ from the approved ones, or the heading fields do."""
    approved = set_.get(APPROVED, "").split()
    headings = [part for part in approved if part.startswith(HEADING)]
    return bool(approved) and ({content, file_sha256}.isdisjoint(approved) or headings != _headings_digest(set_))


def _headings_digest(set_: Mapping[str, str]) -> list[str]:
    headings = sorted(pair for pair in set_.items() if of_heading(pair[0]))
    return [f"{HEADING}:{digest(*(part for pair in headings for part in pair))}"] if headings else []


def _with_headings(passages: Iterable[Passage], set_: Mapping[str, str]) -> Iterator[Passage]:
    """Yield ``passages`` of one document under their corrected headings.

    A line that is no heading begins the text of the first passage below it, which continues the section above.
    """
    above: tuple[str, ...] = ()
    names: list[str] = []  # in the places of those that were read
    for passage in passages:
        found, before, names, text = passage.found or passage.headings, names, [], ""
        for level, heading in enumerate(found):
            path = found[: level + 1]
            name = set_.get(heading_field(path), heading)
            if name != NO_HEADING:
                names.append(name)
                continue
            text += "" if above[: level + 1] == path else f"{heading}\n"
            section = before[level : None if path == found else level + 1] if above[:level] == found[:level] else []
            names += section or [""]
        above, headings, moved = found, tuple(filter(None, names)), len(text) - passage.lead
        yield replace(
            passage,
            headings=headings,
            found=() if headings == found and not text else found,
            text=text + passage.text[passage.lead :],
            lead=len(text),
            spans=tuple(replace(span, start=span.start + moved, end=span.end + moved) for span in passage.spans),
        )


def tags_of(text: str) -> tuple[str, ...]:
    """Return the distinct tags in ``text``, in order."""
    return tuple(dict.fromkeys(tag for part in re.split("[,;，、；]", text) if (tag := " ".join(part.split()))))


def value_of(document: Document, field: str) -> str:
    """Return a document's value of a field; tags are joined by commas."""
    if field == "tags":
        return ", ".join(document.tags)
    return str(getattr(document if field in KEPT else document.governance, field))


def governance_of(values: Mapping[str, str]) -> Governance:
    """Return the governance among named values; missing ones are empty."""
    return Governance(**{name: values.get(name, "") for name in GOVERNANCE})
