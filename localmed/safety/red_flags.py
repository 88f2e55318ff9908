"""Red flags: wordings in a complaint that need the Emergency Department. English and Chinese.

A sign counts if somebody has it now: not if it is denied ("no chest pain", 无胸痛), past ("last year", 去年) unless the
clause says that it is back, or only asked about ("how do I prevent a clot"). Some signs are a red flag alone, others
only in combination. A flag is no diagnosis.

The table is ``red_flags.toml``. Rules miss emergencies in other words, so every answer says when to go to the Emergency
Department. Other languages are not read.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, product

from localmed.text import medicines, negation
from localmed.text.language import HAN, fold
from localmed.text.tables import in_characters, listed, table

# --- wordings ---------------------------------------------------------------------------------------------------------

# Wordings of tables, matched against clauses.
#
# ``a|b`` either, ``word*`` any ending, ``two_words`` a phrase, ``a b`` one after the other, ``a .. b`` a few words
# between, ``a & b`` near each other in either order, ``{name}`` any of the words of that name, ``<2-5>`` a number from
# 2 to 5. English is compared word by word, Chinese character by character (``[上过]`` either, ``来?`` or not). Every
# clause is read once, whatever the number of wordings: time is linear in the text.

BETWEEN = {"en": 7, "zh": 8}  # most words or characters that ".." skips
NEXT = {"en": 0, "zh": 1}  # the same between adjacent elements
MEDICINE = "\ue000"  # stands before the name of a medicine

_TOKEN = re.compile(rf"[a-z]+(?:'[a-z]+)?|\d+(?:\.\d+)?|{MEDICINE}")
_STRENGTH = r"(?!\s?(?:m[gl]|mcg|[µμ]g|milli|micro|毫|微))"  # 30 mg are not 30 of anything
_NUMBER = re.compile(rf"\d+(?:\.\d+)?(?!\.?\d){_STRENGTH}")
_RANGE = re.compile(r"<(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)>")
_CHOICE = re.compile(r"\[([^\]]+)\]|(.)\?|(.)")
_IS_HAN = re.compile(f"[{HAN}]")

Span = tuple[int, int]  # first and after-last word or character


@dataclass(frozen=True, slots=True)
class Wording:
    """Elements in order, each a set of atoms; ``joints`` between them: "" (adjacent), ".." or "&"."""

    language: str
    elements: tuple[frozenset[str], ...]
    joints: tuple[str, ...]


@dataclass(slots=True)
class Lexicon:
    """All atoms of a set of wordings, by their beginnings."""

    words: dict[str, list[tuple[tuple[str, ...], str]]] = field(default_factory=dict)
    beginnings: dict[str, list[tuple[tuple[str, ...], str]]] = field(default_factory=dict)
    characters: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def add(self, atom: str) -> None:
        """Add ``atom``."""
        if atom in self.known:
            return
        self.known.add(atom)
        if span := _RANGE.fullmatch(atom):
            self.ranges[atom] = (float(span[1]), float(span[2]))
        elif _IS_HAN.search(atom):
            for literal in _expanded(atom):
                self.characters.setdefault(literal[0], []).append((literal, atom))
        else:
            parts = tuple(_TOKEN.findall(atom.replace("*", "")))
            stars = [part.endswith("*") for part in re.split(r"[_-]", atom)]
            table = self.beginnings if stars[0] else self.words
            marked = tuple(f"{part}*" if star else part for part, star in zip(parts, stars, strict=False))
            table.setdefault(parts[0], []).append((marked + parts[len(marked) :], atom))


def wordings(text: str, language: str, words: Mapping[str, str], lexicon: Lexicon) -> tuple[Wording, ...]:
    """The wordings of a table's ``text``, one a line; adds their atoms to ``lexicon``."""
    made = []
    for line in filter(None, map(str.strip, text.splitlines())):
        elements: list[frozenset[str]] = []
        joints: list[str] = []
        joint = ""
        for part in line.split():
            if part in ("..", "&"):
                joint = part
                continue
            joints += [joint] if elements else []
            elements.append(frozenset(_atoms(part, words)))
            joint = ""
        for atom in frozenset().union(*elements):
            lexicon.add(atom)
        made.append(Wording(language, tuple(elements), tuple(joints)))
    return tuple(made)


def _atoms(part: str, words: Mapping[str, str]) -> Iterator[str]:
    for choice in part.split("|"):
        if choice == "{medicine}":
            yield MEDICINE
        elif choice.startswith("{"):
            for entry in words[choice.strip("{}")].split("|"):
                yield from _atoms(entry.strip(), words)
        elif choice:
            yield choice


