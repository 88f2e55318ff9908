"""What a patient's record has to do with the lines that an answer quotes: both sides quoted, nothing judged.

- Allergy: a line names the medicine, a member of the class, or one of a class that may react like it.
- Interaction: a list of terms names one; or a line names a medicine of the record and one asked about or another of the
  record. A line under the name of one medicine counts for it, and the name of a class for its members, if it warns or
  tells of an effect.
- Caution: a line warns and names a medicine of the record or its class.
- Limit: a line gives a range for a medicine of the record, and a value of the record is in it.
- Value: a value of the record is in a range that a line gives, or misses a target.

A table's row on another medicine never counts. Entries that are only quoted from the record count too: the reader
decides. Limits of doses, ages, pregnancy and other reactions across classes are not judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from localmed.domain import Passage, Statement
from localmed.domain.parts import AllergyPart, CautionPart, InteractionPart, ValuePart
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.library.graph import Relation
from localmed.retrieval.marks import begins_with_a_medicine
from localmed.text import measures, medicines
from localmed.text.language import aligned, fold
from localmed.text.negation import tells_of_an_effect, warns
from localmed.text.synonyms import Named
from localmed.text.tables import Names, cues

Known: TypeAlias = Mapping[tuple[str, float], tuple[Measured, str]]  # with the record's words of what it only quotes
INTERACTS = "interacts_with"
QUOTED = 5  # sentences below a warning; all names stand above them
NAMED = (EntryKind.MEDICINE, EntryKind.NAMED)
_REACTION = cues("records", "quoted")
_VALUE = r"(?:\s*(?:was|is|of|[:=]))?\s*\d[\d.]*(?!\s*(?:m?g|mcg|ml|tab|cap|[%\d.])|\s*mmol\s+(?:bd|tds|od|daily))"
_BOUND = re.compile(r"[<>≥≤]")
_OR = re.compile(r"\s*(?:[,，、/]|,?\s*\bor\b|或)\s*")
_BETWEEN = re.compile(r"[;；]\s*")  # cells of a row
_AND = re.compile(r"\s*(?:and\b|并?且|和|及)\s*", re.IGNORECASE)  # a cell between two ranges, or before the second
_CELL = re.compile(r"(?P<header>[^:：]+)[:：]\s*(?P<text>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence or row, and the passage that it is from; a model's sentence has none."""

    statement: Statement
    passage: Passage | None = None

    @property
    def text(self) -> str:
        """Its words."""
        return self.statement.text

    @property
    def above(self) -> frozenset[str]:
        """The ingredients in the title and headings above it."""
        return named_above(self.passage) if self.passage else frozenset()

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table."""
        return bool(self.passage and self.passage.table)


def named_above(passage: Passage) -> frozenset[str]:
    """The ingredients in the title and headings of a passage."""
    return medicines.ingredients(" ; ".join((passage.title, *passage.headings)))


def taken(entry: RecordEntry) -> frozenset[str]:
    """The ingredients of an entry that names a medicine, as taken or not.

    A sentence on a reaction counts too, but for the medicine beside it: "on warfarin, allergic to penicillin". What is
    measured ("glucose 9.1") does not.
    """
    if entry.kind not in NAMED:
        return frozenset()
    own = medicines.ingredients(entry.text)
    if entry.kind is EntryKind.MEDICINE:
        return own
    both = own & {one.name for one in measures.all_measures()}
    values = {name for name in both if re.search(rf"(?i)\b{name}\b{_VALUE}", entry.words)}
    return own - values - {name for one in medicines.allergens(entry.words) for name in one.ingredients}


def all_taken(record: PatientRecord) -> frozenset[str]:
    """The ingredients of all entries."""
    return frozenset[str]().union(*map(taken, record.entries))


def _each_once(record: PatientRecord) -> list[RecordEntry]:
    """The entries that name medicines; of those with the same ingredients the first of a list, if any, else all."""
    listed: dict[frozenset[str], RecordEntry] = {}
    for entry in record.entries:
        if entry.kind is EntryKind.MEDICINE:
            listed.setdefault(taken(entry), entry)
    return [one for one in record.entries if (own := taken(one)) and listed.get(own, one) == one]


def _is_on_another(text: str, asked: Set[str]) -> bool:
    """Whether ``text`` is a table's row on another medicine."""
    first = medicines.ingredients(_BETWEEN.split(text)[0])
    return begins_with_a_medicine(text) and bool(first) and not first & asked


