"""Summaries of guidelines by extraction: what the guideline map (LINS, "Local guidelines database") is searched by.

A guideline is found by what it is about as a whole, which no single passage says. LINS has a language model write the
summary; here it is its title, its outline and the sentences nearest to the centre of all its sentences that do not
repeat each other (centroid: Radev et al. 2004; maximal marginal relevance: Carbonell & Goldstein 1998), each verbatim
and with its place. Sentences compare by the encoder where it knows the language, else by their words, weighted by their
rarity within the document, so that a summary depends on its document alone.

Made before a generation is published, for every guideline that has none yet or has changed since, whatever the build
was for: a collection whose kind becomes "guideline" gets its summaries without an import. Nothing else is encoded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice, zip_longest
from math import log
from typing import TYPE_CHECKING

import numpy as np

from localmed.config import Settings
from localmed.domain import Document, Kind, Passage, digest
from localmed.language import content_words, sentences
from localmed.library import layout
from localmed.library.catalogue import Catalogue
from localmed.library.library import Builder
from localmed.library.summaries import Place, Summary
from localmed.library.vectors import VectorCache
from localmed.ports import Embedder

if TYPE_CHECKING:
    from localmed.ports import Vectors

VERSION = 1  # goes up when the extraction changes, or what passages are cut from: every summary is then made again
READ = 64  # sentences compared in a document, taken evenly over it: 0.2 s of encoding on two cores
SENTENCES = 24  # chosen at most: Chinese ones are short
CHARACTERS = 1000  # of chosen sentences: with title and outline about what MiniLM reads (256 word pieces)
OUTLINE = 300  # characters of headings
SHORTEST, LONGEST = 8, 400  # characters of a sentence: less is a list marker, more a list or a table
ENDS = tuple(".。!！?？;；")  # what ends otherwise is a heading, a caption or the first line of a list
NEARNESS = 0.7  # weight of being central against that of saying something new

Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a document and where it stands."""

    text: str
    place: Place


def complete(builder: Builder, encoder: Embedder, settings: Settings, progress: Progress | None = None) -> int:
    """Make the summaries that ``builder``'s guidelines lack; return how many. Call it last before ``publish``."""
    lacking = outdated(builder.catalogue, encoder, settings)
    if not lacking:
        return 0
    builder.settle()
    with closing(VectorCache(settings.data / layout.VECTORS, encoder)) as cache:
        for document in lacking:
            _make(builder, cache, document, recipe(document, encoder, settings), _knows(encoder, document))
            if progress:
                progress(0.0, document.title)
    builder.changed = True
    return len(lacking)


def outdated(catalogue: Catalogue, encoder: Embedder, settings: Settings) -> list[Document]:
    """The guidelines with text whose summary is missing, or was made of another content or in another way."""
    kept = catalogue.summaries.recipes()
    guidelines = [collection.name for collection in catalogue.collections() if collection.kind is Kind.GUIDELINE]
    return [
        document
        for name in guidelines
        for document in catalogue.documents(name)
        if document.passages and kept.get(document.id) != (document.content, recipe(document, encoder, settings))
    ]


def recipe(document: Document, encoder: Embedder, settings: Settings) -> str:
    """What apart from its content decides a document's summary and the places in it."""
    return digest(str(VERSION), encoder.identity.slug, document.title, document.language, repr(settings.chunk))


def _knows(encoder: Embedder, document: Document) -> bool:
    return document.language in encoder.identity.languages


def _make(builder: Builder, cache: VectorCache, document: Document, made: str, known: bool) -> None:
    """Extract, encode and store one summary."""
    passages = builder.lexical.of_document(document.id)
    read = candidates(passages)
    vectors = cache.encode([sentence.text for sentence in read]) if known and read else by_words(passages, read)
    text, places = written(document.title, passages, choose(read, vectors))
    words = tuple(sorted(set(builder.lexical.analyse(text))))
    vector = cache.encode([text])[0] if known else None
    builder.catalogue.summaries.put(Summary(document.id, document.content, made, text, places, words), vector)


