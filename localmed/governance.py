"""Who answers for a document and when it holds: a value, and the dates it is written with. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


def is_date(text: str) -> bool:
    """Whether ``text`` is a year, a month or a day that exists, as this module writes dates."""
    whole = text + "0000-01-01"[len(text) :]
    try:
        return len(text) in (4, 7, 10) and date.fromisoformat(whole).isoformat() == whole
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Governance:
    """Who answers for a document and when it holds; names of staff, which stay out of logs and the audit log."""

    owner: str = ""
    approver: str = ""
    effective_from: str = ""  # "": since ever
    review_by: str = ""  # "": never due

    def effective(self, day: str) -> bool:
        """Whether the document holds on ``day``; a month or a year begins with its first day."""
        return self.effective_from <= day

    def overdue(self, day: str) -> bool:
        """Whether its review is late on ``day``; a month or a year ends with its last day."""
        return bool(self.review_by) and self.review_by < day[: len(self.review_by)]
