"""Statements altered from a source and statements that it says (``cases/altered*.toml``), and what they are judged as.

Each is judged twice, as ``verify`` does: as a sentence that cites its source (``checked``), and as a claim that a study
bears on (``weighed``).
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localmed.domain import Passage, Support, Verification
from localmed.language import detect
from localmed.ports import Entailment
from localmed.verification import citations, support
from localmed.verification.claims import Read, premise
from localmed.verification.vote import vote
from localmed.workflows.verify_parts import statement
from tests.values import evidence, passage

CASES = Path(__file__).parent / "cases"
HALVES = {"development": ("altered_en", "altered_zh"), "held": ("altered_held_en", "altered_held_zh")}
SUPPORTED = (Support.VERBATIM, Support.SUPPORTED)


@dataclass(frozen=True)
class Case:
    """A statement about ``source``; ``kind`` says what was altered, or how the source says it."""

    text: str
    source: Passage
    kind: str
    altered: bool


def second_author() -> list[Case]:
    """The cases of a second author: one altered and one entailed statement on each source, and the source itself."""
    pairs = tomllib.loads((CASES / "altered_second_author.toml").read_text("utf-8"))["pair"]
    return [
        Case(pair[name], passage(pair["source"], "Study", language=pair["language"]), pair["kind"], name == "altered")
        for pair in pairs
        for name in ("altered", "entailed", "source")
    ]


def cases(half: str) -> list[Case]:
    """The cases of one of the ``HALVES``."""
    return [
        Case(text, passage(source["text"], source["title"], language=detect(source["text"])), kind, name == "altered")
        for file in HALVES[half]
        for source in tomllib.loads((CASES / f"{file}.toml").read_text("utf-8"))["source"]
        for name in ("altered", "entailed")
        for kind, text in source[name]
    ]


def checked(faults: Sequence[Case], judge: Entailment) -> list[Support]:
    """The verdict on each as a sentence of an answer that cites its source."""
    verdicts = []
    for case in faults:
        sources = (evidence("1", case.source.text, case.source.title),)
        statements, account = citations.check([statement(case.text, sources)], sources)
        pairs = support.pairs(statements, sources)
        (judged,), _ = support.check(statements, sources, judge.judge(pairs), account or Verification(), "mark")
        assert judged.verdict is not None
        verdicts.append(judged.verdict.support)
    return verdicts


def weighed(faults: Sequence[Case], judge: Entailment) -> list[int]:
    """The vote of each source on its statement as a claim."""
    pairs = [(premise([Read.of(case.source.text)], case.text).text, case.text) for case in faults]
    return [vote(stance) if pair[0] else 0 for pair, stance in zip(pairs, judge.judge(pairs), strict=True)]


@dataclass(frozen=True)
class Rates:
    """Of the altered statements and of those that the source says: how many were called supported or contradicted."""

    altered: int
    altered_supported: int
    altered_contradicted: int
    entailed: int
    entailed_supported: int
    entailed_contradicted: int
    entailed_unsupported: int


def rates(faults: Sequence[Case], verdicts: Sequence[Support | int]) -> Rates:
    """The counts of ``checked`` or ``weighed``."""
    for_it, against = (*SUPPORTED, 1), (Support.CONTRADICTED, -1)
    count = Counter(
        (case.altered, "for" if verdict in for_it else "against" if verdict in against else str(verdict))
        for case, verdict in zip(faults, verdicts, strict=True)
    )
    altered = sum(case.altered for case in faults)
    return Rates(
        altered, count[True, "for"], count[True, "against"],
        len(faults) - altered, count[False, "for"], count[False, "against"], count[False, "unsupported"],
    )  # fmt: skip
