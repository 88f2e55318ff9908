"""Ask: the sections that speak of the question; with a chat model an answer above them, written, checked, shown.

At most four calls: write, check; and both once more where the reply names what is missing and what to search for
(design, "One shape for both profiles"). Nothing judges relevance before the model reads. What fails leaves the
sections: a model that is away or out of time is told in a note, and nothing stands in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from localmed.answering import check
from localmed.answering.check import CHECK, SupportInput
from localmed.answering.write import WRITE, Block, Covers, WriteInput, Written, blocks, of_evidence, statements
from localmed.clinical import asking
from localmed.domain import (
    Answer,
    AnswerStatus,
    Evidence,
    Hit,
    Message,
    Origin,
    Provenance,
    Receipts,
    SearchFilter,
    ShownLine,
    ShownSection,
    Statement,
    Support,
    Verification,
    message,
)
from localmed.domain.findings import Finding
from localmed.errors import Rejected
from localmed.library.definitions import cited_passage
from localmed.ports import Stance
from localmed.retrieval.concepts import Card
from localmed.verification import citations
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import FAILED, OUT_OF_TIME, Cite, Find, Flow, Judge, LookUp, Perform, Scopes, Shown, Step
from localmed.workflows.receipts import PASSAGES, concept_part, receipts, shown_section
from localmed.workflows.screening import overdue, refused, screened

MORE = 3  # sections that a second search adds
NOT_COVERED, NOT_FOR = "workflow.not_covered", message("workflow.not_for_patient")
NOTHING = message("workflow.model_found_nothing")


def ask(
    question: str, filters: SearchFilter, plan: Plan, provenance: Provenance, earlier: tuple[str, ...] = ()
) -> Flow:
    """The flow of one question over the collections of ``plan``; ``earlier`` are the questions before it."""
    if (yield from screened("\n".join((*earlier[-1:], question)), plan)):
        return refused(question, plan, provenance)
    answer: Answer = yield from receipts(question, plan.within(filters), plan.searched, provenance, earlier)
    answer = yield from _defined(replace(answer, notes=(*answer.notes, *plan.lacking)))
    return (yield from answered(answer, plan, filters, earlier=earlier))


def _defined(answer: Answer) -> Flow:
    """``answer`` with what the concept graph says of a thing that the question asks to be defined: the first section.

    Its relations stand beside it.
    """
    term = asking.defined(answer.question)
    card: Card | None = (yield LookUp(term)) if term else None
    passage = cited_passage(card.concept) if card else None
    if not card or not (passage or card.relations):
        return answer
    parts = (*answer.parts, concept_part(card, defined=False)) if card.relations else answer.parts
    if not passage:
        return replace(answer, parts=parts)
    answer, known = yield from _with_passages(answer, [Hit(passage, 0.0)])
    marker, found = known[passage.id].marker, answer.receipts or Receipts()
    section = ShownSection(marker, (ShownLine(marker, 0, len(passage.text), marked=True),))
    return replace(
        answer,
        status=AnswerStatus.SECTIONS,
        parts=parts,
        receipts=replace(found, sections=(section, *found.sections)),
    )


def search(
    question: str, filters: SearchFilter, plan: Plan, provenance: Provenance, sections: int, as_written: bool
) -> Flow:
    """The sections alone, as many as wanted."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "search")
    return (
        yield from receipts(
            question,
            plan.within(filters),
            plan.searched,
            provenance,
            workflow="search",
            sections=sections,
            as_written=as_written,
        )
    )


