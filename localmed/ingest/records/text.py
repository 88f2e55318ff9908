"""Reads a record in prose, English or Chinese: its headed lists, its values, and quotations of everything else.

- *Problems*, *medicines* and *allergies* are the entries under their own headings. A list that may deny, stop or plan
  something, or concern another person, is quoted instead. A list of problems or medicines goes on over the lines below
  as long as each of them only names conditions, or medicines with an amount or directions.
- *Results* are the values of sentences that neither themselves nor by the words above them may speak of another time or
  person, deny or aim at something, name a medicine, or list several values.
- *Age* and *sex* are as labelled, else as in the first sentence with an age.
- Any other medicine is *named* with its sentence, unless it was named before and this sentence may say that it is
  stopped.
- All else but identifiers is quoted (*unread*), so nothing is dropped silently.

No conclusion is drawn from a sentence: who takes what, and since when, is left to the reader or a model. Headings are
those of ``text/records.toml``. Time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from localmed.domain import Message, message
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.ingest.records.parts import (
    ENTRY_CHARACTERS,
    STRUCK,
    check_one_patient,
    entries,
    measure_name,
    newest_results,
    strike_identifiers,
)
from localmed.text import abbreviations, measures, medicines, synonyms, units
from localmed.text.language import HAN, aligned, clean, detect, fold
from localmed.text.tables import cues, in_characters, in_words, table

TEXT_CHARACTERS = 20_000  # of the prose kept for a model
SENTENCE_CHARACTERS = 300  # a longer one is split and quoted in parts
OPENING = 300  # characters in which the first age may stand
ITEM_WORDS = 8  # of an English entry; a longer one is a sentence
ITEM_CHARACTERS = 24  # of a Chinese entry
UNLISTED_WORDS = 3  # of a medicine that no table names
BEFORE = 8  # blanks before a heading or the number of an item
MOST = 300  # entries; further unread text is not quoted, which a note states
STRUCK_WORDS = 4  # of an item that is only an identifier: "Date of birth […]"
NEAR = 20  # characters before a value that say that it is another time's
RESULTS = 2_000  # of a record; with more no value is read

CONDITIONS = ("conditions", "complaints")  # of the table of synonyms
_KINDS = {"problems": EntryKind.PROBLEM, "medications": EntryKind.MEDICINE, "allergies": EntryKind.ALLERGY}
_TABLE = table("records")
_KNOWN = "|".join(
    rf"(?P<{name}>(?:(?:{in_characters(one['before'])}) )?(?:{in_characters(one['en'])})"
    rf"(?: (?:{in_characters(one['after'])}))?|(?:{in_characters(one['zh'])})(?:情况)?)"
    for name, one in _TABLE["headings"].items()
)
_WHEN = r"(?: \d{1,2}/\d{1,2}(?!/))?(?: \d{1,2}:\d\d)?"  # "Labs 14/06 07:10:"
_DATE = re.compile(r"\d{1,2}/\d{1,2}")
_COLON = r"(?<!\d(?=:\d\d))[:：]"  # not of a time
_HEADING = re.compile(
    rf"(?:^|(?<=[.。;；,，\n]))[ \t]{{0,8}}(?:#+ {{0,4}}|[-*•·] ?|(?<!\d\.)\d{{1,2}}[.)、] {{0,4}})?(?:{_KNOWN}){_WHEN}"
    rf"(?:[ \t]{{0,4}}(?:{_COLON}|(?=\n)|[-–] )|(?:(?<=(?-i:PMH))|(?<=(?-i:DH))) )"
    rf"|(?:^|(?<=[。;；\n])|(?<=\.)(?=\s))[ \t]{{0,8}}(?P<other>(?:[^\n.。;；:：,，]|(?<=\d):(?=\d\d)){{1,80}})"
    rf"{_COLON}",
    re.IGNORECASE,
)
_SENTENCE = re.compile(rf"(?:[^.。;；\n]|\.(?=\S)){{1,{SENTENCE_CHARACTERS}}}")
_COMMA_PART = re.compile(r"[^,，、]+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n|\Z")
_NEW_LINE = re.compile(r"[ \t]*\n")
_END = re.compile(r"\.(?!\S)|[。\n]|\Z")  # the end of a list on the line of its heading
_LINE_END = re.compile(r"\n|\Z")
_NUMBER = re.compile(r"(?<![^\s:：])(\d{1,2})[.)、](?!\d(?!型))[ \t]*")  # "3.2型糖尿病" is the third item
_REST = re.compile(r"[.。][ \t]*([^.。\n]+)")
_ALL = re.compile(r"\b(?:all|both|above|these|those|they|them|it|everything)\b|均|都|全部|以上|上述", re.IGNORECASE)
_NEXT_LINE = re.compile(r"[ \t]*\n([^\n]*[^\s][^\n]*)")
_STAGE = re.compile(r"\d+[ab]?(?![a-z\d])")
# Of the ward, not taken at home.
_NEW_ORDER = re.compile(r"\b(?:iv|im|stat|infusion)\b|静滴|静推|静脉|肌注|立即", re.IGNORECASE)
_CLAUSE = re.compile(r"[^;；\n]*[^;；\s][^;；\n]*")
_ON_ITS_LINE = re.compile(r"[^.。;；\n]+(?:\.(?=\S)[^.。;；\n]*)*")
_DENIAL = re.compile(
    r"[,，]\s*(?P<denied>(?:否认|denies\b|no\b(?! (?:known|longer|more|evidence|signs?)\b))[^,，;；\n]{2,})",
    re.IGNORECASE,
)
_ITEM = re.compile(r"(?:\([^()\n]*\)|（[^（）\n]*）|(?<=\d),(?=\d)|[^,，、;；\n])+")
_LINE = re.compile(r"[^\n]+")
_BULLET = re.compile(r"[\s\-*•·]*(?:\d{1,2}[.)、](?!\d)\s*)?")
_MARKED = re.compile(r"\s*(?:[-*•·]|\d{1,2}[.)、])")
_SAYS = re.compile(rf"[{HAN}]|(?:[^\W\d_]\W*){{3}}|[^\W\d_]\W*\d")  # more than a mark or a title
_LETTER, _DIGIT = re.compile(r"[^\W\d_]"), re.compile(r"\d")
_DIRECTIONS, _LITTLE = cues("records", "directions"), cues("records", "little")
_WORD = re.compile(r"[^\W\d_]+")
_NOT_NOW, _RELATIVE, _REACTION = (cues("records", name) for name in ("not_now", "relative", "quoted"))
_QUOTED = re.compile(
    "|".join(cues("records", name).pattern for name in ("quoted", "pregnancy", "breastfeeding")), re.IGNORECASE
)
_NOT_PREGNANT = cues("records", "not_pregnant")
_PREGNANT = re.compile(  # "28 weeks pregnant", "孕28周"
    r"\bpregnant\b|\b\d{1,2}(?:\+\d)?[- ]?(?:weeks?|wks?)['’]?[- ](?:of )?gestation\b"
    r"|(?:怀孕|孕|妊娠)\s?\d{1,2}(?:\s?\+\s?\d)?\s?周|孕妇",
    re.IGNORECASE,
)
_DOUBT = (cues("negation", "record"), _NOT_NOW, cues("records", "unsure"), _RELATIVE)
_AIMED, _QUALIFIERS = cues("records", "aimed"), cues("records", "qualifiers")
_HARM, _OTHER_TIME = cues("records", "not_taken"), cues("records", "other_time")
_BRACKET = re.compile(r"[(（][^()（）\n]*[)）]")
_BRACKET_BEHIND = re.compile(rf"(?<=[^\s,，;；]){_BRACKET.pattern}|(?<=[^\s,，;；] ){_BRACKET.pattern}")
_BEGUN, _TIME = cues("records", "begun"), cues("records", "time")
_AIM = re.compile(r"\b(?:target|aim|goal|range)\b|目标|\d ?[-–] ?\d", re.IGNORECASE)
_YEAR = re.compile(r"(?<![\d.])(?:19|20)\d\d(?![\d.])")  # medicines or values of another time
_NOTHING = {name: in_characters(words) for name, words in _TABLE["nothing"].items()}
_SAYS_NONE = re.compile(
    rf"[\s:：-]*(?:(?:{_NOTHING['begins_en']})\b(?:[ /,]+(?:{_NOTHING['en']}))*"
    rf"|(?:{_NOTHING['begins_zh']})(?:{_NOTHING['zh']})*)[\s.。]*",
    re.IGNORECASE,
)
_NO_ALLERGY_TO = re.compile(r"(?:nkd?a|no (?:known )?(?:drug )?allerg(?:y|ies)) to\b", re.IGNORECASE)
_HAS = re.compile(r"\s*(?:(?:had|has|died|of|with|from|an?|any)\s+)*|[患死有于]*", re.IGNORECASE)

# Values: a name, a number (or a pressure) and its unit; in brackets perhaps the normal range.
_VALUE = re.compile(  # behind a medicine that is also measured: "glucose 9.1", not "potassium 8 mmol tds"
    r"(?:\s*(?:was|is|of|[:=]))?\s*\d[\d.]*(?!\s*(?:m?g|mcg|ml|tab|cap|[%\d.])|\s*mmol\s+(?:bd|tds|od|daily))"
)
_ONCE = cues("records", "once")
_ONCE_BEFORE = re.compile(rf"(?:{_ONCE.pattern})[a-z]*[\s:：]*$", re.IGNORECASE)
_WITHIN = r"[^()（）\[\]\n]{0,24}"
_NOTE = re.compile(  # "(H)", "(3.5-5.1)", "(was 2.6 last week)", not "(was 2 weeks ago)"; "at 06:00"
    r"[ \t]{0,2}(?:[(（\[](?:\s?(?:[HL]{1,2}|high|low|高|低|偏高|偏低|[↑↓])\s?\*{0,2}\s?"
    rf"|(?:(?:ref(?:erence)?|normal|range|nr|参考|正常|范围|值)[\s.:：]*)*\d[\d.]*\s?[-–~]\s?\d[\d.]*"
    r"\s?(?:%|[a-zµμ]{1,5}/[a-zµμ]{1,3}(?:/1\.73 ?m[2²])?|[×x*]?10\S{1,6})?"
    rf"|{_WITHIN}(?:{cues('records', 'earlier').pattern})[a-z]*[\s:：为]*\d+(?:\.\d+)?"
    rf"(?![\d.]*\s?(?:[/年月周天日-]|days?|weeks?|months?|years?)){_WITHIN})[)）\]]|(?<=\s)at \d{{1,2}}:\d\d\b)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"[ \t]*(?:[-–~～<>≥≤/(（]|to\b|at\b|以上|以下|至|到)")
_TO_NEXT = re.compile(r"\s*(?:[-–~～]|to\b|至|到)\s*\d")
_TREND = re.compile(  # not in "SpO2 91"
    r"(?<![^\W\d_])(?<![^\W\d_]\d)\d[,，]?\s+(?:(?:->|→|=>|to|then)\s*)?\d(?!0\^)|\d[,，、]\d|->|→|=>"
)
_PRESSURE = re.compile(r"[\s\-*•·]*(?:bp\b|blood pressure|血压)", re.IGNORECASE)
_KILOGRAMS = re.compile(r"(?<=[,，;；|])\s*(\d{2,3}(?:\.\d)?)\s?(?:kg|公斤)(?=\s*(?:[,，;；|]|$))")
_PRESSURES = re.compile(
    r"(?:(?a:\bbp\b)|blood pressure|血压)[^\d.;；。\n]{0,24}(\d{2,3}/\d{2,3})[^.;；。\n]{0,60}", re.IGNORECASE
)
_FURTHER_PRESSURE = re.compile(r"(?<![\d./])(\d{2,3})/(\d{2,3})(?![\d/])")

# Age and sex.
_SEXES = {"f": "female", "female": "female", "女": "female", "m": "male", "male": "male", "男": "male"}
_FEMALE, _MALE = (
    rf"\b(?:{in_words(_TABLE['sex'][f'{sex}_en'])})|{in_characters(_TABLE['sex'][f'{sex}_zh'])}"
    for sex in ("female", "male")
)
_SEX = re.compile(rf"(?:{in_characters(_TABLE['sex']['not_zh'])})|(?P<female>{_FEMALE})|(?P<male>{_MALE})")
_OTHER_AGES = "".join(
    rf"(?<!{word} )" for word in ("gestational", "corrected", "bone", "mental", "lung", "heart", "vascular")
)
_LABELLED = re.compile(
    rf"(?:(?<![a-z]){_OTHER_AGES}age\s{{0,3}}[:：]|年龄\s{{0,3}}[:：]?)\s{{0,3}}(?P<age>\d{{1,3}})"
    r"(?!\d| ?(?:mo|we|wk|day|个?月|周|天|日))"
    r"|(?:(?<![a-z])(?:sex|gender)\s{0,3}[:：]|性别\s{0,3}[:：]?)\s{0,3}(?P<sex>female|male|[fm男女])(?![a-z])"
)
_SHORT = re.compile(  # "72M", "72 y, male", perhaps behind a name; "50 m" is a distance
    rf"(?:[^\d\n]{{0,24}}{re.escape(STRUCK)},? ?)?"
    r"\W{0,4}(?P<age>\d{1,3})\s?(?P<unit>y(?:/?o|(?:ea)?rs?)?)?(?(unit),?)\s?"
    r"(?P<sex>[MF]|(?(unit)(?:[Ff]e)?[Mm]ale|(?!)))(?![\w/])"
)
_AGE = re.compile(
    r"(?P<years>\d{1,3})[- ]?(?:years?|yrs?|y)[- /]?(?:old\b|o\b|of age)|(?P<zh>\d{1,3})\s{0,3}周?岁"
    r"|(?P<months>\d{1,2})(?:[- ]?months?[- ]old|\s{0,3}个?月龄|个月大)"
    rf"|(?:{_FEMALE}|{_MALE})(?: \[…\])?,? (?P<after>\d{{1,3}}) ?(?:years?|yrs?)(?=[.,;)]|$)"
)
_AT_THE_AGE = re.compile(r"\b(?:since|at|from|until|as an?|when|by|aged?) (?:the age of |he was |she was )?$")


def read_text(text: str) -> PatientRecord:
    """The record in ``text``; raise ``InputError`` if it is plainly about two patients."""
    text = clean(text)
    check_one_patient(text)
    return from_prose(strike_identifiers(text))


def from_prose(text: str) -> PatientRecord:
    """The record in prose without identifiers."""
    prose = _Prose(text)
    listed = list(_read_lists(prose))
    results, _ = newest_results(_read_results(prose))
    _, remarks = newest_results(prose.measured, prose.language)
    person = {entry.kind: entry for entry in (*_read_opening(prose), *_read_pregnancy(prose), *_read_labels(prose))}
    named, quoted = list(_name_medicines(prose, listed)), list(_quote_reactions(prose, listed))
    known = {one.name for one in results}
    further = [
        it for it in prose.measured if it not in results and not (it.name in known and _is_range(prose.text, it))
    ]
    read = (
        *person.values(), *listed, *(_result_entry(prose, EntryKind.RESULT, one) for one in results), *named, *quoted,
        *(_result_entry(prose, EntryKind.UNREAD, one) for one in further),
    )  # fmt: skip
    once = tuple({(entry.kind, fold(entry.text), entry.words): entry for entry in reversed(read)}.values())[::-1]
    unread = tuple(_quote_rest(prose, once)) if once else ()
    rest = unread[: max(0, MOST - len(once))]
    lists = {name: entries((entry.text for entry in once if entry.kind is kind), name) for name, kind in _KINDS.items()}
    empty = {one.name for one in prose.lists if _SAYS_NONE.fullmatch(text, one.start, one.end)}
    empty -= {
        one.name for one in prose.lists if medicines.mentions(_line_after(prose, one))
    }  # "Allergies: no\npenicillin"
    filled = {name for name, (texts, _) in lists.items() if texts}
    filled |= {"results", *["medications"][: len(named)], *["allergies"][: len(quoted)]}  # or it may stand elsewhere
    notes: list[Message] = [note for _, cut in lists.values() for note in cut]
    if not once:
        notes.append(message("record.nothing"))
    if len(rest) < len(unread):
        notes.append(message("record.rest_cut", kept=len(rest), count=len(unread)))
    if len(text) > TEXT_CHARACTERS:
        notes.append(message("record.text_cut", kept=TEXT_CHARACTERS, characters=len(text)))
    return PatientRecord(
        problems=lists["problems"][0],
        medications=lists["medications"][0],
        allergies=lists["allergies"][0],
        language=prose.language,
        age=next((float(entry.text) for entry in once if entry.kind is EntryKind.AGE), None),
        sex=next((entry.text for entry in once if entry.kind is EntryKind.SEX), ""),
        pregnant=True if EntryKind.PREGNANCY in person else None,
        none_of=frozenset(empty - filled),
        results=results,
        text=text[:TEXT_CHARACTERS],
        entries=(*once, *rest),
        notes=(*notes, *remarks),
    )


def list_entries(name: str, text: str) -> list[str]:
    """The entries of ``text`` as the list ``name`` (problems, medications, allergies)."""
    return list(getattr(from_prose(f"{name}: {text}"), name))


def values_in(text: str) -> tuple[Measured, ...]:
    """The newest plausible value of each measure in ``text``, such as a typed result."""
    return newest_results(measures.measured(fold(aligned(text))))[0]


@dataclass(frozen=True, slots=True)
class _List:
    """A list under a heading at ``start:end``; its section ends at ``until``, the next heading."""

    name: str
    start: int
    end: int
    until: int


class _Prose:
    def __init__(self, text: str) -> None:
        self.text, self.folded, self.language = text, fold(aligned(text)), detect(text)
        self.mentions = medicines.mentions(self.folded)
        self.allergens = medicines.allergens(self.folded)
        self.measured = [*measures.measured(self.folded), *_further_pressures(self.folded)]
        headings = [mark for mark in _HEADING.finditer(text) if not _is_entry(mark)]
        self._headings = {mark.end(): mark.start() for mark in headings}
        self._numbers = list(_list_numbers(text, headings))
        marks = sorted([*(mark.span() for mark in headings), *self._numbers])
        starts, ends = [0, *(end for _, end in marks)], [*(start for start, _ in marks), len(text)]
        pieces = (_SENTENCE.finditer(text, start, end) for start, end in zip(starts, ends, strict=True))
        self.sentences = [match.span() for piece in pieces for match in piece if match[0].strip()] or [(0, len(text))]
        self._starts = [start for start, _ in self.sentences]
        self.measured += _bare_weight(self)
        ends = [*(mark.start() for mark in headings[1:]), len(text)]
        self.lists = [self._list(mark, end) for mark, end in zip(headings, ends, strict=False) if not mark["other"]]
        self._listed = {one.start for one in self.lists}
        self.lists += [it for one in self.lists if one.name == "allergies" for it in self._further_allergies(one)]

    def _list(self, heading: re.Match[str], until: int) -> _List:
        """A list ends with its sentence or line; a numbered one with its line; one on new lines with a blank line.

        One on the heading's own line goes on over lines that surely belong to it, and behind a separator.
        """
        start, name = heading.end(), heading.lastgroup or ""
        in_line = _LINE_END if self.pieces(start, until)[0][0] > start else _END
        last = (_BLANK_LINE if _NEW_LINE.match(self.text, start) else in_line).search(self.text, start, until)
        end = last.start() if last else until
        while (line := _NEXT_LINE.match(self.text, end, until)) and (
            _goes_on(name, self.text[end - 1], line[1]) or _continues(name, line[1])
        ):
            end = min(line.end(), _END.search(self.text, line.start(1)).start())  # type: ignore[union-attr]  # there is an end
        return _List(name, start, end, until)

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """``start:end`` between the numbers of its items."""
        first = bisect_left(self._numbers, (start, 0))
        within = self._numbers[first : bisect_left(self._numbers, (end, 0))]
        starts, ends = [start, *(last for _, last in within)], [*(first for first, _ in within), end]
        pieces = zip(starts, ends, strict=True)
        return [piece for piece in pieces if self.text[slice(*piece)].strip()] or [(start, end)]

    def _further_allergies(self, one: _List) -> Iterator[_List]:
        """The sentences behind allergies that tell of one too: "Co-trimoxazole: rash"."""
        end = one.end
        while (rest := _REST.match(self.text, end, one.until)) and _tells_of_a_reaction(rest[0]):
            yield _List(one.name, rest.start(1), end := rest.end(), one.until)

    def sentence(self, place: int) -> tuple[int, int]:
        return self.sentences[max(0, bisect_right(self._starts, place) - 1)]

    def is_headed(self, sentence: int) -> bool:
        return sentence in self._headings

    def date(self, one: _List) -> str:
        """The date in the heading of a list, or ""."""
        return " ".join(_DATE.findall(self.text, self._headings[one.start], one.start))

    def line_end(self, place: int) -> int:
        """Where the line of ``place`` ends, or the next headed list begins."""
        begins = (start for end, start in self._headings.items() if end > place and end in self._listed)
        return min(_LINE_END.search(self.text, place).start(), *begins, len(self.text))  # type: ignore[union-attr]  # there is an end

    @cached_property
    def stopped(self) -> frozenset[str]:
        """The ingredients and classes that a sentence, or a heading of no known list, may say are not taken."""
        known = {one.start for one in self.lists}
        stopped = set[str]()
        for first, last in self.sentences:
            heading = first if first in known else self._headings.get(first, first)
            if _NOT_NOW.search(_without_notes(self.text[heading:last])):
                stopped |= medicines.meant(self.text[first:last])
        return frozenset(stopped)

    def entry(self, kind: EntryKind, start: int, end: int, text: str = "") -> RecordEntry:
        """An entry at ``start:end``; its words are the sentence and a heading right before it."""
        first, last = self.sentence(start)
        words = " ".join(self.text[self._headings.get(first, first) : max(last, end)].split())
        own = " ".join(self.text[start:end].split())[:ENTRY_CHARACTERS]
        return RecordEntry(kind, text or own, words.lstrip(",，;；。 "), start, end)


def _tells_of_a_reaction(sentence: str) -> bool:
    """Whether a sentence tells of a reaction to a medicine, without doubt."""
    return bool(_REACTION.search(sentence) and medicines.mentions(sentence)) and not _is_doubtful(sentence)


def _list_numbers(text: str, headings: Sequence[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Where the numbers of numbered lists stand: 1 behind a heading or on a new line, and from there on in sequence."""
    starts = [mark.start() for mark in headings]
    last, line_end = 0, 0
    for match in _NUMBER.finditer(text):
        start, number = match.start(), int(match[1])
        place = bisect_right(starts, start) - 1
        behind = headings[place].end() if place >= 0 else 0  # the last heading's end
        alone = text[max(0, start - BEFORE) : start].rstrip(" \t")[-1:] in ("", "\n")
        first = number == 1 and (alone or (start - behind <= BEFORE and not text[behind:start].strip()))
        if start >= behind and (first or (number == last + 1 and (alone or start < line_end))):
            yield match.span()
            last = number
            if start >= line_end:
                line_end = _LINE_END.search(text, start).start()  # type: ignore[union-attr]  # there is an end


