"""Batches sized to memory, in halves where the GPU is full, and what a failing network comes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from localmed.domain.errors import ModelError
from localmed.models import network
from localmed.models.network import CPU_BYTES, MOST_TEXTS, Cost, Network, make_batches

LARGE = Cost(hidden=1024, wide=4096, heads=16, number=2)  # BGE-M3 in half precision
SMALL = Cost(hidden=8, wide=16, heads=2, number=4)


class Marks:
    """A tokenizer's padding."""

    pad_token_id = 9
    pad_token_type_id = 0


def made(cost: Cost = SMALL) -> Network:
    return Network(torch, Marks(), None, "cpu", 128, cost)


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 10**7))
def test_every_text_once_within_the_room(lengths: list[int], room: int) -> None:
    batches = list(make_batches(lengths, SMALL, room))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[place] for place in batch)
        assert len(batch) == 1 or len(batch) * SMALL.bytes(longest) <= room
        assert len(batch) <= MOST_TEXTS
    longests = [max(lengths[place] for place in batch) for batch in batches]
    assert longests == sorted(longests, reverse=True)


def test_long_texts_go_in_small_batches_and_short_ones_in_large() -> None:
    long, short = (len(next(make_batches([tokens] * 500, LARGE, CPU_BYTES))) for tokens in (1024, 32))
    assert 4 <= long <= 16
    assert short == MOST_TEXTS


def test_the_room_is_bounded_and_leaves_the_rest_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < network.free_bytes(torch) <= CPU_BYTES
    memory = type("Memory", (), {"available": 1000})
    monkeypatch.setattr("localmed.models.network.psutil.virtual_memory", lambda: memory)
    assert network.free_bytes(torch) == 500


def test_inputs_are_padded_at_the_end_with_what_the_tokenizer_says() -> None:
    seen: list[dict[str, Any]] = []

    def forward(inputs: dict[str, Any]) -> str:
        seen.append({name: value.tolist() for name, value in inputs.items()})
        return "out"

    rows = {"input_ids": [[1], [2, 3, 4]], "token_type_ids": [[0], [0, 1, 1]], "attention_mask": [[1], [1, 1, 1]]}
    assert list(made().batches(rows, forward)) == [([1, 0], "out")]
    padded = {"input_ids": [[2, 3, 4], [1, 9, 9]], "token_type_ids": [[0, 1, 1], [0, 0, 0]]}
    assert seen == [{**padded, "attention_mask": [[1, 1, 1], [1, 0, 0]]}]


def full_above(texts: int) -> Any:
    """A run that is out of the GPU's memory with more than so many texts."""

    def run(places: Sequence[int]) -> list[int]:
        if len(places) > texts:
            raise torch.OutOfMemoryError("out of memory")
        return list(places)

    return run


def test_a_full_gpu_takes_halves() -> None:
    batches = list(made().in_batches([5] * 13, full_above(3)))
    assert all(len(places) <= 3 and places == output for places, output in batches)
    assert sorted(place for places, _ in batches for place in places) == list(range(13))


def test_failures_are_told_without_the_librarys_words() -> None:
    """One text that does not fit, and anything else."""

    def fails(places: Sequence[int]) -> None:
        raise RuntimeError("somebody's text")

    for run, told in ((full_above(0), r"failed on 1 texts \(OutOfMemoryError\)"), (fails, r"2 texts \(RuntimeError\)")):
        with pytest.raises(ModelError, match=told) as raised:
            list(made().in_batches([5, 5], run))
        assert "somebody" not in str(raised.value)
        assert raised.value.__cause__ is None


def test_what_is_no_number_is_an_error() -> None:
    assert made().finite(torch.tensor([1.0, 2.0], dtype=torch.bfloat16)).dtype is torch.float32
    for value in (float("nan"), float("inf")):
        with pytest.raises(ModelError, match="invalid number"):
            made().finite(torch.tensor([1.0, value]))
    assert network.arithmetic(torch, True) is torch.float32
    assert network.arithmetic(torch, False) in (torch.float32, torch.bfloat16, torch.float16)
