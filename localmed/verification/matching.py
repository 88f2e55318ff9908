"""Which sentences of the cited passages a statement rests on: the few that hold its words, before anything is compared.

A number or a negation elsewhere in the passage belongs to something else; what is compared is this window, under the
passage's title and headings. It is chosen by words, and less by the numbers and medicines that a sentence holds;
whether these belong together is compared after it (``bindings``). English words without their endings; Chinese as pairs
of characters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from localmed import language
from localmed.clinical.medicines import names
from localmed.clinical.tables import listed, table
from localmed.domain import Passage
from localmed.verification.intervals import Interval, intervals
from localmed.verification.subjects import salient

_ENDING = re.compile(r"(?:ations?|ities|ity|ments?|ness|ings?|ives?|ions?|ies|ied|ed|es|s|ly|al|y|e)$")
_STEM = 4  # letters that an ending leaves at least
ANCHOR = 0.6  # weight of a number or medicine that a sentence shares; a word has 0.4 or 1
SENTENCES = 4  # a statement puts together at most; of more it would be a summary, not a sentence
GAIN = 0.12  # of the statement's words: what a further sentence must add to be of the window
GENERAL = 0.4  # weight of a word that most sentences about treatment hold ("patient", "given")
_STOPPED = re.compile(r"(?:[^。！？\s]|\s(?!$))[^。！？]*[。！？]*[”’）]*")
SHORT = 3  # letters of a stem that is not cut
BEGINNING = 6  # letters of a stem by which it is known
_ROW = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or a table's row, of a cited passage: the characters ``start:end`` of passage number ``place``."""

    place: int
    start: int
    end: int
    text: str
    heading: str = ""  # that it stands under


@dataclass(frozen=True, slots=True)
class Window:
    """The sentences that a statement rests on, best first, and the share of its words in them and their titles."""

    sentences: tuple[Sentence, ...]
    titles: str
    coverage: float
    around: str = ""  # the passages as a whole: what "it" refers to may stand there
    all_sentences: tuple[Sentence, ...] = ()  # of the passages, in their order

    @property
    def text(self) -> str:
        """The sentences, one a line."""
        return "\n".join(sentence.text for sentence in self.sentences)

    @property
    def in_context(self) -> str:
        """Titles and headings, then the sentences."""
        return f"{self.titles}\n{self.text}"


def split(passage: Passage, place: int = 0) -> list[Sentence]:
    """The sentences of ``passage``; of a table its rows."""
    if passage.table:
        spans = [match.span() for match in _ROW.finditer(passage.text)]
    else:
        spans = [part for start, end in language.sentences(passage.text) for part in _parts(passage.text, start, end)]
    heading = passage.headings[-1] if passage.headings else passage.title
    return [Sentence(place, start, end, passage.text[start:end], heading) for start, end in spans]


def _parts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """A Chinese sentence ends at its full stop also where a number follows, which the splitter joins."""
    return [match.span() for match in _STOPPED.finditer(text, start, end)]


def window(statement: str, passages: Sequence[Passage]) -> Window:
    """The sentences of ``passages`` that hold most words of ``statement``, one after another while each adds some."""
    weighted, numbers, named = weights(statement), intervals(statement), names(statement)
    titles = " ".join(dict.fromkeys(name for passage in passages for name in (passage.title, *passage.headings)))
    candidates = [
        Candidate(sentence, words(sentence.text) & weighted.keys(), _anchors(sentence.text, numbers, named))
        for at, one in enumerate(passages)
        for sentence in split(one, at)
    ]
    everything = tuple(candidate.sentence for candidate in candidates)
    whole = sum(weighted.values()) or 1.0
    enough = round(GAIN * whole, 6)  # as what is held against it: the last bit of a sum hangs on its order
    have: set[str] = set()
    anchored: set[str] = set()
    chosen: list[Sentence] = []
    while candidates and len(chosen) < SENTENCES:
        best = max(candidates, key=lambda candidate: _adds(candidate, weighted, have, anchored))
        if chosen and _adds(best, weighted, have, anchored) < enough:
            break
        candidates.remove(best)
        chosen.append(best.sentence)
        have |= best.words
        anchored |= best.anchors
    have |= weighted.keys() & words(titles)
    share = sum(weighted[word] for word in have) / whole if weighted else 1.0
    return Window(tuple(chosen), titles, share, "\n".join(passage.in_context for passage in passages), everything)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence that a statement may rest on, the statement's words in it, and its numbers and medicines in it."""

    sentence: Sentence
    words: frozenset[str]
    anchors: frozenset[str]


def _anchors(sentence: str, numbers: Sequence[Interval], named: frozenset[str]) -> frozenset[str]:
    theirs = intervals(sentence) if numbers else []
    held = {
        f"{place}"
        for place, number in enumerate(numbers)
        if any(number.meets(other) or other.holds(number) for other in theirs)
    }
    return frozenset(held | (names(sentence) & named if named else frozenset()))


def _adds(candidate: Candidate, weighted: dict[str, float], have: set[str], anchored: set[str]) -> float:
    """What a sentence adds: words, and less than these numbers and medicines, by which it is compared."""
    adds = sum(weighted[word] for word in candidate.words - have)
    anchor = max(ANCHOR, GAIN * sum(weighted.values()))  # enough for a further sentence
    return round(adds + anchor * len(candidate.anchors - anchored), 6)


def weights(text: str) -> dict[str, float]:
    """The words of ``text`` that choose its sentences, each with its weight."""
    if language.detect(text) == "zh":
        return dict.fromkeys(words(text), 1.0)
    subjects = stems(" ".join(salient(text)))
    return {word: 1.0 if word in subjects else GENERAL for word in words(text)}


def words(text: str) -> frozenset[str]:
    """The words of ``text`` as they are compared: no numbers, no medicines."""
    if language.detect(text) == "zh":
        found_words = language.words(text, for_query=True)
        return frozenset(word for word in found_words if not word.isascii())
    named = {part for name in names(text) for part in re.findall(r"[a-z]+", name)}
    return frozenset(alike(stem) for stem in stems(text) if not stem[0].isdigit() and stem not in named) - {""}


def stems(text: str) -> frozenset[str]:
    """The content words of ``text`` without their endings."""
    return frozenset(_stem(word) for word in language.content_words(text))


def _stem(word: str) -> str:
    cut = _ENDING.sub("", word)
    return cut if len(cut) >= _STEM else word


@cache
def _same() -> Mapping[str, str]:
    """The stem that stands for each stem of the table ``paraphrases``, "" for what says nothing by itself."""
    data = table("paraphrases")
    same = {word: stem for stem, words in data["same"].items() for word in listed(words)}
    return same | dict.fromkeys(listed(data["nothing"]["en"]), "")


def alike(stem: str) -> str:
    """One stem for wordings of the same: ``stopp`` is ``stop``, ``pregnant`` and ``pregnancy`` begin alike."""
    single = stem[:-1] if len(stem) > SHORT and stem[-1] == stem[-2] and stem[-1] not in "sl" else stem
    return _same().get(single, single)[:BEGINNING]
