"""The parts of an explained order: its lines as written, its terms, the questions, the reading level."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from localmed.domain import Answer, Message, Part, message
from localmed.domain.answers import from_one
from localmed.domain.parts import (
    Expansion,
    LinePart,
    QuestionPart,
    ReadingLevelPart,
    Restated,
    TermPart,
)
from localmed.library.terms import folded, singular
from localmed.presentation.finding import flagged
from localmed.presentation.neutral import one_line, words
from localmed.presentation.statements import definition_rows, statement_view
from localmed.presentation.views import AnswerView, PartView, Row
from localmed.text import medicines
from localmed.text.abbreviations import abbreviations, phrases, unexplained
from localmed.text.language import detect, fold
from localmed.text.negation import denies, speaks_of_stopping

_STOP = re.compile(r"\s*(?:\d{1,2}[.)、]\s*)?(?P<word>stop|停用|停)\s*[:：]?\s*", re.IGNORECASE)


def line(part: LinePart, language: str) -> PartView:
    """The line as it is written, a model's restatement if any, and the meanings of its abbreviations.

    The meanings are in the reader's language, for patients who do not read the order's.
    """
    known = {one.written: one.meanings for one in reversed(abbreviations(part.text, language))}  # the first counts
    rows = [Row(words(message("explain.plain"), language), one_line(part.plain))] if part.plain else []
    rows += [Row("", words(message("explain.rejected"), language))] if part.restated is Restated.REJECTED else []
    told: set[tuple[str, ...]] = set()
    for expansion in part.expansions:
        meanings = known.get(expansion.written, expansion.meanings)
        if expansion.chosen is not None:
            meanings = meanings[expansion.chosen : expansion.chosen + 1] or meanings
        same = tuple(singular(text) for text in (folded(expansion.written), *meanings))  # "tabs ... 1 tab"
        if same not in told and (expansion.written not in part.terms or len(meanings) > 1):  # a term says more
            rows.append(_expansion(replace(expansion, meanings=meanings), language))
        told.add(same)
    if (stop := _STOP.match(part.text)) and _is_a_medicine(part.text[stop.end() :]):
        rows.append(Row(stop["word"], words(message("explain.stop"), language)))
    elif part.stopped:
        rows.insert(0, Row("", words(message("explain.stopped"), language)))
    if part.disagrees:
        rows.insert(0, Row("", words(message("explain.disagrees"), language)))
    if part.medicines:
        rows.insert(0, Row("", words(message("explain.several_medicines", names=part.medicines), language)))
        if unread := tuple(name for name in reversed(known) if all(name != one.written for one in part.expansions)):
            rows.append(Row("", words(message("explain.unread", names=unread), language)))
    if not (part.disagrees or part.medicines):
        rows += [Row(one_line(written), meaning) for written, meaning in phrases(part.text, language)]
    if not (part.plain or stop or part.disagrees or part.medicines):
        rows += _asking(part, bool(rows), language)
    doubtful = bool(part.medicines or part.disagrees)
    section = words(message("explain.lines"), language)
    return PartView(one_line(part.text), tuple(rows), section=section, warning=doubtful)


def _asking(part: LinePart, is_begun: bool, language: str) -> list[Row]:
    """Whom to ask about what a line says besides; about all of it unless something ``is_begun``."""
    known = (*(one.written for one in part.expansions), *part.terms)
    if not (left := unexplained(part.text, known, language)):
        return []
    whole = not is_begun and not part.terms
    stops = any(speaks_of_stopping(piece) and not denies(fold(piece)) for piece in left) and not part.stopped
    stopping = [Row("", words(message("explain.stops_when"), language))] if stops and not whole else []
    asking = message("explain.line_unexplained") if whole else message("explain.line_partly", names=left)
    return [*stopping, Row("", words(asking, language))]


def _is_a_medicine(text: str) -> bool:
    """Whether ``text`` is one medicine's name, perhaps with a reason in brackets, and no more: "five days before the
    operation" would be another stop.
    """
    text = re.sub(r"\s*[(（][^()（）]*[)）]", "", text)
    named = medicines.mentions(text)
    return len(named) == 1 and named[0].start == 0 and not text[named[0].end :].strip(" .。!！")


def _expansion(expansion: Expansion, language: str) -> Row:
    alternatives = _alternatives(expansion)
    ambiguous = len(expansion.meanings) > 1
    shown = message("explain.may_mean", meanings=alternatives) if ambiguous else alternatives
    return Row(one_line(expansion.written), words(shown, language))


def _alternatives(expansion: Expansion) -> Message:
    """The meanings as "this, or that, or that"."""
    *others, last = expansion.meanings
    alternatives = message("literal", text=last)
    for meaning in reversed(others):
        alternatives = message("explain.either", one=meaning, other=alternatives)
    return alternatives


def term(part: TermPart, language: str) -> PartView:
    """A term with its other names and its definition."""
    told = [message("explain.also", names=part.also)] if part.also else []
    rows = tuple(Row("", words(line, language)) for line in told)
    statements = tuple(statement_view(statement, language) for statement in part.statements)
    return PartView(
        one_line(part.term),
        (*rows, *definition_rows(part.definition, language)),
        statements,
        section=words(message("explain.terms"), language),
    )


def in_language(answer: Answer, language: str) -> Answer:
    """``answer`` for a leaflet in ``language``, with its sources numbered from one.

    Terms without a definition in ``language`` are named as unexplained beside their lines.
    """
    of_term: dict[tuple[str, int], list[TermPart]] = {}
    for part in answer.parts:
        if isinstance(part, TermPart):
            of_term.setdefault((part.term, part.start), []).append(part)
    chosen = [one for same in of_term.values() for one in [it for it in same if _is_in(it, language)][:1]]
    told = {one.term for one in chosen}
    lines = [
        replace(part, medicines=(), terms=tuple(name for name in part.terms if name in told))  # told to staff
        for part in answer.parts
        if isinstance(part, LinePart)
    ]
    others = (
        replace(part, nearest=(), talk=False) if isinstance(part, QuestionPart) else part  # told to staff
        for part in answer.parts
        if not isinstance(part, LinePart | TermPart)
    )
    return from_one(replace(answer, parts=(*lines, *chosen, *others)))


def in_other_words(answer: Answer, language: str) -> tuple[str, ...]:
    """The terms, questions and restated lines that remain in another language in the leaflet in ``language``."""
    titles = {TermPart: "term", QuestionPart: "question", LinePart: "text"}
    return tuple(
        getattr(part, titles[type(part)])
        for part in in_language(answer, language).parts
        if type(part) in titles and not _is_in(part, language)
    )


def _is_in(part: Part, language: str) -> bool:
    """Whether every text beside the order's own words is in ``language``."""
    texts = [one.text for one in part.statements]
    texts += [part.plain] if isinstance(part, LinePart) else []
    texts += [part.definition.text] if isinstance(part, TermPart) and part.definition else []
    texts += [part.question, part.reply] if isinstance(part, QuestionPart) else []
    return all(detect(text) == language for text in texts if text)


