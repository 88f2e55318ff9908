"""``localmed train``: a planner of sources, from questions with known answers to a registered model (Omni-RAG)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import filter_options, json_option, opened, print_json, progress, search_filter
from localmed.cli.speaking import say
from localmed.domain import message
from localmed.domain.errors import InputError, ModelError, TooLong, UsageError
from localmed.lab import reporting
from localmed.process import files

if TYPE_CHECKING:
    from localmed.domain import SearchFilter
    from localmed.lab.exploring import Explorer, Judge
    from localmed.lab.learning import Base, Example
    from localmed.lab.sets import Question
    from localmed.models.registry.registration import Model
    from localmed.site.session import Session
    from localmed.site.workspace import Workspace
    from localmed.workflows.flow import Driver
    from localmed.workflows.strategies import Sources

# --- train task -------------------------------------------------------------------------------------------------------

# What ``localmed train`` explores and compares: the questions, their judge, and the library that they are asked of.


def question_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Which questions, and how their answers are known."""
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
    """What is explored or compared: the questions, their judge, and the library that they are asked of."""

    session: Session
    workspace: Workspace
    driver: Driver
    limited: SearchFilter
    sources: Sources
    questions: tuple[Question, ...]
    judge: Judge

    @property
    def readable(self) -> tuple[str, ...]:
        """The sources that hold passages; raise ``UsageError`` where there is none."""
        names = tuple(name for name in self.sources.names if name != "graph")
        if not names:
            raise UsageError("training.no_source")
        return names

    def made(self, seed: int) -> dict[str, str]:
        """What rows are made with: others are refused when they are resumed."""
        from localmed import __version__
        from localmed.domain import digest

        site = self.session.site
        assert site.chat
        return {
            "questions": digest(*(f"{question.id}\t{question.text}" for question in self.questions))[:16],
            "judge": self.judge.name,
            "sources": " ".join(self.readable),
            "seed": str(seed),
            "chat": f"{site.chat.identity.name} {site.chat.identity.sha256}",
            "generation": self.workspace.library.path.name,
            "encoder": site.encoder.identity.slug,
            "reranker": site.reranker.name if site.reranker else "none",
            "asked": repr(self.limited),
            "version": __version__,
        }

    def search(self, source: str, query: str) -> tuple[Any, ...]:
        """The passages of ``query`` in ``source``, best first."""
        from localmed.workflows.strategies import PER_QUERY

        where = replace(self.limited, collections=getattr(self.sources, source))
        return tuple(self.driver.services.search(query, where, PER_QUERY, ()).hits)

    def keywords(self, question: str) -> tuple[str, ...]:
        """The question's, by rules."""
        from localmed.answering.asking import QuestionInput
        from localmed.answering.planning import GRAPH_TERMS

        terms: tuple[str, ...] = self.driver.services.roles.without_chat().perform(GRAPH_TERMS, QuestionInput(question))
        return terms

    def gather(self, question: str, plan: Any) -> tuple[Any, ...]:
        """The passages that a reader would see by ``plan``."""
        from localmed.workflows.strategies import gather

        gathered = self.driver.part(gather(question, plan, self.sources, self.limited))
        return gathered.best(self.session.settings.ask.passages)


@contextmanager
def task_of(ctx: click.Context, seed: int, size: int | None, named: tuple[str, ...], queries: Path | None,
          qrels: Path | None, **filters: Any) -> Iterator[Task]:  # fmt: skip
    """The task that the options describe, for as long as the library is open."""
    from localmed.process.hooks import SILENT
    from localmed.workflows.flow import Driver

    if bool(named) == bool(queries) or bool(queries) != bool(qrels):
        raise UsageError("training.questions")
    limited = search_filter(**filters)
    with opened(ctx) as session, session.workspace() as workspace:
        judged = _by_documents(workspace, limited, queries, qrels, size, seed) if queries and qrels else None
        if session.site.chat is None:
            raise ModelError("training.no_chat")
        driver, sources = Driver(workspace.services(SILENT)), workspace.sources(limited)
        questions, judge = judged or _by_reader(session, workspace, named, size, seed)
        yield Task(session, workspace, driver, limited, sources, questions, judge)


def _by_documents(workspace: Workspace, limited: SearchFilter, queries: Path, qrels: Path, size: int | None,
                  seed: int) -> tuple[tuple[Question, ...], Judge]:  # fmt: skip
    import random

    from localmed.lab import trec
    from localmed.lab.exploring import DocumentJudge

    judged = trec.load(queries, qrels, workspace.library, limited).answerable()
    places = range(len(judged.questions))
    chosen = random.Random(seed).sample(places, min(size or len(places), len(places)))  # noqa: S311  (a sample)
    return tuple(judged.questions[place] for place in sorted(chosen)), DocumentJudge(judged.judgements)


def _by_reader(session: Session, workspace: Workspace, named: tuple[str, ...], size: int | None,
               seed: int) -> tuple[tuple[Question, ...], Judge]:  # fmt: skip
    from localmed.lab import multiple_choice
    from localmed.lab.evaluate_mcq import set_named
    from localmed.lab.exploring import ReaderJudge
    from localmed.lab.sets import Question, blankless

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
    return questions, ReaderJudge(answers, read, lambda hits: workspace.mint(hits[:most]))


