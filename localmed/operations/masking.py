"""Names and numbers of patients masked before anything is kept of what was asked: each character becomes a block.

As many blocks as there were characters, so that what points into the text still points there. Masked is what came from
whoever asked: the question, the questions before it, and of the answer everything but what documents say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from localmed.clinical.identifiers import identifiers
from localmed.domain import Answer, Origin
from localmed.domain.codec import answer_json, answer_of

MASK = "█"
OWN = ("question", "parts", "notes", "verification")  # fields of an answer that may repeat what was asked


def masked(asked_text: str, earlier: Sequence[str], answer: Answer) -> tuple[str, tuple[str, ...], Answer]:
    """What was asked, what was asked before, and the answer, as they may be kept."""
    typed = (asked_text, *earlier, answer.question)
    words = {word for text in typed for word in identifiers(text) if len(word) > 1}
    if not words:
        return asked_text, tuple(earlier), answer
    pattern = re.compile("|".join(_whole(word) for word in sorted(words, key=len, reverse=True)))
    return _blocks(asked_text, pattern), tuple(_blocks(text, pattern) for text in earlier), _answer(answer, pattern)


def _whole(word: str) -> str:
    """A pattern of ``word`` where it stands alone; Chinese has no blanks between words."""
    edges = ("", "") if word[0] > "\u2e80" else (r"(?<!\w)", r"(?!\w)")
    return re.escape(word).join(edges)


def _blocks(text: str, pattern: re.Pattern[str]) -> str:
    return pattern.sub(lambda match: MASK * len(match[0]), text)


def _answer(answer: Answer, pattern: re.Pattern[str]) -> Answer:
    values = answer_json(answer)
    values |= {name: _everywhere(values[name], pattern) for name in OWN}
    values["statements"] = [
        one if one["origin"] == Origin.EXTRACTIVE else one | {"text": _blocks(one["text"], pattern)}
        for one in values["statements"]
    ]
    try:
        return answer_of(values)
    except ValueError:  # somebody is called as a code of ours is
        return replace(answer, question=_blocks(answer.question, pattern), parts=(), notes=())


def _everywhere(value: Any, pattern: re.Pattern[str]) -> Any:
    """Every text in ``value`` but those that name a message or a type."""
    if isinstance(value, dict):
        return {name: item if name in ("code", "type") else _everywhere(item, pattern) for name, item in value.items()}
    if isinstance(value, list):
        return [_everywhere(item, pattern) for item in value]
    return _blocks(value, pattern) if isinstance(value, str) else value
