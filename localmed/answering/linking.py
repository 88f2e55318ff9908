"""The role of Link-Eval (LINS): does a statement read well. Without a chat model it is not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localmed.answering import evidence as shown
from localmed.answering.prompts import instructions
from localmed.answering.roles import Choosing, Role
from localmed.domain.ports import Choice
from localmed.text.language import detect


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
ROLES = (FLUENCY,)