def _expanded(atom: str) -> list[str]:
    """The literals of a Chinese atom."""
    parts = [
        list(choice) if choice else ["", optional] if optional else [literal]
        for choice, optional, literal in _CHOICE.findall(atom)
    ]
    return [literal for one in product(*parts) if (literal := "".join(one))]


class Clause:
    """The places of all atoms in a clause, by words and by characters."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self._tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
        self._by_word: dict[str, list[Span]] = {}
        self._by_character: dict[str, list[Span]] = {}
        self._read_words(text, lexicon)
        self._read_characters(text, lexicon)

    def _read_words(self, text: str, lexicon: Lexicon) -> None:
        for place, (word, start, _) in enumerate(self._tokens):
            for parts, atom in lexicon.words.get(word, ()):
                self._add_word(place, parts, atom)
            for length in range(2, min(len(word), 14) + 1):
                for parts, atom in lexicon.beginnings.get(word[:length], ()):
                    self._add_word(place, parts, atom)
            if _NUMBER.match(text, start):
                for atom, (low, high) in lexicon.ranges.items():
                    if low <= float(word) <= high:
                        self._by_word.setdefault(atom, []).append((place, place + 1))

    def _add_word(self, place: int, parts: Sequence[str], atom: str) -> None:
        for offset, part in enumerate(parts[1:], 1):
            if place + offset >= len(self._tokens):
                return
            word = self._tokens[place + offset][0]
            if not (word.startswith(part[:-1]) if part.endswith("*") else word == part):
                return
        self._by_word.setdefault(atom, []).append((place, place + len(parts)))

    def _read_characters(self, text: str, lexicon: Lexicon) -> None:
        for place, character in enumerate(text):
            for literal, atom in lexicon.characters.get(character, ()):
                if text.startswith(literal, place):
                    self._by_character.setdefault(atom, []).append((place, place + len(literal)))
            if character == MEDICINE:
                self._by_character.setdefault(MEDICINE, []).append((place, place + 1))
        for match in _NUMBER.finditer(text):
            for atom, (low, high) in lexicon.ranges.items():
                if low <= float(match[0]) <= high:
                    self._by_character.setdefault(atom, []).append(match.span())

    def matches(self, wording: Wording) -> Iterator[Span]:
        """The places of ``wording`` as characters of the clause."""
        places = [self._places(element, wording.language) for element in wording.elements]
        if not all(places):
            return
        reached = [(start, end) for start, end in places[0]]
        for joint, spans in zip(wording.joints, places[1:], strict=True):
            reached = list(_joined(reached, spans, joint, wording.language))
            if not reached:
                return
        for start, end in reached:
            yield (self._tokens[start][1], self._tokens[end - 1][2]) if wording.language == "en" else (start, end)

    def _places(self, element: frozenset[str], language: str) -> list[Span]:
        table = self._by_word if language == "en" else self._by_character
        return sorted({span for atom in element for span in table.get(atom, ())})


def _joined(before: list[Span], after: list[Span], joint: str, language: str) -> Iterator[Span]:
    """Each of ``after`` with the nearest of ``before`` within reach; with "&" in either order."""
    reach = BETWEEN[language] if joint else NEXT[language]
    ends = sorted((end, start) for start, end in before)
    starts = sorted(start for start, _ in before)
    for start, end in after:
        place = bisect_right(ends, (start, 1 << 60)) - 1
        if place >= 0 and start - ends[place][0] <= reach:
            yield ends[place][1], end
        elif joint == "&":
            place = bisect_left(starts, end)
            if place < len(starts) and starts[place] - end <= reach:
                yield start, end


# --- red flags --------------------------------------------------------------------------------------------------------

LONGEST = 20  # characters of an entry "longer" of the table
TRIED = 20  # places of a sign in a clause that are checked for denials: where so many are denied, all are

_WITHOUT_APOSTROPHE = re.compile(r"\b(ca|wo|do|does|did|is|are|was|were|has|have|had|could|would|should)nt\b")
_BOUNDARY = re.compile(
    r"[!?;。！？；\n]|\.(?!\d)|,? (?:but|however|although)\b"
    r"|,(?= (?:and |then )?(?:i|he|she|it|they|we|my|his|her|now|suddenly|with|has|have|having)\b)|但|却|不过"
)


@dataclass(frozen=True, slots=True)
class _Sign:
    wordings: tuple[Wording, ...]
    unless: str = ""


@dataclass(frozen=True, slots=True)
class _Table:
    lexicon: Lexicon
    signs: Mapping[str, _Sign]
    context: Mapping[str, tuple[Wording, ...]]
    flags: Mapping[str, tuple[tuple[str, ...], ...]]


@cache
def _table() -> _Table:
    data, lexicon = table("red_flags"), Lexicon()
    lexicon.add(MEDICINE)

    def of(entry: Mapping[str, str]) -> tuple[Wording, ...]:
        both = (
            wordings(entry.get(language, ""), language, data["words"][language], lexicon) for language in ("en", "zh")
        )
        return tuple(wording for made in both for wording in made)

    signs = {name: _Sign(of(entry), entry.get("unless", "")) for name, entry in data["signs"].items()}
    context = {name: of(entry) for name, entry in data["context"].items()}
    flags = {
        name: tuple(tuple(part.strip() for part in one.split("+")) for one in combinations)
        for name, combinations in data["flags"].items()
    }
    return _Table(lexicon, signs, context, flags)


def names() -> tuple[str, ...]:
    """All flags in order of importance."""
    return tuple(_table().flags)


def red_flags(text: str) -> tuple[str, ...]:
    """The names of the red flags of ``text`` in the table's order."""
    return tuple(flagged(text))


