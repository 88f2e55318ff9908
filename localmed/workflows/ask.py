"""Ask: finds sections on a question; with a chat model, writes and checks an answer above them.

At most three calls of a model: write; write once more if the reply leaves something open, after searching for what it
asks and with the sections in the other language; check (docs/decisions/02-checking-answers.md). Nothing judges
relevance before the model reads. If a model fails or is out of time, the sections remain and a note says so.
``Session.ask`` starts the flow by its name in ``flow.FLOWS``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from localmed.answering import check
from localmed.answering.check import CHECK, SupportInput
from localmed.answering.write import WRITE, Block, Covers, WriteInput, Written, blocks, of_evidence, statements
from localmed.domain import (
    Answer,
    AnswerStatus,
    Conflict,
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
    Verification,
    message,
)
from localmed.domain.errors import NotServed, Rejected
from localmed.domain.findings import Closeness, Finding
from localmed.domain.ports import Stance
from localmed.library.graph import cited_passage
from localmed.retrieval.concepts import Card
from localmed.text.language import fold
from localmed.text.tables import table
from localmed.workflows.finding import Notes, Plan, cared, minted, overdue, refused, screened
from localmed.workflows.flow import Find, Flow, Judge, LookUp, Perform, Scopes, Shown, Step, asked
from localmed.workflows.receipts import PASSAGES, concept_part, receipts, shown_section


def asked_term(question: str) -> str:
    """The term that ``question`` asks to be defined (``asking.toml``), or ""."""
    folded = fold(question).strip()
    matches = (re.match(pattern, folded) for pattern in table("asking")["definition"]["asks"])
    return next((match["term"] for match in matches if match), "")


MORE = 3  # sections that a second search adds, and earlier ones that stay: cited ones first
NOT_COVERED, NOT_FOR = "workflow.not_covered", message("workflow.not_for_patient")
NOTHING = message("workflow.model_found_nothing")


def ask(
    question: str,
    filters: SearchFilter,
    plan: Plan,
    provenance: Provenance,
    earlier: tuple[str, ...] = (),
    left_out: tuple[str, ...] = (),
) -> Flow:
    """The flow for one question over the collections of ``plan``.

    ``earlier`` are previous questions; ``left_out`` names readings that are not searched for.
    """
    if (yield from screened(said := "\n".join((*earlier[-1:], question)), plan)):
        return refused(question, plan, provenance)
    care = yield from cared(said, plan)
    answer: Answer = yield from receipts(
        question, plan.within(filters), plan.searched, provenance, earlier, left_out=left_out
    )
    answer = yield from _defined(replace(answer, notes=(*care, *answer.notes, *plan.lacking)))
    return (yield from answered(answer, plan, filters, earlier=earlier))


def _defined(answer: Answer) -> Flow:
    """``answer`` with the concept graph's definition of the term asked about as first section, and its relations."""
    term = asked_term(answer.question)
    card: Card | None = (yield LookUp(term)) if term else None
    passage = cited_passage(card.concept) if card else None
    if not card or not (passage or card.relations):
        return answer
    parts = (*answer.parts, concept_part(card, defined=False)) if card.relations else answer.parts
    if not passage:
        return replace(answer, parts=parts)
    answer, known = yield from _with_passages(answer, [Hit(passage)])
    marker, found = known[passage.id].marker, answer.receipts or Receipts()
    section = ShownSection(marker, (ShownLine(marker, 0, len(passage.text), marked=True),))
    return replace(
        answer,
        status=AnswerStatus.SECTIONS,
        parts=parts,
        receipts=replace(found, sections=(section, *found.sections)),
    )


def search(
    question: str, filters: SearchFilter, plan: Plan, provenance: Provenance, sections: int, left_out: tuple[str, ...]
) -> Flow:
    """The flow of a search without an answer: at most ``sections`` sections."""
    if (yield from screened(question, plan)):
        return refused(question, plan, provenance, "search")
    care = yield from cared(question, plan)
    answer: Answer = yield from receipts(
        question,
        plan.within(filters),
        plan.searched,
        provenance,
        workflow="search",
        sections=sections,
        left_out=left_out,
    )
    return replace(answer, notes=(*care, *answer.notes))


def answered(
    answer: Answer,
    plan: Plan,
    filters: SearchFilter,
    patient: str = "",
    earlier: tuple[str, ...] = (),
    wrong: str = "",
) -> Flow:
    """``answer`` with sentences that a chat model writes from its sections; unchanged without a model.

    ``wrong``: sentences of an earlier draft that conflict with their sources.
    """
    if WRITE.name not in plan.chat or not answer.sections:
        return answer
    yield Shown(answer)
    task = WriteInput(answer.question, (), plan.audience, plan.day, earlier, patient, wrong)
    try:
        answer, task, reply = yield from _written(answer, task, _first(answer))
        if reply.missing or not reply.drafted:
            answer, task, reply = yield from _once_more(answer, task, reply, plan.within(filters))
    except Rejected as error:
        has_note = isinstance(error, NotServed)  # the driver adds the note on a failure or timeout
        why = () if has_note else (message("workflow.not_written", reason=error.full_message),)
        return replace(answer, notes=(*answer.notes, *why))
    return (yield from checked(answer, Draft(task, reply, answer.evidence), plan))


