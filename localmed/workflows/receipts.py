"""Receipts: the sections that speak of a question, with the sentences nearest to it marked. Nothing judges them.

Every workflow that asks the library begins here; without a chat model this is the whole answer. Where two of the first
sections give another amount of the same medicine in the same unit, or stand in two editions of one document, both are
put side by side above everything, the newer edition first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from localmed.clinical import medicines
from localmed.domain import (
    Answer,
    AnswerStatus,
    Conflict,
    ConflictKind,
    Evidence,
    Hit,
    Passage,
    Provenance,
    Quantity,
    Receipts,
    SearchFilter,
    ShownLine,
    ShownSection,
    message,
)
from localmed.domain.findings import Finding, Section
from localmed.domain.parts import ConceptPart, Definition
from localmed.language import detect, words
from localmed.retrieval.concepts import Card
from localmed.verification.amounts import Amount, amounts
from localmed.workflows.finding import bounded
from localmed.workflows.flow import Cite, Find, Flow

PASSAGES, SECTIONS = 50, 10  # searched for, and sections shown
COMPARED = 3  # sections whose marked lines are compared with one another
CONFLICTS = 3  # shown at most
NO_WORDS = message("workflow.no_words")
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
    as_written: bool = False,
) -> Flow:
    """The answer of sections alone, within ``filters``; ``searched`` names the collections that are not empty."""
    text, notes = bounded(question)
    answer = Answer(
        AnswerStatus.ABSTAINED, text, detect(text), (), (), searched, provenance, notes=notes, workflow=workflow
    )
    if not searched or not words(text):
        return replace(answer, notes=(*notes, NO_WORDS if searched else NO_TIER))
    found: Finding = yield Find(text, filters, max(PASSAGES, sections), sections, as_written, earlier)
    both = (*found.sections, *found.others)
    passages = {passage.id: passage for section in both for passage in section.passages}
    evidence: tuple[Evidence, ...] = (yield Cite(tuple(map(_hit, passages.values())))) if passages else ()
    known = {piece.passage.id: piece for piece in evidence}
    own = _newest_first([shown_section(section, known) for section in found.sections], known)
    others = tuple(shown_section(section, known) for section in found.others)
    return replace(
        answer,
        status=AnswerStatus.SECTIONS if both else AnswerStatus.ABSTAINED,
        language=found.found.language,
        evidence=evidence,
        receipts=Receipts(found.read.readings, own, others, found.found.dense, found.found.closeness),
        conflicts=tuple(conflicts(own[:COMPARED], evidence))[:CONFLICTS],
    )


def _hit(passage: Passage) -> Hit:
    return Hit(passage, 0.0)


def shown_section(section: Section, known: Mapping[str, Evidence]) -> ShownSection:
    """``section`` by the markers of its evidence (``known`` by passage)."""
    lines = tuple(
        ShownLine(known[line.passage.id].marker, line.start, line.end, line.marked, line.breaks)
        for line in section.lines
    )
    best = known.get(section.best.passage.id)
    return ShownSection(best.marker if best else lines[0].marker, lines, section.cut, section.best.score)


def renumbered(answer: Answer, before: int) -> Answer:
    """``answer`` with its evidence called by the markers after the first ``before``."""
    name = {piece.marker: str(before + number) for number, piece in enumerate(answer.evidence, 1)}

    def moved(sections: Iterable[ShownSection]) -> tuple[ShownSection, ...]:
        return tuple(
            replace(one, best=name[one.best], lines=tuple(replace(it, marker=name[it.marker]) for it in one.lines))
            for one in sections
        )

    found = answer.receipts
    return replace(
        answer,
        evidence=tuple(replace(piece, marker=name[piece.marker]) for piece in answer.evidence),
        receipts=replace(found, sections=moved(found.sections), others=moved(found.others)) if found else None,
    )


def concept_part(card: Card, defined: bool = True) -> ConceptPart:
    """What a concept is to others, and its definition with its source unless it is not ``defined`` here."""
    concept = card.concept
    source = (
        Definition(concept.definition, f"{concept.collection} {concept.id}") if concept.definition and defined else None
    )
    own = [row for row in card.relations if row.subject in (concept.id, *card.same)]
    return ConceptPart(concept.name, source, tuple((row.predicate.replace("_", " "), row.object_name) for row in own))


# --- what two sections say otherwise ----------------------------------------------------------------------------------


def _newest_first(sections: list[ShownSection], known: Mapping[str, Evidence]) -> tuple[ShownSection, ...]:
    """``sections`` with those of two editions of one document in the order of their editions, newest first."""
    of = {piece.marker: piece for piece in known.values()}
    ordered = list(sections)
    for place in range(len(ordered)):
        one = of[ordered[place].best]
        later = [
            at
            for at in range(place + 1, len(ordered))
            if _editions(one, of[ordered[at].best]) and of[ordered[at].best].edition > one.edition
        ]
        if later:
            newest = max(later, key=lambda at: of[ordered[at].best].edition)
            ordered[place], ordered[newest] = ordered[newest], ordered[place]
    return tuple(ordered)


def _editions(one: Evidence, other: Evidence) -> bool:
    """Whether both are of the same document's title and heading, in two editions."""
    same = _name(one) == _name(other) and one.passage.headings[-1:] == other.passage.headings[-1:]
    apart = one.passage.document_id != other.passage.document_id
    return same and apart and bool(one.edition) and bool(other.edition) and one.edition != other.edition


def _name(piece: Evidence) -> tuple[str, ...]:
    return tuple(word for word in words(piece.document_title) if not word.isdigit())


def conflicts(sections: Sequence[ShownSection], evidence: Iterable[Evidence]) -> Iterator[Conflict]:
    """Where marked lines of two documents give other amounts of one medicine, in the same unit; no verdict."""
    known = {piece.marker: piece for piece in evidence}
    lines = [(known[line.marker], line) for section in sections for line in section.marks]
    seen: set[tuple[str, str]] = set()
    for place, (one, ours) in enumerate(lines):
        for other, theirs in lines[place + 1 :]:
            pair = (one.marker, other.marker)
            if one.passage.document_id == other.passage.document_id or pair in seen:
                continue
            if differing := _differing(_words(one, ours), _words(other, theirs)):
                seen.add(pair)
                yield Conflict(
                    ConflictKind.DOSE,
                    *pair,
                    one.citation(ours.start, ours.end),
                    other.citation(theirs.start, theirs.end),
                    tuple(Quantity(it.low, it.high, it.kind, it.written) for it in differing),
                )


def _words(piece: Evidence, line: ShownLine) -> str:
    return piece.passage.text[line.start : line.end]


def _differing(one: str, other: str) -> tuple[Amount, Amount] | None:
    """The first amounts of one kind that do not meet, where both lines name one medicine and nothing else."""
    named, too = medicines.ingredients(one), medicines.ingredients(other)
    if len(named) != 1 or named != too:
        return None
    mine, theirs = amounts(one), amounts(other)
    kinds = {it.kind for it in mine} & {it.kind for it in theirs}
    for kind in sorted(kinds):
        ours, against = [it for it in mine if it.kind == kind], [it for it in theirs if it.kind == kind]
        if not any(it.agrees(that) for it in ours for that in against):
            return ours[0], against[0]
    return None
