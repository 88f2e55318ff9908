"""M-Eval's vote (III-D, formulas 1 and 4, Fig. 5): studies for and against a claim, weighed by how reliable they are.

Each study supports a claim (+1), contradicts it (-1) or says neither (0). The sum of vote times reliability decides;
zero with votes goes to support, as in the paper. The losing group is dropped, the winning one is the main evidence.
No vote at all is "not enough evidence", or "not judged" where no model judged any study: neither is support or
contradiction. A response with a contradicted claim is mistaken; it is correct only if every claim is supported. What
the answer rested on is sound or poor by how it voted (``judged``); a group with equally many votes on either side of
the outcome is not called misleading.

Heterogeneity of the studies on a claim (III-D, formulas 2 and 3; DerSimonian & Laird 1986): study i states the effect
``y_i``; Cochran's ``Q = sum (y_i - mean)^2`` and ``tau^2 = max(0, Q / (k - 1) - 1)``. Abstracts do not state sampling
variances, so M-Eval gives every study the same; the paper does not say which, ours is 1. An effect is +1 (supports) or
-1 (contradicts): studies that say neither take no part, for they would look like disagreement where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from localmed.domain.parts import Label, Quality
from localmed.domain.ports import Stance

# Least probabilities of entailment and contradiction that are a vote. Of steps of 0.05 from 0.4 to 0.6 on HealthVer's
# development pairs these label most claims as the pairs' own labels do (half of 230). Lower ones find more and are
# wrong more often, which here costs more: one contradicted claim makes a response mistaken.
FOR = 0.5
AGAINST = 0.5
TIE = 1e-9  # sums nearer to zero than this are ties: scores have one decimal
OUTDATED_YEARS = 10  # older than the newest study found by that: practice has mostly changed since


@dataclass(frozen=True, slots=True)
class Heterogeneity:
    """Cochran's ``q`` with ``k - 1`` degrees of freedom, and ``tau2``, of ``k`` effects; both 0 for fewer than two."""

    q: float = 0.0
    tau2: float = 0.0
    k: int = 0


def heterogeneity(effects: Sequence[float]) -> Heterogeneity:
    """Of ``effects`` (k), each with a variance of 1."""
    k = len(effects)
    if k < 2:
        return Heterogeneity(k=k)
    mean = fsum(effects) / k
    q = fsum((effect - mean) ** 2 for effect in effects)
    return Heterogeneity(q, max(0.0, q / (k - 1) - 1), k)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one claim: label, weighed sum, the votes (in the studies' order), and how far the voters disagree."""

    label: Label
    total: float
    votes: tuple[int, ...]
    heterogeneity: Heterogeneity

    @property
    def side(self) -> int:
        """The vote of the winning group: +1, -1, or 0 where nobody voted."""
        return {Label.SUPPORTED: 1, Label.CONTRADICTED: -1}.get(self.label, 0)

    @property
    def main(self) -> tuple[int, ...]:
        """The places of the winning group: the main evidence."""
        return tuple(place for place, vote in enumerate(self.votes) if vote and vote == self.side)

    @property
    def dropped(self) -> tuple[int, ...]:
        """The places of the losing group."""
        return tuple(place for place, vote in enumerate(self.votes) if vote and vote != self.side)


def vote(stance: Stance) -> int:
    """The vote of a study that takes ``stance``; one that was not judged has none."""
    if stance.label == "entailment" and stance.entailment >= FOR:
        return 1
    return -1 if stance.label == "contradiction" and stance.contradiction >= AGAINST else 0


def outcome(votes: Sequence[int], scores: Sequence[float], judged: bool = True) -> Outcome:
    """The outcome of ``votes`` (+1, 0, -1) by studies with the reliability ``scores``, in the same order.

    Without ``judged`` there are studies that bear on the claim, and nobody judged any of them.
    """
    total = fsum(value * score for value, score in zip(votes, scores, strict=True))
    voted = [float(value) for value in votes if value]
    weighed = Label.CONTRADICTED if total < -TIE else Label.SUPPORTED
    label = weighed if voted else Label.NOT_ENOUGH if judged else Label.NOT_JUDGED
    return Outcome(label, round(total, 9), tuple(votes), heterogeneity(voted))


def response(labels: Sequence[Label], carried: bool = True) -> Label:
    """The response's label from those of its claims; nothing was shown of a response without claims.

    Without ``carried`` (a sentence is not carried by what it cites, or the badge is red) it is never correct.
    """
    if Label.CONTRADICTED in labels:
        return Label.MISTAKEN
    if labels and set(labels) == {Label.SUPPORTED}:
        return Label.CORRECT if carried else Label.NOT_ENOUGH
    return Label.NOT_JUDGED if Label.NOT_JUDGED in labels and Label.SUPPORTED not in labels else Label.NOT_ENOUGH


def judged(outcomes: Sequence[Outcome], place: int) -> tuple[int, int, int]:
    """How often the study at ``place`` voted with the outcome, against it, and not at all, where there was one."""
    decided = [(result.votes[place], result.side) for result in outcomes if result.side]
    aligned = sum(mine == side for mine, side in decided)
    against = sum(mine == -side for mine, side in decided)
    return aligned, against, len(decided) - aligned - against


def quality(counts: Sequence[tuple[int, int, int]], outdated: int) -> Quality:
    """Of the evidence given, from each study's ``judged`` counts, ``outdated`` of them out of date or not in force.

    Misleading if it voted against the outcomes more often than with them; outdated if most of it is; irrelevant if it
    cast no vote more often than one.
    """
    aligned, against, silent = (sum(count[column] for count in counts) for column in range(3))
    if against > aligned:
        return Quality.MISLEADING
    if outdated * 2 > len(counts):
        return Quality.OUTDATED
    if not aligned + against + silent:
        return Quality.UNKNOWN
    return Quality.IRRELEVANT if silent > aligned + against else Quality.SOUND


def old(date: str, newest: str) -> bool:
    """Whether ``date`` lies ``OUTDATED_YEARS`` or more before ``newest`` (ISO dates); no date is no age."""
    years = [int(day[:4]) for day in (date, newest) if day[:4].isdigit()]
    return len(years) == 2 and years[1] - years[0] >= OUTDATED_YEARS
