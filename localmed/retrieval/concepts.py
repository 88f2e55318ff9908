"""A term's card from the concept graph: definition, synonyms and the relations relevant to a question.

After Omni-RAG (MedOmniKB, "Graph" source): ``card`` looks up a concept, reads its definition and all one-hop relations,
which may be thousands, ranks these and keeps the ten best.

Relations rank by words shared with the question, weighted by rarity among the relations; a ``Reranker`` (cross-encoder,
or ``Cosine`` over the dense encoder) sorts the first ``RERANKED`` again. Without a question: what the term is, what it
interacts with, then the rest.

An abbreviation that the text spells out ("chronic kidney disease (CKD)") has that meaning. The caller's ``Expand``
finds such pairs: its library is optional.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from localmed.domain import Message, message
from localmed.domain.errors import UnknownName
from localmed.domain.ports import Embedder, Reranker
from localmed.library.graph import RELATIONS_READ, Concept, Graph, Name, Relation
from localmed.library.terms import folded, singular
from localmed.text.language import detect, question_words

SHOWN = 10  # relations on a card, as in the paper
SYNONYMS = 20  # on a card; UMLS has hundreds of spellings of common diseases
OTHERS = 8  # further concepts of the same name
RERANKED = 30  # relations for the reranker: up to a second on two cores
SAME = 20  # identical concepts of other sources whose relations are added

# Relations without a direction: the card's own term is shown first.
SYMMETRIC = frozenset({"interacts_with", "sibling_of", "related_to", "possibly_related_to", "similar_to", "synonym_of"})

# Order without a question.
_FIRST = {"is_a": 0, "child_of": 0, "narrower_than": 0, "interacts_with": 1}
_OTHER, _BELOW = 2, 3  # instances of the term come last: there may be hundreds

Expand = Callable[[str], Mapping[str, str] | None]  # text -> {short form: long form}, None without a detector


@dataclass(frozen=True, slots=True)
class Other:
    """Another concept that the same name may mean."""

    id: str
    name: str
    collection: str


@dataclass(frozen=True, slots=True)
class Card:
    """The graph's knowledge of one term, found by the name ``matched``.

    ``relations``: the best ``SHOWN`` of ``total``, sorted by ``ordered_by``; ``same``: ids of the concept in other
    sources; ``codes``: its classification codes.
    """

    concept: Concept
    matched: Name
    synonyms: tuple[str, ...]
    codes: tuple[str, ...]
    same: tuple[str, ...]
    relations: tuple[Relation, ...]
    total: int
    ordered_by: str
    others: tuple[Other, ...] = ()
    notes: tuple[Message, ...] = ()


class Cosine:
    """A ``Reranker`` on a dense encoder: the cosine of question and relation."""

    def __init__(self, encoder: Embedder) -> None:
        """Share ``encoder``."""
        self._encoder = encoder

    @property
    def name(self) -> str:
        """The encoder's name and version."""
        return f"cosine of {self._encoder.identity.name} {self._encoder.identity.version}"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        """The cosine of each passage with the question."""
        del keep
        vector = self._encoder.encode([question], "query")[0]
        return [float(cosine) for cosine in self._encoder.encode(passages, "passage") @ vector]


def card(
    graph: Graph,
    term: str,
    question: str = "",
    reranker: Reranker | None = None,
    expand: Expand | None = None,
    context: str = "",
    languages: Sequence[str] = (),
) -> Card:
    """The card of ``term``; raise ``UnknownName`` with near names for an unknown one.

    ``question`` sorts the relations; ``context`` may spell out abbreviations; ``languages``: those of ``reranker``, ()
    for all.
    """
    matches, notes = _read(graph, term, f"{question}\n{context}", expand)
    if not matches:
        if not graph.counts():
            raise UnknownName("graph.none")
        if near := tuple(graph.near(term)):
            raise UnknownName("graph.unknown_near", near=near)
        raise UnknownName("graph.unknown")
    chosen, matched = matches[0]
    concept = graph.concept(chosen)
    assert concept is not None  # find returns what exists
    same = graph.same(chosen)[:SAME]
    relations = [_facing(relation, (chosen, *same)) for relation in graph.relations([chosen, *same])]
    if len(relations) >= RELATIONS_READ:
        notes.append(message("graph.relations_read", most=RELATIONS_READ))
    if reranker and languages and detect(question) not in languages:
        reranker = None
        notes.append(message("graph.by_words"))
    ranked, ordered_by = _ranked(concept, relations, question, reranker)
    return Card(
        _defined(graph, concept, same),
        matched,
        _synonyms(concept),
        tuple(code for code in concept.xrefs if code not in same),
        tuple(same),
        tuple(ranked[:SHOWN]),
        len(relations),
        ordered_by,
        tuple(_others(graph, matches[1:], same)),
        tuple(notes),
    )