def _goes_on(name: str, last: str, line: str) -> bool:
    """Whether a list of medicines goes on below a line that ends with the separator ``last``."""
    return name == "medications" and (last in ";；" or (last in ",，、" and not _is_doubtful(line)))


def _is_entry(heading: re.Match[str]) -> bool:
    """Whether a heading is a list entry: "K: 5.9", "Aspirin: 75 mg"."""
    name = heading["other"]
    return bool(name) and bool(
        _PRESSURE.fullmatch(name.strip()) or measures.mentioned(name) or medicines.mentions(name)
    )


def _continues(name: str, line: str) -> bool:
    """Whether a line below the first one of a list only names conditions, or medicines with an amount or directions."""
    items = [_BULLET.sub("", item, count=1) for item in _ITEM.findall(line) if item.strip()]
    if name == "medications":
        sure = (is_named and has_amount and not others for is_named, has_amount, others in map(_examine_item, items))
        return not _NEW_ORDER.search(line) and all(sure)
    return name == "problems" and not _is_doubtful(line) and all(map(_is_condition, items))


def _conditions(folded: str) -> list[synonyms.Named]:
    return [one for one in synonyms.named(folded) if any(synonyms.is_in(it, one.written) for it in CONDITIONS)]


def _is_condition(item: str) -> bool:
    """Whether an item is only the name of a condition, with a stage or the like."""
    item = fold(item).strip(" .。")
    item = fold(abbreviations.meaning(item, "en")) or item  # "NBM" and "ECG" are short forms too
    named = _conditions(item)
    rest = item
    for one in reversed(named):
        rest = f"{rest[: one.start]} {rest[one.end :]}"
    return bool(named) and not _LETTER.search(_QUALIFIERS.sub(" ", _STAGE.sub(" ", rest)))


