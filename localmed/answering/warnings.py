"""What the library says on what a patient's record names: looked up by name and number, both sides quoted.

- Allergy: a line names the medicine, a member of the class, or one of a class that may react like it. What the record
  denies, or tells of a relative, is no allergy.
- Pregnancy or value: a line is on a medicine taken, asked about or proposed, and speaks of pregnancy, or gives a range
  that holds the value or a target that it misses.
- Caution: a line of a section that lacks nothing of the question warns and names a medicine of the record or its class;
  elsewhere it names another one too.
- Interaction: a list of terms names one.
- Value: a line on no medicine gives a reference range that it is outside, a range that holds it, or a target that it
  misses.
- Medicine: its own entry in a list of medicines, whatever it says.

Nothing else is judged: not for whom a line is meant, nor whether the patient's illnesses forbid a medicine. A medicine
that the record calls stopped never counts. Other entries that are only quoted from the record count: the reader
decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from types import MappingProxyType
from typing import TypeAlias

from localmed.domain import Message, Passage, Statement, message
from localmed.domain.parts import AllergyPart, CautionPart, EntryPart, InteractionPart, ValuePart
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.library.graph import Relation
from localmed.retrieval.marks import begins_with_a_medicine
from localmed.text import measures, medicines
from localmed.text.language import aligned, detect, fold
from localmed.text.negation import denies, tells_of_an_effect, warns
from localmed.text.synonyms import population
from localmed.text.tables import Names, cues

Known: TypeAlias = Mapping[tuple[str, float], tuple[Measured, str]]  # with the record's words of what it only quotes
Said: TypeAlias = "tuple[CautionPart, frozenset[str]]"  # with the texts of its lines
INTERACTS = "interacts_with"
QUOTED = 5  # sentences below a warning; all names stand above them
ADULT = 18  # years
OF_VALUE = 3  # sentences below a value
NAMED = (EntryKind.MEDICINE, EntryKind.NAMED)
_REACTION, _PREGNANCY = cues("records", "quoted"), cues("records", "pregnancy")
_RELATIVE = cues("records", "relative")
_STOPPED, _NOT_STOPPED = cues("records", "stopped"), cues("records", "not_stopped")
_ONCE, _AGO = (cues("records", name).pattern for name in ("once", "ago"))
_CLAUSE = re.compile(r"(?:(?! [-–] )[^,，;；。.])+")
_ALLERGY_LIST = re.compile(r"\W*(?:\w+ )?allerg\w*[^:：\n]{0,12}[:：]|\W*过敏史?[:：]", re.IGNORECASE)
_A_VALUE = re.compile(  # "CRP 246", "lactate 2.4 mmol/L", not "smokes 20 a day"
    r"[^\W\d_][^\d,，;；。\n]{0,24}?[<>≤≥]?\d[\d.,]*+(?:\s?/\s?\d++)?(?!\s?[年月周天日岁支包次])"
    r"(?:\s?(?:[^\s\w]\S{0,14}|[^\s/]{0,8}/\S{1,14}|[a-zµμ]{1,3}))?",
    re.IGNORECASE,
)
_AGE = re.compile(r"(?:^|[;；] ?)(?:age|适用年龄|年龄)\b ?[:：]", re.IGNORECASE)  # a column
_PARTS = re.compile(r"[,，;；。]|\.(?!\d)")
_BETWEEN = re.compile(r"[;；]\s*")  # cells of a row
_AND = re.compile(r"\s*(?:and\b|并?且|和|及)\s*", re.IGNORECASE)  # a cell between two ranges, or before the second
_CELL = re.compile(r"(?P<header>[^:：]+)[:：]\s*(?P<text>.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Quote:
    """The ``text`` of a sentence or row, what is quoted for it (a short paragraph as a whole: a sentence may leave its
    condition to the one before), and the passage that it is from; a model's sentence has none.
    """

    text: str
    statement: Statement
    passage: Passage | None = None

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

    Names are told in the language of the ``question``.
    """

    own: frozenset[str]
    asked: frozenset[str]
    proposed: frozenset[str]
    question: str = ""

    @property
    def language(self) -> str:
        """The reader's language."""
        return detect(self.question)

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

    A sentence on a reaction counts too, but for the medicine beside it: "on warfarin, allergic to penicillin".
    """
    if entry.kind not in NAMED or _is_stopped(entry):
        return frozenset()
    own = medicines.ingredients(entry.text)
    if entry.kind is EntryKind.MEDICINE:
        return own
    if _ALLERGY_LIST.match(entry.words):
        return frozenset()
    return own - {name for one in medicines.allergens(entry.words) for name in one.ingredients}


def _is_stopped(entry: RecordEntry) -> bool:
    """Whether each clause that names a medicine only named by the record says that it is stopped."""
    own = medicines.ingredients(entry.text)
    clauses = [one for one in _PARTS.split(entry.words) if own & medicines.ingredients(one)]
    sure = entry.kind is EntryKind.NAMED and bool(clauses) and not _NOT_STOPPED.search(entry.words)
    return sure and all(_STOPPED.search(clause) for clause in clauses)


def all_taken(record: PatientRecord) -> frozenset[str]:
    """The ingredients of all entries."""
    return frozenset[str]().union(*map(taken, record.entries))


def _each_once(record: PatientRecord) -> list[RecordEntry]:
    """The entries that name medicines: of those with the same ingredients a list's, or all sentences as one."""
    listed: dict[frozenset[str], list[RecordEntry]] = {}
    for entry in sorted(record.entries, key=lambda it: it.kind is not EntryKind.MEDICINE):
        of = listed.setdefault(taken(entry), [])
        if not of or entry.kind is of[0].kind is EntryKind.NAMED:
            of.append(entry)
    words = {own: " … ".join(dict.fromkeys(it.words for it in of)) for own, of in listed.items() if own}
    return [replace(listed[own][0], words=told) for own, told in words.items()]


