"""The badge of an answer: green, yellow or red from three booleans (Answered with Evidence, criteria and badge table).

What is shown answers every part of the question, its context is related to it, it is grounded in the context: all three
are green, the last two alone are yellow, everything else is red. Green means "supported by its sources", never "safe":
the sources may be wrong, and so may the judge, who is named with what is known of his errors. Several judges vote on
each boolean by majority (the paper's limitations ask for a jury); a tie is no.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from localmed.domain import Badge, BadgeJudge, Message, message


@dataclass(frozen=True, slots=True)
class Criteria:
    """The three booleans: what is shown ``answers`` the question, its context is ``related`` to it, and carries it."""

    answers: bool
    related: bool
    grounded: bool


@dataclass(frozen=True, slots=True)
class Vote:
    """One judge's criteria."""

    criteria: Criteria
    judge: BadgeJudge


def badge(criteria: Criteria) -> Badge:
    """The paper's table."""
    if not (criteria.related and criteria.grounded):
        return Badge.RED
    return Badge.GREEN if criteria.answers else Badge.YELLOW


def reason(criteria: Criteria) -> Message:
    """Why."""
    if badge(criteria) is Badge.GREEN:
        return message("badge.why_green")
    if badge(criteria) is Badge.YELLOW:
        return message("badge.why_yellow")
    if criteria.grounded:
        return message("badge.why_unrelated")
    return message("badge.why_not_grounded") if criteria.related else message("badge.why_neither")


def majority(votes: Sequence[Criteria]) -> Criteria:
    """What more than half of the votes say, of each criterion; no votes say no."""
    return Criteria(
        *(sum(getattr(vote, name.name) for vote in votes) * 2 > len(votes) for name in fields(Criteria))
    )  # fmt: skip
