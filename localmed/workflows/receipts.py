"""Receipts: the sections that speak of a question, with the sentences nearest to it marked. Nothing judges them.

Every workflow that asks the library begins here; without a chat model this is the whole answer. Sections of one heading
in two editions of one document stand newest first; where they say something else, both are put side by side above
everything, by the sentences that are alike but for their numbers, else by what is marked. So are two of the first
sections that give another amount of the same medicine in the same unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

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
from localmed.retrieval.concepts import Card
from localmed.safety.red_flags import red_flags
from localmed.text import medicines
from localmed.text.amounts import Amount, amounts
from localmed.text.furniture import states_nothing
from localmed.text.language import detect, fold, words
from localmed.workflows.finding import bounded
from localmed.workflows.flow import Cite, Find, Flow

PASSAGES, SECTIONS = 50, 10  # searched for, and sections shown
COMPARED = 3  # sections whose marked lines are compared with one another
CONFLICTS = 3  # shown at most
ALIKE = 0.7  # of the words of two sentences: one sentence in two editions
_NUMBER = re.compile(r"\d+(?:[.,·]\d+)*")
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
    left_out: tuple[str, ...] = (),
) -> Flow:
    """The answer of sections alone, within ``filters``; ``searched`` names the collections that are not empty."""
    text, notes = bounded(question)
    answer = Answer(
        AnswerStatus.ABSTAINED, text, detect(text), (), (), searched, provenance, notes=notes, workflow=workflow
    )
    if not searched or not words(text):
        return replace(answer, searched=(), notes=(*notes, NO_WORDS if searched else NO_TIER))
    found: Finding = yield Find(text, filters, max(PASSAGES, sections), sections, left_out, earlier)
    both = (*found.sections, *found.others)
    passages = {passage.id: passage for section in both for passage in section.passages}
    evidence: tuple[Evidence, ...] = (yield Cite(tuple(map(_hit, passages.values())))) if passages else ()
    known = {piece.passage.id: piece for piece in evidence}
    flags = red_flags("\n".join((*earlier, text)))  # of a follow-up those of the questions before it too
    own = _newest_first([shown_section(section, known) for section in found.sections], known)
    others = tuple(shown_section(section, known) for section in found.others)
    return replace(
        answer,
        status=AnswerStatus.SECTIONS if both else AnswerStatus.ABSTAINED,
        language=found.found.language,
        evidence=evidence,
        notes=(*notes, *(message("workflow.withdrawn_lately", title=it, date=day) for it, day in found.withdrawn)),
        receipts=Receipts(
            found.read.readings, own, others, found.found.dense, found.found.closeness, flags, found.absent
        ),
        conflicts=(*editions(own, evidence), *conflicts(own[:COMPARED], evidence))[:CONFLICTS],
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
    population = tuple(ShownLine(known[it.passage.id].marker, it.start, it.end) for it in section.population)
    name = best.marker if best else lines[0].marker
    return ShownSection(name, lines, section.cut, section.best.score, section.study, population, section.lacks)


def renumbered(answer: Answer, before: int) -> Answer:
    """``answer`` with its evidence called by the markers after the first ``before``."""
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
    """Whether both are of one document, by collection, title and heading, in two editions."""
    same = _heading(one) == _heading(other)
    apart = one.passage.document_id != other.passage.document_id
    return same and apart and bool(one.edition) and bool(other.edition) and one.edition != other.edition


def _heading(piece: Evidence) -> tuple[object, ...]:
    title = tuple(word for word in words(piece.document_title) if not word.isdigit())
    return piece.passage.collection, title, piece.passage.headings[-1:]


def editions(sections: Sequence[ShownSection], evidence: Iterable[Evidence]) -> Iterator[Conflict]:
    """Two editions of one document that say something else under one heading, the newer one as ours."""
    known = {piece.marker: piece for piece in evidence}
    for place, one in enumerate(sections):
        for other in sections[place + 1 :]:
            newer, older = known[one.best], known[other.best]
            if not _editions(newer, older) or newer.edition < older.edition:
                continue
            if pair := _changed(one, other, known):
                (mine, ours), (its, theirs) = pair
                amounts_ = _differing(_words(mine, ours), _words(its, theirs)) or ()
                yield Conflict(
                    ConflictKind.EDITION,
                    mine.marker,
                    its.marker,
                    mine.citation(ours.start, ours.end),
                    its.citation(theirs.start, theirs.end),
                    tuple(Quantity(it.low, it.high, it.kind, it.written) for it in amounts_),
                    (newer.edition, older.edition),
                )


def _changed(
    one: ShownSection, other: ShownSection, known: Mapping[str, Evidence]
) -> tuple[tuple[Evidence, ShownLine], tuple[Evidence, ShownLine]] | None:
    """Two lines, one of them marked, that are alike but for their numbers; else what only one has."""
    mine, theirs = ([(known[line.marker], line) for line in it.lines] for it in (one, other))
    for ours in mine:
        for its in theirs:
            if (ours[1].marked or its[1].marked) and _other_numbers(_words(*ours), _words(*its)):
                return ours, its
    fresh, gone = _only(mine, theirs), _only(theirs, mine)
    return ((fresh or mine)[0], (gone or theirs)[0]) if fresh or gone else None


def _only(
    ours: list[tuple[Evidence, ShownLine]], theirs: list[tuple[Evidence, ShownLine]]
) -> list[tuple[Evidence, ShownLine]]:
    """Those of ``ours`` whose words are not among ``theirs``, marked ones first."""
    said = {fold(_words(*it)) for it in theirs}
    only = [it for it in ours if not states_nothing(_words(*it)) and fold(_words(*it)) not in said]
    return sorted(only, key=lambda it: not it[1].marked)


def _other_numbers(one: str, other: str) -> bool:
    """Whether two sentences have the same words, all but a few, and other numbers."""
    mine, its = set(words(_NUMBER.sub(" ", one))), set(words(_NUMBER.sub(" ", other)))
    alike = bool(mine | its) and len(mine & its) >= ALIKE * len(mine | its)
    return alike and sorted(_NUMBER.findall(one)) != sorted(_NUMBER.findall(other))


def conflicts(sections: Sequence[ShownSection], evidence: Iterable[Evidence]) -> Iterator[Conflict]:
    """Where marked lines of two documents give other amounts of one medicine, in the same unit; no verdict."""
    known = {piece.marker: piece for piece in evidence}
    lines = [(known[line.marker], line) for section in sections for line in section.marks]
    seen: set[tuple[str, str]] = set()
    for place, (one, ours) in enumerate(lines):
        for other, theirs in lines[place + 1 :]:
            pair = (one.marker, other.marker)
            if one.passage.document_id == other.passage.document_id or pair in seen or _editions(one, other):
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
