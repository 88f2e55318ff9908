"""A record in prose, English or Chinese: what is read of it, each entry with the words that it was read from.

- *Problems* and *allergies*: lists under their headings, and explicit cues ("history of", "allergic to", 对…过敏). A
  medicine that came with what an allergy looks like ("a rash with penicillin") stands there too, in the record's words.
- *Medicines*: those of our table wherever they are named, in a list of medicines, behind "takes" or the like, or with
  an amount. One that is named otherwise, in a sentence that may deny or stop it, plan it or speak of somebody else, or
  in a block of lines that may (``uncertain``), is kept as *named* only, so that nobody is said to take it.
- *Results*, age, sex and pregnancy, where no relative is spoken of.

Rules that would rather miss an entry than take one that the record denies. Not covered: an illness that prose merely
mentions, family history, procedures, abbreviations of one's own. Time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from localmed.domain import Message, message
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.ingest.records import cues
from localmed.ingest.records.parts import ENTRY_CHARACTERS, entries, measure_name, newest, one_patient, struck
from localmed.text import abbreviations, measures, medicines, synonyms
from localmed.text.language import aligned, clean, detect, fold

# --- blocks of lines -------------------------------------------------------------------------------------------------

# A block is the lines without an empty one or a heading between. "Stopped in May" below a medicine and "Not taking:"
# above one are of other lines than their own; of which ones no rule can tell, so that they hold for all of the block.

HEADING_WORDS = 8  # of an English line that may head others
HEADING_CHARACTERS = 24  # of a Chinese one
_BLANK_LINE = re.compile(r"\n[ \t]*\n\s*")
_LINE = re.compile(r"[^\n]+")


def uncertain(text: str, medicines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The blocks ``start:end`` of ``text`` in which nothing is surely taken; ``medicines`` are the places of names.

    A heading that stops, denies or plans holds beyond empty lines, up to the next heading.
    """
    headings = {mark.start(): mark.end() for mark in cues.HEADING.finditer(text)}
    edges = sorted({0, *headings, *(blank.end() for blank in _BLANK_LINE.finditer(text))} | {len(text)})
    under = False
    for start, end in pairwise(edges):
        under = held = under and start not in headings
        for line in _LINE.finditer(text, start, end):
            heads = None if line.start() in headings else _heads(line, medicines)
            if heads is not None:
                under = heads
            held = held or under
        held = held or any(_stops(sentence) for sentence in cues.SENTENCE.finditer(text, start, end))
        if held or (end not in headings and _stops_behind(text, end, medicines)):
            yield start, end


def _stops(sentence: re.Match[str]) -> bool:
    """Whether a sentence stops, denies, replaces or plans a medicine: of the block's, no rule can tell which."""
    return bool(cues.REPLACED.match(sentence[0].lstrip(" \t-*•(（")) or cues.NOT_NOW.search(sentence[0]))


def _names_medicine(medicines: Sequence[int], start: int, end: int) -> bool:
    place = bisect_left(medicines, start)
    return place < len(medicines) and medicines[place] < end


def _heads(line: re.Match[str], medicines: Sequence[int]) -> bool | None:
    """Whether a line heads what is not taken; ``None`` where it is no heading."""
    words = line[0].strip()
    length, most = (len(words), HEADING_CHARACTERS) if detect(words) == "zh" else (len(words.split()), HEADING_WORDS)
    if length > most or words.endswith((".", "。", ";", "；")) or _names_medicine(medicines, *line.span()):
        return None
    if cues.NOT_NOW.search(words) or cues.DENIED.search(words):
        return True
    return False if words.endswith((":", "：")) else None


def _stops_behind(text: str, end: int, medicines: Sequence[int]) -> bool:
    """Whether the line behind the empty one at ``end`` is about what stands before it: it stops and names nothing."""
    line = _LINE.match(text, end)
    return bool(line and cues.STOPPED.search(line[0]) and not _names_medicine(medicines, *line.span()))


# --- summary ----------------------------------------------------------------------------------------------------------

# A record of one line, as colleagues write it to each other: "72M, AF, on warfarin 3 mg, wants ibuprofen".
#
# It begins with age and sex. Each clause between commas is then read for itself, so that a wish in one says nothing of
# a medicine in another; but where a clause stops or denies something and names no medicine, it may mean any of them,
# and nothing is said to be taken. A clause that is nothing but a listed condition or its abbreviation is a problem.

