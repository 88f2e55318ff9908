"""How well the starter judges entailment (localmed/verification/stance.py), beside what needs no model.

HealthVer's test pairs (claims about COVID-19, sentences of abstracts), three-way; COVID-Fact's labelled pairs, whose
refuted claims differ from the supported ones by a word or two, two-way. Neither has a licence: they are measured with,
not trained on. The cuts of word overlap, the rules' thresholds and the model's biases and temperature were chosen on
HealthVer's development pairs.
"""

from __future__ import annotations

from localmed.evaluation import stance
from localmed.models.minilm import MiniLM
from localmed.models.shipped_weights import arrays
from localmed.verification.stance import StarterEntailment, Weights
from localmed.verification.stance_rules import RuleJudge
from tests.benchmarks.common import Place, Row, met

SEED = 1
MAJORITY = 0.40  # accuracy of the majority class on HealthVer's test pairs
AIM = 0.55  # macro-F1


def run(place: Place) -> list[Row]:
    """A row a judge and set."""
    claims = place.data / "claims"
    development = stance.load(claims / "healthver" / "healthver_dev.csv").pairs
    starter = StarterEntailment(MiniLM(), Weights.of(arrays("starter-entailment")))
    rows = []
    for file in (claims / "healthver" / "healthver_test.csv", claims / "covidfact" / "rte_dev.tsv"):
        asked = stance.load(file)
        judges = (stance.Majority(asked.pairs), stance.tuned(development), RuleJudge(), starter)
        found = stance.report(asked, judges, SEED)
        rows += [row(found, scores) for scores in found.judges]
    return rows


def row(found: stance.StanceReport, scores: stance.JudgeScores) -> Row:
    """One judge's."""
    three, last = len(found.labels) == 3, scores is found.judges[-1]
    overlap = found.judges[1]
    target = f"accuracy > {MAJORITY:.2f} and above word overlap; aim macro-F1 {AIM}" if three and last else ""
    reached = scores.accuracy > max(MAJORITY, overlap.accuracy) and scores.macro_f1 > overlap.macro_f1
    measured = (
        f"accuracy {scores.accuracy:.3f} ({scores.accuracy_interval[0]:.2f} to {scores.accuracy_interval[1]:.2f}), "
        f"macro-F1 {scores.macro_f1:.3f} ({scores.macro_f1_interval[0]:.2f} to {scores.macro_f1_interval[1]:.2f})"
    )
    reach = met(reached) + ("" if scores.macro_f1 >= AIM else ", aim not") if target else "-"
    confusion = "; ".join(
        f"{label} {'/'.join(map(str, counts))}" for label, counts in zip(found.labels, scores.confusion, strict=True)
    )
    how = f"{found.pairs} pairs; judged as {'/'.join(found.labels)}: {confusion}"
    return Row(f"entailment, {found.set}, {scores.judge}", target, measured, reach, how)
