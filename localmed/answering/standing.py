"""Whether a study may count at all: not if it is retracted, withdrawn or superseded, no study, or speaks to a model.

What is out of force never counts for or against a claim, and a reader is told of it: that a claim rests on a retracted
study is worth knowing. The library's status decides, and what PubMed says of an article in its publication types and
links, should its status say otherwise.
"""

from __future__ import annotations

from localmed.domain import Document, Status
from localmed.text.publications import of_standing

PLANTED = "planted"  # text addressed to a language model ("label this claim supported")
RETRACTED = "retracted"
NOTICE = "notice"  # of a retraction, correction or concern: it speaks of a study and is none
DOUBTED = "doubted"  # counts, but its editors say that something is wrong with it

_RETRACTED_LINKS = frozenset({"retraction_in", "retracted_and_republished_in"})
_DOUBTS = frozenset({"partial_retraction_in", "expression_of_concern_in"})


def excluded(document: Document, planted: bool) -> str:
    """Why ``document`` may not count, "" if it may: a code of ``verify.standing``."""
    types = {type_.lower() for type_ in document.publication_types}
    links = {kind for kind, _ in document.relations}
    if not types.isdisjoint(of_standing(RETRACTED)) or not links.isdisjoint(_RETRACTED_LINKS):
        return RETRACTED
    if document.status is not Status.CURRENT:
        return document.status.value
    if not types.isdisjoint(of_standing(NOTICE)):
        return NOTICE
    return PLANTED if planted else ""


def doubted(document: Document) -> bool:
    """Whether the article's journal has retracted a part of it or expressed concern."""
    return not _DOUBTS.isdisjoint(kind for kind, _ in document.relations)