LONGEST = 400  # characters of such a line
BEGINS = re.compile(
    r"\s*(?:(?P<age>\d{1,3})\s?(?:y/?o|yrs?|years? old)?\s?(?P<sex>[mf])\b"
    r"|\d{1,3}\s?岁\s?[男女]|[男女][性，, ]*\d{1,3}\s?岁)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,，;；。]?(?:[^,，;；。.\n]|\.(?=\d)|,(?=\d{3}\b))+|\.(?!\d)")
_EDGES = " \t,，;；。."
_WEIGHT = re.compile(
    r"[\s,，;；。]*(?P<written>(?P<number>\d{1,3}(?:\.\d)?)\s?(?:kg|公斤|千克))[\s.。]*"
)  # a clause of its own


def is_summary(text: str) -> bool:
    """Whether ``text`` is such a line."""
    return "\n" not in text.strip() and len(text) <= LONGEST and bool(BEGINS.match(text))


def clauses(text: str) -> list[tuple[int, int]]:
    """Where the clauses of ``text`` stand, each with the mark before it."""
    return [match.span() for match in _CLAUSE.finditer(text) if match[0].strip(_EDGES)]


def unclear(text: str, medicines: Sequence[int]) -> bool:
    """Whether a clause that names none of the ``medicines`` (their places) stops, denies or plans one."""
    return any(
        cues.NOT_NOW.search(text, start, end) and not bisect_left(medicines, end) - bisect_left(medicines, start)
        for start, end in clauses(text)
    )


def problems(text: str) -> Iterator[tuple[int, int]]:
    """The clauses that are nothing but a condition, ``start:end``."""
    for start, end in clauses(text):
        words = text[start:end]
        first, last = start + len(words) - len(words.lstrip(_EDGES)), start + len(words.rstrip(_EDGES))
        if _is_condition(text[first:last]):
            yield first, last


def _is_condition(words: str) -> bool:
    """Whether ``words`` are the name of a listed condition, or an abbreviation of one."""
    meanings = (words, *abbreviations.meaning(words, detect(words)).split(", "))
    return any(synonyms.is_condition(meaning) for meaning in meanings if meaning)


# --- text -------------------------------------------------------------------------------------------------------------

TEXT_CHARACTERS = 20_000  # of the prose kept for a model to read
RESULTS = 2_000  # of a record; of one with more no value is read
ITEM_WORDS = 8  # of an English entry; a longer one is a sentence
ITEM_CHARACTERS = 24  # of a Chinese one
BEFORE, AFTER = 40, 60  # characters of the record quoted with an entry, within its sentence: no more prose than needed

_KINDS = {
    "problems": EntryKind.PROBLEM, "medications": EntryKind.MEDICINE, "allergies": EntryKind.ALLERGY,
}  # fmt: skip


def read_text(text: str) -> PatientRecord:
    """The record in ``text``; raise ``InputError`` where it is plainly of two patients."""
    text = clean(text)
    one_patient(text)
    return from_prose(struck(text))


@dataclass(frozen=True, slots=True)
class _Sentence:
    """A sentence ``start:end`` and the list (or "family", "plan") that it stands in; "" for none."""

    start: int
    end: int
    section: str


