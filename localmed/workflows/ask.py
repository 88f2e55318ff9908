"""Ask: the sections that speak of the question; with a chat model an answer above them, written, checked, shown.

At most three calls: write; once more where the reply leaves something open, with what it asks to search for and the
sections in the other language; check (docs/decisions/02-checking-answers.md). Nothing judges relevance before the model
reads. What fails leaves the sections: a model that is away or out of time is told in a note, and nothing stands in its
place.
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
    Support,
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
from localmed.workflows.finding import Notes, Plan, minted, overdue, refused, screened
from localmed.workflows.flow import Find, Flow, Judge, LookUp, Perform, Scopes, Shown, Step, asked
from localmed.workflows.receipts import PASSAGES, concept_part, receipts, shown_section

# --- asking -----------------------------------------------------------------------------------------------------------

# What a question asks to be defined (``asking.toml``), English and Chinese.


def defined(question: str) -> str:
    """The name of what ``question`` asks to be defined, "" if it asks something else."""
    folded = fold(question).strip()
    matches = (re.match(pattern, folded) for pattern in table("asking")["definition"]["asks"])
    return next((match["term"] for match in matches if match), "")


# --- ask --------------------------------------------------------------------------------------------------------------

MORE = 3  # sections that a second search adds, and of those before it that stay: what was cited goes first
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
    """The flow of one question over the collections of ``plan``; ``earlier`` are the questions before it.

    ``left_out`` names readings of it that are not searched for.
    """
    if (yield from screened("\n".join((*earlier[-1:], question)), plan)):
        return refused(question, plan, provenance)
    answer: Answer = yield from receipts(
        question, plan.within(filters), plan.searched, provenance, earlier, left_out=left_out
    )
    answer = yield from _defined(replace(answer, notes=(*answer.notes, *plan.lacking)))
    return (yield from answered(answer, plan, filters, earlier=earlier))


def _defined(answer: Answer) -> Flow:
    """``answer`` with what the concept graph says of a thing that the question asks to be defined: the first section.

    Its relations stand beside it.
    """
    term = defined(answer.question)
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
            left_out=left_out,
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
        answer, task, reply = yield from _written(answer, task, _first(answer))
        if reply.missing or not reply.drafted:
            answer, task, reply = yield from _once_more(answer, task, reply, plan.within(filters))
    except Rejected as error:
        told = isinstance(error, NotServed)  # that the model failed or took too long is the driver's own note
        why = () if told else (message("workflow.not_written", reason=error.full_message),)
        return replace(answer, notes=(*answer.notes, *why))
    return (yield from checked(answer, Draft(task, reply, answer.evidence), plan))


def _first(answer: Answer) -> tuple[ShownSection, ...]:
    """What a model reads first: the question's language; the other one before it where nothing of it is near.

    Else the other language waits for ``_once_more``: whether a near section answers is known once a model has read it.
    """
    found = answer.receipts or Receipts()
    if found.sections and found.closeness is not Closeness.NOTHING_NEAR:
        return found.sections
    return (*found.others, *found.sections)


def _written(
    answer: Answer, task: WriteInput, sections: Sequence[ShownSection]
) -> Step[tuple[Answer, WriteInput, Written]]:
    """One call over ``sections``, each document's scope with them; the answer gains the evidence of the scopes."""
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
    """``answer`` with evidence for ``hits``, each passage once, and all evidence by passage."""
    every = dict.fromkeys((*answer.evidence, *(yield from minted(hits, answer.evidence))))
    return replace(answer, evidence=tuple(every)), {piece.passage.id: piece for piece in every}


def _once_more(
    answer: Answer, task: WriteInput, reply: Written, within: SearchFilter
) -> Step[tuple[Answer, WriteInput, Written]]:
    """Once more, with what the model asked to look for and with the other language, where there is anything of it."""
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
    """The evidence that ``reply`` rests on."""
    numbers = {number for one in reply.drafted for number in one.numbers}
    return {one.marker for block in given for one in block.sentences if one.number in numbers}


