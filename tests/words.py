"""The English words of messages, for tests that prove what is said."""

from __future__ import annotations

import re
from string import Formatter
from typing import Any

from localmed.domain import Message, message
from localmed.ingest.parsed import Fault
from localmed.messages import catalogue, render


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


def phrase(code: str, language: str = "en") -> str:
    """The longest part of the words of ``code`` that holds no parameter, to look for in what is shown."""
    return max((part for part, *_ in Formatter().parse(catalogue(language)[code])), key=len).strip()


def pattern(code: str) -> str:
    """``phrase`` as a regular expression, for ``pytest.raises``."""
    return re.escape(phrase(code))


def said(code: str, language: str = "en", **parameters: Any) -> str:
    """The words of ``code`` with its parameters."""
    return render(message(code, **parameters), language)