def flagged(text: str) -> Mapping[str, tuple[str, ...]]:
    """The red flags of ``text`` in the table's order, each with the words of its signs."""
    present = signs(text)
    made: dict[str, tuple[str, ...]] = {}
    for name, combinations in _table().flags.items():
        whole = next((one for one in combinations if all(_is_present(sign, present) for sign in one)), ())
        if whole:
            said = dict.fromkeys(filter(None, (present.get(sign) for sign in whole)))
            made[name] = tuple(one for one in said if not any(one in other for other in said if other != one))
    return made


def _is_present(sign: str, present: Mapping[str, str]) -> bool:
    """Whether a sign of a combination is present, or absent with "!"."""
    name = sign.removeprefix("!")
    return (name in present) is (name == sign)


def specialties(flags: Sequence[str], language: str) -> tuple[str, ...]:
    """The departments for ``flags`` beside the Emergency Department."""
    entry = table("red_flags")["departments"]
    return tuple(dict.fromkeys(name for flag in flags for name in listed(entry.get(flag, {}).get(language, ""))))


def fits(department: str, flags: Sequence[str]) -> bool:
    """Whether ``department`` is one for ``flags``."""
    folded = fold(department)
    return any(name in folded for language in ("en", "zh") for name in specialties(flags, language))


def signs(text: str) -> Mapping[str, str]:
    """The present signs with their words."""
    made = _table()
    present: dict[str, str] = {}
    for clause in dict.fromkeys(_clauses(text)):
        read = Clause(clause, made.lexicon)
        if _says(read, made.context["asking"]) or (
            _says(read, made.context["past"]) and not _says(read, made.context["again"])
        ):
            continue
        for name, sign in made.signs.items():
            if name in present or (said := _said(clause, read, sign)) is None:
                continue
            if not (sign.unless and _says(read, made.signs[sign.unless].wordings)):
                present[name] = said
    return present


def _said(clause: str, read: Clause, sign: _Sign) -> str | None:
    """The words of the sign in the clause that are not denied, or ``None``."""
    for wording in sign.wordings:
        for start, end in islice(read.matches(wording), TRIED):
            if not negation.denied(clause, start) and not _cut(clause, end):
                return clause[start:end].replace(MEDICINE, "").strip()
    return None


@cache
def _longer() -> re.Pattern[str]:
    entry = table("red_flags")["longer"]
    return re.compile(rf"\b(?:{in_characters(entry['en'])})|{in_characters(entry['zh'])}")


def _cut(clause: str, end: int) -> bool:
    """Whether a wording that ends at ``end`` is cut from a longer one with another meaning."""
    return any(match.start() < end < match.end() for match in _longer().finditer(clause, max(0, end - LONGEST)))


def _says(read: Clause, of: tuple[Wording, ...]) -> bool:
    return any(True for wording in of for _ in read.matches(wording))


def _clauses(text: str) -> Iterator[str]:
    """The folded clauses of the text, with ``MEDICINE`` before each name of a medicine."""
    folded = _WITHOUT_APOSTROPHE.sub(r"\1n't", fold(text.replace("’", "'")))
    pieces, done = [], 0
    for mention in medicines.mentions(folded):
        pieces += [folded[done : mention.start], MEDICINE]
        done = mention.start
    marked = "".join((*pieces, folded[done:]))
    start = 0
    for boundary in _BOUNDARY.finditer(marked):
        yield marked[start : boundary.start()]
        start = boundary.start() if boundary[0][0] in "但却不, b" else boundary.end()
    yield marked[start:]
