"""Renders an ``Answer`` for a reader: headline, statements, badge, parts, conflicts, notes, sources.

Parts of the larger workflows are rendered by the function registered for their type (``VIEWS``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from localmed.domain import (
    Answer,
    AnswerStatus,
    Badge,
    BadgeJudge,
    Citation,
    Conflict,
    Evidence,
    Message,
    Origin,
    Statement,
    Support,
    Verification,
    message,
)
from localmed.domain.parts import ConceptPart, DepartmentPart, OlderPart, SourcePlanPart
from localmed.messages import ASIDE, joined, known
from localmed.presentation import order, practice, verify
from localmed.presentation.finding import NOT_SEARCHED
from localmed.presentation.finding import view as sections_view
from localmed.presentation.neutral import one_line, words
from localmed.presentation.sources import edition, pages, warnings
from localmed.presentation.statements import citation_view, definition_rows, in_sections, statement_view
from localmed.presentation.views import AnswerView, BadgeView, ConflictView, JudgeView, PartView, Row, SourceView

Audience = Literal["staff", "patient"]

RUN = 3  # characters: most of a short English word, a Chinese one with its neighbour


NOTICES = {  # notes that nobody may miss
    NOT_SEARCHED,
    "workflow.of_yourself",
    "workflow.withdrawn_because",
    "workflow.withdrawn_lately",
    "workflow.reinstated",
    "answer.collection_stopped",
    "answer.superseded_since",
    "answer.withdrawn_since",
    "answer.withdrawn_by_source",
}


def view(answer: Answer, language: str = "", audience: Audience = "staff") -> AnswerView:
    """``answer`` in ``language`` ("": its own) for ``audience``. Patients are not shown commands and file names."""
    language = language or answer.language
    staff, sources = audience == "staff", _listed_sources(answer)
    purpose = "explain_staff" if staff and answer.workflow == "explain" else answer.workflow
    return AnswerView(
        language=language,
        workflow=answer.workflow,
        headline=headline(answer, language),
        searched=searched(answer, language),
        statements=in_sections(answer.statements, answer.evidence, language),
        badge=badge_view(answer.verification, language) if answer.verification.badge is not Badge.NONE else None,
        parts=tuple(part_view(part, language) for part in answer.parts),
        conflicts=tuple(_conflict(conflict, answer.by_marker, language) for conflict in answer.conflicts),
        notes=tuple(words(note, language) for note in answer.notes if not NOTICES & {note.code}),
        checks=tuple(words(check, language) for check in answer.verification.checks) if staff else (),
        sources=tuple(_source(evidence, answer, language) for evidence in sources),
        sources_title=words(message("answer.sources"), language) if sources else "",
        opening=words(message("answer.open"), language) if staff and answer.evidence else "",
        purpose=words(Message(f"answer.purpose.{purpose}"), language),
        banner=_banner(answer, language),
        finding=sections_view(answer, language),
        notices=tuple(words(note, language) for note in answer.notes if NOTICES & {note.code}),
    )


def _listed_sources(answer: Answer) -> tuple[Evidence, ...]:
    """The sources listed below an answer; with sections only those that it cites."""
    if answer.receipts is None:
        return answer.evidence
    cited = {citation.marker for statement in answer.all_statements for citation in statement.citations}
    return tuple(piece for piece in answer.evidence if piece.marker in cited)


def _banner(answer: Answer, language: str) -> str:
    """For staff: that this is not the patient's leaflet, and who released that one, or that nobody did."""
    if answer.workflow != "explain" or answer.status is not AnswerStatus.ANSWERED:
        return ""
    if not answer.released_by:
        return words(message("explain.not_released"), language)
    date = answer.released_on or answer.provenance.day
    released = message("explain.released", name=answer.released_by, date=date)
    return words(message("explain.for_staff", released=released), language)


def _nothing_found(answer: Answer) -> bool:
    """Whether the answer is an abstention. The parts of a verification say what was not found."""
    return answer.status is AnswerStatus.ABSTAINED and answer.workflow != "verify"


