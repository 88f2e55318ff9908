"""Whether a statement says what its source excludes: rare for common, halve for stop, slowly for fast.

The poles of each axis of ``clinical/opposites.toml`` are compared between clauses that speak of the same thing. Where
the source's clauses name another pole of the axis and not the statement's, the two cannot both be right. A pole of
some axes must be in the source at all. What is in no table is not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from localmed.clinical import negation
from localmed.clinical.tables import in_characters, in_words, listed, table
from localmed.verification.clauses import Clause, matched

_SPLIT = re.compile(r"[,;:，；：。]|\b(?:and|but|if|when)\b")
NEGATED = 30  # characters before a pole in which a negation turns it


@dataclass(frozen=True, slots=True)
class Axis:
    """``poles`` by name; what a negation makes of a pole; poles ``within`` others; poles that a source must name."""

    name: str
    poles: tuple[tuple[str, re.Pattern[str]], ...]
    negated: Mapping[str, str]
    within: Mapping[str, str]
    added: frozenset[str]


@cache
def axes() -> tuple[Axis, ...]:
    """The axes of the table."""
    return tuple(_axis(name, entry) for name, entry in table("opposites").items() if isinstance(entry, dict))


def _axis(name: str, entry: Mapping[str, Mapping[str, str]]) -> Axis:
    poles = tuple(
        (pole, re.compile(rf"\b(?:{in_words(lists['en'])})|{in_characters(lists['zh'])}"))
        for pole, lists in entry.items()
        if isinstance(lists, dict) and "en" in lists and "zh" in lists
    )
    added = entry.get("added", "")
    return Axis(name, poles, entry.get("negated", {}), entry.get("within", {}), frozenset(listed(str(added))))


def poles(axis: Axis, text: str) -> frozenset[str]:
    """The poles of ``axis`` that a folded clause names."""
    return frozenset(
        axis.negated.get(pole, pole) if _negated(text, match.start()) else pole
        for pole, pattern in axis.poles
        for match in pattern.finditer(text)
    )


def _negated(text: str, at: int) -> bool:
    before = text[max(0, at - NEGATED) : at]
    return before.endswith(("不", "未", "勿", "非", "无")) or negation.denies(_SPLIT.split(before)[-1])


def opposed(mine: Sequence[Clause], theirs: Sequence[Clause]) -> str:
    """The axis on which a clause of the statement says what the source's clauses exclude; "" if none."""
    for clause in mine:
        against = matched(clause, theirs)
        for axis in axes():
            stated = poles(axis, clause.text)
            source_poles = [poles(axis, other.text) for other in against] if stated else []
            if stated and (_excluded(axis, stated, source_poles) or _added(axis, stated, theirs)):
                return axis.name
    return ""


def _added(axis: Axis, stated: frozenset[str], theirs: Sequence[Clause]) -> bool:
    """Whether the statement names a pole that its source must name, and none of the source's clauses does."""
    needed = stated & axis.added
    return bool(needed) and not any(poles(axis, other.text) & needed for other in theirs)


def _excluded(axis: Axis, stated: frozenset[str], source_poles: Sequence[frozenset[str]]) -> bool:
    """Whether the source has another pole and none of those stated, those that both have apart: "drugs that raise
    potassium are continued" of a source that stops them.
    """
    held = frozenset[str]().union(*source_poles)
    own, theirs = stated - held, held - stated
    return bool(own and theirs) and all(axis.within.get(pole, pole) not in held for pole in own)
