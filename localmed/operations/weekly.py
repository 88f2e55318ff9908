"""How the system answers, week by week, from the audit log: answers, abstentions and badges, by workflow."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from localmed.domain.accounts import Right
from localmed.operations.audit import Audit

if TYPE_CHECKING:
    from localmed.session import Session

SHOWN = 26  # weeks: half a year
STATEMENTS, BADGE = " statements", ", badge "  # what the subject of an answer's entry holds


@dataclass(frozen=True, slots=True)
class Week:
    """Runs of a workflow in an ISO week ("2026-W47"), by how they ended."""

    week: str
    workflow: str
    runs: int
    outcomes: tuple[tuple[str, int], ...]
    badges: tuple[tuple[str, int], ...]

    def share(self, outcome: str) -> float:
        """The share of runs that ended so."""
        return dict(self.outcomes).get(outcome, 0) / self.runs


def weeks(session: Session) -> list[Week]:
    """The newest weeks first; raise ``UsageError`` for who is no safety officer."""
    session.require(Right.SAFETY)
    counts: dict[tuple[str, str], tuple[Counter[str], Counter[str]]] = {}
    with closing(Audit(session.data)) as log:
        for _, entry in log.numbered():
            if STATEMENTS in entry.subject or (entry.erased and entry.models):
                year, number, _ = datetime.fromisoformat(entry.time).isocalendar()
                run = (f"{year}-W{number:02d}", entry.action)
                outcomes, badges = counts.setdefault(run, (Counter(), Counter()))
                outcomes[entry.outcome] += 1
                if BADGE in (size := entry.subject.partition(";")[0]):
                    badges[size.rpartition(BADGE)[2]] += 1
    newest = sorted({week for week, _ in counts}, reverse=True)[:SHOWN]
    return [
        Week(week, workflow, outcomes.total(), tuple(sorted(outcomes.items())), tuple(sorted(badges.items())))
        for (week, workflow), (outcomes, badges) in sorted(counts.items(), reverse=True)
        if week in newest
    ]
