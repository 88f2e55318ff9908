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
from localmed.text import measures, medicines, synonyms, units
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
SENTENCE = 200  # characters read on each side of a name
SAID = 80  # characters of the record shown below a medicine
WARNINGS = 4  # lines that warn of a medicine
WORDS = 160  # characters of the record shown with a warning
_REACTION, _RELATIVE = cues("records", "reaction"), cues("records", "relative")
_HEADS, _TRENDS = (
    rf"(?:(?:{in_words(of['en'])})\b|(?:{in_characters(of['zh'])}))"
    for of in (table("records")[name] for name in ("headings", "trend"))
)
# Patterns of folded text.
_ALLERGIES = re.compile(
    r"^[\s\-*•·#\d.]{0,8}(?:(?:drug|known|food|medication) )?(?:allerg(?:y|ies)|adrs?|adverse (?:drug )?reactions?)"
    r"(?:[ /&,]{1,3}(?:status|history|hx|list|intolerances?|adrs?|alerts?|adverse|drug|reactions?|and|known"
    r"|sensitivities)\b)*(?:[ \t]*(?:[:*-]|–|—|$)|\t| {2,})|(?:过敏[史原]?|过敏药物)[:]|^\s*过敏史?(?: |\s*$)",
    re.MULTILINE,
)
_FAMILY = re.compile(
    r"(?:^|(?<=[.;]) ?)[\s\-*•·#]{0,8}(?:fhx?|f/h|family (?:history|hx))\b(?:[^\n.;。]|\.(?=\S))*"
    r"|家族史[:](?:[^\n;。])*",
    re.MULTILINE,
)
_NOT = in_characters("{no_zh}, {denies_zh}".format_map(table("records")["no_allergy"]))
_NONE = re.compile(
    rf"[\s:*-]*(?:nkd?a\b|none\b|nil\b|no\b|not known|unknown|暂无|{_NOT})"
    r"(?![^.;。\n]*(?:\bexcept|\bapart|\bother than|\bbut\b|\bbesides|除))"
)
_DENIED = re.compile(
    rf"(?:{_NOT})[^,。]{{0,6}}(?:过敏|反应|皮疹)|\bno (?:known |drug |other |food )*(?:allerg|reaction|rash)"
    r"|\bwithout (?:any )?(?:allerg|reaction|rash)|allerg\w* (?:was |is |has been )?(?:denied|excluded|ruled out)"
    r"|de-?label|过敏[^,。]{0,4}(?:排除|不成立)"
)
_TREATMENTS = frozenset({"adrenaline", "chlorphenamine", "hydrocortisone"})  # of a reaction: nobody's allergens
_NO_MEDICINE = frozenset({"adr", "adrs"})  # an adverse drug reaction; in orders adrenaline
_LABEL = re.compile(
    rf"(?:^|(?<=\n)|(?<=\t)|(?<=[.;] ))[ \t]*(?:[-*•] ?)?{_HEADS}"
    r"|(?<![^\s.;。])[^\W\d_][^\s:,;.。]*(?: [^\s:,;.。]+){0,3}:|\n[ \t]*\n"
)
_AGE = re.compile(
    r"\b(?P<years>\d{1,3}) ?-?(?:y\b|yo\b|y/o|yrs?\b|years?\b|[mf]\b|岁)|(?:age|年龄)[:：]? ?(?P<age>\d{1,3})",
    re.IGNORECASE,
)
_PREGNANT = re.compile(r"\b\d{1,2}\+\d(?:/40| ?(?:weeks?|wks?|周))|\bgravid\w*|孕\s?\d{1,2}\+?\d?\s?周")
_TREND = rf"(?:->|→|=>|[(][^()\n]{{0,16}}[)]|{_TRENDS})"
_UNIT = r"(?:[mµu]?mol/l|mg/[dl]l?|g/[dl]l?|ml/min\S*|/l|mmhg|%|x10\S+|mm/h)"
_TIMES = "bd|od|tds|qds|hrs?|h|min|days?|weeks?|months?|years?|y"
_DOSE = rf"(?:{units.dose_names(counted=True)}|l|litres?|u|kg|cm|mmol|{_TIMES})"
_FURTHER = re.compile(  # "INR 3.4 -> 5.8", "K 5.2 on admission, 6.7", "eGFR 31 24"; not "INR 2.4, 5 mg"
    rf"[ \t]*{_UNIT}?(?:[ \t]*[,、:]?[ \t]*{_TREND}[ \t]*[,、:]?(?:[ \t]*{_TREND}){{0,3}}[ \t]*|[ \t]+)"
    rf"\d{{1,4}}(?:\.\d+)?(?:/\d{{2,3}})?(?![\d:]|\.\d|/\d|\s?[-–]\s?\d)"
    rf"(?![ \t]?{_DOSE}\b(?!/)|[ \t]?[天周月年日片粒支单])"
)
_NUMBER = r"(?<![\d.–-])\d+(?:[.]\d+)?(?:/\d+)?(?!\s?[-–]\s?\d)"  # of no range
_BRACKET = re.compile(r"[(][^()]*[)]")
_CELLS = re.compile(r"[;；]\s*")
_CLAUSE = re.compile(r"[^,]+")
_INDENTED = re.compile(r"(?:[ \t]+[^\s:][^:\n]*\n?)*")  # further lines of a list
_END = re.compile(r"\n|\.(?=\s)|[;。]")
_SENTENCE = re.compile(r"(?:[^.。;\n]|\.(?=\S))+")


