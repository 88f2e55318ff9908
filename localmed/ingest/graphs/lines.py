"""The lines of a table or an OBO file, each bounded and checked: a bad line is a fault and the file goes on.

Rules: UTF-8, with or without a byte-order mark; UTF-16 is refused, because it has no lines of bytes. Invisible
characters are removed as from documents; a line with a NUL is refused.

Ids have one spelling (``canonical``), so that sources meet: ``UMLS_CUI:C0011849`` is ``C0011849``, and a DrugBank code
is the same with and without its prefix. A vocabulary's edition (``SNOMEDCT_US_2025_09_01``) is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from localmed.domain import Message, message
from localmed.domain.errors import InputError, reason
from localmed.ingest.parsed import Fault
from localmed.ingest.readers.encoding import bounded_lines, clean

LINE_BYTES = 2**20  # the longest definition in UMLS has some 30 KB
NAME_CHARACTERS = 3_000  # UMLS allows 3,000 bytes for a name; what is longer is no name
_MARK = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_ID = re.compile(r"\S{1,200}")
_BARE = re.compile(r"(?:UMLS(?:_CUI)?:(C\d{7,8})|(?:drugbank|DRUGBANK|DrugBank):(DB\d{5}))")
_EDITION = re.compile(r"(?:_\d{4})(?:_\d\d)*$")
_SPELLINGS = {"MSH": "MESH", "MeSH": "MESH", "ICD10": "ICD10", "ICD-10": "ICD10", "MIM": "OMIM", "NCIT": "NCI"}


@dataclass(frozen=True, slots=True)
class Numbered:
    """One line without its end, its number from 1, and the file's bytes up to its end."""

    number: int
    end: int
    text: str

    def fault(self, why: Message) -> Fault:
        """A fault for this line."""
        return Fault(message("reader.line", number=self.number), why)


def read_lines(path: Path) -> Iterator[Numbered | Fault]:
    """The lines of ``path``, blank ones too; raise ``InputError`` if it cannot be read or is UTF-16."""
    try:
        with path.open("rb") as stream:
            if stream.read(2) in _UTF16:
                raise InputError("graph.utf16", name=path.name)
            stream.seek(0)
            yield from _lines(stream)
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None


def is_id(text: str) -> bool:
    """Whether ``text`` can be a concept's id: no blanks, at most 200 characters."""
    return bool(_ID.fullmatch(text))


def canonical(code: str) -> str:
    """``code`` in the graph's spelling; one without a prefix is unchanged."""
    if bare := _BARE.fullmatch(code):
        return bare[1] or bare[2]
    prefix, colon, rest = code.partition(":")
    if not colon:
        return code
    prefix = _EDITION.sub("", prefix)
    return f"{_SPELLINGS.get(prefix, prefix)}:{rest}"


def _lines(stream: BinaryIO) -> Iterator[Numbered | Fault]:
    for number, raw in enumerate(bounded_lines(stream, LINE_BYTES), start=1):
        line = Numbered(number, stream.tell(), "")
        if len(raw) > LINE_BYTES:
            yield line.fault(message("reader.line_long", most=LINE_BYTES))
        elif b"\x00" in raw:
            yield line.fault(message("graph.nul"))
        else:
            try:
                text = (raw.removeprefix(_MARK) if number == 1 else raw).decode("utf-8")
            except UnicodeDecodeError:
                yield line.fault(message("graph.not_utf8"))
            else:
                yield replace(line, text=clean(text.rstrip("\r\n")))
