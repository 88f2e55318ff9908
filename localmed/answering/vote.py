"""M-Eval's vote (III-D, formulas 1 and 4, Fig. 5): studies for and against a claim, weighted by reliability.

Each study supports a claim (+1), contradicts it (-1) or does neither (0). The sum of vote times reliability decides;
zero with votes means support, as in the paper. The winning group is the main evidence, the losing one is dropped. No
vote is "not enough evidence", or "not judged" if no model judged any study. A response with a contradicted claim is
mistaken; it is correct only if every claim is supported and so are its citations. The evidence given with an answer is
rated by its votes (``judged``); equal numbers with and against the outcome are not misleading.
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
class Outcome:
    """A claim's label, weighted sum and votes (in the studies' order)."""

    label: Label
    total: float
    votes: tuple[int, ...]

    @property
    def side(self) -> int:
        """The vote of the winning group: +1, -1, or 0 without votes."""
        return {Label.SUPPORTED: 1, Label.CONTRADICTED: -1}.get(self.label, 0)

    @property
    def main(self) -> tuple[int, ...]:
        """The places of the winning group: the main evidence."""
        return tuple(place for place, vote in enumerate(self.votes) if vote and vote == self.side)

    @property
    def dropped(self) -> tuple[int, ...]:
        """The places of the losing group."""
        return tuple(place for place, vote in enumerate(self.votes) if vote and vote != self.side)

    @property
    def heterogeneity(self) -> tuple[float, float, int]:
        """Cochran's Q, tau squared and the number of votes (III-D, formulas 2 and 3; DerSimonian & Laird 1986).

        The vote is the effect. Abstracts state no sampling variances, so every study has the same, 1, as in M-Eval.
        """
        voters = sum(map(abs, self.votes))
        q = voters - sum(self.votes) ** 2 / voters if voters else 0.0
        return q, max(0.0, q / (voters - 1) - 1) if voters > 1 else 0.0, voters


def vote(stance: Stance) -> int:
    """The vote for ``stance``; 0 if not judged."""
    if stance.label == "entailment" and stance.entailment >= FOR:
        return 1
    return -1 if stance.label == "contradiction" and stance.contradiction >= AGAINST else 0


def outcome(votes: Sequence[int], scores: Sequence[float], judged: bool = True) -> Outcome:
    """The outcome of ``votes`` (+1, 0, -1) by studies with reliability ``scores``, in the same order.

    ``judged`` is False if no relevant study was judged.
    """
    total = fsum(value * score for value, score in zip(votes, scores, strict=True))
    weighed = Label.CONTRADICTED if total < -TIE else Label.SUPPORTED
    label = weighed if any(votes) else Label.NOT_ENOUGH if judged else Label.NOT_JUDGED
    return Outcome(label, round(total, 9), tuple(votes))


def response(labels: Sequence[Label], supported: bool = True) -> Label:
    """The response's label by its claims.

    ``supported`` is False if a citation does not support its sentence or the badge is red; then it is never correct.
    """
    if Label.CONTRADICTED in labels:
        return Label.MISTAKEN
    if labels and set(labels) == {Label.SUPPORTED}:
        return Label.CORRECT if supported else Label.NOT_ENOUGH
    return Label.NOT_JUDGED if Label.NOT_JUDGED in labels and Label.SUPPORTED not in labels else Label.NOT_ENOUGH


def judged(outcomes: Sequence[Outcome], place: int) -> tuple[int, int, int]:
    """The numbers of decided claims on which the study at ``place`` voted with the outcome, against it, or not."""
    decided = [(result.votes[place], result.side) for result in outcomes if result.side]
    aligned = sum(mine == side for mine, side in decided)
    against = sum(mine == -side for mine, side in decided)
    return aligned, against, len(decided) - aligned - against


def quality(counts: Sequence[tuple[int, int, int]], outdated: int) -> Quality:
    """The quality of the given evidence by each study's ``judged`` counts; ``outdated`` counts old or excluded studies.

    Misleading: more votes against the outcomes than with them. Outdated: most studies are. Irrelevant: more abstentions
    than votes.
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
    """Whether ``date`` is ``OUTDATED_YEARS`` or more before ``newest`` (ISO dates); False without a date."""
    years = [int(day[:4]) for day in (date, newest) if day[:4].isdigit()]
    return len(years) == 2 and years[1] - years[0] >= OUTDATED_YEARS
