"""What speaks for a passage holding the answer to a question, and what is missing there: a few explainable numbers.

A sentence is read with its title and headings, which name what "it" is. Where the question asks for a value (a dose, a
duration, a price), only sentences that give such a value count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from localmed import language
from localmed.clinical import asking
from localmed.domain import Hit, Passage
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.topics import Topic, Topics, terms_of, topics

_ROW = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True)
class Query:
    """A question as it is held against passages: what it names and the values it asks for."""

    topics: Topics
    slots: tuple[asking.Slot, ...]
    nameless: bool = False

    @classmethod
    def of(cls, question: str, index: LexicalIndex) -> Query:
        """``question``, its words weighed by ``index``."""
        named = topics(question, index)
        return cls(named, asking.slots(question), named.nameless)

    def fills(self, sentence: str) -> bool:
        """Whether ``sentence`` gives every value that is asked for."""
        return asking.filled(self.slots, [sentence])


@dataclass(frozen=True, slots=True)
class Signals:
    """Of one passage. All are shares from 0 to 1, but ``score``, which is the reranker's own.

    ``coverage`` of its topics by the passage with title and headings, ``sentence`` by the best sentence with title and
    headings, ``alone`` by it without them; ``title`` by title and headings; ``missing`` how rare the rarest topic is
    that stands nowhere in the passage; ``passing`` is 1 where the question is about one name alone and the passage is
    neither titled so nor defines it; ``unfilled`` is 1 where a value is asked for and no sentence gives one.
    ``lacking`` are the subjects that stand nowhere in it, ``absent`` is the share of those that a table knows,
    if it ``knows`` any; ``nameless`` is that the question does not say what it is about.
    """

    score: float
    coverage: float
    sentence: float
    alone: float
    title: float
    missing: float
    passing: float
    unfilled: float
    lacking: tuple[Topic, ...] = ()
    absent: float = 0.0
    knows: bool = True
    nameless: bool = False

    @property
    def whole(self) -> bool:
        """Whether the passage names all that the tables know, lacks hardly a word, and gives the value asked for."""
        return self.knows and not self.absent and not self.unfilled and len(self.lacking) <= LACKED

    @property
    def values(self) -> tuple[float, ...]:
        """In the order of ``NAMES``."""
        return tuple(float(getattr(self, name)) for name in NAMES)


LACKED = 1  # of the words of a question that no table knows
NAMES = ("score", "coverage", "sentence", "alone", "title", "missing", "passing", "unfilled")


def signals(query: Query, hit: Hit, index: LexicalIndex) -> Signals:
    """Those of ``hit``."""
    passage = hit.passage
    named = terms_of(" ".join((passage.title, *passage.headings)), index)
    context, whole = frozenset(named), frozenset((*named, *terms_of(passage.text, index)))
    sentences = [(text, terms_of(text, index)) for text in _sentences(passage)]
    filled = [frozenset(terms) for text, terms in sentences if query.fills(text)]
    about = not query.topics.lone or not query.topics.missing(context)
    lacking = query.topics.missing(whole)
    return Signals(
        hit.rerank_score or 0.0,
        query.topics.coverage(whole),
        max((query.topics.coverage(terms | context) for terms in filled), default=0.0),
        max((query.topics.coverage(terms) for terms in filled), default=0.0),
        query.topics.coverage(context),
        lacking[0].rarity if lacking else 0.0,
        float(
            not about and not any(query.topics.defined(index.analyse(asking.defining(text))) for text, _ in sentences)
        ),
        float(bool(query.slots) and not filled),
        lacking,
        query.topics.absent(whole),
        any(topic.subject and topic.listed for topic in query.topics.topics),
        query.nameless,
    )


def _sentences(passage: Passage) -> Iterator[str]:
    rows = (match.span() for match in _ROW.finditer(passage.text))
    return (passage.text[start:end] for start, end in (rows if passage.table else language.sentences(passage.text)))