def _first(answer: Answer) -> tuple[ShownSection, ...]:
    """The sections that a model reads first: those in the question's language, after the others if none is near.

    Otherwise ``_once_more`` adds the other language: only the model can tell whether a near section answers.
    """
    found = answer.receipts or Receipts()
    if found.sections and found.closeness is not Closeness.NOTHING_NEAR:
        return found.sections
    return (*found.others, *found.sections)


def _written(
    answer: Answer, task: WriteInput, sections: Sequence[ShownSection]
) -> Step[tuple[Answer, WriteInput, Written]]:
    """One call over ``sections`` with each document's scope; adds the scopes to the answer's evidence."""
    known = answer.by_marker
    documents = tuple(dict.fromkeys(known[section.best].passage.document_id for section in sections))
    found = dict(zip(documents, (yield Scopes(documents)), strict=True))
    answer, minted = yield from _with_passages(answer, [Hit(it) for passages in found.values() for it in passages])
    task = replace(task, blocks=blocks(sections, answer.evidence, found, minted))
    if not task.blocks:
        raise Rejected("workflow.nothing_to_read")
    reply: Written = yield Perform(WRITE, task)
    return answer, task, reply


def _with_passages(answer: Answer, hits: Sequence[Hit]) -> Step[tuple[Answer, dict[str, Evidence]]]:
    """``answer`` with evidence for ``hits``, and all evidence by passage id."""
    every = dict.fromkeys((*answer.evidence, *(yield from minted(hits, answer.evidence))))
    return replace(answer, evidence=tuple(every)), {piece.passage.id: piece for piece in every}


def _once_more(
    answer: Answer, task: WriteInput, reply: Written, within: SearchFilter
) -> Step[tuple[Answer, WriteInput, Written]]:
    """Write once more with sections that the model asked for and those in the other language, if there are any."""
    before = answer.receipts or Receipts()
    found: Finding | None = (
        (yield Find(reply.look_for, within, PASSAGES, MORE, before.left_out)) if reply.look_for else None
    )
    there = {piece.passage.id for piece in answer.evidence}
    new = [one for one in (found.sections if found else ()) if one.best.passage.id not in there]
    unread = before.others if _first(answer) == before.sections else ()
    if not new and not unread:
        return answer, task, reply
    passages = [Hit(passage) for section in new for passage in section.passages]
    answer, known = yield from _with_passages(answer, passages)
    added = tuple(shown_section(section, known) for section in new)
    answer = replace(answer, receipts=replace(before, sections=(*before.sections, *added)))
    cited = _cited(reply, task.blocks)
    kept = sorted(before.sections, key=lambda section: cited.isdisjoint(section.markers))[:MORE]
    return (yield from _written(answer, task, (*kept, *added, *unread)))


def _cited(reply: Written, given: Sequence[Block]) -> set[str]:
    """The markers that ``reply`` cites."""
    numbers = {number for one in reply.drafted for number in one.numbers}
    return {one.marker for block in given for one in block.sentences if one.number in numbers}


