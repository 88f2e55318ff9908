"""Answers, abstentions and badges week by week, by workflow, from the audit log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from localmed.domain.accounts import Right
from localmed.library.journal import START, Head
from localmed.site.audit import Audit

if TYPE_CHECKING:
    from localmed.site.session import Session

SHOWN = 26  # weeks: half a year
STATEMENTS, BADGE = " statements", ", badge "  # parts of the subject of an answer's entry


@dataclass(frozen=True, slots=True)
class Week:
    """Runs of a workflow in an ISO week ("2026-W47"), by outcome."""

    week: str
    workflow: str
    runs: int
    outcomes: tuple[tuple[str, int], ...]
    badges: tuple[tuple[str, int], ...]

    def share(self, outcome: str) -> float:
        """Return the share of runs with ``outcome``."""
        return dict(self.outcomes).get(outcome, 0) / self.runs


_Counts = dict[tuple[str, str], tuple[Counter[str], Counter[str]]]  # outcomes and badges, by week and workflow
_COUNTED: dict[Path, tuple[Head, _Counts]] = {}  # up to which entry of a log, by its data folder
_LOCK = Lock()


def weeks(session: Session) -> list[Week]:
    """Return the newest weeks first; for safety officers, else ``NotAllowed``."""
    session.require(Right.SAFETY)
    with _LOCK, Audit(session.data) as log:
        counts = _counts(session.data, log)
        newest = sorted({week for week, _ in counts}, reverse=True)[:SHOWN]
        return [
            Week(week, workflow, outcomes.total(), tuple(sorted(outcomes.items())), tuple(sorted(badges.items())))
            for (week, workflow), (outcomes, badges) in sorted(counts.items(), reverse=True)
            if week in newest
        ]


def _counts(data: Path, log: Audit) -> _Counts:
    """Return the counts of all entries; only entries since the last call are read."""
    newest, (counted, counts) = log.head(), _COUNTED.get(data, (START, {}))
    if counted != START and log.row_at(counted.number) != counted:  # another log
        counted, counts = START, {}
    for number, entry in log.numbered(counted.number):
        if newest is None or number > newest.number:
            break
        if STATEMENTS in entry.subject or (entry.erased and entry.models):
            year, week, _ = datetime.fromisoformat(entry.time).isocalendar()
            outcomes, badges = counts.setdefault((f"{year}-W{week:02d}", entry.action), (Counter(), Counter()))
            outcomes[entry.outcome] += 1
            if BADGE in (size := entry.subject.partition(";")[0]):
                badges[size.rpartition(BADGE)[2]] += 1
    if newest:
        _COUNTED[data] = newest, counts
    return counts
