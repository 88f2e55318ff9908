"""What localmed itself says, as a value: a code and its parameters. The words stand in ``localmed/messages``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Parameter: TypeAlias = "str | int | float | Message | tuple[Parameter, ...]"


@dataclass(frozen=True, slots=True)
class Message:
    """What localmed itself says, as a code of ``localmed/messages`` and its parameters; words are made at the edge.

    A parameter is a value, never a sentence of ours: a name, a number, a quotation, another message or several.
    """

    code: str
    parameters: tuple[tuple[str, Parameter], ...] = ()


def message(code: str, /, **parameters: Parameter) -> Message:
    """The message ``code`` with ``parameters`` by the names that its template uses."""
    return Message(code, tuple(parameters.items()))
