"""The sections on a question as a reader sees them: how the question was read, and each section with its marks.

Documents without pages are here too, as text in parts of about a printed page.

A section longer than ``OPEN`` characters is open around its marks; the rest is folded, never left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter

from localmed.domain import (
    Answer,
    Evidence,
    Governance,
    Message,
    Passage,
    Receipts,
    ShownLine,
    ShownSection,
    message,
    number_to_call,
)
from localmed.domain.findings import Closeness, Question, Reading
from localmed.messages import LANGUAGES, joined
from localmed.presentation.neutral import one_line, words
from localmed.presentation.sources import edition, pages, responsible, warnings
from localmed.presentation.tables import grids
from localmed.text import medicines
from localmed.text.furniture import spans
from localmed.text.language import fold
from localmed.text.measures import KIDNEYS, by_name, by_other_kidney_value, limit_near, measured, range_of
from localmed.text.publications import level

WITHIN = {"en": " › "}  # of a heading and the one below it
_SUMMARY = re.compile(r"\b(?:summary|review|overview|meta-analysis)\b|综述|摘要|小结|荟萃|系统评价", re.IGNORECASE)
OPEN = 1_200  # characters of a section that stand open
PICTURES = 2  # pages of torn tables shown in one section
NOT_SEARCHED = "workflow.not_searched"  # the note that a stopped collection may hold what is absent
LEFT_OUT = " … "
WHOLE = 3  # sections that are shown with their text; of later ones that are not short, the marked sentences
SHORT = 700  # characters of a short section: half a treatment is no excerpt


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence or a ``table``'s row; ``breaks``: it begins a line."""

    text: str
    marked: bool
    breaks: bool
    table: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of a table's row, each with the number of columns that it covers."""

    cells: tuple[tuple[str, int], ...]
    marked: bool


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph of ``pieces``, or a table of ``rows`` with or without names of ``columns``."""

    pieces: tuple[Piece, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[Row, ...] = ()


def blocks(pieces: Sequence[Piece]) -> Iterator[Block]:
    """Group ``pieces`` into paragraphs and tables."""
    for is_table, run in groupby(pieces, key=lambda piece: piece.table):
        together = list(run)
        yield from _tables(together) if is_table else _paragraphs(together)


def _paragraphs(pieces: Sequence[Piece]) -> Iterator[Block]:
    paragraph: list[Piece] = []
    for piece in pieces:
        if piece.breaks and paragraph:
            yield Block(tuple(paragraph))
            paragraph = []
        paragraph.append(piece)
    yield Block(tuple(paragraph))


def _tables(pieces: Sequence[Piece]) -> Iterator[Block]:
    marks = iter([piece.marked for piece in pieces])  # a grid has a row or a line for each
    for grid in grids([piece.text for piece in pieces]):
        for line in grid.lines:
            yield Block((Piece(line, next(marks), breaks=True),))
        if grid.rows:
            yield Block(columns=grid.columns, rows=tuple(Row(cells, next(marks)) for cells in grid.rows))


@dataclass(frozen=True, slots=True)
class Picture:
    """A page that is shown in place of a doubtful table: of ``passage_id``, the source ``marker``."""

    marker: str
    passage_id: str
    end: int


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring ``pieces`` of a section, open or folded."""

    open: bool
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class SectionView:
    """A section: its document's title, its ``place`` in it, details and warnings about the document, its text.

    ``runs`` are its text in order. The link opens ``start:end`` of the passage ``passage_id``, the source ``marker``,
    in ``document`` of ``collection``. ``whole``: its text is shown, not only a sentence. ``pictures`` replace doubtful
    tables. ``pages`` are those of its marks, or of its first line if it has none. ``lacks`` says what of the question
    it does not name. ``aside``: nothing of it is marked, and it is none of the first, nor of their documents.
    """

    title: str
    place: str
    details: tuple[str, ...]
    warnings: tuple[str, ...]
    language: str
    marker: str
    passage_id: str
    document: str
    collection: str
    start: int
    end: int
    runs: tuple[Run, ...]
    cut: str
    whole: bool
    pictures: tuple[Picture, ...] = ()
    pages: tuple[int, ...] = ()
    lacks: str = ""
    aside: bool = False

    @property
    def marked(self) -> bool:
        """Whether anything is marked."""
        return any(piece.marked for piece in self.pieces)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All of its text."""
        return tuple(piece for run in self.runs for piece in run.pieces)

    @property
    def folded(self) -> bool:
        """Whether anything of its text is folded."""
        return not all(run.open for run in self.runs)

    @property
    def excerpt(self) -> str:
        """Its marked sentences with "…" for what is left out between and after them; "" if none is marked."""
        pieces = self.pieces
        chosen = [place for place, piece in enumerate(pieces) if piece.marked]
        gaps = [" " if after == place + 1 else LEFT_OUT for place, after in pairwise((*chosen, len(pieces)))]
        return "".join(pieces[place].text + gap for place, gap in zip(chosen, gaps, strict=True)).rstrip()


@dataclass(frozen=True, slots=True)
class ReadingView:
    """A reading in words. ``written`` identifies it when it is left out."""

    written: str
    text: str
    left_out: bool


@dataclass(frozen=True, slots=True)
class FindingView:
    """How the question was read, its sections, and those in other languages; ``note`` says what did not take part.

    ``read_as`` lists in sentences what else was searched for and what was left out.
    """

    readings: tuple[ReadingView, ...]
    read_as: tuple[str, ...]
    sections: tuple[SectionView, ...]
    others: tuple[SectionView, ...]
    others_title: str
    note: str
    follows: str = ""  # on which questions before it
    closeness: str = ""  # that nothing is near, in a sentence
    flagged: str = ""  # which warning signs of an emergency the question names, in a sentence
    far: bool = False  # nothing is near, or what the question names is lacking: sections are shown by their titles
    others_above: bool = False  # the first section is not close: the other language is offered above it
    others_open: bool = False  # and shown at once
    absent: tuple[str, ...] = ()  # in sentences: what it names and no document or section that was found does


def with_owners(view: FindingView, governed: Mapping[str, Governance], language: str) -> FindingView:
    """``view`` with who answers for each section's document, and when it is reviewed, as ``governed`` now."""

    def owned(section: SectionView) -> SectionView:
        known = responsible(governed.get(section.document, Governance()), section.warnings, language)
        return replace(section, details=(*section.details, *known))

    return replace(view, sections=tuple(map(owned, view.sections)), others=tuple(map(owned, view.others)))


