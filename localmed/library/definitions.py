"""Definitions of the concept graph as passages, so that an answer can cite them and a reader open them.

A passage of a definition is made from the graph when it is needed: its id is that of file and concept, and finds it.
"""

from __future__ import annotations

from localmed.domain import Passage, digest
from localmed.library.graph import Concept, Graph
from localmed.text.language import detect


def cited_passage(concept: Concept) -> Passage | None:
    """The definition of ``concept`` as a passage of the file where it stands; ``with_prefix`` finds it by its id."""
    source = concept.defined_in
    if source is None:
        return None
    text = f"{concept.name}: {' '.join(concept.definition.split())}"
    return Passage(
        digest(source.document, concept.id),
        source.document,
        source.collection,
        detect(concept.definition),
        source.edition,
        source.title,
        (concept.name,),
        text,
        f"0-{len(text)}",
    )


def with_prefix(graph: Graph, prefix: str) -> list[Passage]:
    """At most two definitions as passages whose id starts with ``prefix``."""
    passages = (cited_passage(concept) for concept in graph.defining(prefix))
    return [passage for passage in passages if passage and passage.id.startswith(prefix)]
