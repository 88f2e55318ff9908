"""M-Eval over many answers, and how well its votes agree with labelled pairs.

*Answers* (``load``): a JSON list or JSON lines of ``{"id", "question", "answer", "sources", "label"}``, where ``label``
("correct" or "mistaken") is what a person found, if anybody looked. Recall is the share of the correct responses that
are called correct, specificity that of the mistaken ones that are called mistaken (the paper's Table I); a response on
which there is not enough evidence is called neither. Undefined is ``None``.

*Pairs* (``Inside``): each text of a labelled set is a study without type or date; what M-Eval takes of it is judged,
and only a stance that is sure enough to vote counts. ``by_claim`` compares the votes' outcome with the labels' own.

Nothing kept or written holds a question's or an answer's text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from localmed.answering.answer_file import VerifyInput, of_object
from localmed.answering.claims import Read, premise
from localmed.answering.vote import outcome, vote
from localmed.domain import Answer, Message, digest, message
from localmed.domain.errors import InputError
from localmed.domain.parts import AlertPart, ClaimPart, EvidenceQualityPart, Label, ResponsePart
from localmed.domain.ports import NOT_JUDGED, Entailment, Stance
from localmed.lab.sets import read_bytes
from localmed.lab.stance import PairSet
from localmed.process.files import csv_text

RESPONSES = (Label.CORRECT, Label.MISTAKEN, Label.NOT_ENOUGH, Label.NOT_JUDGED)
CLAIMS = (Label.SUPPORTED, Label.CONTRADICTED, Label.NOT_ENOUGH, Label.NOT_JUDGED)
RESULTS = "results.jsonl"  # what is finished, a line an answer

Advance = Callable[[float, str], object]


@dataclass(frozen=True, slots=True)
class Item:
    """An answer to be verified; ``gold`` is "correct", "mistaken" or "". ``key`` tells whether it has changed."""

    id: str
    verify_input: VerifyInput
    gold: str
    key: str


@dataclass(frozen=True, slots=True)
class Result:
    """What an answer came to: labels and counts."""

    id: str
    key: str
    gold: str
    response: str
    claims: tuple[str, ...]
    quality: str
    alerts: int
    sentences: int
    seconds: float


@dataclass(frozen=True, slots=True)
class ClaimsReport:
    """All answers together; shares are of those with a ``gold`` label, ``None`` where there is none."""

    set: str
    answers: int
    judge: str
    responses: Mapping[str, int]
    claims: Mapping[str, int]
    qualities: Mapping[str, int]
    alerts: int
    accuracy: float | None
    recall: float | None
    specificity: float | None
    median_seconds: float
    results: tuple[Result, ...]


def load(file: Path) -> tuple[Item, ...]:
    """The answers of ``file``; raise ``InputError`` naming the one that cannot be used, without its text."""
    try:
        text = read_bytes(file).decode("utf-8-sig")
        rows = json.loads(text) if text.lstrip().startswith("[") else list(map(json.loads, _lines(text)))
    except (ValueError, RecursionError):
        raise InputError("evaluation.no_json", file=file.name) from None
    if not rows:
        raise InputError("evaluation.no_answers", file=file.name)
    items = tuple(_item(row, place, file.name) for place, row in enumerate(rows, 1))
    twice = [name for name, count in Counter(item.id for item in items).items() if count > 1]
    if twice:
        raise InputError("evaluation.ids_twice", count=len(twice), file=file.name)
    return items


def _lines(text: str) -> Iterator[str]:
    return (line for line in text.splitlines() if line.strip())


def _item(row: Any, place: int, name: str) -> Item:
    try:
        verify_input = of_object(row)
    except InputError as error:
        raise error.within(f"{name}:{place}") from None
    gold = str(row.get("label") or "").lower()
    if gold not in ("", Label.CORRECT, Label.MISTAKEN):
        raise InputError("evaluation.label", place=f"{name}:{place}")
    return Item(
        str(row.get("id") or place), verify_input, gold, digest(json.dumps(row, ensure_ascii=False, sort_keys=True))
    )


def result(item: Item, answer: Answer) -> Result:
    """What ``answer`` (of the verification of ``item``) says."""
    response = next((part.label for part in answer.parts if isinstance(part, ResponsePart)), Label.NOT_ENOUGH)
    return Result(
        id=item.id,
        key=item.key,
        gold=item.gold,
        response=response.value,
        claims=tuple(part.label.value for part in answer.parts if isinstance(part, ClaimPart)),
        quality=next((part.quality.value for part in answer.parts if isinstance(part, EvidenceQualityPart)), ""),
        alerts=sum(len(part.alerts) for part in answer.parts if isinstance(part, AlertPart)),
        sentences=answer.verification.statements_checked,
        seconds=round(sum(step.seconds for step in answer.trace), 4),
    )


def run(
    items: Sequence[Item], verify: Callable[[VerifyInput], Answer], advance: Advance, out: Path | None, resume: bool
) -> tuple[Result, ...]:
    """Every item verified, in order; each is written to ``out`` when it is finished. ``resume`` takes those there."""
    file = out / RESULTS if out else None
    done = _kept(file) if file and resume else {}
    if file:  # anew: behind a line that was cut off the next one would be lost
        file.write_text("".join(map(_row, done.values())), "utf-8")
    results = []
    for item in items:
        kept = done.get((item.id, item.key))
        finished = kept or result(item, verify(item.verify_input))
        if file and not kept:
            with file.open("a", encoding="utf-8") as lines:
                lines.write(_row(finished))
        results.append(replace(finished, gold=item.gold))
        advance(1.0, finished.response)
    return tuple(results)


def _row(row: Result) -> str:
    return json.dumps(asdict(row), ensure_ascii=False) + "\n"


def _kept(file: Path) -> dict[tuple[str, str], Result]:
    """The finished results; a line that an interruption cut is left out."""
    kept = {}
    for line in read_bytes(file).decode().splitlines() if file.exists() else ():
        try:
            values = json.loads(line)
            row = Result(**(values | {"claims": tuple(values["claims"])}))
        except (ValueError, TypeError, KeyError):
            continue
        kept[row.id, row.key] = row
    return kept


def report(name: str, judge: str, results: Sequence[Result]) -> ClaimsReport:
    """The counts and shares of ``results``."""
    seconds = sorted(row.seconds for row in results)
    return ClaimsReport(
        set=name,
        answers=len(results),
        judge=judge,
        responses=_counts(RESPONSES, [row.response for row in results]),
        claims=_counts(CLAIMS, [label for row in results for label in row.claims]),
        qualities=dict(Counter(row.quality for row in results if row.quality)),
        alerts=sum(bool(row.alerts) for row in results),
        accuracy=_share([row for row in results if row.gold]),
        recall=_share([row for row in results if row.gold == Label.CORRECT]),
        specificity=_share([row for row in results if row.gold == Label.MISTAKEN]),
        median_seconds=seconds[len(seconds) // 2] if seconds else 0.0,
        results=tuple(results),
    )


def _counts(names: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    return {str(name): labels.count(name) for name in names}


def _share(results: Sequence[Result]) -> float | None:
    """The share that is called what it is; undefined of nothing."""
    return sum(row.response == row.gold for row in results) / len(results) if results else None


def as_csv(report: ClaimsReport) -> str:
    """One line an answer."""
    rows: list[Sequence[object]] = [
        ("id", "gold", "response", *map(str, CLAIMS), "given evidence", "alerts", "seconds")
    ]
    for row in report.results:
        counts = [row.claims.count(name) for name in CLAIMS]
        rows.append((row.id, row.gold, row.response, *counts, row.quality, row.alerts, row.seconds))
    return csv_text(rows)


def facts(report: ClaimsReport) -> tuple[Message, ...]:
    """What the table does not say."""
    shares = (("accuracy", report.accuracy), ("recall", report.recall), ("specificity", report.specificity))
    qualities = tuple(
        message("verify.count_of", count=count, label=Message(f"verify.quality.{name}"))
        for name, count in report.qualities.items()
    )
    return (
        message("evaluation.facts.judged_by", count=report.answers, judge=report.judge, seconds=report.median_seconds),
        message("evaluation.facts.shares", shares=tuple(_metric(name, value) for name, value in shares)),
        message("evaluation.facts.given", given=qualities or "-", alerts=report.alerts),
    )


def _metric(name: str, value: float | None) -> Message:
    metric = Message(f"evaluation.facts.{name}")
    if value is None:
        return message("evaluation.facts.undefined", metric=metric)
    return message("evaluation.facts.share", metric=metric, value=value)


def label_of(label: str) -> Message:
    """A label as people read it."""
    return Message(f"verify.label_of.{label}")


def alternative(report: ClaimsReport) -> Message:
    """The plot in words, for those who cannot see it."""
    return message("evaluation.plot.label_bars", responses=_bar(report.responses), claims=_bar(report.claims))


def _bar(counts: Mapping[str, int]) -> tuple[Message, ...]:
    return tuple(message("evaluation.plot.part", label=label_of(label), count=n) for label, n in counts.items())


# --- pairs ------------------------------------------------------------------------------------------------------------


class Inside:
    """``Entailment`` as M-Eval uses ``judge``: what it takes of a text, and only what is sure enough to vote."""

    def __init__(self, judge: Entailment) -> None:
        self._judge = judge
        self.name, self.languages = f"inside M-Eval: {judge.name}", judge.languages

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``; every stance is certain, or not judged."""
        taken = [(premise([Read.of(text)], claim).text, claim) for text, claim in pairs]
        stances = iter(self._judge.judge([pair for pair in taken if pair[0]]))
        return [_voted(next(stances)) if text else _voted(_NEUTRAL) for text, _ in taken]


_NEUTRAL = Stance(0.0, 1.0, 0.0)


def _voted(stance: Stance) -> Stance:
    if not stance.judged:
        return NOT_JUDGED
    side = vote(stance)
    return Stance(float(side == 1), float(side == 0), float(side == -1))


def by_claim(pair_set: PairSet, stances: Sequence[Stance]) -> dict[tuple[str, str], int]:
    """How often (what the labels' vote says of a claim, what the stances' vote says), every text weighing the same."""
    by_hypothesis: dict[str, list[tuple[int, Stance]]] = {}
    values = {"entailment": 1, "contradiction": -1}
    for pair, stance in zip(pair_set.pairs, stances, strict=True):
        by_hypothesis.setdefault(pair.hypothesis, []).append((values.get(pair.label, 0), stance))
    counts: Counter[tuple[str, str]] = Counter()
    for rows in by_hypothesis.values():
        weights = [1.0] * len(rows)
        gold = outcome([side for side, _ in rows], weights)
        mine = outcome([vote(stance) for _, stance in rows], weights, any(stance.judged for _, stance in rows))
        counts[gold.label.value, mine.label.value] += 1
    return dict(counts)
