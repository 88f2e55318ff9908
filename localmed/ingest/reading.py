"""Turns the items of a file into documents and passages, and decides which documents they displace.

``Descriptions`` applies the manifest to a file and its records: language, title, keys. ``read_content`` makes each
record a document with passages, or states why it has none. Nothing is written here, so a preview reads as an import
does.

A passage never crosses a heading and never cuts a sentence, unless that is longer than the limit (then it is cut at its
last minor break). Sentences of consecutive paragraphs under a heading are packed up to the limit, table rows only with
rows. Its id is ``digest(collection, content, locator)``, where ``content`` is the digest of everything extracted and
``locator`` the range of characters, so the same text in the same place keeps its id in every import.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice, takewhile
from pathlib import Path
from typing import Self

from localmed.config import ChunkSettings
from localmed.domain import STATED, Box, Document, Message, Parameter, Passage, Span, Status, digest, message
from localmed.domain.errors import InputError
from localmed.ingest import line_ends, readers
from localmed.ingest.duplicates import NearCopies, Twins, Versions
from localmed.ingest.manifest import Manifest
from localmed.ingest.opening import Content, Part, place_within
from localmed.ingest.parsed import FILE, Block, Fault, Line, SourceRecord, named
from localmed.ingest.readers import values
from localmed.ingest.sources import Source
from localmed.library.catalogue import Catalogue, ImportedFile
from localmed.library.governed import governance_of
from localmed.library.journal import Withdrawal
from localmed.messages import LANGUAGES
from localmed.process import hooks
from localmed.text.language import break_point, sentences
from localmed.text.tables import cues

# --- passages ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or row: its text, the placed lines in it, and its offset in the extracted text."""

    text: str
    spans: tuple[Span, ...]
    offset: int
    row: bool
    paragraph: int
    doubtful: bool


def content_of(record: SourceRecord) -> str:
    """The digest of everything extracted: title, headings and text, in order."""
    return digest(record.title, *(f"{block.kind}{block.level}:{text_of(block.lines)[0]}" for block in record.blocks))


def passages(record: SourceRecord, document: Document, settings: ChunkSettings) -> Iterator[Passage]:
    """Cut ``record`` into the passages of ``document``; those with OCR lines state its confidence."""
    sure = {line.box: line.ocr for block in record.blocks for line in block.lines if line.box and line.ocr is not None}
    for passage in _passages(record, document, settings):
        yield replace(passage, ocr=_confidence(passage, sure)) if sure else passage


def _confidence(passage: Passage, sure: Mapping[Box, float]) -> float | None:
    """The mean OCR confidence of the passage's lines, weighted by characters; None if OCR read none of them."""
    read = [(span.end - span.start, sure[span.box]) for span in passage.spans if span.box in sure]
    total = max(1, sum(size for size, _ in read))
    return round(sum(size * confidence for size, confidence in read) / total, 3) if read else None


def _passages(record: SourceRecord, document: Document, settings: ChunkSettings) -> Iterator[Passage]:
    offset = 0
    headings: list[tuple[int, str]] = []
    pending: list[Piece] = []
    for number, block in enumerate(record.blocks):
        text, spans = text_of(block.lines)
        if block.kind == "heading":
            yield from _pack(pending, headings, document, settings)
            pending = []
            headings = [*(heading for heading in headings if heading[0] < block.level), (block.level, text)]
        else:
            pending.extend(_pieces(block, text, spans, offset, number, settings.characters))
        offset += len(text) + 1
    yield from _pack(pending, headings, document, settings)


def text_of(lines: Sequence[Line]) -> tuple[str, tuple[Span, ...]]:
    """The joined lines, and the span of each placed line in the result."""
    joined = line_ends.Joined()
    spans: list[Span] = []
    for line in lines:
        added = " ".join(line.text.split())
        if not added:
            continue
        start = joined.add(added)
        if spans and spans[-1].end > start:  # its hyphen was removed
            spans[-1] = replace(spans[-1], end=start)
        if line.box is not None:
            spans.append(Span(start, joined.length, line.box))
    return joined.text, tuple(spans)


