"""Texts of localmed as values: a code and its parameters. The words are in ``localmed/messages``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Parameter: TypeAlias = "str | int | float | Message | tuple[Parameter, ...]"


@dataclass(frozen=True, slots=True)
class Message:
    """A text of localmed as a code of ``localmed/messages`` and parameters, rendered only at the edge.

    A parameter is a name, a number, a quotation, another message or several; never a sentence of ours.
    """

    code: str
    parameters: tuple[tuple[str, Parameter], ...] = ()


def message(code: str, /, **parameters: Parameter) -> Message:
    """The message ``code`` with ``parameters`` by the names in its template."""
    return Message(code, tuple(parameters.items()))


def number_to_call(number: str) -> Parameter:
    """The site's emergency number as warnings name it; without a ``number`` the words for it."""
    return number or Message("departments.emergency_number")