class _Prose:
    """A record's text, cut into sentences once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = fold(aligned(text))
        self.language = detect(text)
        self.summary = is_summary(text)
        self.sentences = [_Sentence(*span, "") for span in clauses(text)] if self.summary else []
        self.sentences = self.sentences or list(_sentences(text))
        self._starts = [sentence.start for sentence in self.sentences]
        self.mentions = medicines.mentions(self.folded)
        places = [mention.start for mention in self.mentions]
        clear = self.summary and not unclear(text, places)
        self._uncertain = [] if clear else list(uncertain(text, places))

    def uncertain(self, place: int) -> bool:
        """Whether the block of lines around ``place`` may be about what is not taken."""
        at = bisect_right(self._uncertain, (place, len(self.text))) - 1
        return at >= 0 and place < self._uncertain[at][1]

    def at(self, place: int) -> _Sentence:
        """The sentence that holds ``place``."""
        return self.sentences[max(0, bisect_right(self._starts, place) - 1)]

    def entry(self, kind: EntryKind, start: int, end: int) -> RecordEntry:
        """An entry that was read at ``start:end``, with the sentence around it as its words."""
        sentence = self.at(start)
        first = min(start, max(sentence.start, start - BEFORE))
        last = max(end, min(sentence.end, end + AFTER))
        while sentence.start < first < start and not self.text[first - 1].isspace() and self.text[first].isascii():
            first += 1  # no half words
        while end < last < sentence.end and not self.text[last].isspace() and self.text[last].isascii():
            last -= 1
        if first == sentence.start and (heading := cues.HEADED.search(self.text, max(0, first - BEFORE), first)):
            first = heading.start()
        words = " ".join(self.text[first:last].split()).lstrip(",，;；。 ")
        return RecordEntry(kind, " ".join(self.text[start:end].split())[:ENTRY_CHARACTERS], words, start, end)

    def doubtful(self, start: int, end: int, listed: bool = False) -> bool:
        """Whether the sentence around may deny, stop or plan what stands at ``start:end``, or be about another.

        In a list of illnesses (``listed``) what follows a comma is about the next one.
        """
        sentence = self.at(start)
        whole, before = self.text[sentence.start : sentence.end], self.text[sentence.start : start]
        after = self.text[end : sentence.end]
        own, _, later = after.replace("，", ",").partition(",")
        if not listed and (cues.LATER_CLAUSE.match(later) or detect(whole) == "zh"):
            own += later
        around = f"{before}\n{own}"
        doubts = (cues.DENIED, cues.PLANNED, cues.RELATIVE)
        return (
            sentence.section in ("family", "plan")
            or bool(cues.STOPPED.search(whole))
            or any(cue.search(around) for cue in doubts)
        )

    def doubted_reaction(self, start: int) -> bool:
        """Whether the sentence around may deny, foresee or treat a reaction, or is about another person's."""
        sentence = self.at(start)
        whole = self.text[sentence.start : sentence.end]
        return sentence.section in ("family", "plan") or any(
            cue.search(whole) for cue in (cues.DENIED, cues.PLANNED, cues.RELATIVE, cues.RELIEVED)
        )


def from_prose(text: str) -> PatientRecord:
    """The record in prose that names nobody."""
    prose = _Prose(text)
    measured = list(_results(prose))
    values: dict[str, set[float]] = {}
    for result in measured:
        values.setdefault(result.name, set()).add(result.value)
    judged = measured if len(measured) <= RESULTS else ()
    surely = {result for result in judged if len(values[result.name]) == 1 and _sure(prose, result)}
    results, remarks = newest((result for result in measured if result in surely), detect(text))
    allergies = list(_allergies(prose))
    others = [(entry.start, entry.end) for entry in allergies] + [(result.start, result.end) for result in measured]
    read = [
        *_age(prose), *_sex(prose), *_pregnancy(prose), *_problems(prose), *allergies,
        *_medicines(prose, others), *(_result(prose, result) for result in results),
        *(_unread(prose, result) for result in measured if result not in surely),
    ]  # fmt: skip
    once = tuple({_key(entry): entry for entry in reversed(read)}.values())[::-1]
    lists: dict[str, tuple[str, ...]] = {}
    notes: list[Message] = []
    for name, kind in _KINDS.items():
        lists[name], note = entries((entry.text for entry in once if entry.kind is kind), name)
        notes += note
    if not once:
        notes.append(message("record.nothing"))
    if len(text) > TEXT_CHARACTERS:
        notes.append(message("record.text_cut", kept=TEXT_CHARACTERS, characters=len(text)))
    once, contradiction = _consistent(once)
    sex = next((entry.text for entry in once if entry.kind is EntryKind.SEX), "")
    pregnant = next((entry.text == "yes" for entry in once if entry.kind is EntryKind.PREGNANCY), None)
    return PatientRecord(
        problems=lists["problems"],
        medications=lists["medications"],
        allergies=lists["allergies"],
        language=detect(text),
        age=next((float(entry.text) for entry in once if entry.kind is EntryKind.AGE), None),
        sex=sex,
        pregnant=pregnant,
        none_of=_none_of(prose, lists, once),
        results=results,
        text=text[:TEXT_CHARACTERS],
        entries=once,
        notes=(*contradiction, *notes, *remarks),
    )


def _key(entry: RecordEntry) -> tuple[str, ...]:
    """What tells entries apart: of a result that was not read all words are shown."""
    return (entry.kind, fold(entry.text), entry.words if entry.kind is EntryKind.UNREAD else "")


