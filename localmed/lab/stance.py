"""How well an entailment model judges labelled pairs: accuracy, macro-F1, confusion; and judges that need no model.

Files that ``load`` reads, told apart by their first line:

- plain: ``premise<TAB>hypothesis<TAB>label`` lines, no heading; labels entailment, neutral, contradiction (or
  not_entailment);
- HealthVer (Sarrouti et al. 2021): CSV with the columns evidence, claim and label (Supports, Neutral, Refutes);
- COVID-Fact (Saakyan et al. 2021): its labelled pairs, a TSV with sentence1, sentence2 and entailment, or its JSON
  lines with claim, evidence and label.

A set that says only "not entailed" is two-way: neutral and contradiction are then one. Pairs of one hypothesis depend
on one another, so the intervals resample hypotheses, not pairs (percentile bootstrap, seeded).
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from localmed.answering.verbatim import find_verbatim
from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.domain.ports import NOT_JUDGED, Entailment, Stance
from localmed.lab.measures import CONFIDENCE, RESAMPLES
from localmed.lab.sets import read_text
from localmed.text.language import content_words

THREE = ("entailment", "neutral", "contradiction")
TWO = ("entailment", "not entailment")
BATCH = 64  # pairs judged between two steps of the progress bar
_NAMES = {
    **{name: name for name in THREE},
    **dict.fromkeys(("supports", "supported"), "entailment"),
    **dict.fromkeys(("refutes",), "contradiction"),
    **dict.fromkeys(("not_entailment", "not entailment", "refuted"), "not entailment"),
}
_GRID = np.round(np.arange(0.0, 1.01, 0.02), 2)  # of thresholds of the overlap baseline

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
class ClassScores:
    """Of one label; 0 where nothing was predicted or nothing is so."""

    precision: float
    recall: float
    f1: float
    pairs: int


@dataclass(frozen=True, slots=True)
class JudgeScores:
    """What one judge scored; an interval is (low, high). ``confusion[i][j]`` counts label i judged as label j.

    What is not judged (``unjudged`` pairs) counts as neutral there.
    """

    judge: str
    accuracy: float
    accuracy_interval: tuple[float, float]
    macro_f1: float
    macro_f1_interval: tuple[float, float]
    classes: Mapping[str, ClassScores]
    confusion: tuple[tuple[int, ...], ...]
    unjudged: int = 0


@dataclass(frozen=True, slots=True)
class StanceReport:
    """All judges over one set."""

    set: str
    pairs: int
    hypotheses: int
    labels: tuple[str, ...]
    seed: int
    confidence: float
    judges: tuple[JudgeScores, ...]


# --- reading --------------------------------------------------------------------------------------------------------


CELL_CHARACTERS = 100_000  # a premise has about 1,000; a longer cell is a quotation mark left open


def load(file: Path) -> PairSet:
    """Read ``file``; raise ``InputError`` naming the line that is not a labelled pair, without its text."""
    pairs: list[Labelled] = []
    for number, (premise, hypothesis, label) in enumerate(_read(file, read_text(file)), 1):
        name = _NAMES.get(label.strip().lower().replace("-", "_"))
        if not (premise.strip() and hypothesis.strip() and name):
            raise InputError("evaluation.pair", number=number, file=file.name)
        pairs.append(Labelled(premise.strip(), hypothesis.strip(), name))
    if not pairs:
        raise InputError("evaluation.pairs_none", file=file.name)
    two = any(pair.label == "not entailment" for pair in pairs)
    return PairSet(file.name, tuple(_two_way(pair) if two else pair for pair in pairs), TWO if two else THREE)


def _read(file: Path, text: str) -> Iterator[tuple[str, str, str]]:
    try:
        yield from _rows(text)
    except csv.Error:
        raise InputError("evaluation.csv", file=file.name) from None


def _rows(text: str) -> Iterator[tuple[str, str, str]]:
    """Premise, hypothesis and label of each row, as written; "" for what is not there."""
    csv.field_size_limit(CELL_CHARACTERS)  # of the process: whoever read a table before may have raised it
    first = text.split("\n", 1)[0]
    if first.startswith("{"):
        yield from (_json_row(line) for line in text.split("\n") if line.strip())
    elif first.startswith("index\t"):
        yield from _cells(csv.reader(io.StringIO(text), delimiter="\t", quoting=csv.QUOTE_NONE), (1, 2, 3))
    elif {"evidence", "claim", "label"} <= set(first.strip().split(",")):
        columns = first.strip().split(",")
        places = (columns.index("evidence"), columns.index("claim"), columns.index("label"))
        yield from _cells(csv.reader(io.StringIO(text, newline="")), places)
    else:
        for line in text.splitlines():
            if line.strip():
                cells = [*line.split("\t"), "", "", ""]
                yield cells[0], cells[1], cells[2]


def _cells(rows: Iterator[list[str]], places: tuple[int, int, int]) -> Iterator[tuple[str, str, str]]:
    next(rows)
    for row in rows:
        cells = [row[place] if place < len(row) else "" for place in places]
        yield cells[0], cells[1], cells[2]


def _json_row(line: str) -> tuple[str, str, str]:
    try:
        record = json.loads(line)
        return " ".join(record["evidence"]), str(record["claim"]), str(record["label"])
    except (ValueError, KeyError, TypeError):
        return "", "", ""


def _two_way(pair: Labelled) -> Labelled:
    return Labelled(pair.premise, pair.hypothesis, "entailment" if pair.label == "entailment" else "not entailment")


# --- what needs no model --------------------------------------------------------------------------------------------


class Majority:
    """``Entailment``: the same label whatever is asked."""

    languages = ("en", "zh")

    def __init__(self, pairs: Sequence[Labelled]) -> None:
        """The most frequent label of ``pairs`` (of two-way ones, "not entailment" is said as neutral)."""
        self._label = Counter(pair.label for pair in pairs).most_common(1)[0][0]
        self.name = "majority class"

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        return [_certain(self._label)] * len(pairs)


class Verbatim:
    """``Entailment``: supported is what the premise says word for word; nothing else is judged."""

    name = "word for word"
    languages = ("en", "zh")

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        return [
            _certain("entailment") if find_verbatim(premise, statement) else NOT_JUDGED for premise, statement in pairs
        ]


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
        return [_certain(self.labels[(share >= self.low) + (share >= self.high)]) for share in shares]


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
        for low in _GRID:
            for high in _GRID[low <= _GRID]:
                judged = np.array(order)[(shares >= low).astype(int) + (shares >= high)]
                score = macro_f1(confusion(gold, judged, len(THREE)))
                best = max(best, (score, float(low), float(high), order))
    first, second, third = (THREE[place] for place in best[3])
    return Overlap(best[1], best[2], (first, second, third))


def _certain(label: str) -> Stance:
    supported, neither, contradicted = (float(name == label) for name in THREE)
    return Stance(supported, neither, contradicted) if label in THREE else Stance(0.0, 1.0, 0.0)


def _unwatched(done: float, doing: str) -> None:
    del done, doing


# --- scoring --------------------------------------------------------------------------------------------------------


def report(pair_set: PairSet, judges: Sequence[Entailment], seed: int, advance: Advance = _unwatched) -> StanceReport:
    """Every judge over every pair; ``advance`` is told of each batch."""
    scores = tuple(_scores(pair_set, judge, seed, advance) for judge in judges)
    hypotheses = len({pair.hypothesis for pair in pair_set.pairs})
    return StanceReport(pair_set.name, len(pair_set.pairs), hypotheses, pair_set.labels, seed, CONFIDENCE, scores)


def _scores(pair_set: PairSet, judge: Entailment, seed: int, advance: Advance) -> JudgeScores:
    labels = pair_set.labels
    gold = np.array([labels.index(pair.label) for pair in pair_set.pairs])
    stances = list(_judged(pair_set, judge, advance))
    judged = np.array([(labels.index(stance.label) if stance.label in labels else 1) for stance in stances])
    table = confusion(gold, judged, len(labels))
    accuracies, macros = _resampled(pair_set, gold, judged, seed)
    return JudgeScores(
        judge.name, _accuracy(table), _interval(accuracies), macro_f1(table), _interval(macros),
        dict(zip(labels, _classes(table), strict=True)), tuple(tuple(map(int, row)) for row in table),
        sum(not stance.judged for stance in stances),
    )  # fmt: skip


def _judged(pair_set: PairSet, judge: Entailment, advance: Advance) -> Iterator[Stance]:
    for start in range(0, len(pair_set.pairs), BATCH):
        batch = [(pair.premise, pair.hypothesis) for pair in pair_set.pairs[start : start + BATCH]]
        yield from judge.judge(batch)
        advance(len(batch), judge.name)


def confusion(gold: npt.NDArray[Any], judged: npt.NDArray[Any], size: int) -> Counts:
    """Counts (size, size): rows are what is so, columns what was judged."""
    return np.bincount(gold * size + judged, minlength=size * size).reshape(size, size)


def macro_f1(table: Counts) -> float:
    """The mean of the labels' F1."""
    return float(np.mean([class_.f1 for class_ in _classes(table)]))