def _pieces(block: Block, text: str, spans: tuple[Span, ...], offset: int, number: int, limit: int) -> Iterator[Piece]:
    row = block.kind == "row"
    bounds = [(0, len(text))] if row else sentences(text)
    first = 0  # the first span that does not end before the piece
    for start, end in bounds:
        for left, right in _cut(text, start, end, limit):
            while first < len(spans) and spans[first].end <= left:
                first += 1
            inside = tuple(
                Span(max(span.start, left) - left, min(span.end, right) - left, span.box)
                for span in takewhile(lambda span: span.start < right, islice(spans, first, None))  # noqa: B023  at once
            )
            yield Piece(text[left:right], inside, offset + left, row, number, block.doubtful)


def _cut(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Split ``start:end`` into parts of at most ``limit`` characters, without surrounding blanks."""
    while end - start > limit:
        stop = break_point(text, start, start + max(limit, 1))
        yield start, start + len(text[start:stop].rstrip())
        start = stop
        while start < end and text[start].isspace():
            start += 1
    if end > start:
        yield start, end


def _pack(
    pieces: Sequence[Piece], headings: Sequence[tuple[int, str]], document: Document, settings: ChunkSettings
) -> Iterator[Passage]:
    """Pack pieces into passages; from half the limit on, a passage ends with its paragraph."""
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        full = size + len(piece.text) + 1 > settings.characters
        other = bool(group) and (group[-1].row, group[-1].doubtful) != (piece.row, piece.doubtful)
        ended = bool(group) and group[-1].paragraph != piece.paragraph and size >= settings.characters / 2
        if group and (full or other or (ended and not piece.row)):
            yield _passage(group, headings, document)
            group, size = [], 0
        group.append(piece)
        size += len(piece.text) + 1
    if group:
        yield _passage(group, headings, document)


def _passage(group: Sequence[Piece], headings: Sequence[tuple[int, str]], document: Document) -> Passage:
    text = ""
    spans: list[Span] = []
    for previous, piece in zip((None, *group), group, strict=False):
        if previous:
            apart = piece.row or piece.paragraph != previous.paragraph
            text += "\n" if apart else "" if line_ends.WIDE.match(previous.text[-1]) else " "
        spans.extend(Span(len(text) + span.start, len(text) + span.end, span.box) for span in piece.spans)
        text += piece.text
    locator = f"{group[0].offset}-{group[-1].offset + len(group[-1].text)}"
    return Passage(
        id=digest(document.collection, document.content, locator),
        document_id=document.id,
        collection=document.collection,
        language=document.language,
        edition=document.edition,
        title=document.title,
        headings=tuple(text for _, text in headings),
        text=text,
        locator=locator,
        page=spans[0].box.page if spans else 0,
        table=group[0].row,
        doubtful=group[0].doubtful,
        spans=tuple(spans),
    )


# --- editions ---------------------------------------------------------------------------------------------------------

# The date of an edition as stated in a document's first lines: "Version 3, issued 14 April 2025", 2025年6月1日修订.
# A date counts only beside a word for editions (``publications.toml``, ``[edition]``) and not beside one for the next
# review; of several the latest. Not covered: dates without such a word, and other calendars.

LINES = 8  # first lines of a document that may state its edition
NEAR = 24  # characters between the word and its date: "issued by the board on"
_MONTHS = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DATE = re.compile(
    rf"(?<!\d)(?:(?P<d1>\d{{1,2}})(?:st|nd|rd|th)? )?(?P<m1>{_MONTHS})\.? (?:(?P<d2>\d{{1,2}})(?:st|nd|rd|th)?,? )?"
    r"(?P<y1>20\d\d)\b"
    r"|(?<![\d.])(?P<y2>20\d\d)[-/.](?P<m2>\d{1,2})(?:[-/.](?P<d3>\d{1,2}))?(?![\d-])"
    r"|(?P<y3>20\d\d)\s?年(?:\s?(?P<m3>\d{1,2})\s?月(?:\s?(?P<d4>\d{1,2})\s?日)?)?"
    r"|(?<![\d.])(?P<y4>20\d\d)(?![\d-])",
    re.IGNORECASE,
)


def stated_edition(lines: Sequence[str]) -> str:
    """The edition stated in the first of ``lines``, as an ISO date of a day, month or year; "" if none."""
    return max((date for line in lines[:LINES] for date in _dates(line)), default="")


def _dates(line: str) -> Iterator[str]:
    done = 0
    for match in _DATE.finditer(line):
        before, after = line[max(done, match.start() - NEAR) : match.start()], line[match.end() : match.end() + NEAR]
        done = match.end()
        review, either = cues("publications", "next_review"), _either()
        last = next(reversed([*either.finditer(before)]), None)
        at_once = last if last and not before[last.end() :].strip(" \u3000:：") else None
        beside = at_once or either.match(after.lstrip()) or last
        if beside and not review.fullmatch(beside[0]):
            parts = {name[0]: value for name, value in match.groupdict().items() if value}
            yield values.iso_date(parts["y"], parts.get("m", ""), parts.get("d", ""))


@cache
def _either() -> re.Pattern[str]:
    sections = (cues("publications", name).pattern for name in ("next_review", "edition"))
    return re.compile("|".join(sections), re.IGNORECASE)


# --- reading ----------------------------------------------------------------------------------------------------------

# Marks before the recipe of a file that may have to be read again although it is unchanged:
UNSETTLED = "again:"  # a copy of another file's document was left out, or a document was removed
UNFINISHED = "unread:"  # OCR failed on some of its pages
OUTDATED = "older:"  # another file has a newer version of a record; read again when a file goes or changes

RECIPE = 4  # increase when chunking, the encoder's text or a document's fields change: every file is then read again
DETECT_CHARACTERS = 4000  # of a document, to detect its language

Cut = tuple[Document, tuple[Passage, ...]]  # a document and its passages


class Descriptions:
    """The manifest's descriptions of files and records."""

    def __init__(self, manifest: Manifest, chunk: ChunkSettings, ocr: str = "") -> None:
        """``ocr`` names the engine that reads scanned pages, "" if none."""
        self.manifest, self.chunk, self._ocr = manifest, chunk, ocr
        self._name = manifest.collection.name
        self._recipes: dict[tuple[object, ...], str] = {}  # the nightly refresh needs every file's

    def unmet(self, sources: Iterable[Source]) -> list[str]:
        """The files that the manifest describes and ``sources`` lacks: often misspelt."""
        if not self.manifest.documents:
            return []
        known = {name for source in sources for name in (source.name, source.path.name)}
        return [name for name in self.manifest.documents if name not in known]

    def recipe(self, source: Source) -> str:
        """How the file is read: another recipe may make other passages of the same bytes."""
        try:
            reader = readers.name_of(source.path, self.manifest.reader, source.content)
        except InputError:
            reader = ""
        facts = self.manifest.facts(source)
        key = (reader, *sorted(facts.items()))
        if key not in self._recipes:
            version = readers.version_of(reader, self._ocr)
            self._recipes[key] = digest(str(RECIPE), reader, version, repr(self.chunk), self.manifest.recipe(facts))
        return self._recipes[key]

    def complete(self, record: SourceRecord, source: Source) -> SourceRecord:
        """``record`` with the manifest's facts about its file, a language and a title."""
        facts = self.manifest.facts(source)
        blocks = record.blocks[:LINES]
        first = [line.text for block in blocks for line in block.lines if block.kind != "row"]
        sample = " ".join(text_of(block.lines)[0] for block in record.blocks[:40])[:DETECT_CHARACTERS]
        stated = facts.get("language") or self.manifest.collection.language
        language, notes = _language(sample, stated, record.language)
        return replace(
            record,
            notes=(*record.notes, *notes),
            title=facts.get("title") or record.title or source.path.stem,
            language=language,
            edition=facts.get("edition") or record.edition or stated_edition(first),
            status=facts.get("status") or record.status,
            replaced_by=facts.get("replaced_by") or record.replaced_by,
        )

    def document(self, record: SourceRecord, source: Source, part: Part, content: str) -> Document:
        """The document of a completed ``record``, read from ``part`` of ``source``."""
        key = self._key(source, record.key)
        return Document(
            id=digest(self._name, key),
            collection=self._name,
            key=key,
            title=record.title,
            language=record.language,
            source=str(source.path),
            file_sha256=part.sha256,
            content=content,
            media_type=part.reader,
            edition=record.edition,
            status=Status(record.status) if record.status in STATED else Status.CURRENT,
            replaced_by=self._successor(record, source),
            url=record.url,
            identifiers=record.identifiers,
            publication_types=record.publication_types,
            mesh=record.mesh,
            relations=record.relations,
            pages=record.pages,
            notes=record.notes,
            governance=governance_of(self.manifest.facts(source)),
        )

    def _key(self, source: Source, record: str) -> str:
        """The key of a document: its file and the record in it, or the record alone if versions count."""
        if self.manifest.latest and record:
            return record
        return f"{source.path}#{record}" if record else str(source.path)

    def _successor(self, record: SourceRecord, source: Source) -> str:
        """The document id of the record, or of the file beside this one, that ``replaced_by`` names."""
        if not record.replaced_by:
            return ""
        key = self._key(source, record.replaced_by) if record.key else str(source.path.parent / record.replaced_by)
        return digest(self._name, key)


@dataclass(slots=True)
class Reading:
    """The result of reading a file, so far."""

    documents: list[Cut] = field(default_factory=list)
    notes: list[Message] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    moved: list[tuple[Document, str]] = field(default_factory=list)  # (document of a file that is gone, its new id)
    contents: dict[str, str] = field(default_factory=dict)  # content -> document id
    settled: bool = True  # False: a copy of another file's document was left out
    newer: Counter[str] = field(default_factory=Counter)  # path -> number of records that are newer there
    replaced: list[Document] = field(default_factory=list)  # older versions, stored from other files
    lost: int = 0  # pages on which OCR failed

    @property
    def mark(self) -> str:
        """The mark before the file's recipe."""
        if self.lost:
            return UNFINISHED
        return UNSETTLED if not self.settled else OUTDATED if self.newer else ""


@dataclass(frozen=True, slots=True)
class Taken:
    """A file that was read whole: its catalogue row, result, number of passages and bytes."""

    file: ImportedFile
    reading: Reading
    passages: int
    bytes: int


def strip_mark(recipe: str) -> str:
    """``recipe`` without a mark that has the file read again whatever its bytes."""
    return recipe.removeprefix(UNSETTLED).removeprefix(UNFINISHED)


@dataclass(frozen=True, slots=True)
class Context:
    """The manifest and stored documents against which a file is read."""

    descriptions: Descriptions
    twins: Twins
    versions: Versions | None
    near_copies: NearCopies

    @classmethod
    def of(
        cls,
        descriptions: Descriptions,
        catalogue: Catalogue,
        sources: Iterable[Source],
        missing_paths: Sequence[str],
        withdrawn: Iterable[Withdrawal],
    ) -> Self:
        """The context of an import that reads ``sources`` again; near-copies of ``withdrawn`` are held."""
        replaced = [str(source.path) for source in sources]
        versions = Versions(catalogue, (*replaced, *missing_paths)) if descriptions.manifest.latest else None
        return cls(descriptions, Twins(catalogue, replaced), versions, NearCopies(catalogue, withdrawn))

    def accept(self, reading: Reading, path: str) -> None:
        """Record that a file was taken."""
        self.twins.accept(reading.contents)
        if self.versions:
            self.versions.accept((document.id for document, _ in reading.documents), path)

    def refuse(self, collection: str, path: str) -> list[Document]:
        """Record that a file was refused; return its stored documents whose content another file has taken over."""
        if self.versions:
            self.versions.refuse(path)
        return self.twins.refuse(collection, path)


def read_content(content: Content, source: Source, context: Context) -> Reading:
    """The documents of ``source``; raise ``InputError`` if nothing of it can be read or one of its parts ends it."""
    reading = Reading()
    name = source.path.name
    for part, item in hooks.with_checks(content):
        if isinstance(item, Fault):
            reading.faults.append(item)
        elif isinstance(item, Message):
            reading.notes.append(item)
        else:
            _add(reading, item, source, part, context)
    reading.notes += [
        message("import.newer", count=count, name=Path(path).name) for path, count in reading.newer.items()
    ]
    if not reading.documents and not reading.mark:
        if reading.faults:
            first, others = reading.faults[0], len(reading.faults) - 1
            if others:
                raise InputError("import.all_refused_more", name=name, first=first.message, count=others)
            raise InputError("import.all_refused", name=name, first=first.message)
        raise InputError("import.no_document", name=name)
    return reading


def _add(reading: Reading, record: SourceRecord, source: Source, part: Part, context: Context) -> None:
    content = content_of(record)
    document = context.descriptions.document(context.descriptions.complete(record, source), source, part, content)
    if context.versions and (newer := context.versions.newer(document)):
        reading.newer[newer] += 1
        return
    here = reading.contents.get(content, "")
    twin = here or context.twins.find(document)
    if twin:
        reading.notes.append(message("import.same_content", what=_place(record), document=twin[:12]))
        reading.settled = reading.settled and bool(here)
        return
    place = named(record.key) if record.key else FILE
    cut = tuple(hooks.with_checks(passages(record, document, context.descriptions.chunk)))
    if not cut and not record.deleted:
        reading.faults.append(Fault(place, message("reader.has_no_text")))
        return
    if near := context.near_copies.find(document, (passage.text for passage in cut)):
        entry, likeness = near
        share, date = round(100 * likeness), entry.time[:10]
        why = message("import.near_withdrawn", share=share, title=entry.title, document=entry.document[:12], date=date)
        reading.faults.append(Fault(place, why))
        return
    reading.contents[content] = document.id
    reading.notes += [place_within(record.key, note) for note in document.notes]
    if context.versions and (older := context.versions.stored(document)):
        reading.replaced.append(older)
    for old in context.twins.moved(document):
        reading.moved.append((old, document.id))
        reading.notes.append(message("import.moved", what=_place(record), source=old.source))
    reading.documents.append((replace(document, passages=len(cut)), cut))
    reading.lost += record.lost


def _place(record: SourceRecord) -> Message:
    return named(record.key) if record.key else message("import.the_document")


def _has_code(part: Parameter, code: str) -> bool:
    return isinstance(part, Message) and (
        part.code == code or any(_has_code(value, code) for _, value in part.parameters)
    )


def _language(sample: str, stated: str, marked: str) -> tuple[str, tuple[Message, ...]]:
    """The language of a text, and notes on it: as stated, else as marked in the file, else as it reads.

    A text plainly in another language overrides the mark, which pages from a template often have wrong.
    """
    seen = values.language_of(sample)
    plainly = seen not in ("en", values.UNKNOWN)
    language = stated or (seen if plainly else marked) or seen
    notes: tuple[Message, ...] = ()
    if plainly and seen != language:
        notes += (message("import.language_unlike", said=language, seen=seen),)
    if language not in LANGUAGES:
        unknown = message("import.language_unknown")
        notes += (unknown if language == values.UNKNOWN else message("import.language_other", language=language),)
    return language, notes


def refusal(
    reading: Reading, before: ImportedFile | None, stored: Sequence[Document], sha256: str
) -> InputError | None:
    """Why ``reading`` may not replace the ``stored`` documents: OCR failed on pages that they may include.

    Which pages an earlier reading lost is unknown; the reading with more passages has more.
    """
    if not reading.lost or not stored or before is None:
        return None
    fewer = sum(len(cut) for _, cut in reading.documents) < sum(document.passages for document in stored)
    if before.recipe.startswith(UNFINISHED) and not (before.sha256 == sha256 and fewer):
        return None
    name, notes = Path(before.path).name, tuple(note for note in reading.notes if _has_code(note, "ocr.failed"))
    return InputError("import.ocr_failed", name=name, count=reading.lost, notes=notes)