def split_by_language(answer: Answer) -> tuple[Sequence[ShownSection], Sequence[ShownSection]]:
    """The sections of ``answer`` in its language, and those in others, which may be all where nothing is near."""
    found = answer.receipts or Receipts()
    if answer.found_nothing and not found.others:
        known = answer.by_marker
        own = [one for one in found.sections if known[one.best].passage.language == answer.language]
        return (own, found.sections[:WHOLE]) if not own else (found.sections, ())
    return found.sections, found.others


def view(answer: Answer, language: str) -> FindingView | None:
    """The sections of ``answer`` for a reader of ``language``; None where no sections were searched for."""
    found = answer.receipts
    if found is None:
        return None
    known, day = answer.by_marker, answer.provenance.day
    own, others = split_by_language(answer)
    marked = any(section.marks for section in own)
    lacked_own = () if found.absent else _lacked(own)
    lacked_by_all = tuple(name for name in lacked_own if all(name in one.lacks for one in others))
    others_first = found.others_first or len(lacked_by_all) < len(lacked_own)  # only the other language names it
    lacked = () if marked else lacked_by_all
    asked = Question(answer.question, found.readings)
    holds = _holds_a_value(asked.with_units, own, known)  # what is to be done at this value is no far section
    apart = () if lacked_own or found.absent else _apart((*own, *others), answer.question)
    on_medicine = _names_its_medicine(asked.as_read, own)  # "adrenaline for a bee sting": shown, and said
    lacking = not holds and bool((lacked and not on_medicine) or (found.absent and not marked))
    nothing = not holds and found.closeness is Closeness.NOTHING_NEAR
    far = nothing or lacking
    beside = {known[section.best].passage.language for section in others} & {*LANGUAGES}
    others_open = others_first or (far and any(one.marks for one in others))
    whole, elsewhere = 0 if far or others_first else WHOLE, WHOLE if others_open else 0
    title = "finding.only" if far or not own else "finding.first" if others_first else "finding.also"
    titles = (words(message(title, language=Message(f"source.language.{one}")), language) for one in beside)
    by_words = bool(found.sections) and not found.dense
    follows = next((one_line(one.means) for one in found.readings if not one.written), "")
    readings = tuple(
        ReadingView(one.written, words(_reading(one), language), one.left_out) for one in found.readings if one.written
    )
    absent = () if NOT_SEARCHED in {note.code for note in answer.notes} else found.absent
    return FindingView(
        readings,
        tuple(_read_as(readings, language)),
        tuple(_sections(own, known, day, language, whole, asked, others_first)),
        tuple(_sections(others, known, day, language, elsewhere, asked)),
        joined(sorted(titles), language),
        words(message("search.words_only"), language) if by_words else "",
        words(message("finding.following", question=follows), language) if follows else "",
        words(_nothing_near(answer.language if others else ""), language) if nothing and found.sections else "",
        words(flagged(found.flags, answer.provenance.emergency_number), language) if found.flags else "",
        far,
        lacking
        or others_first
        or bool(own and own[0].lacks)
        or found.closeness in (Closeness.SOME_WAY, Closeness.NOTHING_NEAR),
        others_first or (far and not nothing and others_open),
        (
            *(words(message("finding.absent", name=one_line(one)), language) for one in absent),
            *([words(message("finding.lacked", names=lacked), language)] if lacked else ()),
            *([words(message("finding.not_together", names=apart), language)] if apart else ()),
        ),
    )


