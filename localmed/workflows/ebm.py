"""Evidence-based practice: a clinical question about a patient, answered from the tiers of HERD.

After LINS (Methods, "Workflow of LINS assisting in evidence-based medicine practice"): the question becomes a PICO
question, unless it is one already; that is searched for in the hierarchical evidence database (preset ``ebm``); what is
found is brought together with the patient's data into a recommendation whose every sentence is cited. Guidelines that
the map opened are read as a whole where they are short (guideline map). Beside the paper: effects with their numbers
are quoted also from the tier beyond, each source is shown with its type, date and level, and what was read from the
record is listed with the words that it was read from. Of the patient nothing else is said by rule, but an allergy or an
interaction by name (``allergies``, ``interactions``): whether sources fit the patient is a chat model's to read, and a
clinician's to judge; what was not judged is said.

The record is never searched for but by its first problems, no statement can cite it, and a model's own knowledge is
never used: where nothing helps, not even for the question as it was asked, the answer is an abstention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localmed.agents.asking import CITED_ANSWER, KEPT, RELEVANCE, Relevance, RelevanceInput
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
from localmed.clinical.publications import level
from localmed.domain import Answer, Evidence, Hit, Part, Provenance, SearchFilter, Statement, message
from localmed.domain.parts import (
    AllergyPart,
    ApplicabilityPart,
    EffectPart,
    InteractionPart,
    NotJudgedPart,
    PicoPart,
    RecordPart,
    SourceLevelPart,
)
from localmed.domain.patient import EntryKind, PatientRecord
from localmed.language import detect, words
from localmed.library.graph import Relation
from localmed.retrieval.concepts import Card
from localmed.retrieval.tiers import Tier
from localmed.verification import citations
from localmed.workflows import finding
from localmed.workflows.abstaining import abstained, abstained_with_nearest, without_statements
from localmed.workflows.answering import Written, refused, screened, write
from localmed.workflows.ask import (
    NO_TIER,
    NO_WORDS,
    compared,
    completed_answer,
    initial_answer,
)
from localmed.workflows.finding import Notes, Plan, SearchedTier, TierSearch
from localmed.workflows.flow import Cite, Flow, LookUp, Perform, Read, Search, Step, attempt

LOOKED_UP = 4  # medicines of the question and a recommendation looked up for interactions with those of the record
WHOLE = 4  # passages of whole guidelines shown to a model beside those that were found
LEAST_WORDS = 8  # of a passage that is more than a heading
AS_ASKED = message("ebm.as_asked")


@dataclass(frozen=True, slots=True)
class Case:
    """What a clinician asks: the question by PICO, as it is searched, and the record."""

    question: str
    pico: Pico
    query: str
    record: PatientRecord | None


@dataclass(frozen=True, slots=True)
class Gathered:
    """The evidence: ``ours`` is answered from, ``theirs`` (of the tier beyond) is compared with it."""

    leading: SearchedTier
    beyond: SearchedTier | None
    ours: tuple[Evidence, ...]
    theirs: tuple[Evidence, ...]


def ebm(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    record: PatientRecord | None = None,
    is_pico: bool = False,
) -> Flow:
    """The flow of one clinical question; ``is_pico`` says that ``question`` is a PICO question already."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "ebm")
    question, cut = finding.bounded(question)
    pico, notes = yield from _pico(question, record, is_pico, plan)
    notes += cut + (record.notes if record else ())
    queries = searched(question, pico, record)
    done, request, waiting = yield from _searched(question, queries, filters, plan)
    case = Case(question, pico, request.question, record)
    further = TierSearch()
    if done.leading and plan.further:
        further = yield from finding.search(request, waiting, plan, most=1, context=question)
    if done.leading and request.question == question != queries[0]:
        notes += (AS_ASKED,)
    answer = initial_answer(question, done + further, provenance)
    answer = replace(answer, language=detect(question), workflow="ebm", notes=answer.notes + notes)
    if done.leading is None:
        return (yield from _abstained(answer, case, done))
    gathered = yield from _gathered(case, done.leading, further.leading, plan)
    return (yield from _recommended(answer, case, gathered, plan))


def _abstained(answer: Answer, case: Case, done: TierSearch) -> Flow:
    """The abstention with its reason; where something was found that does not answer, with the nearest of it."""
    if not done.tried or not words(case.question):
        return abstained(replace(answer, parts=_of_case(case)), NO_WORDS if done.tried else NO_TIER)
    nearest: Answer = yield from abstained_with_nearest(answer, done)
    return replace(nearest, parts=(*nearest.parts, *_of_case(case)))


def _pico(question: str, record: PatientRecord | None, is_pico: bool, plan: Plan) -> Step[tuple[Pico, Notes]]:
    """The PICO question: the user's own, else the role's."""
    labelled = by_labels(question)
    if labelled or is_pico or PICO.name not in plan.roles:
        return labelled or Pico(labelled=is_pico), ()
    return (yield from attempt(PICO, PicoInput(question, record)))