# --- train ------------------------------------------------------------------------------------------------------------

EXPLORED, PAIRS, COMPARED, EXPORTED = "explored.jsonl", "pairs.jsonl", "compared.jsonl", "export.json"
out_option = reporting.out_option(help="The run's folder: every stage reads and writes there.", required=True)
dry_option = click.option("--dry-run", is_flag=True, help="Only estimate the cost.")


@click.group("train")
def command() -> None:
    """Train a source planner on questions with known answers (source-planning optimisation).

    explore, then learn, then export, then compare: each goes on where it was interrupted. The run's folder holds the
    questions' texts, the queries and the plans, and nothing else does: no log, no name, no report.
    """


# --- explore ----------------------------------------------------------------------------------------------------------


@command.command("explore")
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

    The chat model writes with a temperature, each time shown what it wrote before; the question and its keywords stand
    beside. A query is positive if its passages lead to the right answer more surely than none do.
    """
    from localmed.lab import exploring, pairs

    seed = choices["seed"]
    with task_of(ctx, **choices) as task:
        chat = task.session.site.chat
        assert chat
        explorer = exploring.Explorer(chat, task.readable, task.search, task.judge, task.keywords, candidates, seed)
        if dry_run:
            _estimate(explorer, task.questions)
            return
        reporting.writable(out, EXPLORED)
        made = {**task.made(seed), "candidates": str(candidates), "texts": _texts(task.questions)}
        kept = exploring.begin(out / EXPLORED, made, resume)
        explored: list[Any] = []
        built: list[Any] = []
        try:
            with reporting.resumable(out), progress(True) as (started, advance):
                started(len(task.questions))
                for finished in exploring.run(explorer, task.questions, out / EXPLORED, kept, advance):
                    explored += finished
        finally:  # Ctrl-C included: what is finished can be learnt from
            if explored:
                built = pairs.build(explored, task.questions, task.readable, seed)
                pairs.write(out / PAIRS, made, built, out / EXPLORED)
        task.session.note("train", f"explore, {len(task.questions)} questions", "finished")
    _tell_explored(explored, built, len(task.questions))
    say("cli.written_to", out=str(out), files=(EXPLORED, PAIRS))


def _texts(questions: tuple[Question, ...]) -> str:
    """What tells later which questions were explored, without their texts."""
    from localmed.domain import digest

    return " ".join(digest(question.text)[:12] for question in questions)


def _estimate(explorer: Explorer, questions: tuple[Question, ...]) -> None:
    """Print what exploring costs, by doing two questions."""
    import time

    count, sources = len(questions), len(explorer.sources)
    requests = [request for question in questions for request in explorer.requests(question)]
    read = sum(explorer.chat.count([part.content for request in requests for part in request.messages]))
    for question in questions[:2]:  # the models are loaded at the first
        began = time.perf_counter()
        rows = list(explorer.units(question, {}))
        seconds = time.perf_counter() - began
    calls, written = count * sources, len(requests) * requests[0].max_tokens
    minutes, judged = seconds * count / 60, len(rows) * count
    say(
        "training.cost",
        questions=count,
        calls=calls,
        most_calls=2 * calls,
        read=read,
        written=written,
        judged=judged,
        minutes=minutes,
    )


def _tell_explored(explored: Any, built: Any, count: int) -> None:
    from localmed.lab.exploring import Judged

    base = {row.question: row for row in explored if isinstance(row, Judged) and not row.source}
    judged = [row for row in explored if isinstance(row, Judged) and row.source]
    positive = sum(row.better(base[row.question]) for row in judged)
    both = sum(bool(pair.negative) for pair in built)
    say("training.explored", questions=count, judged=len(judged), positive=positive, plans=len(built), both=both)


# --- learn ------------------------------------------------------------------------------------------------------------


@command.command("learn")
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
    from localmed.lab import learning, pairs

    learning.require()
    _, built = pairs.read(out / PAIRS)
    recipe = learning.Recipe(sft_epochs=epochs, dpo_epochs=epochs / 2, save_steps=save_steps, seed=seed)
    with opened(ctx) as session:
        session.may_change()
        base = _base(session, name)
        examples = _examples(session, base, built)
        fitting = [example for example in examples if example.longest <= recipe.most_tokens]
        tokens = [sum(example.longest for example in learning.of_stage(stage, fitting)) for stage in learning.STAGES]
        epochs_of = {learning.SFT: recipe.sft_epochs, learning.DPO: recipe.dpo_epochs}
        if dry_run:
            for stage, count in zip(learning.STAGES, tokens, strict=True):
                chosen = learning.of_stage(stage, fitting)
                say("training.cost_learn", stage=stage, count=len(chosen), tokens=int(count * epochs_of[stage]))
            return
        with reporting.resumable(out), progress(True) as (started, advance):
            steps = sum(len(learning.of_stage(stage, fitting)) * epochs_of[stage] for stage in learning.STAGES)
            started(int(steps))
            manifests = learning.learn(base, recipe, examples, out / PAIRS, out, advance)
        session.note("train", f"learn, {len(examples)} plans", "finished")
    for stage, manifest in manifests.items():
        losses = manifest["losses"] or [0.0]
        say("training.learned", stage=stage, count=manifest["examples"], steps=manifest["steps"], first=losses[0],
            last=losses[-1])  # fmt: skip


def _base(session: Session, name: str) -> Base:
    """The registered chat model ``name``, after a look at its hash; raise ``ModelError`` if it cannot be trained."""
    from localmed.lab import exporting
    from localmed.lab.learning import Base

    registry = session.site.registry
    chosen = name or session.site.serving["chat"]
    stored = registry.opened(chosen)
    exporting.check(stored.model.header.architecture if stored.model.header else "")
    sha256 = next(file.sha256 for file in stored.model.files if stored.gguf.name == Path(file.name).name)
    return Base(chosen, stored.gguf, sha256)


def _examples(session: Session, base: Base, built: Any) -> list[Example]:
    """The pairs in the base model's tokens, as it is asked when it serves."""
    from localmed.lab.learning import Example

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


