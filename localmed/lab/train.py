"""``localmed train``: a planner of sources, from questions with known answers to a registered model (Omni-RAG)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import numpy as np

from localmed.answering.asking import QuestionInput
from localmed.answering.chat import ChatRoles
from localmed.answering.planning import GRAPH_TERMS, PLAN, SOURCES, PlanInput
from localmed.cli.common import open_session, progress
from localmed.cli.options import filter_options, json_option, search_filter
from localmed.cli.speaking import say
from localmed.domain import Hit, Message, SearchFilter, digest, message
from localmed.domain.errors import InputError, ModelError, Rejected, TooLong, UsageError
from localmed.lab import exploring, learning, measures, multiple_choice, reporting, sets
from localmed.lab.exploring import Drawn, Explorer, Judge, Judged, Pair, by_documents, by_reader
from localmed.lab.learning import Base, Example
from localmed.lab.multiple_choice import set_named
from localmed.lab.reporting import Report, Rows, Table, stored
from localmed.lab.sets import Question, blankless
from localmed.process import files
from localmed.process.hooks import SILENT
from localmed.site import changes
from localmed.site.session import Session
from localmed.site.workspace import Workspace
from localmed.workflows.flow import Driver
from localmed.workflows.strategies import PER_QUERY, Sources, gather

# --- options and tasks ------------------------------------------------------------------------------------------------


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that select the questions and how their answers are judged."""
    for option in (
        click.option("--set", "named", multiple=True, metavar="FORMAT:PATH",
                     help="Multiple-choice questions, as eval mcq reads them: passages are judged by the chat model's "
                     "choice."),
        click.option("--queries", type=reporting.FILE, metavar="FILE", help="Questions: ID<TAB>TEXT lines."),
        click.option("--qrels", type=reporting.FILE, metavar="FILE",
                     help="Judgements, as eval retrieval reads them: passages are judged by whether their document "
                     "holds the answer."),
        click.option("--questions", "size", type=click.IntRange(2), metavar="N",
                     help="Questions of each set, drawn by the seed (default: all)."),
        reporting.seed_option,
    ):  # fmt: skip
        command = option(command)
    return command


