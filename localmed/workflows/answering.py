"""Answering from evidence, as every workflow does it: a draft, the gate, one more try, or nothing.

A draft passes ``gate``. Where the answer conflicts with its sources (LINS, PCA), or the site wants unsupported
sentences written again, it is written once more from the evidence, told what was wrong; if it conflicts again there is
none.
Nobody sees a sentence before its check. What stands at the end gets its badge.

A flow begins with ``concern = yield from screened(text, plan)``, the safety screen, and, where that is not empty, ends
with ``return refused(...)``: the site's message, no evidence, nothing searched. Rules decide first and cannot be
switched off. Two roles may add to them: likeness to sentences of our own, for every text of a patient, and of staff who
speak of themselves; and, where the safety role is on, a chat model, for every text of a patient, and for staff where
death or harm is spoken of at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from localmed.agents.asking import CITED_ANSWER, AnswerInput, Draft
from localmed.agents.roles import Role
from localmed.agents.safety import LIKENESS, SAFETY, Concern, SafetyInput, Screening, site_message
from localmed.agents.safety_rules import of_oneself, screen
from localmed.domain import (
    Answer,
    AnswerStatus,
    Badge,
    Evidence,
    Hit,
    Message,
    Origin,
    Provenance,
    Statement,
    Verification,
    message,
)
from localmed.language import detect
from localmed.verification import citations, scope, sections
from localmed.verification.copies import copies
from localmed.verification.prompt_injection import has_injection
from localmed.workflows import finding, gate
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Perform, Sections, Step, attempt

CONFLICT = message("gate.conflict_twice")
UNNAMED, PARTLY, PART_MISSING = "workflow.unnamed", "workflow.partly", "workflow.part_missing"
DOUBTS = {UNNAMED: "badge.why_unnamed", PARTLY: "badge.why_partly", PART_MISSING: "badge.why_part_missing",
          "ebm.no_medicine": "badge.why_no_medicine"}  # fmt: skip  # notes that keep a badge from green


@dataclass(frozen=True, slots=True)
class Written:
    """Checked statements, withheld ones included; none where the evidence does not answer.

    ``evidence`` is what they may cite: that of the task, and passages of the sections that they quote.
    """

    statements: tuple[Statement, ...]
    verification: Verification
    notes: Notes = ()
    evidence: tuple[Evidence, ...] = ()
    drafted: tuple[Statement, ...] = ()

    @property
    def answering(self) -> tuple[Statement, ...]:
        """The statements that were drafted to answer, without what was added to quote their sections whole."""
        texts = {statement.text for statement in self.drafted}
        return tuple(statement for statement in self.statements if statement.text in texts)

    @property
    def stands(self) -> bool:
        """Whether anything is left to show."""
        return bool(citations.shown(self.statements))


def write(task: AnswerInput, plan: Plan, role: Role = CITED_ANSWER) -> Step[Written]:
    """A checked answer to ``task`` by ``role`` (whose input and output are those of ``CITED_ANSWER``).

    Evidence that speaks to a language model is left out, whoever answers, and that is told.
    """
    left = tuple(piece.marker for piece in task.evidence if has_injection(piece.passage.in_context))
    task = replace(task, evidence=tuple(piece for piece in task.evidence if piece.marker not in left))
    written = yield from _written(task, plan, role)
    account = yield from gate.badged(
        task.question, written.answering, written.evidence, written.verification, plan.jury
    )
    notes = (*written.notes, *((message("gate.planted", count=len(left)),) if left else ()))
    lacking = scope.lacking(task.question, written.answering, written.evidence, written.statements)
    partly = scope.named(lacking, written.answering, written.evidence)
    unnamed = tuple(word for word in lacking if word not in partly)
    notes += tuple(message(code, words=words) for code, words in ((UNNAMED, unnamed), (PARTLY, partly)) if words)
    return replace(written, verification=downgraded(account, notes), notes=notes)


def downgraded(verification: Verification, notes: Notes) -> Verification:
    """Never green where what is quoted does not name what narrows the question, or a part of it found nothing."""
    lacking = next((note for note in notes if note.code in DOUBTS), None)
    if lacking is None or verification.badge is not Badge.GREEN:
        return verification
    before = Badge.YELLOW if verification.badge_before is Badge.GREEN else verification.badge_before
    reason = Message(DOUBTS[lacking.code], lacking.parameters)
    return replace(verification, badge=Badge.YELLOW, badge_before=before, reason=reason)


def _written(task: AnswerInput, plan: Plan, role: Role) -> Step[Written]:
    written = yield from _drafted(task, plan, role)
    wrong = gate.to_correct(written.statements, plan)
    if not wrong:
        coherence = yield from gate.coherent(task, written.statements, plan)
        if coherence.agrees:
            return replace(written, verification=gate.with_coherence(written.verification, coherence))
        wrong = (coherence.reason,) if coherence.reason else ()
    written = yield from _drafted(replace(task, conflict=wrong), plan, role)
    coherence = yield from gate.coherent(task, written.statements, plan)
    account = gate.with_coherence(written.verification, coherence)
    if coherence.agrees:
        return replace(written, verification=account)
    return Written((), account, (*written.notes, CONFLICT))


def _drafted(task: AnswerInput, plan: Plan, role: Role) -> Step[Written]:
    """What ``role`` drafts, checked."""
    drafted, notes = yield from attempt(role, task)
    draft: Draft = drafted
    statements, evidence, continued = yield from _whole(draft.statements, task)
    checked, verification, added = yield from gate.checked(replace(draft, statements=statements), evidence, plan)
    return Written(checked, verification, draft.notes + notes + continued + added, evidence, draft.statements)


def _whole(
    statements: tuple[Statement, ...], task: AnswerInput
) -> Step[tuple[tuple[Statement, ...], tuple[Evidence, ...], Notes]]:
    """Quotations with the lists that they belong to and the warnings of their sections, and the evidence for these."""
    cited = [one for statement in statements for one in statement.citations]
    known = {piece.passage.id: piece for piece in task.evidence}
    passages = tuple(known[name].passage for name in dict.fromkeys(one.passage_id for one in cited) if name in known)
    if not passages or any(statement.origin is not Origin.EXTRACTIVE for statement in statements):
        return statements, task.evidence, ()
    read: tuple[sections.Section, ...] = yield Sections(passages)
    whole = [sections.whole(cited, section) for section in read]
    hits = [Hit(passage, 0.0) for passage in dict.fromkeys(span[0] for part in whole for span in part.spans)]
    minted = yield from finding.minted(hits, (*task.evidence, *task.beside))
    known = {piece.passage.id: piece for piece in minted if not has_injection(piece.passage.in_context)}
    spans = [span for part in whole for span in part.spans if span[0].id in known]
    quoted = (known[passage.id].quotation(start, end) for passage, start, end in spans)
    ended = [part.last for part in whole if part.last]
    notes = tuple(
        message("gate.continues", title=last.headings[-1] if last.headings else last.title, passage=last.id[:12])
        for last in ended
    )
    evidence = tuple(dict.fromkeys((*task.evidence, *known.values())))
    return tuple(_without_copies((*quoted, *statements))), evidence, notes


def _without_copies(statements: Iterable[Statement]) -> list[Statement]:
    """``statements`` without those that say what one before them says."""
    kept: list[Statement] = []
    for statement in statements:
        if not statement.citations or not any(copies(statement.text, other.text) for other in kept):
            kept.append(statement)
    return kept


def overdue(evidence: tuple[Evidence, ...]) -> Notes:
    """Which of the sources shown should have been reviewed by the day of the question."""
    late = (piece for piece in evidence if piece.overdue)
    return tuple(
        message("workflow.overdue", marker=piece.marker, date=piece.overdue, title=piece.document_title)
        for piece in late
    )


def screened(text: str, plan: Plan, own_words: bool = True) -> Step[Concern]:
    """What concern ``text`` gives, "" if none; ``plan.audience`` says who asks.

    Without ``own_words`` (a clinician's order, say) nothing is likened: the likeness was not fitted on such texts.
    """
    task = SafetyInput(text, plan.audience)
    ruled = screen(task)
    if ruled.concern:
        return ruled.concern
    if own_words and LIKENESS.name in plan.roles and (plan.audience == "patient" or of_oneself(text)):
        likened: Screening = yield Perform(LIKENESS, task)
        if likened.concern:
            return likened.concern
    if SAFETY.name not in plan.roles or not (ruled.subject or plan.audience == "patient"):
        return ""
    reply, _ = yield from attempt(SAFETY, task)
    screening: Screening = reply
    return screening.concern


def refused(question: str, plan: Plan, provenance: Provenance, workflow: str = "ask") -> Answer:
    """The answer that is the site's safety message, in the question's language: its only note."""
    language = detect(question)
    chosen = dict(plan.safety).get(language) or site_message(language, "", "")
    return Answer(AnswerStatus.SAFETY, question, language, (), (), (), provenance, notes=(chosen,), workflow=workflow)