# --- export -----------------------------------------------------------------------------------------------------------


@command.command("export")
@click.option("--as", "name", required=True, metavar="NAME", help="Name of the planner in the registry.")
@out_option
@click.pass_context
def export(ctx: click.Context, name: str, out: Path) -> None:
    """Merge the trained adapter into its base model's GGUF, and register that as a planner.

    To use it: localmed models use planner NAME.
    """
    from localmed.lab import exporting, learning
    from localmed.site import changes

    manifest = _manifest(out / learning.DPO / learning.MANIFEST)
    target = out / f"{name}.gguf"
    with opened(ctx) as session, progress(True) as (started, advance):
        session.may_change()
        base = _base(session, manifest["base"]["name"])
        if base.sha256 != manifest["base"]["sha256"]:
            raise ModelError("training.other_base", name=base.name)
        matrices, sha256 = exporting.merge(base.path, out / learning.DPO / "adapter", target, advance)
        template = session.site.registry.model(base.name).template
        model = _exported_before(session, name, sha256) or changes.add_model(
            session, target, name, "planner", template, advance, started
        )
        facts = {**manifest, "stage": "export", "file": target.name, "sha256": sha256, "matrices": matrices}
        files.replace(out / EXPORTED, (json.dumps(facts, indent=1) + "\n").encode(), 0o644)
    say("training.exported", name=model.name, sha256=sha256[:12], count=matrices)


def _exported_before(session: Session, name: str, sha256: str) -> Model | None:
    """The planner ``name`` where it is registered with these bytes: an export was cut off at its end."""
    model = session.site.registry.registrations.models.get(name)
    return model if model and model.role == "planner" and model.files[0].sha256 == sha256 else None


def _manifest(file: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        raise InputError("training.not_learned", file=str(file)) from None
    return manifest


# --- compare ----------------------------------------------------------------------------------------------------------


@command.command("compare")
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
    from localmed.answering.chat import ChatRoles
    from localmed.answering.planning import PLAN
    from localmed.domain import digest
    from localmed.lab import comparing, exploring, measures

    measures.require()
    made_before, _ = exploring.read(out / EXPLORED)
    trained = set(str(made_before.get("texts", "")).split())
    with task_of(ctx, **choices) as task:
        questions = tuple(question for question in task.questions if digest(question.text)[:12] not in trained)
        planner, chat = task.session.site.writer(name), task.session.site.chat
        if planner is None or chat is None or len(questions) < measures_least():
            raise InputError("training.none_held_out")
        rules = task.driver.services.roles.without_chat()
        planners = {comparing.PROMPTING: ChatRoles(chat), comparing.TUNED: ChatRoles(planner)}
        bench = comparing.Bench(
            planners, lambda plan: rules.perform(PLAN, plan), task.readable, task.gather, task.judge
        )
        made = {**task.made(choices["seed"]), "planner": f"{name} {planner.identity.sha256}"}
        kept = comparing.begin(out / COMPARED, made, resume)
        try:
            with reporting.resumable(out), progress(not as_json) as (started, advance):
                started(len(questions) * len(comparing.ARMS))
                compared = comparing.run(bench, questions, out / COMPARED, kept, advance)
        finally:
            planner.close()
        task.session.note("train", f"compare, {len(questions)} questions", "finished")
    result = comparing.compare(compared, len(task.questions) - len(questions), made, choices["seed"])
    reporting.write(out, result, {}, lambda _: None)
    if as_json:
        print_json(result)
        return
    reporting.table(message("training.title"), *comparing.table(result))
    reporting.tell(comparing.facts(result), out, "report.json", COMPARED)


def measures_least() -> int:
    """The questions that an interval needs."""
    from localmed.lab.sets import LEAST_QUESTIONS

    return LEAST_QUESTIONS
