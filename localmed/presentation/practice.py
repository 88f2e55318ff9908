"""The parts of an evidence-based answer: PICO, what documents say where they name what the record names, sources."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from localmed.domain import Message, Statement, message
from localmed.domain.parts import (
    AllergyPart,
    InteractionPart,
    NotJudgedPart,
    PicoPart,
    RangePart,
    RecordPart,
    SourceLevelPart,
    TogetherPart,
)
from localmed.domain.patient import NameKind, RecordName
from localmed.presentation.neutral import neutral, one_line, words
from localmed.presentation.statements import statement_view
from localmed.presentation.views import PartView, Piece, Row, StatementView
from localmed.text import measures, medicines, synonyms
from localmed.text.language import aligned, fold
from localmed.text.publications import named

ELEMENTS = ("population", "intervention", "comparison", "outcome")


def pico(part: PicoPart, language: str) -> PartView:
    """The elements of the question."""
    rows = []
    for name in ELEMENTS:
        text = one_line(getattr(part, name)) or words(message("ebm.not_given"), language)
        rows.append(Row(words(Message(f"ebm.{name}"), language), text))
    return PartView(words(message("ebm.pico"), language), tuple(rows))


def record(part: RecordPart, language: str) -> PartView:
    """The record with its names, each with what to search for."""
    told = [message("ebm.red")] if any(one.kind is NameKind.ALLERGY for one in part.names) else []
    rows = tuple(Row("", words(it, language)) for it in told)
    pieces = tuple(_pieces(part, language))
    title = words(message("ebm.record", count=sum(bool(one.searched) for one in pieces)), language)
    return PartView(title, rows, folded=True, pieces=pieces)


def _pieces(part: RecordPart, language: str) -> Iterator[Piece]:
    end = 0
    for one in part.names:
        yield Piece(neutral(part.text[end : one.start]))
        searched = "" if one.start in part.absent else _searched(part, one, language)
        yield Piece(neutral(part.text[one.start : one.end]), searched, one.kind is NameKind.ALLERGY)
        end = one.end
    yield Piece(neutral(part.text[end:]))


def _searched(part: RecordPart, one: RecordName, language: str) -> str:
    """The name to search for, without a patient's value."""
    if one.kind is NameKind.CONDITION and "pregnancy" in one.keys:  # no patient's week
        return "妊娠" if language == "zh" else "pregnancy"
    if one.kind is not NameKind.VALUE:
        return _written(part, one)
    measure = measures.by_name(one.keys[0])
    return measure.chinese if language == "zh" else measure.name


def _written(part: RecordPart, one: RecordName) -> str:
    return one_line(part.text[one.start : one.end])


def allergy(part: AllergyPart, language: str) -> PartView:
    """The words of the record or the order, and below them what the sources say, or the medicines of the order."""
    code = "ebm.allergy" if part.statements else "explain.allergy"
    return _first(message(code, words=part.words, names=part.named), part.statements, language)


def interaction(part: InteractionPart, language: str) -> PartView:
    """The record's words, and what the concept graph says."""
    return _first(message("ebm.interaction", words=part.words, name=part.named, source=part.source), (), language)


def _first(told: Message, statements: Sequence[Statement], language: str, said: str = "") -> PartView:
    """A part that is to be seen before anything else, with what the record ``said``."""
    row = Row("", words(told, language), words(message("ebm.record_says", words=said), language) if said else "")
    return PartView(
        words(message("ebm.check_first"), language), (row,), _statements(statements, language), warning=True
    )


def together(part: TogetherPart, language: str) -> PartView:
    """A medicine of the record, and lines that name it with something else."""
    if part.is_warning:
        of_sections = (words(message("ebm.of_sections", name=name), language) for name in part.further)
        warning = message("ebm.pair", words=part.words, names=(*part.named, *of_sections))
        return _first(warning, part.statements, language, part.said)
    title, code = words(message("ebm.together" if part.is_own else "ebm.not_own"), language), "ebm.alone"
    told = [message("ebm.record_says", words=part.said)] if part.said and part.said != part.words else []
    told += [message("ebm.together_with", names=part.named)] if part.named else []
    told += [message("ebm.together_further", names=part.further)] if part.further else []
    told += [message(code)] if not (part.named or part.further or part.statements) else []
    row = Row("", one_line(part.words), " · ".join(words(it, language) for it in told))
    shared = (part.words, *part.named, *part.further)
    return PartView(title, (row,), _in_bold(part.statements, shared, language), paired=True)


def ranges(part: RangePart, language: str) -> PartView:
    """Values of the record, and lines that give a range."""
    if part.urgent:
        code = "ebm.urgent" if part.statements else "ebm.urgent_alone"
        return _first(message(code, words=part.words), part.statements, language)
    title = words(message("ebm.ranges"), language)
    row = Row("", " · ".join(map(one_line, part.words)))
    return PartView(title, (row,), _in_bold(part.statements, part.words, language), paired=True)


def not_judged(part: NotJudgedPart, language: str) -> PartView:
    """What nobody judged, a line each."""
    rows = tuple(Row("", words(matter, language)) for matter in part.matters)
    title = "ebm.no_all_clear" if part.first else "ebm.not_judged"
    return PartView(words(message(title), language), rows, folded=not part.first)


def source_level(part: SourceLevelPart, language: str) -> PartView:
    """A source by type, date and level."""
    level = message("ebm.of_five", level=part.level) if part.level else message("ebm.no_level")
    date = one_line(part.edition) or words(message("answer.no_date"), language)
    rows = (
        Row(words(message("ebm.type"), language), named(part.design, language)),
        Row(words(message("ebm.date"), language), date),
        Row(words(message("ebm.level"), language), words(level, language)),
    )
    markers = "".join(f"[{marker}]" for marker in part.markers)
    return PartView(words(message("ebm.source", markers=markers, title=part.title), language), rows, after=True)


def _in_bold(statements: Sequence[Statement], named: Sequence[str], language: str) -> tuple[StatementView, ...]:
    """The sentences with what they share with ``named`` in bold."""
    views = _statements(statements, language)
    return tuple(replace(view, runs=tuple(_runs(view.text, " ; ".join(named)))) for view in views)


def _runs(text: str, named: str) -> Iterator[tuple[str, bool]]:
    folded, end = fold(aligned(text)), 0
    for start, stop in sorted(_shared(folded, fold(aligned(named)))):
        if start >= end:
            yield text[end:start], False
            yield text[start:stop], True
            end = stop
    yield text[end:], False


def _shared(text: str, named: str) -> Iterator[tuple[int, int]]:
    """The places of medicines, measures and conditions in folded ``text`` that ``named`` has too."""
    known = {name for one in medicines.mentions(named) for name in (*one.ingredients, *one.classes)}
    for one in medicines.mentions(text):
        if known & {*(one.ingredients or one.classes)}:
            yield one.start, one.end
    for measure in measures.mentioned(named):
        yield from (match.span() for match in re.finditer(measure.pattern, text))
    names = {name for it in synonyms.named(named) for name in it.names}
    yield from ((it.start, it.end) for it in synonyms.named(text) if names & {*it.names})


def _statements(statements: Sequence[Statement], language: str) -> tuple[StatementView, ...]:
    return tuple(statement_view(statement, language) for statement in statements)


VIEWS: Mapping[type, Any] = {
    PicoPart: pico,
    RecordPart: record,
    AllergyPart: allergy,
    InteractionPart: interaction,
    TogetherPart: together,
    RangePart: ranges,
    NotJudgedPart: not_judged,
    SourceLevelPart: source_level,
}
