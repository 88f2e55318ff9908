"""``localmed eval mcq``: the same multiple-choice questions by several arms, resumable (LINS; Omni-RAG).

Arms: ``chat`` (the question alone), ``cot`` (after a chain of thought), and ``ARMS``, which put evidence before the
question. In ``mairag`` arms a choice that contradicts the evidence is repeated with that remark (LINS, PCA). Every
arm chooses; ``abstained``: localmed would not have answered, because nothing was found and the model was not certain
by itself. A row has ids, probabilities, counts and times, no text.

Results:

- Accuracy: the mean over questions with 95 % bootstrap intervals; each arm is tested against the first by a paired
  randomisation test, corrected by Holm within a set. ``answered`` is the accuracy where localmed would have answered.
- Rank score (LINS): an arm's mean rank by accuracy over the sets; ties share their rank.
- Position bias: the largest deviation of a place's mean probability from its share, before averaging over orders.
  ``flips`` is the share of single orders whose choice differs from the averaged one.
- Uncertainty: the entropy of the averaged probabilities, divided by that of a guess, and its AUROC for wrong choices
  (0.5: no information, ``None``: all right or all wrong). For repeated chains of thought also the AUROC of their
  disagreement (LUQ, below).
- Overhead: the share of time outside model and search.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import numpy as np

from localmed.answering.asking import (
    COHERENCE,
    DECOMPOSITION,
    RELEVANCE,
    SELF_KNOWLEDGE,
    CoherenceInput,
    QuestionInput,
)
from localmed.answering.chat import ChatRoles
from localmed.cli.common import open_session, progress
from localmed.cli.options import filter_options, json_option, search_filter
from localmed.domain import (
    Answer,
    AnswerStatus,
    Citation,
    Evidence,
    Origin,
    Provenance,
    SearchFilter,
    Statement,
    digest,
    message,
)
from localmed.domain.errors import ModelError, TooLong, UnknownName, UsageError
from localmed.domain.parts import SourcePlanPart
from localmed.domain.ports import UNWATCHED, Choice, CountingChat, Message, Reply, Request, Stance, Watch
from localmed.domain.roc import area_under_roc
from localmed.lab import measures, multiple_choice, plot, reporting
from localmed.lab.multiple_choice import Chosen, McqQuestion, McqSet, Orders, set_named
from localmed.lab.reporting import ROWS, Report, Rows, Table, line
from localmed.process.hooks import SILENT
from localmed.site.session import Session, clean_question
from localmed.site.site import Site
from localmed.text.language import detect, sentences
from localmed.workflows.finding import Plan, bounded
from localmed.workflows.flow import Cite, Driver, Flow, asked
from localmed.workflows.plan import searched_part
from localmed.workflows.receipts import best_of, receipts
from localmed.workflows.strategies import STRATEGIES, Sources, gather
from localmed.workflows.thorough import by_sub_questions, relevant

CHAT, COT = "chat", "cot"
DEFAULT_ARMS = (CHAT, COT, "retrieval", "mairag")

Context = Callable[[str, str], Answer]  # (question, arm) -> its evidence
Agrees = Callable[[str, tuple[Evidence, ...]], bool]  # whether a statement agrees with the evidence
Judge = Callable[[Sequence[tuple[str, str]]], Sequence[Stance]]  # (premise, hypothesis) pairs
Advance = Callable[[float, str], object]


# --- the evidence of an arm -------------------------------------------------------------------------------------------

# ``retrieval`` takes the first sections (plain retrieval-augmented generation). ``mairag`` runs LINS's agents up to the
# generator, with the steps of ``thorough``: relevant sections (PRA); else the model's own knowledge if it is certain
# (SKA); else sections found for sub-questions (QDA). ``mairag-without-ROLE`` omits one. ``plan-STRATEGY`` gathers by a
# source plan (Omni-RAG). The answer has evidence (the best passage of each section) and trace only. Its status is
# ``unverified`` where the model was certain by itself, ``abstained`` where it was not and nothing was found.

RETRIEVAL, MAIRAG, PLANNED = "retrieval", "mairag", "plan-"
SWITCHES = (RELEVANCE.name, SELF_KNOWLEDGE.name, DECOMPOSITION.name, COHERENCE.name)  # PRA, SKA, QDA, PCA
ARMS = (
    RETRIEVAL,
    MAIRAG,
    *(f"{MAIRAG}-without-{role}" for role in SWITCHES),
    *(f"{PLANNED}{name}" for name in STRATEGIES),
)


def find_evidence(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, arm: str, provenance: Provenance
) -> Flow:
    """The evidence that ``arm`` finds for ``question``."""
    question, _ = bounded(question)
    if arm.startswith(PLANNED):
        return (yield from _planned(question, filters, plan, sources, arm.removeprefix(PLANNED), provenance))
    plan = replace(plan, chat=plan.chat - {arm.removeprefix(f"{MAIRAG}-without-")})
    within = plan.within(filters)
    found: Answer = yield from receipts(question, within, plan.searched, provenance)
    if arm == RETRIEVAL:
        return _with(found, best_of(found, found.sections)[: plan.passages])
    helping = yield from relevant(found, plan)
    if not helping.sections:
        if (yield from asked(SELF_KNOWLEDGE, QuestionInput(question), plan.chat, False)):
            return _with(found, (), AnswerStatus.UNVERIFIED)
        helping = yield from by_sub_questions(found, within, plan, provenance, ())
    return _with(helping, best_of(helping, helping.sections)[: plan.passages])


def _with(answer: Answer, evidence: tuple[Evidence, ...], status: AnswerStatus = AnswerStatus.ABSTAINED) -> Answer:
    status = AnswerStatus.ANSWERED if evidence else status
    return replace(answer, workflow="context", evidence=evidence, status=status, receipts=None, conflicts=())


def _planned(
    question: str, filters: SearchFilter, plan: Plan, sources: Sources, strategy: str, provenance: Provenance
) -> Flow:
    planned, _ = yield from STRATEGIES[strategy](question, filters, plan, sources)
    gathered = yield from gather(question, planned, sources, filters)
    hits = gathered.best(plan.passages)
    evidence: tuple[Evidence, ...] = (yield Cite(hits)) if hits else ()
    answer = Answer(AnswerStatus.ABSTAINED, question, detect(question), (), (), (), provenance)
    return replace(_with(answer, evidence), parts=searched_part(gathered))


# --- one question by one arm ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Meter:
    """A ``CountingChat`` that counts another's calls, tokens and seconds. Not thread-safe."""

    model: CountingChat
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    @property
    def identity(self) -> Any:
        """The model's."""
        return self.model.identity

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        with self._timed():
            reply = self.model.complete(request, watch)
        self.calls += 1
        self.tokens_in += reply.prompt_tokens
        self.tokens_out += reply.reply_tokens
        return reply

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``; the shared prefix is read, and counted, once."""
        with self._timed():
            choices = self.model.choose(prefix, branches, labels, watch)
            self.tokens_in += sum(self.model.count([*(message.content for message in prefix), *branches]))
        self.calls += 1
        return choices

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``CountingChat``; not counted."""
        with self._timed():
            return self.model.count(texts)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds += time.perf_counter() - began

    def reset(self) -> None:
        """Set all counts to zero."""
        self.calls = self.tokens_in = self.tokens_out = 0
        self.seconds = 0.0


