"""Whether the numbers of a statement stand in its source, together, on the same side, and as what they are stated.

*Held*: the source writes the number, or a range or limit in which the value of one patient lies ("an eGFR of 38" in
"30 to 44"); numbers of the question or the record are given. *Together*: the numbers of one clause stand in one
sentence or row of the source. *Side*: above is not below. *Limit*: what the source names only as a limit is no dose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from localmed.clinical import medicines, negation
from localmed.clinical.tables import cues, in_characters, in_words, table
from localmed.domain import Message, message
from localmed.language import fold, sentences
from localmed.verification.clauses import Clause, concepts, share
from localmed.verification.intervals import DOSES, Interval, intervals
from localmed.verification.matching import Window, words

NUMBER, UNIT = message("support.number"), message("support.unit")
APART = message("support.apart")
_TABLE = table("bindings")
_SOLD, _INSTANCE, _TARGET, _FLIPS, _CONDITIONAL = (
    cues("bindings", name) for name in ("sold", "instance", "target", "flips", "conditional")
)
_SOLD_AS = re.compile(rf"\s*(?:{in_words(_TABLE['sold_as']['en'])}|{in_characters(_TABLE['sold_as']['zh'])})\s?[:：]")
CLEARLY = 0.2  # by which the clause with the other side must be more like the statement's than one with its side
WORDS, ALIKE, MORE_ALIKE = 2, 0.5, 0.3  # of a clause's words, where medicines are compared by the words beside them
FARTHER = 1 / 3  # of the words that another medicine's sentence shares: no more are shared by the own one's
LEAST = 0.1  # of a clause that two must share for their limits to be compared
_ONCE = re.compile(rf"\bonce\b(?! (?:{in_words(_TABLE['rate']['en'])}))")
_CONDITION = re.compile(
    rf"\b(?:{in_words(_TABLE['condition']['en'])})[^,;.]{{6,80}}"
    rf"|(?:{in_characters(_TABLE['condition']['zh'])})[^。；，]{{4,40}}"
)


def held(number: Interval, source: Sequence[Interval], clause: str) -> bool:
    """Whether one of ``source`` is the same number, or holds it as the value of one patient."""
    if any(number.meets(other) for other in source):
        return True
    timed = number.kind == "hours" and not _INSTANCE.search(clause)
    return not timed and not _TARGET.search(clause) and any(other.holds(number) for other in source)


def difference(
    statement: str, mine: Sequence[Clause], theirs: Sequence[Clause], window: Window, known: Sequence[Interval]
) -> Message | None:
    """Why the source does not hold every number of the statement, or not together; None if it does."""
    sold = bool(_SOLD.search(statement))
    source = [number for clause in theirs if sold or not _SOLD_AS.match(clause.text) for number in clause.numbers]
    source += intervals(window.titles)
    own = [number for clause in mine for number in clause.numbers]
    own_limits = [number for number in own if not number.point and any(number.meets(other) for other in source)]
    for clause in mine:
        for number in clause.numbers:
            if not held(number, [*source, *known, *own_limits], clause.text):
                alike = any(set(number.written) <= set(other.written) for other in source)
                return UNIT if alike else NUMBER
            if _other_unit(number, source) or _other_rate(number, source):
                return UNIT
    return APART if apart(mine, theirs, [*known, *intervals(window.titles)], own_limits) else None


def _other_unit(number: Interval, source: Sequence[Interval]) -> bool:
    """Whether the source writes the number with another unit of its kind, and nowhere with this one."""
    same = [other for other in source if other.kind == number.kind and set(number.written) & set(other.written)]
    return bool(number.kind and same) and not any(number.meets(other) for other in same)


def _other_rate(number: Interval, source: Sequence[Interval]) -> bool:
    """Whether the source gives the number in another time, and nowhere in this one or in none."""
    same = [other for other in source if number.meets(other)]
    return bool(number.rate and same) and all(other.rate not in ("", number.rate) for other in same)


def worked_out(statement: str, window: Window, known: Sequence[Interval]) -> list[Interval]:
    """What body weights that are stated or ``known`` make of doses per kilogram, where that is stated; the weights too.

    Of the sentences about the medicines of the statement; a product above a limit of such a sentence is none of them.
    """
    stated, named = intervals(statement), medicines.names(statement)
    weights = [number for number in (*stated, *known) if number.kind == "kg" and number.point]
    doses: list[Interval] = []
    lines = window.around.splitlines() if weights else ()
    for sentence in (line[start:end] for line in lines for start, end in sentences(line)):
        numbers = intervals(sentence)
        limits = [other for other in numbers if other.side == "upper" and not other.rate]
        for rate in numbers if not named or medicines.names(sentence) & named else ():
            kind, per, _ = rate.kind.partition("/kg")
            for weight in weights if per else ():
                low, high = rate.low * weight.low, rate.high * weight.low
                product = replace(rate, kind=kind, low=low, high=high, written=(low, high))
                within = all(other.high >= high for other in limits if other.kind == kind)
                if within and any(number.kind == kind and number.meets(product) for number in stated):
                    doses += [weight, product]
    return doses


def apart(
    mine: Sequence[Clause], theirs: Sequence[Clause], known: Sequence[Interval], limits: Sequence[Interval] = ()
) -> bool:
    """Whether the numbers of a clause stand in no one sentence of the source together; ``limits`` are its own."""
    sentences: dict[int, list[Interval]] = {}
    for clause in theirs:
        sentences.setdefault(clause.sentence, []).extend(clause.numbers)
    for clause in mine:
        stated = [
            number
            for number in clause.numbers
            if not any(number.meets(other) for other in known)
            and not any(other.holds(number) for other in (*known, *limits))
        ]
        if len(stated) > 1 and not any(
            all(held(number, numbers, clause.text) for number in stated) for numbers in sentences.values()
        ):
            return True
    return False


def other_pair(mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether a clause gives with a limit what the source's clauses with that limit give otherwise.

    "Over 2 years 100 mL", where the source says "6 months to 2 years 100 mL, over 2 years 150 mL".
    """
    for clause in mine:
        for limit in (number for number in clause.numbers if number.side and number.kind not in (*DOSES, "hours")):
            under = [other for other in theirs if any(limit.side == n.side and limit.meets(n) for n in other.numbers)]
            for dose in (number for number in clause.numbers if number.kind in DOSES):
                kinds = [other for other in under if any(n.kind == dose.kind for n in other.numbers)]
                if kinds and not any(_in(dose, other) for other in kinds):
                    return True
    return False


