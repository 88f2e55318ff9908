"""``localmed eval claims``: M-Eval over many answers, and the agreement of its votes with labelled pairs.

*Answers* (``load``): a JSON list or JSON lines of ``{"id", "question", "answer", "sources", "label"}``; ``label``
("correct" or "mistaken") is a person's judgement, if any. Recall is the share of correct responses labelled correct,
specificity that of mistaken ones labelled mistaken (the paper's Table I); a response without enough evidence has
neither label. Undefined values are ``None``.

*Pairs* (``Inside``): each text of a labelled set is treated as a study without type or date. The judge sees the excerpt
that M-Eval takes, and only stances certain enough to vote count. ``by_claim`` compares the votes with the labels' own.

No question or answer text is stored or written.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from localmed.answering.answer_file import VerifyInput, of_object
from localmed.answering.claims import Read, premise
from localmed.answering.vote import outcome, vote
from localmed.cli.common import open_session, progress
from localmed.cli.options import json_option
from localmed.domain import Answer, Message, digest, message
from localmed.domain.errors import InputError, UsageError
from localmed.domain.parts import AlertPart, ClaimPart, EvidenceQualityPart, Label, ResponsePart
from localmed.domain.ports import NOT_JUDGED, Entailment, Stance
from localmed.lab import plot, reporting, sets, stance
from localmed.lab.reporting import Report, Rows, Table
from localmed.lab.stance import PairSet

RESPONSES = (Label.CORRECT, Label.MISTAKEN, Label.NOT_ENOUGH, Label.NOT_JUDGED)
CLAIMS = (Label.SUPPORTED, Label.CONTRADICTED, Label.NOT_ENOUGH, Label.NOT_JUDGED)
RESULTS = "results.jsonl"  # finished results, one line for each answer

Advance = Callable[[float, str], object]


@dataclass(frozen=True, slots=True)
class Item:
    """An answer to verify; ``gold`` is "correct", "mistaken" or "", ``key`` a hash of the record."""

    id: str
    verify_input: VerifyInput
    gold: str
    key: str


@dataclass(frozen=True, slots=True)
class Result:
    """The labels and counts of an answer."""

    id: str
    key: str
    gold: str
    response: str
    claims: tuple[str, ...]
    quality: str
    alerts: int
    sentences: int
    seconds: float


def load(file: Path) -> tuple[Item, ...]:
    """The answers of ``file``; raise ``InputError`` naming an invalid one, without its text."""
    records = sets.objects(sets.read_text(file), file.name)
    items = tuple(_item(record, number, place) for number, (place, record) in enumerate(records, 1))
    if not items:
        raise InputError("evaluation.no_answers", file=file.name)
    if len({item.id for item in items}) < len(items):
        raise InputError("evaluation.id_twice", file=file.name)
    return items


def _item(record: Mapping[str, Any], number: int, place: str) -> Item:
    try:
        verify_input = of_object(record)
    except InputError as error:
        raise error.within(place) from None
    gold = str(record.get("label") or "").lower()
    if gold not in ("", Label.CORRECT, Label.MISTAKEN):
        raise InputError("evaluation.label", place=place)
    key = digest(json.dumps(record, ensure_ascii=False, sort_keys=True))
    return Item(str(record.get("id") or number), verify_input, gold, key)


def result(item: Item, answer: Answer) -> Result:
    """The labels and counts in ``answer``, the verification of ``item``."""
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
    items: Sequence[Item], verify: Callable[[VerifyInput], Answer], advance: Advance, kept: Rows[Result]
) -> list[Result]:
    """Verify every item in order, reusing ``kept`` results."""
    results = []
    for item in items:
        make = partial(lambda item: result(item, verify(item.verify_input)), item)
        results.append(replace(kept.get((item.id, item.key), make), gold=item.gold))
        advance(1.0, results[-1].response)
    return results


def report(name: str, judge: str, results: Sequence[Result]) -> Report:
    """Counts and shares of ``results``; shares are over items with a ``gold`` label."""
    seconds = sorted(row.seconds for row in results)
    median = seconds[len(seconds) // 2] if seconds else 0.0
    given = [label for row in results for label in row.claims]
    counts = {"responses": _counts(RESPONSES, [row.response for row in results]), "claims": _counts(CLAIMS, given)}
    qualities = dict(Counter(row.quality for row in results if row.quality))
    labelled = {"accuracy": ("correct", "mistaken"), "recall": ("correct",), "specificity": ("mistaken",)}
    shares = {name: _share([row for row in results if row.gold in gold]) for name, gold in labelled.items()}
    alerts = sum(bool(row.alerts) for row in results)
    words = {part: {label_of(label): number for label, number in one.items()} for part, one in counts.items()}
    told = tuple(
        message("verify.count_of", count=count, label=Message(f"verify.quality.{quality}"))
        for quality, count in qualities.items()
    )
    facts = (
        message("evaluation.facts.judged_by", count=len(results), judge=judge, seconds=median),
        message("evaluation.facts.shares", shares=tuple(_metric(*pair) for pair in shares.items())),
        message("evaluation.facts.given", given=told or "-", alerts=alerts),
    )
    csv = [
        {"id": row.id, "gold": row.gold, "response": row.response, **_counts(CLAIMS, row.claims),
         "given evidence": row.quality, "alerts": row.alerts, "seconds": row.seconds}
        for row in results
    ]  # fmt: skip
    bars = {message(f"evaluation.plot.{part}", count=sum(one.values())): one for part, one in words.items()}
    return Report(
        {"set": name, "answers": len(results), "judge": judge, **counts, "qualities": qualities, "alerts": alerts,
         **shares, "median_seconds": median, "results": results},
        [Table(message(f"evaluation.title.{part}", set=name), ("label", "number"),
               [{"label": label, "number": number} for label, number in one.items()]) for part, one in words.items()],
        facts,
        csv,
        partial(plot.bars, message("evaluation.plot.judged", set=name, judge=judge), bars),
    )  # fmt: skip


def _counts(names: Sequence[str], labels: Sequence[str]) -> dict[str, int]:
    return {str(name): labels.count(name) for name in names}


def _share(results: Sequence[Result]) -> float | None:
    return sum(row.response == row.gold for row in results) / len(results) if results else None


def _metric(name: str, value: float | None) -> Message:
    metric = Message(f"evaluation.facts.{name}")
    if value is None:
        return message("evaluation.facts.undefined", metric=metric)
    return message("evaluation.facts.share", metric=metric, value=value)


def label_of(label: str) -> Message:
    """The message of a label."""
    return Message(f"verify.label_of.{label}")


# --- pairs ------------------------------------------------------------------------------------------------------------


class Inside:
    """``Entailment`` with the inputs and votes of M-Eval: its excerpts, and only stances certain enough to vote."""

    def __init__(self, judge: Entailment) -> None:
        self._judge = judge
        self.name, self.languages = f"inside M-Eval: {judge.name}", judge.languages

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``; every stance is certain or not judged."""
        taken = [(premise([Read.of(text)], claim).text, claim) for text, claim in pairs]
        stances = iter(self._judge.judge([pair for pair in taken if pair[0]]))
        return [_as_vote(next(stances)) if text else _as_vote(_NEUTRAL) for text, _ in taken]