@dataclass(frozen=True, slots=True)
class McqRow:
    """The outcome of a question by an arm.

    ``seconds`` includes ``model_seconds`` and ``search_seconds``. ``agreement``: of the chain of thought with further
    samples (LUQ), if judged. ``too_long``: the question exceeds the model's context even without evidence; it has no
    choice (-1) and counts as wrong. ``queries`` and ``sources`` count queries and passages for each source (plan arms).
    """

    set: str
    id: str
    arm: str
    answer: int
    choice: int
    probabilities: tuple[float, ...]
    places: tuple[float, ...]
    flips: float
    measured: bool
    abstained: bool
    regenerated: bool
    passages: int
    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float
    model_seconds: float
    search_seconds: float
    queries: Mapping[str, int]
    sources: Mapping[str, int]
    agreement: float | None = None
    too_long: bool = False

    @property
    def right(self) -> bool:
        """Whether the choice is the right option."""
        return self.choice == self.answer


@dataclass(frozen=True, slots=True)
class Bench:
    """The metered model, the evidence of an arm, and the judge of a choice against its evidence.

    ``seed`` draws the orders of the options, unless ``every_order`` is shown.
    """

    chat: Meter
    context: Context
    agrees: Agrees
    seed: int
    judge: Judge = lambda _: ()
    samples: int = 0
    every_order: bool = False

    def row(self, name: str, question: McqQuestion, arm: str) -> McqRow:
        """Answer ``question`` of the set ``name`` by ``arm``."""
        self.chat.reset()
        began = time.perf_counter()
        answer = self.context(question.text, arm) if arm not in (CHAT, COT) else None
        evidence = answer.evidence if answer else ()
        orders = multiple_choice.orders(len(question.options), f"{self.seed} {name} {question.id}", self.every_order)
        try:
            chosen, how = self._choose(question, arm, evidence, orders)
        except TooLong:
            chosen, how = multiple_choice.undecided(len(question.options)), {"too_long": True}
        steps = answer.trace if answer else ()
        parts = [part for part in (answer.parts if answer else ()) if isinstance(part, SourcePlanPart)]
        return McqRow(
            set=name,
            id=question.id,
            arm=arm,
            answer=question.answer,
            choice=-1 if "too_long" in how else chosen.best,
            probabilities=tuple(round(value, 6) for value in chosen.probabilities),
            places=tuple(round(value, 6) for value in chosen.places),
            flips=round(chosen.flips, 4),
            measured=chosen.measured,
            abstained=answer is not None and answer.status is AnswerStatus.ABSTAINED,
            passages=len(evidence),
            calls=self.chat.calls,
            tokens_in=self.chat.tokens_in,
            tokens_out=self.chat.tokens_out,
            seconds=round(time.perf_counter() - began, 4),
            model_seconds=round(self.chat.seconds, 4),
            search_seconds=round(sum(step.seconds for step in steps if step.name in SEARCHES), 4),
            queries={part.source: len(part.queries) for part in parts},
            sources={part.source: part.passages for part in parts},
            **{"regenerated": False, **how},
        )

    def _choose(
        self, question: McqQuestion, arm: str, evidence: tuple[Evidence, ...], orders: Orders
    ) -> tuple[Chosen, Any]:
        """The choice, repeated where the evidence contradicts it; raise ``ModelError`` where nothing fits."""
        text, options = question.text, question.options
        thought = self._reason(question, orders) if arm == COT else ""
        chosen = multiple_choice.choose(self.chat, text, options, orders, evidence, thought)
        agreed = self._agreement(question, orders, thought) if thought and self.samples else None
        if not arm.startswith(MAIRAG) or self._agrees(question, chosen.best, evidence, arm):
            return chosen, {"agreement": agreed}
        against = options[chosen.best]
        again = multiple_choice.choose(self.chat, text, options, orders, evidence, "", against)
        return again, {"regenerated": True}

    def _reason(self, question: McqQuestion, orders: Orders, sample: int = 0) -> str:
        return multiple_choice.reasoning(self.chat, question.text, question.options, orders[0], sample)

    def _agreement(self, question: McqQuestion, orders: Orders, thought: str) -> float | None:
        """The agreement of further chains of thought with ``thought`` (LUQ)."""
        thoughts = [self._reason(question, orders, number) for number in range(1, self.samples + 1)]
        lines = [thought[start:end] for start, end in sentences(thought)]
        return agreement(self.judge(pairs(lines, [text for text in thoughts if text.strip()])))

    def _agrees(self, question: McqQuestion, choice: int, evidence: tuple[Evidence, ...], arm: str) -> bool:
        if not evidence or arm.endswith(COHERENCE.name):
            return True
        return self.agrees(f"{question.text} {question.options[choice]}", evidence)


