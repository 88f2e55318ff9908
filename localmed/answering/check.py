"""Checking what a model wrote, sentence by sentence: what it cites must carry it, or it is not shown as checked.

1. A veto, by rule: a number with its unit, a medicine or a negation that the cited sentences do not have. A calculation
   must show its parts: each "a x b = c" is computed again, its parts must stand in the sources or the question.
2. The judgement of a model on the statement and all sentences that it cites together: the judge of entailment where it
   knows both languages, else the chat model by its own label probabilities (one request for all statements).
3. Nobody judged it: it is withheld, and the sentences that it cites stand in its place, as quotations.

No value ever takes the place of another: what is withheld is named, and its section stays open. The badge follows from
the verdicts and from what the sources cover (Answered with Evidence, badge table), or there is none.
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
    """Why ``text`` may not rest on ``source``; None where no rule finds anything.

    ``source`` are the cited sentences with the names above them, ``around`` their whole passages, whose names a
    sentence may take up; ``known`` is what was asked and told, whose numbers and medicines may be repeated.
    """
    results, wrong = worked_out(text, f"{source}\n{known}")
    if wrong:
        return wrong
    if why := quantities.missing(text, "\n".join((source, known, *results))):
        return why
    if not _named(text, f"{around}\n{known}"):
        return MEDICINE
    return NEGATION if _turned(text, source) else None


def worked_out(text: str, source: str) -> tuple[list[str], Message | None]:
    """The results of the calculations that ``text`` shows; and what is wrong with one.

    A calculation counts only if it is right and both its parts stand in ``source``, with their numbers.
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
        if not right or not all(_stands(part, (*there, *earlier)) for part in (first, second)):
            return results, ARITHMETIC
        earlier.append(value)
        results.append(result)
    return results, None


def _stands(part: float, numbers: Sequence[float]) -> bool:
    return any(isclose(part, number) for number in numbers)


def _value(number: str) -> float:
    return float(number.replace(",", ""))


def _named(text: str, around: str) -> bool:
    """Whether every medicine of ``text`` is named in ``around``: by itself, its class, or a member of its class."""
    named = medicines.names(around)
    as_class = {name for one in medicines.mentions(around) if not one.ingredients for name in one.classes}
    return all(
        named.issuperset(one.ingredients)
        if one.ingredients and not as_class & {*one.classes}
        else bool(named & {*one.classes, *one.ingredients})
        for one in medicines.mentions(text)
    )


def _turned(text: str, source: str) -> bool:
    """Whether ``text`` states what every sentence of ``source`` denies, or denies one of them in its own words.

    A denial in other words ("needs no treatment", "does not have to be treated") is left to the judge.
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
    """Whether each statement is carried by what it cites: (cited sentences, statement). Gives one ``Stance`` each.

    ``earlier`` are the questions before it, ``patient`` what is told of the patient: what a statement speaks of may
    stand there, what it rests on may not.
    """

    pairs: tuple[tuple[str, str], ...] = ()
    earlier: tuple[str, ...] = ()
    patient: str = ""

    @property
    def known(self) -> str:
        """What was asked and told: numbers and medicines that a statement may repeat."""
        return "\n".join((*self.earlier, self.question, self.patient))


def _asked(task: SupportInput) -> str:
    called = words("quoted_names", task.language)
    patient = (shown.quoted("patient", task.patient, task.language),) if task.patient else ()
    return "\n".join((*(f"{called['earlier']}: {one}" for one in task.earlier), task.question, *patient))


def premise(statement: Statement, evidence: Sequence[Evidence]) -> str:
    """What ``statement`` rests on, as a judge reads it: for each section its names, then the cited sentences in order.

    A table's row has its head before it.
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
    """The whole passages that ``statement`` cites, with their names."""
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
ALONE = {"en": "Questions of a ward.", "zh": "病房里的各种问题。"}  # the question of pairs that stand for themselves

# Whether what a statement cites carries it (Answered with Evidence, groundedness).
CHECK = Role(
    "check",
    "3",
    Choosing(
        {"en": ("supported", "not said", "contradicted"), "zh": ("支持", "未提及", "矛盾")}, _asked, _branches, _stances
    ),
)


def pairs(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[tuple[str, str], ...]:
    """What is judged, one pair for each statement."""
    return tuple((premise(one, evidence), one.text) for one in statements)


def settled(statement: Statement, evidence: Sequence[Evidence], known: str) -> Verdict | None:
    """What rules say of ``statement``: it stands word for word in what it cites, or they veto it; None: ask a judge.

    What cites nothing rests on nothing, whatever a judge makes of an empty text.
    """
    if not statement.citations:
        return Verdict(Support.UNSUPPORTED, RULES, message("support.not_said"))
    if any(find_verbatim(one.quote, statement.text) for one in statement.citations):
        return Verdict(Support.SUPPORTED, RULES, message("support.said"))
    why = veto(statement.text, premise(statement, evidence), around(statement, evidence), known)
    return Verdict(Support.UNSUPPORTED, RULES, why) if why else None


def verdict(stance: Stance | None, judge: Message) -> Verdict:
    """What the judgement of one statement comes to; ``stance`` is None where nobody judged it."""
    if stance is None or not stance.judged:
        return Verdict(Support.UNCHECKED, RULES, message("support.not_judged"))
    if stance.contradiction >= CONTRADICTED:
        return Verdict(Support.CONTRADICTED, judge, message("support.contradicted"))
    if stance.entailment >= SUPPORTED:
        return Verdict(Support.SUPPORTED, judge, message("support.supported"))
    return Verdict(Support.UNSUPPORTED, judge, message("support.not_said"))


def for_others(statement: Statement, evidence: Sequence[Evidence]) -> Statement:
    """``statement`` where the sources exclude the patient: an amount in it is for other people, whoever judged it.

    A number of any other kind stands only where a sentence that it cites says with it whom the source is for, or as a
    telephone number: no list of units is complete (a tube has French sizes, a needle a gauge).
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
    """``judged`` as they are shown: what is not carried as a gap, what nobody judged by the sentences that it cites."""
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
    """Whether ``one`` is supported by what it cites."""
    return one.verdict is not None and one.verdict.support is Support.SUPPORTED


def verbatim(quotation: Statement) -> Statement:
    """``quotation``, which was cut out of its passage where it was made, with its verdict."""
    return replace(quotation, verdict=Verdict(Support.VERBATIM, QUOTATION, message("citation.verbatim")))


def cited(statements: Iterable[Statement], evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The evidence that ``statements`` cite, in its own order."""
    markers = {citation.marker for statement in statements for citation in statement.citations}
    return tuple(piece for piece in evidence if piece.marker in markers)


def account(
    judged: Sequence[Statement], reply: Written, judges: tuple[Message, ...], differ: bool = False
) -> Verification:
    """The badge with its reason, and how many sentences were checked and withheld.

    ``differ``: what is cited stands otherwise in another edition, and no green badge stands over both.
    """
    found = [one.verdict.support for one in judged if one.verdict]
    withheld = sum(support is not Support.SUPPORTED for support in found)
    badge, reason = _badge(found, reply)
    if differ and badge is Badge.GREEN:
        badge, reason = Badge.YELLOW, message("badge.why_editions")
    return Verification(len(found), withheld, judges=judges, badge=badge, badge_before=badge, reason=reason)


def _badge(found: Sequence[Support], reply: Written) -> tuple[Badge, Message | None]:
    """Red where a sentence was refuted, yellow where something is open, green where all is carried; else none."""
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
