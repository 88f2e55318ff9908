"""From an ``Answer`` to what its reader sees: labels, gaps with reasons, badge, parts, conflicts, notes, sources.

The parts of each workflow are shown by its own module here, found by the part's type (``parts``). A source is shown
with its edition, pages and status; its age too, where it is old for its kind.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from localmed.domain import (
    Answer,
    AnswerStatus,
    Badge,
    BadgeJudge,
    Citation,
    Conflict,
    ConflictKind,
    Evidence,
    Kind,
    Message,
    Origin,
    Statement,
    Status,
    Verification,
    message,
)
from localmed.messages import known
from localmed.presentation.neutral import one_line
from localmed.presentation.parts import part_view
from localmed.presentation.statements import statement_view
from localmed.presentation.views import AnswerView, BadgeView, ConflictView, JudgeView, SourceView
from localmed.presentation.words import words

Audience = Literal["staff", "patient"]

# Years from which a source's age is said. Practice guidelines are out of date after some five years (Shekelle 2001);
# of studies and books a reader expects older ones.
OLD = {Kind.GUIDELINE: 5, Kind.LITERATURE: 10, Kind.BOOK: 10, Kind.WIKI: 10, Kind.LEAFLET: 5, Kind.LOCAL: 5}
ANY_OLD = 10
RUN = 3  # characters: most of a short English word, a Chinese one with its neighbour


def view(answer: Answer, language: str = "", audience: Audience = "staff") -> AnswerView:
    """``answer`` in ``language`` ("": its own) for ``audience``: patients are not told of commands and file names."""
    language = language or answer.language
    staff = audience == "staff"
    return AnswerView(
        language=language,
        workflow=answer.workflow,
        headline=_headline(answer, language),
        searched=_searched(answer, language),
        statements=tuple(statement_view(statement, language) for statement in answer.statements),
        badge=badge_view(answer.verification, language) if answer.verification.badge is not Badge.NONE else None,
        parts=tuple(part_view(part, language) for part in answer.parts),
        conflicts=tuple(_conflict(conflict, language) for conflict in answer.conflicts),
        notes=tuple(words(note, language) for note in answer.notes),
        checks=tuple(words(check, language) for check in answer.verification.checks) if staff else (),
        sources=tuple(_source(evidence, answer, language) for evidence in answer.evidence),
        sources_title=words(message("answer.sources"), language) if answer.evidence else "",
        opening=words(message("answer.open"), language) if staff and answer.evidence else "",
        purpose=words(Message(f"answer.purpose.{answer.workflow}"), language),
        banner=_banner(answer, language),
    )


def _banner(answer: Answer, language: str) -> str:
    """Of what a patient may be given: who releases it, or that nobody does."""
    if answer.workflow != "explain" or answer.status is not AnswerStatus.ANSWERED:
        return ""
    if not answer.released_by:
        return words(message("explain.not_released"), language)
    return words(message("explain.released", name=answer.released_by, date=answer.provenance.day), language)


def _nothing_found(answer: Answer) -> bool:
    """Whether the answer is an abstention; of a verification the parts say what was not found."""
    return answer.status is AnswerStatus.ABSTAINED and answer.workflow != "verify"


def _headline(answer: Answer, language: str) -> str:
    if _nothing_found(answer):
        wordless = any(note.code == "workflow.no_words" for note in answer.notes)
        return words(message("answer.no_question" if wordless else "answer.abstained"), language)
    in_parts = (one for part in answer.parts for one in part.statements) if answer.workflow == "departments" else ()
    statements = (*answer.statements, *in_parts)
    return words(Message(f"answer.{_written_by(statements, answer)}"), language) if statements else ""


def _written_by(statements: Sequence[Statement], answer: Answer) -> str:
    """Who wrote the statements; of several the least sure: unverified, by a model, quoted."""
    origins = {statement.origin for statement in statements}
    least = next(origin for origin in (Origin.UNVERIFIED, Origin.GENERATED, Origin.EXTRACTIVE) if origin in origins)
    by_model = any(server.startswith("chat-") for _, server in answer.provenance.prompts)
    return "quoted" if least is Origin.EXTRACTIVE and by_model else least.value


def _searched(answer: Answer, language: str) -> str:
    if not _nothing_found(answer) or any(note.code == "workflow.no_words" for note in answer.notes):
        return ""
    if not answer.searched:
        return words(message("answer.searched_nothing"), language)
    return words(message("answer.searched", names=answer.searched), language)


def _conflict(conflict: Conflict, language: str) -> ConflictView:
    text = words(Message(f"conflict.{conflict.kind.value}", (("reason", conflict_reason(conflict)),)), language)
    return ConflictView(text, one_line(conflict.theirs.quote), conflict.against)


def conflict_reason(conflict: Conflict) -> Message:
    """What the two sources say."""
    markers = {"marker": conflict.marker, "against": conflict.against}
    if conflict.kind is ConflictKind.EDITION:
        ours, theirs = conflict.editions
        return message("conflict.editions", **markers, ours=ours, theirs=theirs)
    one, other = conflict.amounts
    doses = message("conflict.doses", **markers, ours=one.written, theirs=other.written)
    return Message(f"conflict.{conflict.caution.value}", (("doses", doses),)) if conflict.caution else doses


# --- sources ----------------------------------------------------------------------------------------------------------


def _source(evidence: Evidence, answer: Answer, language: str) -> SourceView:
    passage, citations = evidence.passage, _citations(answer, evidence.marker)
    headings = " > ".join(heading for heading in passage.headings if heading != evidence.document_title)
    details: list[Message] = [_edition(evidence)]
    details += pages({page for citation in citations for page in _pages(citation)})
    details += [message("answer.ocr", confidence=passage.ocr)] if passage.ocr is not None else []
    texts = [*(words(detail, language) for detail in details), one_line(headings)]
    best = max(citations, key=lambda citation: _shared(citation.quote, answer.question), default=None)
    start, end = (best.start, best.end) if best else (0, 0)
    return SourceView(
        marker=evidence.marker,
        title=one_line(evidence.document_title),
        details=tuple(text for text in texts if text),
        warnings=tuple(words(warning, language) for warning in _warnings(evidence, answer.provenance.day)),
        passage_id=passage.id,
        file=one_line(evidence.source.rpartition("/")[2]),
        start=start,
        end=end,
    )


def pages(numbers: Collection[int]) -> list[Message]:
    """Which pages: one, a run of them as its first and last, or each."""
    first, last = min(numbers, default=0), max(numbers, default=0)
    if last - first == len(numbers) - 1 and last > first:
        return [message("answer.pages", first=first, last=last)]
    return [message("answer.page", page=page) for page in sorted(numbers)]


def _pages(citation: Citation) -> set[int]:
    return {box.page for box in citation.boxes} or {citation.page} - {0}


def _shared(quote: str, question: str) -> int:
    """How many runs of ``RUN`` characters a quotation shares with the question: the one that answers shares most."""
    one, other = (" ".join(text.casefold().split()) for text in (quote, question))
    return len(
        {one[at : at + RUN] for at in range(len(one))} & {other[at : at + RUN] for at in range(len(other) - RUN)}
    )


def _edition(evidence: Evidence) -> Message:
    return message("answer.edition", edition=evidence.edition) if evidence.edition else message("answer.no_date")


def _warnings(evidence: Evidence, day: str) -> list[Message]:
    warnings = [] if evidence.status is Status.CURRENT else [Message(f"answer.{evidence.status.value}")]
    warnings += [message("answer.overdue", date=evidence.overdue)] if evidence.overdue else []
    years = age(evidence.edition, day)
    return warnings + ([message("answer.age", count=years)] if years >= OLD.get(evidence.kind, ANY_OLD) else [])


def age(edition: str, day: str) -> int:
    """The whole years from ``edition`` to ``day`` (dates as the domain writes them), at least; 0 without both.

    Of an edition of which only the year is known the last day of that year counts.
    """
    if not (edition[:4].isdigit() and day[:4].isdigit()):
        return 0
    begun = (edition + "-12-31"[len(edition) - 4 :]) if len(edition) in (4, 7) else edition
    return max(0, int(day[:4]) - int(begun[:4]) - (day[4:] < begun[4:]))


def _citations(answer: Answer, marker: str) -> list[Citation]:
    """The answer's citations of one source, in its order; then those of its parts and of possible conflicts."""
    statements: Sequence[Statement] = [*answer.statements, *(one for part in answer.parts for one in part.statements)]
    citations = [citation for statement in statements for citation in statement.citations]
    citations += [conflict.theirs for conflict in answer.conflicts]
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
        judged=words(message("badge.judged", judges=tuple(_named(*judge) for judge in judges)), language),
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
    """Name and errors; a judge that this version does not know is called as it calls itself."""
    code = f"badge.judge.{judge.name}"
    name = Message(code) if known(code) else message("literal", text=one_line(judge.name))
    if not judge.wrong:
        return name, message("badge.not_validated")
    errors = tuple(Message(f"badge.wrong_{criterion}", (("percent", share * 100),)) for criterion, share in judge.wrong)
    return name, message("badge.measured", data=judge.measured_on, errors=errors)


def _named(name: Message, errors: Message) -> Message:
    return message("badge.judge_errors", judge=name, errors=errors)