def answered(
    answer: Answer,
    plan: Plan,
    filters: SearchFilter,
    patient: str = "",
    earlier: tuple[str, ...] = (),
    wrong: str = "",
) -> Flow:
    """``answer``, whose sections are there, with what a chat model writes from them; as it is without one.

    ``wrong`` are sentences of a draft before this one that conflict with their sources.
    """
    if WRITE.name not in plan.chat or not answer.sections:
        return answer
    yield Shown(answer)
    task = WriteInput(answer.question, (), plan.audience, plan.day, earlier, patient, wrong)
    try:
        answer, task, reply = yield from _written(answer, task, answer.sections)
        if reply.look_for and (reply.missing or not reply.drafted):
            answer, task, reply = yield from _once_more(answer, task, reply, plan.within(filters))
    except Rejected as error:
        return replace(answer, notes=(*answer.notes, *_unwritten(error)))
    known = "\n".join((*earlier, answer.question, patient))
    return (yield from checked(answer, task.blocks, reply, plan, known))


def _unwritten(error: Rejected) -> Notes:
    """Why nothing is written; that the model failed or took too long is the driver's own note."""
    told = error.message.code in (FAILED, OUT_OF_TIME)
    return () if told else (message("workflow.not_written", reason=error.full_message),)


def _written(
    answer: Answer, task: WriteInput, sections: Sequence[ShownSection]
) -> Step[tuple[Answer, WriteInput, Written]]:
    """One call over ``sections``, each document's scope with them; the answer gains the evidence of the scopes."""
    known = answer.by_marker
    documents = tuple(dict.fromkeys(known[section.best].passage.document_id for section in sections))
    found = dict(zip(documents, (yield Scopes(documents)), strict=True))
    answer, minted = yield from _with_passages(answer, [Hit(it, 0.0) for passages in found.values() for it in passages])
    task = replace(task, blocks=blocks(sections, answer.evidence, found, minted))
    if not task.blocks:
        raise Rejected("workflow.nothing_to_read")
    reply: Written = yield Perform(WRITE, task)
    return answer, task, reply


def _with_passages(answer: Answer, hits: Sequence[Hit]) -> Step[tuple[Answer, dict[str, Evidence]]]:
    """``answer`` with evidence for ``hits``, each passage once, and all evidence by passage."""
    there = {piece.passage.id: piece for piece in answer.evidence}
    fresh = {hit.passage.id: hit for hit in hits if hit.passage.id not in there}
    pieces: tuple[Evidence, ...] = (yield Cite(tuple(fresh.values()), len(answer.evidence) + 1)) if fresh else ()
    there |= {piece.passage.id: piece for piece in pieces}
    return replace(answer, evidence=(*answer.evidence, *pieces)), there


def _once_more(
    answer: Answer, task: WriteInput, reply: Written, within: SearchFilter
) -> Step[tuple[Answer, WriteInput, Written]]:
    """What the model asked to look for is searched once; where something new is found it writes once more."""
    found: Finding = yield Find(reply.look_for, within, PASSAGES, MORE)
    there = {piece.passage.id for piece in answer.evidence}
    new = [section for section in found.sections if section.best.passage.id not in there]
    if not new or not answer.receipts:
        return answer, task, reply
    before = answer.receipts
    passages = [Hit(passage, 0.0) for section in new for passage in section.passages]
    answer, known = yield from _with_passages(answer, passages)
    added = tuple(shown_section(section, known) for section in new)
    answer = replace(answer, receipts=replace(before, sections=(*before.sections, *added)))
    return (yield from _written(answer, task, (*before.sections[:MORE], *added)))


def checked(answer: Answer, given: Sequence[Block], reply: Written, plan: Plan, known: str) -> Flow:
    """``answer`` with the sentences of ``reply``, each with its verdict, and the badge that follows from them."""
    written = statements(reply, given, answer.evidence)
    stances, judges = yield from judged(answer.question, check.pairs(written, answer.evidence), plan.judge, plan.chat)
    by = judges[-1] if judges else check.RULES
    done = [
        replace(one, verdict=check.verdict(one, answer.evidence, known, stance, by))
        for one, stance in zip(written, stances, strict=True)
    ]
    shown = check.shown_statements(done, answer.evidence)
    notes: Notes = (message(NOT_COVERED, parts=reply.missing),) if reply.missing else ()
    notes += (NOT_FOR,) if reply.covers is Covers.NO else ()
    notes += () if done or reply.missing else (NOTHING,)
    cited = {one.marker for statement in shown for one in statement.citations}
    sources = tuple(piece for piece in answer.evidence if piece.marker in cited)
    left_out = (reply.left_out,) if reply.left_out else ()
    return replace(
        answer,
        status=AnswerStatus.ANSWERED if any(not one.withheld for one in shown) else AnswerStatus.SECTIONS,
        statements=shown,
        verification=check.account(done, reply, (check.RULES, *judges)),
        notes=(*answer.notes, *notes, *left_out, *overdue(sources)),
    )