def _without_notes(text: str) -> str:
    """``text`` without brackets on what a value should be, or since when a medicine is taken: "(target INR 2.5)"."""
    return _BRACKET.sub(lambda match: " " if _is_aim(match[0]) or _is_begun(match[0]) else match[0], text)


def _is_aim(bracket: str) -> bool:
    return bool(_AIM.search(bracket) and measures.mentioned(bracket))


def _is_begun(bracket: str) -> bool:
    rest = bracket.strip("(（） )")
    begun = _BEGUN.match(rest)
    return bool(begun) and not _LETTER.search(_TIME.sub(" ", _DIRECTIONS.sub(" ", _BEGUN.sub(" ", rest))))


def _casts_doubt(line: str, doubtful: Callable[[str], bool], every: bool = False) -> bool:
    """Whether what stands behind a list may be about it: it is doubtful, and speaks of all, or its first sentence, of
    ``every`` one any, is doubtful and names nothing of its own.
    """
    if _ALL.search(line):
        return doubtful(line)
    sentences = (match[0].strip() for match in _SENTENCE.finditer(line))
    others = [it for it in sentences if it and not _SAYS_NONE.fullmatch(it)][: None if every else 1]
    return any(
        doubtful(one) and not (_names_a_medicine(one) or _NO_ALLERGY_TO.match(one) or _denies_a_condition(one))
        for one in others
    )


