"""Label probabilities for many prompts with a common beginning, which is read once; nothing is generated.

A label's probability is the product of its tokens' probabilities, each given the prompt and the label's earlier tokens,
normalised over the labels. Labels with a common beginning therefore differ by what follows. If one label is the
beginning of another, each label ends with the end-of-turn token.

The prompts form a trie of two levels: their common beginning, and the rest of each prompt, followed by the labels'
beginnings in a sequence each. ``plan`` packs the rests into micro-batches, in order, splitting and combining them. A
sequence that has been read is dropped at once, so that memory stays near one micro-batch. The result for a prompt does
not depend on the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import cast

import numpy as np

from localmed.domain.errors import ModelError, TooLong
from localmed.models.llama.engine import Engine, Row, Slot

Path = tuple[int, ...]  # tokens of a label


def choose(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    labels: Sequence[Path],
    check: Callable[[], None],
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> list[tuple[list[float], float]]:
    """For each prompt the normalised probabilities of ``labels`` as its continuation, and their sum before normalising.

    ``progress`` gets the number of finished prompts and of all.
    """
    closed = with_ends(labels, engine.end)
    tree = Tree.of(closed)
    shared = common_beginning(prompts)
    rests = [prompt[shared:] for prompt in prompts]
    room = engine.context - shared
    longest = max(map(len, rests)) + tree.size
    if longest > room:
        raise TooLong("chat.decision_too_long", context=engine.context, needed=shared + longest)
    by_prompt: dict[int, tuple[list[float], float]] = {}
    with engine.cleared():
        engine.read_all(prompts[0][:shared], check, logits=False)
        for batch in plan([len(rest) for rest in rests], tree, engine.micro_batch, engine.sequences - 1, room):
            check()
            by_prompt |= _read(engine, batch, rests, tree, closed, shared)
            progress(len(by_prompt), len(rests))
    return [by_prompt[branch] for branch in range(len(rests))]


def common_beginning(prompts: Sequence[Sequence[int]]) -> int:
    """The number of tokens that all ``prompts`` begin with; each keeps at least one of its own."""
    alike = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*prompts, strict=False))
    return min(sum(1 for _ in alike), min(map(len, prompts)) - 1)


def with_ends(labels: Sequence[Path], end: int) -> list[Path]:
    """``labels``, each followed by ``end`` if one of them is the beginning of another."""
    ambiguous = any(one != other and other[: len(one)] == one for one in labels for other in labels)
    return [(*label, end) for label in labels] if ambiguous else list(labels)


@dataclass(frozen=True, slots=True)
class Tree:
    """The label tokens to read after a prompt: the labels without their last tokens, none a beginning of another."""

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, labels: Sequence[Path]) -> Tree:
        """The paths of ``labels``; one empty path if every label is a single token."""
        heads = {label[:-1] for label in labels}
        inner = {head for head in heads if any(other != head and other[: len(head)] == head for other in heads)}
        return cls(tuple(sorted(heads - inner)))

    @property
    def size(self) -> int:
        """The number of tokens."""
        return sum(map(len, self.paths))


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens ``start:stop`` of the rest of prompt ``branch``, which uses ``sequences`` until the ``last`` piece."""

    branch: int
    start: int
    stop: int
    sequences: tuple[int, ...]
    last: bool


def plan(lengths: Sequence[int], tree: Tree, most: int, sequences: int, room: int) -> Iterator[list[Piece]]:
    """Pack rests of ``lengths`` tokens into batches of at most ``most`` tokens.

    At most ``sequences`` (numbered from 1) and ``room`` tokens of context are in use at once. The labels' paths are
    read together with the last token of a rest.
    """
    needed = len(tree.paths)
    if needed > sequences or tree.size >= most:
        raise ModelError("chat.labels", needed=needed, size=tree.size)
    batch: list[Piece] = []
    used = held = 0  # tokens of this batch; tokens of the current rest in memory from earlier batches
    free = list(range(1, sequences + 1))
    for branch, length in enumerate(lengths):
        start, lent = 0, cast(tuple[int, ...], ())
        while start < length:
            left = min(most, room - held) - used
            whole = length - start + tree.size <= left
            stop = length if whole else min(length - 1, start + left)
            if stop <= start or (not lent and len(free) < needed):
                yield batch
                free, held = [sequence for sequence in range(1, sequences + 1) if sequence not in lent], start
                batch, used = [], 0
                continue
            if not lent:
                lent, free = tuple(free[:needed]), free[needed:]
            batch.append(Piece(branch, start, stop, lent, stop == length))
            used += stop - start + (tree.size if stop == length else 0)
            start = stop
    if batch:
        yield batch


def _read(
    engine: Engine,
    batch: Sequence[Piece],
    rests: Sequence[Sequence[int]],
    tree: Tree,
    labels: Sequence[Path],
    shared: int,
) -> dict[int, tuple[list[float], float]]:
    """The result of each prompt that ends in ``batch``, by its number.

    Logits are not kept: those of 1000 prompts would take gigabytes.
    """
    slots: list[Slot] = []
    paths: list[tuple[int, Path]] = []
    for piece in batch:
        if piece.start == 0:
            for sequence in piece.sequences:
                engine.share(sequence)
        for at in range(piece.start, piece.stop):
            ends = piece.last and at == piece.stop - 1
            slots.append(Slot(rests[piece.branch][at], shared + at, piece.sequences, ends))
        if piece.last:
            paths.append((piece.branch, ()))
            for path, sequence in zip(tree.paths, piece.sequences, strict=True):
                for at, token in enumerate(path):
                    slots.append(Slot(token, shared + piece.stop + at, (sequence,), True))
                    paths.append((piece.branch, path[: at + 1]))
    rows: dict[int, dict[Path, Row]] = {branch: {} for branch, _ in paths}
    for (branch, path), row in zip(paths, engine.read(slots), strict=True):
        rows[branch][path] = row
    for piece in batch:
        if piece.last:
            for sequence in piece.sequences:
                engine.forget(sequence, -1)
    return {branch: probabilities(logits, labels) for branch, logits in rows.items()}


def probabilities(rows: dict[Path, Row], labels: Sequence[Path]) -> tuple[list[float], float]:
    """Normalised label probabilities from the logits after each label beginning, and their sum before normalising."""
    totals = {path: _log_sum(row) for path, row in rows.items()}
    scores = [
        sum(float(rows[label[:at]][token]) - totals[label[:at]] for at, token in enumerate(label)) for label in labels
    ]
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    return [weight / sum(weights) for weight in weights], sum(weights) * math.exp(best)


def _log_sum(row: Row) -> float:
    highest = float(row.max())
    return highest + math.log(float(np.exp(row.astype(np.float64) - highest).sum()))
