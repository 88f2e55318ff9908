"""The English words of messages, for tests that prove what is said."""

from __future__ import annotations

from typing import Any

from localmed.domain import Message
from localmed.ingest.parsed import Fault
from localmed.messages import render


def words(said: Any) -> Any:
    """The words of a message, of several, or of a fault (its place and its reason); "" of none."""
    if said is None:
        return ""
    if isinstance(said, Message):
        return render(said, "en")
    if isinstance(said, Fault):
        return words(said.where), words(said.reason)
    if isinstance(said, (tuple, list)):
        return type(said)(words(part) for part in said)
    return said
