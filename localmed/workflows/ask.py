"""Ask: find, judge whether it suffices, answer with citations, check; or abstain and say what was searched.

MAIRAG (LINS, Fig. 1b and "Multi-agent iterative retrieval augmented generation"): retrieval by tiers, passage relevance
(PRA), cited answer, coherence (PCA) with one regeneration. If nothing helps: the model's own knowledge where the site
allows it and the model is certain (SKA), labelled unverified; else sub-questions (QDA), each searched once, put
together in a reference passage; the answer cites the original passages, never that one. Else abstention. Where a chat
model answers, a question of several parts is taken apart at once, since one search finds passages of one part only.

A plan may look one tier ``further`` and compare what both would cite: a differing dose or a newer edition becomes a
possible conflict, while the first tier still leads. Each role may be off; with all off but the answer this is plain
retrieval-augmented generation. Bounds: k relevance labels a search, one answer, one regeneration, four sub-questions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from localmed.agents.asking import CITED_ANSWER, SELF_CONTAINED, AnswerInput, FollowUp, QuestionInput
from localmed.agents.decomposing import (
    DECOMPOSITION,
    OWN_ANSWER,
    SELF_KNOWLEDGE,
    SUB_QUESTIONS,
    SYNTHESIS,
    SynthesisInput,
)
from localmed.clinical import asking
from localmed.domain import (
    Answer,
    AnswerStatus,
    Conflict,
    Evidence,
    Kind,
    Message,
    Origin,
    Provenance,
    SearchFilter,
    Statement,
    Status,
    message,
)
from localmed.errors import Rejected
from localmed.language import detect, words
from localmed.retrieval.concepts import Card
from localmed.retrieval.tiers import Tier
from localmed.verification import citations
from localmed.verification.conflicts import Cited, conflicts
from localmed.workflows import defining, finding
from localmed.workflows.abstaining import abstained, abstained_with_nearest, without_statements
from localmed.workflows.agreeing import said_again
from localmed.workflows.answering import (
    PART_MISSING,
    UNNAMED,
    UNSURE,
    Written,
    badged,
    composed,
    downgraded,
    overdue,
    refused,
    screened,
    untied,
)
from localmed.workflows.defining import concept_part
from localmed.workflows.finding import Notes, Plan, SearchedTier, TierSearch
from localmed.workflows.flow import Cite, Flow, Perform, Search, Settled, Step, attempt

LEAST_OF_PART = 2  # passages that a model is shown of each part of a question
UNNAMED_WORDS = 2  # of a question, from which what may not answer it is not quoted
NO_WORDS = message("workflow.no_words")
IN_PARTS = message("workflow.in_parts")
BY_CONCEPT = message("workflow.by_concept")
OWN = message("workflow.own_knowledge")
NO_TIER = message("workflow.no_tier")
NOT_CALIBRATED = message("workflow.not_calibrated")
LEXICAL_ONLY = {"zh": message("workflow.chinese_by_words")}


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """What was found for a sub-question, and the evidence minted for it."""

    question: str
    leading: SearchedTier
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An answer that may yet give way to another tier's: without its badge, and unseen (``_settled``)."""

    answer: Answer
    written: Written

    @property
    def stands(self) -> bool:
        """Whether it answers."""
        return self.answer.status is AnswerStatus.ANSWERED

    @property
    def names_less(self) -> bool:
        """Whether it quotes what does not name all that narrows the question."""
        quoted = all(statement.origin is Origin.EXTRACTIVE for statement in self.answer.statements)
        return quoted and any(note.code == UNNAMED for note in self.answer.notes)

    @property
    def about_another(self) -> bool:
        """Whether so much of the question is not named that what is not sure to answer it is left out."""
        named = [dict(note.parameters)["words"] for note in self.answer.notes if note.code == UNNAMED]
        return not self.stands or any(isinstance(words, tuple) and len(words) >= UNNAMED_WORDS for words in named)