def _consistent(entries: tuple[RecordEntry, ...]) -> tuple[tuple[RecordEntry, ...], tuple[Message, ...]]:
    """The entries without sex and pregnancy where a male is said to be pregnant, and a note that says so."""
    sex = next((entry for entry in entries if entry.kind is EntryKind.SEX), None)
    pregnancy = next((entry for entry in entries if entry.kind is EntryKind.PREGNANCY), None)
    if not sex or not pregnancy or sex.text != "male":
        return entries, ()
    if pregnancy.text == "no":
        return tuple(entry for entry in entries if entry is not pregnancy), ()
    note = message("record.contradiction", sex=sex.words, pregnancy=pregnancy.words)
    return tuple(entry for entry in entries if entry not in (sex, pregnancy)), (note,)


# --- sentences and lists ----------------------------------------------------------------------------------------------


def _sentences(text: str) -> Iterator[_Sentence]:
    """Every sentence, headings apart. A list ends with its sentence, or where it begins on a new line, with a blank
    one.
    """
    place, section, block = 0, "", False
    for mark in (*cues.HEADING.finditer(text), None):
        for match in cues.SENTENCE.finditer(text, place, mark.start() if mark else len(text)):
            blank = "\n\n" in text[place : match.start()].replace(" ", "")
            if section and (blank or not (block or _goes_on(text, match, section))):
                section = ""
            if match[0].strip():
                yield _Sentence(*match.span(), section)
            place = match.end()
        if mark:
            place, block = mark.end(), mark[0].endswith("\n") or text[mark.end() : mark.end() + 1] == "\n"
            section = mark.lastgroup or ""
            section = "" if section == "other" else section


def _goes_on(text: str, match: re.Match[str], section: str) -> bool:
    """Whether a sentence belongs to the list before it: it follows a heading or a semicolon; of the family's and of
    plans the whole line does.
    """
    if section in ("family", "plan"):
        return "\n" not in text[max(0, match.start() - 1) : match.start()]
    before = text[max(0, match.start() - 2) : match.start()].rstrip(" \t")
    return before[-1:] in (":", "：", ";", "；")


def _items(prose: _Prose, section: str) -> Iterator[tuple[int, int]]:
    """The entries of the lists of ``section``, ``start:end``, whatever they say."""
    for sentence in prose.sentences:
        if sentence.section != section:
            continue
        for match in cues.ITEM.finditer(prose.text, sentence.start, sentence.end):
            place = match.start()
            for end in (*(joint.start() for joint in cues.AND.finditer(match[0])), len(match[0])):
                start = cues.LEAD.match(prose.text, place, match.start() + end)
                assert start is not None  # it matches nothing as well
                stripped = prose.text[start.end() : match.start() + end].rstrip(" \t.。")
                if stripped.strip():
                    yield start.end(), start.end() + len(stripped)
                joint = cues.AND.match(match[0], end)
                place = match.start() + (joint.end() if joint else end)


def _is_entry(text: str) -> bool:
    if cues.NO_ENTRY.search(text) or not re.search(r"[^\W\d_]", text):
        return False
    return len(text) <= ITEM_CHARACTERS if detect(text) == "zh" else len(text.split()) <= ITEM_WORDS


def _problems(prose: _Prose) -> Iterator[RecordEntry]:
    spans = [*_items(prose, "problems"), *(problems(prose.text) if prose.summary else ())]
    for match in cues.PROBLEM_CUE.finditer(prose.text):
        if prose.at(match.start()).section != "problems":
            spans.append(match.span(next(name for name, text in match.groupdict().items() if text)))
    for start, end in spans:
        text = prose.text[start:end].rstrip()
        other = any(cue.search(text) for cue in (cues.ALLERGIC, cues.DENIED, cues.RELATIVE)) or medicines.mentions(text)
        if _is_entry(text) and not other and not prose.doubtful(start, start + len(text), listed=True):
            yield prose.entry(EntryKind.PROBLEM, start, start + len(text))


