"""What a patient's record has to do with the lines that an answer quotes: both sides quoted, nothing judged.

- Allergy: a line names the medicine, a member of the class, or one of a class that may react like it. What the record
  denies, or tells of a relative, is no allergy.
- Pregnancy: a line warns of it, and is on a medicine taken, asked about or proposed.
- Interaction: a list of terms names one; or a line names a medicine of the record and one asked about or another of the
  record. A line under the name of one medicine counts for it, and the name of a class for its members, if it warns or
  tells of an effect. One that the sources only propose counts by its own name in a line that warns or tells.
- Caution: a line warns and names a medicine of the record or its class.
- Limit: a line gives a range for a medicine taken, asked about or proposed, and a value of the record is in it.
- Value: a value of the record is in a range that a line gives, or misses a target or reference range.

A table's row on another medicine never counts, nor does a medicine that the record calls stopped. Other entries that
are only quoted from the record count: the reader decides. Limits of doses, ages and other reactions across classes are
not judged.
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
from localmed.text.language import aligned, detect, fold
from localmed.text.negation import denies, tells_of_an_effect, warns
from localmed.text.synonyms import Named
from localmed.text.tables import Names, cues

Known: TypeAlias = Mapping[tuple[str, float], tuple[Measured, str]]  # with the record's words of what it only quotes
INTERACTS = "interacts_with"
QUOTED = 5  # sentences below a warning; all names stand above them
NAMED = (EntryKind.MEDICINE, EntryKind.NAMED)
_REACTION, _PREGNANCY = cues("records", "quoted"), cues("records", "pregnancy")
_STOPPED, _NOT_STOPPED = cues("records", "stopped"), cues("records", "not_stopped")
_VALUE = r"(?:\s*(?:was|is|of|[:=]))?\s*\d[\d.]*(?!\s*(?:m?g|mcg|ml|tab|cap|[%\d.])|\s*mmol\s+(?:bd|tds|od|daily))"
_ALTERNATIVE = re.compile(r"\s*(?:[,，、/]|(?P<or>,?\s*\bor\b|或))\s*(?:(?:an?|the)\s+)?")
_CLAUSE = re.compile(r"[^,，;；。.]+")
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


@dataclass(frozen=True, slots=True)
class Concern:
    """The medicines that lines are read for: ``own`` of the record, ``asked`` about, or ``proposed`` by the sections.

    ``kinds`` of treatment are asked about; names are told in ``language``.
    """

    own: frozenset[str]
    asked: frozenset[str]
    proposed: frozenset[str]
    kinds: Sequence[Named] = ()
    language: str = "en"

    @property
    def all(self) -> frozenset[str]:
        """All of them."""
        return self.own | self.asked | self.proposed

    def called(self, *names: str) -> str:
        """An ingredient or a combination in the reader's language; what has no name in it as written."""
        return medicines.name_in(self.language, *names) or (names[0] if len(names) == 1 else "")


def named_above(passage: Passage) -> frozenset[str]:
    """The ingredients in the title and headings of a passage."""
    return medicines.ingredients(" ; ".join((passage.title, *passage.headings)))


def taken(entry: RecordEntry) -> frozenset[str]:
    """The ingredients of an entry that names a medicine, as taken or not, unless it says that it is stopped.

    A sentence on a reaction counts too, but for the medicine beside it: "on warfarin, allergic to penicillin". What is
    measured ("glucose 9.1") does not.
    """
    if entry.kind not in NAMED or _is_stopped(entry):
        return frozenset()
    own = medicines.ingredients(entry.text)
    if entry.kind is EntryKind.MEDICINE:
        return own
    both = own & {one.name for one in measures.all_measures()}
    values = {name for name in both if re.search(rf"(?i)\b{name}\b{_VALUE}", entry.words)}
    return own - values - {name for one in medicines.allergens(entry.words) for name in one.ingredients}