def _searched(
    question: str, queries: tuple[str, ...], filters: SearchFilter, plan: Plan
) -> Step[tuple[TierSearch, Search, Iterator[Tier]]]:
    """The tiers searched for one query after the other until something helps; that search, and the tiers beyond."""
    done, last = TierSearch(), len(queries) - 1
    for number, query in enumerate(queries):
        request, _ = yield from finding.request(query, filters, plan)
        waiting = iter(plan.tiers)
        tiers: TierSearch = yield from finding.search(request, waiting, plan, context=question)
        done += tiers
        if tiers.leading or number == last:
            break
    return done, request, waiting


def _gathered(case: Case, leading: SearchedTier, beyond: SearchedTier | None, plan: Plan) -> Step[Gathered]:
    """The hits that help, what else the guidelines say that apply, and the hits of the tier beyond, as evidence."""
    hits = leading.hits
    opened = yield from _opened(case, leading, plan)
    read: tuple[Any, ...] = (yield tuple(Read(document, leading.result.hits) for document in opened)) if opened else ()
    there = {hit.passage.id for hit in hits}
    whole = tuple(Hit(passage, 0.0) for passages in read for passage in passages if passage.id not in there)
    whole = (yield from _bearing(case, whole)) if RECOMMENDATION.name in plan.chat else whole
    evidence: tuple[Evidence, ...] = yield Cite((*hits, *whole, *(beyond.hits if beyond else ())))
    number = len(hits) + len(whole)
    return Gathered(leading, beyond, evidence[:number], evidence[number:])


def _bearing(case: Case, whole: tuple[Hit, ...]) -> Step[tuple[Hit, ...]]:
    """Of the passages of whole guidelines those that a model is shown: with more than a heading, by the rules likely to
    answer, the likeliest first.
    """
    hits = tuple(hit for hit in whole if len(words(hit.passage.text)) >= LEAST_WORDS)
    if not hits:
        return ()
    task = RelevanceInput(case.query, hits, False)
    relevance: Relevance = yield Perform(RELEVANCE, task, by_rules=True)
    ranked = sorted(zip(relevance.probabilities, range(len(hits)), strict=True), key=lambda row: (-row[0], row[1]))
    return tuple(hits[place] for value, place in ranked[:WHOLE] if value >= relevance.threshold * KEPT)


def _opened(case: Case, leading: SearchedTier, plan: Plan) -> Step[tuple[str, ...]]:
    """The guidelines of the map that apply to the question."""
    helpful = {hit.passage.document_id for hit in leading.hits}
    guidelines = []
    for document in leading.result.guidelines:
        passages = [hit.passage for hit in leading.result.hits if hit.passage.document_id == document]
        if passages:
            outline = "; ".join(dict.fromkeys(name for passage in passages for name in passage.headings))
            guidelines.append(Guideline(document, passages[0].title, outline, document in helpful))
    if not guidelines or GUIDELINE_RELEVANCE.name not in plan.roles:
        return ()
    chosen, _ = yield from attempt(GUIDELINE_RELEVANCE, GuidelinesInput(case.question, tuple(guidelines)))
    applying: tuple[str, ...] = chosen
    return applying


def _recommended(answer: Answer, case: Case, gathered: Gathered, plan: Plan) -> Flow:
    """The recommendation, checked, and beside it what bears on the patient."""
    dense, ours = gathered.leading.result.dense, gathered.ours
    task = RecommendationInput(
        case.query, ours, dense, beside=gathered.theirs, pico=case.pico, record=case.record, clinical=case.question
    )
    role = RECOMMENDATION if RECOMMENDATION.name in plan.roles else CITED_ANSWER
    written = yield from write(task, plan, role, gathered.leading.relevance)
    if not written.stands:
        return without_statements(replace(answer, parts=_of_case(case)), written)
    possible = yield from compared(case.query, written.statements, written.evidence, gathered.theirs, gathered.beyond)
    fitting = yield from _fitting(case, written, gathered, plan)
    effects = _effects(case, written, gathered)
    beside = (*effects, *fitting.statements)
    warnings = yield from _warnings(case, (*written.statements, *beside))
    notes = _no_medicine(case, written) + fitting.notes
    answer = completed_answer(answer, written, (*written.evidence, *gathered.theirs), notes, possible, beside)
    parts = (
        *warnings,
        *_of_case(case),
        *((EffectPart(effects),) if effects else ()),
        *((ApplicabilityPart(fitting.statements),) if fitting.statements else ()),
        _not_judged(case, fitting),
        *_sources(answer.evidence),
    )
    checked = citations.both(answer.verification, fitting.verification) if fitting.statements else answer.verification
    return replace(answer, parts=parts, verification=checked)


def _of_case(case: Case) -> tuple[Part, ...]:
    """The elements of the question, and what was read from the record."""
    pico = case.pico
    elements = PicoPart(pico.population, pico.intervention, pico.comparison, pico.outcome)
    return (elements, RecordPart(case.record.entries)) if case.record else (elements,)


def _not_judged(case: Case, fitting: Written) -> NotJudgedPart:
    """What of patient and sources nobody judged."""
    if case.record is None:
        return NotJudgedPart((message("ebm.no_record"),))
    unread = () if fitting.statements else (message("ebm.fit_not_judged"),)
    return NotJudgedPart((*unread, message("ebm.reactions_not_judged"), message("ebm.not_looked_for")))