# --- names ------------------------------------------------------------------------------------------------------------


def allergies(record: PatientRecord, statements: Sequence[Statement]) -> Iterator[AllergyPart]:
    """The record's allergies to medicines in ``statements``, with these sentences."""
    told = set[tuple[str, ...]]()
    for entry in record.entries:
        quoted = entry.kind in (EntryKind.UNREAD, EntryKind.NAMED) and _REACTION.search(entry.words)
        if entry.kind is EntryKind.ALLERGY or quoted:
            named = [(statement, medicines.met_by(entry.text, statement.text)) for statement in statements]
            names = dict.fromkeys(name for _, matches in named for name in matches)
            if names and (entry.words, *names) not in told:
                told.add((entry.words, *names))
                matching = tuple(statement for statement, matches in named if matches)
                yield AllergyPart(entry, tuple(names), matching[:QUOTED])


def listed_interactions(record: PatientRecord, named: str, relations: Sequence[Relation]) -> Iterator[InteractionPart]:
    """The record's medicines that interact with ``named`` by ``relations`` of the concept graph."""
    own = medicines.ingredients(named)
    for relation in relations:
        if relation.predicate == INTERACTS:
            partners = medicines.ingredients(f"{relation.subject_name}; {relation.object_name}") - own
            for entry in _each_once(record):
                if partners & taken(entry):
                    yield InteractionPart(entry, named, relation.source.collection)


def told_together(
    text: str, above: Set[str], own: Set[str], asked: Set[str], kinds: Sequence[Named] = ()
) -> Mapping[tuple[str, str], str]:
    """Of each pair of an ``own`` and another medicine that a line names: how it writes the other one.

    A line under a name, or with the name of a class, tells of a pair only if it warns or tells of an effect. A line
    under the name of an ``own`` medicine tells of each of the ``kinds`` of treatment that it names.
    """
    written, either = medicines.ingredients(text), own | asked
    folded = fold(text)
    of_kinds = {(mine, kind.written) for kind in kinds if Names(kind.names).matches(folded) for mine in above & own}
    if _is_on_another(text, either):
        return {pair: pair[1] for pair in of_kinds}
    words: dict[str, tuple[str, ...]] = {name: (name,) for name in written & either}
    cells, rest = _cells(text), either - written
    lists = [] if (tells := warns(cells) or tells_of_an_effect(cells)) else _lists(folded)
    if tells:
        if medicines.named_in("; ".join(sorted(rest)), text, pairs=True):
            of_classes = {name: medicines.named_in(name, text, pairs=True) for name in rest}
            words |= {name: found for name, found in of_classes.items() if found}
        if words:
            words |= {name: (name,) for name in above & either - words.keys()}
    return {pair: pair[1] for pair in of_kinds} | {
        (mine, other): _as_written(other, words[other][0])
        for mine in words.keys() & own
        for other in words
        if mine != other and words[mine] != words[other] and not any({mine, other} <= names for names in lists)
    }


def _lists(folded: str) -> list[set[str]]:
    """The ingredients of names that only commas or "or" part: they are alternatives."""
    lists, end = list[set[str]](), -1
    for one in medicines.mentions(folded):
        if end >= 0 and _OR.fullmatch(folded, end, one.start):
            lists[-1] |= {*one.ingredients}
        else:
            lists.append({*one.ingredients})
        end = one.end
    return lists