def ask(
    question: str, filters: SearchFilter, plan: Plan, provenance: Provenance, earlier: tuple[str, ...] = ()
) -> Flow:
    """The flow of one question over the tiers of ``plan``; after ``earlier`` ones it is made self-contained first."""
    if (yield from screened("\n".join((*earlier[-1:], question)), plan)):
        return refused(question, plan, provenance)
    question, notes = finding.bounded(question)
    if earlier and SELF_CONTAINED.name in plan.roles:
        before = tuple(text[: finding.READ - len(question)] for text in earlier)
        alone, more = yield from attempt(SELF_CONTAINED, FollowUp(question, before))
        notes += more + ((message("workflow.understood_as", question=alone),) if alone != question else ())
        question = alone
    questions, more = yield from _several(question, plan)
    notes += more
    if len(questions) > 1:
        whole = Search(question, filters, plan.passages)
        parts, by_part = yield from searched_each(questions[:SUB_QUESTIONS], question, whole, plan)
        if parts:
            answer = initial_answer(question, by_part + TierSearch(notes=notes), provenance)
            return (yield from _synthesised(answer, parts, len(questions), plan))
    request, more = yield from finding.request(question, filters, plan)
    waiting = iter(plan.tiers)
    searched: TierSearch = yield from finding.search(request, waiting, plan, unsure=True)
    searched += TierSearch(notes=notes + more)
    if searched.leading:
        quoted: Candidate = yield from _by_tiers(request, searched, waiting, plan, provenance)
        if not (searched.leading.relevance.unsure and quoted.about_another):
            return (yield from _settled(quoted, plan))
    if len(questions) > 1:
        return (yield from abstained_with_nearest(initial_answer(question, searched, provenance), searched))
    return (yield from _fallback(question, request, searched, plan, provenance))


def initial_answer(question: str, searched: TierSearch, provenance: Provenance) -> Answer:
    """The answer so far: nothing but what was searched, and what the reader must know of that."""
    tried = searched.tried
    language = tried[0].result.language if tried else detect(question)
    names = tuple(dict.fromkeys(name for search in tried for name in search.tier.collections))
    notes: Notes = ()
    if tried and not tried[0].result.dense and language in LEXICAL_ONLY:
        notes += (LEXICAL_ONLY[language],)
    if not all(search.relevance.calibrated for search in tried):
        notes += (NOT_CALIBRATED,)
    if searched.skipped:
        notes += (message("workflow.skipped", names=tuple(map(_display_name, dict.fromkeys(searched.skipped)))),)
    notes += tuple(dict.fromkeys(searched.notes))
    return Answer(AnswerStatus.ABSTAINED, question, language, (), (), names, provenance, notes=notes)


# --- something helps --------------------------------------------------------------------------------------------------


def _by_tiers(
    request: Search, searched: TierSearch, waiting: Iterator[Tier], plan: Plan, provenance: Provenance
) -> Step[Candidate]:
    """The answer of the leading tier; of a later one where only that names what narrows the question."""
    question, further = request.question, TierSearch()
    if plan.further:
        further = yield from finding.search(request, waiting, plan, most=1)
    start = initial_answer(question, searched + further, provenance)
    first: Candidate = yield from _answered(start, searched.tried[-1], further.leading, plan)
    if plan.further or (first.stands and not first.names_less):
        return first
    later: TierSearch = yield from finding.search(request, waiting, plan)
    if not later.leading:
        return first
    other: Candidate = yield from _answered(
        initial_answer(question, searched + later, provenance), later.leading, None, plan
    )
    return other if other.stands and not other.names_less else first


def _settled(candidate: Candidate, plan: Plan) -> Flow:
    """The answer, which gives way to no other any more: whoever waits may see its sentences, then comes its badge."""
    answer, written = candidate.answer, candidate.written
    if not candidate.stands:
        return answer
    yield Settled(answer.statements, answer.evidence)
    account = yield from badged(answer.question, written, plan)
    return replace(answer, verification=downgraded(account, answer.notes))


def _answered(answer: Answer, leading: SearchedTier, beyond: SearchedTier | None, plan: Plan) -> Step[Candidate]:
    """The cited answer of ``leading``; what ``beyond`` would have cited is compared with it, and nothing else of it."""
    evidence: tuple[Evidence, ...] = yield Cite((*leading.hits, *(beyond.hits if beyond else ())))
    ours, theirs = evidence[: len(leading.hits)], evidence[len(leading.hits) :]
    task = AnswerInput(answer.question, ours, leading.result.dense, beside=theirs)
    written = yield from composed(task, plan, relevance=leading.relevance)
    if not written.stands or (reason := (yield from untied(answer.question, written))):
        refusal = without_statements(answer, written, ours, reason if written.stands else None)
        return Candidate(refusal, written)
    possible = yield from compared(answer.question, written.statements, written.evidence, theirs, beyond)
    notes = (message(UNSURE),) if leading.relevance.unsure else ()
    return Candidate(completed_answer(answer, written, (*written.evidence, *theirs), notes, possible), written)


