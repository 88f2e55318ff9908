"""Checking what a model wrote, sentence by sentence: what it cites must carry it, or it is not shown as checked.

1. A veto, by rule: a number with its unit, a medicine or a negation that the cited sentences do not have. A calculation
   must show its parts: each "a x b = c" is computed again, its parts must stand in the sources or the question.
2. The judgement of a model on the statement and all sentences that it cites together: the judge of entailment where it
   knows both languages, else the chat model by its own label probabilities (one request for all statements).
3. Nobody judged it: it is withheld, and the sentences that it cites stand in its place, as quotations.

A withheld sentence is named, and its section stays open. The badge follows from the verdicts and from what the
sources cover (Answered with Evidence, badge table).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isclose

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput
from localmed.answering.roles import Choosing, Role, words
from localmed.answering.write import Covers, Written, quoted, scope_spans
from localmed.domain import Badge, Evidence, Message, Statement, Support, Verdict, Verification, message
from localmed.domain.ports import Choice, Stance
from localmed.text import medicines, quantities
from localmed.text.amounts import amounts
from localmed.text.language import fold, sentences
from localmed.text.negation import denies, warns, without_denials
from localmed.text.verbatim import find_verbatim

RULES = message("support.judge.rules")
MODEL = message("support.judge.chat")
QUOTATION = message("support.judge.quotation")
SUPPORTED, CONTRADICTED = 0.5, 0.6  # least probability of the label; not calibrated
TOLERANCE = 0.006  # of a computed value, relative: what rounding to three figures leaves
TELEPHONE = 4  # digits of an extension or a bleep at least
MEDICINE, NEGATION = message("support.medicine"), message("support.negation")
ARITHMETIC = message("support.arithmetic")

_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_CALCULATION = re.compile(
    rf"({_NUMBER})\s*([^\d=×*·÷+–−]{{0,24}}?)\s*([×x*·÷/+–−-])\s*({_NUMBER})\s*([^\d=×*·÷+–−]{{0,24}}?)\s*[=＝]\s*"
    rf"({_NUMBER}\s*[a-zµμ%/]*(?:\s*[毫微纳]?[克升单位片支]+)?)"
)
_WORD = re.compile(r"[a-z0-9.%]*[a-z0-9%]|[\u4e00-\u9fff]")
_AUXILIARY = {*"可应要", "a", "an", "be", "can", "did", "do", "does", "is", "are", "may", "must", "should", "the"}
_OPERATIONS: Mapping[str, Callable[[float, float], float]] = {
    **dict.fromkeys("×x*·", lambda a, b: a * b),
    **dict.fromkeys("÷/", lambda a, b: a / b if b else float("nan")),
    "+": lambda a, b: a + b,
    **dict.fromkeys("–−-", lambda a, b: a - b),
}


# --- the veto ---------------------------------------------------------------------------------------------------------


def veto(text: str, source: str, around: str, known: str = "") -> Message | None:
    """The reason why ``source`` cannot support ``text``, or ``None``.

    ``source`` has the cited sentences under their headings, ``around`` their whole passages, whose names a statement
    may use. Numbers and medicines of ``known`` (question and patient) may be repeated.
    """
    results, wrong = read_calculations(text, f"{source}\n{known}")
    if wrong:
        return wrong
    if why := quantities.missing(text, "\n".join((source, known, *results))):
        return why
    if not _named(text, f"{around}\n{known}"):
        return MEDICINE
    return NEGATION if _is_reversed(text, source) else None


def read_calculations(text: str, source: str) -> tuple[list[str], Message | None]:
    """The results of the calculations in ``text``, and the fault of the first wrong one.

    A calculation is right if its result is correct and both operands are in ``source`` or earlier results.
    """
    read = quantities.digits_of(text)
    there = quantities.quantities(source).written
    results: list[str] = []
    earlier: list[float] = []
    for one, _, sign, other, _, result in _CALCULATION.findall(read):
        first, second = _value(one), _value(other)
        found = re.match(_NUMBER, result)
        value = _value(found[0]) if found else float("nan")
        right = isclose(_OPERATIONS[sign](first, second), value, rel_tol=TOLERANCE, abs_tol=0.006)
        if not right or not all(_is_among(part, (*there, *earlier)) for part in (first, second)):
            return results, ARITHMETIC
        earlier.append(value)
        results.append(result)
    return results, None


def _is_among(part: float, numbers: Sequence[float]) -> bool:
    return any(isclose(part, number) for number in numbers)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _named(text: str, around: str) -> bool:
    """Whether ``around`` names every medicine of ``text``, its class, or a member of its class."""
    named = medicines.names(around)
    as_class = {name for one in medicines.mentions(around) if not one.ingredients for name in one.classes}
    return all(
        named.issuperset(one.ingredients)
        if one.ingredients and not as_class & {*one.classes}
        else bool(named & {*one.classes, *one.ingredients})
        for one in medicines.mentions(text)
    )


def _is_reversed(text: str, source: str) -> bool:
    """Whether ``text`` affirms what every sentence of ``source`` denies, or denies one of them in the same words.

    The judge decides on a denial in other words ("needs no treatment", "does not have to be treated").
    """
    cited = [fold(source[start:end]) for start, end in sentences(source)]
    if denies(own := fold(text)):
        said = _words(without_denials(own))
        return bool(said) and any(not denies(one) and not warns(one) and said <= _words(one) for one in cited)
    return not warns(text) and bool(cited) and all(map(denies, cited))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text)) - _AUXILIARY


# --- the judgement ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SupportInput(QuestionInput):
    """Pairs of (cited sentences, statement); the result is a ``Stance`` for each.

    ``earlier`` questions and the ``patient``'s record say what a statement is about; they cannot support it.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()
    patient: str = ""

    @property
    def known(self) -> str:
        """Questions and record: a statement may repeat their numbers and medicines."""
        return "\n".join((*self.earlier, self.question, self.patient))