def _as_written(name: str, word: str) -> str:
    """An ingredient with the name of its class in the text; ``word`` alone for what is no ingredient."""
    return word if word == name or not medicines.ingredients(name) else f"{name} ({word})"


def interactions(
    record: PatientRecord, asked: Set[str], quotes: Sequence[Quote], kinds: Sequence[Named] = ()
) -> Iterator[InteractionPart]:
    """The record's medicines that lines name together with an ``asked`` one, another of the record, or ``kinds``."""
    own, told = all_taken(record), set[tuple[str, str, str]]()
    pairs = [(one.statement, told_together(one.text, one.above, own, asked, kinds)) for one in quotes]
    for entry in _each_once(record):
        mine = taken(entry)
        names, statements = dict[str, None](), dict[Statement, None]()
        for statement, of_line in pairs:
            for (one, other), written in of_line.items():
                if (
                    one in mine and other not in mine and (other, one, statement.text) not in told
                ):  # not from both sides
                    told.add((one, other, statement.text))
                    names[written] = statements[statement] = None
        if names:
            yield InteractionPart(entry, ", ".join(sorted(names)), "", tuple(statements)[:QUOTED])


def cautions(
    record: PatientRecord, asked: Set[str], statements: Sequence[Statement], told: Set[str]
) -> Iterator[CautionPart]:
    """The record's medicines that warnings among ``statements`` name, or whose class they name.

    Left out are a table's rows on a medicine that was not ``asked`` about, the texts that an interaction has ``told``,
    and what is for another range of the results.
    """
    results = [(measures.by_name(one.name), one.value) for one in record.results]
    warnings = [
        one
        for one in statements
        if one.text not in told
        and warns(_cells(one.text))
        and not _is_on_another(one.text, asked)
        and not measures.excludes(one.text, results)
    ]
    for entry in _each_once(record):
        named = [(one, medicines.named_in(entry.text, one.text)) for one in warnings]
        if names := dict.fromkeys(name for _, written in named for name in written):
            yield CautionPart(entry, tuple(names), tuple(one for one, written in named if written)[:QUOTED])


def limits(record: PatientRecord, quotes: Sequence[Quote]) -> Iterator[CautionPart]:
    """The record's medicines, each with lines on it that give a range with a value of the record, or a target missed.

    "If eGFR is below 30, stop metformin." A table's row counts if it begins with the medicine; a sentence also by its
    class, or under its name.
    """
    known = known_values(record)
    ranged = [(one, held) for one in quotes if (held := held_values(one.text, known))]
    for entry in _each_once(record):
        own = taken(entry)
        of_own = {one.statement: held for one, held in ranged if is_on(one.text, one.above, own)}
        if of_own:
            names = dict.fromkeys(name for one in of_own for name in medicines.named_in(entry.text, one.text))
            values = dict.fromkeys(value for held in of_own.values() for value in held)
            yield CautionPart(entry, tuple(names), tuple(of_own)[:QUOTED], tuple(values))


def is_on(text: str, above: Set[str], own: Set[str]) -> bool:
    """Whether a line is on one of the ``own`` ingredients; a table's row by its first cell."""
    named = medicines.ingredients(text)
    if _is_on_another(text, own):
        return False
    return bool(named & own or (not named and above & own) or medicines.named_in("; ".join(sorted(own)), text))


def held_values(text: str, known: Known) -> list[Measured]:
    """The ``known`` values that are in ranges that a line gives, or that miss its targets."""
    alone = _has_both_kidneys(known)
    return [
        one
        for one, _ in known.values()
        if measures.falls_in_sentence(text, measures.by_name(one.name), one.value, alone)
        or measures.misses_target(text, measures.by_name(one.name), one.value)
    ]


def _cells(text: str) -> str:
    """A row without its headers: "Notes" warns of nothing. Other text as it is."""
    cells = [_CELL.match(cell) for cell in _BETWEEN.split(text)]
    return " ; ".join(cell["text"] for cell in cells if cell) if len(cells) > 1 and all(cells) else text