def _is_on_another(text: str, asked: Set[str]) -> bool:
    """Whether ``text`` is a table's row on another medicine."""
    first = _first(text)
    return begins_with_a_medicine(text) and bool(first) and not first & asked


# --- names ------------------------------------------------------------------------------------------------------------


def allergies(record: PatientRecord, quotes: Sequence[Quote], language: str) -> Iterator[AllergyPart]:
    """The record's allergies to medicines in ``quotes``, with what these quote; first those of a list."""
    told = list[tuple[str, set[str]]]()
    quoted = [
        it for it in record.entries if it.kind in (EntryKind.UNREAD, EntryKind.NAMED) and _REACTION.search(it.words)
    ]
    for entry in (*(it for it in record.entries if it.kind is EntryKind.ALLERGY), *quoted):
        listed = entry.kind is EntryKind.ALLERGY
        own = entry.text if listed else _without_denials(entry)
        named = [(one.statement, medicines.met_by(own, one.text)) for one in quotes]
        matching = _in_language([(statement, matches) for statement, matches in named if matches], language)
        names = dict.fromkeys(name for matches in matching.values() for name in matches)
        if names and not any(entry.words in words and {*names} <= before for words, before in told):
            told.append((entry.words, {*names}))
            yield AllergyPart(entry, tuple(names), tuple(matching)[:QUOTED])


def _without_denials(entry: RecordEntry) -> str:
    """The text of a quoted entry; if it denies an allergy, its other clauses that tell of a reaction."""
    left = medicines.without_denied_allergens(entry.text, entry.words)
    if left in (entry.text, fold(entry.text)):
        return left
    return ", ".join(one[0] for one in _CLAUSE.finditer(left) if _REACTION.search(one[0]))


def listed_interactions(record: PatientRecord, named: str, relations: Sequence[Relation]) -> Iterator[InteractionPart]:
    """The record's medicines that interact with ``named`` by ``relations`` of the concept graph."""
    own = medicines.ingredients(named)
    for relation in relations:
        if relation.predicate == INTERACTS:
            partners = medicines.ingredients(f"{relation.subject_name}; {relation.object_name}") - own
            for entry in _each_once(record):
                if partners & taken(entry):
                    yield InteractionPart(entry, named, relation.source.collection)