def _names_a_medicine(sentence: str) -> bool:
    return bool(medicines.mentions(sentence) or medicines.meant(sentence))


def _denies_a_condition(sentence: str) -> bool:
    """Whether a sentence begins with a denial, or a relative, and a condition: "Denies chest pain"."""
    begins = _SAYS_NONE.match(sentence) or _RELATIVE.match(sentence)
    named = [one.start for one in _conditions(fold(aligned(sentence)))]
    sure = begins and named and not (_NOT_NOW.search(sentence) or _HARM.search(sentence))
    return bool(begins and sure and _HAS.fullmatch(sentence[begins.end() : named[0]]))


def _is_doubtful(text: str) -> bool:
    return any(cue.search(text) for cue in _DOUBT)


# --- lists ------------------------------------------------------------------------------------------------------------


def _read_lists(prose: _Prose) -> Iterator[RecordEntry]:
    for one in prose.lists:
        if one.name == "medications":
            yield from _read_medicines(prose, one)
        elif one.name in _KINDS and not _SAYS_NONE.fullmatch(prose.text, one.start, one.end):
            yield from _read_other_list(prose, one)


def _items(prose: _Prose, start: int, end: int) -> Iterator[tuple[int, int]]:
    for match in chain.from_iterable(_ITEM.finditer(prose.text, *piece) for piece in prose.pieces(start, end)):
        first = match.start() + len(_BULLET.match(match[0])[0])  # type: ignore[index]  # it matches nothing as well
        if text := prose.text[first : match.end()].rstrip(" \t.。"):
            yield first, first + len(text)


