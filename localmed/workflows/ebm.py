"""Evidence-based practice: a clinical question about a patient, answered from the tiers of HERD.

After LINS (Methods, "Workflow of LINS assisting in evidence-based medicine practice"): the question becomes a PICO
question, unless it is one already; that is searched for in the hierarchical evidence database (preset ``ebm``); what is
found is brought together with the patient's data into a recommendation whose every sentence is cited. Guidelines that
the map opened are read as a whole where they are short (guideline map). Beside the paper: effects with their numbers
are quoted also from the tier beyond, the record is held against the evidence by rules, what is missing is named, and
each source is shown with its type, date and level.

The record is never searched for but by its first problems, no statement can cite it, and a model's own knowledge is
never used: where nothing helps, not even for the question as it was asked, the answer is an abstention.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

from localmed.agents.asking import CITED_ANSWER, AnswerInput
from localmed.agents.pico_rules import by_labels, searched
from localmed.agents.practice import (
    APPLICABILITY,
    GUIDELINE_RELEVANCE,
    PICO,
    RECOMMENDATION,
    ApplicabilityInput,
    Guideline,
    GuidelinesInput,
    Pico,
    PicoInput,
    RecommendationInput,
)
from localmed.agents.practice_rules import quantities
from localmed.clinical import medicines
from localmed.domain import Answer, Conflict, Evidence, Hit, Part, Provenance, SearchFilter, Statement, Verification
from localmed.domain.patient import PatientRecord
from localmed.language import detect, words
from localmed.retrieval.concepts import Card
from localmed.retrieval.tiers import Tier
from localmed.verification import applicability, citations
from localmed.verification.applicability import Applied, Warned
from localmed.verification.conflicts import conflicts
from localmed.workflows import finding
from localmed.workflows.answering import Written, write
from localmed.workflows.ask import (
    NO_TIER,
    NO_WORDS,
    NOT_ENOUGH,
    abstained,
    begun,
    citing,
    finished,
    nothing_stands,
    unnamed,
)
from localmed.workflows.finding import Notes, Plan, Searched, Tried
from localmed.workflows.flow import Asked as Yielded
from localmed.workflows.flow import Cite, Flow, LookUp, Read, Search, attempt
from localmed.workflows.practice_parts import parts, pico_part, warned_statements
from localmed.workflows.safety import refused, screened

LOOKED_UP = 4  # medicines of a recommendation looked up for interactions with those of the record
NO_RECORD = "No patient record was given: whether this fits the patient was not looked at"
AS_ASKED = "Nothing was found for the PICO question; the question was searched as it was asked"


@dataclass(frozen=True, slots=True)
class Case:
    """What a clinician asks: the question by PICO, as it is searched, and the record."""

    question: str
    pico: Pico
    asked: str
    record: PatientRecord | None


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence: ``ours`` is answered from, ``theirs`` (of the tier beyond) is compared with it."""

    leading: Tried
    beyond: Tried | None
    ours: tuple[Evidence, ...]
    theirs: tuple[Evidence, ...]


