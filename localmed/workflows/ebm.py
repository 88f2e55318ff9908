"""Evidence-based practice: a clinical question about a patient, searched by the tiers of HERD.

After LINS (Methods, "Workflow of LINS assisting in evidence-based medicine practice"): the question becomes a PICO
question and is searched for in each tier of the hierarchical evidence database (preset ``ebm``). Sections on a medicine
of the question come first, then nearer tiers before further ones, then the tiers' order: guidelines, literature, books.
A chat model writes an answer for this patient from the sections; it is checked, and no sentence can cite the record.
Also shown: PICO elements, the entries read from the record, what the library says on its medicines and values by name
and number (``answering.warnings``), and each source with type, date and level.

Rules say nothing else about the patient: no finding is no proof that advice fits. Of the record only the medicines and
the values of known measures are searched for, and with a short question the first problems.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain

from localmed.answering import warnings
from localmed.answering.practice import ELEMENTS, PICO, Pico, PicoInput, by_labels, in_words
from localmed.answering.warnings import Quote
from localmed.answering.write import WRITE
from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Origin,
    Part,
    Provenance,
    SearchFilter,
    ShownSection,
    Statement,
    message,
)
from localmed.domain.findings import Finding, Line
from localmed.domain.parts import InteractionPart, NotJudgedPart, PicoPart, RecordPart, SourceLevelPart
from localmed.domain.patient import EntryKind, Measured, PatientRecord
from localmed.retrieval.concepts import Card
from localmed.retrieval.conflicts import differences
from localmed.retrieval.marks import PARAGRAPH, begins_with_a_medicine, paragraphs
from localmed.retrieval.tiers import Tier
from localmed.text import measures, medicines, synonyms
from localmed.text.language import content_words, detect, fold
from localmed.text.publications import level
from localmed.workflows import finding
from localmed.workflows.ask import answered
from localmed.workflows.finding import Plan, cared, refused, screened
from localmed.workflows.flow import Find, Flow, LookUp, Step, asked
from localmed.workflows.receipts import NEAREST, PASSAGES, SECTIONS, best_of, merged, own, receipts, renumbered

SEARCHED = 12  # medicines searched for together with those of the record
LOOKED_UP = 4  # medicines looked up for interactions with those of the record
OF_TIER = 8  # sections of each tier: a ward's protocol has several
SEARCHED_PROBLEMS = 2  # problems of the record that are searched with a short question
SEARCHED_LIMITS = 20  # medicines of the record whose limits are searched for
LIMITED = ("eGFR", "creatinine clearance", "potassium", "INR")  # searched with each medicine of the record
SEARCHED_VALUES = 12  # measures of the record whose ranges are searched for
AT_ONCE = 3  # medicines that nobody takes in one search
UNMARKED = 3  # first sections that count without a mark: people read them
PROPOSING = 3  # marked sections that propose medicines
SHORT = 2  # content words beside medicines; a question with fewer is short


@dataclass(frozen=True, slots=True)
class Case:
    """A clinician's question, its PICO elements, and the record."""

    question: str
    pico: Pico
    record: PatientRecord | None

    @property
    def searched(self) -> str:
        """The text to search for: the question; a short one on no condition with the record's first problems."""
        others = self.question
        for one in medicines.mentions(self.question):
            others = others.replace(one.written, " ")
        if self.record is None or self._conditions or len(content_words(others)) >= SHORT:
            return self.question
        return " ".join((self.question, *self.record.problems[:SEARCHED_PROBLEMS]))

    @property
    def _conditions(self) -> list[synonyms.Named]:
        return [one for one in synonyms.named(fold(self.question)) if synonyms.is_in("conditions", one.written)]

    @property
    def named(self) -> tuple[medicines.Mention, ...]:
        """The medicines and classes that the question names; "high potassium" names none."""
        folded = fold(self.question)
        for one in self._conditions:
            folded = folded[: one.start] + " " * (one.end - one.start) + folded[one.end :]
        return tuple(it for it in medicines.mentions(folded) if not measures.mentioned(it.written))

    @property
    def medicines(self) -> frozenset[str]:
        """The ingredients of the medicines that the question names, and the members of its classes."""
        of_classes = (it for one in self.named if not one.ingredients for it in one.classes)
        members = (name for it in of_classes for name in medicines.members(it))
        return frozenset(chain(members, *(one.ingredients for one in self.named)))

    @property
    def patient(self) -> str:
        """The PICO elements that the user did not label, and the quoted record, for a model."""
        elements = [text for name in ELEMENTS if (text := getattr(self.pico, name)) and not self.pico.labelled]
        record = [in_words(self.record, detect(self.question))] if self.record else []
        return "\n".join((*elements, *record))


