"""What every reader returns: records of placed lines, and faults. The seam between file formats and the pipeline.

A reader is a function ``read(path, mapping) -> Iterator[SourceRecord | Fault]`` in a file of its own under ``readers/``
(``graphs/`` for terminologies, whose readers yield ``Term``s; that of archives yields ``Member``s). It runs in a child
process (``child.py``), yields as it goes, and never raises for one bad record among good ones: that is a ``Fault``. For
a file that cannot be read at all it raises ``InputError``.
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
    """A run of text; ``box`` says where it stands on its page, where there are pages.

    ``ocr`` is how sure the OCR engine was of it, from 0 to 1; None where the text is the file's own.
    """

    text: str
    box: Box | None = None
    ocr: float | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A heading (``level`` 1 is the highest), a paragraph, or a table row that already carries its header.

    A block's text is its lines joined as ``line_ends.py`` says: a space between words, nothing between Chinese
    characters, a hyphen at a line's end undone unless its reader marked it as the word's own.
    """

    kind: BlockKind
    lines: tuple[Line, ...]
    level: int = 0
    doubtful: bool = False  # of a table, or of a list in columns, that was not read with certainty

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
    """One document as read. ``key`` names it inside its file ("" when the file is the document).

    ``edition``, ``language`` and ``title`` may be empty: the pipeline then takes the manifest's or works them out.
    ``notes`` are things a librarian must know (a page without text, a table cut short). ``lost`` is how many pages OCR
    failed on, which it may read another time.
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
        """Whether it holds no text because its source has taken it back: it stands for that, and never answers."""
        return not self.blocks and self.status == "withdrawn"


class Unusable(ValueError):
    """A line or an object makes no record; ``reason`` says why, without its text."""

    def __init__(self, reason: Message) -> None:
        super().__init__(reason.code)
        self.reason = reason


FILE = message("reader.file")  # where a fault of the file as a whole is


def named(name: str) -> Message:
    """A place that is called as a file, a member of an archive or a record calls itself."""
    return message("reader.key", key=name)


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Which of a source's own fields mean what, from ``[fields]`` of a corpus manifest.

    Each value is a field name, a dotted path into nested objects, or a list of them whose values are joined in order.
    """

    fields: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Working:
    """Page ``page`` of ``pages`` is about to be read; by OCR, the file may take longer (``read.ocr_page_seconds``)."""

    page: int
    pages: int
    ocr: bool = False


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an archive: its name there (``key``), and the name under which it was unpacked (``opening.py``)."""

    key: str
    file: str


# Documents from most readers, terms from those under ``graphs/``, members from that of archives.
Item = SourceRecord | Term | Member | Fault
Reader = Callable[[Path, FieldMapping], Iterator[Item | Working]]
_Keyed = TypeVar("_Keyed", SourceRecord, Member)


def once(items: Iterable[_Keyed | Fault], where: str = "reader.key") -> Iterator[_Keyed | Fault]:
    """``items`` with a fault in place of what has the key of one before; ``where`` is the code of its place."""
    seen: set[str] = set()
    for item in items:
        if isinstance(item, Fault):
            yield item
        elif item.key in seen:
            yield Fault(message(where, key=item.key), message("reader.twice"))
        else:
            seen.add(item.key)
            yield item
