"""``localmed eval stance``: an entailment model on labelled pairs, compared with judges without a model.

File formats of ``load``, detected by the first line:

- plain: ``premise<TAB>hypothesis<TAB>label`` lines without heading; labels entailment, neutral, contradiction (or
  not_entailment);
- HealthVer (Sarrouti et al. 2021): CSV with evidence, claim and label (Supports, Neutral, Refutes);
- COVID-Fact (Saakyan et al. 2021): its labelled pairs, a TSV with sentence1, sentence2 and entailment, or its JSON
  lines with claim, evidence and label.

A set with the label "not entailed" is two-way: neutral and contradiction are merged. Pairs with the same hypothesis are
dependent, so intervals resample hypotheses (percentile bootstrap, seeded).
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from localmed.cli.common import open_session, progress
from localmed.cli.options import json_option
from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.domain.ports import NOT_JUDGED, Entailment, Stance
from localmed.lab import plot, reporting, sets
from localmed.lab.measures import CONFIDENCE, RESAMPLES
from localmed.lab.reporting import Report, Table
from localmed.text.verbatim import find_verbatim

THREE = ("entailment", "neutral", "contradiction")
TWO = ("entailment", "not entailment")
BATCH = 64  # pairs judged between two steps of the progress bar
_NAMES = {
    **{name: name for name in THREE},
    **dict.fromkeys(("supports", "supported"), "entailment"),
    **dict.fromkeys(("refutes",), "contradiction"),
    **dict.fromkeys(("not_entailment", "not entailment", "refuted"), "not entailment"),
}
_PLACES = {"evidence": 0, "sentence1": 0, "claim": 1, "sentence2": 1, "label": 2, "entailment": 2}  # columns

Advance = Callable[[float, str], object]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A pair and its label."""

    premise: str
    hypothesis: str
    label: str