def cautions(
    record: PatientRecord, near: Sequence[Quote], far: Sequence[Quote], of: Concern, said: Sequence[Said] = ()
) -> Iterator[CautionPart]:
    """The record's medicines that warnings name, or whose class they name: ``far`` ones with another medicine.

    Medicines with the same lines stand together. Left out are what was ``said``, rows on another medicine, lines
    of another language on a class, and a medicine's own row unless it names two (see ``entries``).
    """
    told = frozenset[str]().union(*(texts for _, texts in said))
    shown = {(part.entry.text, statement) for part, _ in said for statement in part.statements}
    fresh = (one for one in dict.fromkeys((*near, *far)) if one.text not in told)
    read = [one for one in fresh if not _is_on_another(one.text, of.all)]
    of_one = {one for one in near if warns(_cells(one.text)) and not begins_with_a_medicine(one.text)}
    of_two = {one for one in read if _names_two(one, of)}
    together: dict[tuple[Statement, ...], list[tuple[RecordEntry, Sequence[str]]]] = {}
    for entry in _each_once(record):
        named = [
            (one.statement, _named_in(entry, one, of, alone=one in of_one))
            for one in read
            if (one in of_one or one in of_two) and (entry.text, one.statement) not in shown
        ]
        if kept := _in_language([it for it in named if it[1]], of.language):
            names = [name for words in kept.values() for name in words]
            together.setdefault(tuple(kept)[:QUOTED], []).append((entry, names))
    for statements, found in together.items():
        (first, _), *others = found
        own = dict.fromkeys(name for _, names in found for name in names)
        yield CautionPart(first, tuple(own), statements, others=tuple(entry for entry, _ in others))


def entries(
    record: PatientRecord, quotes: Sequence[Quote], of: Concern, told: Set[str] = frozenset()
) -> Iterator[EntryPart]:
    """The record's medicines, each with its rows in lists of medicines but those that are ``told``."""
    adult = record.age is not None and record.age >= ADULT
    listed = (one for one in dict.fromkeys(quotes) if begins_with_a_medicine(one.text))
    rows = {one: _first(one.text) for one in listed if not (adult and _is_for_children(one))}
    for entry in _each_once(record):
        own = [one.statement for one, first in rows.items() if first and first <= taken(entry) and one.text not in told]
        if own:
            yield EntryPart(entry, _of_language(own, of.language)[:QUOTED])


def _is_for_children(one: Quote) -> bool:
    """Whether the title or headings above a line name children, or the line gives an age."""
    above = " ; ".join((one.passage.title, *one.passage.headings)) if one.passage else ""
    return _children().matches(fold(above)) != [] or bool(_AGE.search(one.text))


@cache
def _children() -> Names:
    return Names(population("child"))


def _first(row: str) -> frozenset[str]:
    """The ingredients of the medicine that a table's row begins with."""
    return medicines.ingredients(_BETWEEN.split(row)[0])


def _names_two(one: Quote, of: Concern) -> bool:
    """Whether a line names a medicine of the record and another one, and warns, denies, tells of an effect, or is an
    entry on one of them.
    """
    cells, own_row = _cells(one.text), begins_with_a_medicine(one.text)
    if not (own_row or warns(cells) or denies(fold(cells)) or tells_of_an_effect(cells)):
        return False
    written = ((name, _written(name, one)) for name in of.all)
    words = {name: found for name, found in written if found}
    return any(not {*words[name]} & {*found} for name in words.keys() & of.own for found in words.values())


def _written(name: str, one: Quote) -> tuple[str, ...]:
    """The words of a line, or the heading above it, for an ingredient or its classes."""
    return medicines.named_in(name, one.text, pairs=True) or ((name,) if name in one.above else ())


def _named_in(entry: RecordEntry, one: Quote, of: Concern, alone: bool) -> tuple[str, ...]:
    """The words for an entry in a line; in another language than the reader's only its own name."""
    if detect(one.text) != of.language and not medicines.ingredients(one.text) & taken(entry):
        return ()
    return medicines.named_in(entry.text, one.text) if alone else _named(one, taken(entry), of)


def _named(one: Quote, own: Set[str], of: Concern) -> tuple[str, ...]:
    """The words for ``own`` medicines in a line, or else their names above it."""
    written = medicines.named_in("; ".join(sorted(own)), one.text, pairs=True)
    return written or tuple(of.called(name) for name in sorted(own & one.above))


