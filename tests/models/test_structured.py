"""The rules on schemas and labels that all adapters share."""

from __future__ import annotations

import pytest

from localmed.domain.errors import Rejected, UsageError
from localmed.domain.ports import Message, Reply
from localmed.models import structured
from tests.models.chat_contract import SCHEMA

FITS = ['```json\n{"label": "yes"}\n```', 'Sure, here it is:\n{"label": "yes"}',
        ' {"label": "yes"}\n\nI hope this helps.', '<think>{"label": "no"}?</think>{"label": "yes"}',
        'I think {"label": "no"} is wrong.</think>\n{"label": "yes"}']  # fmt: skip
UNFIT = ["yes", "{}", '{"label": NaN}', "[" * 100_000, "<think>endless", "```\n{}\n```\n```\n{}\n```", "{",
         '{"label": "yes"', '{"label": "perhaps"}', "Sure! {}", '{"label": "yes"} {"label": "no"}']  # fmt: skip


@pytest.mark.slow
def test_what_stands_around_an_object_is_taken_off_and_what_is_none_is_not_mended() -> None:
    for text in FITS:
        assert structured.validate_reply(Reply(text, 1, 1, "stop"), SCHEMA).value == {"label": "yes"}
    for text in UNFIT:
        with pytest.raises(Rejected) as caught:
            structured.validate_reply(Reply(text, 1, 1, "stop"), SCHEMA)
        assert "perhaps" not in str(caught.value)
        assert "NaN" not in str(caught.value)


def test_labels_that_are_none_and_a_branch_of_nobody() -> None:
    for labels in ([], ["yes"], ["yes", "yes"], ["yes", ""]):
        with pytest.raises(UsageError, match="two different labels"):
            structured.check_labels(labels)
    with pytest.raises(UsageError, match="user's message"):
        structured.append_branch((Message("user", "Which dose?"), Message("assistant", "40")), "?")