@dataclass(frozen=True)
class Task:
    """The questions, their judge, and the library that they are asked of."""

    session: Session
    driver: Driver
    limited: SearchFilter
    sources: Sources
    questions: tuple[Question, ...]
    judge: Judge

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources with passages; raise ``UsageError`` if there are none."""
        names = tuple(name for name in self.sources.names if name != "graph")
        if not names:
            raise UsageError("training.no_source")
        return names

    def made(self, seed: int) -> dict[str, str]:
        """The identity of the configuration; rows of another one are not resumed."""
        chat = self.session.site.chat
        assert chat
        return {
            **reporting.made_with(self.session),
            "questions": digest(*(f"{question.id}\t{question.text}" for question in self.questions))[:16],
            "judge": self.judge.name,
            "sources": " ".join(self.readable),
            "seed": str(seed),
            "chat": f"{chat.identity.name} {chat.identity.sha256}",
            "asked": repr(self.limited),
        }

    def search(self, source: str, query: str) -> tuple[Hit, ...]:
        """The passages for ``query`` in ``source``, best first."""
        where = replace(self.limited, collections=getattr(self.sources, source))
        return tuple(self.driver.services.search(query, where, PER_QUERY).hits)

    def terms(self, question: str) -> tuple[str, ...]:
        """The terms of the question in the concept graph."""
        terms: tuple[str, ...] = self.driver.services.roles.without_chat().perform(GRAPH_TERMS, QuestionInput(question))
        return terms

    def gather(self, question: str, plan: Any) -> tuple[Hit, ...]:
        """The passages that a reader sees by ``plan``."""
        gathered = self.driver.part(gather(question, plan, self.sources, self.limited))
        return gathered.best(self.session.settings.ask.passages)


@contextmanager
def task_of(ctx: click.Context, seed: int, size: int | None, named: tuple[str, ...], queries: Path | None,
            qrels: Path | None, **filters: Any) -> Iterator[Task]:  # fmt: skip
    """The task of the options, while the library is open."""
    if bool(named) == bool(queries) or bool(queries) != bool(qrels):
        raise UsageError("training.questions")
    limited = search_filter(**filters)
    with open_session(ctx) as session, session.workspace() as workspace:
        questions: tuple[Question, ...] = ()
        if queries and qrels:
            judged = sets.read_judged(queries, qrels, workspace.library, limited).answerable()
            questions = sets.draw_sample(judged.questions, size, seed)
            judge = by_documents(judged.judgements)
        if session.site.chat is None:
            raise ModelError("site.no_chat")
        if named:
            questions, judge = _by_reader(session, workspace, named, size, seed)
        driver = Driver(workspace.services(SILENT))
        yield Task(session, driver, limited, workspace.sources(limited), questions, judge)


def _by_reader(
    session: Session, workspace: Workspace, named: tuple[str, ...], size: int | None, seed: int
) -> tuple[tuple[Question, ...], Judge]:
    """Multiple-choice questions, judged by the chat model's choice."""
    by_id = {
        blankless(f"{one.name}:{question.id}"): question
        for one in (set_named(name, size, seed) for name in named)
        for question in one.questions
    }
    chat, most = session.site.chat, session.settings.ask.passages
    assert chat

    def read(name: str, evidence: tuple[Any, ...]) -> tuple[float, ...]:
        question = by_id[name]
        orders = multiple_choice.orders(len(question.options), f"{seed} {name}")
        try:
            return multiple_choice.choose(chat, question.text, question.options, orders, evidence).probabilities
        except TooLong:
            return (0.0,) * len(question.options)

    answers = {name: question.answer for name, question in by_id.items()}
    questions = tuple(Question(name, question.text) for name, question in by_id.items())
    return questions, by_reader(answers, read, lambda hits: workspace.mint(hits[:most]))


EXPLORED, PAIRS, COMPARED, EXPORTED = "explored.jsonl", "pairs.jsonl", "compared.jsonl", "export.json"
out_option = reporting.out_option(help="The run's folder: every stage reads and writes there.", required=True)
dry_option = click.option("--dry-run", is_flag=True, help="Only estimate the cost.")


@click.command("explore")
@question_options
@click.option("--candidates", type=click.IntRange(1, 12), default=6, metavar="N",
              help="Queries that the chat model writes for a source (default: the paper's 6).")  # fmt: skip
@out_option
@reporting.resume_option
@dry_option
@filter_options
@click.pass_context
def explore(ctx: click.Context, /, out: Path, resume: bool, dry_run: bool, candidates: int, **choices: Any) -> None:
    """Write queries for every source, search each once, judge what it finds, and make plans to learn from.

    The chat model writes with a temperature, each time shown what it wrote before; the question and its terms
    stand beside. A query is positive if its passages lead to the right answer more surely than none do.
    """
    seed = choices["seed"]
    with task_of(ctx, **choices) as task:
        chat = task.session.site.chat
        assert chat
        explorer = Explorer(chat, task.readable, task.search, task.judge, task.terms, candidates, seed)
        if dry_run:
            _estimate(explorer, task.questions)
            return
        made = {**task.made(seed), "candidates": str(candidates), "texts": " ".join(map(_text_mark, task.questions))}
        explored: list[Drawn | Judged] = []
        built: list[Pair] = []
        with reporting.report_folder(out, resume, EXPLORED):
            kept: exploring.Kept = Rows(out / EXPLORED, made, resume, *exploring.KEPT)
            try:
                with progress(True) as (started, advance):
                    started(len(task.questions))
                    for question in task.questions:
                        explored += list(explorer.units(question, kept))
                        advance(1, task.judge.name)
            finally:  # also after Ctrl-C: finished rows can be learnt from
                if explored:
                    built = exploring.pairs(explored, task.questions, task.readable, seed)
                    exploring.write(out / PAIRS, made, built, out / EXPLORED)
        task.session.note("train", f"explore, {len(task.questions)} questions", "finished")
    _tell_explored(explored, built, len(task.questions))
    say("cli.written_to", out=str(out), files=(EXPLORED, PAIRS))


