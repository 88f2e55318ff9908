"""What every chat adapter does alike: replies read and validated, labels and branches taken.

Every adapter calls ``finished`` on what it got: a reply is an object of the schema or a ``ModelError``, never a
repaired or half-read one. What stands around the object is taken off: a model's thoughts, a fence, a sentence before
it. A schema may use only what a grammar can express (``tests/scripted.py`` checks it): a model that is not held to a
keyword would fail at it every so often, after minutes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from localmed.domain.errors import Rejected, UsageError
from localmed.domain.ports import Message, Reply

LEAST_MASS = 0.5  # of the probability on labels; with less the model was about to say something else
_REPLY_CHARACTERS = 1_000_000  # a reply of 100,000 tokens has half of that

_THOUGHTS = re.compile(r"\s*<(think|thinking|thought)>.*?(?:</\1>\s*|\Z)", re.DOTALL)
_THOUGHTS_END = re.compile(r".*</(?:think|thinking|thought)>\s*", re.DOTALL)  # their beginning was in the template
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)


def parsed(text: str, schema: Mapping[str, Any]) -> Any:
    """The value that ``text`` holds; raise ``Rejected``, without the text, unless it is JSON and of the schema."""
    from jsonschema import Draft202012Validator

    if len(text) > _REPLY_CHARACTERS:
        raise Rejected("chat.reply_too_long", most=_REPLY_CHARACTERS)
    try:
        value = json.loads(_bare(text, schema), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Rejected("chat.reply_json") from None
    error = next(Draft202012Validator(schema).iter_errors(value), None)
    if error is not None:  # its message would quote the reply
        raise Rejected("chat.reply_schema", rule=error.validator)
    return value


def without_thoughts(text: str) -> str:
    """``text`` without the thoughts that a reasoning model writes before its reply; "" where these do not end."""
    return _THOUGHTS_END.sub("", _THOUGHTS.sub("", text, count=1), count=1)


def _bare(text: str, schema: Mapping[str, Any]) -> str:
    """What of ``text`` is to be the value: all of it, the inside of its only fence, or the object within a sentence."""
    fenced = _FENCE.findall(text)
    inside: str = (fenced[0] if len(fenced) == 1 else text).strip()
    start, end = inside.find("{"), inside.rfind("}")
    is_object = schema.get("type") == "object" and 0 <= start < end
    return inside[start : end + 1] if is_object else inside


def label_in(text: str, labels: Sequence[str]) -> int:
    """Which of ``labels`` the reply ``text`` names, without case, blanks and quotes; raise ``Rejected`` for none."""
    named = folded(text.strip(" \t\r\n\"'`*.。“”"))
    places = [place for place, label in enumerate(labels) if folded(label) == named]
    if not places:
        raise Rejected("chat.reply_label")
    return places[0]


def folded(text: str) -> str:
    """``text`` as labels are compared: without case and without blanks around it."""
    return text.strip().casefold()


def _no_number(_name: str) -> NoReturn:
    """JSON has no NaN and no infinity, though Python's reader takes them."""
    raise ValueError


def continued(prefix: Sequence[Message], branch: str) -> list[Message]:
    """``prefix`` with ``branch`` at the end of its last message."""
    if not prefix or prefix[-1].role != "user":
        raise UsageError("chat.no_user_message")
    return [*prefix[:-1], replace(prefix[-1], content=prefix[-1].content + branch)]


def check_labels(labels: Sequence[str]) -> None:
    """Raise ``UsageError`` unless there are two labels at least, none of them empty or there twice."""
    if len(labels) < 2 or len(set(labels)) < len(labels) or not all(labels):
        raise UsageError("chat.two_labels")


def finished(reply: Reply, schema: Mapping[str, Any] | None) -> Reply:
    """``reply`` with its value; raise ``Rejected`` unless it is whole and of the schema."""
    reply = replace(reply, text=without_thoughts(reply.text))
    if schema is None:
        return reply
    if reply.finish == "length":
        raise Rejected("chat.reply_cut", count=reply.reply_tokens)
    return replace(reply, value=parsed(reply.text, schema))
