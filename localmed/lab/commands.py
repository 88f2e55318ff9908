"""The commands of the laboratory, ``localmed eval``, ``train`` and ``review``: each is loaded when it is called."""

from __future__ import annotations

import click

from localmed.cli.main import Entry, Lazy

EVALUATE = {
    "mcq": Entry("localmed.lab.mcq", "Answer multiple-choice questions with several arms and compare them."),
    "retrieval": Entry("localmed.lab.retrieval", "Compare search variants: dense, lexical, both, reranked."),
    "stance": Entry("localmed.lab.stance", "Judge labelled pairs of a text and a statement."),
    "badges": Entry("localmed.lab.badges", "Compare the badges of answers from each source and from all."),
    "claims": Entry("localmed.lab.claims", "Verify many answers by M-Eval, or measure its stances."),
    "links": Entry("localmed.lab.links", "Measure how well sources support the sentences of answers."),
}
TRAIN = {
    "explore": Entry("localmed.lab.train:explore", "Write queries for every source, judge them, make plans of them."),
    "learn": Entry("localmed.lab.train:learn", "Train adapters for the base model on the plans."),
    "export": Entry("localmed.lab.train:export", "Merge the adapter into the base model and register it."),
    "compare": Entry("localmed.lab.train:compare", "Compare the trained planner with prompting and rules."),
}
REVIEW = {
    "export": Entry("localmed.lab.review:export", "Write blinded forms for reviewers."),
    "import": Entry("localmed.lab.review:import_forms", "Read filled forms: scores, tests, agreement."),
}


@click.group("eval", cls=Lazy, entries=EVALUATE)
def evaluate() -> None:
    """Measure search and answers on questions with known answers."""


@click.group("train", cls=Lazy, entries=TRAIN)
def train() -> None:
    """Train a source planner on questions with known answers (source-planning optimisation).

    explore, then learn, then export, then compare: each goes on where it was interrupted. The run's folder holds the
    questions' texts, the queries and the plans, and nothing else does: no log, no name, no report.
    """


@click.group("review", cls=Lazy, entries=REVIEW)
def review() -> None:
    """Blinded rating of answers by people, and its results."""
