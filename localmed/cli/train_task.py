"""What ``localmed train`` explores and compares: the questions, their judge, and the library that they are asked of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli import reporting
from localmed.cli.common import opened, search_filter
from localmed.errors import ModelError, UsageError

if TYPE_CHECKING:
    from localmed.domain import SearchFilter
    from localmed.evaluation.sets import Question
    from localmed.session import Session
    from localmed.training.exploring import Judge
    from localmed.workflows.flow import Driver
    from localmed.workflows.strategies import Sources
    from localmed.workspace import Workspace


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
        from localmed.agents.asking import QuestionInput
        from localmed.agents.planning import GRAPH_TERMS

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
    from localmed.hooks import SILENT
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

    from localmed.evaluation import trec
    from localmed.training.exploring import DocumentJudge

    judged = trec.load(queries, qrels, workspace.library, limited).answerable()
    places = range(len(judged.questions))
    chosen = random.Random(seed).sample(places, min(size or len(places), len(places)))  # noqa: S311  (a sample)
    return tuple(judged.questions[place] for place in sorted(chosen)), DocumentJudge(judged.judgements)


def _by_reader(session: Session, workspace: Workspace, named: tuple[str, ...], size: int | None,
               seed: int) -> tuple[tuple[Question, ...], Judge]:  # fmt: skip
    from localmed.agents import multiple_choice
    from localmed.cli.evaluate_mcq import set_named
    from localmed.evaluation.mcq import TOO_LONG
    from localmed.evaluation.sets import Question, blankless
    from localmed.training.exploring import ReaderJudge

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
        except ModelError as error:
            if error.message.code not in TOO_LONG:
                raise
            return (0.0,) * len(question.options)

    answers = {name: question.answer for name, question in by_id.items()}
    questions = tuple(Question(name, question.text) for name, question in by_id.items())
    return questions, ReaderJudge(answers, read, lambda hits: workspace.mint(hits[:most]))