def flagged(flags: Sequence[str], number: str) -> Message:
    """The warning of an emergency that a question names by ``flags``, and whom to call: the site's ``number``."""
    signs = tuple(Message(f"departments.flag.{one}") for one in flags)
    return message("finding.flagged", signs=signs, number=number_to_call(number))


def _is_short(section: ShownSection) -> bool:
    return sum(line.end - line.start for line in section.lines) <= SHORT


def _holds_a_value(question: str, sections: Sequence[ShownSection], known: Mapping[str, Evidence]) -> bool:
    """Whether a sentence of ``sections`` gives a range that a value of the question is in."""
    lines = [(known[line.marker].passage, line) for section in sections for line in section.lines]
    holds = range_of(question)
    return holds is not None and any(holds(passage.text[line.start : line.end]) for passage, line in lines)


def _beside_the_range(
    question: Question, section: ShownSection, known: Mapping[str, Evidence], language: str
) -> Iterator[Message]:
    """That a marked line goes by the other of two kidney values than the question, or its range is not yet reached."""
    texts = [known[line.marker].passage.text[line.start : line.end] for line in section.marks]
    kidneys = {one.name for one in measured(question.typed) if one.name in KIDNEYS}
    others = (by_other_kidney_value(text, *kidneys) for text in texts if len(kidneys) == 1)
    if other := next(filter(None, others), None):
        pair = (other, by_name(*kidneys))
        name, asked = (one.chinese if language == "zh" else one.name for one in pair)
        yield message("finding.other_kidney_value", name=name, asked=asked)
    for one in question.beyond:
        if one.high is not None and any(map(limit_near(one.means, one.high), texts)):
            yield message("finding.limit_near", value=one_line(one.written))


def _lacked(sections: Sequence[ShownSection]) -> tuple[str, ...]:
    """What the question names and none of ``sections`` does."""
    each = [one.lacks for one in sections]
    return tuple(one_line(name) for name in each[0] if all(name in others for others in each)) if each else ()


def _names_its_medicine(question: str, sections: Sequence[ShownSection]) -> bool:
    """Whether the first of ``sections`` names a medicine of the ``question``, or its class."""
    named = [one.written for one in medicines.mentions(question) if one.is_medicine or any(_members(one))]
    return any(name not in map(fold, section.lacks) for section in sections[:1] for name in named)


def _members(one: medicines.Mention) -> list[str]:
    """The medicines of a class; "antibiotics" has none of its own."""
    return [name for of in one.classes for name in medicines.members(of) if name != of]


def _apart(sections: Sequence[ShownSection], question: str) -> tuple[str, ...]:
    """What the ``question`` names, in its order, if only different ones of ``sections`` name it and none all of it."""
    each = [one.lacks for one in sections]
    names = {name for one in each for name in one} if all(each) else set[str]()
    return tuple(map(one_line, sorted(names, key=lambda name: (question.find(name), name))))


def _reading(one: Reading) -> Message:
    return message("finding.reading", written=one_line(one.written), means=one_line(one.means))


def _nothing_near(searched: str) -> Message:
    """That nothing is near, in the language ``searched`` if other languages were searched too."""
    if searched in LANGUAGES:
        return message("finding.nothing_in", language=Message(f"source.language.{searched}"))
    return message("finding.nothing_near")


def _read_as(readings: Sequence[ReadingView], language: str) -> Iterator[str]:
    for code, left_out in (("finding.read_as", False), ("finding.left_out", True)):
        if texts := tuple(one.text for one in readings if one.left_out is left_out):
            yield words(message(code, readings=texts), language)