def _sources(evidence: Sequence[Evidence]) -> tuple[Part, ...]:
    """The grade of each document: what sort it is, of when, and on which level of our table its sort stands."""
    documents: dict[str, list[Evidence]] = {}
    for source in evidence:
        documents.setdefault(source.passage.document_id, []).append(source)
    made = []
    for cited in documents.values():
        design, number = level(cited[0])
        markers = tuple(source.marker for source in cited)
        made.append(SourceLevelPart(markers, cited[0].document_title, design, number, cited[0].edition))
    return tuple(made)


def _fitting(case: Case, written: Written, gathered: Gathered, plan: Plan) -> Step[Written]:
    """What the sources cited say of patients like this one, checked like the recommendation."""
    nothing = Written((), written.verification)
    if case.record is None or APPLICABILITY.name not in plan.roles:
        return nothing
    task = ApplicabilityInput(
        case.query,
        _cited_documents(written, gathered.ours),
        gathered.leading.result.dense,
        record=case.record,
        recommendation=citations.shown(written.statements),
        clinical=case.question,
    )
    fitting = yield from write(task, replace(plan, jury=()), APPLICABILITY)  # nobody would see its badge
    texts = {statement.text for statement in written.statements}
    return replace(fitting, statements=tuple(one for one in fitting.statements if one.text not in texts))


def _effects(case: Case, written: Written, gathered: Gathered) -> tuple[Statement, ...]:
    """The sizes of effects that the evidence of both tiers gives, quoted; without what the recommendation says."""
    texts = {statement.text for statement in written.statements}
    quoted = quantities(case.query, (*_cited_documents(written, gathered.ours), *gathered.theirs))
    checked, _ = citations.check(quoted, (*gathered.ours, *gathered.theirs))
    return tuple(statement for statement in checked if statement.text not in texts)


def _warnings(case: Case, statements: tuple[Statement, ...]) -> Step[tuple[Part, ...]]:
    """The record's allergies to what is shown, and interactions that the concept graph lists."""
    if case.record is None:
        return ()
    shown = " ".join(statement.text for statement in citations.shown(statements))
    ingredients = (*sorted(medicines.ingredients(case.question)), *sorted(medicines.ingredients(shown)))
    named = tuple(dict.fromkeys(ingredients))[:LOOKED_UP] if case.record.medications else ()
    cards: tuple[Card | None, ...] = (yield tuple(LookUp(name) for name in named)) if named else ()
    interacting: list[InteractionPart] = []
    for name, card in zip(named, cards, strict=True):
        interacting += interactions(case.record, name, card.relations if card else ())
    return (*allergies(case.record, statements), *dict.fromkeys(interacting))


def _cited_documents(written: Written, evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The evidence of the documents that the recommendation cites."""
    documents = {citation.document_id for statement in written.statements for citation in statement.citations}
    return tuple(piece for piece in evidence if piece.passage.document_id in documents)


def _no_medicine(case: Case, written: Written) -> Notes:
    """Where the question asks which medicine, and no sentence shown names one that the question does not."""
    shown = " ".join(statement.text for statement in citations.shown(written.statements))
    if not medicines.asks_which(case.question) or medicines.names(shown) - medicines.names(case.question):
        return ()
    return (message("ebm.no_medicine"),)


# --- what of a patient's record certainly bears on the sentences shown ------------------------------------------------

# An allergy: a sentence names the same ingredient, or a member of the class that the allergy names; both are quoted,
# and whether the sentence advises it is for the reader. An interaction: the concept graph says so, and is named.
# Nothing else is judged here (limits, ages, pregnancy, reactions across classes): nothing found is no proof that advice
# fits.

INTERACTS = "interacts_with"


def allergies(record: PatientRecord, statements: Sequence[Statement]) -> Iterator[AllergyPart]:
    """The record's allergies that sentences shown speak against, with these sentences."""
    shown = citations.shown(statements)
    for entry in record.entries:
        if entry.kind is EntryKind.ALLERGY:
            named = [(statement, _same(entry.text, statement.text)) for statement in shown]
            names = dict.fromkeys(name for _, matches in named for name in matches)
            if names:
                yield AllergyPart(entry, tuple(names), tuple(statement for statement, matches in named if matches))


def _same(allergy: str, text: str) -> list[str]:
    return [name for name, related in medicines.met_by(allergy, text).items() if not related]


def interactions(record: PatientRecord, named: str, relations: Sequence[Relation]) -> Iterator[InteractionPart]:
    """The record's medicines that ``relations`` of the concept graph say interact with ``named``."""
    own = medicines.ingredients(named)
    for relation in relations:
        if relation.predicate != INTERACTS:
            continue
        partners = medicines.ingredients(f"{relation.subject_name}; {relation.object_name}") - own
        for entry in record.entries:
            if entry.kind is EntryKind.MEDICINE and partners & medicines.ingredients(entry.text):
                yield InteractionPart(entry, named, relation.source.collection)
