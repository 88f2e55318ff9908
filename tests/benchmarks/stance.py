"""How well what needs no model judges entailment, beside what the starter's rule claims (answering/verbatim.py).

HealthVer's test pairs (claims about COVID-19, sentences of abstracts), three-way; COVID-Fact's labelled pairs, whose
refuted claims differ from the supported ones by a word or two, two-way. Neither has a licence: they are measured with,
not trained on. The cuts of word overlap were chosen on HealthVer's development pairs. The rule's precision is what
counts: of the pairs that it calls supported, how many are; all else is not judged.
"""

from __future__ import annotations

from localmed.lab import stance
from tests.benchmarks.common import Place, Row

SEED = 1


def run(place: Place) -> list[Row]:
    """A row a judge and set."""
    claims = place.data / "claims"
    development = stance.load(claims / "healthver" / "healthver_dev.csv").pairs
    rows = []
    for file in (claims / "healthver" / "healthver_test.csv", claims / "covidfact" / "rte_dev.tsv"):
        pair_set = stance.load(file)
        judges = (stance.Majority(pair_set.pairs), stance.tuned(development), stance.Verbatim())
        outcome = stance.report(pair_set, judges, SEED)
        rows += [row(outcome, scores) for scores in outcome.judges]
    return rows


def row(outcome: stance.StanceReport, scores: stance.JudgeScores) -> Row:
    """One judge's."""
    measured = (
        f"accuracy {scores.accuracy:.3f} ({scores.accuracy_interval[0]:.2f} to {scores.accuracy_interval[1]:.2f}), "
        f"macro-F1 {scores.macro_f1:.3f} ({scores.macro_f1_interval[0]:.2f} to {scores.macro_f1_interval[1]:.2f}), "
        f"not judged {scores.unjudged} of {outcome.pairs}"
    )
    confusion = "; ".join(
        f"{label} {'/'.join(map(str, counts))}" for label, counts in zip(outcome.labels, scores.confusion, strict=True)
    )
    how = f"{outcome.pairs} pairs; judged as {'/'.join(outcome.labels)}: {confusion}"
    return Row(f"entailment, {outcome.set}, {scores.judge}", "", measured, "-", how)
