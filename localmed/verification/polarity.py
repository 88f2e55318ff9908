"""Whether a statement turns round what its source says: it denies what the source affirms, or the reverse.

Clause by clause: the source's clause that shares most words with clauses of the statement must deny where those deny.
Words such as "avoid", "stop" or "without" deny in one wording and not in another: a clause that has one which the
other has not agrees with either side. A statement that denies although its source denies nothing is turned as well.
Limits ("not more than") are no denials. What a denial refers to is not parsed, and a turn without a negation is not
seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localmed.clinical import negation
from localmed.clinical.medicines import names
from localmed.language import detect, fold
from localmed.language import words as pairs
from localmed.verification.matching import alike, stems

LIKE = {"en": 0.4, "zh": 0.3}  # share of a clause's words from which two are about the same; Chinese pairs meet less
SHARED = 2  # words at least, of a clause that has as many
NEARLY = 0.75  # of the best clause's share: another clause this like it, of the same polarity, clears the statement
_ONLY, _LIMITED = frozenset(("only", "alone")), frozenset(("unless", "without", "rather"))  # "only if" is no "not if"
_EXCEPTING = frozenset(("unless", "without", "only", "除非", "除外"))
HELD = 0.75  # of the words that a clause of the source denies: a statement with as many says the same of the same
NAMED = 0.3  # added to the likeness of a clause that names the same medicine
LISTED = 2  # words of an item of a list, which a denial before it denies too
SHORT = 1  # words; a clause with fewer does not tell what it is about

_CONDITION = re.compile(r"\s*(?:if|when|once|where|until|unless|after)\b|.*(?:时|后)$")
_GOES_ON = re.compile(r"\s*(?:in|or|for|with|to|at|by|on|of|during|after|before|from)\b")  # after a comma: a list
_LABEL = re.compile(r"(?m)^((?:[\w-]+ ?){1,5}):")  # of a list's item: it belongs to what follows
_CLAUSE = re.compile(
    r"[;；，。：？！]|[,.:?!](?!\d)|\b(?:and|but|because|although|though|while|which|since|so that|as long as)\b"
    r"|(?=\b(?:if|when|unless)\b)"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """What a clause is about, whether it denies, what in it may deny, and whether it is a condition ("if ...")."""

    words: frozenset[str]
    denies: bool
    may: frozenset[str]
    condition: bool
    medicines: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()  # its words without those that deny


def turned(statement: str, source: str) -> bool:
    """Whether ``statement`` denies what ``source`` affirms, or the reverse."""
    mine, theirs, language = clauses(statement), clauses(source), detect(statement)
    if any(clause.denies and not clause.condition for clause in mine) and not any(
        other_clause.denies or other_clause.may for other_clause in theirs
    ):
        return True
    if _denial_left_out(mine, theirs):
        return True
    groups: dict[Clause, list[Clause]] = {}
    for clause in mine:
        if len(clause.words) < SHARED and clause.medicines:
            continue
        best = max(theirs, key=lambda other: _like(clause, other) + NAMED * bool(clause.medicines & other.medicines),
                   default=None)  # fmt: skip
        if (
            best
            and _like(clause, best) >= LIKE[language]
            and len(clause.words & best.words) >= min(SHARED, len(clause.words))
        ):
            groups.setdefault(best, []).append(clause)
    return any(_against(group, best, theirs) for best, group in groups.items())


def _denial_left_out(mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether the statement denies nothing and says nearly all of what a clause of the source denies, as no other
    clause of it does that denies nothing. A source that names exceptions tells nothing.
    """
    if any(clause.denies or clause.may for clause in mine) or any(_EXCEPTING & clause.may for clause in theirs):
        return False
    affirmed = [clause.denied for clause in theirs if not clause.denies]
    return any(
        clause.denies
        and len(clause.denied) >= SHARED
        and any(len(clause.denied & own.words) >= HELD * len(clause.denied) for own in mine)
        and not any(len(clause.denied & other) >= HELD * len(clause.denied) for other in affirmed)
        for clause in theirs
    )


def clauses(text: str) -> list[Clause]:
    """The clauses of ``text``; one too short to compare goes with the next, at the end with the one before."""
    pieces: list[str] = []
    short = False
    for piece in _CLAUSE.split(_LABEL.sub(r"\1 ", negation.without_limits(fold(text)))):
        pieces[-1:] = [f"{pieces[-1]} {piece}"] if short and pieces else [*pieces[-1:], piece]
        short = len(_words(pieces[-1])) < SHORT
    if short and len(pieces) > 1:
        pieces[-2:] = [" ".join(pieces[-2:])]
    parsed: list[Clause] = []
    for piece in pieces:
        goes_on = _GOES_ON.match(piece) or len(piece.split()) <= LISTED
        denies = negation.denies(piece) or bool(parsed and parsed[-1].denies and goes_on and detect(piece) == "en")
        may = negation.doubtful(piece) | (parsed[-1].may if parsed and goes_on else frozenset())
        parsed.append(Clause(_words(piece), denies, may, bool(_CONDITION.match(piece)), names(piece),
                             _words(negation.without_denials(piece))))  # fmt: skip
    for place in reversed(range(len(parsed) - 1)):  # "children and pregnancy are not covered": each item is denied
        if parsed[place + 1].denies and not parsed[place].condition and len(parsed[place].words) <= LISTED:
            parsed[place] = replace(parsed[place], denies=True)
    return parsed


def _words(text: str) -> frozenset[str]:
    return frozenset(pairs(text, for_query=True)) if detect(text) == "zh" else frozenset(map(alike, stems(text))) - {""}


def _like(one: Clause, other: Clause) -> float:
    return len(one.words & other.words) / max(1, len(one.words))


def _against(group: Sequence[Clause], best: Clause, theirs: Sequence[Clause]) -> bool:
    near = max(_like(clause, best) for clause in group) * NEARLY
    alike = [other for other in theirs if _nearly(group, other, near)]
    return not any(_agree(group, other) for other in alike)


def _nearly(group: Sequence[Clause], other: Clause, near: float) -> bool:
    """Whether ``other`` is like one of ``group`` too, or a short clause that one of them holds."""
    held = len(other.words) >= SHORT and max(_like(other, clause) for clause in group) >= NEARLY
    return held or max(_like(clause, other) for clause in group) >= near


def _agree(group: Sequence[Clause], other: Clause) -> bool:
    """Whether the clauses and the source's deny alike, as far as words tell."""
    denies, may = any(clause.denies for clause in group), frozenset[str]().union(*(clause.may for clause in group))
    if denies == other.denies:
        return True
    return bool((may ^ other.may) - (frozenset() if _LIMITED & (may | other.may) else _ONLY))
