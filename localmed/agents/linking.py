"""The roles of Link-Eval (LINS): is a reference valid for a question, does a statement read well.

Validity has no form for a chat model: its threshold was derived on the rules' scores, and another scorer's would mean
something else. Fluency has no rules: without a chat model it is not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.agents import evidence as shown
from localmed.agents.asking import QuestionInput
from localmed.agents.prompts import instructions
from localmed.agents.roles import Choosing, Role
from localmed.domain import Passage
from localmed.language import detect
from localmed.ports import Choice


@dataclass(frozen=True, slots=True)
class ValidityInput(QuestionInput):
    """References for a question. The result is a tuple: each one's score (0 to 1), None where there is none for it."""

    references: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class FluencyInput:
    """Statements of an answer. The result is a tuple: how likely each reads well (0 to 1); empty: not measured."""

    statements: tuple[str, ...]

    @property
    def language(self) -> str:
        """The statements'."""
        return detect(" ".join(self.statements))


def _fluency(_: FluencyInput, choices: Sequence[Choice]) -> tuple[float, ...]:
    return tuple(choice.probabilities[0] for choice in choices)


VALIDITY = Role(
    "reference_validity",
    "How well a reference answers the question, as a score",
    "1",
    "LINS, Link-Eval: correlation scorer",
)
FLUENCY = Role(
    "fluency",
    "Whether a statement reads well",
    "1",
    "LINS, Link-Eval: statement fluency, asked as a yes-or-no question as UniEval does",
    Choosing(
        instructions("fluency"),
        {"en": ("fluent", "awkward"), "zh": ("流畅", "生硬")},
        lambda _: "",
        lambda task: tuple(shown.quoted("statement", statement, task.language) for statement in task.statements),
        _fluency,
    ),
)
ROLES = (VALIDITY, FLUENCY)