def said_of_medicines(record: PatientRecord, quotes: Sequence[Quote], of: Concern) -> Iterator[Said]:
    """The record's pregnancy and values, each with the lines on medicines taken, asked about or proposed that speak of
    it: that give a range which holds the value, or a target that it misses.

    Values stand beside the record's words for the medicine, if it names it. With each part come the texts of its lines.
    """
    lines = [*dict.fromkeys(quotes)]
    pregnant = next((it for it in record.entries if it.kind is EntryKind.PREGNANCY and it.text == "yes"), None)
    if pregnant:
        speaking = {one: _medicines_of(one, of, wider=True) for one in lines if _PREGNANCY.search(one.text)}
        yield from _said(pregnant, {one: names for one, names in speaking.items() if names}, of)
    known = known_values(record)
    held = {one: values for one in lines if (values := held_values(one.text, known))}
    for entry in _each_once(record):
        own = replace(of, own=taken(entry), asked=frozenset(), proposed=frozenset())
        yield from _said(entry, {one: names for one in held if (names := _medicines_of(one, own))}, of, held, known)
    others = replace(of, own=frozenset(), asked=of.asked - of.own, proposed=of.proposed - of.own)
    entry = RecordEntry(EntryKind.RESULT, "", "")
    yield from _said(entry, {one: names for one in held if (names := _medicines_of(one, others))}, of, held, known)


def _said(
    entry: RecordEntry,
    found: Mapping[Quote, tuple[str, ...]],
    of: Concern,
    held: Mapping[Quote, Sequence[Measured]] = MappingProxyType({}),
    known: Known = MappingProxyType({}),
) -> Iterator[Said]:
    """The lines ``found`` with the names of the medicines that each is on, and the values ``held`` by their ranges."""
    if not (kept := _in_language([(one.statement, names) for one, names in found.items()], of.language)):
        return
    values = dict.fromkeys(it for one in found if one.statement in kept for it in held.get(one, ()))
    words = dict.fromkeys(known[it.name, it.value][1] for it in values)
    names = dict.fromkeys(name for of_line in kept.values() for name in of_line)
    part = CautionPart(entry, tuple(names), tuple(kept), tuple(values), tuple(filter(None, words)))
    yield part, frozenset(one.text for one in found if one.statement in kept)


def _medicines_of(one: Quote, of: Concern, wider: bool = False) -> tuple[str, ...]:
    """The medicines that a line is on: by name, by class, or by the heading of a line that names none.

    An entry of a list is on the medicine that it begins with; another row of a table is on none. ``wider``: words for
    several classes count too ("anticoagulant").
    """
    in_list = begins_with_a_medicine(one.text)
    if _cells(one.text) != one.text and not in_list:
        return ()
    own_cell = _BETWEEN.split(one.text)[0] if in_list else one.text
    mentions, taken_or_asked = medicines.mentions(own_cell), of.own | of.asked
    written = [_name(it, of) for it in mentions if it.ingredients and {*it.ingredients} <= of.all]
    words = medicines.named_in("; ".join(sorted(taken_or_asked)), own_cell)
    classes = () if in_list else tuple(it for it in words if wider or it in {one.written for one in mentions})
    above = () if any(it.ingredients for it in mentions) else one.above & taken_or_asked
    return tuple(written) or classes or tuple(of.called(name) for name in sorted(above))


def _name(mention: medicines.Mention, of: Concern) -> str:
    as_written = len(mention.ingredients) > 1 and mention.written.isascii() is (of.language == "en")
    return mention.written if as_written else of.called(*mention.ingredients) or mention.written


def _in_language(found: Sequence[tuple[Statement, Sequence[str]]], language: str) -> dict[Statement, Sequence[str]]:
    """Statements with the medicines that they name: those of another language only on medicines that no other names."""

    def keys(names: Sequence[str]) -> Set[str]:
        return {*names, *medicines.names("; ".join(names))}

    own = {statement for statement, _ in found if detect(statement.text) == language}
    told = {name for statement, names in found if statement in own for name in keys(names)}
    kept: dict[Statement, Sequence[str]] = {}
    for statement, names in found:
        if statement in own or not told & keys(names):
            kept[statement] = (*kept.get(statement, ()), *names)
    return kept


def held_values(text: str, known: Known) -> list[Measured]:
    """The ``known`` values that are in ranges that a line gives, or that miss its targets."""
    alone = _has_both_kidneys(known)
    return [
        one
        for one, _ in known.values()
        if measures.falls_in_sentence(text, measures.by_name(one.name), one.value, alone, apart=True)
        or measures.misses_target(text, measures.by_name(one.name), one.value)
    ]


