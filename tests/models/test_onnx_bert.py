"""The graph of BERT against the same layers in numpy, on small random weights, and how texts are put into batches."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np
import pytest

from localmed.domain.errors import Cancelled
from localmed.models.e5 import BATCH, BATCH_TOKENS, Network, build_graph, make_batches, reorder_nibbles, unpack
from localmed.models.e5 import BLOCK as Q4_0
from localmed.process.hooks import Cancel, Hooks, following

LAYERS, HEADS, WIDTH, WIDE, EPSILON = 2, 4, 64, 128, 1e-12


class RandomWeights:
    """``Weights`` of any name."""

    def __init__(self) -> None:
        self._random, self._made = np.random.default_rng(7), dict[str, Any]()

    def blocks(self, name: str, rows: int, columns: int) -> Any:
        if name not in self._made:
            made = np.zeros((rows, columns // 32), Q4_0)
            made["scale"] = self._random.normal(0, 0.02, made.shape)
            made["nibbles"] = self._random.integers(0, 256, (*made.shape, 16))
            self._made[name] = made
        return self._made[name]

    def plain(self, name: str, shape: tuple[int, ...]) -> Any:
        return self._made.setdefault(name, self._random.normal(0, 0.5, shape).astype(np.float32))


@pytest.fixture(scope="module")
def weights() -> RandomWeights:
    return RandomWeights()


@pytest.fixture(scope="module")
def network(weights: RandomWeights) -> Network:
    return Network(build_graph(weights, LAYERS, HEADS, WIDTH, WIDE, EPSILON))


def mean(weights: RandomWeights, tokens: Any) -> Any:
    """What the network makes of one text's vectors (T, D), as the paper has it."""

    def norm(values: Any, name: str) -> Any:
        values = (values - values.mean(-1, keepdims=True)) / np.sqrt(values.var(-1, keepdims=True) + EPSILON)
        return values * weights.plain(f"{name}.w", (WIDTH,)) + weights.plain(f"{name}.b", (WIDTH,))

    def linear(values: Any, name: str, rows: int, columns: int) -> Any:
        matrix = unpack(weights.blocks(f"{name}.w", rows, columns))
        return values @ matrix.T + weights.plain(f"{name}.b", (rows,))

    def heads(values: Any, name: str) -> Any:  # (T, D) -> (H, T, D/H)
        return linear(values, name, WIDTH, WIDTH).reshape(-1, HEADS, WIDTH // HEADS).transpose(1, 0, 2)

    hidden = norm(tokens, "emb.ln")
    for layer in ("l0", "l1"):
        asked, keys, values = (heads(hidden, f"{layer}.{part}") for part in "qkv")
        scores = np.exp(asked @ keys.transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS))
        mixed = (scores / scores.sum(-1, keepdims=True) @ values).transpose(1, 0, 2).reshape(-1, WIDTH)
        hidden = norm(hidden + linear(mixed, f"{layer}.ao", WIDTH, WIDTH), f"{layer}.aln")
        spread = linear(hidden, f"{layer}.fi", WIDE, WIDTH)
        spread = spread * (1 + np.vectorize(erf)(spread / np.sqrt(2))) / 2
        hidden = norm(hidden + linear(spread, f"{layer}.fo", WIDTH, WIDE), f"{layer}.oln")
    return hidden.mean(0)


def test_as_the_same_layers_in_numpy(network: Network, weights: RandomWeights) -> None:
    """Texts of one batch are of different lengths: what is padded counts for nothing."""
    texts = [np.random.default_rng(length).normal(size=(length, WIDTH)).astype(np.float32) for length in (5, 9, 7)]

    def embedded(places: list[int]) -> Any:
        padded = np.full((len(places), max(len(texts[place]) for place in places), WIDTH), 3, np.float32)
        for row, place in enumerate(places):
            padded[row, : len(texts[place])] = texts[place]
        return padded

    ((places, means),) = network.batches([len(text) for text in texts], embedded)
    assert places == [1, 2, 0]
    for place, found in zip(places, means, strict=True):
        assert found == pytest.approx(mean(weights, texts[place]), abs=1e-4)


def test_weights_are_packed_as_onnxruntime_reads_them() -> None:
    packed = reorder_nibbles(np.arange(16, dtype=np.uint8) | np.arange(16, dtype=np.uint8)[::-1] << 4)
    single = np.stack((packed & 15, packed >> 4), axis=-1).ravel()
    assert single.tolist() == [*range(16), *range(15, -1, -1)]


def test_short_texts_do_not_wait_for_a_long_one() -> None:
    batches = list(make_batches([9, 512, 10, *[60] * BATCH, 31]))
    assert batches[0] == [1]
    assert [len(batch) for batch in batches] == [1, BATCH, 1, 2]
    assert sorted(place for batch in batches for place in batch) == list(range(BATCH + 4))
    assert list(make_batches([])) == []
    lengths = [512] * 20
    assert all(len(batch) * 512 <= BATCH_TOKENS for batch in make_batches(lengths))
    assert sum(map(len, make_batches(lengths))) == 20


def test_a_cancellation_is_seen_between_batches(network: Network) -> None:
    cancel, amounts = Cancel(), list[float]()

    def progress(done: float, *_: object) -> None:
        amounts.append(done)
        cancel.cancel()

    def embedded(places: list[int]) -> Any:
        return np.ones((len(places), 3, WIDTH), np.float32)

    with following(Hooks(progress=progress, cancel=cancel)), pytest.raises(Cancelled):
        list(network.batches([3] * 3 * BATCH, embedded))
    assert amounts == [BATCH]
