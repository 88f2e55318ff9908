"""The plan of a question, the safety screen, and evidence for hits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localmed.answering.check import CHECK
from localmed.domain import Answer, AnswerStatus, Evidence, Hit, Kind, Message, Provenance, SearchFilter, message
from localmed.retrieval.tiers import Tier
from localmed.safety.safety import LIKENESS, SAFETY, Audience, Concern, SafetyInput, Screening, site_message
from localmed.safety.safety_rules import of_oneself, screen
from localmed.text.language import detect
from localmed.workflows.flow import Cite, Perform, Step, attempt

Notes = tuple[Message, ...]
READ = 4_000  # characters of a question, some 700 words; safety rules read all of it before


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is asked: tiers of collections and the number of passages read.

    ``roles``: names of active roles; ``chat``: those that a chat model serves; ``jury``: those that judge the badge of
    a thorough answer; ``judge``: the judge of entailment, or "". ``own_knowledge``: the site allows a thorough answer
    without a source, labelled so. ``safety``: the site's (language, message) for somebody in danger. ``day``: the day
    of the question.
    """

    tiers: tuple[Tier, ...]
    passages: int
    roles: frozenset[str] = frozenset()
    own_knowledge: bool = False
    audience: Audience = "staff"
    safety: tuple[tuple[str, Message], ...] = ()
    jury: tuple[str, ...] = ()
    judge: str = ""
    chat: frozenset[str] = frozenset()
    day: str = ""

    @property
    def searched(self) -> tuple[str, ...]:
        """The collections of all tiers."""
        return tuple(dict.fromkeys(name for tier in self.tiers for name in tier.collections))

    @property
    def lacking(self) -> Notes:
        """A note on collections that the tiers name and the library lacks."""
        names = dict.fromkeys(name for tier in self.tiers for name in tier.skipped)
        shown = tuple(Message(f"source.kind.{name}") if name in set(Kind) else name for name in names)
        return (message("workflow.skipped", names=shown),) if shown else ()

    @property
    def outside(self) -> Notes:
        """A note on collections that no tier names."""
        names = tuple(name for tier in self.tiers for name in tier.outside)
        return (message("ebm.outside", names=names),) if names else ()

    @property
    def judged(self) -> bool:
        """Whether a model judges statements."""
        return bool(self.judge) or CHECK.name in self.chat

    def within(self, filters: SearchFilter) -> SearchFilter:
        """``filters`` within all tiers; the whole library needs no condition, which is faster."""
        return filters if any(tier.whole for tier in self.tiers) else replace(filters, collections=self.searched)


def bounded(question: str) -> tuple[str, Notes]:
    """The part of ``question`` that is answered, and a note if the rest was cut."""
    note = message("workflow.question_cut", characters=len(question), read=READ)
    return question[:READ], (note,) if len(question) > READ else ()


def minted(hits: Sequence[Hit], known: Sequence[Evidence] = ()) -> Step[tuple[Evidence, ...]]:
    """Evidence for ``hits`` in their order; ``known`` evidence keeps its markers, the rest get the next ones."""
    by_passage = {piece.passage.id: piece for piece in known}
    fresh = tuple({hit.passage.id: hit for hit in hits if hit.passage.id not in by_passage}.values())
    first = max((int(piece.marker) for piece in known), default=0) + 1
    pieces: tuple[Evidence, ...] = (yield Cite(fresh, first)) if fresh else ()
    by_passage |= {piece.passage.id: piece for piece in pieces}
    return tuple(by_passage[hit.passage.id] for hit in hits)


# --- the safety screen ------------------------------------------------------------------------------------------------

# Every workflow on a person's text begins with ``concern = yield from screened(text, plan)`` and ends with
# ``return refused(...)`` if there is a concern: the site's message, nothing searched. Rules decide first and cannot be
# switched off. Two roles may add to them: likeness to known sentences, for patients; and a chat model (role
# ``safety``), for patients and for staff who mention death or harm. For staff who write about themselves a mere
# likeness puts the message above what is found (``cared``): "may I restart my insulin" is like a disclosure too.


def screened(text: str, plan: Plan, own_words: bool = True) -> Step[Concern]:
    """The concern of ``text``, or "".

    ``own_words``: False for a clinician's order or similar, on which the likeness was not fitted.
    """
    task = SafetyInput(text, plan.audience)
    ruled = screen(task)
    if ruled.concern:
        return ruled.concern
    if own_words and plan.audience == "patient" and (concern := (yield from likened(text, plan))):
        return concern
    if SAFETY.name not in plan.roles or not (ruled.subject or plan.audience == "patient"):
        return ""
    reply, _ = yield from attempt(SAFETY, task)
    screening: Screening = reply
    return screening.concern


def likened(text: str, plan: Plan) -> Step[Concern]:
    """The concern of a text by mere likeness, or ""."""
    if LIKENESS.name not in plan.roles:
        return ""
    screening: Screening = yield Perform(LIKENESS, SafetyInput(text, plan.audience))
    return screening.concern


def cared(text: str, plan: Plan) -> Step[Notes]:
    """For staff who write of themselves, in words that are like a disclosure: the site's message."""
    if plan.audience == "patient" or not of_oneself(text) or not (yield from likened(text, plan)):
        return ()
    return (message("workflow.of_yourself", text=safety_message(text, plan)),)


def refused(question: str, plan: Plan, provenance: Provenance, workflow: str = "ask") -> Answer:
    """The answer with the site's safety message in the question's language as its only note."""
    language, notes = detect(question), (safety_message(question, plan),)
    return Answer(AnswerStatus.SAFETY, question, language, (), (), (), provenance, notes=notes, workflow=workflow)


def safety_message(text: str, plan: Plan) -> Message:
    """The site's message for somebody in danger, in the language of ``text``."""
    language = detect(text)
    return dict(plan.safety).get(language) or site_message(language, "", "")


def overdue(evidence: tuple[Evidence, ...]) -> Notes:
    """Notes on sources whose review is overdue."""
    late = (piece for piece in evidence if piece.overdue)
    return tuple(
        message("workflow.overdue", marker=piece.marker, date=piece.overdue, title=piece.document_title)
        for piece in late
    )