def compared(
    question: str,
    statements: tuple[Statement, ...],
    ours: tuple[Evidence, ...],
    theirs: tuple[Evidence, ...],
    beyond: SearchedTier | None,
) -> Step[tuple[Conflict, ...]]:
    """Where ``statements`` from ``ours`` may conflict: with what rules quote of ``theirs``, which ``beyond`` holds, and
    what is cited of the document that leads with what is cited of the others.
    """
    own = citing(statements, ours)
    leading = [cited for cited in own if cited.citation.document_id == own[0].citation.document_id]
    others = [cited for cited in own if cited.citation.document_id != own[0].citation.document_id]
    among = conflicts(question, leading, others)
    if not beyond:
        return among
    draft = yield Perform(CITED_ANSWER, AnswerInput(question, theirs, beyond.result.dense), by_rules=True)
    checked, _ = citations.check(draft.statements, theirs)
    return (*among, *conflicts(question, own, citing(checked, theirs)))


def completed_answer(
    answer: Answer,
    written: Written,
    evidence: tuple[Evidence, ...],
    notes: Notes = (),
    possible: tuple[Conflict, ...] = (),
    beside: tuple[Statement, ...] = (),
) -> Answer:
    """The answer with what was ``written`` from ``evidence``, of which what is cited there or ``beside`` is shown."""
    cited, against = citations.cited(written.statements + beside, evidence), {conflict.against for conflict in possible}
    shown = tuple(piece for piece in evidence if piece in cited or piece.marker in against)
    return replace(
        answer,
        status=AnswerStatus.ANSWERED,
        statements=written.statements,
        evidence=shown,
        verification=downgraded(written.verification, notes),
        notes=answer.notes + written.notes + notes + warnings(shown),
        conflicts=possible,
    )


# --- nothing helps ----------------------------------------------------------------------------------------------------


def _fallback(question: str, request: Search, searched: TierSearch, plan: Plan, provenance: Provenance) -> Flow:
    """Documents in another language; else own knowledge, if allowed and certain; else sub-questions or abstention."""
    answer = initial_answer(question, searched, provenance)
    if not searched.tried or not words(question):
        return abstained(answer, NO_WORDS if searched.tried else NO_TIER)
    card: Card | None = yield from defining.asked_for(question)
    if card:
        return (yield from _by_concept(answer, card, plan))
    other: TierSearch = yield from finding.across(request, plan)
    if other.leading:
        beside = initial_answer(question, searched + other, provenance)
        across: Candidate = yield from _answered(beside, other.leading, None, plan)
        if across.stands:
            return (yield from _settled(across, plan))
    searched += other
    if plan.own_knowledge and SELF_KNOWLEDGE.name in plan.roles and OWN_ANSWER.name in plan.roles:
        own: tuple[Statement, ...] = yield from _own_knowledge(question)
        if own:
            more = yield from said_again(question, own, plan)
            return replace(answer, status=AnswerStatus.UNVERIFIED, statements=own, notes=(*answer.notes, OWN, *more))
    if DECOMPOSITION.name not in plan.roles:
        return (yield from abstained_with_nearest(answer, searched))
    return (yield from _by_sub_questions(answer, request, searched, plan))


def _by_concept(answer: Answer, card: Card, plan: Plan) -> Flow:
    """What the concept graph says a thing is: its definition cited, its relations beside it."""
    written: Written = yield from defining.quoted(card)
    part = concept_part(card, cited=written.stands)
    answer = replace(answer, parts=(part,) if part.definition or part.relations else ())
    if not written.stands:
        return replace(answer, status=AnswerStatus.ANSWERED, notes=(*answer.notes, BY_CONCEPT))
    answer = completed_answer(answer, written, written.evidence, (BY_CONCEPT,))
    return (yield from _settled(Candidate(answer, written), plan))


def _own_knowledge(question: str) -> Step[tuple[Statement, ...]]:
    """What the model knows by itself; nothing where it is not certain or its reply cannot be used."""
    try:
        certain: bool = yield Perform(SELF_KNOWLEDGE, QuestionInput(question))
        own: tuple[Statement, ...] = (yield Perform(OWN_ANSWER, QuestionInput(question))) if certain else ()
    except Rejected:
        return ()
    return own


