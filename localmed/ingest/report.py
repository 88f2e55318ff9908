"""The report of an import, line by line."""

from __future__ import annotations

from dataclasses import dataclass, field

from localmed.domain import Message

OUTCOMES = ("read", "unchanged", "quarantined", "skipped", "removed", "left", "note")


@dataclass(frozen=True, slots=True)
class Line:
    """A file or a part of it, its outcome (one of ``OUTCOMES``), and the reason."""

    path: str
    outcome: str
    detail: Message | None = None
    documents: int = 0
    passages: int = 0


@dataclass(slots=True)
class Report:
    """The result of an import; ``generation`` is 0 if nothing changed."""

    collection: str
    lines: list[Line] = field(default_factory=list)
    generation: int = 0
    encoded: int = 0

    def count(self, outcome: str) -> int:
        """The number of lines with this outcome."""
        return sum(line.outcome == outcome for line in self.lines)

    @property
    def counts(self) -> dict[str, int]:
        """Lines by outcome, and the documents and passages read."""
        read = [line for line in self.lines if line.outcome == "read"]
        return {outcome: self.count(outcome) for outcome in OUTCOMES} | {
            "documents": sum(line.documents for line in read),
            "passages": sum(line.passages for line in read),
            "encoded": self.encoded,
        }

    @property
    def tally(self) -> str:
        """The counts that are not 0, on one line."""
        return " ".join(f"{name}={count}" for name, count in self.counts.items() if count)
