"""Answering from evidence, as every workflow does it: a draft, the gate, one more try, or nothing.

A draft passes ``gate``. Sentences that the coherence role says conflict with their sources (LINS, PCA), or, where the
site wants that, are not supported, are written once more, told what was wrong; the others stay as they were. That
label alone removes no sentence: what conflicts again stays, and that is told. Where nothing of a model's draft stands,
what stands lacks a value that was asked for, or it wrote none from passages that the rules would answer from, the
rules' quotation is given, and that is told too.
Nobody sees a sentence before its check. What stands at the end gets its badge.

A flow begins with ``concern = yield from screened(text, plan)``, the safety screen, and, where that is not empty, ends
with ``return refused(...)``: the site's message, no evidence, nothing searched. Rules decide first and cannot be
switched off. Two roles may add to them: likeness to sentences of our own, for every text of a patient, and of staff who
speak of themselves; and, where the safety role is on, a chat model, for every text of a patient, and for staff where
death or harm is spoken of at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from localmed.agents.asking import CITED_ANSWER, NOT_COVERED, AnswerInput, Draft, Relevance
from localmed.agents.roles import Role
from localmed.agents.safety import LIKENESS, SAFETY, Concern, SafetyInput, Screening, site_message
from localmed.agents.safety_rules import of_oneself, screen
from localmed.clinical import asking
from localmed.domain import (
    Answer,
    AnswerSection,
    AnswerStatus,
    Badge,
    Evidence,
    Hit,
    Message,
    Origin,
    Passage,
    Provenance,
    Statement,
    Verification,
    message,
)
from localmed.language import detect
from localmed.verification import cases, citations, scope, sections, support, tied
from localmed.verification.copies import copies
from localmed.verification.prompt_injection import planted
from localmed.workflows import finding, gate
from localmed.workflows.finding import Notes, Plan
from localmed.workflows.flow import Coverage, Perform, Sections, Step, attempt

CONFLICTS, QUOTED, DOUBTED = "gate.conflict_stays", "gate.quoted_instead", "gate.found_unhelpful"
VALUE_MISSING, LACKS_FIRST = "gate.quoted_for_value", "gate.lacks_first"
ACROSS = "workflow.across"
UNNAMED, PARTLY, PART_MISSING = "workflow.unnamed", "workflow.partly", "workflow.part_missing"
UNSURE = "workflow.unsure"
FIRST = 3  # of the rules' quotations, that a model's answer should rest on where they give a value that is asked for
DOUBTS = {  # notes that keep a badge from green
    CONFLICTS: "badge.why_conflict",
    DOUBTED: "badge.why_doubted",
    LACKS_FIRST: "badge.why_lacks_first",
    ACROSS: "badge.why_across",
    UNNAMED: "badge.why_unnamed",
    PARTLY: "badge.why_partly",
    NOT_COVERED: "badge.why_not_covered",
    PART_MISSING: "badge.why_part_missing",
    UNSURE: "badge.why_unsure",
    "ebm.no_medicine": "badge.why_no_medicine",
}


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
        return tuple(one for one in self.statements if one.text in texts or support.stands_in(one))

    @property
    def stands(self) -> bool:
        """Whether anything is left to show."""
        return bool(citations.shown(self.statements))


def write(
    task: AnswerInput,
    plan: Plan,
    role: Role = CITED_ANSWER,
    relevance: Relevance | None = None,
    by_rules: bool = False,
) -> Step[Written]:
    """A checked answer to ``task`` with its badge; see ``composed``."""
    written = yield from composed(task, plan, role, relevance, by_rules)
    return replace(written, verification=(yield from badged(task.question, written, plan)))


def composed(
    task: AnswerInput,
    plan: Plan,
    role: Role = CITED_ANSWER,
    relevance: Relevance | None = None,
    by_rules: bool = False,
) -> Step[Written]:
    """A checked answer to ``task`` by ``role`` (whose input and output are those of ``CITED_ANSWER``), without badge.

    ``relevance`` says how the evidence was judged; ``by_rules`` asks no model. Evidence that speaks to a language model
    is left out, whoever answers, and that is told.
    """
    left = tuple(piece.marker for piece in task.evidence if planted(piece))
    evidence = tuple(piece for piece in task.evidence if piece.marker not in left)
    task = replace(task, evidence=evidence, audience=plan.audience, day=plan.day)
    if by_rules:
        written = yield from _drafted(task, plan, role, by_rules=True)
    else:
        written = yield from _written(task, plan, role, relevance)
    written = replace(written, statements=gate.completed(written.statements, written.evidence, task.context))
    notes = (*written.notes, *((message("gate.planted", count=len(left)),) if left else ()))
    lacking = scope.lacking(task.question, written.answering, written.evidence, written.statements)
    partly = scope.named(lacking, written.answering, written.evidence)
    unnamed = tuple(word for word in lacking if word not in partly)
    notes += tuple(message(code, words=words) for code, words in ((UNNAMED, unnamed), (PARTLY, partly)) if words)
    notes += _across(task.question, written)
    return replace(written, notes=notes)


def badged(question: str, written: Written, plan: Plan) -> Step[Verification]:
    """The account of what was ``written`` to ``question``, with its badge: it takes no sentence back."""
    account = yield from gate.badged(question, written.answering, written.evidence, written.verification, plan.jury)
    return downgraded(account, written.notes)


def untied(question: str, written: Written) -> Step[Message | None]:
    """Why what rules quoted cannot be tied to what is asked, if so; a model's words are for the judges."""
    shown = citations.shown(written.answering)
    if not shown or any(one.origin is not Origin.EXTRACTIVE or not one.citations for one in shown):
        return None
    unnamed = [dict(note.parameters)["words"] for note in written.notes if note.code == UNNAMED]
    words = [str(word) for listed in unnamed if isinstance(listed, tuple) for word in listed]
    first = scope.lacking(question, shown[:1], written.evidence)
    if others := tied.another(question, words) or tied.others_than(question, first):
        return message("workflow.differing", words=others)
    known = {piece.marker: piece.passage for piece in written.evidence}
    cited = known[shown[0].citations[0].marker]
    if others := tied.other_conditions(question, [known[one.citations[0].marker] for one in shown]):
        return message("workflow.differing", words=others)
    own = [one for one in shown if one.citations and _beside(known[one.citations[0].marker], cited)]
    if missing := tied.unfilled(question, own):
        return missing
    if not tied.limits(question):
        return None
    (covers,) = yield Coverage((cited,))
    others = tied.excluded(question, covers, shown[0].text, cited.title)
    return message("workflow.differing", words=others) if others else None


