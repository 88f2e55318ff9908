"""The llama.cpp adapter against llama-cpp-python itself: the same reply, the same logits behind every label."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from localmed.config import ChatSettings
from localmed.domain.errors import ModelError
from localmed.domain.ports import Message, Request
from localmed.models.llama.adapter import ChatFile, LlamaChat
from tests.models.chat_contract import ASK
from tests.models.tiny_gguf import write_gguf
from tests.strict import module

llama_cpp = module("llama", "llama_cpp")
pytestmark = pytest.mark.extra("llama")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(path: Path) -> Iterator[LlamaChat]:
    settings = ChatSettings(context=1024, micro_batch=64, sequences=6, threads=1)
    with closing(LlamaChat(ChatFile("tiny", path, "ab" * 32, "chatml", 2048), settings)) as llama:
        yield llama


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


# "relevant" is one token, "irrelevant" two, "irons" begins like it and goes on in bytes.
@pytest.mark.parametrize("labels", [["yes", "no"], ["relevant", "irrelevant"], ["irrelevant", "irons", "no"]])
def test_labels_are_read_from_the_same_logits(model: LlamaChat, direct: Any, labels: list[str]) -> None:
    branches = [f" {word}?" for word in ("dose", "the label", "x" * 150)]
    choices = model.choose([Message("user", "Is it")], branches, labels)
    for branch, choice in zip(branches, choices, strict=True):
        prompt = f"<|im_start|>user\nIs it{branch}<|im_end|>\n<|im_start|>assistant\n"
        assert choice.probabilities == pytest.approx(by_hand(direct, prompt, labels), abs=0.02)


def test_a_label_that_begins_another_is_closed_by_the_end_of_the_turn(model: LlamaChat) -> None:
    choice = model.choose(ASK, ["?"], ["no", "nono"])[0]
    assert all(share > 0 for share in choice.probabilities)
    assert choice.probabilities[1] != pytest.approx(0, abs=1e-12)


def test_twenty_branches_in_few_sequences(model: LlamaChat) -> None:
    """Longer than a micro-batch, shorter than one, and equal ones; five sequences for twenty branches of two paths."""
    branches = [f"{'the dose ' * (number * 7)} case {number}?" for number in range(20)]
    labels = ["irrelevant", "noir", "yes"]
    together = model.choose(ASK, branches, labels)
    for branch, choice in zip(branches, together, strict=True):
        alone = model.choose(ASK, [branch], labels)[0]
        assert choice.probabilities == pytest.approx(alone.probabilities, abs=0.02)
    assert len({choice.probabilities for choice in together}) == 20


# Both first labels begin with the same token; one is the beginning of the other; characters of bytes that begin alike.
@pytest.mark.parametrize("labels", [["support", "supports"], ["yes", "no", "nono"], ["支持", "反对", "无关"]])
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


def test_labels_that_need_more_sequences_than_there_are(model: LlamaChat) -> None:
    with pytest.raises(ModelError, match="need 7 sequences"):
        model.choose(ASK, ["?"], [f"{letter}bc" for letter in "ABCDEFG"])