def _text_mark(question: Question) -> str:
    return digest(question.text)[:12]


def _estimate(explorer: Explorer, questions: Sequence[Question]) -> None:
    """Print the cost of exploring, measured on two questions."""
    count, sources = len(questions), len(explorer.sources)
    requests = [request for question in questions for request in explorer.requests(question)]
    read = sum(explorer.chat.count([part.content for request in requests for part in request.messages]))
    for question in questions[:2]:  # the models are loaded at the first
        began = time.perf_counter()
        nothing: exploring.Kept = Rows(None, {}, False, *exploring.KEPT)
        rows = list(explorer.units(question, nothing))
        seconds = time.perf_counter() - began
    say(
        "training.cost", questions=count, calls=count * sources, most_calls=2 * count * sources, read=read,
        written=len(requests) * requests[0].max_tokens, judged=len(rows) * count, minutes=seconds * count / 60,
    )  # fmt: skip


def _tell_explored(explored: Sequence[Drawn | Judged], built: Sequence[Pair], count: int) -> None:
    base = {row.question: row for row in explored if isinstance(row, Judged) and not row.source}
    judged = [row for row in explored if isinstance(row, Judged) and row.source]
    positive = sum(row.better(base[row.question]) for row in judged)
    both = sum(bool(pair.negative) for pair in built)
    say("training.explored", questions=count, judged=len(judged), positive=positive, plans=len(built), both=both)


@click.command("learn")
@click.option("--base", "name", default="", metavar="NAME",
              help="The registered chat model that is trained (default: the one that serves).")  # fmt: skip
@click.option("--epochs", type=click.FloatRange(0.1, 20), default=2.0, metavar="N",
              help="Times that the positive plans are read (default: 2); pairs are read half as often.")  # fmt: skip
@click.option("--save-steps", type=click.IntRange(1), default=5, metavar="N", help="Between checkpoints (default: 5).")
@reporting.seed_option
@out_option
@dry_option
@click.pass_context
def learn(ctx: click.Context, name: str, epochs: float, save_steps: int, seed: int, out: Path, dry_run: bool) -> None:
    """Train adapters for the base model: on the positive plans, then on pairs of a positive and a negative plan.

    Needs the extra "train". On a processor for small models (135M: about 3 s an example and core); else on one GPU. An
    interrupted run continues from its last checkpoint; a finished stage is not repeated.
    """
    learning.require()
    built = exploring.read(out / PAIRS)
    recipe = learning.Recipe(sft_epochs=epochs, dpo_epochs=epochs / 2, save_steps=save_steps, seed=seed)
    with open_session(ctx) as session:
        session.may_change()
        base = _base(session, name)
        examples = _examples(session, base, built)
        stages = recipe.stages(examples)
        if dry_run:
            for stage, (chosen, times) in stages.items():
                tokens = int(times * sum(example.longest for example in chosen))
                say("training.cost_learn", stage=stage, count=len(chosen), tokens=tokens)
            return
        with reporting.report_folder(out, file=PAIRS), progress(True) as (started, advance):
            started(int(sum(len(chosen) * times for chosen, times in stages.values())))
            manifests = learning.learn(base, recipe, examples, out / PAIRS, out, advance)
        session.note("train", f"learn, {len(examples)} plans", "finished")
    for stage, manifest in manifests.items():
        losses = manifest["losses"] or [0.0]
        say("training.learned", stage=stage, count=manifest["examples"], steps=manifest["steps"], first=losses[0],
            last=losses[-1])  # fmt: skip


