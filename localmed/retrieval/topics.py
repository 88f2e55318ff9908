"""What a question names, each topic under all its names, and how much of it a text holds.

A topic is a medicine, a row of ``clinical/synonyms.toml``, or any other word of the question. It weighs as its most
common name is rare in the library (inverse document frequency); one that the library has never seen weighs most. Words
that name nothing (``clinical/asking.toml``) weigh a quarter and are nobody's subject.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

from localmed import language
from localmed.clinical import asking, qualifiers, synonyms
from localmed.library.lexical import LexicalIndex, stems

_HEADED = re.compile("[高低]血.")
_JOINED = re.compile(r"(?:[ ,/()-]|\b(?:of|the|a|an|and)\b)*")
EVERYDAY = 0.25  # of a word's weight, if it names nothing
MOST_NAMES = 60  # of a topic: a medicine with all its brands, a class with its members
FIRST = 5  # index terms before the "is" of a definition
HALF = 0.5  # of a name's terms: less is not the topic (Chinese names are pairs of characters)


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as a question has ``written`` it, the index terms of each of its ``names``, and its ``weight``.

    ``rarity`` (0 to 1) is that of its most common name, 1 for what the library has never seen. ``subject`` is whether
    it is a name, not a word of asking; ``exact`` whether all terms of a name are needed; ``listed`` whether a table
    knows it: only then are its other names known.
    """

    written: str
    names: tuple[frozenset[str], ...]
    weight: float
    rarity: float
    subject: bool = True
    exact: bool = True
    listed: bool = False

    @property
    def rarer(self) -> bool:
        """Whether it may be half of a name: a subject or a number."""
        return self.subject or _is_number(self.written)

    def held(self, terms: Collection[str]) -> float:
        """The share (0 to 1) of the name that ``terms`` hold best."""
        shares = (len(name.intersection(terms)) / len(name) for name in self.names)
        best = max(shares, default=0.0)
        return best if not self.exact or best == 1.0 else 0.0


@dataclass(frozen=True, slots=True)
class Topics:
    """The topics of a question, in its order.

    ``lone`` says that the question is about one name only: "what causes myotonic dystrophy".
    """

    topics: tuple[Topic, ...]
    lone: bool = False

    def coverage(self, terms: Collection[str]) -> float:
        """The share of the topics' weight that ``terms`` hold; 0 where there are none."""
        total = sum(topic.weight for topic in self.topics)
        return sum(topic.weight * topic.held(terms) for topic in self.topics) / total if total else 0.0

    def missing(self, terms: Collection[str]) -> tuple[Topic, ...]:
        """The subjects of which ``terms`` hold no name, rarest first."""
        missing = (topic for topic in self.topics if topic.subject and topic.held(terms) < HALF)
        return tuple(sorted(missing, key=lambda topic: -topic.rarity))

    def absent(self, terms: Collection[str]) -> float:
        """The share of the listed subjects of which ``terms`` hold no name; 0 where there are none."""
        listed = [topic for topic in self.topics if topic.subject and topic.listed]
        return sum(topic.held(terms) < HALF for topic in listed) / len(listed) if listed else 0.0

    def defined(self, terms: Sequence[str]) -> bool:
        """Whether ``terms``, all that stands before a sentence's "is", are the subjects and little else."""
        return 0 < len(terms) <= FIRST and not self.missing(terms)


def topics(question: str, index: LexicalIndex) -> Topics:
    """What ``question`` names."""
    folded, read, done, asks = _without_people(question), list[tuple[Topic, int, int]](), 0, set[str]()
    known: dict[Hashable, Topic] = {}  # what is named again and again is looked up once
    for named in synonyms.named(question):
        read += _words(folded, done, named.start, index, known)
        key = replace(named, start=0, end=0)
        topic = known.get(key) or known.setdefault(key, _listed(named, index))
        asks |= {named.written} if named.asking else set()
        read += [(topic, named.start, named.end)] if topic.names else []
        done = named.end
    read += _words(folded, done, len(folded), index, known)
    return Topics(tuple({topic.names: topic for topic, _, _ in read}.values()), _lone(folded, read, asks))


def _without_people(question: str) -> str:
    """``question``, folded, with blanks in place of people's names."""
    folded = language.fold(question)
    for start, end in qualifiers.people(folded):
        folded = folded[:start] + " " * (end - start) + folded[end:]
    return folded


def other_names(question: str, index: LexicalIndex) -> str:
    """The names that the library has of what it does not know by the name in ``question``, "" where there are none.

    In the question's language only.
    """
    topics = (named for named in synonyms.named(question) if not named.asking and not index.holds(named.written))
    names = (name for named in topics for name in named.names[:MOST_NAMES] if _same_script(name, named.written))
    return " ".join(name for name in names if index.holds(name))


def _same_script(one: str, other: str) -> bool:
    return language.detect(one) == language.detect(other)


def _lone(folded: str, read: Sequence[tuple[Topic, int, int]], asks: Collection[str]) -> bool:
    """Whether the question has one name, of subjects, numbers and joining words, and else only what ``asks`` of it."""
    if any(not topic.rarer and topic.written not in asks for topic, _, _ in read):
        return False
    names = [(start, end) for topic, start, end in read if topic.rarer]
    between = (folded[end:start] for (_, end), (start, _) in pairwise(names))
    return any(topic.subject for topic, _, _ in read) and all(_JOINED.fullmatch(text) for text in between)


def _words(
    folded: str, start: int, end: int, index: LexicalIndex, known: dict[Hashable, Topic]
) -> Iterator[tuple[Topic, int, int]]:
    place = start
    for word in language.content_words(folded[start:end]):
        place = max(folded.find(word, place, end), place)
        topic = known.get(word) or known.setdefault(word, _word(word, index))
        if topic.names:
            yield topic, place, place + len(word)


def _word(word: str, index: LexicalIndex) -> Topic:
    everyday, terms = _everyday(), frozenset(index.analyse(word, for_query=True))
    subject = word not in everyday and not terms <= everyday and not _is_number(word) and len(word) > 1
    return _thing(word, (terms,) if terms else (), index, subject, exact=len(terms) == 1)


def _listed(named: synonyms.Named, index: LexicalIndex) -> Topic:
    names = [
        frozenset((*index.analyse(name, for_query=True), *_HEADED.findall(name))) for name in named.names[:MOST_NAMES]
    ]
    everyday = named.asking or named.written in asking.everyday()
    return _thing(named.written, tuple(name for name in names if name), index, not everyday, listed=named.thing)


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


@cache
def _everyday() -> frozenset[str]:
    words = asking.everyday()
    return words | stems(" ".join(word for word in words if word.isascii()))


def _thing(
    written: str,
    names: Sequence[frozenset[str]],
    index: LexicalIndex,
    subject: bool,
    exact: bool = True,
    listed: bool = False,
) -> Topic:
    rarest = max(index.rarity(["\x00"]))
    rarities = (max(index.rarity(sorted(term for term in name if not _HEADED.match(term)))) for name in names)
    rarity = min(rarities, default=rarest) / rarest
    return Topic(written, tuple(names), rarity * (1.0 if subject else EVERYDAY), rarity, subject, exact, listed)
