"""How well what needs no model judges entailment, beside what the starter's rule claims (answering/verbatim.py).

HealthVer's test pairs (claims about COVID-19, sentences of abstracts), three-way; COVID-Fact's labelled pairs, whose
refuted claims differ from the supported ones by a word or two, two-way. Neither has a licence: they are measured with,
not trained on. The cuts of word overlap were chosen on HealthVer's development pairs. The rule's precision is what
counts: of the pairs that it calls supported, how many are; all else is not judged.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from localmed.domain.ports import Stance
from localmed.lab import stance
from localmed.lab.stance import THREE, Labelled, confusion, macro_f1
from localmed.text.language import content_words
from tests.benchmarks.common import Place, Row

SEED = 1
GRID = np.round(np.arange(0.0, 1.01, 0.02), 2)  # of the cuts of word overlap


class Overlap:
    """``Entailment`` by the share of the hypothesis's words in the premise, cut at two places into three labels."""

    languages = ("en",)

    def __init__(self, low: float, high: float, labels: tuple[str, str, str]) -> None:
        """``labels`` are for a share below ``low``, between, and from ``high`` on."""
        self.low, self.high, self.labels = low, high, labels
        self.name = "word overlap"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        shares = [coverage(premise, hypothesis) for premise, hypothesis in pairs]
        return [stance.certain(self.labels[(share >= self.low) + (share >= self.high)]) for share in shares]


def coverage(premise: str, hypothesis: str) -> float:
    """The share of the hypothesis's content words that the premise has, from 0 to 1."""
    words = frozenset(content_words(hypothesis))
    return len(words & frozenset(content_words(premise))) / max(1, len(words))


def tuned(pairs: Sequence[Labelled]) -> Overlap:
    """The ``Overlap`` with the best macro-F1 on ``pairs``, of all cuts in steps of 0.02 and all orders of labels."""
    shares = np.array([coverage(pair.premise, pair.hypothesis) for pair in pairs])
    gold = np.array([THREE.index(pair.label) if pair.label in THREE else 1 for pair in pairs])
    best = (-1.0, 0.0, 0.0, (1, 2, 0))
    for order in ((1, 2, 0), (1, 0, 2), (2, 1, 0)):
        for low in GRID:
            for high in GRID[low <= GRID]:
                judged = np.array(order)[(shares >= low).astype(int) + (shares >= high)]
                score = macro_f1(confusion(gold, judged, len(THREE)))
                best = max(best, (score, float(low), float(high), order))
    first, second, third = (THREE[place] for place in best[3])
    return Overlap(best[1], best[2], (first, second, third))


def run(place: Place) -> list[Row]:
    """A row a judge and set."""
    claims = place.data / "claims"
    development = stance.load(claims / "healthver" / "healthver_dev.csv").pairs
    rows = []
    for file in (claims / "healthver" / "healthver_test.csv", claims / "covidfact" / "rte_dev.tsv"):
        pair_set = stance.load(file)
        judges = (stance.majority(pair_set.pairs), tuned(development), stance.VERBATIM)
        rows += [row(pair_set, stance.score(pair_set, judge, SEED)) for judge in judges]
    return rows


def row(pair_set: stance.PairSet, scores: stance.JudgeScores) -> Row:
    """One judge's."""
    measured = (
        f"accuracy {scores.accuracy:.3f} ({scores.accuracy_interval[0]:.2f} to {scores.accuracy_interval[1]:.2f}), "
        f"macro-F1 {scores.macro_f1:.3f} ({scores.macro_f1_interval[0]:.2f} to {scores.macro_f1_interval[1]:.2f}), "
        f"not judged {scores.unjudged} of {len(pair_set.pairs)}"
    )
    confusion = "; ".join(
        f"{label} {'/'.join(map(str, counts))}" for label, counts in zip(pair_set.labels, scores.confusion, strict=True)
    )
    how = f"{len(pair_set.pairs)} pairs; judged as {'/'.join(pair_set.labels)}: {confusion}"
    return Row(f"entailment, {pair_set.name}, {scores.judge}", "", measured, "-", how)
