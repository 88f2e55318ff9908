"""What a patient's record has to do with lines of the library: both sides quoted, nothing judged.

- Allergy: a line names the medicine, a member of the class, or one of a class that may react like it. What the record
  denies, or tells of a relative, is no allergy.
- Pregnancy, problem or value: a line is on a medicine taken, asked about or proposed, and speaks of pregnancy, warns
  and names the problem, or gives a range that contains the value or a target that it misses. A line on no medicine
  counts for a value in near sections.
- Caution: a line warns and names a medicine of the record or its class. Outside the near sections it must also name a
  medicine asked about or proposed, or another of the record. What the two do to each other is not judged.
- Interaction: a list of terms names one.

A table's row on another medicine never counts, nor does a medicine that the record calls stopped. Other entries that
are only quoted from the record count: the reader decides. Limits of doses, ages and other reactions across classes are
not judged.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from localmed.domain import Message, Passage, Statement, message
from localmed.domain.parts import AllergyPart, CautionPart, InteractionPart, ValuePart
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.library.graph import Relation
from localmed.retrieval.marks import GENERAL, begins_with_a_medicine
from localmed.text import measures, medicines
from localmed.text.language import aligned, detect, fold
from localmed.text.negation import denied, denies, tells_of_an_effect, warns
from localmed.text.synonyms import Named, is_in, named
from localmed.text.tables import Names, cues

Known: TypeAlias = Mapping[tuple[str, float], tuple[Measured, str]]  # with the record's words of what it only quotes
INTERACTS = "interacts_with"
QUOTED = 5  # sentences below a warning; all names stand above them
NAMED = (EntryKind.MEDICINE, EntryKind.NAMED)
_REACTION, _PREGNANCY = cues("records", "quoted"), cues("records", "pregnancy")
_RELATIVE = cues("records", "relative")
_STOPPED, _NOT_STOPPED = cues("records", "stopped"), cues("records", "not_stopped")
_ONCE, _AGO = (cues("records", name).pattern for name in ("once", "ago"))
_CLAUSE = re.compile(r"(?:(?! [-–] )[^,，;；。.])+")
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
    return own - {name for one in medicines.allergens(entry.words) for name in one.ingredients}


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
    first = medicines.ingredients(_BETWEEN.split(text)[0])
    return begins_with_a_medicine(text) and bool(first) and not first & asked


# --- names ------------------------------------------------------------------------------------------------------------


def allergies(record: PatientRecord, quotes: Sequence[Quote], language: str) -> Iterator[AllergyPart]:
    """The record's allergies to medicines in ``quotes``, with what these quote; first those of a list."""
    told = set[tuple[str, ...]]()
    quoted = [
        it for it in record.entries if it.kind in (EntryKind.UNREAD, EntryKind.NAMED) and _REACTION.search(it.words)
    ]
    for entry in (*(it for it in record.entries if it.kind is EntryKind.ALLERGY), *quoted):
        listed = entry.kind is EntryKind.ALLERGY
        own = entry.text if listed else _without_denials(entry)
        named = [(one.statement, medicines.met_by(own, one.text)) for one in quotes]
        matching = _in_language([(statement, matches) for statement, matches in named if matches], language)
        names = dict.fromkeys(name for matches in matching.values() for name in matches)
        if names and (entry.words, *names) not in told:
            told.add((entry.words, *names))
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
    record: PatientRecord, near: Sequence[Quote], far: Sequence[Quote], of: Concern, told: Set[str]
) -> Iterator[CautionPart]:
    """The record's medicines that warnings name, or whose class they name: ``far`` ones together with another.

    Left out are near rows on a medicine that is not asked about, near lines for another range of a value, far ones of
    another language, and the lines that are ``told`` already.
    """
    known = known_values(record)
    read = [
        one for one in near if not _is_on_another(one.text, of.asked) and any(map(warns, _clauses(one.text, known)))
    ]
    own = [one for one in far if one not in read and detect(one.text) == of.language]
    of_two = dict.fromkeys(one for one in own if _names_two(one, of))
    for entry in _each_once(record):
        named = [(one, medicines.named_in(entry.text, one.text)) for one in read]
        named += [(one, _named(one, taken(entry), of)) for one in of_two]
        fresh = [(one.statement, names) for one, names in named if names and one.text not in told]
        kept = _in_language(fresh, of.language)
        if names := dict.fromkeys(name for written in kept.values() for name in written):
            yield CautionPart(entry, tuple(names), tuple(kept)[:QUOTED])


