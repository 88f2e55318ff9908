"""The scripted model keeps the port's rules; and the rules on schemas that all adapters share."""

from __future__ import annotations

from typing import Any

import pytest

from localmed.domain.errors import Cancelled, ModelError, UsageError
from localmed.domain.ports import Message, Request, Watch
from localmed.models import structured
from tests.scripted import ScriptedChat

ASK = (Message("system", "Be brief."), Message("user", "Which dose?"))
LABEL = {"type": "object", "properties": {"label": {"enum": ["yes", "no"]}}, "required": ["label"]}


def test_cancelling_stops_between_two_tokens() -> None:
    tokens: list[str] = []
    with pytest.raises(Cancelled):
        ScriptedChat(["a b c d"]).complete(Request(ASK), Watch(tokens.append, lambda: len(tokens) == 2))
    assert tokens == ["a", " b"]


def test_a_long_reply_is_cut_and_a_cut_object_is_an_error() -> None:
    assert ScriptedChat(["a b c"]).complete(Request(ASK, 2)).finish == "length"
    with pytest.raises(ModelError, match="after 1 tokens"):
        ScriptedChat([{"label": "yes"}]).complete(Request(ASK, 1, LABEL))


@pytest.mark.parametrize("text", ["yes", '{"label": "perhaps"}', "{}", '{"label": NaN}', "[" * 100_000])
def test_what_is_not_of_the_schema_is_an_error_without_its_text(text: str) -> None:
    with pytest.raises(ModelError) as caught:
        ScriptedChat([text]).complete(Request(ASK, 200_000, LABEL)) if len(text) < 100 else structured.parsed(
            text, LABEL
        )
    assert "perhaps" not in str(caught.value)
    assert "NaN" not in str(caught.value)


def test_a_context_that_overflows_is_refused_with_numbers() -> None:
    with pytest.raises(ModelError, match=r"4 tokens\) and reply \(50 tokens\) do not fit into the context \(50"):
        ScriptedChat(["x"], context=50).complete(Request(ASK, 50))


@pytest.mark.parametrize("labels", [[], ["yes"], ["yes", "yes"], ["yes", ""]])
def test_labels_that_are_none(labels: list[str]) -> None:
    with pytest.raises(UsageError, match="two different labels"):
        ScriptedChat(["yes"]).choose(ASK, ["?"], labels)


def test_a_label_that_is_not_offered() -> None:
    with pytest.raises(ModelError, match="not offered"):
        ScriptedChat(["perhaps"]).choose(ASK, ["?"], ["yes", "no"])
    with pytest.raises(UsageError, match="user's message"):
        ScriptedChat(["yes"]).choose((*ASK, Message("assistant", "40")), ["?"], ["yes", "no"])


# --- schemas ---------------------------------------------------------------------------------------------------

GOOD: list[dict[str, Any]] = [
    LABEL,
    {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1, "maxItems": 3},
    {"anyOf": [{"type": "string"}, {"type": "null"}]},
    {"type": ["string", "null"]},
    {"$defs": {"n": {"type": "integer"}}, "type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}},
    {"type": "string", "pattern": "^[0-9]{4}$", "description": "a year"},
]
BAD: list[tuple[dict[str, Any], str]] = [
    ({"type": "integer", "minimum": 1}, "'minimum'"),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "'uniqueItems'"),
    ({"not": {"type": "string"}}, "'not'"),
    ({"type": "object", "properties": {"a": {"if": {}, "then": {}}}}, "schema/a uses 'if'"),
    ({"type": "string", "pattern": "dose"}, "pattern without"),
    ({"type": ["string", "null"], "minLength": 3}, "several types"),
    ({"type": "integer", "maxLength": 3}, "without the type string"),
    ({"type": "object", "properties": {}, "required": ["a"]}, "requires 'a'"),
    ({"$ref": "https://example.org/schema"}, "outside its own"),
    ({"type": "text"}, "not valid JSON Schema"),
    ({"type": "array", "items": False}, "schema/items is not a table"),
]


@pytest.mark.parametrize("schema", GOOD)
def test_schemas_that_a_grammar_can_express(schema: dict[str, Any]) -> None:
    structured.check(schema)


@pytest.mark.parametrize(("schema", "why"), BAD)
def test_schemas_that_a_grammar_cannot_express(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(ModelError, match=why):
        ScriptedChat(["{}"]).complete(Request(ASK, schema=schema))


def test_a_schema_without_end_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    with pytest.raises(ModelError, match="levels deep"):
        structured.check(schema)