def other_cell(mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether a number of the statement stands in its row under another header than the one that its words name."""
    for clause in mine:
        for number in clause.numbers:
            rows = {other.sentence for other in theirs if other.cell and _in(number, other)}
            if rows and all(_elsewhere(clause, number, [o for o in theirs if o.sentence == row]) for row in rows):
                return True
    return False


def _elsewhere(clause: Clause, number: Interval, cells: Sequence[Clause]) -> bool:
    """Whether the ``clause`` has words of the header of another number of the kind, and fewer of this one's."""
    own = _headers(cell for cell in cells if _in(number, cell))
    others = [
        _headers([cell])
        for cell in cells
        if not _in(number, cell) and any(other.kind == number.kind for other in cell.numbers)
    ]
    named = max((len((clause.words & other) - own) for other in others), default=0)
    return named > len((clause.words & own) - frozenset[str]().union(*others))


def _headers(cells: Iterable[Clause]) -> frozenset[str]:
    return frozenset[str]().union(*(concepts(cell.text.partition(":")[0]) for cell in cells))


def _in(number: Interval, clause: Clause) -> bool:
    return any(number.meets(other) for other in clause.numbers)


def other_medicine(mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether the source's clauses with the words of a clause speak of another medicine than that names."""
    for clause in mine:
        named = medicines.names(clause.text)
        if not medicines.ingredients(clause.text) or len(clause.words) < WORDS:
            continue
        own = max((_words(clause, other) for other in theirs if other.medicines & named), default=0.0)
        other = max((_words(clause, o) for o in theirs if o.medicines and not o.medicines & named), default=0.0)
        if other >= ALIKE and other - own >= MORE_ALIKE:
            return True
    return False


def nearer_medicine(statement: str, window: Window) -> bool:
    """Whether the sources say what the statement says of one of its medicines in a sentence that names another one in
    its place, and next to nothing of it in those that name the statement's. Shared words and numbers count alike.
    """
    mine, numbers, named = words(_unnamed(statement)), intervals(statement), medicines.names(statement)
    there = [(_shared(mine, numbers, one.text), medicines.names(one.text)) for one in window.all_sentences]
    for mention in medicines.mentions(statement):
        own = {*mention.ingredients, *mention.classes}
        nearest = max((shared for shared, names in there if names - named and not names & own), default=0)
        most = max((shared for shared, names in there if names & own), default=nearest)
        if mention.ingredients and nearest >= WORDS and most <= FARTHER * nearest:
            return True
    return False


def _shared(mine: frozenset[str], numbers: Sequence[Interval], sentence: str) -> int:
    there = intervals(sentence) if numbers else ()
    same = sum(any(number.meets(other) for other in there) for number in numbers)
    return same + len(mine & words(_unnamed(sentence)))


def _unnamed(text: str) -> str:
    """``text`` without the names of medicines."""
    folded = fold(text)
    for mention in reversed(medicines.mentions(text)):
        folded = f"{folded[: mention.start]} {folded[mention.end :]}"
    return folded


def other_number(mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether the source's clause with the words of a clause has another number of the kind than that gives."""
    sentences = [
        [other for other in theirs if other.sentence == number] for number in {other.sentence for other in theirs}
    ]
    whole = [_whole(parts) for parts in sentences if not parts[0].cell]
    for clause in mine:
        for number in clause.numbers if len(clause.words) > WORDS else ():
            own = max((_words(clause, other) for other in whole if held(number, other.numbers, "")), default=None)
            rivals = [
                _words(clause, other)
                for other in whole
                if any(there.kind == number.kind for there in other.numbers) and not held(number, other.numbers, "")
            ]
            if own is not None and max(rivals, default=0.0) >= max(ALIKE, own + MORE_ALIKE):
                return True
    return False


def _whole(parts: Sequence[Clause]) -> Clause:
    """The clauses of one sentence as one."""
    words = frozenset[str]().union(*(part.words for part in parts))
    return replace(parts[0], words=words, numbers=tuple(number for part in parts for number in part.numbers))


def condition_dropped(statement: str, mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether the statement gives a dose and nothing of the condition under which its source gives that."""
    doses = [number for clause in mine for number in clause.numbers if number.kind in DOSES]
    their_words = frozenset[str]().union(*(clause.words for clause in mine))
    numbers = [number for clause in mine for number in clause.numbers]
    for source in theirs if doses and not _conditional(fold(statement)) else ():
        if any(_in(number, source) for number in doses) and not source.cell:
            for match in _CONDITION.finditer(source.text):
                words = concepts(match[0])
                shared = any(number.meets(other) for number in intervals(match[0]) for other in numbers)
                if len(words) >= WORDS and not words & their_words and not shared:
                    return True
    return False


def _conditional(folded: str) -> bool:
    return bool(_CONDITIONAL.search(folded) or _ONCE.search(folded))


def _words(clause: Clause, other: Clause) -> float:
    shared = len(clause.words & other.words)
    return shared / len(clause.words) if shared >= WORDS else 0.0


def other_side(mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether a limit of the statement is on the other side than where the source's clause most like it names it."""
    return any(number.side and _against(clause, number, theirs) for clause in mine for number in clause.numbers)


def _against(clause: Clause, number: Interval, theirs: Sequence[Clause]) -> bool:
    along, against = 0.0, 0.0
    for source in theirs:
        sides = {other.side for other in source.numbers if number.meets(other) and other.side}
        like = share(clause, source)
        if number.side in sides or (sides and _turned(clause, source)):
            along = max(along, like)
        elif sides:
            against = max(against, like)
    return against >= LEAST and against > along + (CLEARLY if along else 0.0)


def _turned(clause: Clause, source: Clause) -> bool:
    """Whether one of the two says it the other way round, with the other side: "unless below", "not needed above"."""
    flips = bool(_FLIPS.search(clause.text)) != bool(_FLIPS.search(source.text))
    return flips or negation.denies(clause.text) != negation.denies(source.text)


def limit_as_dose(mine: Sequence[Clause], theirs: Sequence[Clause]) -> bool:
    """Whether the statement gives as a dose what the source names only as a limit."""
    source = [number for clause in theirs for number in clause.numbers]
    for clause in mine:
        for number in clause.numbers:
            same = [other for other in source if number.meets(other) and number.kind == other.kind]
            if number.kind in DOSES and not number.side and same and all(other.side for other in same):
                return True
    return False


def numbers_of(texts: Sequence[str]) -> tuple[Interval, ...]:
    """The numbers of the question and the record."""
    return tuple(number for text in texts for number in intervals(text))