_NEUTRAL = Stance(0.0, 1.0, 0.0)


def _as_vote(stance: Stance) -> Stance:
    if not stance.judged:
        return NOT_JUDGED
    side = vote(stance)
    return Stance(float(side == 1), float(side == 0), float(side == -1))


def by_claim(pair_set: PairSet, stances: Sequence[Stance]) -> dict[tuple[str, str], int]:
    """Counts of (label by the gold votes, label by the stances' votes) over claims; all texts have equal weight."""
    by_hypothesis: dict[str, list[tuple[int, Stance]]] = {}
    values = {"entailment": 1, "contradiction": -1}
    for pair, judged in zip(pair_set.pairs, stances, strict=True):
        by_hypothesis.setdefault(pair.hypothesis, []).append((values.get(pair.label, 0), judged))
    counts: Counter[tuple[str, str]] = Counter()
    for rows in by_hypothesis.values():
        weights = [1.0] * len(rows)
        gold = outcome([side for side, _ in rows], weights)
        mine = outcome([vote(judged) for _, judged in rows], weights, any(judged.judged for _, judged in rows))
        counts[gold.label.value, mine.label.value] += 1
    return dict(counts)


def pairs_report(pair_set: PairSet, judges: Sequence[Entailment], seed: int, advance: Advance) -> Report:
    """Scores of the judge inside M-Eval (the first) and alone, by class, and the votes on the claims."""
    scores = [stance.score(pair_set, judge, seed, advance) for judge in judges]
    made = stance.report(pair_set, scores, seed)
    counts = by_claim(pair_set, judges[0].judge([(pair.premise, pair.hypothesis) for pair in pair_set.pairs]))
    votes: list[dict[str, Any]] = [
        {"is": so, "judged": judged, "claims": number} for (so, judged), number in sorted(counts.items())
    ]
    words = [
        {"labels_say": label_of(vote["is"]), "m_eval_says": label_of(vote["judged"]), "claims": vote["claims"]}
        for vote in votes
    ]
    each = [{"class": label, **classes} for label, classes in scores[0].classes.items()]
    stances = [{"judge": one.judge, "accuracy": one.accuracy, "macro_f1": one.macro_f1} for one in scores]
    tables = [
        Table(message("evaluation.title.stances", set=pair_set.name), ("judge", "accuracy", "macro_f1"), stances),
        Table(Message("evaluation.title.by_class"), ("class", "precision", "recall", "pairs"), each),
        Table(Message("evaluation.title.votes"), ("labels_say", "m_eval_says", "claims"), words),
    ]
    return replace(made, values={**made.values, "claims": votes}, tables=tables, facts=())


