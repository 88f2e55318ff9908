"""Messages in the reader's language, neutralised."""

from __future__ import annotations

from localmed.domain import Message
from localmed.messages import known, render
from localmed.presentation.neutral import one_line


def words(message: Message | None, language: str) -> str:
    """``message`` in ``language``, neutralised, on one line; "" for none."""
    return one_line(render(message, language)) if message else ""


def kind_of_source(name: str, language: str) -> str:
    """A kind of source by its setting's name, as a reader says it; a name that is no kind as it is."""
    code = f"source.kind.{name}"
    return words(Message(code), language) if known(code) else one_line(name)