def bearing(quotes: Sequence[Quote], record: PatientRecord, of: Concern) -> set[str]:
    """The texts of the lines of the library that tell anything of the record's medicines."""
    said = [*said_of_medicines(record, quotes, of)]
    parts: tuple[CautionPart | EntryPart, ...] = (*cautions(record, (), quotes, of), *entries(record, quotes, of))
    return {one.text for part in parts for one in part.statements}.union(*(texts for _, texts in said))


def ranging(quotes: Sequence[Quote], record: PatientRecord, of: Concern) -> set[str]:
    """The texts of the lines of the library that tell anything of the record's values."""
    return {one.text for part in values(record, (), quotes, of) for one in part.statements}


def _cells(text: str) -> str:
    """A row without its headers: "Notes" warns of nothing. Other text as it is."""
    cells = [_CELL.match(cell) for cell in _BETWEEN.split(text)]
    return " ; ".join(cell["text"] for cell in cells if cell) if len(cells) > 1 and all(cells) else text


# --- values -----------------------------------------------------------------------------------------------------------


def values(
    record: PatientRecord, near: Sequence[Quote], far: Sequence[Quote], of: Concern, told: Set[str] = frozenset()
) -> Iterator[ValuePart]:
    """The record's values: first those outside a reference range, then those with a range that holds them or a target
    that they miss. Values with the same lines stand together.

    Left out are entries of lists of medicines, lines on medicines of nobody but ``near`` rows, and those that are
    ``told``. For whom a range is meant is not judged. One kidney value stands for the other where only one is known.
    """
    known = known_values(record)
    alone = _has_both_kidneys(known)
    rows = {one for one in near if one.is_row and not begins_with_a_medicine(one.text)}
    read = [one for one in dict.fromkeys((*near, *far)) if one in rows or _is_for_anybody(one, of.all)]
    read = [one for one in read if one.text not in told]

    def is_outside(one: Quote, value: Measured) -> bool:
        return measures.outside_reference(one.text, measures.by_name(value.name), value.value)

    def is_met(one: Quote, value: Measured) -> bool:
        measure = measures.by_name(value.name)
        if one.is_row and _is_row_of(measure, one.text, value.value, known):
            return True
        if one.is_row and not (of.asked or of.proposed) & medicines.ingredients(one.text):
            return False
        ranged = measures.gives_a_range(one.text, measure)
        held = ranged and measures.falls_in_sentence(one.text, measure, value.value, alone, apart=True)
        return held or measures.misses_target(one.text, measure, value.value)

    for target, meets in ((True, is_outside), (False, is_met)):
        matching: dict[tuple[Statement, ...], list[tuple[Measured, str]]] = {}
        for value, words in known.values():
            if found := _of_language((one.statement for one in read if meets(one, value)), of.language):
                matching.setdefault(found[:OF_VALUE], []).append((value, words))
        for found, results in matching.items():
            (first, _), *further = results
            all_words = dict.fromkeys(words for _, words in results)
            quoted = "" if "" in all_words else "; ".join(all_words)  # else a value would seem to be from other words
            yield ValuePart(first, found, quoted, target, tuple(one for one, _ in further))


def _is_for_anybody(one: Quote, own: Set[str]) -> bool:
    """Whether a line is no entry of a list of medicines, and names no medicine, or one of ``own``."""
    named = {name for name in medicines.ingredients(one.text) if not measures.mentioned(name)}
    return not begins_with_a_medicine(one.text) and (not named or bool(named & own))


def _of_language(statements: Iterable[Statement], language: str) -> tuple[Statement, ...]:
    """The statements of a language, each once; all if there are none."""
    found = tuple(dict.fromkeys(statements))
    return tuple(one for one in found if detect(one.text) == language) or found


def _has_both_kidneys(known: Known) -> bool:
    """Whether neither kidney value need stand for the other."""
    return {*measures.KIDNEYS} <= {name for name, _ in known}


def known_values(record: PatientRecord) -> Known:
    """By measure and value: the results, then with its words those only quoted, but not what was once."""
    quoted = [
        entry for entry in record.entries if entry.kind is EntryKind.UNREAD and not measures.BOUND.search(entry.text)
    ]
    found = [
        (one, entry.words)
        for entry in quoted
        for one in measures.measured(fold(aligned(entry.text)))
        if not _was_once(one, fold(aligned(entry.words))) and not _is_aimed(one, fold(aligned(entry.words)))
    ]
    once: dict[tuple[str, float], tuple[Measured, str]] = {}
    for one, words in (*((one, "") for one in record.results), *found):
        once.setdefault((one.name, one.value), (one, words))
    return once


