"""The llama.cpp adapter against llama-cpp-python itself: the same reply, the same logits behind every label."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from localmed.domain.ports import Message, Request
from localmed.models.llama.adapter import LlamaChat
from tests.models.chat_contract import ASK
from tests.strict import module

llama_cpp = module("llama", "llama_cpp")
pytestmark = pytest.mark.extra("llama")


@pytest.fixture(scope="module")
def direct(path: Path) -> Iterator[Any]:
    """llama-cpp-python itself."""
    with closing(llama_cpp.Llama(str(path), n_ctx=1024, verbose=False, chat_format="chatml", logits_all=True)) as llama:
        yield llama


def test_the_same_reply_as_llama_cpp_python(model: LlamaChat, direct: Any) -> None:
    turns = [{"role": message.role, "content": message.content} for message in ASK]
    theirs = direct.create_chat_completion(turns, max_tokens=40, temperature=0.0)
    ours = model.complete(Request(ASK, 40))
    assert ours.prompt_tokens == theirs["usage"]["prompt_tokens"]
    # It drops bytes that are no character where we mark them, and goes on past the limit after half a character.
    text = ours.text.replace("\N{REPLACEMENT CHARACTER}", "")
    assert len(text) > 10
    assert theirs["choices"][0]["message"]["content"].startswith(text)


def by_hand(direct: Any, prompt: str, labels: list[str]) -> list[float]:
    """The labels' probabilities from llama-cpp-python's logits, one evaluation a label."""
    import numpy as np

    before = direct.tokenize(prompt.encode(), add_bos=True, special=True)
    shares = []
    for label in labels:
        whole = direct.tokenize((prompt + label).encode(), add_bos=True, special=True)
        assert whole[: len(before)] == before
        direct.reset()
        direct.eval(whole)
        share = 1.0
        for at in range(len(before), len(whole)):
            row = direct.scores[at - 1].astype(np.float64)
            share *= float(np.exp(row[whole[at]] - row.max()) / np.exp(row - row.max()).sum())
        shares.append(share)
    return [share / sum(shares) for share in shares]


# "relevant" is one token, "irrelevant" two, "irons" begins like it and goes on in bytes; both first labels begin with
# the same token; one is the beginning of the other; characters of bytes that begin alike.
@pytest.mark.parametrize(
    "labels",
    [["relevant", "irrelevant"], ["irrelevant", "irons", "no"], ["support", "supports"], ["yes", "no", "nono"],
     ["支持", "反对", "无关"]],
)  # fmt: skip
def test_two_hundred_branches_of_every_length(model: LlamaChat, direct: Any, labels: list[str]) -> None:
    """Many more than sequences; empty, of one character, and of several micro-batches beside each other."""
    branches = ["", *(f" {'the dose ' * (0 if number % 3 else number // 2)}{number}?" for number in range(1, 200))]
    choices = model.choose([Message("user", "Is it")], branches, labels)
    assert len(choices) == 200
    ambiguous = any(one != other and other.startswith(one) for one in labels for other in labels)
    for branch, choice in list(zip(branches, choices, strict=True))[::33]:
        prompt = f"<|im_start|>user\nIs it{branch}<|im_end|>\n<|im_start|>assistant\n"
        whole = [f"{label}<|im_end|>" if ambiguous else label for label in labels]
        assert choice.probabilities == pytest.approx(by_hand(direct, prompt, whole), abs=0.02)
    assert len({choice.probabilities for choice in choices}) > 190
