"""Receipts: finds sections on a question and marks their nearest sentences, without judging them.

Every workflow that asks the library begins here; without a chat model this is the whole answer. Where
sections differ (``retrieval.conflicts``), the answer's ``conflicts`` quote both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice

from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Provenance,
    Receipts,
    SearchFilter,
    ShownLine,
    ShownSection,
    message,
)
from localmed.domain.findings import Closeness, Finding, Section
from localmed.domain.parts import ConceptPart, Definition
from localmed.retrieval.concepts import Card
from localmed.retrieval.conflicts import differences, newest_first
from localmed.safety.red_flags import red_flags
from localmed.text.language import detect, words
from localmed.workflows.finding import bounded
from localmed.workflows.flow import Cite, Find, Flow

PASSAGES, SECTIONS = 50, 10  # searched for, and sections shown
CONFLICTS = 3  # shown at most
NO_WORDS = message("workflow.no_words")
WITHDRAWN = "workflow.withdrawn_because"
NO_TIER = message("workflow.no_tier")


def receipts(
    question: str,
    filters: SearchFilter,
    searched: tuple[str, ...],
    provenance: Provenance,
    earlier: tuple[str, ...] = (),
    *,
    workflow: str = "ask",
    sections: int = SECTIONS,
    left_out: tuple[str, ...] = (),
) -> Flow:
    """The flow for an answer of sections; ``searched`` names the collections that are not empty."""
    text, notes = bounded(question)
    answer = Answer(
        AnswerStatus.ABSTAINED, text, detect(text), (), (), searched, provenance, notes=notes, workflow=workflow
    )
    if not searched or not words(text):
        return replace(answer, searched=(), notes=(*notes, NO_WORDS if searched else NO_TIER))
    found: Finding = yield Find(text, filters, max(PASSAGES, sections), sections, left_out, earlier)
    both = (*found.sections, *found.others)
    passages = {passage.id: passage for section in both for passage in section.passages}
    evidence: tuple[Evidence, ...] = (yield Cite(tuple(map(Hit, passages.values())))) if passages else ()
    known = {piece.passage.id: piece for piece in evidence}
    flags = red_flags("\n".join((*earlier, text)))  # earlier questions count too
    flags = flags or red_flags(found.read.as_read)  # "pcm OD", "unconcious"
    own = newest_first([shown_section(section, known) for section in found.sections], known)
    others = tuple(shown_section(section, known) for section in found.others)
    return replace(
        answer,
        status=AnswerStatus.SECTIONS if both else AnswerStatus.ABSTAINED,
        language=found.found.language,
        evidence=evidence,
        notes=(*notes, *(message(WITHDRAWN, title=it, date=day, reason=why) for it, day, why in found.withdrawn)),
        receipts=Receipts(
            found.read.readings,
            own,
            others,
            found.found.dense,
            found.found.closeness,
            flags,
            found.absent,
            found.others_first,
        ),
        conflicts=tuple(islice(differences(own, evidence), CONFLICTS)),
    )


def shown_section(section: Section, known: Mapping[str, Evidence]) -> ShownSection:
    """``section`` with markers of evidence, which is ``known`` by passage id."""
    lines = tuple(
        ShownLine(known[line.passage.id].marker, line.start, line.end, line.marked, line.breaks)
        for line in section.lines
    )
    best = known.get(section.best.passage.id)
    population = tuple(ShownLine(known[it.passage.id].marker, it.start, it.end) for it in section.population)
    name = best.marker if best else lines[0].marker
    return ShownSection(name, lines, section.cut, section.best.score, section.study, population, section.lacks)


def renumbered(answer: Answer, before: int) -> Answer:
    """``answer`` with markers that start after ``before``."""
    name = {piece.marker: str(before + number) for number, piece in enumerate(answer.evidence, 1)}

    def moved(sections: Iterable[ShownSection]) -> tuple[ShownSection, ...]:
        return tuple(
            replace(
                one,
                best=name[one.best],
                lines=tuple(replace(it, marker=name[it.marker]) for it in one.lines),
                population=tuple(replace(it, marker=name[it.marker]) for it in one.population),
            )
            for one in sections
        )

    found = answer.receipts
    return replace(
        answer,
        evidence=tuple(replace(piece, marker=name[piece.marker]) for piece in answer.evidence),
        receipts=replace(found, sections=moved(found.sections), others=moved(found.others)) if found else None,
    )


NEAREST = (Closeness.CLOSE, Closeness.SOME_WAY, Closeness.UNKNOWN, Closeness.NOTHING_NEAR)


def merged(found: Sequence[Receipts]) -> Receipts:
    """All sections of ``found`` (at least one), those with marks first, with the best closeness."""

    def in_order(sections: Iterable[ShownSection]) -> tuple[ShownSection, ...]:
        return tuple(sorted(sections, key=lambda section: not section.marks))

    return replace(
        found[0],
        sections=in_order(section for one in found for section in one.sections),
        others=in_order(section for one in found for section in one.others),
        dense=all(one.dense for one in found),
        closeness=min((one.closeness for one in found), key=NEAREST.index),
        others_first=all(one.others_first for one in found),
    )


def own(answer: Answer) -> tuple[ShownSection, ...]:
    """The sections of ``answer`` in the question's language."""
    return answer.receipts.sections if answer.receipts else ()


def best_of(answer: Answer, sections: Sequence[ShownSection]) -> tuple[Evidence, ...]:
    """The passages by which ``sections`` of ``answer`` were found."""
    return tuple(answer.by_marker[name] for name in dict.fromkeys(section.best for section in sections))


def concept_part(card: Card, defined: bool = True) -> ConceptPart:
    """A concept's relations, and its definition with source if ``defined``."""
    concept = card.concept
    source = (
        Definition(concept.definition, f"{concept.collection} {concept.id}") if concept.definition and defined else None
    )
    own = [row for row in card.relations if row.subject in (concept.id, *card.same)]
    return ConceptPart(concept.name, source, tuple((row.predicate.replace("_", " "), row.object_name) for row in own))