def _asked(task: SupportInput) -> str:
    called = words("quoted_names", task.language)
    patient = (shown.quoted("patient", task.patient, task.language),) if task.patient else ()
    return "\n".join((*(f"{called['earlier']}: {one}" for one in task.earlier), task.question, *patient))


def premise(statement: Statement, evidence: Sequence[Evidence]) -> str:
    """The premise for a judge: for each section its headings, then the cited sentences in order.

    A table's row has the table's head before it.
    """
    known = {piece.marker: piece for piece in evidence}
    by_marker: dict[str, list[str]] = {}
    places = {one.marker: int(one.marker) if one.marker.isdigit() else 0 for one in statement.citations}
    for one in sorted(statement.citations, key=lambda one: (places[one.marker], one.start)):
        by_marker.setdefault(one.marker, []).append(one.quote)
    parts = []
    for marker, quotes in by_marker.items():
        passage = known[marker].passage
        names = ". ".join(dict.fromkeys(name for name in (passage.title, *passage.headings) if name))
        head = passage.text.split("\n", 1)[0] if passage.table else ""
        parts.append("\n".join((names, *([head] if head and head not in quotes else []), *quotes)))
    return "\n\n".join(parts)


def around(statement: Statement, evidence: Sequence[Evidence]) -> str:
    """The whole passages that ``statement`` cites, with their headings."""
    cited = {one.marker for one in statement.citations}
    return "\n".join(piece.passage.in_context for piece in evidence if piece.marker in cited)


def _branches(task: SupportInput) -> tuple[str, ...]:
    return tuple(
        f"{shown.quoted('text', source, task.language)}\n{shown.quoted('statement', text, task.language)}\n"
        for source, text in task.pairs
    )


def _stances(_: SupportInput, choices: Sequence[Choice]) -> tuple[Stance, ...]:
    return tuple(Stance(*choice.probabilities[:3]) for choice in choices)  # type: ignore[arg-type]


TOGETHER = 10  # pairs of one request: an answer has at most eight statements
ALONE = {"en": "Questions of a ward.", "zh": "病房里的各种问题。"}  # the question for pairs without one

# Answered with Evidence, groundedness.
CHECK = Role(
    "check",
    "3",
    Choosing(
        {"en": ("supported", "not said", "contradicted"), "zh": ("支持", "未提及", "矛盾")}, _asked, _branches, _stances
    ),
)


