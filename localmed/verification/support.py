"""Whether a sentence that a model wrote, or a person submitted, is carried by what it cites: by rule, then by a judge.

What the source says word for word is carried (``verbatim``). What a rule finds (``comparison``: a number, unit,
medicine, negation, too few shared words), a contradiction, or an exception of the source that is left out
(``exceptions``): the sentence is withheld or marked, as the site says. What is neither shown to be supported nor to be
wrong stays, marked as unchecked. Rules see words, not meaning: that a sentence passed is no proof that it is right.
Measured in tests/benchmarks/planted_faults.py and tests/verification/altered.py.

A quotation needs no judging; beside it ``with_exceptions`` puts the sentence of its source that limits it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from localmed.domain import Evidence, Origin, Passage, Statement, Support, Verdict, Verification, message
from localmed.ports import Stance
from localmed.verification.comparison import MORE, fault
from localmed.verification.exceptions import omitted
from localmed.verification.matching import window
from localmed.verification.verbatim import find_verbatim

JUDGE = message("support.judge.rules")
CONTRADICTED = 0.6  # least probability at which a sentence counts as contradicted
OMITTED = message("support.omitted")
QUOTED = message("support.said")
UNSHOWN = message("support.unshown")
NOT_SHOWN = message("support.not_shown")  # of a sentence that a person submitted
NOT_JUDGED = message("support.not_judged")
ADDED = 3  # exceptions put beside the quotations of one answer, at most: more would bury them

Policy = Literal["withhold", "mark"]  # what is done with a sentence that is not supported


def pairs(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[tuple[str, str], ...]:
    """What is judged: (the sentences of a cited passage that matter, statement), in the order of its citations."""
    known = {piece.marker: piece.passage for piece in evidence}
    return tuple(
        (window(statement.text, [known[marker]]).in_context, statement.text)
        for statement in statements
        if _judged(statement)
        for marker in _markers(statement)
    )


def check(
    statements: Sequence[Statement],
    evidence: Sequence[Evidence],
    stances: Sequence[Stance],
    before: Verification,
    policy: Policy = "withhold",
) -> tuple[tuple[Statement, ...], Verification]:
    """The statements with their verdicts; ``stances`` are those of ``pairs``, ``before`` the account so far."""
    known = {piece.marker: piece.passage for piece in evidence}
    waiting = iter(stances)
    texts = [statement.text for statement in statements if not statement.withheld]
    checked = tuple(
        _checked(statement, known, waiting, texts, policy) if _judged(statement) else statement
        for statement in statements
    )
    withheld = sum(statement.withheld for statement in checked)
    return checked, replace(before, statements_withheld=withheld, judges=(*before.judges, JUDGE))


def unsupported(statement: Statement) -> bool:
    """Whether the check found that the statement's citations do not carry it, withheld or not."""
    support = statement.verdict.support if statement.verdict else Support.UNCHECKED
    return support in (Support.UNSUPPORTED, Support.CONTRADICTED)


def _judged(statement: Statement) -> bool:
    return statement.origin in (Origin.GENERATED, Origin.SUBMITTED) and not statement.withheld


def _markers(statement: Statement) -> tuple[str, ...]:
    return tuple(dict.fromkeys(citation.marker for citation in statement.citations))


def _checked(
    statement: Statement, known: dict[str, Passage], stances: Iterator[Stance], texts: Sequence[str], policy: Policy
) -> Statement:
    passages = [known[marker] for marker in _markers(statement)]
    judged = [next(stances) for _ in passages]
    verdict = _verdict(statement, passages, judged, [other for other in texts if other != statement.text])
    checked = replace(statement, verdict=verdict)
    return replace(checked, withheld=policy == "withhold" and unsupported(checked))


def _verdict(
    statement: Statement, passages: Sequence[Passage], stances: Sequence[Stance], beside: Sequence[str]
) -> Verdict:
    text, submitted = statement.text, statement.origin is Origin.SUBMITTED
    verbatim = any(find_verbatim(passage.text, text, passage.table) for passage in passages)
    if verbatim and submitted:  # whoever wrote it need not quote what follows in the source
        return Verdict(Support.VERBATIM, JUDGE, QUOTED)
    rests_on = window(text, passages)
    likeness = max((stance.likeness for stance in stances), default=0.0)
    difference = None if verbatim else fault(text, rests_on, likeness)
    # Few shared words are a guess: enough to withhold, not to accuse.
    if difference and not (submitted and difference == MORE):
        return Verdict(Support.UNSUPPORTED, JUDGE, difference)
    if not verbatim and max(stance.contradiction for stance in stances) >= CONTRADICTED:
        return Verdict(Support.CONTRADICTED, JUDGE, message("support.contradicted"))
    if omitted(text, rests_on, passages, beside):
        return Verdict(Support.UNSUPPORTED, JUDGE, OMITTED)
    if verbatim or any(stance.label == "entailment" for stance in stances):
        return Verdict(Support.SUPPORTED, JUDGE, message("support.supported"))
    if submitted:
        return Verdict(Support.UNCHECKED, JUDGE, NOT_SHOWN if any(one.judged for one in stances) else NOT_JUDGED)
    return Verdict(Support.UNCHECKED, JUDGE, UNSHOWN)


# --- quotations -------------------------------------------------------------------------------------------------------


def with_exceptions(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """``statements``, after each quotation the neighbouring sentence that limits it, if none of them says that."""
    known = {piece.marker: piece for piece in evidence}
    texts = [statement.text for statement in statements]
    shown: list[Statement] = []
    for statement in statements:
        shown.append(statement)
        beside = _limiting(statement, known, texts) if len(texts) < len(statements) + ADDED else None
        if beside:
            texts.append(beside.text)
            shown.append(beside)
    return tuple(shown)


def _limiting(statement: Statement, known: dict[str, Evidence], texts: Sequence[str]) -> Statement | None:
    markers = [marker for marker in _markers(statement) if marker in known]
    if statement.origin is not Origin.EXTRACTIVE or not markers:
        return None
    source = known[markers[0]]
    passages = [source.passage]
    sentence = omitted(statement.text, window(statement.text, passages), passages, texts)
    return source.quotation(sentence.start, sentence.end) if sentence else None