def _names_two(one: Quote, of: Concern) -> bool:
    """Whether a line warns, denies or tells of an effect, and names a medicine of the record and another one."""
    cells = _cells(one.text)
    if not (warns(cells) or denies(fold(cells)) or tells_of_an_effect(cells)) or _is_on_another(one.text, of.all):
        return False
    words = {name: _written(name, one) for name in of.all}
    words = {name: found for name, found in words.items() if found}
    return any(not {*words[name]} & {*found} for name in words.keys() & of.own for found in words.values())


def _written(name: str, one: Quote) -> tuple[str, ...]:
    """The words of a line, or the heading above it, for an ingredient or its classes."""
    return medicines.named_in(name, one.text, pairs=True) or ((name,) if name in one.above else ())


def _named(one: Quote, own: Set[str], of: Concern) -> tuple[str, ...]:
    """The words for ``own`` medicines in a line, or else their names above it."""
    written = medicines.named_in("; ".join(sorted(own)), one.text, pairs=True)
    return written or tuple(of.called(name) for name in sorted(own & one.above))


def said_of_medicines(
    record: PatientRecord, quotes: Sequence[Quote], of: Concern
) -> Iterator[tuple[CautionPart, frozenset[str]]]:
    """The record's pregnancy, problems and values: each with its lines on medicines taken, asked about or proposed.

    Values stand beside the record's words for the medicine, if it names it. With each part come the texts of its lines.
    """
    lines = [*dict.fromkeys(quotes)]
    on = {one: names for one in lines if (names := _medicines_of(one, of, wider=True))}
    known = known_values(record)
    clauses = {one: _clauses(one.text, known) for one in on}
    for entry, speaks in _facts(record, of.question):
        yield from _said(entry, {one: on[one] for one in on if any(map(speaks, clauses[one]))}, of)
    held = {one: values for one in lines if (values := held_values(one.text, known))}
    for entry in _each_once(record):
        own = replace(of, own=taken(entry), asked=frozenset(), proposed=frozenset())
        yield from _said(entry, {one: names for one in held if (names := _medicines_of(one, own))}, of, held, known)
    others = replace(of, own=frozenset(), asked=of.asked - of.own, proposed=of.proposed - of.own)
    entry = RecordEntry(EntryKind.RESULT, "", "")
    yield from _said(entry, {one: names for one in held if (names := _medicines_of(one, others))}, of, held, known)


def _facts(record: PatientRecord, question: str) -> Iterator[tuple[RecordEntry, Callable[[str], object]]]:
    """The record's pregnancy and problems, and whether a clause speaks of the one, or warns and names the other.

    A sentence that is only quoted tells of a problem unless it denies it or speaks of a relative. What the
    ``question`` names is no reason against its treatment, and what the record has a value of, as CKD, is told by that.
    """
    told = {name for one in named(question) for name in one.names}
    known = {name for name, _ in known_values(record)}
    yield from ((it, _PREGNANCY.search) for it in record.entries if it.kind is EntryKind.PREGNANCY and it.text == "yes")
    for entry in sorted(record.entries, key=lambda it: it.kind is not EntryKind.PROBLEM):
        listed = entry.kind is EntryKind.PROBLEM
        if not listed and (entry.kind not in (EntryKind.UNREAD, EntryKind.NAMED) or _RELATIVE.search(entry.words)):
            continue
        text = fold(entry.text if listed else entry.words)
        problems = [
            one.names for one in named(text) if _is_problem(one, known) and (listed or not denied(text, one.start))
        ]
        if fresh := [names for names in problems if not told & {*names}]:
            told |= {name for names in fresh for name in names}
            yield entry if listed else RecordEntry(EntryKind.UNREAD, entry.words, entry.words), _warning_of(fresh)


def _is_problem(one: Named, known: Set[str]) -> bool:
    measured = {it.name for name in one.names for it in measures.mentioned(name)}
    return is_in("conditions", one.written) and not (GENERAL & {*one.names} or known & measured)


def _warning_of(problems: Iterable[Sequence[str]]) -> Callable[[str], object]:
    names = Names(name for one in problems for name in one)
    return lambda text: warns(text) and names.matches(fold(text))


def _clauses(text: str, known: Known) -> list[str]:
    """The clauses of a row, or a sentence, but for those for another range of a ``known`` value."""
    results = [(measures.by_name(one.name), one.value) for one, _ in known.values()]
    cells = _cells(text)
    clauses = _BETWEEN.split(cells) if cells != text else [text]
    return [it for it in clauses if not measures.excludes(it, results)]


def _said(
    entry: RecordEntry,
    found: Mapping[Quote, tuple[str, ...]],
    of: Concern,
    held: Mapping[Quote, Sequence[Measured]] = MappingProxyType({}),
    known: Known = MappingProxyType({}),
) -> Iterator[tuple[CautionPart, frozenset[str]]]:
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
        if measures.falls_in_sentence(text, measures.by_name(one.name), one.value, alone)
        or measures.misses_target(text, measures.by_name(one.name), one.value)
    ]