def _accuracy(table: Counts) -> float:
    return float(np.trace(table) / max(1, table.sum()))


def _classes(table: Counts) -> list[ClassScores]:
    hits, judged, so = np.diag(table), table.sum(0), table.sum(1)
    return [
        ClassScores(
            float(hit / max(1, predicted)),
            float(hit / max(1, there)),
            float(2 * hit / max(1, predicted + there)),
            int(there),
        )
        for hit, predicted, there in zip(hits, judged, so, strict=True)
    ]


def _resampled(
    pair_set: PairSet, gold: npt.NDArray[Any], judged: npt.NDArray[Any], seed: int
) -> tuple[list[float], list[float]]:
    """Accuracy and macro-F1 of ``RESAMPLES`` draws of hypotheses, each with all its pairs."""
    names = {name: place for place, name in enumerate(dict.fromkeys(pair.hypothesis for pair in pair_set.pairs))}
    size = len(pair_set.labels)
    tables = np.zeros((len(names), size, size), np.int64)
    np.add.at(tables, (np.array([names[pair.hypothesis] for pair in pair_set.pairs]), gold, judged), 1)
    draw = np.random.default_rng(seed)
    drawn = [tables[draw.integers(0, len(names), len(names))].sum(0) for _ in range(RESAMPLES)]
    return [_accuracy(table) for table in drawn], [macro_f1(table) for table in drawn]


def _interval(values: Sequence[float]) -> tuple[float, float]:
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, (outside, 1 - outside))
    return float(low), float(high)


def facts(report: StanceReport) -> tuple[Message, ...]:
    """What the table does not say."""
    pairs = message("evaluation.facts.pairs", pairs=report.pairs, hypotheses=report.hypotheses, seed=report.seed)
    return (pairs, message("evaluation.facts.two_way")) if len(report.labels) == 2 else (pairs,)