def _sections(
    sections: Sequence[ShownSection], known: dict[str, Evidence], day: str, language: str, first: int,
    question: Question, others_first: bool = False,
) -> Iterator[SectionView]:  # fmt: skip
    """The ``first`` sections whole; then short ones, as many or of the same documents; then what the marks say.

    ``others_first``: those of another language stand above them.
    """
    documents = {known[section.best].passage.document_id for section in sections[:first]}
    asked = {name for one in medicines.mentions(question.typed) for name in one.ingredients or _members(one)}
    for place, section in enumerate(sections):
        of_first = known[section.best].passage.document_id in documents
        aside = not section.marks and first <= place and not of_first and (first > 0 or others_first)
        short = _is_short(section) and (place < 2 * first or of_first)
        other = tuple(_beside_the_range(question, section, known, language))
        whole = place < first or (short and not aside)
        yield _section(section, known, day, language, whole, aside, other, asked)


def _section(
    section: ShownSection, known: dict[str, Evidence], day: str, language: str, whole: bool, aside: bool,
    remarks: tuple[Message, ...], asked: Set[str],
) -> SectionView:  # fmt: skip
    piece, (marker, start, end) = known[section.best], section.link
    passages = [known[marker].passage for marker in section.markers]
    numbers = {page for one in passages for page in one.pages}
    details: list[Message] = [edition(piece), *(pages(numbers) if numbers else ())]
    least = min((one.ocr for one in passages if one.ocr is not None), default=None)
    if least is not None:
        details.append(message("answer.ocr", confidence=least))
    if section.study and not section.population and not _is_summary(piece):
        details.append(message("finding.no_population"))
    headings = [one for one in piece.passage.headings if one != piece.passage.title]
    rows = [known[line.marker].passage.table and not line.marked for line in section.lines]
    pieces = tuple(_pieces(section.lines, known))
    first = next((place for place, it in enumerate(pieces) if asked & medicines.ingredients(it.text)), 0)
    lines = zip(_open(section.lines, rows, first), pieces, strict=True)
    runs = tuple(Run(is_open, tuple(piece for _, piece in run)) for is_open, run in groupby(lines, key=itemgetter(0)))
    held = section.marks or section.lines[:1]
    return SectionView(
        one_line(piece.document_title),
        joined(map(one_line, headings), language, WITHIN),
        tuple(words(one, language) for one in details),
        tuple(
            words(one, language)
            for one in (
                *remarks,
                *_population(section, known),
                *warnings(piece, day, [known[marker] for marker in section.markers]),
            )
        ),
        piece.passage.language if piece.passage.language in LANGUAGES else "",
        marker,
        known[marker].passage.id,
        piece.passage.document_id,
        piece.passage.collection,
        start,
        end,
        runs,
        words(message("finding.cut"), language) if section.cut else "",
        whole,
        tuple(Picture(one.marker, one.passage.id, len(one.passage.text)) for one in _doubtful(section, known)),
        tuple(sorted({page for it in held for page in known[it.marker].passage.pages_of(it.start, it.end)})),
        words(message("finding.lacks", names=tuple(map(one_line, section.lacks))), language) if section.lacks else "",
        aside,
    )


def _doubtful(section: ShownSection, known: dict[str, Evidence]) -> list[Evidence]:
    """The doubtful tables of ``section`` that have a page, the first of each page."""
    pieces = [known[marker] for marker in section.markers]
    of_page = {piece.passage.page: piece for piece in reversed(pieces) if piece.passage.doubtful and piece.passage.page}
    return [of_page[page] for page in sorted(of_page)][:PICTURES]


def _is_summary(piece: Evidence) -> bool:
    """Whether a document of the literature is a summary of studies, by its type or title."""
    return level(piece)[1] in (1, 5) or bool(_SUMMARY.search(piece.document_title))


def _population(section: ShownSection, known: dict[str, Evidence]) -> tuple[Message, ...]:
    """The population of a study, quoted."""
    said = (known[one.marker].passage.text[one.start : one.end] for one in section.population)
    text = " ".join(map(one_line, said))
    return (message("finding.population", words=text),) if text else ()


def _open(lines: Sequence[ShownLine], rows: Sequence[bool], first: int) -> list[bool]:
    """Whether each of ``lines`` is open: those within ``OPEN`` characters around the marks, else around the ``first``.

    Unmarked ``rows`` of a table are not: of a long table, such as a formulary, only what was asked for is open.
    """
    lengths = [line.end - line.start for line in lines]
    if sum(lengths) <= OPEN:
        return [True] * len(lines)
    marked = [place for place, line in enumerate(lines) if line.marked] or [first]
    first, last = marked[0], marked[-1]
    length, grows = sum(lengths[first : last + 1]), True
    while grows:
        grows = False
        for place in (first - 1, last + 1):
            if 0 <= place < len(lines) and not rows[place] and length + lengths[place] <= OPEN:
                length, grows = length + lengths[place], True
                first, last = min(first, place), max(last, place)
    return [first <= place <= last and not (row and place != first) for place, row in enumerate(rows)]


