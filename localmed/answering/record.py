"""The names in a patient's record, and the lines of the library that name them: looked up, never judged.

A record is read for names only: medicines, values of known measures, conditions, and medicines beside words for an
allergy. What a sentence says of them (stopped, denied, another time's, a relative's) is left to the reader, who sees
the record as it is written. The library is read for names too:

- *Together*: a line names a medicine of the record (itself, its class, or in the heading above it), and something else
  that the record or the question names; or it is in a section on the question.
- *Range*: a line gives a reference range of a measure of the record; of a value that may be an emergency, any range
  that holds it.
- *Warning*: a line that warns of a medicine names something else of the record: a medicine, a condition, or the range
  of a value.
- *Allergy*: a line names the medicine, a member of its class, or one of a class that may react like it.
- *Interaction*: a list of terms names one.

Nothing else is compared: no dose, and not for whom a line is meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache, cached_property

from localmed.domain import Passage, Statement
from localmed.domain.parts import AllergyPart, InteractionPart, RangePart, TogetherPart
from localmed.domain.patient import NameKind, RecordName
from localmed.library.graph import Relation
from localmed.retrieval.marks import begins_with_a_medicine
from localmed.text import measures, medicines, synonyms
from localmed.text.language import aligned, detect, fold
from localmed.text.negation import denied, warns
from localmed.text.tables import Names, cues, in_characters, in_words, table

INTERACTS = "interacts_with"
ADULT, OPENING = 18, 300  # years; characters in which the age may stand
QUOTED = 5  # lines below an allergy
ROWS = 2  # of a medicine in lists of medicines
OF_MEDICINE = 3  # further lines below it
OF_VALUE = 2  # lines below a value
PROPOSED = 12  # medicines of sections on the question
CLAUSE = 80  # characters; in a longer one a word for a reaction may be on anything
SAID = 80  # characters of the record shown below a medicine
WORDS = 160  # characters of the record shown with a warning
_REACTION, _RELATIVE = cues("records", "reaction"), cues("records", "relative")
_ALLERGIES = re.compile(
    r"^[\s\-*•·#\d.]{0,8}(?:\w{1,20} ){0,2}allerg\w*(?:[^:：\n]{0,16}(?:[:：]|$)| ?[-–—*]| {2,})"
    r"|过敏[史原]?[:：]|^\s*过敏史?(?: |\s*$)",
    re.IGNORECASE | re.MULTILINE,
)
_FAMILY = re.compile(
    r"^[\s\-*•·#]{0,8}(?:fhx?|f/h|family (?:history|hx))\b[^\n]*|家族史[:：][^\n。]*", re.IGNORECASE | re.MULTILINE
)
_TREATMENTS = frozenset({"adrenaline", "chlorphenamine", "hydrocortisone"})  # of a reaction: nobody's allergens
_LABEL = re.compile(r"(?<![^\s.。;；])[^\W\d_][^\s:：,，;；.。]*(?: [^\s:：,，;；.。]+){0,3}[:：]|\n[ \t]*\n")
_AGE = re.compile(
    r"\b(?P<years>\d{1,3}) ?-?(?:y\b|yo\b|y/o|yrs?\b|years?\b|[mf]\b|岁)|(?:age|年龄)[:：]? ?(?P<age>\d{1,3})",
    re.IGNORECASE,
)
_PREGNANT = re.compile(
    r"\b\d{1,2}\+\d(?:/40| ?(?:weeks?|wks?|周))|\bG\d ?P\d|\bgravid\w*|孕\s?\d{1,2}\+?\d?\s?周", re.IGNORECASE
)
_FURTHER = re.compile(
    rf"(?:[ \t,，、|→>–/:：-]|[(（][^()（）\n]{{0,16}}[)）]|\b(?:{in_words(table('records')['trend']['en'])})\b"
    rf"|{in_characters(table('records')['trend']['zh'])}|(?:mmol|umol|µmol|mg|g|ml|miu|iu)/[a-z0-9./²]+|mmhg|%|x10\S+){{1,24}}?"
    r"(?<![\d.])\d{1,4}(?:\.\d+)?(?:/\d{2,3})?(?![\d:]|\.\d|/\d|\s?[-–]\s?\d|\s?(?:hrs?|h|days?|weeks?|months?|天|周|月|年|日)\b)"
)
_NUMBER = re.compile(r"(?<![\d.–-])\d+(?:\.\d+)?(?:/\d+)?(?!\s?[-–]\s?\d)")  # of no range
_BRACKET = re.compile(r"[(（][^()（）]*[)）]")
_CELLS = re.compile(r"[;；]\s*")
_NUMBER_OF = re.compile(r"(?:HbA1c|SpO2|PaO2|PaCO2|[^\d])+", re.IGNORECASE)  # the name before a value
_CLAUSE = re.compile(r"[^,，]+")
_INDENTED = re.compile(r"(?:[ \t]+[^\s:：][^:：\n]*\n?)*")  # further lines of a list
_SENTENCE = re.compile(r"(?:[^.。;；\n]|\.(?=\S))+")


# --- the record -------------------------------------------------------------------------------------------------------


def names_in(text: str) -> tuple[RecordName, ...]:
    """The names in a record, in order, without overlaps; none of a family history."""
    text = _FAMILY.sub(lambda history: " " * len(history[0]), text)
    folded = fold(aligned(text))
    spans = [*allergy_spans(text)]
    allergic = {span for place in spans for span in _allergens(folded, *place)}
    denied_ones = {place for start, end, _ in spans for place in _denied_allergens(folded, start, end)}
    found: list[RecordName] = []
    for one in medicines.mentions(folded):
        if one.start in denied_ones:
            continue
        kind = NameKind.ALLERGY if (one.start, one.end) in allergic else NameKind.MEDICINE
        if one.is_medicine or (not one.ingredients and _has_members(one)):
            found.append(RecordName(kind, one.ingredients or one.classes, one.start, one.end))
    found += _values(folded, {place for one in found for place in range(one.start, one.end)})
    for thing in synonyms.named(folded):
        is_condition = synonyms.is_in("conditions", thing.written) or thing.written in _pregnancy()
        is_condition = is_condition and not _REACTION.search(thing.written)  # an allergy has its own part
        if is_condition and not measures.mentioned(thing.written) and not _is_of_another(folded, thing.start):
            found.append(RecordName(NameKind.CONDITION, thing.names, thing.start, thing.end))
    for said in _PREGNANT.finditer(folded):
        found.append(RecordName(NameKind.CONDITION, tuple(sorted(_pregnancy())), *said.span()))
    return tuple(_without_overlaps(found))


def _is_of_another(folded: str, place: int) -> bool:
    """Whether a condition is denied, or its sentence speaks of a relative."""
    start = max(folded.rfind(end, 0, place) for end in "\n.。;；") + 1
    stop = min((at for end in "\n。;；" if (at := folded.find(end, place)) >= 0), default=len(folded))
    return denied(folded[start:stop], place - start) or bool(_RELATIVE.search(folded, start, stop))


def _has_members(one: medicines.Mention) -> bool:
    """Whether a class has medicines; "antibiotic" has none of its own."""
    return any(medicines.ingredients(name) for of in one.classes for name in medicines.members(of))


def _values(folded: str, covered: Set[int]) -> Iterator[RecordName]:
    """The values, those of one place as one (a blood pressure), but no dose of a salt ("potassium chloride 8 mmol")."""
    by_place: dict[tuple[int, int], list[str]] = {}
    for measure, start, end in measures.places(folded):
        by_place.setdefault((start, end), []).append(measure)
    for (start, end), of in by_place.items():
        name = re.compile(measures.by_name(of[0]).pattern).match(folded, start)
        if covered.isdisjoint(range(start, name.end() + 1 if name else end)):
            end = len(folded[:end].rstrip())
            while further := _FURTHER.match(folded, end):  # "INR 3.4 -> 5.8", "BP lying 118/62, standing 92/50"
                end = further.end()
            yield RecordName(NameKind.VALUE, tuple(of), start, end)


def _without_overlaps(found: Iterable[RecordName]) -> Iterator[RecordName]:
    end = 0
    for one in sorted(found, key=lambda it: (it.start, -it.end)):
        if one.start >= end:
            end = one.end
            yield one


@cache
def _children() -> Names:
    return Names(synonyms.population("child"))


def speaks_of_a_child(text: str) -> bool:
    """Whether a record or question begins with an age below 18 years, or without one names a child."""
    age = _AGE.search(text[:OPENING])
    return int(age["years"] or age["age"]) < ADULT if age else bool(_children().matches(fold(text)))


@cache
def _pregnancy() -> Set[str]:
    return frozenset(synonyms.population("pregnancy") or synonyms.population("pregnant"))


def allergy_spans(text: str) -> Iterator[tuple[int, int, bool]]:
    """The places that speak of an allergy: lists under such a heading (True), and sentences with a word for a reaction
    outside of them.
    """
    covered = list[tuple[int, int]]()
    for heading in _ALLERGIES.finditer(text):
        line = text.find("\n", heading.end()) + 1 or len(text)
        if text[heading.end() : line].strip():
            end = _next_label(text, heading.end(), line)
            covered.append((heading.start(), _INDENTED.match(text, line).end() if end == line else end))  # type: ignore[union-attr]
        else:  # the list is below
            covered.append((line, _next_label(text, line, len(text))))
    yield from ((*place, True) for place in covered)
    for sentence in _SENTENCE.finditer(text):
        inside = any(first <= sentence.start() and sentence.end() <= last for first, last in covered)
        if not inside and _REACTION.search(sentence[0]):
            yield *sentence.span(), False


def _next_label(text: str, start: int, end: int) -> int:
    """Where the next label or empty line begins; a medicine is no label: "trimethoprim: rash"."""
    labels = (one.start() for one in _LABEL.finditer(text, start, end) if not medicines.mentions(one[0]))
    return next(labels, end)


def _allergens(folded: str, start: int, end: int, every: bool) -> Iterator[tuple[int, int]]:
    """The places of medicines in words on an allergy, but no denied ones: ``every`` one, or of a sentence those that it
    is plainly to, and those of short clauses with a word for a reaction.
    """
    said = folded[start:end]
    plain = {one.start for one in medicines.allergens(said)}
    clauses = [one.span() for one in _CLAUSE.finditer(said) if len(one[0]) <= CLAUSE and _REACTION.search(one[0])]
    clauses = [(first, last) for first, last in clauses if not any(first <= place < last for place in plain)]
    left = medicines.without_denied_allergens(said, said)
    for one in medicines.mentions(left):
        if _TREATMENTS & {*one.ingredients}:
            continue
        if every or one.start in plain or any(first <= one.start < last for first, last in clauses):
            yield start + one.start, start + one.end


def _denied_allergens(folded: str, start: int, end: int) -> Set[int]:
    said = folded[start:end]
    left = {one.start for one in medicines.mentions(medicines.without_denied_allergens(said, said))}
    return {start + one.start for one in medicines.mentions(said) if one.start not in left}


@dataclass(frozen=True, slots=True)
class Thing:
    """What a record or a question names, ``words`` as written there, in the clause ``said``.

    ``is_proposed``: only sections on the question name it.
    """

    kind: NameKind
    keys: frozenset[str]
    words: str
    said: str = ""
    is_proposed: bool = False

    @property
    def classes(self) -> frozenset[str]:
        """The classes of a medicine."""
        return frozenset(name for one in medicines.mentions(self.words) for name in one.classes)

    @property
    def searched(self) -> tuple[str, ...]:
        """The names to search for: of a medicine and its class, or of a measure."""
        if self.kind is NameKind.VALUE:
            of = [measures.by_name(name) for name in sorted(self.keys)]
            return tuple(name for one in of for name in (one.name, one.chinese))
        named = synonyms.named(self.words)
        return named[0].names if named else (self.words,)


def things_of(text: str, names: Iterable[RecordName]) -> tuple[Thing, ...]:
    """What ``names`` of a ``text`` are, each once; without allergies."""
    once: dict[tuple[NameKind, frozenset[str]], Thing] = {}
    for one in names:
        if one.kind is not NameKind.ALLERGY:
            written = " ".join(text[one.start : one.end].split())
            thing = Thing(one.kind, frozenset(one.keys), written, _clause(text, one))
            before = once.setdefault((one.kind, frozenset(one.keys)), thing)
            if one.kind is NameKind.VALUE and written not in before.words:  # the reader sees which is of today
                once[one.kind, frozenset(one.keys)] = replace(before, words=f"{before.words}; {written}")
    return tuple(once.values())


def _clause(text: str, one: RecordName) -> str:
    """The words around a name, up to the next separator on its line."""
    start = max(text.rfind(end, 0, one.start) for end in "\n;；。") + 1
    stop = min((at for end in "\n;；。" if (at := text.find(end, one.end)) >= 0), default=len(text))
    said = " ".join(text[start:stop].split()).lstrip("-*•· ")
    if len(said) > SAID:  # a run of names: the part between commas
        start = max(start, *(text.rfind(end, 0, one.start) + 1 for end in ",，、"))
        stop = min(stop, *(at for end in ",，、" if (at := text.find(end, one.end)) >= 0), len(text))
        said = " ".join(text[start:stop].split())
    return (
        said
        if len(said) <= SAID
        else said[:SAID].rpartition(" ")[0] + " …"
        if " " in said[:SAID]
        else said[:SAID] + "…"
    )


# --- lines of the library ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quote:
    """The ``text`` of a sentence or row, what is quoted for it (a short paragraph as a whole: a sentence may leave its
    condition to the one before), and the passage that it is from; a model's sentence has none.
    """

    text: str
    statement: Statement
    passage: Passage | None = None

    @cached_property
    def medicines(self) -> tuple[medicines.Mention, ...]:
        """The medicines and classes that it names."""
        return tuple(medicines.mentions(self.text))

    @cached_property
    def ingredients(self) -> frozenset[str]:
        """The ingredients that it names."""
        return frozenset(name for one in self.medicines for name in one.ingredients)

    @cached_property
    def above(self) -> frozenset[str]:
        """The ingredients and classes in the title and headings above it; none if it names medicines itself."""
        if self.passage is None or any(one.is_medicine for one in self.medicines):
            return frozenset()
        return medicines.meant(" ; ".join((self.passage.title, *self.passage.headings)))

    @cached_property
    def wider(self) -> frozenset[str]:
        """The classes that it names, by themselves or by a word for several."""
        return medicines.classes_meant(self.text)

    @cached_property
    def many(self) -> frozenset[str]:
        """The classes that it means by a word for very many ("antibiotics") too."""
        return medicines.classes_meant(self.text, many=True)

    @cached_property
    def measures(self) -> frozenset[str]:
        """The measures that it names."""
        return frozenset(one.name for one in measures.mentioned(self.text))

    @cached_property
    def terms(self) -> frozenset[str]:
        """All names of the conditions that it names."""
        return frozenset(name for one in synonyms.named(self.text) for name in one.names)

    @cached_property
    def first(self) -> frozenset[str]:
        """The ingredients of the medicine that it begins with, as a row of a list of medicines."""
        own = begins_with_a_medicine(self.text)
        return medicines.ingredients(_CELLS.split(self.text)[0]) if own else frozenset()

    @property
    def is_row(self) -> bool:
        """Whether it is a row of a table."""
        return bool(self.passage and self.passage.table)

    @cached_property
    def is_for_children(self) -> bool:
        """Whether title or headings name children."""
        above = " ; ".join((self.passage.title, *self.passage.headings)) if self.passage else ""
        return bool(_children().matches(fold(above)))

    def names(self, thing: Thing) -> bool:
        """Whether it names ``thing``."""
        if thing.kind is NameKind.VALUE:
            return bool(self.measures & thing.keys)
        if thing.kind is NameKind.CONDITION:
            return bool(self.terms & thing.keys)
        own = {name.split()[0] for name in thing.keys} | thing.keys  # "insulin" of insulin glargine
        return bool(self.ingredients & own or (self.wider | self.above) & (thing.classes | thing.keys))

    def names_widely(self, thing: Thing) -> bool:
        """Whether it names a medicine, perhaps by a word for very many."""
        return thing.kind is NameKind.MEDICINE and bool(self.names(thing) or self.many & thing.classes)


def together(
    own: Sequence[Thing], asked: Sequence[Thing], quotes: Iterable[Quote], near: Set[str], language: str, children: bool
) -> Iterator[TogetherPart]:
    """Each medicine of the record with its own rows in lists of medicines and lines that name it with something else;
    then those that are ``asked`` about or proposed, with lines that name something of the record.

    ``near`` are the texts of lines of sections on the question: where they name a medicine that it does not ask about,
    they need to name nothing else. Left out are rows of tables that begin with no medicine of record or question, and
    of lists for children unless ``children`` are spoken of.
    """
    of_own = [it for it in own if it.kind is NameKind.MEDICINE]
    of_asked = [it for it in asked if it.kind is NameKind.MEDICINE and all(_is_another(it, one) for one in of_own)]
    concerned = frozenset[str]().union(*(it.keys for it in (*of_own, *asked) if it.kind is NameKind.MEDICINE))
    lines = [one for one in _once(quotes) if not one.is_row or one.first & concerned]
    lines = [one for one in lines if children or not one.is_for_children]
    told = set[str]()
    for medicine in (*of_own, *of_asked):
        is_own = medicine in of_own
        beside = [it for it in (*own, *(asked if is_own else ())) if _is_another(it, medicine)]
        is_asked = not is_own or not all(_is_another(it, medicine) for it in asked)
        with_else = {one: _named_with(medicine, beside, one) for one in lines if one.names_widely(medicine)}
        rows = [one for one, it in with_else.items() if one.first & medicine.keys and (is_own or it)]
        plain = (one for one in with_else if one.text in near and not is_asked and medicine.keys & one.ingredients)
        others = [*dict.fromkeys((*(one for one, it in with_else.items() if it), *plain))]
        others = [
            one for one in others if one not in rows and (warns(one.text) or (is_own and detect(one.text) == language))
        ]
        others.sort(key=lambda one: (not warns(one.text), detect(one.text) != language, -len(with_else[one])))
        rows.sort(key=lambda one: detect(one.text) != language)
        fresh = [one for one in others if one.text not in told] or ([] if rows else others)
        kept = [*rows[:ROWS], *fresh[:OF_MEDICINE]]
        if kept or is_own:
            told |= {one.text for one in kept}
            found = dict.fromkeys(it for one in kept for it in with_else[one])
            named = tuple(dict.fromkeys(it.words for it in found if not it.is_proposed))
            further = tuple(dict.fromkeys(it.words for it in found if it.is_proposed))
            statements = tuple(dict.fromkeys(one.statement for one in kept))
            yield TogetherPart(medicine.words, named, statements, further, medicine.said if is_own else "", is_own)


def pairs(
    own: Sequence[Thing], asked: Sequence[Thing], quotes: Iterable[Quote], language: str
) -> Iterator[TogetherPart]:
    """Lines that warn of a medicine and name something else, one of both of the record; each line once.

    Of a row of a list of medicines a cell must warn and name the other; a value counts if it is in a range that the
    cell or sentence gives. Of a condition only rows tell, and sentences on a pregnancy.
    """
    every = [it for it in (*own, *asked) if it.kind is NameKind.MEDICINE]
    found: dict[str, list[tuple[Quote, list[Thing]]]] = {}
    told = set[str]()
    for one in (it for it in _once(quotes) if warns(it.text) and (it.first or not it.is_row)):
        for medicine in (it for it in every if (one.first & it.keys if one.first else one.names_widely(it))):
            beside = [*own, *every] if medicine in own else own
            others = [it for it in dict.fromkeys(beside) if _is_another(it, medicine) and _warns_of(one, it)]
            if others and one.text not in told:
                told.add(one.text)
                found.setdefault(medicine.words, []).append((one, others))
    for words, lines in found.items():
        kept = {one: others for one, others in lines if one in _of_language([it for it, _ in lines], language)}
        kept = dict([*kept.items()][:ROWS])
        named = tuple(dict.fromkeys(it.words for others in kept.values() for it in others))
        yield TogetherPart(words, named, tuple(dict.fromkeys(one.statement for one in kept)), is_warning=True)


def _warns_of(line: Quote, thing: Thing) -> bool:
    """Whether a line, or a cell of a row, that warns names ``thing``."""
    texts = (
        [re.split("[:：]", cell, maxsplit=1)[-1] for cell in _CELLS.split(line.text)[1:]] if line.first else [line.text]
    )
    if thing.kind is NameKind.CONDITION and not (line.first or thing.keys & _pregnancy()):
        return False
    cells = (Quote(text, line.statement) for text in texts if warns(text))
    if thing.kind is NameKind.VALUE:
        return any(_holds(cell, said) for cell in cells for said in _each_value(thing.words))
    return any(cell.names(thing) or cell.names_widely(thing) for cell in cells)


def _named_with(medicine: Thing, others: Sequence[Thing], line: Quote) -> list[Thing]:
    """The ``others`` that a line names beside the ``medicine``; by a word for very many only one of two medicines."""
    if line.names(medicine):
        return [it for it in others if line.names(it) or line.names_widely(it)]
    return [it for it in others if it.kind is NameKind.MEDICINE and line.names(it)]


def proposed(quotes: Iterable[Quote], known: Iterable[Thing]) -> list[Thing]:
    """The first medicines that lines name, besides those ``known``; a row of a list of medicines proposes none."""
    text = "\n".join(one.text for one in quotes if not one.first)
    keys = frozenset[str]().union(*(it.keys for it in known))
    found = (it for it in things_of(text, names_in(text)) if it.kind is NameKind.MEDICINE and not it.keys & keys)
    return [replace(it, is_proposed=True) for it in found if medicines.ingredients(it.words)][:PROPOSED]


def _is_another(one: Thing, medicine: Thing) -> bool:
    """Whether ``one`` is neither the ``medicine`` nor of its class."""
    return one.kind is not NameKind.MEDICINE or not (one.keys & medicine.keys or one.classes & medicine.classes)


def ranges(
    own: Sequence[Thing], quotes: Iterable[Quote], language: str, urgent: Callable[[str], bool] = lambda _: False
) -> Iterator[RangePart]:
    """The record's values with the reference ranges of their measures; of those that are ``urgent`` by themselves, with
    or without lines, also the lines that give a range which holds the value. Values with the same lines stand together.
    """
    lines = [one for one in _once(quotes) if not (one.wider or any(it.classes for it in one.medicines))]
    together: dict[tuple[bool, tuple[Statement, ...]], list[str]] = {}
    for value in (it for it in own if it.kind is NameKind.VALUE):
        each = _each_value(value.words)
        dangerous = [one for one in each if urgent(one)]
        of = [measures.by_name(name) for name in sorted(value.keys)]
        giving = [one for one in lines if any(measures.gives_reference(one.text, it) for it in of)]
        holding = [one for one in lines if any(_holds(one, said) for said in dangerous)]
        found = _of_language([*dict.fromkeys((*holding, *giving))], language)
        statements = tuple(dict.fromkeys(one.statement for one in found))[:OF_VALUE]
        if statements or dangerous:
            together.setdefault((bool(dangerous), statements), []).append(value.words)
    for (first, statements), words in together.items():
        yield RangePart(tuple(words), statements, first)


def _each_value(words: str) -> list[str]:
    """The name of a value with each of its numbers: "INR 3.4", "INR 5.8" of "INR 3.4 -> 5.8"."""
    words = _BRACKET.sub(" ", words)
    name = _NUMBER_OF.match(words)
    start = name.end() if name else 0
    numbers = [*_NUMBER.finditer(words, start)]
    unit = words[numbers[-1].end() :] if numbers else ""
    return [words[:start] + one[0] + unit for one in numbers] or [words]


def _holds(line: Quote, said: str) -> bool:
    known = measures.measured(fold(aligned(said)))
    return any(measures.falls_in_sentence(line.text, measures.by_name(one.name), one.value) for one in known)


def _once(quotes: Iterable[Quote]) -> list[Quote]:
    """Each text under the same headings once."""
    once: dict[tuple[str, tuple[str, ...]], Quote] = {}
    for one in quotes:
        once.setdefault((one.text, one.passage.headings if one.passage else ()), one)
    return [*once.values()]


def _of_language(found: Sequence[Quote], language: str) -> list[Quote]:
    """Those whose text is of a language; all if there are none."""
    return [one for one in found if detect(one.text) == language] or [*found]


def allergens(text: str) -> Iterator[tuple[str, str, str]]:
    """The words of ``text`` on each allergy or reaction, the medicines named in them, and those named elsewhere."""
    folded = fold(aligned(text))
    taken = [one for one in names_in(text) if one.kind is NameKind.MEDICINE]
    for start, end, _ in allergy_spans(text):
        if own := [text[slice(*place)] for place in _allergens(folded, start, end, every=True)]:
            others = [text[it.start : it.end] for it in taken if not start <= it.start < end]
            yield text[start:end].strip(), " ; ".join(own), " ; ".join(others)


def allergies(text: str, quotes: Sequence[Quote], language: str) -> Iterator[AllergyPart]:
    """The record's words on allergies to medicines in ``quotes``, with what these quote, or to its own medicines."""
    told = set[tuple[str, ...]]()
    for said, own, others in allergens(text):
        words = " ".join(said.split())[:WORDS]
        if prescribed := medicines.met_by(own, others):
            yield AllergyPart(own, prescribed)
        met = {one: found for one in quotes if (found := medicines.met_by(own, one.text))}
        kept = _of_language([*met], language)
        named = tuple(dict.fromkeys(name for one in kept for name in met[one]))
        if named and named not in told:
            told.add(named)
            yield AllergyPart(words, named, tuple(dict.fromkeys(one.statement for one in kept))[:QUOTED])


def interactions(own: Sequence[Thing], named: str, relations: Sequence[Relation]) -> Iterator[InteractionPart]:
    """The record's medicines that interact with ``named`` by ``relations`` of the concept graph."""
    known = medicines.ingredients(named)
    for relation in relations:
        if relation.predicate == INTERACTS:
            partners = medicines.ingredients(f"{relation.subject_name}; {relation.object_name}") - known
            for medicine in (it for it in own if it.kind is NameKind.MEDICINE and partners & it.keys):
                yield InteractionPart(medicine.words, named, relation.source.collection)
