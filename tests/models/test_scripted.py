"""The rules on schemas and labels that all adapters share."""

from __future__ import annotations

import pytest

from localmed.domain.errors import ModelError, UsageError
from localmed.domain.ports import Message
from localmed.models import structured
from tests.scripted import ScriptedChat

ASK = (Message("system", "Be brief."), Message("user", "Which dose?"))
LABEL = {"type": "object", "properties": {"label": {"enum": ["yes", "no"]}}, "required": ["label"]}


@pytest.mark.parametrize("text", ["yes", '{"label": "perhaps"}', "{}", '{"label": NaN}', "[" * 100_000])
def test_what_is_not_of_the_schema_is_an_error_without_its_text(text: str) -> None:
    with pytest.raises(ModelError) as caught:
        structured.parsed(text, LABEL)
    assert "perhaps" not in str(caught.value)
    assert "NaN" not in str(caught.value)


@pytest.mark.parametrize("labels", [[], ["yes"], ["yes", "yes"], ["yes", ""]])
def test_labels_that_are_none(labels: list[str]) -> None:
    with pytest.raises(UsageError, match="two different labels"):
        ScriptedChat(["yes"]).choose(ASK, ["?"], labels)
    with pytest.raises(UsageError, match="user's message"):
        ScriptedChat(["yes"]).choose((*ASK, Message("assistant", "40")), ["?"], ["yes", "no"])
