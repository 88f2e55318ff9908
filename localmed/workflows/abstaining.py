"""An abstention: its reason, and the sentences nearest to the question, which are no answer."""

from __future__ import annotations

from dataclasses import replace

from localmed.agents.evidence import nearest_sentence
from localmed.domain import Answer, Evidence, Message, message
from localmed.domain.parts import NearestPart
from localmed.workflows.answering import Written
from localmed.workflows.finding import TierSearch
from localmed.workflows.flow import Cite, Flow

NEAREST = 3  # passages shown with an abstention
NOT_ENOUGH = message("workflow.not_enough")
ALL_WITHHELD = message("workflow.all_withheld")


def abstained(answer: Answer, reason: Message) -> Answer:
    """``answer`` as an abstention, with its reason."""
    return replace(answer, notes=(*answer.notes, reason))


def without_statements(
    answer: Answer, written: Written, evidence: tuple[Evidence, ...] = (), reason: Message | None = None
) -> Answer:
    """``answer`` as an abstention: nothing was drafted, all was withheld, or there is a ``reason``."""
    nearest = with_nearest_sentences(answer, evidence) if reason or not written.statements else answer
    nearest = replace(nearest, verification=written.verification, notes=answer.notes + written.notes)
    return abstained(nearest, reason or (ALL_WITHHELD if written.statements else NOT_ENOUGH))


def abstained_with_nearest(answer: Answer, searched: TierSearch) -> Flow:
    """``answer`` as an abstention with its reason, and the nearest passages to read, which are no answer."""
    lacking = [tried.relevance.differing for tried in searched.tried if tried.result.hits]
    differing = tuple(word for word in lacking[0] if all(word in words for words in lacking)) if lacking else ()
    reason = message("workflow.differing", words=differing) if differing else _reason(searched)
    hits = [(-value, place, hit) for place, tried in enumerate(searched.tried)
            for hit, value in zip(tried.result.hits, tried.relevance.probabilities, strict=True)]  # fmt: skip
    nearest = {hit.passage.id: hit for _, _, hit in sorted(hits, key=lambda row: row[:2])}
    if not nearest:
        return abstained(answer, reason)
    evidence: tuple[Evidence, ...] = yield Cite(tuple(nearest.values())[:NEAREST])
    return abstained(with_nearest_sentences(answer, evidence), reason)


def _reason(searched: TierSearch) -> Message:
    """Why the tier that came nearest does not answer."""
    nearest = max(searched.tried, key=lambda tried: tried.relevance.probability, default=None)
    return (nearest.relevance.reason if nearest else None) or NOT_ENOUGH


def with_nearest_sentences(answer: Answer, evidence: tuple[Evidence, ...]) -> Answer:
    """``answer`` with a sentence of each of the first pieces of ``evidence``, which do not answer."""
    nearest = evidence[:NEAREST]
    if not nearest:
        return answer
    quotations = tuple(nearest_sentence(answer.question, piece) for piece in nearest)
    return replace(answer, evidence=nearest, parts=(NearestPart(quotations),))
