"""What the concept graph says, in an answer: a definition is evidence that is cited, relations stand beside it."""

from __future__ import annotations

from collections.abc import Iterable

from localmed.clinical import asking
from localmed.domain import Evidence, Hit
from localmed.domain.parts import ConceptPart, Definition
from localmed.library.definitions import cited_passage
from localmed.retrieval.concepts import Card
from localmed.verification import citations
from localmed.verification.prompt_injection import planted
from localmed.workflows.answering import Written
from localmed.workflows.flow import Cite, LookUp, Step


def asked_for(question: str) -> Step[Card | None]:
    """What the graph knows of the thing that ``question`` asks to be defined, where that is more than its name."""
    term = asking.defined(question)
    card: Card | None = (yield LookUp(term)) if term else None
    return card if card and (card.concept.definition or card.relations) else None


def hits(cards: Iterable[Card]) -> tuple[Hit, ...]:
    """The definitions of ``cards``, to be cited; they took part in no search."""
    passages = (cited_passage(card.concept) for card in cards)
    return tuple(Hit(passage, 0.0) for passage in passages if passage)


def quoted(card: Card) -> Step[Written]:
    """The definition of ``card``, quoted; nothing where it has none, or speaks to a language model."""
    definitions = hits((card,))
    minted: tuple[Evidence, ...] = (yield Cite(definitions)) if definitions else ()
    evidence = tuple(piece for piece in minted if not planted(piece))
    statements = tuple(piece.quotation(0, len(piece.passage.text)) for piece in evidence)
    checked, account = citations.check(statements, evidence)
    return Written(checked, account, (), evidence, checked)


def concept_part(card: Card, cited: bool = False) -> ConceptPart:
    """What a concept is to others, and its definition with its source unless it is ``cited`` in the answer."""
    concept = card.concept
    shown = concept.definition and not cited
    source = Definition(concept.definition, f"{concept.collection} {concept.id}") if shown else None
    own = [row for row in card.relations if row.subject in (concept.id, *card.same)]
    return ConceptPart(concept.name, source, tuple((row.predicate.replace("_", " "), row.object_name) for row in own))