def _line_after(prose: _Prose, one: _List) -> str:
    return prose.text[one.end : one.until].lstrip(" \t.。;；\n").split("\n", 1)[0]


def _read_other_list(prose: _Prose, one: _List) -> Iterator[RecordEntry]:
    """Problems or allergies. Of lines with bullets or numbers each stands for itself, and any other is quoted. Lines
    without are doubtful as a whole, what stands on the heading's line between semicolons.

    A bracket casts doubt on its item alone, a denial on what stands behind it.
    """
    text, spans = prose.text[one.start : one.end], _LINE.finditer(prose.text, one.start, one.end)
    lines = [match.span() for match in spans if match[0].strip()]
    below = len(lines) > 1 and bool(_NEW_LINE.match(prose.text, one.start))
    marked = below and bool(_MARKED.match(prose.text, *lines[0]))
    beside = {span for span in lines if marked and not _MARKED.match(prose.text, *span)}
    around = (prose.text[slice(*span)] for span in lines if span in beside or _ALL.search(prose.text, *span))
    whole = any(_casts_doubt(line, _is_doubtful) for line in around) if marked else below and _is_doubtful(text)
    for start, end in _clauses(prose, one):
        doubt = (
            whole
            or _span_of(lines, start) in beside
            or _is_doubtful(_BRACKET_BEHIND.sub(_kept_if_of_all, prose.text[start:end]))
        )
        for item in [(start, end)] if doubt else _items(prose, start, end):
            yield from _read_item(prose, one.name, *item, doubt)