def _beside(passage: Passage, first: Passage) -> bool:
    """Whether both stand in one section."""
    return (passage.document_id, passage.headings) == (first.document_id, first.headings)


def _across(question: str, written: Written) -> Notes:
    """Which other languages than the question's the cited documents are in: no rule can tell that the two agree."""
    known = {piece.marker: piece.passage.language for piece in written.evidence}
    cited = [one.marker for statement in citations.shown(written.statements) for one in statement.citations]
    other = sorted({known[marker] for marker in cited if marker in known} - {detect(question), ""})
    return (message(ACROSS, languages=tuple(Message(f"source.language.{name}") for name in other)),) if other else ()


def downgraded(verification: Verification, notes: Notes) -> Verification:
    """Never green where a note says why what is quoted may not be it (``DOUBTS``)."""
    lacking = next((note for note in notes if note.code in DOUBTS), None)
    if lacking is None or verification.badge is not Badge.GREEN:
        return verification
    before = Badge.YELLOW if verification.badge_before is Badge.GREEN else verification.badge_before
    reason = Message(DOUBTS[lacking.code], lacking.parameters)
    return replace(verification, badge=Badge.YELLOW, badge_before=before, reason=reason)


def _written(task: AnswerInput, plan: Plan, role: Role, relevance: Relevance | None) -> Step[Written]:
    if relevance and relevance.doubted:
        quoted: Written = yield from _drafted(task, plan, role, by_rules=True)
        return replace(quoted, notes=(*quoted.notes, message(DOUBTED)))
    written: Written = yield from _corrected(task, plan, role)
    quotable = written.statements or relevance is None or relevance.quotable
    whole = written.stands and _gives_values(task.question, written)
    if role.name not in plan.chat or not quotable:
        return written
    if whole:
        return (yield from _beside_rules(task, role, written))
    quoted = yield from _drafted(task, plan, role, by_rules=True)
    if not quoted.stands or (written.stands and not _gives_values(task.question, quoted)):
        return written
    account = citations.both(quoted.verification, written.verification)
    why = message(VALUE_MISSING if written.stands else QUOTED)
    return replace(quoted, verification=account, notes=(*written.notes, *quoted.notes, why))


def _beside_rules(task: AnswerInput, role: Role, written: Written) -> Step[Written]:
    """A model's answer, with a note where it rests on none of what the rules would quote first: it may lack the core.

    Nobody's judgement of what a model left out is sure, its own least of all: such an answer is never green.
    """
    if all(one.origin is Origin.EXTRACTIVE for one in written.statements):
        return written
    draft: Draft = yield Perform(role, task, by_rules=True)
    passages = {piece.passage.id: piece.passage for piece in written.evidence}
    slots, shown = asking.slots(task.question), citations.shown(written.statements)
    first = draft.statements[:1]
    if slots:  # another value that is asked for
        first += tuple(one for one in draft.statements[1:FIRST] if asking.filled(slots, (one.text,)))
    quoted = [citation for statement in first for citation in statement.citations[:1]]
    if all(any(support.uses(one, citation, passages) for one in shown) for citation in quoted):
        return written
    return replace(written, notes=(*written.notes, message(LACKS_FIRST)))


def _gives_values(question: str, written: Written) -> bool:
    """Whether what is shown gives every value that ``question`` asks for."""
    return asking.filled(asking.slots(question), (one.text for one in citations.shown(written.statements)))