@click.command("claims")
@click.option("--questions", type=reporting.FILE, metavar="FILE",
              help='Answers to verify: JSON lines or a JSON list of {"id", "question", "answer", "sources", "label"}; '
              "a label (correct or mistaken) is what a person found.")  # fmt: skip
@click.option("--pairs", type=reporting.FILE, metavar="FILE",
              help="Labelled pairs of a text and a statement, as of `eval stance`: how stances inside M-Eval agree "
              "with them.")  # fmt: skip
@reporting.seed_option
@reporting.out_option(help="Write report.json, a plot and, of answers, table.csv and results.jsonl there.")
@reporting.resume_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, questions: Path | None, pairs: Path | None, seed: int, out: Path | None, resume: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Verify many answers by M-Eval, or measure its stances on labelled pairs.

    Reports labels of responses, claims and given evidence; where answers are labelled, accuracy, recall and
    specificity. Writes no text, only ids and counts. The plot needs the extra "eval".
    """
    if (questions is None) == (pairs is None):
        raise UsageError("evaluation.questions_or_pairs")
    if resume and not questions:
        raise UsageError("evaluation.resume_questions")
    reporting.need(*((plot,) if out else ()))
    items = load(questions) if questions else ()
    pair_set = stance.load(pairs) if pairs else None
    with (
        reporting.report_folder(out, resume),
        open_session(ctx) as session,
        progress(not as_json) as (started, advance),
    ):
        judge = session.site.entailment
        if pair_set:
            judges: list[Entailment] = [Inside(judge), judge]
            started(len(pair_set.pairs) * len(judges))
            made = pairs_report(pair_set, judges, seed, advance)
            session.note("evaluate", f"claims, {len(pair_set.pairs)} pairs", "finished")
        else:
            started(len(items))
            file = out / RESULTS if out else None
            kept = Rows(file, reporting.made_with(session), resume, Result, "id", "key")
            name = questions.name if questions else ""
            made = report(name, judge.name, run(items, session.verify, advance, kept))
    made.finish(out, as_json, *(() if pair_set else (RESULTS,)))