def _allergies(prose: _Prose) -> Iterator[RecordEntry]:
    spans = list(_items(prose, "allergies"))
    for match in cues.ALLERGY_CUE.finditer(prose.text):
        name = next(name for name, text in match.groupdict().items() if text)
        if fold(match[name]) not in cues.NO_ALLERGEN:
            spans.append(match.span(name))
    listed = {place for start, end in spans for place in range(start, end)}
    for mention in prose.mentions:
        reacted = mention.start not in listed and _reacted(prose, mention.start, mention.end)
        if reacted or prose.folded.startswith("过敏", mention.end):
            spans.append((mention.start, mention.end))
    for start, end in spans:
        text = prose.text[start:end].rstrip()
        sentence = prose.at(start)
        own = re.match(r"[^,，]*", prose.text[start + len(text) : sentence.end])
        before = prose.text[sentence.start : start] + text + (own[0] if own else "")
        denied = cues.DENIED.search(before) or cues.RELATIVE.search(before) or sentence.section == "family"
        if _is_entry(text) and not denied:
            yield prose.entry(EntryKind.ALLERGY, start, start + len(text))


def _reacted(prose: _Prose, start: int, end: int) -> bool:
    """Whether the sentence says of the medicine ``start:end`` that it came with what an allergy looks like."""
    sentence = prose.at(start)
    if prose.doubted_reaction(start):
        return False
    for reaction in cues.REACTION.finditer(prose.text, sentence.start, sentence.end):
        if reaction.end() <= start and cues.REACTED_TO.fullmatch(prose.text, reaction.end(), start):
            return True
        if reaction.start() >= end and cues.REACTION_OF.fullmatch(prose.text, end, reaction.start()):
            return True
    return False


def _medicines(prose: _Prose, others: list[tuple[int, int]]) -> Iterator[RecordEntry]:
    """Every medicine that is named outside ``others``: as taken where something says so, else as named only."""
    covered = {place for start, end in others for place in range(start, end)}
    for mention in prose.mentions:
        sentence = prose.at(mention.start)
        if mention.start in covered or sentence.section == "allergies":
            continue
        listed = sentence.section == "medications" or cues.TAKING.search(prose.text, sentence.start, mention.start)
        amount = cues.AMOUNT.match(prose.text, mention.end, sentence.end)
        allergic = cues.ALLERGIC.search(prose.text, sentence.start, sentence.end)
        denied = allergic or cues.NOT_TAKEN.search(prose.text, sentence.start, sentence.end)
        item = cues.ITEM.match(prose.text, mention.start, sentence.end)
        end = item.end() if item else mention.end
        joint = cues.AND.search(prose.text, mention.end, end)
        end = mention.start + len(prose.text[mention.start : joint.start() if joint else end].rstrip())
        taken = listed or (amount and _alone(prose, sentence, mention.start, mention.end, end))
        doubtful = prose.uncertain(mention.start) or prose.doubtful(mention.start, mention.end)
        if taken and not denied and not doubtful:
            yield prose.entry(EntryKind.MEDICINE, mention.start, end)
        elif sentence.section != "family":
            yield prose.entry(EntryKind.NAMED, mention.start, mention.end)
    for start, end in _items(prose, "medications"):
        amount = cues.AMOUNT.search(prose.text, start, end)
        if amount and not medicines.mentions(prose.folded[start:end]):
            doubtful = prose.uncertain(start) or prose.doubtful(start, end)
            yield prose.entry(EntryKind.NAMED if doubtful else EntryKind.MEDICINE, start, end)


def _alone(prose: _Prose, sentence: _Sentence, start: int, name_end: int, end: int) -> bool:
    """Whether a clause is nothing but the medicine ``start:name_end`` and how much of it is taken when."""
    before = re.split(r"[,，、]|\band\b|和|及", prose.text[sentence.start : start])[-1]
    after = prose.folded[name_end:end]
    return not before.strip(" \t-*•·0123456789.)") and bool(cues.DIRECTIONS.fullmatch(after))


def listed(name: str, text: str) -> list[str]:
    """The entries of the list ``name`` (problems, medications, allergies) that ``text`` without a heading is."""
    names: tuple[str, ...] = getattr(from_prose(f"{name}: {text}"), name)
    return list(names)


def _none_of(prose: _Prose, lists: dict[str, tuple[str, ...]], entries: tuple[RecordEntry, ...]) -> frozenset[str]:
    """The lists of which their own heading says that there is nothing; none that names what may be taken."""
    named = {prose.at(entry.start).section for entry in entries if entry.kind is EntryKind.NAMED}
    denied = {
        sentence.section
        for sentence in prose.sentences
        if sentence.section in lists and cues.NOTHING.fullmatch(prose.text, sentence.start, sentence.end)
    }
    return frozenset(name for name in denied - named if not lists[name])


# --- the patient and results ------------------------------------------------------------------------------------------


