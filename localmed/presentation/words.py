"""Messages in the reader's language; what is still a string (a flow without messages) is shown as it is."""

from __future__ import annotations

from localmed.domain import Message
from localmed.messages import render
from localmed.presentation.neutral import one_line
from localmed.presentation.older import translated


def words(said: Message | str, language: str) -> str:
    """``said`` in ``language``, neutralised, on one line."""
    return one_line(render(said, language) if isinstance(said, Message) else translated(said, language))


def kind_of_source(name: str, language: str) -> str:
    """A kind of source by its setting's name, as a reader says it; a name that is no kind as it is."""
    from localmed.messages import known

    code = f"source.kind.{name}"
    return words(Message(code), language) if known(code) else one_line(name)