# --- the record -------------------------------------------------------------------------------------------------------


def names_in(text: str) -> tuple[RecordName, ...]:
    """The names in a record, in order, without overlaps; none of a family history."""
    folded = _readable(text)
    allergic, no_names = set[int](), set[int]()
    for span in _allergy_spans(folded):
        to, not_to = _allergens(folded, *span)
        allergic, no_names = allergic | to, no_names | not_to
    found: list[RecordName] = []
    for one in medicines.mentions(folded):
        kind = NameKind.ALLERGY if one.start in allergic else NameKind.MEDICINE
        is_known = one.is_medicine or (not one.ingredients and _has_members(one))
        if is_known and one.start not in no_names and one.written not in _NO_MEDICINE:
            found.append(RecordName(kind, one.ingredients or one.classes, one.start, one.end))
    found += _values(folded, {place for one in found for place in range(one.start, one.end)})
    for thing in synonyms.named(folded):
        is_condition = synonyms.is_in("conditions", thing.written) or thing.written in _pregnancy()
        is_other = bool(_REACTION.search(thing.written) or measures.mentioned(thing.written))
        if is_condition and not is_other and not _is_of_another(folded, thing.start, thing.end):
            found.append(RecordName(NameKind.CONDITION, thing.names, thing.start, thing.end))
    for said in _PREGNANT.finditer(folded):
        found.append(RecordName(NameKind.CONDITION, tuple(sorted(_pregnancy())), *said.span()))
    return tuple(_without_overlaps(found))


def _readable(text: str) -> str:
    """``text`` folded, of the same length, with blanks for a family history."""
    return _FAMILY.sub(lambda history: " " * len(history[0]), _folded(text))


def _folded(text: str) -> str:
    """``text`` folded, of the same length, with points for the dots of British numbers ("2·4")."""
    return re.sub(r"(?<=\d)[·∙](?=\d)", ".", fold(aligned(text)))


def _is_of_another(folded: str, start: int, end: int) -> bool:
    """Whether a condition is denied, is a test ("pregnancy test"), or stands behind a relative in its clause."""
    before = _END.split(folded[max(0, start - SENTENCE) : start])[-1]
    after = _END.split(folded[end : end + SENTENCE])[0]
    relative = _RELATIVE.search(before.rpartition(",")[2])
    return bool(relative) or after.startswith(" test") or denied(before + folded[start:end] + after, len(before))


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
            while further := _FURTHER.match(folded, end):
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
    return frozenset(synonyms.population("pregnancy"))


def _allergy_spans(folded: str) -> Iterator[tuple[int, int, bool]]:
    """The places of a folded text that speak of an allergy: lists under such a heading (True), and other sentences with
    a word for a reaction.
    """
    covered = [_list_below(folded, heading.start(), heading.end()) for heading in _ALLERGIES.finditer(folded)]
    covered = [(start, end) for start, end in covered if start < end]
    yield from ((*place, True) for place in covered)
    starts = iter([*covered, (len(folded), len(folded))])
    first, last = next(starts)
    for sentence in _SENTENCE.finditer(folded):
        while sentence.start() >= last and last < len(folded):
            first, last = next(starts)
        inside = first <= sentence.start() and sentence.end() <= last
        if not inside and _REACTION.search(sentence[0]):
            yield *sentence.span(), False