def _corrected(task: AnswerInput, plan: Plan, role: Role) -> Step[Written]:
    """What ``role`` drafts, with the sentences that were found wrong written once more."""
    written: Written = yield from _drafted(task, plan, role)
    wrong = gate.to_correct(written.statements, plan)
    coherence = yield from gate.coherent(task, written.statements, plan)
    account = gate.with_coherence(written.verification, coherence)
    reasons = (*wrong, *((coherence.reason,) if coherence.reason else ()))
    if not reasons:
        return replace(written, verification=account)
    failed = {statement.text for statement in written.statements if wrong and support.unsupported(statement)}
    doubtful = (*failed, *coherence.conflicting)
    first = tuple(statement.text for statement in written.statements if statement.text in doubtful)
    again: Written = yield from _drafted(replace(task, conflict=reasons, first=first), plan, role)
    return _edited(replace(written, verification=account), again, failed, frozenset(coherence.conflicting))


def _edited(written: Written, again: Written, failed: Collection[str], conflicting: Collection[str]) -> Written:
    """The first draft, its wrong sentences in favour of those that were written ``again``.

    Without one that stands, what only was said to conflict stays as it was, which is told.
    """
    kept = [statement for statement in written.statements if statement.text not in {*failed, *conflicting}]
    texts = {statement.text for statement in kept}
    fresh = [statement for statement in again.statements if statement.text not in texts]
    notes = written.notes + again.notes
    if not citations.shown(fresh):
        kept, fresh = list(written.statements), []
    if any(statement.text in conflicting for statement in citations.shown((*kept, *fresh))):
        notes += (message(CONFLICTS),)
    statements = (*kept, *fresh)
    account = replace(
        written.verification,
        statements_checked=len(statements),
        statements_withheld=sum(statement.withheld for statement in statements),
        markers_rejected=written.verification.markers_rejected + again.verification.markers_rejected,
    )
    evidence = tuple(dict.fromkeys((*written.evidence, *again.evidence)))
    return Written(statements, account, tuple(dict.fromkeys(notes)), evidence, (*written.drafted, *again.drafted))


def _drafted(task: AnswerInput, plan: Plan, role: Role, by_rules: bool = False) -> Step[Written]:
    """What ``role`` drafts, checked."""
    drafted, notes = ((yield Perform(role, task, by_rules=True)), ()) if by_rules else (yield from attempt(role, task))
    draft: Draft = drafted
    statements, evidence, continued = yield from _whole(draft.statements, task)
    checked, verification, added = yield from gate.checked(
        replace(draft, statements=statements), evidence, plan, context=task.context
    )
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
    known = {piece.passage.id: piece for piece in minted if not planted(piece)}
    spans = [span for part in whole for span in part.spans if span[0].id in known]
    beyond = frozenset(span for part in whole for span in part.beyond)
    rest = [known[passage.id].quotation(*span) for passage, *span in spans if (passage.id, *span) in beyond]
    quoted = [known[passage.id].quotation(*span) for passage, *span in spans if (passage.id, *span) not in beyond]
    ended = [part.last for part in whole if part.last]
    notes = tuple(
        message("gate.continues", title=last.headings[-1] if last.headings else last.title, passage=last.id[:12])
        for last in ended
    )
    evidence = tuple(dict.fromkeys((*task.evidence, *known.values())))
    in_lists = frozenset(span for part in whole for span in part.lists)
    first = [
        one for one in statements[:1] if in_lists.isdisjoint((c.passage_id, c.start, c.end) for c in one.citations)
    ]
    ordered = _without_copies((*first, *quoted, *statements, *rest))
    behind = {statement.text for statement in rest} - {statement.text for statement in (*first, *quoted, *statements)}
    warned = frozenset(span for part in whole for span in part.warnings)
    more = {
        one.text
        for one in statements[1:]
        if all((c.passage_id, c.start, c.end) not in in_lists | warned for c in one.citations)
    }
    caution_spans = frozenset(span for part in whole for span in part.cautions)
    cautions = {
        one.text
        for one in ordered
        if one.text != statements[0].text
        and all((c.passage_id, c.start, c.end) in caution_spans for c in one.citations)
    }
    return tuple(_in_order(task.question, ordered, statements[0], behind, more, cautions)), evidence, notes


def _in_order(
    question: str,
    ordered: Sequence[Statement],
    first: Statement,
    behind: Collection[str],
    more: Collection[str],
    cautions: Collection[str],
) -> Iterator[Statement]:
    """``ordered``: what answers, then the cautions, then what only completes a section or is for another case.

    A caution is never behind: "do not give it into a vein" is of another route, and meant for whoever reads the dose.
    """
    off = {
        one.text
        for one in ordered
        if one.text not in cautions
        and (
            one.text in behind
            or (one.text != first.text and (cases.other(question, one.text) or cases.beside(one.text, first.text)))
            or (one.text in more and tied.answered(question, first.text, one.text))
        )
    }
    yield from (one for one in ordered if one.text not in off and one.text not in cautions)
    yield from (replace(one, section=AnswerSection.CAUTIONS) for one in ordered if one.text in cautions)
    yield from (replace(one, section=AnswerSection.CONTINUES) for one in ordered if one.text in off)


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
