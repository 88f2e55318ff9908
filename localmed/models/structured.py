"""What all chat adapters share: validating replies, labels and branches.

Every adapter passes its reply to ``validate_reply``, which returns a valid object of the schema or raises; a reply is
never repaired or read in part. Text around the object is removed: a reasoning model's thoughts, a code fence, an
introductory sentence. A schema may use only what a grammar can express (checked by ``tests/scripted.py``): without a
grammar, a model would violate other keywords now and then, after minutes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from localmed.domain.errors import Rejected, UsageError
from localmed.domain.ports import Message, Reply

LEAST_MASS = 0.5  # least total probability of the labels; with less the model would have replied something else
_REPLY_CHARACTERS = 1_000_000  # a reply of 100,000 tokens has half

_THOUGHTS = re.compile(r"\s*<(think|thinking|thought)>.*?(?:</\1>\s*|\Z)", re.DOTALL)
_THOUGHTS_END = re.compile(r".*</(?:think|thinking|thought)>\s*", re.DOTALL)  # if the template opens them
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def parse_json(text: str, schema: Mapping[str, Any]) -> Any:
    """The value in ``text``; raise ``Rejected``, without the text, unless it is JSON and valid for the schema."""
    from jsonschema import Draft202012Validator

    if len(text) > _REPLY_CHARACTERS:
        raise Rejected("chat.reply_too_long", most=_REPLY_CHARACTERS)
    try:
        value = json.loads(_find_json(text, schema), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Rejected("chat.reply_json") from None
    error = next(Draft202012Validator(schema).iter_errors(value), None)
    if error is not None:  # its message would quote the reply
        raise Rejected("chat.reply_schema", rule=error.validator)
    return value


def strip_thoughts(text: str) -> str:
    """Remove a reasoning model's thoughts from the beginning of ``text``; "" if they do not end."""
    return _THOUGHTS_END.sub("", _THOUGHTS.sub("", text, count=1), count=1)


def _find_json(text: str, schema: Mapping[str, Any]) -> str:
    """The JSON in ``text``: all of it, the content of its only code fence, or the object within a sentence."""
    fenced = _FENCE.findall(text)
    inside: str = (fenced[0] if len(fenced) == 1 else text).strip()
    start, end = inside.find("{"), inside.rfind("}")
    is_object = schema.get("type") == "object" and 0 <= start < end
    return inside[start : end + 1] if is_object else inside


def read_label(text: str, labels: Sequence[str]) -> int:
    """The index of the label that ``text`` names, ignoring case, blanks and quotes; else raise ``Rejected``."""
    named = fold_label(text.strip(" \t\r\n\"'`*.。“”"))
    places = [place for place, label in enumerate(labels) if fold_label(label) == named]
    if not places:
        raise Rejected("chat.reply_label")
    return places[0]


def fold_label(text: str) -> str:
    """``text`` for comparing labels: no surrounding blanks, no case."""
    return text.strip().casefold()


def _no_number(_name: str) -> NoReturn:
    """Reject NaN and infinity, which Python's reader accepts."""
    raise ValueError


def append_branch(prefix: Sequence[Message], branch: str) -> list[Message]:
    """``prefix`` with ``branch`` appended to its last message."""
    if not prefix or prefix[-1].role != "user":
        raise UsageError("chat.no_user_message")
    return [*prefix[:-1], replace(prefix[-1], content=prefix[-1].content + branch)]


def check_labels(labels: Sequence[str]) -> None:
    """Raise ``UsageError`` unless there are at least two labels, distinct and not empty."""
    if len(labels) < 2 or len(set(labels)) < len(labels) or not all(labels):
        raise UsageError("chat.two_labels")


def validate_reply(reply: Reply, schema: Mapping[str, Any] | None) -> Reply:
    """``reply`` with its value; raise ``Rejected`` unless it is complete and valid for the schema."""
    reply = replace(reply, text=strip_thoughts(reply.text))
    if schema is None:
        return reply
    if reply.finish == "length":
        raise Rejected("chat.reply_cut", count=reply.reply_tokens)
    return replace(reply, value=parse_json(reply.text, schema))