def _list_below(folded: str, start: int, end: int) -> tuple[int, int]:
    """The list of a heading at ``start:end``: its sentence and indented lines, or lines below up to the next heading;
    empty if it says that there is none, and without what stands with a dose.
    """
    line = folded.find("\n", end) + 1 or len(folded)
    if folded[end:line].strip():
        if _NONE.match(folded, end):
            return end, end
        sentence = re.compile(r"\.(?=\s)|。").search(folded, end, line)
        last = _next_label(folded, end, sentence.start() if sentence else line)
        indented = _INDENTED.match(folded, line) if last == line else None
        last = indented.end() if indented else last
    else:
        start, last = line, _next_label(folded, line, len(folded))
        if _NONE.match(folded, start):
            return start, start
    dosed = (one.start for one in medicines.mentions(folded[end:last]) if _DOSED.match(folded, end + one.end))
    return start, end + next(dosed, last - end)


_DOSED = re.compile(rf"[ \t]*(?:\w{{1,12}}[ \t]+)?{units.dose().pattern}")


def _next_label(folded: str, start: int, end: int) -> int:
    """Where the next label or empty line begins; a medicine is no label: "trimethoprim: rash"."""
    labels = (one.start() for one in _LABEL.finditer(folded, start, end) if not medicines.mentions(one[0]))
    return next(labels, end)


def _allergens(folded: str, start: int, end: int, listed: bool) -> tuple[set[int], set[int]]:
    """The places of medicines in words on an allergy: of those that it is to (each of a list; of a sentence those that
    it is plainly to, and those of short clauses with a word for a reaction), and of those that it is not to, because it
    is denied or they treated it.
    """
    said = folded[start:end]
    found = medicines.mentions(said)
    left = {one.start for one in medicines.mentions(medicines.without_denied_allergens(said, said))}
    plain = {one.start for one in medicines.allergens(said)}
    clauses = [(one.start(), one.end(), one[0]) for one in _CLAUSE.finditer(said)]
    denying = [(first, last) for first, last, clause in clauses if _DENIED.search(clause)]
    telling = [(first, last) for first, last, clause in clauses if len(clause) <= CLAUSE and _REACTION.search(clause)]
    telling = [(first, last) for first, last in telling if not any(first <= place < last for place in plain)]

    def inside(one: medicines.Mention, spans: list[tuple[int, int]]) -> bool:
        return any(first <= one.start < last for first, last in spans)

    no_names = [it for it in found if it.start not in left or _TREATMENTS & {*it.ingredients} or inside(it, denying)]
    to = [it for it in found if it not in no_names and (listed or it.start in plain or inside(it, telling))]
    return {start + it.start for it in to}, {start + it.start for it in no_names}


@dataclass(frozen=True, slots=True)
class Thing:
    """What a record or a question names, ``words`` as written there, in the clause ``said``; ``values`` each by itself.

    ``is_proposed``: only sections on the question name it.
    """

    kind: NameKind
    keys: frozenset[str]
    words: str
    said: str = ""
    is_proposed: bool = False
    values: tuple[str, ...] = ()

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
    """What ``names`` of a ``text`` are, each once, a measure with all its values; without allergies."""
    once: dict[tuple[NameKind, frozenset[str]], Thing] = {}
    for one in (it for it in names if it.kind is not NameKind.ALLERGY):
        key, written = (one.kind, frozenset(one.keys)), " ".join(text[one.start : one.end].split())
        values = _each_value(written, one.keys[0]) if one.kind is NameKind.VALUE else ()
        if key not in once:
            once[key] = Thing(*key, written, _clause(text, one), values=values)
        elif values and written not in once[key].words:  # the reader sees which is of today
            before = once[key]
            once[key] = replace(before, words=f"{before.words}; {written}", values=(*before.values, *values))
    return tuple(once.values())


def _each_value(written: str, measure: str) -> tuple[str, ...]:
    """The name of a measure with each of its numbers: "INR 3.4", "INR 5.8" of "INR 3.4 (10/10) -> 5.8".

    A number without a unit has that of a later one.
    """
    folded = _folded(written)
    name = re.search(measures.by_name(measure).pattern, folded)
    start = name.end() if name else 0
    plain = folded[:start] + _BRACKET.sub(lambda match: " " * len(match[0]), folded[start:])
    made, unit = list[str](), ""
    for match in reversed([*re.finditer(rf"(?P<number>{_NUMBER})[ \t]*(?P<unit>{_UNIT})?", plain[start:])]):
        unit = match["unit"] or unit
        made.append(f"{written[:start].strip()} {match['number']} {unit}".strip())
    return tuple(reversed(made))