def _is_stopped(entry: RecordEntry) -> bool:
    """Whether each clause that names a medicine only named by the record says that it is stopped."""
    own = medicines.ingredients(entry.text)
    clauses = [one[0] for one in _CLAUSE.finditer(entry.words) if own & medicines.ingredients(one[0])]
    sure = entry.kind is EntryKind.NAMED and bool(clauses) and not _NOT_STOPPED.search(entry.words)
    return sure and all(_STOPPED.search(clause) for clause in clauses)


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


def allergies(record: PatientRecord, statements: Sequence[Statement], language: str) -> Iterator[AllergyPart]:
    """The record's allergies to medicines in ``statements``, with these sentences; first those of a list."""
    told = set[tuple[str, ...]]()
    quoted = [
        it for it in record.entries if it.kind in (EntryKind.UNREAD, EntryKind.NAMED) and _REACTION.search(it.words)
    ]
    for entry in (*(it for it in record.entries if it.kind is EntryKind.ALLERGY), *quoted):
        listed = entry.kind is EntryKind.ALLERGY
        own = entry.text if listed else medicines.without_denied_allergens(entry.text, entry.words)
        named = [(statement, medicines.met_by(own, statement.text)) for statement in statements]
        matching = _in_language([(statement, matches) for statement, matches in named if matches], language)
        names = dict.fromkeys(name for matches in matching.values() for name in matches)
        if names and (entry.words, *names) not in told:
            told.add((entry.words, *names))
            yield AllergyPart(entry, tuple(names), tuple(matching)[:QUOTED])


def listed_interactions(record: PatientRecord, named: str, relations: Sequence[Relation]) -> Iterator[InteractionPart]:
    """The record's medicines that interact with ``named`` by ``relations`` of the concept graph."""
    own = medicines.ingredients(named)
    for relation in relations:
        if relation.predicate == INTERACTS:
            partners = medicines.ingredients(f"{relation.subject_name}; {relation.object_name}") - own
            for entry in _each_once(record):
                if partners & taken(entry):
                    yield InteractionPart(entry, named, relation.source.collection)


def told_together(text: str, above: Set[str], of: Concern) -> Set[tuple[str, str]]:
    """The pairs of an ``own`` and another medicine, or kind of treatment, that a line names.

    A line under a name, with the name of a class, or on a medicine that is only proposed tells of a pair only if it
    warns or tells of an effect, and so does a table's row, which tells of its own medicine. Alternatives are no pair.
    A line under the name of an ``own`` medicine tells of each of the ``kinds`` of treatment that it names.
    """
    written, folded, cells = medicines.ingredients(text), fold(text), _cells(text)
    of_kinds = {(mine, one.written) for one in of.kinds if Names(one.names).matches(folded) for mine in above & of.own}
    tells = warns(cells) or tells_of_an_effect(cells)
    forbids, is_row = tells or denies(fold(cells)), cells != text
    if _is_on_another(text, of.all) or (is_row and not forbids):
        return of_kinds
    words: dict[str, tuple[str, ...]] = {name: (name,) for name in written & (of.own | of.asked)}
    words |= _of_classes(text, (of.own | of.asked) - written) if tells else {}
    words |= {name: (name,) for name in above & (of.own | of.asked) - words.keys()} if tells and words else {}
    words |= {name: (name,) for name in written & of.proposed} if forbids else {}
    lists = _alternatives(folded, words, tells)
    first = medicines.ingredients(_BETWEEN.split(text)[0]) if begins_with_a_medicine(text) else words.keys()
    return of_kinds | {
        (mine, other)
        for mine in words.keys() & of.own
        for other in words.keys() - {mine}
        if (other in of.own | of.asked or mine in written)
        and first & {mine, other}
        and words[mine] != words[other]
        and not any({*words[mine]} & names and {*words[other]} & names for names in lists)
    }


def _of_classes(text: str, rest: Set[str]) -> dict[str, tuple[str, ...]]:
    """Of the ``rest`` of the medicines: the words for their classes in a line."""
    if not medicines.named_in("; ".join(sorted(rest)), text, pairs=True):
        return {}
    return {name: found for name in rest if (found := medicines.named_in(name, text, pairs=True))}