# --- values -----------------------------------------------------------------------------------------------------------


def values(
    record: PatientRecord, quotes: Sequence[Quote], nearest: Sequence[Quote], asked: Set[str], proposed: Set[str]
) -> Iterator[ValuePart]:
    """The record's values: each with the ``quotes`` whose range contains it, then with targets that it misses.

    Targets count in the ``nearest`` quotes. Lines on other medicines than the ``asked`` ones are left out. Sentences in
    table rows count only on a ``proposed`` medicine. One kidney value stands for the other where only one is known.
    """
    known = known_values(record)
    both_kidneys = _has_both_kidneys(known)
    quotes, nearest = ([one for one in each if _is_on_asked(one, asked)] for each in (quotes, nearest))
    told = set[tuple[str, tuple[Statement, ...]]]()
    for result, words in known.values():
        measure = measures.by_name(result.name)

        def holds(one: Quote, measure: measures.Measure = measure, value: float = result.value) -> bool:
            in_row = one.is_row and _is_row_of(measure, one.text, value, known)
            read = not one.is_row or bool(proposed & medicines.ingredients(one.text))
            return in_row or (read and measures.falls_in_sentence(one.text, measure, value, both_kidneys))

        matching = tuple(one.statement for one in quotes if holds(one))
        of = "kidneys" if measure.name in measures.KIDNEYS else f"{measure.name} {result.value}"
        if matching and (of, matching) not in told:
            told.add((of, matching))
            yield ValuePart(result, matching, words)
        missed = (
            one.statement
            for one in nearest
            if measures.misses_target(one.text, measure, result.value)
            or measures.outside_reference(one.text, measure, result.value)
        )
        if targets := tuple(dict.fromkeys(missed)):
            yield ValuePart(result, targets[:QUOTED], words, target=True)


def _has_both_kidneys(known: Known) -> bool:
    """Whether neither kidney value need stand for the other."""
    return {*measures.KIDNEYS} <= {name for name, _ in known}


def known_values(record: PatientRecord) -> Known:
    """By measure and value: the results, then with its words those only quoted, measured nobody knows when."""
    quoted = [entry for entry in record.entries if entry.kind is EntryKind.UNREAD and not _BOUND.search(entry.text)]
    found = [(one, entry.words) for entry in quoted for one in measures.measured(fold(aligned(entry.text)))]
    once: dict[tuple[str, float], tuple[Measured, str]] = {}
    for one, words in (*((one, "") for one in record.results), *found):
        once.setdefault((one.name, one.value), (one, words))
    return once


def _is_on_asked(one: Quote, asked: Set[str]) -> bool:
    """Whether a line names no medicine, or an ``asked`` one; a sentence may name others where its passage does."""
    named = medicines.ingredients(one.text)
    if not asked or not named or asked & named:
        return True
    of_passage = medicines.ingredients(one.passage.text) if one.passage else named
    return not begins_with_a_medicine(one.text) and bool(asked & of_passage)


def _is_row_of(measure: measures.Measure, row: str, value: float, known: Iterable[tuple[str, float]]) -> bool:
    """Whether a cell of ``row`` ("Header: cell; Header: cell") has a range of ``measure`` that contains ``value``.

    With a cell or a header "and", a range of another measure must contain what is ``known`` of that: "systolic 140 or
    more; and diastolic: below 90".
    """
    cells = [cell for cell in map(_CELL.match, _BETWEEN.split(row)) if cell]
    both = any(_AND.fullmatch(cell["text"]) or _AND.match(cell["header"]) for cell in cells)
    found = False
    for cell in cells:
        of = measures.mentioned(cell["header"])
        holds = measures.within(of[0], cell["header"], cell["text"]) if len(of) == 1 else None
        others = [number for name, number in known if of and name == of[0].name]
        if holds and of == [measure]:
            found = found or holds(value)
        elif holds and both and others and not any(map(holds, others)):
            return False
    return found
