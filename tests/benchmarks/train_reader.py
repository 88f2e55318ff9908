"""Trains the reader (localmed/models/reader.py) on public question answering, on the CPU, and writes its weights.

    python -m tests.benchmarks.train_reader QA MEDQUAD MINUTES OUT

QA holds the files named in ``reader_pairs.py``, MEDQUAD the unpacked records. The lower half of the packaged encoder
stays as it is, the upper half and a head are trained for so many minutes, the rate falling to nothing at their end.
Three losses of equal weight: whether a window answers (cross entropy), which of a question's windows does (softmax over
them), and which token of these windows is the answer (softmax over the tokens). OUT is written every three minutes.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from localmed.models.e5 import DIMENSIONS, E5, LAYERS
from localmed.models.reader import FEATURES, FROM, Pair, logits, pairs
from tests.benchmarks.reader_pairs import SEED, Group, Window, groups

BATCH = 8  # groups
RATE, HEAD_RATE, DECAY, WARM = 6e-5, 1e-3, 0.01, 0.05
TITLED = 0.8  # of the groups show the titles
EVERY = 180.0  # seconds between two writings
CHUNK = 64  # batches whose groups are sorted by length together


def as_read(window: Window, titled: bool) -> tuple[str, int]:
    """The text, and where the window begins in it."""
    before = f"{window.title}\n" if titled and window.title else ""
    return before + window.text, len(before)


def prepared(loaded: Any, group: Group, titled: bool) -> tuple[list[Pair], list[range]]:
    """The pairs of a group, and the tokens of the answer in each."""
    texts = [as_read(window, titled) for window in group.windows]
    made, spans = pairs(loaded, group.question, [text for text, _ in texts]), []
    for pair, window, (text, begin) in zip(made, group.windows, texts, strict=True):
        start, end = (begin + place for place in window.answer)
        if start == end:
            spans.append(range(0))
            continue
        before, until = pairs(loaded, group.question, [text[:start].rstrip(), text[:end]])
        last = len(pair.ids)
        spans.append(range(min(len(before.ids) - 1, last), min(len(until.ids) - 1, last)))
    return made, spans


def batches(loaded: Any, made: Sequence[Group], draw: random.Random) -> Iterator[list[tuple[Group, Any]]]:
    """Groups of like length, again and again."""
    while True:
        order = draw.sample(list(made), len(made))
        for at in range(0, len(order), CHUNK * BATCH):
            ready = [(one, prepared(loaded, one, draw.random() < TITLED)) for one in order[at : at + CHUNK * BATCH]]
            ready.sort(key=lambda pair: max(len(one.ids) for one in pair[1][0]))
            chunk = [ready[start : start + BATCH] for start in range(0, len(ready), BATCH)]
            draw.shuffle(chunk)
            yield from chunk


def loss_of(torch: Any, network: Any, head: Any, batch: Sequence[tuple[Group, Any]]) -> Any:
    """The three losses together."""
    every = [pair for _, (made, _) in batch for pair in made]
    with torch.autocast("cpu", torch.bfloat16):
        hidden, mask = network._forward([pair.ids for pair in every])
    scores, tokens = logits(torch, head, hidden, mask, [pair.question for pair in every])
    total, place, labels = 0.0, 0, []
    for group, (made, spans) in batch:
        rows = range(place, place + len(made))
        place += len(made)
        labels += [float(group.answered and row == rows[0]) for row in rows]
        if not group.answered:
            continue
        own = scores[rows.start : rows.stop]
        total = total + (torch.logsumexp(own, 0) - own[0]) / len(batch)
        if len(spans[0]) > 0:
            all_tokens = torch.logsumexp(tokens[rows.start : rows.stop].flatten(), 0)
            answer = torch.logsumexp(tokens[rows.start, spans[0].start : spans[0].stop], 0)
            if torch.isfinite(answer):
                total = total + (all_tokens - answer) / len(batch)
    weight = torch.tensor([2.0 if label else 1.0 for label in labels])
    single = torch.nn.functional.binary_cross_entropy_with_logits(scores, torch.tensor(labels), weight=weight)
    return total + single, float(single)


def stored(weights: Any, head: Any) -> dict[str, Any]:
    """Matrices in 8 bits with a scale a row, the rest in float32."""
    kept = {f"head.{name}": value.detach().numpy() for name, value in head.items()}
    for name, value in weights.items():
        if not value.requires_grad:
            continue
        array = value.detach().float().numpy()
        if array.ndim == 1:
            kept[name] = array
            continue
        scale = np.abs(array).max(axis=1, keepdims=True) / 127
        kept[name] = np.rint(array / scale).astype(np.int8)
        kept[f"{name}.scale"] = scale[:, 0].astype(np.float32)
    return kept


def main() -> None:
    """Train and write."""
    import torch

    qa, medquad, minutes, out = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), Path(sys.argv[4])
    torch.manual_seed(SEED)
    loaded = E5(exact=True)._loaded
    weights = {name: value.float().clone() for name, value in loaded.network.weights.items()}
    upper = [name for name in weights if name.startswith(tuple(f"encoder.layer.{n}." for n in range(FROM, LAYERS)))]
    for name in upper:
        weights[name].requires_grad_(True)
    head = {
        "pair": torch.randn(FEATURES * DIMENSIONS) * 0.002, "token": torch.randn(DIMENSIONS) * 0.02,
        "scale": torch.tensor(0.2), "bias": torch.tensor(-1.0),
    }  # fmt: skip
    for value in head.values():
        value.requires_grad_(True)
    matrices = [weights[name] for name in upper if weights[name].ndim == 2]
    vectors = [weights[name] for name in upper if weights[name].ndim == 1]
    parts: list[dict[str, Any]] = [
        {"params": matrices, "lr": RATE, "weight_decay": DECAY},
        {"params": vectors, "lr": RATE, "weight_decay": 0.0},
        {"params": list(head.values()), "lr": HEAD_RATE, "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(parts, foreach=True)
    network = replace(loaded.network, weights=weights)
    shown = groups(qa, medquad, False)
    began = written = time.monotonic()
    rates, seen, means = [part["lr"] for part in parts], 0, list[tuple[float, float]]()
    for step, batch in enumerate(batches(loaded, shown, random.Random(SEED))):
        done = (time.monotonic() - began) / (60 * minutes)
        if done >= 1:
            break
        factor = min(1.0, (step + 1) / 40) * (1 - done)
        for part, rate in zip(optimiser.param_groups, rates, strict=True):
            part["lr"] = rate * factor
        loss, single = loss_of(torch, network, head, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*matrices, *vectors, *head.values()], 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        seen += sum(len(made) for _, (made, _) in batch)
        means = [*means[-49:], (float(loss.detach()), single)]
        if step % 20 == 0:
            both = np.mean(means, axis=0)
            print(f"{step} {seen} pairs {done:.3f} loss {both[0]:.3f} windows {both[1]:.3f}", flush=True)
        if time.monotonic() - written > EVERY:
            written = time.monotonic()
            np.savez_compressed(out, **stored(weights, head))
    np.savez_compressed(out, **stored(weights, head))


if __name__ == "__main__":
    main()