def _was_once(one: Measured, words: str) -> bool:
    """Whether the words before a value, or "ago" behind it, say that it is another time's."""
    number = re.search(r"\d[\d.,]*", one.written)
    written = rf"(?<![\d.]){re.escape(number[0].rstrip('.,'))}(?!\.?\d)" if number else r"\Z"
    gap = r"[^,，;；\d]{0,24}?"
    pressure = r"(?:\d{2,3}\s?/\s?)?"
    return bool(re.search(rf"(?i:{_ONCE}|{_AGO}){gap}{pressure}{written}|{written}{gap}(?i:{_AGO})", words))


def _not_read(record: PatientRecord) -> Iterator[Message | str]:
    """Age, sex and allergies where none was read, and what looks like a value of no known measure or unit."""
    for kind, name in ((EntryKind.AGE, ""), (EntryKind.SEX, ""), (EntryKind.ALLERGY, "allergies")):
        if all(it.kind is not kind for it in record.entries) and name not in record.none_of:
            yield Message(f"record.{kind.value}")
    for entry in record.entries:
        is_a_value = entry.kind is EntryKind.UNREAD and _A_VALUE.fullmatch(entry.text)
        if is_a_value and not any(measures.measured(fold(aligned(entry.text)))):
            yield entry.text


def _is_aimed(one: Measured, words: str) -> bool:
    """Whether the words before a value say that it is to be reached or kept: "keep sats 94-98"."""
    number = rf"(?<![\d.]){re.escape(one.written.split(' ')[0])}(?![\d.]*\d)"
    places = [match.start() for match in re.finditer(number, words)]
    return bool(places) and all(measures.AIMED.search(_PARTS.split(words[:place])[-1]) for place in places)


def not_met(
    record: PatientRecord, parts: Iterable[object], quotes: Sequence[Quote], language: str
) -> Iterator[Message]:
    """What of the record is told nowhere: medicines without a row in lists of medicines; unknown names of listed
    allergies and medicines; values that no range of ``quotes`` tells of, and that have none; bounds, and values of
    another time.
    """
    parts = [*parts]
    if unread := [*_not_read(record)]:
        yield message("ebm.not_read", names=tuple(dict.fromkeys(unread)))
    rows = {_first(one.text) for one in quotes if begins_with_a_medicine(one.text)}
    if lacking := [it.text for it in _each_once(record) if not any(row <= taken(it) for row in rows if row)]:
        yield message("ebm.no_entry", names=tuple(lacking))
    listed = [it for it in record.entries if it.kind in (EntryKind.ALLERGY, EntryKind.MEDICINE)]
    if unknown := [it.text for it in listed if not medicines.mentions(it.text)]:
        yield message("ebm.not_known", names=tuple(dict.fromkeys(unknown)))
    values = [one for part in parts if isinstance(part, CautionPart) for one in part.values]
    values += [one for part in parts if isinstance(part, ValuePart) for one in (part.value, *part.further)]
    met, known = {(one.name, one.value) for one in values}, known_values(record)
    texts = [*dict.fromkeys(one.text for one in quotes)]
    left: dict[bool, dict[str, None]] = {True: {}, False: {}}
    missed = [value for key, (value, _) in known.items() if key not in met]
    of = {name: measures.by_name(name) for name in dict.fromkeys(value.name for value in missed)}
    with_range = {name for name, one in of.items() if any(measures.gives_any_range(text, one) for text in texts)}
    for value in missed:
        measure, ranged = of[value.name], value.name in with_range
        left[ranged][f"{measure.chinese if language == 'zh' else value.name} {value.written}"] = None
    for entry in record.entries:
        found = measures.measured(fold(aligned(entry.text))) if entry.kind is EntryKind.UNREAD else ()
        for one in found:
            aimed = _is_aimed(one, fold(aligned(entry.words)))
            if measures.BOUND.search(entry.text) or ((one.name, one.value) not in known and not aimed):
                left[False][entry.text] = None
    for ranged, code in ((True, "ebm.in_no_range"), (False, "ebm.no_range")):
        if left[ranged]:
            yield message(code, values=tuple(left[ranged]))


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
