"""The values that readers yield: records of placed lines, and faults.

A reader is a function ``read(path, mapping) -> Iterator[SourceRecord | Fault]`` under ``readers/``; those of
terminologies (``graphs/``) yield ``Term``s, that of archives ``Member``s. It runs in a child process and yields as it
goes. A bad record among good ones is a ``Fault``; a file that cannot be read at all raises ``InputError``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from localmed.domain import Box, Message, message
from localmed.domain.previews import Fault as Fault  # readers yield it beside records
from localmed.library.terms import Term

BlockKind = Literal["heading", "paragraph", "row"]


@dataclass(frozen=True, slots=True)
class Line:
    """A run of text, its ``box`` on a page, and the confidence of ``ocr`` from 0 to 1 (None: the file's own text)."""

    text: str
    box: Box | None = None
    ocr: float | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A heading (``level`` 1 is the highest), a paragraph, or a table row with its header; see ``line_ends.py`` for
    its text.
    """

    kind: BlockKind
    lines: tuple[Line, ...]
    level: int = 0
    doubtful: bool = False  # a table, or a list in columns, that was not read with certainty

    @classmethod
    def of(cls, kind: BlockKind, text: str, level: int = 0) -> Block:
        """A block of one unplaced line."""
        return cls(kind, (Line(text),), level)

    @classmethod
    def paragraph(cls, lines: Iterable[str]) -> Iterator[Block]:
        """A paragraph of unplaced lines; none without any."""
        if placed := tuple(map(Line, lines)):
            yield cls("paragraph", placed)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One document as read; ``key`` is its name within the file ("" if the file is the document).

    If ``edition``, ``language`` or ``title`` is empty, the pipeline works it out. ``notes`` are for the librarian.
    ``lost`` counts pages on which OCR failed and may succeed another time.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]
    edition: str = ""
    language: str = ""
    url: str = ""
    identifiers: tuple[str, ...] = ()
    publication_types: tuple[str, ...] = ()
    mesh: tuple[str, ...] = ()
    relations: tuple[tuple[str, str], ...] = ()
    status: str = ""
    replaced_by: str = ""
    pages: int = 0
    notes: tuple[Message, ...] = ()
    lost: int = 0

    @property
    def deleted(self) -> bool:
        """Whether its source has withdrawn it and left no text; such a record is stored but never found."""
        return not self.blocks and self.status == "withdrawn"


class Unusable(ValueError):
    """A line or object that makes no record; ``reason`` contains none of its text."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason.code)
        self.reason = reason


FILE = message("reader.file")  # the place of a fault of the whole file


def named(name: str) -> Message:
    """The place of a fault: a file, archive member or record by its own name."""
    return message("reader.key", key=name)


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Which of a source's fields mean what, from ``[fields]`` of a corpus manifest.

    Each value is a field name, a dotted path into nested objects, or a list of them whose values are joined in order.
    """

    fields: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Working:
    """Announces a page before it is read; OCR extends the file's time limit (``read.ocr_page_seconds``)."""

    page: int
    pages: int
    ocr: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive: its name there (``key``), and its name as unpacked (``opening.py``)."""

    key: str
    file: str


Item = SourceRecord | Term | Member | Fault
Reader = Callable[[Path, FieldMapping], Iterator[Item | Working]]
_Keyed = TypeVar("_Keyed", SourceRecord, Member)


def once(items: Iterable[_Keyed | Fault], where: str = "reader.key") -> Iterator[_Keyed | Fault]:
    """Replace each item whose key came before with a fault; ``where`` is the message code of its place."""
    seen: set[str] = set()
    for item in items:
        if isinstance(item, Fault):
            yield item
        elif item.key in seen:
            yield Fault(message(where, key=item.key), message("reader.twice"))
        else:
            seen.add(item.key)
            yield item