def pairs(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[tuple[str, str], ...]:
    """The pair to judge for each statement."""
    return tuple((premise(one, evidence), one.text) for one in statements)


def settled(statement: Statement, evidence: Sequence[Evidence], known: str) -> Verdict | None:
    """The verdict of rules, or ``None`` if a judge must decide.

    A statement without a citation is unsupported, one that its citation has word for word is supported, and a veto
    makes it unsupported.
    """
    if not statement.citations:
        return Verdict(Support.UNSUPPORTED, RULES, message("support.not_said"))
    if any(find_verbatim(one.quote, statement.text) for one in statement.citations):
        return Verdict(Support.SUPPORTED, RULES, message("support.said"))
    why = veto(statement.text, premise(statement, evidence), around(statement, evidence), known)
    return Verdict(Support.UNSUPPORTED, RULES, why) if why else None


def verdict(stance: Stance | None, judge: Message) -> Verdict:
    """The verdict for the stance of ``judge``; ``None`` means not judged."""
    if stance is None or not stance.judged:
        return Verdict(Support.UNCHECKED, RULES, message("support.not_judged"))
    if stance.contradiction >= CONTRADICTED:
        return Verdict(Support.CONTRADICTED, judge, message("support.contradicted"))
    if stance.entailment >= SUPPORTED:
        return Verdict(Support.SUPPORTED, judge, message("support.supported"))
    return Verdict(Support.UNSUPPORTED, judge, message("support.not_said"))


def for_others(statement: Statement, evidence: Sequence[Evidence]) -> Statement:
    """``statement`` for a patient whom the sources exclude: unsupported if it gives an amount.

    Any other number must stand in a cited sentence on the source's patients or be a telephone number: no list of units
    is complete (tubes have French sizes, needles a gauge).
    """
    known = {piece.marker: piece.passage for piece in evidence}
    scope = " ".join(
        cited.quote
        for cited in statement.citations
        if cited.marker in known and cited.start in {start for start, _ in scope_spans(known[cited.marker])}
    )
    own = {number for number in re.findall(_NUMBER, statement.text) if len(number) < TELEPHONE}
    if not amounts(statement.text) and own <= {*re.findall(_NUMBER, scope)}:
        return statement
    return replace(statement, verdict=Verdict(Support.UNSUPPORTED, RULES, message("support.for_others")))


def shown_statements(judged: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """``judged`` for display: unsupported ones withheld, unjudged ones replaced by the sentences they cite."""
    made: list[Statement] = []
    said = {one.text for one in judged if is_supported(one)}
    for one in judged:
        if is_supported(one):
            made.append(one)
            continue
        made.append(replace(one, withheld=True))
        if one.verdict and one.verdict.support is Support.UNCHECKED:
            fresh = [quotation for quotation in quoted(one, evidence) if quotation.text not in said]
            said |= {quotation.text for quotation in fresh}
            made += fresh
    return tuple(made)


def is_supported(one: Statement) -> bool:
    """Whether ``one`` has the verdict "supported"."""
    return one.verdict is not None and one.verdict.support is Support.SUPPORTED


def verbatim(quotation: Statement) -> Statement:
    """``quotation``, which was cut from its passage, with the verdict "verbatim"."""
    return replace(quotation, verdict=Verdict(Support.VERBATIM, QUOTATION, message("citation.verbatim")))


def cited(statements: Iterable[Statement], evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence that ``statements`` cite, in its own order."""
    markers = {citation.marker for statement in statements for citation in statement.citations}
    return tuple(piece for piece in evidence if piece.marker in markers)


def account(
    judged: Sequence[Statement], reply: Written, judges: tuple[Message, ...], differ: bool = False
) -> Verification:
    """The badge with its reason, and the numbers of checked and withheld sentences.

    ``differ``: another edition, or another document of the title, differs from a cited sentence: no green badge.
    """
    found = [one.verdict.support for one in judged if one.verdict]
    withheld = sum(support is not Support.SUPPORTED for support in found)
    badge, reason = _badge(found, reply)
    if differ and badge is Badge.GREEN:
        badge, reason = Badge.YELLOW, message("badge.why_editions")
    return Verification(len(found), withheld, judges=judges, badge=badge, badge_before=badge, reason=reason)


def _badge(found: Sequence[Support], reply: Written) -> tuple[Badge, Message | None]:
    """Red if a sentence was refuted, yellow if something is open, green if all are supported; none if unjudged."""
    if not found or all(support is Support.UNCHECKED for support in found):
        return Badge.NONE, None
    if Support.CONTRADICTED in found:
        return Badge.RED, message("badge.why_refuted")
    if reply.covers is Covers.NO:
        return Badge.YELLOW, message("badge.why_not_for_patient")
    if reply.missing:
        return Badge.YELLOW, message("badge.why_not_covered", parts=reply.missing)
    if any(support is not Support.SUPPORTED for support in found):
        return Badge.YELLOW, message("badge.why_withheld")
    return Badge.GREEN, message("badge.why_green")


ROLES = (CHECK,)
