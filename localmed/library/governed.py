"""What a librarian has set of documents, in ``library.sqlite``: title, edition, tags, owner, approver and two dates,
and what a heading is called that was read wrongly, or that it is none.

Like a mark it outlives re-imports: it lies over what the file says. What the collection's manifest states comes last:
an import that finds a field there drops what had been set of it (``yield_to``), and setting such a field is refused.

An approval is of a text under its headings: beside an approver the digests of the text, of the file and of what was
set of headings are kept (``APPROVED``). Where text and file are others, or the headings are, there is no approver until
one is set again or what was approved comes back. A file that is only read in another way, or moved within a larger one,
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
DATES = ("edition", "effective_from", "review_by")
APPROVED = "approved"  # the row beside an approver
HEADING = "heading"  # begins the field of a heading: the path to it follows, as it was read
NO_HEADING = "-"  # set of what was read as a heading and is text


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, at the end of its ``path``, on a page; ``value`` is what was set of it, "" where nothing was."""

    path: tuple[str, ...]
    page: int
    value: str

    @property
    def field(self) -> str:
        """Its field."""
        return heading_field(self.path)

    @property
    def removed(self) -> bool:
        """Whether it was said to be no heading."""
        return self.value == NO_HEADING

    def set_to(self, name: str, none: bool) -> str:
        """What is set of one that is called ``name``, or ``none``."""
        return NO_HEADING if none else "" if name == self.path[-1] else name


class Governed:
    """The table ``governed`` of an open catalogue; written only in a generation that is being built."""

    def __init__(self, database: sqlite3.Connection) -> None:
        """Use ``Catalogue.governed``."""
        self._database = database

    def set(self, document: Document, values: Mapping[str, str]) -> None:
        """Set fields of a document; an empty value takes back what was set."""
        for field, value in values.items():
            if value:
                self._put(document.id, field, value)
            else:
                self._drop(document.id, field)
        if values.get("approver"):
            texts = (document.content, document.file_sha256, *_headings_set(self._set(document.id)))
            self._put(document.id, APPROVED, " ".join(texts))

    def yield_to(self, documents: Iterable[str], stated: Iterable[str]) -> None:
        """The manifest states these fields of ``documents`` now: what was set of them no longer holds."""
        fields = [name for name in FIELDS if name in set(stated)]
        for document in documents if fields else ():
            for field in fields:
                self._drop(document, field)

    def rename(self, old: str, new: str) -> None:
        """What was set of the document ``old`` holds for ``new``."""
        self._database.execute("UPDATE OR REPLACE governed SET document = ? WHERE document = ?", (new, old))

    def of(self, document: Document) -> dict[str, str]:
        """What was set of a document and holds for its text, by field; no approver ("") where the approval lapsed."""
        set_ = self._set(document.id)
        values = {field: value for field, value in set_.items() if field != APPROVED and not of_heading(field)}
        return values | ({"approver": ""} if _lapsed(set_, document.content, document.file_sha256) else {})

    def lapsed(self) -> frozenset[str]:
        """The documents that are not as they were approved."""
        query = "SELECT id, content, file_sha256 FROM governed JOIN documents ON id = document WHERE field = ?"
        rows = self._database.execute(query, (APPROVED,)).fetchall()
        return frozenset(document for document, *texts in rows if _lapsed(self._set(document), *texts))

    def outdated(self, document: Document, before: Document | None) -> list[Message]:
        """What to look at again now that the text of ``document`` may be another than ``before``, to be reported."""
        fields = self.of(document)
        lapsed = fields.get("approver") == ""
        dated = [date_ for date_ in DATES if date_ in fields] if before and before.content != document.content else []
        notes = [message("governance.lapsed")] if lapsed else []
        fields_set = tuple(message(f"column.{name}") for name in dated)
        return notes + ([message("governance.dated", fields=fields_set)] if dated else [])

    def over(self, document: Document) -> Document:
        """``document`` with what was set of it."""
        values = self.of(document)
        if not values:
            return document
        tags = tags_of(values.pop("tags")) if "tags" in values else document.tags
        title, edition = (values.pop(name, known(document, name)) for name in KEPT)
        changed = replace(document.governance, **values)
        return replace(document, title=title, edition=edition, tags=tags, governance=changed)

    def over_passages(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        """``passages``, whole documents in order, with the titles, editions and headings set of their documents."""
        said = {document: self._set(document) for document in {passage.document_id for passage in passages}}
        made: list[Passage] = []
        for document, together in groupby(passages, key=lambda passage: passage.document_id):
            set_, own = said[document], list(together)
            if set_ or any(passage.found for passage in own):
                own = [
                    replace(it, title=set_.get("title", it.title), edition=set_.get("edition", it.edition))
                    for it in _under(own, set_)
                ]
            made += own
        return made

    def headings(self, document: Document, passages: Iterable[Passage]) -> list[Heading]:
        """The headings of a document as they were read, in the order of its ``passages``; its title is none."""
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
    """The field of the heading at the end of ``path``, as it was read."""
    return f"{HEADING} {json.dumps(path, ensure_ascii=False)}"


def of_heading(field: str) -> bool:
    """Whether ``field`` is a heading's."""
    return field.startswith(f"{HEADING} ")


def _lapsed(set_: Mapping[str, str], content: str, file_sha256: str) -> bool:
    """Whether a document with these digests is another one, or has other headings, than the one that was approved."""
    approved = set_.get(APPROVED, "").split()
    headings = [part for part in approved if part.startswith(HEADING)]
    return bool(approved) and ({content, file_sha256}.isdisjoint(approved) or headings != _headings_set(set_))


def _headings_set(set_: Mapping[str, str]) -> list[str]:
    """A digest of what was set of headings; nothing where nothing was."""
    headings = sorted(pair for pair in set_.items() if of_heading(pair[0]))
    return [f"{HEADING}:{digest(*(part for pair in headings for part in pair))}"] if headings else []


def _under(passages: Iterable[Passage], set_: Mapping[str, str]) -> Iterator[Passage]:
    """``passages`` of one document under its headings as they are called.

    What is no heading begins the text of the first passage below it, which goes on with the section above.
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
    """The tags that ``text`` lists, in its order, each once."""
    return tuple(dict.fromkeys(tag for part in re.split("[,;，、；]", text) if (tag := " ".join(part.split()))))


def known(document: Document, field: str) -> str:
    """What is known of a document by the name of a field; tags with commas between them."""
    if field == "tags":
        return ", ".join(document.tags)
    return str(getattr(document if field in KEPT else document.governance, field))


def governance_of(values: Mapping[str, str]) -> Governance:
    """The governance among named values; what is missing is empty."""
    return Governance(**{name: values.get(name, "") for name in GOVERNANCE})