def ebm(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    record: PatientRecord | None = None,
    is_pico: bool = False,
) -> Flow:
    """The flow for one clinical question; ``is_pico``: ``question`` is a PICO question already."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "ebm")
    care = yield from cared(question, plan)
    question, cut = finding.bounded(question)
    case = Case(question, (yield from _pico(question, record, is_pico, plan)), record)
    answer: Answer = yield from _by_tiers(case, filters, plan, provenance)
    notes = (*care, *answer.notes, *cut, *(record.notes if record else ()))
    answer = replace(answer, question=question, language=detect(question), notes=notes)
    answer = yield from answered(answer, plan, filters, case.patient)
    told, evidence = yield from _beside_record(case, answer, filters)  # of any collection, leaflets too
    answer = replace(answer, evidence=evidence)
    parts = (*told, *_of_case(case), _not_judged(case, plan), *_sources(best_of(answer, own(answer))))
    return replace(answer, parts=parts)


def _pico(question: str, record: PatientRecord | None, is_pico: bool, plan: Plan) -> Step[Pico]:
    """The PICO question by the user's labels, else by a chat model."""
    labelled = by_labels(question)
    if labelled or is_pico:
        return labelled or Pico(labelled=True)
    return (yield from asked(PICO, PicoInput(question, record), plan.chat, Pico()))