def _alternatives(folded: str, words: Mapping[str, tuple[str, ...]], tells: bool) -> list[set[str]]:
    """The names that only commas or "or" part; where a line ``tells``, only lists with an "or"."""
    named = {one.written: {one.written, *one.ingredients} for one in medicines.mentions(folded)}
    named |= {word: {word} for found in words.values() for word in found if word not in named}
    lists, end = list[tuple[set[str], bool]](), -1
    names = "|".join(re.escape(name) for name in sorted(named, key=len, reverse=True))
    for one in re.finditer(rf"(?P<name>{names})s?", folded) if named else ():
        joint = _ALTERNATIVE.fullmatch(folded, end, one.start()) if end >= 0 else None
        others, either = lists.pop() if joint else (set(), False)
        lists.append((others | named[one["name"]], either or bool(joint and joint["or"])))
        end = one.end()
    return [names for names, either in lists if either or not tells]


def interactions(record: PatientRecord, quotes: Sequence[Quote], of: Concern) -> Iterator[InteractionPart]:
    """The record's medicines that lines name with an asked or proposed one, another of the record, or ``kinds``."""
    told = set[tuple[str, str, str]]()
    pairs = [(one.statement, told_together(one.text, one.above, of)) for one in quotes]
    for entry in _each_once(record):
        mine = taken(entry)
        found: dict[Statement, list[str]] = {}
        for statement, of_line in pairs:
            for one, other in sorted(of_line):
                if (
                    one in mine and other not in mine and (other, one, statement.text) not in told
                ):  # not from both sides
                    told.add((one, other, statement.text))
                    found.setdefault(statement, []).append(of.called(other))
        kept = _in_language([*found.items()], of.language)
        if names := sorted({name for of_line in kept.values() for name in of_line}):
            yield InteractionPart(entry, ", ".join(names), "", tuple(kept)[:QUOTED])


def cautions(
    record: PatientRecord, of: Concern, statements: Sequence[Statement], told: Set[str]
) -> Iterator[CautionPart]:
    """The record's medicines that warnings among ``statements`` name, or whose class they name.

    Left out are a table's rows on a medicine that was not ``asked`` about, the texts that an interaction has ``told``,
    and what is for another range of the results.
    """
    results = [(measures.by_name(one.name), one.value) for one in record.results]
    warnings = [
        one
        for one in statements
        if warns(_cells(one.text))
        and not _is_on_another(one.text, of.asked)
        and not measures.excludes(one.text, results)
    ]
    for entry in _each_once(record):
        named = [(one, written) for one in warnings if (written := medicines.named_in(entry.text, one.text))]
        own = [one for one in named if detect(one[0].text) == of.language] or named
        own = [one for one in own if one[0].text not in told]
        if names := dict.fromkeys(name for _, written in own for name in written):
            yield CautionPart(entry, tuple(names), tuple(one for one, _ in own)[:QUOTED])


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


def limits_of_others(record: PatientRecord, quotes: Sequence[Quote], of: Concern) -> Iterator[CautionPart]:
    """The record's values, with the lines for them on medicines that are asked about or proposed, not taken."""
    known = known_values(record)
    found = [
        (one.statement, names, _bearing(one.text, known, of.asked))
        for one in quotes
        if (names := _others(one.text, one.above, of))
    ]
    kept = _in_language([(statement, names) for statement, names, held in found if held], of.language)
    values = dict.fromkeys(one for statement, _, held in found for one in held if statement in kept)
    if kept:
        quoted = dict.fromkeys(known[one.name, one.value][1] for one in values)
        entry = RecordEntry(EntryKind.RESULT, "", "; ".join(filter(None, quoted)))
        told = dict.fromkeys(name for names in kept.values() for name in names)
        yield CautionPart(entry, tuple(told), tuple(kept), tuple(values))


