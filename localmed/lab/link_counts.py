"""What Link-Eval counts of an answer, and the metrics that are taken of it (LINS, "Construction of Link-Eval")."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LinkCounts:
    """The counts of one answer, and its metrics. Counts of sets, pairs and references are of those that were judged.

    ``gold`` is 1 where the statements hold the gold answer, 0 where not, None where there is none or nobody judged.
    """

    statements: int = 0
    uncited: int = 0
    sets: int = 0
    correct_sets: int = 0
    verbatim_sets: int = 0
    citations: int = 0
    correct_citations: int = 0
    unresolved: int = 0
    malformed: int = 0
    unjudged_sets: int = 0
    references: int = 0
    valid: int = 0
    valid_cited: int = 0
    unjudged_references: int = 0
    pairs: int = 0
    conflicts: int = 0
    unjudged_pairs: int = 0
    gold: int | None = None
    fluency: float | None = None

    @property
    def citation_set_precision(self) -> float | None:
        """LINS, equation 1."""
        return _share(self.correct_sets, self.sets)

    @property
    def citation_precision(self) -> float | None:
        """LINS, equation 2."""
        return _share(self.correct_citations, self.citations)

    @property
    def citation_recall(self) -> float | None:
        """LINS, equation 3."""
        return _share(self.valid_cited, self.valid)

    @property
    def consistency(self) -> float | None:
        """1 if no two statements contradict each other, 0 if some do; None where fewer than two were compared."""
        return float(not self.conflicts) if self.pairs else None

    @property
    def statement_correctness(self) -> float | None:
        """A contradiction is wrong whatever the gold answer; without one it is the gold answer that decides."""
        if self.conflicts and self.gold is not None:
            return 0.0
        return None if self.gold is None or self.unjudged_pairs else float(self.gold)

    def metrics(self) -> dict[str, float | None]:
        """All of them by name, in the order in which they are shown."""
        return {name: getattr(self, name) for name in METRICS}


METRICS = (
    "citation_set_precision", "citation_precision", "citation_recall", "consistency", "statement_correctness",
    "fluency",
)  # fmt: skip


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