def _clause(text: str, one: RecordName) -> str:
    """The words around a name, up to the next separator on its line."""
    start = max(text.rfind(end, 0, one.start) for end in "\n;；。") + 1
    stop = min((at for end in "\n;；。" if (at := text.find(end, one.end)) >= 0), default=len(text))
    said = " ".join(text[start:stop].split()).lstrip("-*•· ")
    if len(said) > SAID:  # a run of names: the part between commas
        start = max(start, *(text.rfind(end, 0, one.start) + 1 for end in ",，、"))
        stop = min(stop, *(at for end in ",，、" if (at := text.find(end, one.end)) >= 0), len(text))
        said = " ".join(text[start:stop].split())
    return shortened(said, SAID)


def shortened(said: str, most: int) -> str:
    """``said``, or its first ``most`` characters up to a blank."""
    if len(said) <= most:
        return said
    whole, blank, _ = said[:most].rpartition(" ")
    return f"{whole if blank else said[:most]} …"


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

    @cached_property
    def warnings(self) -> tuple[Quote, ...]:
        """What of it warns: itself, or of a row on a medicine the texts of its cells."""
        if not self.first:
            return (self,) if warns(self.text) else ()
        texts = (re.split("[:：]", cell, maxsplit=1)[-1] for cell in _CELLS.split(self.text)[1:])
        return tuple(Quote(text, self.statement) for text in texts if warns(text))

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
            named, further = _named_and_proposed(it for one in kept for it in with_else[one])
            statements = tuple(dict.fromkeys(one.statement for one in kept))
            yield TogetherPart(medicine.words, named, statements, further, medicine.said if is_own else "", is_own)


def pairs(
    own: Sequence[Thing], asked: Sequence[Thing], quotes: Iterable[Quote], language: str
) -> Iterator[TogetherPart]:
    """Lines that warn of a medicine and name something else, one of both of the record; each line once.

    Of a row of a list of medicines a cell must warn and name the other; two medicines stand in a sentence as two words.
    A value counts if it is in a range that the cell or sentence gives. Of a condition only rows tell, and sentences on
    a pregnancy. A medicine that only sections propose is told with one of the record alone. Sentences in another
    language than the question's are told of what no line in that one names.
    """
    every = [it for it in (*own, *asked) if it.kind is NameKind.MEDICINE]
    found: dict[Thing, list[tuple[Quote, list[Thing]]]] = {}
    told = set[str]()
    for one in (it for it in _once(quotes) if warns(it.text) and (it.first or not it.is_row)):
        for medicine in (it for it in every if (one.first & it.keys if one.first else one.names(it))):
            beside = [*own, *every] if medicine in own else own
            others = [it for it in dict.fromkeys(beside) if _is_another(it, medicine) and _warns_of(one, it, medicine)]
            for about, partners in _by_own(medicine, others) if one.text not in told else ():
                told.add(one.text)
                found.setdefault(about, []).append((one, partners))
    for medicine, with_others in found.items():
        kept = _first_warnings(with_others, language)
        partners = [*dict.fromkeys(it for _, others in kept for it in others)]
        named, further = _named_and_proposed(partners)
        statements = tuple(dict.fromkeys(one.statement for one, _ in kept))
        own_words = dict.fromkeys(it.said for it in (medicine, *partners) if it in own and it.kind is NameKind.MEDICINE)
        yield TogetherPart(medicine.words, named, statements, further, " · ".join(own_words), is_warning=True)