def _others(text: str, above: Set[str], of: Concern) -> tuple[str, ...]:
    """The medicines not taken that a line is on: by name, or if asked about also by class or heading.

    A table's row is on the medicine that it begins with: the one for a value is told beside the value.
    """
    in_list = begins_with_a_medicine(text)
    if _cells(text) != text and not in_list:
        return ()
    own_cell = _BETWEEN.split(text)[0] if in_list else text
    written = [
        _name(it, of)
        for it in medicines.mentions(own_cell)
        if it.ingredients and {*it.ingredients} <= of.asked | of.proposed and not {*it.ingredients} <= of.own
    ]
    return tuple(written) or tuple(of.called(name) for name in sorted(of.asked - of.own) if is_on(text, above, {name}))


def _name(mention: medicines.Mention, of: Concern) -> str:
    as_written = len(mention.ingredients) > 1 and mention.written.isascii() is (of.language == "en")
    return mention.written if as_written else of.called(*mention.ingredients) or mention.written


def _bearing(text: str, known: Known, asked: Set[str]) -> list[Measured]:
    """The values that a line is for; in a row on an ``asked`` medicine also those that it names without a range."""
    held = held_values(text, known)
    if not (begins_with_a_medicine(text) and asked & medicines.ingredients(_BETWEEN.split(text)[0])):
        return held
    named = [one for one in measures.mentioned(_cells(text)) if not measures.gives_a_range(text, one)]
    return [*held, *(one for one, _ in known.values() if one not in held and measures.by_name(one.name) in named)]


def pregnancy(record: PatientRecord, quotes: Sequence[Quote], of: Concern) -> Iterator[CautionPart]:
    """The record's pregnancy, with lines that warn of it and are on a medicine taken, asked about or proposed."""
    entry = next((it for it in record.entries if it.kind is EntryKind.PREGNANCY and it.text == "yes"), None)
    if entry:
        warning = [one for one in quotes if _warns_of_pregnancy(one.text)]
        taken_or_asked = sorted(of.own | of.asked)
        found = [
            (
                one.statement,
                (
                    *(of.called(name) for name in taken_or_asked if is_on(one.text, one.above, {name})),
                    *_others(one.text, one.above, of),
                ),
            )
            for one in warning
        ]
        if kept := _in_language([(statement, names) for statement, names in found if names], of.language):
            yield CautionPart(entry, tuple(dict.fromkeys(name for it in kept.values() for name in it)), tuple(kept))


def _warns_of_pregnancy(text: str) -> bool:
    parts = (part for part in _BETWEEN.split(_cells(text)) if _PREGNANCY.search(part))
    return any(warns(part) or denies(fold(part)) for part in parts)


def _in_language(found: Sequence[tuple[Statement, Sequence[str]]], language: str) -> dict[Statement, Sequence[str]]:
    """Statements with the medicines that they name: those of another language only on medicines that no other names."""

    def keys(names: Sequence[str]) -> Set[str]:
        return {*names, *medicines.names("; ".join(names))}

    own = {statement for statement, _ in found if detect(statement.text) == language}
    told = {name for statement, names in found if statement in own for name in keys(names)}
    return {statement: names for statement, names in found if statement in own or not told & keys(names)}


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


def bears_on(text: str, passage: Passage, record: PatientRecord, of: Concern) -> bool:
    """Whether a line of the library tells of a pair of medicines, or of a pregnancy or limit of one of them."""
    above, known = named_above(passage), known_values(record)
    others = _others(text, above, of)
    return bool(
        told_together(text, above, of)
        or (_warns_of_pregnancy(text) and (others or is_on(text, above, of.own | of.asked)))
        or (is_on(text, above, of.own) and held_values(text, known))
        or (others and _bearing(text, known, of.asked))
    )