def _span_of(spans: Sequence[tuple[int, int]], place: int) -> tuple[int, int]:
    """The last of ``spans`` that begins at ``place`` or before."""
    return spans[max(0, bisect_right(spans, (place, 1 << 60)) - 1)]


def _read_item(prose: _Prose, name: str, start: int, end: int, doubt: bool) -> Iterator[RecordEntry]:
    item = prose.text[start:end]
    treated = name == "problems" and bool(medicines.mentions(item))  # "AF (on apixaban)"
    if _LETTER.search(item) and (doubt or not treated or _examine_item(item)[2]):
        unsure = doubt or treated or _is_doubtful(item) or not _is_short(item)
        yield prose.entry(EntryKind.UNREAD if unsure else _KINDS[name], start, end)


def _kept_if_of_all(bracket: re.Match[str]) -> str:
    """A bracket that may be about more than its item: of all, of a relative, or only a word of doubt."""
    rest = bracket[0]
    for cue in _DOUBT:
        rest = cue.sub(" ", rest)
    own = _LETTER.search(rest) and not (_ALL.search(bracket[0]) or _RELATIVE.search(bracket[0]))
    return " " if own else bracket[0]


def _clauses(prose: _Prose, one: _List) -> Iterator[tuple[int, int]]:
    for piece in prose.pieces(one.start, one.end):
        for clause in _CLAUSE.finditer(prose.text, *piece):
            start, end = clause.span()
            denial = _DENIAL.search(prose.text, start, end)
            apart = denial and (
                one.name == "allergies" or _is_of_another(prose.text[start : denial.start()], denial["denied"])
            )
            if denial and apart and not _ALL.search(denial[0]):
                yield start, denial.start()
                start = denial.start("denied")
            yield start, end


def _is_of_another(before: str, denied: str) -> bool:
    """Whether what is ``denied`` is a condition, and none of those ``before``: "embolism, no PE" takes it back."""
    own, other = ({name for one in _conditions(fold(text)) for name in one.names} for text in (before, denied))
    return bool(other) and not own & other


def _is_short(item: str) -> bool:
    if units.dose(counted=True).search(item):
        return False
    return len(item) <= ITEM_CHARACTERS if detect(item) == "zh" else len(item.split()) <= ITEM_WORDS


def _read_medicines(prose: _Prose, one: _List) -> Iterator[RecordEntry]:
    """The entries of a list of medicines.

    One that is only a medicine, amount and directions is taken if two of three entries have a name or an amount, no
    word of the list, or of the line after it, casts doubt, and no sentence of the record may stop the medicine. What
    stands between semicolons and names a medicine casts doubt on itself alone, unless it speaks of all.
    """

    def doubtful(text: str) -> bool:
        return any(cue.search(_without_notes(text)) for cue in (*_DOUBT, _HARM, _YEAR, _QUOTED))

    pieces = prose.pieces(one.start, one.end)
    clauses = [match.span() for piece in pieces for match in _CLAUSE.finditer(prose.text, *piece)] or pieces
    around = (*(prose.text[slice(*span)] for span in clauses), _line_after(prose, one))
    clear = {span for span in clauses if not doubtful(prose.text[slice(*span)])}
    items = [(span, *_examine_item(prose.text[slice(*span)])) for span in _items(prose, one.start, one.end)]
    plain = {span for span, *_ in items if _span_of(clauses, span[0]) in clear}
    known = [is_named or has_amount for span, is_named, has_amount, _ in items if span in plain]
    casting = any(_casts_doubt(text, doubtful, every=True) for text in around)
    sure = not casting and len(known) - sum(known) <= sum(known) // 2
    for span, is_named, has_amount, others in items:
        if (
            sure
            and span in plain
            and prose.stopped.isdisjoint(medicines.names(prose.text[slice(*span)]))
            and (not others if is_named else has_amount and others <= UNLISTED_WORDS)
        ):
            yield prose.entry(EntryKind.MEDICINE, *span)
        elif has_amount and not is_named:
            yield prose.entry(EntryKind.NAMED, *span)


def _examine_item(item: str) -> tuple[bool, bool, int]:
    """Whether an entry names a medicine, whether it has an amount, and the number of words besides directions."""
    rest = fold(_without_notes(item))
    mentions = medicines.mentions(rest)
    for mention in reversed(mentions):
        rest = f"{rest[: mention.start]} {rest[mention.end :]}"
    rest, doses = units.dose(counted=True).subn(" ", rest)
    directions = any(not _LITTLE.fullmatch(match[0]) for match in _DIRECTIONS.finditer(rest))
    return bool(mentions), bool(doses or directions), len(_WORD.findall(_DIRECTIONS.sub(" ", rest)))


# --- results ----------------------------------------------------------------------------------------------------------


def _read_results(prose: _Prose) -> Iterator[Measured]:
    """The values of sentences without doubt that occur once in the record."""
    if len(prose.measured) > RESULTS:
        return
    values = defaultdict[str, set[float]](set)
    found = sorted((it for it in prose.measured if not _is_of_another_time(prose.folded, it)), key=lambda it: it.start)
    starts = [it.start for it in found]
    for result in found:
        if not _is_range(prose.text, result):
            values[result.name].add(result.value)

    def once(start: int, end: int) -> Iterator[Measured]:
        inside = found[bisect_left(starts, start) : bisect_left(starts, end)]
        return (it for it in inside if len(values[it.name]) == 1)

    for span in _sentences_with_values(prose):
        yield from (it for it in once(*span) if _is_plain(prose.text, it))


