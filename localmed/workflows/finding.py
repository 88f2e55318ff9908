"""How a question is asked: its plan, the safety screen, and evidence for what is found."""

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
    """How a question is asked: the tiers of collections and the passages read.

    ``roles`` are the names of those that are on, ``chat`` those that a chat model serves, ``jury`` those that judge the
    badge of a thorough answer, ``judge`` the judge of entailment ("": none). ``own_knowledge`` says whether the site
    allows a thorough answer without a source, labelled so. ``audience`` is who asks; ``safety`` is what the site says
    to somebody in danger: (language, message). ``day`` is the day of the question.
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
        """What the tiers name and the library does not hold, as a note: nothing was searched in its place."""
        names = dict.fromkeys(name for tier in self.tiers for name in tier.skipped)
        shown = tuple(Message(f"source.kind.{name}") if name in set(Kind) else name for name in names)
        return (message("workflow.skipped", names=shown),) if shown else ()

    @property
    def judged(self) -> bool:
        """Whether a model judges what a text says of a statement."""
        return bool(self.judge) or CHECK.name in self.chat

    def within(self, filters: SearchFilter) -> SearchFilter:
        """``filters`` within all tiers; the whole library needs no condition, which is faster."""
        return filters if any(tier.whole for tier in self.tiers) else replace(filters, collections=self.searched)


def bounded(question: str) -> tuple[str, Notes]:
    """What of ``question`` is answered, and that the rest was left out."""
    note = message("workflow.question_cut", characters=len(question), read=READ)
    return question[:READ], (note,) if len(question) > READ else ()


def minted(hits: Sequence[Hit], known: Sequence[Evidence] = ()) -> Step[tuple[Evidence, ...]]:
    """Evidence for ``hits``, in their order: what is ``known`` keeps its marker, the others get the next ones."""
    by_passage = {piece.passage.id: piece for piece in known}
    fresh = tuple({hit.passage.id: hit for hit in hits if hit.passage.id not in by_passage}.values())
    first = max((int(piece.marker) for piece in known), default=0) + 1
    pieces: tuple[Evidence, ...] = (yield Cite(fresh, first)) if fresh else ()
    by_passage |= {piece.passage.id: piece for piece in pieces}
    return tuple(by_passage[hit.passage.id] for hit in hits)


# --- the safety screen ------------------------------------------------------------------------------------------------

# Every workflow that takes a person's text begins with ``concern = yield from screened(text, plan)`` and, where that is
# not empty, ends with ``return refused(...)``: the site's message, no evidence, nothing searched. Rules decide first
# and cannot be switched off. Two roles may add to them: likeness to sentences of our own, for every text of a patient,
# and of staff who speak of themselves; and, where the safety role is on, a chat model, for every text of a patient, and
# for staff where death or harm is spoken of at all.


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


def overdue(evidence: tuple[Evidence, ...]) -> Notes:
    """Which of the sources shown should have been reviewed by the day of the question."""
    late = (piece for piece in evidence if piece.overdue)
    return tuple(
        message("workflow.overdue", marker=piece.marker, date=piece.overdue, title=piece.document_title)
        for piece in late
    )
