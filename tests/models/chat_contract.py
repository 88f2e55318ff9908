"""What every chat adapter must do, asked of each in turn: conversations, schemas, labels, cancellation, bad input."""

from __future__ import annotations

from typing import Any

import pytest

from localmed.domain.errors import Cancelled, ModelError, UsageError
from localmed.domain.ports import ChatModel, CountingChat, Message, Request, Watch

SECRET = "jaundice"  # stands for a patient's words: never in an error
ASK = (Message("system", "Be brief."), Message("user", f"Is {SECRET} relevant"))
LABELS = ("yes", "no")
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"label": {"enum": list(LABELS)}}, "required": ["label"]}


class ChatContract:
    """Collected where a class of tests inherits it and has the fixture ``model``."""

    def test_it_says_who_it_is(self, model: ChatModel) -> None:
        assert model.identity.name
        assert model.identity.context > 100

    def test_a_reply_is_counted_and_repeats_itself(self, model: ChatModel) -> None:
        first, second = (model.complete(Request(ASK, 8)) for _ in range(2))
        assert first == second
        assert first.prompt_tokens > 3
        assert 0 <= first.reply_tokens <= 8
        assert first.value is None

    def test_tokens_make_the_text(self, model: ChatModel) -> None:
        tokens: list[str] = []
        reply = model.complete(Request(ASK, 8), Watch(token=tokens.append))
        assert "".join(tokens) == reply.text != ""

    def test_a_reply_to_a_schema_is_an_object_of_it(self, model: ChatModel) -> None:
        assert model.complete(Request(ASK, 64, SCHEMA)).value["label"] in LABELS

    def test_a_cut_object_is_an_error(self, model: ChatModel) -> None:
        with pytest.raises(ModelError, match="after 2 tokens") as caught:
            model.complete(Request(ASK, 2, SCHEMA))
        assert SECRET not in str(caught.value)

    def test_choices_add_up_and_do_not_depend_on_each_other(self, model: ChatModel) -> None:
        branches = ["? The dose.", "?", " or not? " + "the dose " * 30]
        together = model.choose(ASK, branches, LABELS)
        assert all(sum(choice.probabilities) == pytest.approx(1) for choice in together)
        alone = [model.choose(ASK, [branch], LABELS)[0] for branch in branches]
        for one, other in zip(together, alone, strict=True):
            assert one.best == other.best
            assert one.probabilities == pytest.approx(other.probabilities, abs=0.02)  # half precision
        assert model.choose(ASK, [], LABELS) == []

    def test_labels_must_differ(self, model: ChatModel) -> None:
        with pytest.raises(UsageError, match="two different labels"):
            model.choose(ASK, ["?"], ["yes", "yes"])

    def test_a_context_that_overflows_is_an_error_not_a_cut(self, model: ChatModel) -> None:
        long = (Message("user", f"{SECRET} " * 4000),)
        with pytest.raises(ModelError) as caught:
            model.complete(Request(long, 8))
        assert SECRET not in str(caught.value)

    def test_cancelling_ends_a_request_and_not_the_model(self, model: ChatModel) -> None:
        with pytest.raises(Cancelled):
            model.complete(Request(ASK, 64), Watch(cancelled=lambda: True))
        assert model.complete(Request(ASK, 8)).prompt_tokens > 3


def counts_grow(model: CountingChat) -> None:
    """``count`` answers text by text, longer for more, nothing for nothing."""
    short, long, nothing = model.count(["the dose", "the dose of the day", ""])
    assert 0 == nothing < short < long