def question(part: QuestionPart, language: str) -> PartView:
    """A question with its answer, or that there is none."""
    label = words(message("explain.searched_as"), language)
    rows = [Row(label, one_line(part.searched_as))] if part.searched_as else []
    if part.talk:
        rows.insert(0, Row("", words(message("explain.talk"), language)))
    if part.signs:
        rows.insert(0, Row("", words(flagged(part.signs, part.emergency_number), language)))
    without = message("explain.left_out") if part.left_out else message("explain.no_answer")
    rows += [] if part.statements or part.reply else [Row("", words(without, language))]
    if part.nearest and not part.statements:
        rows.append(Row("", words(message("explain.nearest", names=tuple(map(one_line, part.nearest))), language)))
    rows += [Row(words(message("explain.reply"), language), one_line(part.reply))] if part.reply else []
    rows += [Row(words(message("explain.section"), language), one_line(name)) for name in part.printed]
    statements = tuple(statement_view(statement, language) for statement in part.statements)
    return PartView(
        one_line(part.question), tuple(rows), statements, section=words(message("explain.questions"), language)
    )


def reading_level(part: ReadingLevelPart, language: str) -> PartView:
    """How hard the explanations are to read."""
    title = words(message("explain.reading_level"), language)
    level = message(f"explain.{part.scale.value}", value=part.value, count=part.sentences)
    return PartView(title, (Row("", words(level, language)),))


Lines = list[tuple[PartView, list[PartView]]]  # each line of an order, with what explains words of it


def terms_by_line(
    parts: Sequence[Part], shown: Sequence[PartView], language: str, own: str = ""
) -> tuple[Lines, list[PartView]]:
    """The lines, each with the terms that stand in it first; and the parts that belong to no line.

    A term is explained in the reader's ``language``, else in the order's ``own``; another one is for its leaflet.
    """
    pairs = list(zip(parts, shown, strict=True))
    lines = [(part, view, list[PartView]()) for part, view in pairs if isinstance(part, LinePart)]
    rest: list[PartView] = []
    read = {(part.term, part.start) for part in parts if isinstance(part, TermPart) and _is_in(part, language)}
    for part, view in pairs:
        if isinstance(part, LinePart):
            continue
        if isinstance(part, TermPart) and not _is_in(part, language if (part.term, part.start) in read else own):
            continue
        at = part.start if isinstance(part, TermPart) else -1
        beside = next((terms for whole, _, terms in lines if whole.start <= at < whole.end), rest)
        beside.append(view)
    return [(view, terms) for _, view, terms in lines], rest


def with_cited_sources(shown: AnswerView, lines: Lines, rest: Sequence[PartView]) -> AnswerView:
    """An order's page without sources of definitions that are only for the leaflet in another language."""
    parts = (*rest, *(term for _, terms in lines for term in terms))
    markers = {marker for part in parts for statement in part.statements for marker in statement.markers}
    kept = tuple(source for source in shown.sources if source.marker in markers)
    return replace(shown, sources=kept, sources_title=shown.sources_title if kept else "") if lines else shown


VIEWS: Mapping[type, Any] = {
    LinePart: line,
    TermPart: term,
    QuestionPart: question,
    ReadingLevelPart: reading_level,
}