def _base(session: Session, name: str) -> Base:
    """The registered chat model ``name``, its hash verified; raise ``ModelError`` if it cannot be trained."""
    registry = session.site.registry
    chosen = name or session.site.serving["chat"]
    stored = registry.open(chosen)
    learning.require_mergeable(stored.model.header.architecture if stored.model.header else "")
    sha256 = next(file.sha256 for file in stored.model.files if stored.gguf.name == Path(file.name).name)
    return Base(chosen, stored.gguf, sha256)


def _examples(session: Session, base: Base, built: Sequence[Pair]) -> list[Example]:
    """The pairs in the base model's tokens, as in serving."""
    writer = session.site.writer(base.name)
    assert writer
    try:
        return [
            Example(tuple(prompt), tuple(chosen), tuple(rejected))
            for pair in built
            for prompt, chosen in (writer.tokens(pair.messages, pair.positive),)
            for rejected in (writer.tokens(pair.messages, pair.negative)[1] if pair.negative else (),)
        ]
    finally:
        writer.close()


@click.command("export")
@click.option("--as", "name", required=True, metavar="NAME", help="Name of the planner in the registry.")
@out_option
@click.pass_context
def export(ctx: click.Context, name: str, out: Path) -> None:
    """Merge the trained adapter into its base model's GGUF, and register that as a planner.

    To use it: localmed models use planner NAME.
    """
    file = out / learning.DPO / learning.MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        raise InputError("training.not_learned", file=str(file)) from None
    target = out / f"{name}.gguf"
    with open_session(ctx) as session, progress(True) as (started, advance):
        session.may_change()
        base = _base(session, manifest["base"]["name"])
        if base.sha256 != manifest["base"]["sha256"]:
            raise ModelError("training.other_base", name=base.name)
        matrices, sha256 = learning.merge(base.path, out / learning.DPO / "adapter", target, advance)
        template = session.site.registry.model(base.name).template
        model = session.site.registry.registrations.models.get(name)  # there where an export was cut off at its end
        if model is None or model.role != "planner" or model.files[0].sha256 != sha256:
            model = changes.add_model(session, target, name, "planner", template, advance, started)
        facts = {**manifest, "stage": "export", "file": target.name, "sha256": sha256, "matrices": matrices}
        files.replace(out / EXPORTED, (json.dumps(facts, indent=1) + "\n").encode(), 0o644)
    say("training.exported", name=model.name, sha256=sha256[:12], count=matrices)


# --- compare ----------------------------------------------------------------------------------------------------------


# Omni-RAG, Tables 4 and 7. Arms: ``prompting`` (the chat model in the role ``plan``), ``tuned`` (the trained planner),
# ``rules`` (the question to every source). An unreadable plan is replaced by the rules', as in serving; the share of
# readable plans and their own result are reported. The judge of the training judges the passages that a reader would
# see, from all sources in turn.

PROMPTING, TUNED, RULES = ARMS = ("prompting", "tuned", "rules")


@dataclass(frozen=True, slots=True)
class Compared:
    """The outcome of an arm on a question. ``usable``: its plan could be read; ``queries``: counts by source."""

    question: str
    arm: str
    usable: bool
    queries: Mapping[str, int]
    passages: int
    right: bool
    score: float
    seconds: float


def _compare(task: Task, planners: Mapping[str, Any], question: Question, arm: str) -> Compared:
    plan: Any = None
    began = time.perf_counter()
    asked = PlanInput(question.text, task.readable)
    with suppress(Rejected):
        plan = planners[arm].perform(PLAN, asked)
    usable = plan is not None
    plan = plan if usable else planners[RULES].perform(PLAN, asked)
    seconds = round(time.perf_counter() - began, 3)
    hits = task.gather(question.text, plan)
    right, score = task.judge.judge(question.id, hits)
    queries = {source: len(plan.queries(source)) for source in SOURCES if plan.queries(source)}
    return Compared(question.id, arm, usable, queries, len(hits), right, round(score, 6), seconds)


