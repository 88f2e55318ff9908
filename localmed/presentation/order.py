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
    UnexplainedPart,
)
from localmed.library.terms import folded, singular
from localmed.messages import CLAUSES, joined
from localmed.presentation.finding import flagged
from localmed.presentation.neutral import one_line, words
from localmed.presentation.statements import definition_rows, statement_view
from localmed.presentation.views import AnswerView, PartView, Row
from localmed.text import medicines
from localmed.text.abbreviations import abbreviations, phrases
from localmed.text.language import detect
from localmed.text.negation import speaks_of_stopping

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
        if same not in told:
            rows.append(_expansion(replace(expansion, meanings=meanings), language))
        told.add(same)
    if (stop := _STOP.match(part.text)) and _is_a_medicine(part.text[stop.end() :]):
        rows.append(Row(stop["word"], words(message("explain.stop"), language)))
    elif part.stopped:
        rows.insert(0, Row("", words(message("explain.stopped"), language)))
    if rows and not (part.stopped or stop) and speaks_of_stopping(part.text):
        rows.insert(0, Row("", words(message("explain.stops_when"), language)))
    if part.disagrees:
        rows.insert(0, Row("", words(message("explain.disagrees"), language)))
    if part.medicines:
        rows.insert(0, Row("", words(message("explain.several_medicines", names=part.medicines), language)))
        if unread := tuple(name for name in reversed(known) if all(name != one.written for one in part.expansions)):
            rows.append(Row("", words(message("explain.unread", names=unread), language)))
    if not (part.disagrees or part.medicines):
        rows += [Row(one_line(written), meaning) for written, meaning in phrases(part.text, language)]
    doubtful = bool(part.medicines or part.disagrees)
    section = words(message("explain.lines"), language)
    return PartView(one_line(part.text), tuple(rows), section=section, warning=doubtful)


def _is_a_medicine(text: str) -> bool:
    """Whether ``text`` is one medicine's name and no more: "five days before the operation" would be another stop."""
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

    Terms without a definition in ``language`` are listed as unexplained.
    """
    of_term: dict[tuple[str, int], list[TermPart]] = {}
    lines = [replace(part, medicines=()) for part in answer.parts if isinstance(part, LinePart)]  # told to staff
    for part in answer.parts:
        if isinstance(part, TermPart):
            of_term.setdefault((part.term, part.start), []).append(part)
    chosen = [one for same in of_term.values() for one in [it for it in same if _is_in(it, language)][:1]]
    told = {expansion.written for line in lines for expansion in line.expansions} | {one.term for one in chosen}
    listed = (name for part in answer.parts if isinstance(part, UnexplainedPart) for name in part.terms)
    unexplained = tuple(dict.fromkeys(name for name in (*(name for name, _ in of_term), *listed) if name not in told))
    left = (UnexplainedPart(unexplained),) if unexplained else ()
    others = (
        replace(part, nearest=(), talk=False) if isinstance(part, QuestionPart) else part  # told to staff
        for part in answer.parts
        if not isinstance(part, LinePart | TermPart | UnexplainedPart)
    )
    return from_one(replace(answer, parts=(*lines, *chosen, *left, *others)))


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
    return all(detect(text) == language for text in texts if text)


def unexplained(part: UnexplainedPart, language: str) -> PartView:
    """The unexplained terms, in one line."""
    title = words(message("explain.unexplained"), language)
    return PartView(
        title,
        (Row("", one_line(joined(part.terms, language, CLAUSES))),),
        section=words(message("explain.terms"), language),
    )


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

    A term is explained in the reader's ``language``, else in the order's ``own``; another one is for its leaflet. A
    line beside which nothing or not everything is explained says so and whom to ask.
    """
    pairs = list(zip(parts, shown, strict=True))
    lines = [(part, view, list[PartView]()) for part, view in pairs if isinstance(part, LinePart)]
    rest: list[PartView] = []
    read = {(part.term, part.start) for part in parts if isinstance(part, TermPart) and _is_in(part, language)}
    for part, view in pairs:
        if isinstance(part, LinePart | UnexplainedPart):
            continue
        if isinstance(part, TermPart) and not _is_in(part, language if (part.term, part.start) in read else own):
            continue
        at = part.start if isinstance(part, TermPart) else -1
        beside = next((terms for whole, _, terms in lines if whole.start <= at < whole.end), rest)
        beside.append(view)
    listed = [name for part in parts if isinstance(part, UnexplainedPart) for name in part.terms]
    asking = [(view, _ask(part, bool(view.rows or terms), listed), terms) for part, view, terms in lines]
    alone = [name for name in listed if not any(_is_told(part, name) for part, _, _ in lines)]
    rest += [unexplained(UnexplainedPart(tuple(alone)), language)] if alone else []
    return [
        (replace(view, rows=(*view.rows, *(Row("", words(it, language)) for it in ask))), terms)
        for view, ask, terms in asking
    ], rest


def _ask(part: LinePart, is_begun: bool, listed: Sequence[str]) -> tuple[Message, ...]:
    """Whom to ask about a line, of which something ``is_begun``, for its short forms ``listed`` as not explained."""
    if not is_begun:
        return (message("explain.line_unexplained"),)
    left = tuple(name for name in listed if _is_told(part, name))
    return (message("explain.line_partly", names=left),) if left else ()


def _is_told(part: LinePart, name: str) -> bool:
    """Whether a line has ``name`` as words of its own, and tells what it leaves unexplained."""
    return not part.medicines and bool(re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", part.text))


def with_cited_sources(shown: AnswerView, lines: Lines, rest: Sequence[PartView]) -> AnswerView:
    """An order's page without sources of definitions that are only for the leaflet in another language."""
    parts = (*rest, *(term for _, terms in lines for term in terms))
    markers = {marker for part in parts for statement in part.statements for marker in statement.markers}
    kept = tuple(source for source in shown.sources if source.marker in markers)
    return replace(shown, sources=kept, sources_title=shown.sources_title if kept else "") if lines else shown


VIEWS: Mapping[type, Any] = {
    LinePart: line,
    TermPart: term,
    UnexplainedPart: unexplained,
    QuestionPart: question,
    ReadingLevelPart: reading_level,
}