# --- extraction -----------------------------------------------------------------------------------------------------


def candidates(passages: Sequence[Passage]) -> list[Sentence]:
    """At most ``READ`` sentences spread over the passages, each one's first before any one's second; in their order.

    Rows of tables, captions and what is unusually short or long only where there is nothing else.
    """
    prose = [passage for passage in passages if not passage.table] or list(passages)
    spread = [prose[index * len(prose) // READ] for index in range(READ)] if len(prose) > READ else prose
    units = [list(_sentences(passage)) for passage in spread]
    whole = [[sentence for sentence in unit if _whole(sentence.text)] for unit in units]
    columns = zip_longest(*(whole if any(whole) else units))
    chosen = list(islice((sentence for column in columns for sentence in column if sentence), READ))
    order = {passage.id: index for index, passage in enumerate(spread)}
    return sorted(chosen, key=lambda sentence: (order[sentence.place.passage], sentence.place.start))


def _whole(text: str) -> bool:
    return SHORTEST <= len(text) <= LONGEST and text.endswith(ENDS)


def _sentences(passage: Passage) -> Iterator[Sentence]:
    for start, end in _rows(passage.text) if passage.table else sentences(passage.text):
        yield Sentence(passage.text[start:end], Place(passage.id, start, end))


def _rows(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for line in text.split("\n"):
        if line.strip():
            yield start, start + len(line)
        start += len(line) + 1


def by_words(passages: Sequence[Passage], read: Sequence[Sentence]) -> Vectors:
    """Unit vectors of the sentences (S, T) over the document's T words, weighted by rarity among its passages."""
    spread = Counter(word for passage in passages for word in set(content_words(passage.text)))
    words = [content_words(sentence.text) for sentence in read]
    column = {
        word: index
        for index, word in enumerate(dict.fromkeys(word for sentence_words in words for word in sentence_words))
    }
    vectors = np.zeros((len(read), len(column)), np.float32)
    for row, row_words in enumerate(words):
        for word in row_words:
            vectors[row, column[word]] += log(1 + len(passages) / max(spread[word], 1))
    return _unit(vectors)


def choose(read: Sequence[Sentence], vectors: Vectors) -> list[Sentence]:
    """The sentences that say together what all of them are about, in their order; ``vectors`` (S, D) are unit.

    One that does not fit into what is left of ``CHARACTERS`` is passed over; the first is taken whatever its length.
    """
    if not read:
        return []
    central = vectors @ _unit(vectors.sum(axis=0, keepdims=True))[0]
    repeated = np.zeros(len(read), np.float32)
    chosen: list[int] = []
    room = CHARACTERS
    for _ in read:
        index = int(np.argmax(NEARNESS * central - (1 - NEARNESS) * repeated))
        if not chosen or len(read[index].text) <= room:
            chosen.append(index)
            room -= len(read[index].text)
            repeated = np.maximum(repeated, vectors @ vectors[index])
        repeated[index] = np.inf  # never again
        if len(chosen) == SENTENCES:
            break
    return [read[index] for index in sorted(chosen)]


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def written(title: str, passages: Sequence[Passage], chosen: Sequence[Sentence]) -> tuple[str, tuple[Place, ...]]:
    """The summary's text, a line each: title, outline, sentences; and where the sentences stand."""
    lines = [title, outline(title, passages), *(sentence.text for sentence in chosen)]
    return "\n".join(line for line in lines if line), tuple(sentence.place for sentence in chosen)


def outline(title: str, passages: Sequence[Passage]) -> str:
    """The headings, upper levels first, each once, as far as ``OUTLINE`` characters reach."""
    depth = max((len(passage.headings) for passage in passages), default=0)
    names = dict.fromkeys(
        passage.headings[level] for level in range(depth) for passage in passages if len(passage.headings) > level
    )
    taken: list[str] = []
    room = OUTLINE
    for name in names:
        if name.strip() and name != title and len(name) + 2 <= room:
            taken.append(name)
            room -= len(name) + 2
    return "; ".join(taken)