def has_a_range(text: str, passage: Passage, record: PatientRecord) -> bool:
    """Whether a value of the record is outside a reference range, or in another range of a passage on its measure."""
    subject = measures.mentioned(" ; ".join((passage.title, *passage.headings)))
    for value, _ in known_values(record).values():
        measure = measures.by_name(value.name)
        own = measure in subject and measures.gives_a_range(text, measure)
        if measures.outside_reference(text, measure, value.value) or (
            own and measures.falls_in_sentence(text, measure, value.value, alone=True)
        ):
            return True
    return False


def _cells(text: str) -> str:
    """A row without its headers: "Notes" warns of nothing. Other text as it is."""
    cells = [_CELL.match(cell) for cell in _BETWEEN.split(text)]
    return " ; ".join(cell["text"] for cell in cells if cell) if len(cells) > 1 and all(cells) else text


# --- values -----------------------------------------------------------------------------------------------------------


def values(
    record: PatientRecord, quotes: Sequence[Quote], nearest: Sequence[Quote], of: Concern
) -> Iterator[ValuePart]:
    """The record's values: each with the ``quotes`` whose range contains it, then with targets that it misses.

    Targets count in the ``nearest`` quotes, reference ranges in all. Lines on other medicines than the asked ones are
    left out, rows on medicines of nobody always. Sentences in table rows count only on an asked or proposed medicine.
    One kidney value stands for the other where only one is known.
    """
    known = known_values(record)
    both_kidneys = _has_both_kidneys(known)
    quotes = [one for one in quotes if _is_on_asked(one, of.asked) and not _is_on_another(one.text, of.all)]
    proposed = of.asked or of.proposed
    told = set[tuple[str, tuple[Statement, ...]]]()
    for result, words in known.values():
        measure = measures.by_name(result.name)

        def holds(one: Quote, measure: measures.Measure = measure, value: float = result.value) -> bool:
            in_row = one.is_row and _is_row_of(measure, one.text, value, known)
            read = not one.is_row or bool(proposed & medicines.ingredients(one.text))
            return in_row or (read and measures.falls_in_sentence(one.text, measure, value, both_kidneys))

        def misses(one: Quote, measure: measures.Measure = measure, value: float = result.value) -> bool:
            aimed = one in nearest and measures.misses_target(one.text, measure, value)
            return aimed or measures.outside_reference(one.text, measure, value)

        matching = _of_language((one.statement for one in quotes if holds(one)), of.language)
        kind = "kidneys" if measure.name in measures.KIDNEYS else f"{measure.name} {result.value}"
        if matching and (kind, matching) not in told:
            told.add((kind, matching))
            yield ValuePart(result, matching, words)
        if targets := _of_language((one.statement for one in quotes if misses(one)), of.language):
            yield ValuePart(result, targets[:QUOTED], words, target=True)


def _of_language(statements: Iterable[Statement], language: str) -> tuple[Statement, ...]:
    """The statements of a language, each once; all if there are none."""
    found = tuple(dict.fromkeys(statements))
    return tuple(one for one in found if detect(one.text) == language) or found


def _has_both_kidneys(known: Known) -> bool:
    """Whether neither kidney value need stand for the other."""
    return {*measures.KIDNEYS} <= {name for name, _ in known}


def known_values(record: PatientRecord) -> Known:
    """By measure and value: the results, then with its words those only quoted, measured nobody knows when."""
    quoted = [
        entry for entry in record.entries if entry.kind is EntryKind.UNREAD and not measures.BOUND.search(entry.text)
    ]
    found = [(one, entry.words) for entry in quoted for one in measures.measured(fold(aligned(entry.text)))]
    once: dict[tuple[str, float], tuple[Measured, str]] = {}
    for one, words in (*((one, "") for one in record.results), *found):
        once.setdefault((one.name, one.value), (one, words))
    return once


def _is_on_asked(one: Quote, asked: Set[str]) -> bool:
    """Whether a line names no medicine, or an ``asked`` one; a sentence may name others where its passage does."""
    named = {name for name in medicines.ingredients(one.text) if not measures.mentioned(name)}
    if not asked or not named or asked & named:
        return True
    of_passage: Set[str] = medicines.ingredients(one.passage.text) if one.passage else named
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
