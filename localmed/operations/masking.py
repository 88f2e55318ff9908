"""Names and numbers of patients masked before anything is kept of what was asked: each character becomes a block.

As many blocks as there were characters, so that what points into the text still points there. Masked is what came from
whoever asked: the question, the questions before it, and of the answer everything but what documents say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from localmed.clinical.identifiers import hiding, identifiers
from localmed.domain import Answer, Origin
from localmed.domain.codec import answer_json, answer_of

OWN = ("question", "parts", "notes", "verification")  # fields of an answer that may repeat what was asked


def masked(asked_text: str, earlier: Sequence[str], answer: Answer) -> tuple[str, tuple[str, ...], Answer]:
    """What was asked, what was asked before, and the answer, as they may be kept."""
    typed = (asked_text, *earlier, answer.question)
    words = {word for text in typed for word in identifiers(text)}
    if not words:
        return asked_text, tuple(earlier), answer
    hide = hiding(words)
    return hide(asked_text), tuple(map(hide, earlier)), _answer(answer, hide)


def _answer(answer: Answer, hide: Callable[[str], str]) -> Answer:
    values = answer_json(answer)
    values |= {name: _everywhere(values[name], hide) for name in OWN}
    values["statements"] = [
        one if one["origin"] == Origin.EXTRACTIVE else one | {"text": hide(one["text"])} for one in values["statements"]
    ]
    try:
        return answer_of(values, authentic=True)
    except ValueError:  # somebody is called as a code of ours is
        return replace(answer, question=hide(answer.question), parts=(), notes=())


def _everywhere(value: Any, hide: Callable[[str], str]) -> Any:
    """Every text in ``value`` but those that name a message or a type."""
    if isinstance(value, dict):
        return {name: item if name in ("code", "type") else _everywhere(item, hide) for name, item in value.items()}
    if isinstance(value, list):
        return [_everywhere(item, hide) for item in value]
    return hide(value) if isinstance(value, str) else value