@dataclass(frozen=True, slots=True)
class Draft:
    """What a model wrote in reply to ``task``, not checked yet; the statements cite ``evidence``."""

    task: WriteInput
    reply: Written
    evidence: tuple[Evidence, ...]

    @property
    def statements(self) -> tuple[Statement, ...]:
        """Its sentences."""
        return statements(self.reply, self.task.blocks, self.evidence)


def checked(answer: Answer, draft: Draft, plan: Plan) -> Flow:
    """``answer`` with the sentences of ``draft``, each with its verdict, and the badge that follows."""
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
    """The sentences of each of ``drafts`` as they are shown, and the account of them; all are judged in one request."""
    asked = "\n".join(dict.fromkeys(draft.task.question for draft in drafts))
    told = "\n".join(dict.fromkeys(draft.task.patient for draft in drafts if draft.task.patient))
    about = SupportInput(asked, earlier=earlier, patient=told)
    evidence = tuple({piece.marker: piece for draft in drafts for piece in draft.evidence}.values())
    written = [one for draft in drafts for one in draft.statements]
    done, judges = yield from _with_verdicts(about, written, evidence, plan)
    if not plan.judged:  # copied word for word, perhaps, but nobody judged whether it belongs here: it is quoted
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
        differ = any(cited & {one.marker, one.against} for one in conflicts)  # another edition or document of its title
        made.append((shown, check.account(own, draft.reply, (check.RULES, *judges), differ)))
    return tuple(made)


def held(
    question: str, written: Sequence[Statement], evidence: tuple[Evidence, ...], plan: Plan
) -> Step[tuple[tuple[Statement, ...], Verification]]:
    """``written`` with verdicts, in their order: quotations as they are, a model's withheld unless they are carried.

    What a person submitted is marked and never withheld: whoever asks has the text.
    """
    made = [one for one in written if one.origin is not Origin.EXTRACTIVE]
    found, judges = yield from _with_verdicts(SupportInput(question), made, evidence, plan)
    waiting = iter(found)
    checked = tuple(
        check.verbatim(one) if one.origin is Origin.EXTRACTIVE else _or_gap(next(waiting)) for one in written
    )
    withheld = sum(one.withheld for one in checked)
    by_whom = (check.RULES, *judges) if made else (check.QUOTATION,)
    return checked, Verification(len(checked), withheld, judges=by_whom)


def _or_gap(one: Statement) -> Statement:
    carried = one.verdict is not None and one.verdict.support is Support.SUPPORTED
    return replace(one, withheld=one.origin is Origin.GENERATED and not carried)


def _with_verdicts(
    about: SupportInput, written: Sequence[Statement], evidence: Sequence[Evidence], plan: Plan
) -> Step[tuple[list[Statement], tuple[Message, ...]]]:
    """``written``, each with its verdict, and who judged: what rules settle is not asked of a model."""
    settled = [check.settled(one, evidence, about.known) for one in written]
    waiting = [one for one, verdict in zip(written, settled, strict=True) if verdict is None]
    stances, judges = yield from judged(replace(about, pairs=check.pairs(waiting, evidence)), plan)
    by, left = judges[-1] if judges else check.RULES, iter(stances)
    return [
        replace(one, verdict=verdict or check.verdict(next(left), by))
        for one, verdict in zip(written, settled, strict=True)
    ], judges


def judged(task: SupportInput, plan: Plan) -> Step[tuple[tuple[Stance | None, ...], tuple[Message, ...]]]:
    """How each pair of ``task`` stands, and who judged: the judge of entailment, else the chat model; else None."""
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


def drafted(question: str, evidence: tuple[Evidence, ...], plan: Plan, patient: str = "") -> Step[Draft | None]:
    """What a chat model writes from ``evidence``, a block a passage; None without one, or where it fails."""
    given = of_evidence(evidence)
    if not given:
        return None
    task = WriteInput(question, given, plan.audience, plan.day, patient=patient)
    writing: Step[Written | None] = asked(WRITE, task, plan.chat, None)
    reply = yield from writing
    return Draft(task, reply, evidence) if reply else None
