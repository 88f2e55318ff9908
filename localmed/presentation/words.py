"""Messages in the reader's language, neutralised."""

from __future__ import annotations

from localmed.domain import Message
from localmed.messages import render
from localmed.presentation.neutral import one_line


def words(message: Message | None, language: str) -> str:
    """``message`` in ``language``, neutralised, on one line; "" for none."""
    return one_line(render(message, language)) if message else ""