@dataclass(frozen=True, slots=True)
class Draft:
    """A model's unchecked reply to ``task``; its statements cite ``evidence``."""

    task: WriteInput
    reply: Written
    evidence: tuple[Evidence, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Its sentences."""
        return statements(self.reply, self.task.blocks, self.evidence)


def checked(answer: Answer, draft: Draft, plan: Plan) -> Flow:
    """``answer`` with the checked sentences of ``draft`` and the badge."""
    reply, task = draft.reply, draft.task
    ((shown, account),) = yield from checked_drafts((draft,), plan, task.earlier, answer.conflicts)
    notes: Notes = (message(NOT_COVERED, parts=reply.missing),) if reply.missing else ()
    notes += (NOT_FOR,) if reply.covers is Covers.NO else ()
    notes += () if shown or reply.missing else (NOTHING,)
    left_out = (reply.left_out,) if reply.left_out else ()
    return replace(
        answer,
        status=AnswerStatus.ANSWERED if any(not one.withheld for one in shown) else AnswerStatus.SECTIONS,
        statements=shown,
        verification=account,
        notes=(*answer.notes, *notes, *left_out, *overdue(check.cited(shown, answer.evidence))),
    )


def checked_drafts(
    drafts: Sequence[Draft], plan: Plan, earlier: tuple[str, ...] = (), conflicts: Sequence[Conflict] = ()
) -> Step[tuple[tuple[tuple[Statement, ...], Verification], ...]]:
    """The checked sentences and verification of each draft; all are judged in one request."""
    asked = "\n".join(dict.fromkeys(draft.task.question for draft in drafts))
    told = "\n".join(dict.fromkeys(draft.task.patient for draft in drafts if draft.task.patient))
    about = SupportInput(asked, earlier=earlier, patient=told)
    evidence = tuple({piece.marker: piece for draft in drafts for piece in draft.evidence}.values())
    written = [one for draft in drafts for one in draft.statements]
    done, judges = yield from _with_verdicts(about, written, evidence, plan)
    if not plan.judged:  # even a verbatim sentence is not checked: nobody judged whether it belongs here
        done = [
            replace(one, verdict=check.verdict(None, check.RULES)) if check.is_supported(one) else one for one in done
        ]
    made, left = [], iter(done)
    for draft in drafts:
        own = [next(left) for _ in draft.statements]
        if draft.reply.covers is Covers.NO:
            own = [check.for_others(one, draft.evidence) for one in own]
        shown = check.shown_statements(own, draft.evidence)
        cited = {citation.marker for statement in shown for citation in statement.citations}
        differ = any(cited & {one.marker, one.against} for one in conflicts)  # another edition or namesake
        made.append((shown, check.account(own, draft.reply, (check.RULES, *judges), differ)))
    return tuple(made)


def check_statements(
    question: str, written: Sequence[Statement], evidence: tuple[Evidence, ...], plan: Plan
) -> Step[tuple[tuple[Statement, ...], Verification]]:
    """``written`` with verdicts. Quotations stay, a model's sentences are withheld unless supported.

    Submitted sentences are never withheld: the reader has the text.
    """
    made = [one for one in written if one.origin is not Origin.EXTRACTIVE]
    found, judges = yield from _with_verdicts(SupportInput(question), made, evidence, plan)
    waiting = iter(found)
    checked = tuple(
        check.verbatim(one) if one.origin is Origin.EXTRACTIVE else _withhold_unsupported(next(waiting))
        for one in written
    )
    withheld = sum(one.withheld for one in checked)
    by_whom = (check.RULES, *judges) if made else (check.QUOTATION,)
    return checked, Verification(len(checked), withheld, judges=by_whom)


def _withhold_unsupported(one: Statement) -> Statement:
    return replace(one, withheld=one.origin is Origin.GENERATED and not check.is_supported(one))


def _with_verdicts(
    about: SupportInput, written: Sequence[Statement], evidence: Sequence[Evidence], plan: Plan
) -> Step[tuple[list[Statement], tuple[Message, ...]]]:
    """``written`` with verdicts, and the judges. A model judges only what rules leave open."""
    settled = [check.settled(one, evidence, about.known) for one in written]
    waiting = [one for one, verdict in zip(written, settled, strict=True) if verdict is None]
    stances, judges = yield from judge_pairs(replace(about, pairs=check.pairs(waiting, evidence)), plan)
    by, left = judges[-1] if judges else check.RULES, iter(stances)
    return [
        replace(one, verdict=verdict or check.verdict(next(left), by))
        for one, verdict in zip(written, settled, strict=True)
    ], judges


def judge_pairs(task: SupportInput, plan: Plan) -> Step[tuple[tuple[Stance | None, ...], tuple[Message, ...]]]:
    """The stance of each pair by the judge of entailment, else by the chat model, else ``None``; and the judges."""
    pairs = task.pairs
    stances: list[Stance | None] = [None] * len(pairs)
    judges: tuple[Message, ...] = ()
    if plan.judge and pairs:
        stances = list((yield Judge(pairs)))
        judges = (message("support.judge.entailment", name=plan.judge),)
    waiting = [place for place, stance in enumerate(stances) if stance is None or not stance.judged]
    about, nobody = replace(task, pairs=tuple(pairs[at] for at in waiting)), tuple[Stance, ...]()
    if waiting and (more := (yield from asked(CHECK, about, plan.chat, nobody))):
        judges = (*(judges if len(waiting) < len(pairs) else ()), check.MODEL)
        for place, stance in zip(waiting, more, strict=True):
            stances[place] = stance
    return tuple(stances), judges if any(one is not None and one.judged for one in stances) else ()


def write_draft(question: str, evidence: tuple[Evidence, ...], plan: Plan, patient: str = "") -> Step[Draft | None]:
    """A chat model's draft from ``evidence``, one block for each passage; ``None`` without a usable reply."""
    given = of_evidence(evidence)
    if not given:
        return None
    task = WriteInput(question, given, plan.audience, plan.day, patient=patient)
    writing: Step[Written | None] = asked(WRITE, task, plan.chat, None)
    reply = yield from writing
    return Draft(task, reply, evidence) if reply else None