@dataclass(frozen=True, slots=True)
class PairSet:
    """The pairs of a file; ``labels`` are ``THREE`` or ``TWO``."""

    name: str
    pairs: tuple[Labelled, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """The scores of one judge; intervals are (low, high). ``confusion[i][j]`` counts label i judged as label j.

    ``unjudged`` pairs count as neutral there. ``classes``: label -> precision, recall, F1 (0 where undefined) and
    number of pairs.
    """

    judge: str
    accuracy: float
    accuracy_interval: tuple[float, float]
    macro_f1: float
    macro_f1_interval: tuple[float, float]
    classes: Mapping[str, Mapping[str, float]]
    confusion: tuple[tuple[int, ...], ...]
    unjudged: int = 0


# --- reading --------------------------------------------------------------------------------------------------------


CELL_CHARACTERS = 100_000  # a premise has about 1,000; a longer cell is a quotation mark left open


def load(file: Path) -> PairSet:
    """Read ``file``; raise ``InputError`` naming an invalid line, without its text."""
    pairs: list[Labelled] = []
    try:
        for number, cells in enumerate(_rows(sets.read_text(file), file.name), 1):
            premise, hypothesis, label = (*map(str.strip, cells), "", "", "")[:3]
            name = _NAMES.get(label.lower().replace("-", "_"))
            if not (premise and hypothesis and name):
                raise InputError("evaluation.pair", number=number, file=file.name)
            pairs.append(Labelled(premise, hypothesis, name))
    except csv.Error:
        raise InputError("evaluation.csv", file=file.name) from None
    if not pairs:
        raise InputError("evaluation.pairs_none", file=file.name)
    if not any(pair.label == "not entailment" for pair in pairs):
        return PairSet(file.name, tuple(pairs), THREE)
    merged = (one if one.label == "entailment" else replace(one, label="not entailment") for one in pairs)
    return PairSet(file.name, tuple(merged), TWO)


def _rows(text: str, name: str) -> Iterator[Sequence[str]]:
    csv.field_size_limit(CELL_CHARACTERS)  # of the whole process: other readers may have raised it
    first, rows = text.split("\n", 1)[0].strip().lower(), io.StringIO(text, newline="")
    if first.startswith("{"):
        records: Iterable[Mapping[str, Any]] = (record for _, record in sets.objects(text, name))
    elif first.startswith("index\t"):
        records = csv.DictReader(rows, delimiter="\t", quoting=csv.QUOTE_NONE)
    elif {"evidence", "claim", "label"} <= set(first.split(",")):
        records = csv.DictReader(rows)
    else:
        yield from (line.split("\t") for line in text.splitlines() if line.strip())
        return
    for record in records:
        cells = dict.fromkeys(_PLACES.values(), "")
        for column, value in record.items():
            if (place := _PLACES.get(str(column).lower())) is not None:
                cells[place] = " ".join(map(str, value)) if isinstance(value, list) else str(value or "")
        yield list(cells.values())


# --- judges without a model -------------------------------------------------------------------------------------------


class Baseline:
    """``Entailment`` by a rule."""

    languages = ("en", "zh")

    def __init__(self, name: str, rule: Callable[[str, str], Stance]) -> None:
        self.name, self.rule = name, rule

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        return [self.rule(premise, statement) for premise, statement in pairs]


def majority(pairs: Sequence[Labelled]) -> Baseline:
    """A judge that always gives the most frequent label of ``pairs`` ("not entailment" as neutral)."""
    label = Counter(pair.label for pair in pairs).most_common(1)[0][0]
    return Baseline("majority class", lambda *_: certain(label))


def _said_verbatim(premise: str, statement: str) -> Stance:
    return certain("entailment") if find_verbatim(premise, statement) else NOT_JUDGED


VERBATIM = Baseline("word for word", _said_verbatim)


def certain(label: str) -> Stance:
    """A stance with probability 1 for ``label``."""
    supported, neither, contradicted = (float(name == label) for name in THREE)
    return Stance(supported, neither, contradicted) if label in THREE else Stance(0.0, 1.0, 0.0)


# --- scoring --------------------------------------------------------------------------------------------------------


def score(pair_set: PairSet, judge: Entailment, seed: int, advance: Advance = lambda *_: None) -> JudgeScores:
    """The scores of ``judge`` on all pairs; ``advance`` is called after each batch."""
    labels = pair_set.labels
    stances: list[Stance] = []
    for start in range(0, len(pair_set.pairs), BATCH):
        batch = [(pair.premise, pair.hypothesis) for pair in pair_set.pairs[start : start + BATCH]]
        stances += judge.judge(batch)
        advance(len(batch), judge.name)
    gold = np.array([labels.index(pair.label) for pair in pair_set.pairs])
    judged = np.array([(labels.index(stance.label) if stance.label in labels else 1) for stance in stances])
    table = confusion(gold, judged, len(labels))
    drawn = _resample(pair_set, gold, judged, seed)
    outside = (1 - CONFIDENCE) / 2
    bounds = np.quantile([(_accuracy(one), macro_f1(one)) for one in drawn], (outside, 1 - outside), axis=0)
    return JudgeScores(
        judge.name, _accuracy(table), (float(bounds[0][0]), float(bounds[1][0])), macro_f1(table),
        (float(bounds[0][1]), float(bounds[1][1])), dict(zip(labels, _classes(table), strict=True)),
        tuple(tuple(map(int, row)) for row in table), sum(not stance.judged for stance in stances),
    )  # fmt: skip


def confusion(gold: npt.NDArray[Any], judged: npt.NDArray[Any], size: int) -> Counts:
    """Counts (size, size): rows are gold labels, columns judged ones."""
    return np.bincount(gold * size + judged, minlength=size * size).reshape(size, size)


def macro_f1(table: Counts) -> float:
    """The mean of the labels' F1."""
    return float(np.mean([one["f1"] for one in _classes(table)]))


def _accuracy(table: Counts) -> float:
    return float(np.trace(table) / max(1, table.sum()))


def _classes(table: Counts) -> list[dict[str, float]]:
    return [
        {"precision": float(hit / max(1, judged)), "recall": float(hit / max(1, there)),
         "f1": float(2 * hit / max(1, judged + there)), "pairs": int(there)}
        for hit, judged, there in zip(np.diag(table), table.sum(0), table.sum(1), strict=True)
    ]  # fmt: skip


def _resample(pair_set: PairSet, gold: npt.NDArray[Any], judged: npt.NDArray[Any], seed: int) -> Iterator[Counts]:
    """The confusion of ``RESAMPLES`` draws of hypotheses with all their pairs."""
    names = {name: place for place, name in enumerate(dict.fromkeys(pair.hypothesis for pair in pair_set.pairs))}
    size = len(pair_set.labels)
    tables = np.zeros((len(names), size, size), np.int64)
    np.add.at(tables, (np.array([names[pair.hypothesis] for pair in pair_set.pairs]), gold, judged), 1)
    draw = np.random.default_rng(seed)
    yield from (tables[draw.integers(0, len(names), len(names))].sum(0) for _ in range(RESAMPLES))


def report(pair_set: PairSet, judges: Sequence[JudgeScores], seed: int) -> Report:
    """The scores of all judges, and the confusion of the last."""
    name, labels, count = pair_set.name, pair_set.labels, len(pair_set.pairs)
    hypotheses = len({pair.hypothesis for pair in pair_set.pairs})
    shown = [
        {"judge": one.judge, "accuracy": one.accuracy, "95 %": _bounds(one.accuracy_interval),
         "macro_f1": one.macro_f1, "95 % F1": _bounds(one.macro_f1_interval), "not_judged": one.unjudged / count}
        for one in judges
    ]  # fmt: skip
    last = judges[-1]
    each = [
        {"is": label, **dict(zip(labels, counts, strict=True)), **last.classes[label]}
        for label, counts in zip(labels, last.confusion, strict=True)
    ]
    facts = [message("evaluation.facts.pairs", pairs=count, hypotheses=hypotheses, seed=seed)]
    facts += [Message("evaluation.facts.two_way")] if labels == TWO else []
    drawn = {f"{one.judge}\nmacro-F1 {one.macro_f1:.2f}": one.confusion for one in judges}
    title = message("evaluation.plot.pairs", set=name, count=count)
    return Report(
        {"set": name, "pairs": count, "hypotheses": hypotheses, "labels": labels, "seed": seed,
         "confidence": CONFIDENCE, "judges": judges},
        [Table(message("evaluation.title.judges", set=name), tuple(shown[0]), shown),
         Table(message("evaluation.title.confusion", judge=last.judge), ("is", *labels, "precision", "recall", "f1"),
               each)],
        facts,
        draw=partial(plot.confusions, title, drawn, labels),
    )  # fmt: skip


def _bounds(interval: tuple[float, float]) -> str:
    return "{:.2f}-{:.2f}".format(*interval)


@click.command("stance")
@click.option("--pairs", "file", type=reporting.FILE, required=True, metavar="FILE",
              help="Labelled pairs: PREMISE<TAB>HYPOTHESIS<TAB>LABEL lines (entailment, neutral, contradiction or "
              "not_entailment), HealthVer's CSV, or COVID-Fact's labelled TSV or JSON lines.")  # fmt: skip
@reporting.seed_option
@reporting.out_option(help="Write report.json, confusion.png and confusion.svg there.")
@json_option
@click.pass_context
def command(ctx: click.Context, /, file: Path, seed: int, out: Path | None, as_json: bool) -> None:
    """Judge labelled pairs of a text and a statement: supported, contradicted, or neither.

    Reports accuracy, macro-F1 and the confusion of the entailment model in use (the built-in rules know only what is
    said word for word) and of the majority class. Writes no text. The plot needs the extra "eval".
    """
    reporting.need(*((plot,) if out else ()))
    with reporting.report_folder(out):
        pair_set = load(file)
        judges: list[Entailment] = [majority(pair_set.pairs), VERBATIM]
        with open_session(ctx) as session, progress(not as_json) as (started, advance):
            judge = session.site.entailment
            judges += [judge] if judge.languages else []
            started(len(pair_set.pairs) * len(judges))
            scores = [score(pair_set, judge, seed, advance) for judge in judges]
            session.note("evaluate", f"stance, {len(pair_set.pairs)} pairs", "finished")
    report(pair_set, scores, seed).finish(out, as_json)
