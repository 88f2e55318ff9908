"""Reading the tables, and finding their names in a text: by the longest name at each place, in linear time."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from localmed.text.language import HAN

_WORD = re.compile(r"[a-zα-ω0-9]+")
_JOINT = re.compile(r"[ -]")  # one character between the words of a name
_SPLIT = re.compile("[降减]低|[提升增]高")  # "降低血糖" is no 低血糖
_IS_HAN = re.compile(f"[{HAN}]")
_ALONE_BEFORE = re.compile(f"(?:^|[^{HAN}]|[服吃用对药含予及和与加换停打名即])$")
_ALONE_AFTER = re.compile(
    f"$|[^{HAN}]|片|胶囊|注射|针|缓释|过敏|和|或|及|每|早|晚|一|半|两|治|后|时|还是|多少|怎么|能|可"
)


@cache
def table(name: str) -> Mapping[str, Any]:
    """The table ``name``.toml beside this file."""
    return tomllib.loads(files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


def listed(text: str) -> list[str]:
    """The entries of a list between commas or line ends."""
    return [entry for part in re.split(r"[,\n]", text) if (entry := part.strip())]


def in_words(names: str) -> str:
    """A list of English words as alternatives of a regular expression; word* any ending."""
    return "|".join(re.escape(name[:-1]) if name.endswith("*") else rf"{re.escape(name)}\b" for name in listed(names))


def in_characters(names: str) -> str:
    """A list as alternatives of a regular expression wherever they stand, the longest first."""
    return "|".join(re.escape(name) for name in sorted(listed(names), key=len, reverse=True))


@cache
def cues(name: str, section: str) -> re.Pattern[str]:
    """Any of the words ("en", "zh") of a section of the table ``name``, in whatever case."""
    entry = table(name)[section]
    return re.compile(rf"\b(?:{in_words(entry['en'])})|{in_characters(entry['zh'])}", re.IGNORECASE)


def rows(text: str) -> Iterator[list[str]]:
    """The lines of a table as their cells between bars."""
    for line in text.splitlines():
        if line.strip():
            yield [cell.strip() for cell in line.split("|")]


@dataclass(frozen=True, slots=True)
class Match:
    """A ``name`` of a table at ``start:end`` of a text."""

    start: int
    end: int
    name: str


class Names:
    """Names to look for in folded text: English by words (a plural s is understood), others by characters.

    A name that ends in * is also everyday language: it counts only where nothing else is written around it.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._english: set[str] = set()
        self._lengths: dict[str, int] = {}  # of the longest name by its first word
        self._others: dict[str, list[str]] = {}
        names = set(names)
        self._alone = {name.removesuffix("*") for name in names if name.endswith("*")}
        for written in {name.removesuffix("*") for name in names}:
            if _IS_HAN.search(written):
                self._others.setdefault(written[0], []).append(written)
            else:
                parts = tuple(_WORD.findall(written))
                self._english.add(" ".join(parts))
                self._lengths[parts[0]] = max(len(parts), self._lengths.get(parts[0], 0))
        for others in self._others.values():
            others.sort(key=len, reverse=True)

    def matches(self, folded: str) -> list[Match]:
        """The longest name at each place of ``folded``, in order, none within another."""
        matches = sorted((*self._by_words(folded), *self._by_characters(folded)), key=lambda match: match.start)
        kept: list[Match] = []
        for match in matches:
            if not kept or match.start >= kept[-1].end:
                kept.append(match)
            elif match.end - match.start > kept[-1].end - kept[-1].start:
                kept[-1] = match
        return kept

    def _by_words(self, folded: str) -> Iterator[Match]:
        words = [(match[0], match.start(), match.end()) for match in _WORD.finditer(folded)]
        place = 0
        while place < len(words):
            length, name = self._longest(folded, words, place)
            if length:
                yield Match(words[place][1], words[place + length - 1][2], name)
            place += max(1, length)

    def _longest(self, folded: str, words: list[tuple[str, int, int]], place: int) -> tuple[int, str]:
        first = words[place][0]
        longest = self._lengths.get(first, 0) or min(1, self._lengths.get(_singular(first), 0))
        end = place + 1
        while end < min(place + longest, len(words)) and _JOINT.fullmatch(folded[words[end - 1][2] : words[end][1]]):
            end += 1
        for length in range(min(end - place, longest), 0, -1):
            before = " ".join(word for word, _, _ in words[place : place + length - 1])
            last = words[place + length - 1][0]
            for form in (last, _singular(last)):
                if (name := f"{before} {form}".lstrip()) in self._english:
                    return length, name
        return 0, ""

    def _by_characters(self, folded: str) -> Iterator[Match]:
        place, end = 0, len(folded)
        while place < end:
            for name in self._others.get(folded[place], ()):
                if not folded.startswith(name, place) or _SPLIT.match(folded, max(0, place - 1)):
                    continue
                if name not in self._alone or _alone(folded, place, name):
                    yield Match(place, place + len(name), name)
                    place += len(name) - 1
                    break
            place += 1


def key(name: str) -> str:
    """A listed name as ``Names`` gives it back."""
    written = name.removesuffix("*")
    return written if _IS_HAN.search(written) else " ".join(_WORD.findall(written))


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and len(word) > 3 else word


def _alone(folded: str, start: int, name: str) -> bool:
    after = folded[start + len(name) : start + len(name) + 2]
    return bool(_ALONE_BEFORE.search(folded[max(0, start - 1) : start]) and _ALONE_AFTER.match(after))