def _pieces(lines: Sequence[ShownLine], known: dict[str, Evidence]) -> Iterator[Piece]:
    for line in lines:
        passage = known[line.marker].passage
        yield Piece(one_line(passage.text[line.start : line.end]), line.marked, line.breaks, passage.table)


# --- a document without pages, in parts of about a printed page -------------------------------------------------------


PART = 3_000  # characters of a part: about a printed page

Mark = tuple[Passage, int, int]  # characters of a passage


@dataclass(frozen=True, slots=True)
class HeadedText:
    """The sentences and rows of ``passages`` under ``headings``."""

    headings: str
    pieces: tuple[Piece, ...]
    passages: tuple[str, ...] = ()


def parts(document: Sequence[Passage]) -> list[tuple[Passage, ...]]:
    """Split ``document`` into parts of at most ``PART`` characters, or of one longer passage."""
    found: list[list[Passage]] = []
    room = 0
    for passage in document:
        room -= len(passage.text)
        if room < 0 or not found:
            found.append([])
            room = PART - len(passage.text)
        found[-1].append(passage)
    return [tuple(part) for part in found]


def under_headings(part: Sequence[Passage], marks: Sequence[Mark], language: str) -> tuple[HeadedText, ...]:
    """``part`` as it is shown, with ``marks``."""
    found = []
    for headings, run in groupby(part, key=lambda one: [name for name in one.headings if name != one.title]):
        passages = tuple(run)
        pieces = tuple(piece for passage in passages for piece in _text_pieces(passage, marks))
        ids = tuple(passage.id for passage in passages)
        found.append(HeadedText(joined(map(one_line, headings), language, WITHIN), pieces, ids))
    return tuple(found)


def _text_pieces(passage: Passage, marks: Sequence[Mark]) -> Iterator[Piece]:
    text, last = passage.text, 0
    own = [(start, end) for one, start, end in marks if one.id == passage.id]
    for start, end in spans(passage):
        marked = any(start < last_one and first < end for first, last_one in own)
        breaks = last == 0 or "\n" in text[last:start]
        yield Piece(one_line(text[start:end]), marked, breaks, passage.table)
        last = end


# --- as JSON ----------------------------------------------------------------------------------------------------------


def reading(one: Reading) -> dict[str, str]:
    """A reading as JSON."""
    return {"written": one.written, "means": one.means}


def section_value(section: ShownSection, known: dict[str, Evidence]) -> dict[str, object]:
    """A section as JSON: its document and place, its text, its marks as spans of its passages."""
    best = known[section.best]
    marks = [
        {
            "marker": it.marker,
            "passage": known[it.marker].passage.id,
            "start": it.start,
            "end": it.end,
            "text": known[it.marker].passage.text[it.start : it.end],
        }
        for it in section.marks
    ]
    passages = [known[marker].passage for marker in section.markers]
    return {
        "passage": best.passage.id,
        "document": best.passage.document_id,
        "collection": best.passage.collection,
        "title": best.document_title,
        "headings": [one for one in best.passage.headings if one != best.passage.title],
        "edition": best.edition,
        "status": best.status.value,
        "overdue": best.overdue,
        "language": best.passage.language,
        "pages": sorted({page for one in passages for page in one.pages}),
        "passages": [passage.id for passage in passages],
        "text": "\n".join(passage.text for passage in passages),
        "marks": marks,
        "study": section.study,
        "population": [known[it.marker].passage.text[it.start : it.end] for it in section.population],
        "cut": section.cut,
        "lacks": list(section.lacks),
        "score": section.score,
    }


def finding_value(answer: Answer) -> dict[str, object]:
    """How the question of ``answer`` was read, and its sections, as JSON."""
    found = answer.receipts or Receipts()
    known, (own, others) = answer.by_marker, split_by_language(answer)
    return {
        "status": answer.status.value,
        "notes": [words(note, answer.language) for note in answer.notes],
        "language": answer.language,
        "dense": found.dense,
        "closeness": found.closeness.value,
        "flags": list(found.flags),
        "absent": list(found.absent),
        "read_as": [reading(one) for one in found.readings if not one.left_out],
        "left_out": [reading(one) for one in found.readings if one.left_out],
        "sections": [section_value(section, known) for section in own],
        "others": [section_value(section, known) for section in others],
        "others_first": (answer.found_nothing or found.others_first) and bool(others),
    }