def _by_tiers(case: Case, filters: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The sections of all tiers as one answer, nearer tiers first (LINS, HERD), but those with marks before others."""
    found: list[Answer] = []
    for tier in [tier for tier in plan.tiers if tier.collections] or [Tier(())]:
        one: Answer = yield from receipts(
            case.searched, tier.limit(filters), tier.collections, provenance, workflow="ebm", sections=OF_TIER
        )
        found.append(renumbered(one, sum(len(before.evidence) for before in found)))
    whole = replace(
        found[0],
        searched=plan.searched,
        notes=(*dict.fromkeys(note for one in found for note in one.notes), *plan.lacking, *plan.outside),
    )
    of_tiers = sorted((it.receipts for it in found if it.receipts), key=lambda it: NEAREST.index(it.closeness))
    if not of_tiers:
        return whole
    every, evidence = merged(of_tiers), tuple(piece for one in found for piece in one.evidence)
    every = replace(every, sections=_sort_by_medicine(every.sections, evidence, case.medicines))
    return replace(
        whole,
        status=AnswerStatus.SECTIONS if every.sections or every.others else whole.status,
        evidence=evidence,
        receipts=every,
        conflicts=tuple(differences(every.sections, evidence)),
    )


def _sort_by_medicine(
    sections: Sequence[ShownSection], evidence: Sequence[Evidence], asked: Set[str]
) -> tuple[ShownSection, ...]:
    """``sections``, first those with an ``asked`` medicine in the heading, then in the text."""
    known = {piece.marker: piece.passage for piece in evidence}

    def without(section: ShownSection) -> tuple[bool, bool]:
        heading = " ".join(known[section.best].headings[-1:])
        lines = " ".join(known[line.marker].text[line.start : line.end] for line in section.lines)
        return not asked & medicines.ingredients(heading), not asked & medicines.ingredients(lines)

    return tuple(sorted(sections, key=without) if asked else sections)


def _of_case(case: Case) -> tuple[Part, ...]:
    """The PICO elements, if any, and the record's entries."""
    pico = case.pico
    elements = PicoPart(pico.population, pico.intervention, pico.comparison, pico.outcome)
    parts: tuple[Part, ...] = (elements,) if any(getattr(pico, name) for name in ELEMENTS) else ()
    return (*parts, RecordPart(case.record.entries)) if case.record else parts


def _not_judged(case: Case, plan: Plan) -> NotJudgedPart:
    """The matters that nobody judged."""
    if case.record is None:
        return NotJudgedPart((message("ebm.no_record"),))
    why = message("ebm.fit_not_written" if plan.chat else "ebm.fit_not_judged")
    unread = () if WRITE.name in plan.chat else (why,)
    return NotJudgedPart((*unread, message("ebm.reactions_not_judged"), message("ebm.not_looked_for")))


def _sources(evidence: Sequence[Evidence]) -> tuple[Part, ...]:
    """Type, date and level of evidence of each document."""
    documents: dict[str, list[Evidence]] = {}
    for source in evidence:
        documents.setdefault(source.passage.document_id, []).append(source)
    made = []
    for cited in documents.values():
        design, number = level(cited[0])
        markers = tuple(source.marker for source in cited)
        made.append(SourceLevelPart(markers, cited[0].document_title, design, number, cited[0].edition))
    return tuple(made)


def _beside_record(
    case: Case, answer: Answer, filters: SearchFilter
) -> Step[tuple[tuple[Part, ...], tuple[Evidence, ...]]]:
    """What the sections and the library say on what the record names, that this is no all-clear, and the evidence.

    Read are the sections with marks, the first ones and the first of the other language, and what a search finds for
    each medicine and measure; for allergies also every section that lacks nothing of the question.
    """
    if (record := case.record) is None:
        return (), answer.evidence
    sections = [section for place, section in enumerate(own(answer)) if section.marks or place < UNMARKED]
    others = [it for it in answer.receipts.others[:UNMARKED] if not it.lacks] if answer.receipts else []
    sections += [section for section in others if section not in sections]
    whole = [section for section in answer.sections if section in sections or not section.lacks]
    near = _quotes(answer, sections)
    fitting = [one for one in sections if not one.lacks]
    proposing = [one for one in fitting if one.marks][:PROPOSING]
    read = [one.text for one in _quotes(answer, proposing)]
    of = _concern(case, record, [one.text for one in answer.shown], read)
    by_name = sorted({name for one in case.named for name in one.ingredients})
    classes = sorted({one.written for one in case.named if not one.ingredients})
    listed: list[InteractionPart] = []
    if of.own:
        listed = yield from _listed_interactions(record, [*by_name, *sorted(of.proposed)][:LOOKED_UP])
    names, evidence = _searched(record, [*by_name, *classes, *sorted(of.proposed)]), answer.evidence
    library, evidence, lines = yield from _search_library(
        names, filters, evidence, lambda lines: warnings.bearing(lines, record, of)
    )
    ranges, evidence, every = yield from _search_library(
        _ranges(record, of.language), filters, evidence, lambda lines: warnings.ranging(lines, record, of)
    )
    said = [*warnings.said_of_medicines(record, (*near, *library), of)]
    told = {text for _, texts in said for text in texts}
    complete = _quotes(answer, fitting)
    cautions = [*warnings.cautions(record, complete, (*near, *library), of, said)]
    values = [*warnings.values(record, complete, ranges, of, told)]
    told |= {one.text for part in cautions for one in part.statements}
    parts: tuple[Part, ...] = (
        *warnings.allergies(
            record, (*(Quote(one.text, one) for one in answer.shown), *_told(answer, whole)), of.language
        ),
        *(part for part, _ in said if part.entry.kind is not EntryKind.RESULT),
        *dict.fromkeys(listed),
        *cautions,
        *(part for part, _ in said if part.entry.kind is EntryKind.RESULT),  # on medicines that the record lacks
        *values,
        *warnings.entries(record, library, of, told),
    )
    matter = message("ebm.others_not_compared" if parts else "ebm.no_match")
    left = warnings.not_met(record, parts, (*near, *lines, *every), of.language)
    return (*parts, NotJudgedPart((matter, *left), first=True)), evidence


def _concern(case: Case, record: PatientRecord, written: Sequence[str], read: Sequence[str]) -> warnings.Concern:
    """The medicines of record and question, and the first that sentences ``written`` by a model propose.

    If the question names none, so do the lines ``read``; a row of a list of medicines proposes nothing. What is
    measured is no medicine here: "check potassium".
    """
    asked, by_name = case.medicines, any(one.ingredients for one in case.named)
    proposing = (*written, *(text for text in read if not by_name and not begins_with_a_medicine(text)))
    named = dict.fromkeys(chain.from_iterable(sorted(medicines.ingredients(text)) for text in proposing))
    proposed = [name for name in named if name not in asked and not measures.mentioned(name)][:SEARCHED]
    return warnings.Concern(warnings.all_taken(record), asked, frozenset(proposed), case.question)


def _quotes(answer: Answer, sections: Iterable[ShownSection], marked: bool = False) -> list[Quote]:
    """The lines of ``sections``, or only the ``marked`` ones."""
    known = answer.by_marker
    quotes: list[Quote] = []
    for section in sections:
        lines = [Line(known[it.marker].passage, it.start, it.end, it.marked, it.breaks) for it in section.lines]
        pieces = {known[it.marker].passage.id: known[it.marker] for it in section.lines}
        quotes += [one for line, one in _in_paragraphs(lines, pieces).items() if line.marked or not marked]
    return quotes


def _in_paragraphs(lines: Sequence[Line], pieces: Mapping[str, Evidence]) -> dict[Line, Quote]:
    """Each of ``lines`` as a quotation: of its paragraph, if that is short, with the ``pieces`` by passage."""
    made: dict[Line, Quote] = {}
    for places in paragraphs(lines):
        own = [lines[place] for place in places]
        whole = own[0].start, own[-1].end
        for line in own:
            start, end = whole if whole[1] - whole[0] <= PARAGRAPH else (line.start, line.end)
            made[line] = Quote(line.text, pieces[line.passage.id].quotation(start, end), line.passage)
    return made


def _told(answer: Answer, sections: Iterable[ShownSection]) -> list[Quote]:
    """The lines of ``sections``, without rows of a list of medicines that are not marked."""
    marked = _quotes(answer, sections := [*sections], marked=True)
    return [one for one in _quotes(answer, sections) if one in marked or not begins_with_a_medicine(one.text)]


def _listed_interactions(record: PatientRecord, named: Sequence[str]) -> Step[list[InteractionPart]]:
    """The interactions of ``named`` ingredients with medicines of the record, by lists of terms."""
    cards: tuple[Card | None, ...] = (yield tuple(LookUp(name) for name in named)) if named else ()
    return [
        part
        for name, card in zip(named, cards, strict=True)
        for part in warnings.listed_interactions(record, name, card.relations if card else ())
    ]


def _search_library(
    texts: Iterable[str],
    filters: SearchFilter,
    evidence: tuple[Evidence, ...],
    keeps: Callable[[Sequence[Quote]], Set[str]],
) -> Step[tuple[list[Quote], tuple[Evidence, ...], list[Quote]]]:
    """The lines of the library's sections on ``texts`` whose text ``keeps`` keeps, the evidence with theirs, and all
    lines.
    """
    of_sections: dict[tuple[Line, ...], None] = {}
    for text in texts:
        found: Finding = yield Find(text, filters, PASSAGES, SECTIONS)
        of_sections |= dict.fromkeys(section.lines for section in (*found.sections, *found.others))
    lines = dict.fromkeys(line for one in of_sections for line in one)
    plain = [Quote(line.text, Statement(line.text, (), Origin.EXTRACTIVE), line.passage) for line in lines]
    kept = keeps(plain)
    hits = {line.passage.id: Hit(line.passage) for line in lines if line.text in kept}
    pieces = yield from finding.minted([*hits.values()], evidence)
    fresh = {piece.marker: piece for piece in pieces if piece.marker not in {one.marker for one in evidence}}
    by_passage = dict(zip(hits, pieces, strict=True))
    own = [[line for line in one if line.passage.id in hits] for one in of_sections]
    quotes = {line: one for each in own if each for line, one in _in_paragraphs(each, by_passage).items()}
    return [one for line, one in quotes.items() if line.text in kept], (*evidence, *fresh.values()), plain


def _searched(record: PatientRecord, others: Sequence[str]) -> Iterable[str]:
    """What is searched for: the medicines together, and each, with the record's limits and pregnancy."""
    own = [*dict.fromkeys(name for entry in record.entries for name in sorted(warnings.taken(entry)))]
    together = [" ".join(dict.fromkeys((*others, *own)))] if own and others else []
    together += [" ".join(own)] if len(own) > 1 else []
    limited = [*dict.fromkeys(name for name, _ in warnings.known_values(record) if name in LIMITED)]
    limited += ["pregnancy"] if record.pregnant else []
    groups = [[name] for name in own[:SEARCHED_LIMITS]] + _at_once([name for name in others if name not in own])
    return dict.fromkeys((*together, *(" ".join((*group, *limited)) for group in groups)))


def _ranges(record: PatientRecord, language: str) -> Iterable[str]:
    """What is searched for to compare the values of the record."""
    each: dict[str, Measured] = {}
    for value, _ in warnings.known_values(record).values():
        each.setdefault(value.name, value)
    values = [*each.values()][:SEARCHED_VALUES]
    english = [f"{one.name} {one.written} reference range target" for one in values]
    if language == "en":
        return english
    named = ((measures.by_name(one.name).chinese, one.written) for one in values)  # and what only English documents say
    return [*(f"{name} {written} 参考范围 目标" for name, written in named), *english]


def _at_once(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE)]