def headline(answer: Answer, language: str) -> str:
    """How a question ended, or who wrote the sentences."""
    if _nothing_found(answer):
        return words(message("answer.abstained"), language)
    if answer.status is AnswerStatus.SECTIONS:
        return words(message("answer.sections"), language)
    statements = answer.all_statements if answer.workflow == "departments" else answer.statements
    return words(Message(f"answer.{_written_by(statements, answer)}"), language) if statements else ""


def _written_by(statements: Sequence[Statement], answer: Answer) -> str:
    """Who wrote the statements; if several, the least reliable: unverified, by a model (not judged), quoted."""
    origins = {statement.origin for statement in statements}
    verdicts = [one.verdict for one in statements if one.origin is Origin.GENERATED]
    least = next(origin for origin in (Origin.UNVERIFIED, Origin.GENERATED, Origin.EXTRACTIVE) if origin in origins)
    by_model = any(server.startswith("chat-") for _, server in answer.provenance.prompts)
    if least is Origin.GENERATED and not any(one and one.support is not Support.UNCHECKED for one in verdicts):
        return "unjudged"
    return "quoted" if least is Origin.EXTRACTIVE and by_model else least.value


def searched(answer: Answer, language: str) -> str:
    """The collections that were searched without a result; "" where something was found."""
    if not _nothing_found(answer):
        return ""
    if not answer.searched:
        return words(message("answer.searched_nothing"), language)
    return words(message("answer.searched", names=answer.searched), language)


def _conflict(conflict: Conflict, known: Mapping[str, Evidence], language: str) -> ConflictView:
    dates = dict(zip(("ours", "theirs"), conflict.editions, strict=False))
    text = words(message(f"conflict.{conflict.kind.value}", **dates), language)
    titles = (_dated(known[marker], language) for marker in (conflict.marker, conflict.against))
    return ConflictView(text, citation_view(conflict.ours), citation_view(conflict.theirs), *titles)


def _dated(evidence: Evidence, language: str) -> str:
    return joined(filter(None, (one_line(evidence.document_title), evidence.edition)), language, ASIDE)


# --- sources ----------------------------------------------------------------------------------------------------------


def _source(evidence: Evidence, answer: Answer, language: str) -> SourceView:
    passage, citations = evidence.passage, _citations(answer, evidence.marker)
    headings = " > ".join(heading for heading in passage.headings if heading != evidence.document_title)
    details: list[Message] = [edition(evidence)]
    details += pages({page for citation in citations for page in _pages(citation)})
    details += [message("answer.ocr", confidence=passage.ocr)] if passage.ocr is not None else []
    texts = [*(words(detail, language) for detail in details), one_line(headings)]
    best = max(citations, key=lambda citation: _common_runs(citation.quote, answer.question), default=None)
    start, end = (best.start, best.end) if best else (0, 0)
    return SourceView(
        marker=evidence.marker,
        title=one_line(evidence.document_title),
        details=tuple(text for text in texts if text),
        warnings=tuple(words(warning, language) for warning in warnings(evidence, answer.provenance.day)),
        passage_id=passage.id,
        file=one_line(evidence.source.rpartition("/")[2]),
        start=start,
        end=end,
    )


def _pages(citation: Citation) -> set[int]:
    return {box.page for box in citation.boxes} or {citation.page} - {0}


def _common_runs(quote: str, question: str) -> int:
    """The number of runs of ``RUN`` characters that a quotation shares with the question."""
    one, other = (" ".join(text.casefold().split()) for text in (quote, question))
    return len(
        {one[at : at + RUN] for at in range(len(one))} & {other[at : at + RUN] for at in range(len(other) - RUN)}
    )


def _citations(answer: Answer, marker: str) -> list[Citation]:
    """The citations of one source, in the answer's order."""
    citations = [citation for statement in answer.all_statements for citation in statement.citations]
    return [citation for citation in citations if citation.marker == marker]


