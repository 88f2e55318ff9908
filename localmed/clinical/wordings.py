"""Wordings as tables hold them, matched against a clause: words near one another, without regular expressions.

``a|b`` either, ``word*`` any ending, ``two_words`` a phrase, ``a b`` one after the other, ``a .. b`` a few words
between, ``a & b`` near each other in either order, ``{name}`` any of the words of that name, ``<2-5>`` a number from 2
to 5. English is compared word by word, Chinese character by character (``[上过]`` either, ``来?`` or not). Every clause
is read once, whatever the number of wordings: time is linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from localmed.language import HAN

BETWEEN = {"en": 7, "zh": 8}  # words, characters that ".." passes over at most
NEXT = {"en": 0, "zh": 1}  # the same between two that stand one after the other
MEDICINE = "\ue000"  # stands before the name of a medicine in a clause that is matched

_TOKEN = re.compile(rf"[a-z]+(?:'[a-z]+)?|\d+(?:\.\d+)?|{MEDICINE}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_RANGE = re.compile(r"<(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)>")
_CHOICE = re.compile(r"\[([^\]]+)\]|(.)\?|(.)")
_IS_HAN = re.compile(f"[{HAN}]")

Span = tuple[int, int]  # places of the first and after the last word or character


@dataclass(frozen=True, slots=True)
class Wording:
    """The elements in order, each a set of atoms; ``joints`` stand between them: "" next, ".." or "&"."""

    language: str
    elements: tuple[frozenset[str], ...]
    joints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Matched:
    """Where a wording stands in a clause: characters."""

    start: int
    end: int


@dataclass(slots=True)
class Lexicon:
    """All atoms of a set of wordings, by how they begin."""

    words: dict[str, list[tuple[tuple[str, ...], str]]] = field(default_factory=dict)
    beginnings: dict[str, list[tuple[tuple[str, ...], str]]] = field(default_factory=dict)
    characters: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)

    def add(self, atom: str) -> None:
        """Make ``atom`` known."""
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
    """The wordings of a table's ``text``, one a line, with their atoms made known to ``lexicon``."""
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
    """The literals that a Chinese atom stands for."""
    parts = [
        list(choice) if choice else ["", optional] if optional else [literal]
        for choice, optional, literal in _CHOICE.findall(atom)
    ]
    return [literal for one in product(*parts) if (literal := "".join(one))]


class Clause:
    """A clause read once: where each atom stands, by words and by characters."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self._tokens = [(match[0], match.start(), match.end()) for match in _TOKEN.finditer(text)]
        self._by_word: dict[str, list[Span]] = {}
        self._by_character: dict[str, list[Span]] = {}
        self._read_words(lexicon)
        self._read_characters(text, lexicon)

    def _read_words(self, lexicon: Lexicon) -> None:
        for place, (word, _, _) in enumerate(self._tokens):
            for parts, atom in lexicon.words.get(word, ()):
                self._add_word(place, parts, atom)
            for length in range(2, min(len(word), 14) + 1):
                for parts, atom in lexicon.beginnings.get(word[:length], ()):
                    self._add_word(place, parts, atom)
            if word[0].isdigit():
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

    def matches(self, wording: Wording) -> Iterator[Matched]:
        """Where ``wording`` stands, as characters of the clause."""
        places = [self._places(element, wording.language) for element in wording.elements]
        if not all(places):
            return
        reached = [(start, end) for start, end in places[0]]
        for joint, spans in zip(wording.joints, places[1:], strict=True):
            reached = list(_joined(reached, spans, joint, wording.language))
            if not reached:
                return
        for start, end in reached:
            if wording.language == "en":
                yield Matched(self._tokens[start][1], self._tokens[end - 1][2])
            else:
                yield Matched(start, end)

    def _places(self, element: frozenset[str], language: str) -> list[Span]:
        table = self._by_word if language == "en" else self._by_character
        return sorted({span for atom in element for span in table.get(atom, ())})


def _joined(before: list[Span], after: list[Span], joint: str, language: str) -> Iterator[Span]:
    """Each of ``after`` with the nearest of ``before`` that it may follow (or, with "&", stand before)."""
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