def ebm(
    question: str,
    wanted: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    record: PatientRecord | None = None,
    is_pico: bool = False,
) -> Flow:
    """The flow of one clinical question; ``is_pico`` says that ``question`` is a PICO question already."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "ebm")
    pico, notes = yield from _pico(question, record, is_pico, plan)
    notes += record.notes if record else (NO_RECORD,)
    queries = searched(question, pico, record)
    done, request, waiting = yield from _searched(queries, wanted, plan)
    case = Case(question, pico, request.question, record)
    further = Searched()
    if done.leading and plan.further:
        further = yield from finding.search(request, waiting, plan, most=1)
    if done.leading and request.question == question != queries[0]:
        notes += (AS_ASKED,)
    answer = begun(question, done + further, provenance)
    answer = replace(answer, language=detect(question), workflow="ebm", notes=answer.notes + notes)
    if done.leading is None:
        answer = replace(answer, parts=(pico_part(pico, answer.language),))
        return abstained(answer, NO_TIER if not done.tried else NOT_ENOUGH if words(question) else NO_WORDS)
    gathered = yield from _gathered(case, done.leading, further.leading, plan)
    return (yield from _recommended(answer, case, gathered, plan))


def _pico(
    question: str, record: PatientRecord | None, is_pico: bool, plan: Plan
) -> Generator[Yielded, Any, tuple[Pico, Notes]]:
    """The PICO question: the user's own, else the role's."""
    labelled = by_labels(question)
    if labelled or is_pico or PICO.name not in plan.roles:
        return labelled or Pico(given=is_pico), ()
    return (yield from attempt(PICO, PicoInput(question, record)))


def _searched(
    queries: tuple[str, ...], wanted: SearchFilter, plan: Plan
) -> Generator[Yielded, Any, tuple[Searched, Search, Iterator[Tier]]]:
    """The tiers searched for one query after the other until something helps; that search, and the tiers beyond."""
    done, last = Searched(), len(queries) - 1
    for number, query in enumerate(queries):
        request, _ = yield from finding.request(query, wanted, plan)
        waiting = iter(plan.tiers)
        found: Searched = yield from finding.search(request, waiting, plan)
        done += found
        if found.leading or number == last:
            break
    return done, request, waiting


def _gathered(case: Case, leading: Tried, beyond: Tried | None, plan: Plan) -> Generator[Yielded, Any, Gathered]:
    """The hits that help, what else the guidelines say that apply, and the hits of the tier beyond, as evidence."""
    hits = leading.hits
    opened = yield from _opened(case, leading, plan)
    read: tuple[Any, ...] = (yield tuple(Read(each, leading.found.hits) for each in opened)) if opened else ()
    there = {each.passage.id for each in hits}
    whole = tuple(Hit(passage, 0.0) for passages in read for passage in passages if passage.id not in there)
    evidence: tuple[Evidence, ...] = yield Cite((*hits, *whole, *(beyond.hits if beyond else ())))
    number = len(hits) + len(whole)
    return Gathered(leading, beyond, evidence[:number], evidence[number:])


def _opened(case: Case, leading: Tried, plan: Plan) -> Generator[Yielded, Any, tuple[str, ...]]:
    """The guidelines of the map that apply to the question."""
    helpful = {each.passage.document_id for each in leading.hits}
    guidelines = []
    for document in leading.found.guidelines:
        found = [each.passage for each in leading.found.hits if each.passage.document_id == document]
        if found:
            outline = "; ".join(dict.fromkeys(name for each in found for name in each.headings))
            guidelines.append(Guideline(document, found[0].title, outline, document in helpful))
    if not guidelines or GUIDELINE_RELEVANCE.name not in plan.roles:
        return ()
    chosen, _ = yield from attempt(GUIDELINE_RELEVANCE, GuidelinesInput(case.asked, tuple(guidelines)))
    applying: tuple[str, ...] = chosen
    return applying


def _recommended(answer: Answer, case: Case, gathered: Gathered, plan: Plan) -> Flow:
    """The recommendation, checked, and beside it what bears on the patient."""
    dense, ours = gathered.leading.found.dense, gathered.ours
    given = RecommendationInput(case.asked, ours, dense, pico=case.pico, record=case.record)
    written = yield from write(given, plan, RECOMMENDATION if RECOMMENDATION.name in plan.roles else CITED_ANSWER)
    if not written.stands:
        return nothing_stands(replace(answer, parts=(pico_part(case.pico, answer.language),)), written)
    possible = yield from _conflicts(case, written, gathered)
    fitting = yield from _fitting(case, written, gathered, plan)
    effects = _effects(case, written, gathered)
    applied = yield from _applied(case, written, fitting, gathered, answer.language)
    beside = (*effects, *fitting.statements, *warned_statements(applied.warnings, ours))
    answer = finished(
        answer,
        written,
        (*ours, *gathered.theirs),
        unnamed(gathered.leading.relevance) + fitting.notes,
        possible,
        beside,
    )
    made = parts(
        case.pico, applied, effects, fitting.statements, answer.evidence, answer.language, case.record is not None
    )
    return replace(answer, parts=_checked(made, answer.evidence), verification=_both(written, fitting))


def _conflicts(case: Case, written: Written, gathered: Gathered) -> Generator[Yielded, Any, tuple[Conflict, ...]]:
    """What the tier beyond would have said, where it may disagree."""
    if not gathered.beyond:
        return ()
    given = AnswerInput(case.asked, gathered.theirs, gathered.beyond.found.dense)
    draft, _ = yield from attempt(CITED_ANSWER, given)
    checked, _ = citations.check(draft.statements, gathered.theirs)
    return conflicts(case.asked, citing(written.statements, gathered.ours), citing(checked, gathered.theirs))


def _fitting(case: Case, written: Written, gathered: Gathered, plan: Plan) -> Generator[Yielded, Any, Written]:
    """What the sources cited say of patients like this one, checked like the recommendation."""
    nothing = Written((), written.verification)
    if case.record is None or APPLICABILITY.name not in plan.roles:
        return nothing
    said = tuple(each for each in written.statements if not each.withheld)
    given = ApplicabilityInput(
        case.asked,
        _cited_documents(written, gathered.ours),
        gathered.leading.found.dense,
        record=case.record,
        said=said,
    )
    return (yield from write(given, plan, APPLICABILITY))


def _effects(case: Case, written: Written, gathered: Gathered) -> tuple[Statement, ...]:
    """The sizes of effects that the evidence of both tiers gives, quoted; without what the recommendation says."""
    said = {each.text for each in written.statements}
    found = quantities(case.asked, (*_cited_documents(written, gathered.ours), *gathered.theirs))
    checked, _ = citations.check(found, (*gathered.ours, *gathered.theirs))
    return tuple(each for each in checked if each.text not in said)


def _applied(
    case: Case, written: Written, fitting: Written, gathered: Gathered, language: str
) -> Generator[Yielded, Any, Applied]:
    """The record against what is said: by rules, and by the concept graph for medicines that interact."""
    if case.record is None:
        return Applied()
    evidence = _cited_documents(written, gathered.ours)
    applied = applicability.applied(case.record, (*written.statements, *fitting.statements), evidence, language)
    shown = " ".join(each.text for each in written.statements if not each.withheld)
    named = tuple(medicines.classes(shown).values())[:LOOKED_UP] if case.record.medications else ()
    cards: tuple[Card | None, ...] = (yield tuple(LookUp(each) for each in named)) if named else ()
    warned: list[Warned] = []
    for name, card in zip(named, cards, strict=True):
        partners = _partners(card) if card else ()
        warned += applicability.interacting(case.record, name, partners, language)
    return replace(applied, warnings=(*applied.warnings, *warned))


def _partners(card: Card) -> tuple[str, ...]:
    """The names of what a concept interacts with."""
    relations = [each for each in card.relations if each.predicate == "interacts_with"]
    return tuple(dict.fromkeys(name for each in relations for name in (each.subject_name, each.object_name)))


def _cited_documents(written: Written, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The evidence of the documents that the recommendation cites."""
    documents = {citation.document_id for each in written.statements for citation in each.citations}
    return tuple(each for each in evidence if each.passage.document_id in documents)


def _checked(made: tuple[Part, ...], evidence: tuple[Evidence, ...]) -> tuple[Part, ...]:
    """The parts with their quotations checked as the answer's are; those of a model were checked when written."""
    return tuple(
        replace(part, statements=citations.check(part.statements, evidence)[0]) if part.kind == "warning" else part
        for part in made
    )


def _both(written: Written, fitting: Written) -> Verification:
    """The account of both checks."""
    one, other = written.verification, fitting.verification
    if not fitting.statements:
        return one
    return replace(
        one,
        statements_checked=one.statements_checked + other.statements_checked,
        statements_withheld=one.statements_withheld + other.statements_withheld,
        markers_rejected=one.markers_rejected + other.markers_rejected,
    )