def _is_plain(text: str, value: Measured) -> bool:
    """Whether a value in a sentence is one number: no bound, range, rate or second value."""
    note = _NOTE.match(text, value.end)
    goes_on = _GOES_ON.match(text, note.end() if note else value.end)
    return not measures.BOUND.search(text, value.start, value.end) and not goes_on


def _further_pressures(folded: str) -> Iterator[Measured]:
    """The pressures behind a named one in its sentence: "BP lying 128/70, standing 98/60"."""
    for first in _PRESSURES.finditer(folded):
        for match in _FURTHER_PRESSURE.finditer(folded, first.end(1), first.end()):
            if 70 <= int(match[1]) < 300 and 30 <= int(match[2]) < int(match[1]) < 3 * int(match[2]):  # no 500/125 mg
                for name, number in zip((measures.SYSTOLIC, measures.DIASTOLIC), match.groups(), strict=True):
                    yield Measured(name, float(number), f"{number} mmHg", "", *match.span())


def _is_range(text: str, value: Measured) -> bool:
    """Whether a value begins a range of two numbers: "INR range 2-3"."""
    return bool(_TO_NEXT.match(text, value.end))


def _is_of_another_time(text: str, value: Measured) -> bool:
    """Whether right before a value it says that it was another time's: "血压最高185/105", "baseline creatinine 90"."""
    return bool(
        _ONCE.search(text, value.start, value.end)
        or _ONCE_BEFORE.search(text[max(0, value.start - NEAR) : value.start])
    )


def _values_alone(text: str) -> str:
    """``text`` without notes on values, and parts between commas that name a measure and no number: "INR not done"."""
    return _COMMA_PART.sub(
        lambda part: part[0] if _DIGIT.search(part[0]) or not measures.mentioned(part[0]) else " ",
        _NOTE.sub(" ", text),
    )


def _sections_of_results(prose: _Prose) -> Iterator[tuple[int, int, bool]]:
    """Start, end, and whether anything in the section may be of another time or person, as under one of two dates."""
    sections = [one for one in prose.lists if one.name == "results"]
    dates = {prose.date(one) for one in sections} - {""}
    for one in sections:
        section = _values_alone(prose.text[one.start : one.until])
        other = len(dates) > 1 and bool(prose.date(one))
        yield one.start, one.until, other or any(cue.search(section) for cue in (_RELATIVE, _OTHER_TIME, _YEAR))


def _sentences_with_values(prose: _Prose) -> Iterator[tuple[int, int]]:
    """Sentences, unless they, or the last words above their values, may be of another time or person, deny something,
    aim at something, name a medicine, or give several values of one measure ("6.2 5.4 4.7").
    """
    doubtful = [(first, last) for first, last, doubt in _sections_of_results(prose) if doubt]
    before, doubt_above, in_section = 0, False, False
    for start, end in prose.sentences:
        around = _values_alone(prose.text[before:end]).replace("年龄", "")  # with a heading above it
        has_values = bool(_DIGIT.search(around))
        doubt = any(cue.search(around) for cue in (_NOT_NOW, _RELATIVE, _OTHER_TIME, _YEAR))
        doubt_above = doubt or (has_values and doubt_above and not (in_section and prose.is_headed(start)))
        in_section = in_section or prose.is_headed(start)
        doubt_here = any(first <= start < last for first, last in doubtful) or _is_doubtful(around)
        doubt_here = doubt_here or bool(_AIMED.search(around)) or _speaks_of_a_medicine(prose, start, end)
        if has_values and not (doubt_above or doubt_here or _TREND.search(prose.text[start:end])):
            yield start, end
        before = end


def _speaks_of_a_medicine(prose: _Prose, start: int, end: int) -> bool:
    """Whether a sentence names a medicine: its value may be a rule or a dose; potassium is both."""
    measured = [(it.start, it.end) for it in prose.measured if start <= it.start < end]
    inside = (it for it in prose.mentions if start <= it.start < end)
    return any(not any(first <= it.start < last for first, last in measured) for it in inside)


def _result_entry(prose: _Prose, kind: EntryKind, result: Measured) -> RecordEntry:
    bound = measures.BOUND.search(prose.text, result.start, result.end)
    text = f"{measure_name(result, prose.language)}: {bound[0] if bound else ''}{result.written}"
    return prose.entry(kind, result.start, result.end, text)


# --- age and sex ------------------------------------------------------------------------------------------------------


def _read_labels(prose: _Prose) -> Iterator[RecordEntry]:
    for match in reversed(list(_LABELLED.finditer(prose.folded))):  # the first one counts
        line = prose.folded[prose.folded.rfind("\n", 0, match.start()) + 1 : match.end()]
        if not _RELATIVE.search(line):
            kind, text = (EntryKind.AGE, match["age"]) if match["age"] else (EntryKind.SEX, _SEXES[match["sex"]])
            yield prose.entry(kind, *match.span(), text)


def _opening(prose: _Prose) -> tuple[int, int] | None:
    """The first sentence with an age."""
    for start, end in prose.sentences:
        if start < OPENING and (_SHORT.match(prose.text, start, end) or _AGE.search(prose.folded, start, end)):
            return start, end
    return None


def _bare_weight(prose: _Prose) -> Iterator[Measured]:
    """The weight beside an age: "72 y/o woman, 58 kg"."""
    for start, end in filter(None, [_opening(prose)]):
        for match in _KILOGRAMS.finditer(prose.folded, start, end):
            yield Measured("weight", float(match[1]), match[0].strip(), "", *match.span())


