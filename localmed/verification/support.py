"""Whether a sentence that a model wrote is carried by the passages it cites: by rule first, then by a judge.

A number that no cited passage holds, a contradiction, or words that the passages hardly share: the sentence is
withheld. What is neither shown to be supported nor to be wrong stays, marked as unchecked. Rules see numbers and words,
not meaning: that a sentence passed is no proof that it is right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isclose

from localmed.domain import Evidence, Origin, Statement, Support, Verdict, Verification
from localmed.language import content_words, detect, fold
from localmed.ports import Stance
from localmed.verification.amounts import Amount, amounts

JUDGE = "rule: numbers and words; entailment"
SHARED = 0.5  # least share of a sentence's content words in what it cites; a paraphrase of ours keeps well above it
CONTRADICTED = 0.6  # least probability at which a sentence counts as contradicted

_NUMBER = re.compile(r"\d+(?:[.,·]\d+)*")


def pairs(statements: Sequence[Statement], evidence: Sequence[Evidence]) -> tuple[tuple[str, str], ...]:
    """What is judged: (cited passage, statement), statement by statement in the order of its citations."""
    known = {each.marker: each for each in evidence}
    return tuple(
        (known[marker].passage.in_context, statement.text)
        for statement in statements
        if _judged(statement)
        for marker in _markers(statement)
    )


def check(
    statements: Sequence[Statement], evidence: Sequence[Evidence], stances: Sequence[Stance], before: Verification
) -> tuple[tuple[Statement, ...], Verification]:
    """The statements with their verdicts; ``stances`` are those of ``pairs``, ``before`` the account so far."""
    known = {each.marker: each for each in evidence}
    waiting = iter(stances)
    checked = tuple(_checked(each, known, waiting) if _judged(each) else each for each in statements)
    withheld = sum(each.withheld for each in checked)
    return checked, replace(before, statements_withheld=withheld, judge=f"{before.judge}; {JUDGE}")


def _judged(statement: Statement) -> bool:
    return statement.origin is Origin.GENERATED and not statement.withheld


def _markers(statement: Statement) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.marker for each in statement.citations))


def _checked(statement: Statement, known: dict[str, Evidence], stances: Iterator[Stance]) -> Statement:
    sources = [known[marker].passage.in_context for marker in _markers(statement)]
    judged = [next(stances) for _ in sources]
    verdict = _verdict(statement.text, " ".join(sources), judged)
    return replace(statement, verdict=verdict, withheld=verdict.support in (Support.UNSUPPORTED, Support.CONTRADICTED))


def _verdict(text: str, source: str, stances: Sequence[Stance]) -> Verdict:
    if not numbers_held(text, source):
        return Verdict(Support.UNSUPPORTED, JUDGE, "a number in it is not in what it cites")
    if max(each.contradiction for each in stances) >= CONTRADICTED:
        return Verdict(Support.CONTRADICTED, JUDGE, "what it cites says otherwise")
    if any(each.label == "entailment" for each in stances):
        return Verdict(Support.SUPPORTED, JUDGE, "what it cites supports it")
    if detect(text) == detect(source) and shared(text, source) < SHARED:
        return Verdict(Support.UNSUPPORTED, JUDGE, "it says more than what it cites")
    return Verdict(Support.UNCHECKED, JUDGE, "written by a model; its support was not shown")


def numbers_held(text: str, source: str) -> bool:
    """Whether ``source`` holds every amount of ``text``, in whatever unit, and every other number as it is written."""
    read, held = amounts(text), amounts(source)
    if not all(any(_equal(one, other) for other in held) for one in read):
        return False
    measured = {number for each in read for number in _NUMBER.findall(each.written)}
    return set(_NUMBER.findall(fold(text))) - measured <= set(_NUMBER.findall(fold(source)))


def _equal(one: Amount, other: Amount) -> bool:
    return one.kind == other.kind and isclose(one.low, other.low) and isclose(one.high, other.high)


def shared(text: str, source: str) -> float:
    """The share of the content words of ``text`` that ``source`` holds; 1 where there are none."""
    wanted, there = set(content_words(text)), set(content_words(source))
    return len(wanted & there) / len(wanted) if wanted else 1.0