# --- the badge --------------------------------------------------------------------------------------------------------


def badge_view(verification: Verification, language: str) -> BadgeView:
    """The badge of an answer that has one."""
    title = Message(f"badge.{verification.badge.value}")
    reason = words(verification.reason, language)
    differs = verification.badge_before is not verification.badge
    before = Message(f"badge.{verification.badge_before.value}")
    judges = tuple(_judge(judge) for judge in verification.badge_judges)
    return BadgeView(
        badge=verification.badge,
        title=words(title, language),
        reason=words(message("badge.why", badge=title, reason=reason), language),
        judges=tuple(JudgeView(words(name, language), words(errors, language)) for name, errors in judges),
        judged=words(
            message(
                "badge.judged",
                judges=tuple(message("badge.judge_errors", judge=name, errors=errors) for name, errors in judges),
            ),
            language,
        ),
        before=words(message("badge.before", badge=before), language) if differs else "",
        alone=words(message("badge.alone", badges=_alone(verification)), language) if verification.badges else "",
    )


def _alone(verification: Verification) -> tuple[Message, ...]:
    return tuple(
        message(
            "badge.of_kind", kind=Message(f"source.kind.{kind or 'unnamed'}"), badge=Message(f"badge.{badge.value}")
        )
        for kind, badge in verification.badges
    )


def _judge(judge: BadgeJudge) -> tuple[Message, Message]:
    """Name and error rates of a judge; one that this version does not know has its own name."""
    code = f"badge.judge.{judge.name}"
    name = Message(code) if known(code) else message("literal", text=one_line(judge.name))
    if not judge.wrong:
        return name, message("badge.not_validated")
    errors = tuple(Message(f"badge.wrong_{criterion}", (("percent", share * 100),)) for criterion, share in judge.wrong)
    return name, message("badge.measured", data=judge.measured_on, errors=errors)


# --- parts ------------------------------------------------------------------------------------------------------------


Shown = Callable[[Any, str], PartView]  # a part of the type that it is registered for, and the reader's language


def part_view(part: Any, language: str) -> PartView:
    """``part`` in ``language``."""
    return VIEWS[type(part)](part, language)


def older(part: OlderPart, language: str) -> PartView:
    """Sentences that an earlier version showed."""
    statements = tuple(statement_view(statement, language) for statement in part.statements)
    return PartView(words(message("answer.older"), language), (), statements)


def department(part: DepartmentPart, language: str) -> PartView:
    """A department: the warning signs that come first there, its floor, and the cited reasons."""
    floor = one_line(part.floor) or words(message("departments.no_floor"), language)
    signs = tuple(Row(words(message("departments.go_first"), language), words(sign, language)) for sign in part.signs)
    rows = (Row(words(message("departments.floor"), language), floor), *signs)
    statements = tuple(statement_view(one, language) for one in part.statements)
    return PartView(one_line(part.name), rows, statements, lower=part.lower)


def source(part: SourcePlanPart, language: str) -> PartView:
    """The queries to a source, a line each, and the number of passages returned."""
    label = words(message("plan.query"), language)
    queries = tuple(Row(label, one_line(query)) for query in part.queries)
    passages = Row(words(message("column.passages"), language), str(part.passages))
    return PartView(words(message(f"source.kind.{part.source}"), language), (*queries, passages))


def concept(part: ConceptPart, language: str) -> PartView:
    """A concept's definition with its source, then its relations as the graph names them."""
    relations = tuple(Row(one_line(predicate), one_line(name)) for predicate, name in part.relations)
    return PartView(one_line(part.name), (*definition_rows(part.definition, language), *relations))


VIEWS: Mapping[type, Shown] = {
    OlderPart: older,
    SourcePlanPart: source,
    ConceptPart: concept,
    DepartmentPart: department,
    **order.VIEWS,
    **practice.VIEWS,
    **verify.VIEWS,
}