def _read_opening(prose: _Prose) -> Iterator[RecordEntry]:
    """Age and sex in the first sentence with an age, if it has one person, one age and one sex."""
    start, end = _opening(prose) or (0, 0)
    short, ages = _SHORT.match(prose.text, start, end), list(_AGE.finditer(prose.folded, start, end))
    if start == end or _RELATIVE.search(prose.folded, start, end):
        return
    if short:
        yield prose.entry(EntryKind.AGE, *short.span("age"), short["age"])
        yield prose.entry(EntryKind.SEX, *short.span("sex"), _SEXES[short["sex"].lower()])
        return
    values = {float(match[match.lastgroup or 0]) * (1 / 12 if match.lastgroup == "months" else 1) for match in ages}
    if len(values) > 1 or _AT_THE_AGE.search(prose.folded[start : ages[0].start()]):
        return
    if (age := values.pop()) < measures.by_name("age").plausible[1]:
        yield prose.entry(EntryKind.AGE, *ages[0].span(), f"{round(age, 1):g}")
    sexes = [match for match in _SEX.finditer(prose.folded, start, end) if match.lastgroup]
    if len({match.lastgroup for match in sexes}) == 1:
        yield prose.entry(EntryKind.SEX, *sexes[0].span(), sexes[0].lastgroup or "")


def _read_pregnancy(prose: _Prose) -> Iterator[RecordEntry]:
    """A pregnancy in a part of a sentence that has no word of doubt, of another time or of a birth."""
    for start, end in prose.sentences:
        if not any(cue.search(prose.text, start, end) for cue in (_RELATIVE, _YEAR)):
            for part in _COMMA_PART.finditer(prose.text, start, end):
                if (said := _PREGNANT.search(part[0])) and not (_is_doubtful(part[0]) or _NOT_PREGNANT.search(part[0])):
                    yield prose.entry(
                        EntryKind.PREGNANCY, part.start() + said.start(), part.start() + said.end(), "yes"
                    )


# --- quotations -------------------------------------------------------------------------------------------------------


def _name_medicines(prose: _Prose, listed: Iterable[RecordEntry]) -> Iterator[RecordEntry]:
    """The medicines named outside the entries ``listed``."""
    read = [(entry.start, entry.end) for entry in listed if entry.kind is not EntryKind.UNREAD]
    read += [(result.start, result.end) for result in prose.measured]  # potassium is both
    covered = {place for start, end in read for place in range(start, end)}
    covered |= {place for span in _further_reactions(prose) for place in range(*span)}
    told = set[tuple[str, ...]]()
    for mention in prose.mentions:
        again = mention.ingredients in told and _NOT_NOW.search(prose.text, *prose.sentence(mention.start))
        value = not mention.is_medicine and _VALUE.match(prose.folded, mention.end)
        if mention.start not in covered and not (again or value) and mention not in prose.allergens:
            told.add(mention.ingredients)
            yield prose.entry(EntryKind.NAMED, mention.start, mention.end)


def _further_reactions(prose: _Prose) -> Iterator[tuple[int, int]]:
    """What goes on on the line of a list of allergies, and tells of a reaction: "Allergies: latex. Septrin: rash"."""
    for one in prose.lists:
        if one.name == "allergies" and not _NEW_LINE.match(prose.text, one.start):
            for rest in _ON_ITS_LINE.finditer(prose.text, one.end, prose.line_end(one.end)):
                if _REACTION.search(rest[0]):
                    yield rest.span()


def _quote_reactions(prose: _Prose, listed: Iterable[RecordEntry]) -> Iterator[RecordEntry]:
    """Reactions and pregnancy: sentences outside the lists, and unread items of the lists."""
    covered = {place for entry in listed for place in range(entry.start, entry.end)}
    lists = [one for one in prose.lists if one.name in _KINDS]
    within = {place for one in lists for place in range(one.start, one.end)}
    items = (item for one in lists if one.name != "allergies" for item in _items(prose, one.start, one.end))
    outside = (sentence for sentence in prose.sentences if sentence[0] not in within)
    for start, end in sorted(chain(items, outside)):
        if start not in covered and _QUOTED.search(prose.text, start, end):
            last = prose.sentence(start)[1]
            ends = (it.end for it in prose.allergens if start < it.start < last)  # "to A, B and C"
            yield prose.entry(EntryKind.UNREAD, start, max((end, *ends)))
    for one in lists:  # "Allergies: penicillin. Sulfa. Latex", "PMH: HTN: no; asthma: yes": the line may go on with it
        if one.name != "medications" and not _NEW_LINE.match(prose.text, one.start):
            for rest in _ON_ITS_LINE.finditer(prose.text, one.end, prose.line_end(one.end)):
                if rest[0].strip() and rest.start() not in covered and _is_short(rest[0].strip()):
                    yield prose.entry(EntryKind.UNREAD, *rest.span())


def _has_content(item: str) -> bool:
    """Whether an item is more than a mark, a title or an identifier ("MRN […]")."""
    return bool(_SAYS.search(item)) and not (STRUCK in item and len(item.split()) <= STRUCK_WORDS)


def _quote_rest(prose: _Prose, read: Iterable[RecordEntry]) -> Iterator[RecordEntry]:
    """The unread sentences, and of partly read ones the unread parts between commas."""
    covered = {place for entry in read for place in range(entry.start, entry.end)}
    for start, end in prose.sentences:
        items = [item for item in _items(prose, start, end) if _has_content(prose.text[slice(*item)])]
        if items and covered.isdisjoint(range(start, end)):
            yield prose.entry(EntryKind.UNREAD, items[0][0], items[-1][1])
        else:
            left = (item for item in items if covered.isdisjoint(range(*item)))
            yield from (prose.entry(EntryKind.UNREAD, *item) for item in left)
