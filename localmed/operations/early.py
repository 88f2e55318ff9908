"""Sections that are seen before their answer is whole, and what the audit log says of an answer, whole or cut off.

Sections are passed on only while they are in force and open to the reader, and an answer that is cut off after that was
seen in part: the audit log must have it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from localmed.domain import Answer, Badge, Evidence
from localmed.hooks import SILENT, Hooks

DOCUMENTS, DOCUMENT_CHARACTERS = 20, 12  # cited ones that the audit log names, and of each one's id: 48 bits
CUT_OFF = "cut off"  # the outcome of an answer of which sections were seen and no more came


def subject_of(answer: Answer, answer_id: str) -> str:
    """What the audit log says of an answer: its length and badge, the id that it is kept by, the documents it cites."""
    badge = answer.verification.badge
    return _subject(len(answer.statements), f", badge {badge}" if badge is not Badge.NONE else "", answer_id,
                    answer.evidence)  # fmt: skip


def _subject(count: int, badge: str, answer_id: str, evidence: Iterable[Evidence]) -> str:
    documents = dict.fromkeys(piece.passage.document_id[:DOCUMENT_CHARACTERS] for piece in evidence)
    sources = " ".join(("documents", *list(documents)[:DOCUMENTS])) if documents else ""
    return "; ".join(filter(None, (f"{count} statements{badge}", f"answer {answer_id}" if answer_id else "", sources)))


@dataclass(slots=True)
class Early:
    """What the reader of one answer has seen of it so far: its sections, while a model reads them."""

    hooks: Hooks
    seen: Answer | None = None

    def watched(self, holds: Callable[[Sequence[Evidence]], bool]) -> Hooks:
        """The caller's hooks; sections are passed on only if what they cite ``holds``."""
        if self.hooks.sections is SILENT.sections:
            return self.hooks

        def sections(answer: Answer) -> None:
            if holds(answer.evidence):
                self.seen = answer
                self.hooks.sections(answer)

        return replace(self.hooks, sections=sections)

    def take_back(self) -> None:
        """What was seen rests on something that is not in force any more."""
        if self.seen:
            self.hooks.sections(replace(self.seen, evidence=(), receipts=None))

    def subject(self) -> str:
        """What the audit log says of it; "" where nothing was seen."""
        return _subject(0, "", self.hooks.answer_id, self.seen.evidence) if self.seen else ""