def _several(question: str, plan: Plan) -> Step[tuple[tuple[str, ...], Notes]]:
    """The parts of a question that asks for several things, where a chat model answers; none where it asks for one."""
    if CITED_ANSWER.name not in plan.chat or DECOMPOSITION.name not in plan.roles:
        return (), ()
    parts: tuple[str, ...] = yield Perform(DECOMPOSITION, QuestionInput(question), by_rules=True)
    if parts or DECOMPOSITION.name not in plan.chat or not asking.joins(question):
        return parts, ()
    return (yield from attempt(DECOMPOSITION, QuestionInput(question)))


def _by_sub_questions(answer: Answer, request: Search, searched: TierSearch, plan: Plan) -> Flow:
    """The answer put together from sub-questions, each searched once."""
    questions, notes = yield from attempt(DECOMPOSITION, QuestionInput(answer.question))
    questions = questions[:SUB_QUESTIONS]
    parts, more = yield from searched_each(questions, answer.question, request, plan)
    searched += more
    answer = replace(initial_answer(answer.question, searched, answer.provenance), language=answer.language)
    if not parts:
        return (yield from abstained_with_nearest(replace(answer, notes=answer.notes + notes), searched))
    return (yield from _synthesised(answer, parts, len(questions), plan))


def searched_each(
    questions: tuple[str, ...], whole: str, request: Search, plan: Plan
) -> Step[tuple[list[SubQuestion], TierSearch]]:
    """What was found for each part of ``whole``, and all that was searched."""
    parts: list[SubQuestion] = []
    searched = TierSearch()
    known: tuple[Evidence, ...] = ()  # a passage that serves two parts has one marker
    for question in questions:
        part_request, _ = yield from finding.request(question, request.filters, plan)
        part: TierSearch = yield from finding.search(part_request, iter(plan.tiers), plan, whole=whole)
        searched += part
        if part.leading:
            most = max(LEAST_OF_PART, plan.passages // len(questions)) if plan.chat else plan.passages
            evidence = yield from finding.minted(part.leading.hits[:most], known)
            known = tuple(dict.fromkeys((*known, *evidence)))
            parts.append(SubQuestion(question, part.leading, evidence))
    return parts, searched


def _synthesised(answer: Answer, parts: list[SubQuestion], count: int, plan: Plan) -> Flow:
    """The reference passage of ``parts`` guides the answer; its markers are those of the original passages."""
    reference, notes = "", Notes()
    if SYNTHESIS.name in plan.roles:
        task = SynthesisInput(answer.question, tuple((part.question, part.evidence) for part in parts))
        reference, notes = yield from attempt(SYNTHESIS, task)
    evidence = tuple(dict.fromkeys(piece for part in parts for piece in part.evidence))
    dense = parts[0].leading.result.dense
    relevance = parts[0].leading.relevance if all(part.leading.relevance.doubted for part in parts) else None
    written = yield from composed(AnswerInput(answer.question, evidence, dense, reference), plan, relevance=relevance)
    if not written.stands:
        return without_statements(answer, written, evidence)
    missing = count - len(parts)
    notes = (*notes, IN_PARTS, *((message(PART_MISSING, count=count, missing=missing),) if missing else ()))
    return (yield from _settled(Candidate(completed_answer(answer, written, written.evidence, notes), written), plan))


def citing(statements: tuple[Statement, ...], evidence: tuple[Evidence, ...]) -> tuple[Cited, ...]:
    """The quotations of the statements that are shown, each with its source."""
    known = {piece.marker: piece for piece in evidence}
    shown = citations.shown(statements)
    return tuple(Cited(citation, known[citation.marker]) for statement in shown for citation in statement.citations)


def warnings(evidence: tuple[Evidence, ...]) -> Notes:
    """What the reader must know of the sources shown, those of possible conflicts included."""
    return tuple(_out_of_force(piece) for piece in evidence if piece.status is not Status.CURRENT) + overdue(evidence)


def _out_of_force(evidence: Evidence) -> Message:
    edition = evidence.edition or message("answer.no_date")
    named = {"marker": evidence.marker, "title": evidence.document_title, "edition": edition}
    return Message(f"workflow.{evidence.status.value}", tuple(named.items()))


def _display_name(name: str) -> Message | str:
    """A tier's member: a kind by its label, a collection by its name."""
    return Message(f"source.kind.{name}") if name in set(Kind) else name