SEARCHES = frozenset({"search", "find", "look_up", "cite"})


def made_with(sets: Sequence[McqSet], arms: Sequence[str], seed: int, **facts: str) -> dict[str, str]:
    """The identity of a batch, checked when it is resumed; the sets are identified by a digest."""
    texts = (
        f"{questions.name}\t{question.id}\t{question.text}\t{question.options}\t{question.answer}"
        for questions in sets
        for question in questions.questions
    )
    return {"questions": digest(*texts)[:16], "arms": " ".join(arms), "seed": str(seed), **facts}


def run(
    bench: Bench, sets: Sequence[McqSet], arms: Sequence[str], kept: Rows[McqRow], advance: Advance
) -> list[McqRow]:
    """Every row, reusing ``kept`` ones."""
    finished = []
    for questions in sets:
        for question in questions.questions:
            for arm in arms:
                make = partial(bench.row, questions.name, question, arm)
                finished.append(kept.get((questions.name, question.id, arm), make))
                advance(1, arm)
    return finished


def report(rows: Sequence[McqRow], left_out: Mapping[str, int], made: Mapping[str, str], seed: int) -> Report:
    """The statistics of ``rows``; the first arm is the reference of the tests."""
    by_set: dict[str, dict[str, list[McqRow]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        by_set[row.set][row.arm].append(row)
    arms = list(dict.fromkeys(row.arm for row in rows))
    sizes = {name: len(next(iter(by_arm.values()))) for name, by_arm in by_set.items()}
    scores = [score for name, by_arm in by_set.items() for score in _scores(name, by_arm, seed)]
    ranks = rank_scores(scores, arms)
    same = [
        (name, one, other, _same(by_arm[one], by_arm[other]))
        for name, by_arm in by_set.items()
        for one, other in combinations(arms, 2)
    ]
    measured = all(row.measured for row in rows)
    ranked = tuple(f"{arm} {rank:.2f}" for arm, rank in sorted(ranks.items(), key=lambda pair: pair[1]))
    agreed = tuple(f"{name}: {one} = {other} {share:.1%}" for name, one, other, share in same)
    too_long = (score for score in scores if score["too_long"])
    facts = (
        message("evaluation.facts.mcq_tests", reference=arms[0], seed=seed),
        message("evaluation.facts.mcq_ranks", ranks=ranked),
        *((message("evaluation.facts.mcq_agreement", agreed=agreed),) if agreed else ()),
        *(message("evaluation.facts.mcq_left_out", set=name, count=n) for name, n in left_out.items() if n),
        *(message("evaluation.facts.mcq_too_long", set=score["set"], arm=score["arm"], share=score["too_long"])
          for score in too_long),
        *(() if measured else (message("evaluation.facts.mcq_named"),)),
        *(message("evaluation.facts.made", name=name, value=value) for name, value in made.items()),
    )  # fmt: skip
    points = [
        plot.Point(
            f"{score['set']} (n = {sizes[score['set']]})", *(score[name] for name in ("arm", "accuracy", "low", "high"))
        )
        for score in scores
    ]
    csv = [{**score, "rank score": ranks[score["arm"]]} for score in scores]
    costs = [
        {**score, "by_source": " ".join(f"{name} {count:.1f}/{score['sources'].get(name, 0):.1f}"
                                        for name, count in score["queries"].items()) or "-"}
        for score in scores
    ]  # fmt: skip
    return Report(
        {"sets": sizes, "left_out": dict(left_out), "arms": arms, "scores": scores, "ranks": ranks, "agreement": same,
         "measured": measured, "made_with": dict(made), "seed": seed},
        [Table(message("evaluation.title.mcq"), COLUMNS, scores),
         Table(message("evaluation.title.mcq_cost"), COSTS, costs)],
        facts,
        [{name: value for name, value in row.items() if not isinstance(value, dict)} for row in csv],
        partial(plot.points, message("evaluation.plot.mcq_title"), points),
    )  # fmt: skip


COLUMNS = ("set", "arm", "accuracy", "interval", "p_holm", "abstained", "answered", "bias", "flips", "auroc",
           "luq_auroc")  # fmt: skip
COSTS = ("set", "arm", "calls", "tokens_in", "tokens_out", "seconds", "overhead", "passages", "by_source")
MEANS = ("abstained", "flips", "calls", "tokens_in", "tokens_out", "seconds", "passages", "regenerated", "too_long")


def _scores(name: str, by_arm: Mapping[str, Sequence[McqRow]], seed: int) -> list[dict[str, Any]]:
    values = {arm: np.array([row.right for row in rows], np.float64) for arm, rows in by_arm.items()}
    estimates = measures.estimates(values, next(iter(values)), seed)
    return [_score(name, arm, rows, estimates[arm]) for arm, rows in by_arm.items()]


def _score(name: str, arm: str, rows: Sequence[McqRow], accuracy: measures.Estimate) -> dict[str, Any]:
    kept, seconds = [row.right for row in rows if not row.abstained], sum(row.seconds for row in rows)
    working = sum(row.model_seconds + row.search_seconds for row in rows)
    judged = [(1 - row.agreement, not row.right) for row in rows if row.agreement is not None]
    return {
        "set": name,
        "arm": arm,
        "questions": len(rows),
        "accuracy": accuracy.value,
        **{bound: getattr(accuracy, bound) for bound in ("low", "high", "p", "p_holm")},
        "answered": fmean(kept) if kept else None,
        "bias": bias(rows),
        "auroc": auroc([entropy(row.probabilities) for row in rows], [not row.right for row in rows]),
        "luq_auroc": auroc([uncertainty for uncertainty, _ in judged], [wrong for _, wrong in judged]),
        "overhead": max(0.0, seconds - working) / seconds if seconds else 0.0,
        **{mean: fmean([getattr(row, mean) for row in rows]) for mean in MEANS},
        "queries": _mean_counts([row.queries for row in rows]),
        "sources": _mean_counts([row.sources for row in rows]),
    }


def _mean_counts(counts: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Mean counts for each source."""
    total: Counter[str] = Counter()
    for row in counts:
        total.update(row)  # which keeps a source that gave nothing
    return {name: count / len(counts) for name, count in sorted(total.items())}


def _same(one: Sequence[McqRow], other: Sequence[McqRow]) -> float:
    choices = {row.id: row.choice for row in other}
    return fmean([row.choice == choices.get(row.id) for row in one])


def bias(rows: Sequence[McqRow]) -> float:
    """The largest deviation of a place's mean probability from its share, for the commonest number of options."""
    lengths = [len(row.places) for row in rows]
    count = max(set(lengths), key=lengths.count)
    places = np.array([row.places for row in rows if len(row.places) == count], np.float64)  # (rows, places)
    return float(np.abs(places.mean(axis=0) - 1 / count).max())


def entropy(probabilities: Sequence[float]) -> float:
    """Label entropy from 0 (certain) to 1 (a guess)."""
    return -sum(value * math.log(value) for value in probabilities if value > 0) / math.log(len(probabilities))


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """The area under the ROC curve of ``scores`` for ``positive``; ``None`` with a single class."""
    pairs = list(zip(scores, positive, strict=True))
    return area_under_roc([one for one, is_one in pairs if is_one], [one for one, is_one in pairs if not is_one])


def rank_scores(scores: Sequence[Mapping[str, Any]], arms: Sequence[str]) -> dict[str, float]:
    """LINS's rank score of each arm: its mean rank over the sets, 1 the best, ties sharing the mean of their ranks."""
    ranks: dict[str, list[float]] = {arm: [] for arm in arms}
    for score in scores:
        others = [other["accuracy"] for other in scores if other["set"] == score["set"]]
        better, equal = sum(other > score["accuracy"] for other in others), others.count(score["accuracy"])
        ranks[score["arm"]].append(better + (equal + 1) / 2)
    return {arm: fmean(values) for arm, values in ranks.items()}


def with_questions(sets: Sequence[McqSet], rows: Sequence[McqRow]) -> str:
    """The questions with their texts and each arm's choice, as JSON lines; written only on request."""
    chosen: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in rows:
        chosen[row.set, row.id][row.arm] = row.choice
    return "".join(
        line({"set": questions.name, **asdict(question), "chosen": chosen[questions.name, question.id]})
        for questions in sets
        for question in questions.questions
    )


@click.command("mcq")
@click.option("--set", "named", multiple=True, required=True, metavar="FORMAT:PATH",
              help="A set (several times): jsonl, medqa, medmcqa, pubmedqa, mmlu, cmmlu, afrimedqa, medbullets, or a "
              "TOML manifest of your own, then a colon and the file.")  # fmt: skip
@click.option("--arms", default="", metavar="NAMES",
              help="Separated by commas (default: chat,cot,retrieval,mairag). Also mairag-without-relevance, "
              "-self_knowledge, -decomposition, -coherence, and plan-none, -original, -query2doc, -prompting, "
              "-reflexion, -serts. The first is what the others are tested against.")  # fmt: skip
@click.option("--questions", "size", type=click.IntRange(1), metavar="N",
              help="Questions of each set, drawn by the seed (default: all).")  # fmt: skip
@click.option("--order-seed", type=click.IntRange(0, 2**31), metavar="N",
              help="Draws the orders in which options are shown (default: as --seed); another one shows how far "
              "accuracy depends on them.")  # fmt: skip
@click.option("--every-order", is_flag=True,
              help="Show up to four options in every order, so that no seed decides (default: rotations and their "
              "mirror images, a third as many of four; all there are of two or three).")  # fmt: skip
@click.option("--samples", type=click.IntRange(0, 20), default=0, metavar="N",
              help="Draw N further chains of thought in the arm cot and compare them with the first, by the judge of "
              "entailment (LUQ; the paper's 9; default: 0).")  # fmt: skip
@click.option("--show-questions", is_flag=True,
              help="Also write questions.jsonl with texts and choices (default: no text is written).")  # fmt: skip
@reporting.seed_option
@reporting.rows_options
@filter_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, named: tuple[str, ...], arms: str, size: int | None, order_seed: int | None,
    every_order: bool, samples: int, show_questions: bool, seed: int, out: Path, resume: bool, as_json: bool,
    **filters: Any,
) -> None:  # fmt: skip
    """Answer multiple-choice questions with several arms and compare them (LINS; Omni-RAG).

    The choice is read from the model's probabilities, the options in several orders, averaged. Reports accuracy with
    95 % intervals, paired tests, agreement, position bias, label entropy, tokens, calls, seconds, and LINS's rank
    score. Needs a chat model and the extra "eval". Writes no question unless asked.
    """
    reporting.need(measures, plot)
    with reporting.report_folder(out, resume, ROWS):
        chosen, sets = _arms(arms), [set_named(name, size, seed) for name in named]
        if len({questions.name for questions in sets}) < len(sets):
            raise UsageError("evaluation.mcq_twice")
        how = {"seed": seed if order_seed is None else order_seed, "every_order": every_order, "samples": samples}
        with open_session(ctx) as session, _bench(session, how, search_filter(**filters)) as (bench, facts):
            made = made_with(sets, chosen, seed, **facts)
            kept = Rows(out / ROWS, made, resume, McqRow, "set", "id", "arm")
            with progress(not as_json) as (started, advance):
                started(sum(len(questions.questions) for questions in sets) * len(chosen))
                finished = run(bench, sets, chosen, kept, advance)
            session.note("evaluate", f"mcq, {len(finished)} rows", "finished", int(facts["generation"]))
        if show_questions:
            (out / "questions.jsonl").write_text(with_questions(sets, finished), "utf-8")
    left_out = {questions.name: questions.left_out for questions in sets}
    report(finished, left_out, made, seed).finish(out, as_json, ROWS)


def _arms(names: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(filter(None, names.replace(" ", "").split(",")))) or DEFAULT_ARMS
    known = (CHAT, COT, *ARMS)
    for name in chosen:
        if name not in known:
            raise UnknownName("workflow.arm", arms=known, name=name)
    return chosen


@contextmanager
def _bench(session: Session, how: dict[str, Any], limited: SearchFilter) -> Iterator[tuple[Bench, dict[str, str]]]:
    """A bench on a separate site with a metered chat model, and its identity. ``how``: fields of ``Bench``."""
    if session.site.chat is None:
        raise ModelError("evaluation.no_chat")
    meter = Meter(session.site.chat)
    with Site(session.settings, chat=meter) as site:
        own = Session(site, session.caller, session.day)
        with own.workspace():
            unfit = sorted(site.unfit_roles)
        facts = {
            "chat": meter.identity.name,
            "by rules": " ".join(unfit) or "none",
            "asked": repr(limited),
            "samples": str(how["samples"]),
            "orders": "every" if how["every_order"] else str(how["seed"]),
            **reporting.made_with(own),
        }

        def context(question: str, arm: str) -> Answer:
            with own.answering() as workspace:
                plan, sources = workspace.plan(limited), workspace.sources(limited)
                flow = find_evidence(clean_question(question), limited, plan, sources, arm, workspace.provenance())
                return Driver(workspace.services(SILENT)).run(flow)

        agrees = lambda text, evidence: _agrees(own, text, evidence, meter)  # noqa: E731
        yield Bench(meter, context, agrees, judge=site.entailment.judge, **how), facts


def _agrees(session: Session, text: str, evidence: tuple[Evidence, ...], meter: Meter) -> bool:
    """Whether the coherence role finds no conflict between ``text`` and its evidence."""
    citations = tuple(
        Citation(piece.marker, piece.passage.id, piece.passage.document_id, 0, 0, "") for piece in evidence
    )
    statement = Statement(text, citations, Origin.GENERATED)
    with session.workspace() as workspace:
        if workspace.roles.by(COHERENCE) != "chat":
            return True
    coherence = ChatRoles(meter).perform(COHERENCE, CoherenceInput(text, (statement,), evidence))
    return bool(coherence.agrees)


# --- agreement of repeated answers ------------------------------------------------------------------------------------

# Long-text uncertainty (LUQ, Zhang et al. 2024; Omni-RAG, A.3). Each sentence of an answer is compared with further
# answers of the model to the same question, drawn with a temperature. The support of a sentence by an answer is
# ``entailment / (entailment + contradiction)``, so neutral probability does not count. Agreement is the mean over
# sentences and answers, from 0 to 1; LUQ's uncertainty is one minus it. High agreement does not imply truth.


def pairs(sentences: Sequence[str], samples: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(premise, hypothesis) for every sample with every sentence."""
    return tuple((sample, sentence) for sample in samples for sentence in sentences)


def agreement(stances: Sequence[Stance]) -> float | None:
    """The mean support of the judged pairs; ``None`` without a judge, or if all pairs are neutral."""
    sides = [(stance.entailment, stance.contradiction) for stance in stances if stance.judged]
    supports = [entailed / (entailed + against) for entailed, against in sides if entailed + against > 0]
    return sum(supports) / len(supports) if supports else None
