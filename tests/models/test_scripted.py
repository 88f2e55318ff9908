"""The scripted model keeps the port's rules; and the rules on schemas that all adapters share."""

from __future__ import annotations

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