def held(
    question: str, written: Sequence[Statement], evidence: tuple[Evidence, ...], judge: str, chat: frozenset[str]
) -> Step[tuple[tuple[Statement, ...], Verification]]:
    """``written`` with verdicts, in their order: quotations as they are, a model's withheld unless they are carried.

    What a person submitted is marked and never withheld: whoever asks has the text.
    """
    done, account = citations.check(written, evidence)
    made = [place for place, one in enumerate(done) if one.origin is not Origin.EXTRACTIVE and not one.withheld]
    pairs = check.pairs([done[place] for place in made], evidence)
    stances, judges = yield from judged(question, pairs, judge, chat)
    checked = list(done)
    for place, stance in zip(made, stances, strict=True):
        by = judges[-1] if judges else check.RULES
        verdict = check.verdict(checked[place], evidence, question, stance, by)
        gap = verdict.support is not Support.SUPPORTED and checked[place].origin is Origin.GENERATED
        checked[place] = replace(checked[place], verdict=verdict, withheld=gap)
    withheld = sum(one.withheld for one in checked)
    by_whom = (check.RULES, *judges) if made else account.judges
    return tuple(checked), replace(account, statements_withheld=withheld, judges=by_whom)


def judged(
    question: str, pairs: tuple[tuple[str, str], ...], judge: str, chat: frozenset[str]
) -> Step[tuple[tuple[Stance | None, ...], tuple[Message, ...]]]:
    """How each (sources, statement) stands, and who judged: the judge of entailment, else the chat model; else None."""
    stances: list[Stance | None] = [None] * len(pairs)
    judges: tuple[Message, ...] = ()
    if judge and pairs:
        stances = list((yield Judge(pairs)))
        judges = (message("support.judge.entailment", name=judge),)
    waiting = [place for place, stance in enumerate(stances) if stance is None or not stance.judged]
    if waiting and CHECK.name in chat:
        try:
            more: tuple[Stance, ...] = yield Perform(CHECK, SupportInput(question, tuple(pairs[at] for at in waiting)))
            judges = (*(judges if len(waiting) < len(pairs) else ()), check.MODEL)
            for place, stance in zip(waiting, more, strict=True):
                stances[place] = stance
        except Rejected:
            pass
    return tuple(stances), judges if any(one is not None and one.judged for one in stances) else ()


def written_from(
    question: str, evidence: tuple[Evidence, ...], plan: Plan, patient: str = ""
) -> Step[tuple[tuple[Statement, ...], Verification]]:
    """What a chat model writes from ``evidence``, a block a passage, checked; nothing without one, or where it fails.

    For the parts of other workflows: what is withheld is left out.
    """
    nothing: tuple[tuple[Statement, ...], Verification] = ((), Verification())
    given = of_evidence(evidence)
    if WRITE.name not in plan.chat or not given:
        return nothing
    try:
        reply: Written = yield Perform(WRITE, WriteInput(question, given, plan.audience, plan.day, (), patient))
    except Rejected:
        return nothing
    begun = Answer(AnswerStatus.SECTIONS, question, "", (), evidence, (), Provenance("", ""))
    answer: Answer = yield from checked(begun, given, reply, plan, f"{question}\n{patient}")
    stands = tuple(one for one in answer.statements if not one.withheld and one.verdict is not None)
    return stands, answer.verification