# --- which concept -------------------------------------------------------------------------------------------------


def _read(graph: Graph, term: str, text: str, expand: Expand | None) -> tuple[list[tuple[str, Name]], list[Message]]:
    """The concepts for ``term``, best first, by the text's own long form, else by the graph; and notes."""
    notes: list[Message] = []
    if expand and _spelled_out(term, text):
        pairs = expand(text)
        if pairs is None:
            notes.append(message("graph.no_abbreviations"))
        elif matches := graph.find(pairs.get(term, "")):
            return matches, [message("graph.spelled_out")]
    return graph.find(term), notes


def _spelled_out(term: str, text: str) -> bool:
    """Whether ``text`` may spell ``term`` out; loading the detector takes two seconds."""
    plain = text.replace("（", "(").replace("）", ")")
    return bool(term.strip()) and (f"({term}" in plain or f"{term} (" in plain)


def _others(graph: Graph, matches: Sequence[tuple[str, Name]], same: Sequence[str]) -> list[Other]:
    concepts = [graph.concept(identifier) for identifier, _ in matches[: OTHERS + len(same)] if identifier not in same]
    return [Other(concept.id, concept.name, concept.collection) for concept in concepts if concept][:OTHERS]


def _defined(graph: Graph, concept: Concept, same: Sequence[str]) -> Concept:
    """``concept``, with another source's definition if it has none."""
    if concept.definition:
        return concept
    others = (graph.concept(identifier) for identifier in same)
    best = next((other for other in others if other and other.definition), None)
    if best is None:
        return concept
    return replace(concept, definition=best.definition, defined_in=best.defined_in)


def _synonyms(concept: Concept) -> tuple[str, ...]:
    """Its other names, each spelling once, best kind first."""
    once = {folded(name.text): name.text for name in reversed(concept.names)}
    once.pop(folded(concept.name), None)
    return tuple(reversed(once.values()))[:SYNONYMS]


# --- which relations -----------------------------------------------------------------------------------------------


def _facing(relation: Relation, own: Sequence[str]) -> Relation:
    """``relation`` with the card's term as subject, if symmetric."""
    if relation.predicate not in SYMMETRIC or relation.subject in own:
        return relation
    return replace(
        relation,
        subject=relation.object,
        subject_name=relation.object_name,
        object=relation.subject,
        object_name=relation.subject_name,
    )


def sentence(relation: Relation) -> str:
    """A relation as text for a reranker."""
    predicate = relation.predicate.replace("_", " ")
    return f"{relation.subject_name} {predicate} {relation.object_name} {relation.detail}".strip()


def _ranked(
    concept: Concept, relations: Sequence[Relation], question: str, reranker: Reranker | None
) -> tuple[list[Relation], str]:
    """``relations`` best first, and by what."""
    fixed = sorted(relations, key=lambda relation: _fixed(concept.id, relation))
    sought = {singular(word) for word in question_words(question)}
    if not sought:
        return fixed, "kind"
    by_words = _by_words(fixed, sought)
    if reranker is None:
        return by_words, "words"
    first = by_words[:RERANKED]
    scores = reranker.score(question, [sentence(relation) for relation in first])
    order = sorted(range(len(first)), key=lambda place: -scores[place])
    return [*(first[place] for place in order), *by_words[RERANKED:]], reranker.name


def _by_words(relations: Sequence[Relation], sought: set[str]) -> list[Relation]:
    """Sort stably by shared words, weighted by BM25's inverse document frequency.

    The term's own name weighs nothing: all relations have it.
    """
    held = [sought & {singular(word) for word in folded(sentence(relation)).split()} for relation in relations]
    frequency = Counter(word for words in held for word in words)
    weight = {word: math.log(1 + (len(held) - count) / (count + 0.5)) for word, count in frequency.items()}
    scores = [sum(weight[word] for word in words) for words in held]
    return [relations[place] for place in sorted(range(len(held)), key=lambda place: -scores[place])]


def _fixed(concept: str, relation: Relation) -> tuple[int, str, str, str]:
    """The order without a question: kind, severity ("high priority" before "non-interruptive"), name."""
    other = relation.object_name if relation.subject == concept else relation.subject_name
    kind = _FIRST.get(relation.predicate, _OTHER)
    if kind == 0 and relation.object == concept:
        kind = _BELOW
    return kind, relation.predicate, relation.detail, other