def report(compared: Sequence[Compared], trained_on: int, made: Mapping[str, str], seed: int) -> Report:
    """The statistics of the arms; tests are two-sided paired randomisation tests against prompting.

    ``right``: the share of questions whose passages lead to the right answer. ``own`` counts an unreadable plan as
    wrong, and ``own_p`` tests that; the others are means over questions.
    """
    by_arm = {arm: [row for row in compared if row.arm == arm] for arm in ARMS}
    right = {arm: np.array([row.right for row in rows], np.float64) for arm, rows in by_arm.items()}
    own = {arm: right[arm] * np.array([row.usable for row in rows], np.float64) for arm, rows in by_arm.items()}
    scores = []
    for arm, rows in by_arm.items():
        value, low, high = measures.mean(right[arm], seed)
        other = arm != PROMPTING
        scores.append({
            "arm": arm, "right": value, "low": low, "high": high,
            "p": measures.paired_p(right[arm], right[PROMPTING], seed) if other else None,
            "own": float(own[arm].mean()),
            "own_p": measures.paired_p(own[arm], own[PROMPTING], seed) if other else None,
            "usable": fmean(row.usable for row in rows), "queries": fmean(sum(row.queries.values()) for row in rows),
            "sources": fmean(len(row.queries) for row in rows), "passages": fmean(row.passages for row in rows),
            "seconds": fmean(row.seconds for row in rows),
        })  # fmt: skip
    columns = ("arm", "right", "interval", "p", "own", "own_p", "usable", "queries", "sources", "seconds")
    count = len(by_arm[PROMPTING])
    facts = (
        message("training.compared", count=count, judge=made["judge"]),
        message("training.trained_on", count=trained_on),
    )
    values = {"scores": scores, "questions": count, "trained_on": trained_on, "made": dict(made)}
    return Report(values, [Table(Message("training.title"), columns, scores)], facts)


@click.command("compare")
@click.option("--planner", "name", required=True, metavar="NAME", help="The trained planner's name in the registry.")
@question_options
@out_option
@reporting.resume_option
@filter_options
@json_option
@click.pass_context
def compare(ctx: click.Context, /, name: str, out: Path, resume: bool, as_json: bool, **choices: Any) -> None:
    """Plan held-out questions by the trained planner, by the chat model prompted, and by rules; test the difference.

    Questions that were explored in the same folder are left out. Writes ids and counts, no text. Needs the extra
    "eval".
    """
    measures.require()
    made_before, _ = stored(out / EXPLORED, exploring.KEPT[0])
    trained = set(str(made_before.get("texts", "")).split())
    with task_of(ctx, **choices) as task:
        questions = tuple(question for question in task.questions if _text_mark(question) not in trained)
        planner, chat = task.session.site.writer(name), task.session.site.chat
        if planner is None or chat is None or len(questions) < sets.LEAST_QUESTIONS:
            raise InputError("training.none_held_out")
        rules = task.driver.services.roles.without_chat()
        planners = {PROMPTING: ChatRoles(chat), TUNED: ChatRoles(planner), RULES: rules}
        made = {**task.made(choices["seed"]), "planner": f"{name} {planner.identity.sha256}"}
        compared = []
        try:
            with reporting.report_folder(out, resume, COMPARED), progress(not as_json) as (started, advance):
                kept = Rows(out / COMPARED, made, resume, Compared, "question", "arm")
                started(len(questions) * len(ARMS))
                for question in questions:
                    for arm in ARMS:
                        compared.append(kept.get((question.id, arm), partial(_compare, task, planners, question, arm)))
                        advance(1, arm)
        finally:
            planner.close()
        task.session.note("train", f"compare, {len(questions)} questions", "finished")
    left_out = len(task.questions) - len(questions)
    report(compared, left_out, made, choices["seed"]).finish(out, as_json, COMPARED)
