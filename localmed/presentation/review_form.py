"""The form of a human review as a page, filled in without a network and saved as a table by its own script.

The page loads and sends nothing; its policy allows its one script by hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from localmed.domain import Message, message
from localmed.presentation.neutral import words
from localmed.presentation.pages import POLICY, page


@dataclass(frozen=True, slots=True)
class Asked:
    """One dimension of the form: its column, its question, and (value, code of its word), worst first."""

    name: str
    question: Message
    options: tuple[tuple[int, str], ...]


@cache
def _script() -> str:
    return files("localmed.presentation").joinpath("templates", "review.js").read_text("utf-8")


def review_form(
    reviewer: str,
    blocks: Sequence[tuple[int, str, Sequence[tuple[str, str]]]],
    dimensions: Sequence[Asked],
    language: str,
) -> str:
    """The page of ``reviewer``; ``blocks`` are (number, question, (code, answer) pairs)."""
    from markupsafe import Markup

    script = _script()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    questions = [
        (row.name, words(row.question, language),
         [(value, words(message(f"review.option.{code}"), language)) for value, code in row.options])
        for row in dimensions
    ]  # fmt: skip
    say = {
        name: words(message(f"review.form.{name}"), language)
        for name in ("title", "how", "answer", "question", "save", "continue", "unsaved", "rated")
    }
    return page(
        "review.html",
        language=language,
        reviewer=reviewer,
        blocks=blocks,
        dimensions=questions,
        say=say,
        script=Markup(script),  # noqa: S704  (our own file)
        script_policy=f"{POLICY}; script-src 'sha256-{digest}'",
    )
