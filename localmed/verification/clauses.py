"""The clauses of a statement and of what it rests on, and which of them speak of the same thing.

A clause is a part of a sentence that says one thing, with its condition; of a table's row a cell under its header, with
the row's name. Two clauses are matched by the words, numbers and medicines that they share: in a row with a limit and a
usual dose each number finds its own cell.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localmed.clinical import medicines, synonyms
from localmed.language import fold
from localmed.once import once
from localmed.verification.intervals import Interval, intervals
from localmed.verification.matching import Window, words

NEARLY = 0.8  # of the best match's score: another clause this near counts as matched too
SHARED = 0.34  # of a clause's words and numbers: with less in common two clauses speak of different things
NUMBER, NAME = 1.5, 1.5  # weights of a shared number and a shared medicine; a word has 1

_CUT = re.compile(  # of folded text: a full-width comma is a plain one
    r"、(?=[^、,，。;；\d]{1,12}\d)|[;；。！？]|[.!?](?!\d)|,(?! )(?=[^,。;]{4})(?=.{0,3}[\u4e00-\u9fff])"
    r"|,(?!\d)(?= (?:and|but|while|whereas|although|though|which|who|so)\b)"
    r"|\b(?:but|whereas|while|although)\b|但|而(?!且)"
)
_UNIT = re.compile(r"[(（]\s*([^()（）]{1,16}?)\s*[)）]")
_LAST_NUMBER = re.compile(r"\d+(?:[.,]\d+)*(?!\s?(?:\d|[-–~至到]|to\b|[a-zμ%℃]))(?![\d.,]*\d)")
CELL = re.compile(r"[;；]\s*(?=[^:：;；]{1,40}[:：])")


@dataclass(frozen=True, slots=True)
class Clause:
    """Folded ``text`` with the words, numbers and medicines by which it is matched.

    It is of the ``sentence`` of that number, a ``cell`` of a table's row or a part of prose.
    """

    text: str
    words: frozenset[str]
    numbers: tuple[Interval, ...]
    medicines: frozenset[str]
    sentence: int = 0
    cell: bool = False


def of_statement(statement: str) -> tuple[Clause, ...]:
    """The clauses of ``statement``."""
    return _clauses(_CUT.split(fold(statement)), frozenset())


def of_window(window: Window) -> tuple[Clause, ...]:
    """The clauses of the sentences of ``window``."""
    return tuple(
        replace(clause, sentence=number)
        for number, sentence in enumerate(window.sentences)
        for clause in of_sentence(sentence.text, sentence.heading)
    )


@once
def of_sentence(sentence: str, heading: str = "") -> tuple[Clause, ...]:
    """The clauses of a sentence, or the cells of a table's row, each with the medicine that row or heading is about."""
    cells = [_with_unit(cell) for cell in CELL.split(fold(sentence))]
    if len(cells) == 1:
        return _clauses(_CUT.split(cells[0]), (medicines.names(sentence) and frozenset()) or medicines.names(heading))
    return tuple(
        replace(clause, cell=True)
        for cell in cells
        for clause in _clauses(
            [f"{cell.partition(':')[0]}: {part}" if number else part for number, part in enumerate(_CUT.split(cell))],
            medicines.names(cells[0]),
        )
    )


def _with_unit(cell: str) -> str:
    """A cell with the unit that its header has in brackets written behind each of its bare numbers."""
    header, colon, value = cell.partition(":")
    match = _UNIT.search(header)
    if not (colon and match and intervals(f"1 {match[1]}")[0].kind):
        return cell
    return f"{header}:{_LAST_NUMBER.sub(lambda number: f'{number[0]} {match[1]}', value)}"


def _clauses(parts: Sequence[str], of_row: frozenset[str]) -> tuple[Clause, ...]:
    """Each part with the medicines that it names, else those that the row or the part before names."""
    clauses: list[Clause] = []
    for part in parts:
        if not part.strip(" ,.，"):
            continue
        named = medicines.names(part) or of_row or (clauses[-1].medicines if clauses else frozenset())
        clauses.append(Clause(part, concepts(part), tuple(intervals(part)), named))
    return tuple(clauses)


def concepts(text: str) -> frozenset[str]:
    """The words of ``text``, and for what has several names the first of them."""
    return words(text) | {f"={thing.names[0]}" for thing in synonyms.named(text) if not thing.asking}


def share(clause: Clause, other: Clause) -> float:
    """How much of ``clause`` the ``other`` holds, from 0 to 1."""
    whole = len(clause.words) + NUMBER * len(clause.numbers) + NAME * len(clause.medicines)
    common = (
        len(clause.words & other.words)
        + NUMBER * sum(number_score(number, other.numbers) for number in clause.numbers)
        + NAME * len(clause.medicines & other.medicines)
    )
    return common / whole if whole else 0.0


def number_score(number: Interval, others: Sequence[Interval]) -> float:
    """1 where one of ``others`` is the same number, less where a range or limit holds it."""
    scores = (1.0 if number.meets(other) else 0.8 if other.holds(number) else 0.0 for other in others)
    return max(scores, default=0.0)


def matched(clause: Clause, theirs: Sequence[Clause], near: float = NEARLY) -> tuple[Clause, ...]:
    """Those of ``theirs`` that speak of the same thing as ``clause``, the best first; none where none is like it."""
    shares = sorted(((share(clause, other), -place) for place, other in enumerate(theirs)), reverse=True)
    best = shares[0][0] if shares else 0.0
    return tuple(theirs[-place] for value, place in shares if best >= SHARED and value >= near * best)