def bearing(quotes: Sequence[Quote], record: PatientRecord, of: Concern) -> list[Quote]:
    """The lines of the library that tell of two medicines, or of a fact or value of the record and one of them."""
    told = {text for _, texts in said_of_medicines(record, quotes, of) for text in texts}
    return [one for one in quotes if one.text in told or _names_two(one, of)]


def ranging(quotes: Sequence[Quote], record: PatientRecord) -> list[Quote]:
    """The lines with a reference range that a value of the record is outside, or on its measure with another range
    that it is in.
    """
    known = known_values(record)
    return [one for one in quotes if _has_a_range(one, known)]


def _has_a_range(one: Quote, known: Known) -> bool:
    above = one.passage and measures.mentioned(" ; ".join((one.passage.title, *one.passage.headings)))
    for value, _ in known.values():
        measure = measures.by_name(value.name)
        own = above and measure in above and measures.gives_a_range(one.text, measure)
        if measures.outside_reference(one.text, measure, value.value) or (
            own and measures.falls_in_sentence(one.text, measure, value.value, alone=True)
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
    """The record's values: with the ``quotes`` whose range contains them, then with targets that they miss; values with
    the same quotes stand together.

    Targets count in the ``nearest`` quotes, reference ranges in all. Lines on other medicines than the asked ones are
    left out, rows on medicines of nobody always. Sentences in table rows count only on an asked or proposed medicine.
    One kidney value stands for the other where only one is known.
    """
    known = known_values(record)
    both_kidneys = _has_both_kidneys(known)
    quotes = [one for one in quotes if _is_on_asked(one, of.asked) and not _is_on_another(one.text, of.all)]
    proposed = of.asked or of.proposed
    matching: dict[tuple[bool, tuple[Statement, ...]], list[tuple[Measured, str]]] = {}
    for result, words in known.values():
        measure = measures.by_name(result.name)

        def holds(one: Quote, measure: measures.Measure = measure, value: float = result.value) -> bool:
            in_row = one.is_row and _is_row_of(measure, one.text, value, known)
            read = not one.is_row or bool(proposed & medicines.ingredients(one.text))
            ranged = read and measures.gives_a_range(one.text, measure)
            return in_row or (ranged and measures.falls_in_sentence(one.text, measure, value, both_kidneys))

        def misses(one: Quote, measure: measures.Measure = measure, value: float = result.value) -> bool:
            aimed = one in nearest and measures.misses_target(one.text, measure, value)
            return aimed or measures.outside_reference(one.text, measure, value)

        for target, meets in ((False, holds), (True, misses)):
            if found := _of_language((one.statement for one in quotes if meets(one)), of.language):
                matching.setdefault((target, found), []).append((result, words))
    for (target, found), results in matching.items():
        (first, _), *further = results
        quoted = "; ".join(dict.fromkeys(filter(None, (words for _, words in results))))
        yield ValuePart(first, found[:QUOTED], quoted, target, tuple(one for one, _ in further))


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
        if not _was_once(one, fold(aligned(entry.words)))
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
    return bool(re.search(rf"(?i:{_ONCE}|{_AGO}){gap}{written}|{written}{gap}(?i:{_AGO})", words))


def not_met(record: PatientRecord, parts: Iterable[object], language: str) -> Iterator[Message]:
    """What of the record was compared with nothing: unknown names of listed allergies and medicines, values for which
    ``parts`` quote nothing, bounds, and values of another time.
    """
    listed = [it for it in record.entries if it.kind in (EntryKind.ALLERGY, EntryKind.MEDICINE)]
    if unknown := [it.text for it in listed if not medicines.mentions(it.text)]:
        yield message("ebm.not_known", names=tuple(dict.fromkeys(unknown)))
    values = [one for part in parts if isinstance(part, CautionPart) for one in part.values]
    values += [one for part in parts if isinstance(part, ValuePart) for one in (part.value, *part.further)]
    met = {(one.name, one.value) for one in values}
    known = known_values(record)
    left = [
        f"{measures.by_name(one.name).chinese if language == 'zh' else one.name} {one.written}"
        for key, (one, _) in known.items()
        if key not in met
    ]
    for entry in record.entries:
        found = measures.measured(fold(aligned(entry.text))) if entry.kind is EntryKind.UNREAD else ()
        left += [entry.text for one in found if measures.BOUND.search(entry.text) or (one.name, one.value) not in known]
    if left:
        yield message("ebm.no_range", values=tuple(dict.fromkeys(left)))


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