def _named_and_proposed(found: Iterable[Thing]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The words of what record or question name, and of what only sections propose, each once in whatever case."""
    once = {(it.is_proposed, fold(it.words)): it.words for it in found}
    proposed_ones = tuple(words for (is_proposed, _), words in once.items() if is_proposed)
    return tuple(words for (is_proposed, _), words in once.items() if not is_proposed), proposed_ones


def _by_own(medicine: Thing, others: list[Thing]) -> Iterator[tuple[Thing, list[Thing]]]:
    """A ``medicine`` with ``others``, with proposed ones only where there is no other medicine; a proposed one below
    each medicine of the record among them.
    """
    if not medicine.is_proposed:
        taken = [it for it in others if not it.is_proposed]
        others = taken if any(it.kind is NameKind.MEDICINE for it in taken) else others
        yield from [(medicine, others)] if others else ()
    else:
        yield from ((it, [medicine]) for it in others if it.kind is NameKind.MEDICINE)


def _first_warnings(lines: list[tuple[Quote, list[Thing]]], language: str) -> list[tuple[Quote, list[Thing]]]:
    """Rows first, then what is said of values; of sentences in another language those that name something more."""

    def rank(it: tuple[Quote, list[Thing]]) -> tuple[bool, bool, bool]:
        line, others = it
        is_foreign = not line.first and detect(line.text) != language
        return not line.first, is_foreign, all(one.kind is not NameKind.VALUE for one in others)

    kept, named = list[tuple[Quote, list[Thing]]](), set[Thing]()
    for line, others in sorted(lines, key=rank):
        if line.first or detect(line.text) == language or not named.issuperset(others):
            kept.append((line, others))
            named |= {*others}
    return kept[:WARNINGS]


def _warns_of(line: Quote, thing: Thing, medicine: Thing) -> bool:
    """Whether a line, or a cell of a row, that warns of a ``medicine`` names ``thing``."""
    if thing.kind is NameKind.CONDITION and not (line.first or thing.keys & _pregnancy()):
        return False
    if thing.kind is NameKind.VALUE:
        return any(_holds(it, thing, said) for it in line.warnings for said in thing.values)
    if thing.kind is NameKind.MEDICINE and not line.first:
        words = {*medicines.named_in(medicine.words, line.text), *medicines.named_in(thing.words, line.text)}
        return line.names(thing) and (len(words) > 1 or any(fold(line.text).count(word) > 1 for word in words))
    return any(it.names(thing) for it in line.warnings)


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
        dangerous = [one for one in value.values if urgent(one)]
        of = [measures.by_name(name) for name in sorted(value.keys)]
        giving = [one for one in lines if any(measures.gives_reference(one.text, it) for it in of)]
        holding = [one for one in lines if any(_holds(one, value, said) for said in dangerous)]
        found = _of_language([*dict.fromkeys((*holding, *giving))], language)
        statements = tuple(dict.fromkeys(one.statement for one in found))[:OF_VALUE]
        if statements or dangerous:
            together.setdefault((bool(dangerous), statements), []).append(value.words)
    for (first, statements), words in together.items():
        yield RangePart(tuple(words), statements, first)


def _holds(line: Quote, value: Thing, said: str) -> bool:
    """Whether ``line`` gives a range that holds ``said`` of a ``value``, if need be in the measure's usual unit."""
    unit = measures.by_name(min(value.keys)).unit
    known = next(filter(None, ([*measures.measured(fold(aligned(it)))] for it in (said, f"{said} {unit}"))), [])
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


def allergens(text: str) -> Iterator[tuple[str, str, str, bool]]:
    """The words of ``text`` on each allergy or reaction, the medicines that it is to, those named elsewhere, and
    whether a heading says so.
    """
    names = names_in(text)
    for start, end, listed in _allergy_spans(_readable(text)):
        inside = [it for it in names if start <= it.start < end]
        own = " ; ".join(text[it.start : it.end] for it in inside if it.kind is NameKind.ALLERGY)
        others = (it for it in names if it.kind is NameKind.MEDICINE and it not in inside)
        yield " ".join(text[start:end].split()), own, " ; ".join(text[it.start : it.end] for it in others), listed


def said_of_allergies(text: str) -> tuple[str, ...]:
    """What ``text`` says of allergies and reactions, as written: under a heading all of its line up to the next label,
    for a list may name what is no medicine ("Latex").
    """
    folded = _readable(text)
    quoted, last = list[str](), 0
    for start, end, listed in sorted(_allergy_spans(folded)):
        if start >= last and not _ALLERGIES.fullmatch(folded, start, end):
            line = folded.find("\n", end - 1)
            last = _next_label(folded, end, line if line >= 0 else len(folded)) if listed else end
            quoted.append(shortened(" ".join(text[start:last].split()), WORDS))
    return tuple(dict.fromkeys(quoted))


def allergies(text: str, quotes: Sequence[Quote], language: str) -> Iterator[AllergyPart]:
    """The record's words on allergies to medicines in ``quotes``, with what these quote, or to its own medicines."""
    told = set[tuple[str, ...]]()
    for said, own, others, _ in allergens(text):
        words = shortened(said, WORDS)
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
