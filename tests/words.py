"""The English words of messages, for tests that prove what is said."""

from __future__ import annotations

from typing import Any

from localmed.domain import Message
from localmed.ingest.parsed import Fault
from localmed.messages import render


def words(value: Any) -> Any:
    """The words of a message, of several, or of a fault (its place and its reason); "" of none."""
    if value is None:
        return ""
    if isinstance(value, Message):
        return render(value, "en")
    if isinstance(value, Fault):
        return words(value.where), words(value.reason)
    if isinstance(value, (tuple, list)):
        return type(value)(words(part) for part in value)
    return value