def _of_another(prose: _Prose, start: int) -> bool:
    sentence = prose.at(start)
    return sentence.section == "family" or bool(cues.RELATIVE.search(prose.text, sentence.start, start))


def _age(prose: _Prose) -> Iterator[RecordEntry]:
    """The first age that is said of nobody else: in months where no years are."""
    if prose.summary and (begins := BEGINS.match(prose.text)) and begins["age"]:
        yield prose.entry(EntryKind.AGE, *begins.span("age"))
        return
    for pattern, scale in cues.AGE:
        for match in pattern.finditer(prose.folded):
            value = float(next(group for group in match.groups() if group)) * scale
            once = cues.AT_THE_AGE.search(prose.folded, max(0, match.start() - BEFORE), match.start())
            if not once and not _of_another(prose, match.start()) and value < measures.by_name("age").plausible[1]:
                entry = prose.entry(EntryKind.AGE, *match.span())
                yield RecordEntry(EntryKind.AGE, f"{round(value, 1):g}", entry.words, *match.span())
                return


def _sex(prose: _Prose) -> Iterator[RecordEntry]:
    if prose.summary and (begins := BEGINS.match(prose.text)) and begins["sex"]:
        entry = prose.entry(EntryKind.SEX, *begins.span("sex"))
        yield RecordEntry(EntryKind.SEX, {"m": "male", "f": "female"}[begins["sex"].lower()], *_place(entry))
        return
    for match in cues.SEX.finditer(prose.folded):
        title = cues.TITLE.fullmatch(prose.text, *match.span())  # "morphine MR", "MS since 2010"
        if match.lastgroup and not title and not _of_another(prose, match.start()):
            entry = prose.entry(EntryKind.SEX, *match.span())
            yield RecordEntry(EntryKind.SEX, match.lastgroup, entry.words, *match.span())
            return


def _place(entry: RecordEntry) -> tuple[str, int, int]:
    return entry.words, entry.start, entry.end


def _pregnancy(prose: _Prose) -> Iterator[RecordEntry]:
    """Denied or affirmed, where only one of the two is said, and not of somebody else or another time."""
    denied, affirmed = cues.NOT_PREGNANT.search(prose.folded), cues.PREGNANT.search(prose.folded)
    match = denied or affirmed
    if match and not (denied and affirmed and not _overlap(denied, affirmed)):
        sentence = prose.at(match.start())
        whole = prose.text[sentence.start : sentence.end]
        doubtful = cues.STOPPED.search(whole) or _of_another(prose, match.start())
        if not doubtful and (denied or not (cues.DENIED.search(whole) or cues.PLANNED.search(whole))):
            entry = prose.entry(EntryKind.PREGNANCY, *match.span())
            yield RecordEntry(EntryKind.PREGNANCY, "no" if denied else "yes", entry.words, *match.span())


def _overlap(one: re.Match[str], other: re.Match[str]) -> bool:
    return one.start() < other.end() and other.start() < one.end()


def _results(prose: _Prose) -> Iterator[Measured]:
    for start, end in clauses(prose.text) if prose.summary else ():
        if alone := _WEIGHT.fullmatch(prose.folded, start, end):
            yield Measured("weight", float(alone["number"]), alone["written"], "", *alone.span("written"))
    for result in measures.measured(prose.folded):
        sentence = prose.at(result.start)
        before = prose.text[sentence.start : result.start]
        if not _of_another(prose, result.start) and not cues.PLANNED.search(before) and sentence.section != "plan":
            yield result


def _sure(prose: _Prose, result: Measured) -> bool:
    """Whether the value, the record's only one, is surely that of now."""
    sentence = prose.at(result.start)
    if cues.STOPPED.search(prose.text, sentence.start, sentence.end):
        return False
    return cues.sure(prose.folded, result, sentence.start, sentence.end)


def _unread(prose: _Prose, result: Measured) -> RecordEntry:
    entry = prose.entry(EntryKind.UNREAD, result.start, result.end)
    return RecordEntry(EntryKind.UNREAD, measure_name(result, prose.language), entry.words, entry.start, entry.end)


def _result(prose: _Prose, result: Measured) -> RecordEntry:
    name = measure_name(result, prose.language)
    words = prose.entry(EntryKind.RESULT, result.start, result.end).words
    return RecordEntry(EntryKind.RESULT, f"{name}: {result.written}", words, result.start, result.end)
