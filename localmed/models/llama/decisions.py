"""Many decisions about one prompt's beginning: it is read once, its continuations side by side, nothing is generated.

A label's probability is the product of the probabilities of its tokens, each given the prompt and the label's tokens
before it, divided by the sum over the labels. Labels that begin alike are therefore told apart by what follows. Where
one label is the beginning of another, the end of the turn counts as the last token of each.

The prompts are a trie of two levels: their longest common beginning in tokens, and the rest of each, followed by the
beginnings of the labels, a sequence each. ``plan`` packs the rests into micro-batches, several to one and one across
several as they come; a sequence that has been read is dropped at once, so that the memory in use stays near one
micro-batch, and reading a prompt by itself or among others comes to the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
    """For each prompt the probabilities of ``labels`` as what comes next, in their order, divided by their sum; and it.

    ``progress`` is told of how many prompts they are known, and of how many they are to be.
    """
    closed = with_ends(labels, engine.end)
    tree = Tree.of(closed)
    shared = common_beginning(prompts)
    rests = [prompt[shared:] for prompt in prompts]
    room = engine.context - shared
    longest = max(map(len, rests)) + tree.size
    if longest > room:
        raise TooLong("chat.decision_too_long", context=engine.context, needed=shared + longest)
    reader = _Reader(engine, tree, closed, shared)
    by_prompt: dict[int, tuple[list[float], float]] = {}
    with engine.cleared():
        engine.read_all(prompts[0][:shared], check, logits=False)
        for batch in plan([len(rest) for rest in rests], tree, engine.micro_batch, engine.sequences - 1, room):
            check()
            by_prompt |= reader.read(batch, rests)
            progress(len(by_prompt), len(rests))
    return [by_prompt[branch] for branch in range(len(rests))]


def common_beginning(prompts: Sequence[Sequence[int]]) -> int:
    """How many tokens all ``prompts`` begin with; each keeps at least one of its own."""
    shortest = min(map(len, prompts)) - 1
    first = prompts[0]
    for at in range(shortest):
        if any(prompt[at] != first[at] for prompt in prompts):
            return at
    return shortest


def with_ends(labels: Sequence[Path], end: int) -> list[Path]:
    """``labels``, each closed by ``end`` where one of them is the beginning of another."""
    ambiguous = any(one != other and other[: len(one)] == one for one in labels for other in labels)
    return [(*label, end) for label in labels] if ambiguous else list(labels)


@dataclass(frozen=True, slots=True)
class Tree:
    """What must be read of the labels after a prompt: ``paths`` without their last tokens, none within another."""

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, labels: Sequence[Path]) -> Tree:
        """The paths of ``labels``; a single empty one where every label has one token."""
        heads = {label[:-1] for label in labels}
        inner = {head for head in heads if any(other != head and other[: len(head)] == head for other in heads)}
        return cls(tuple(sorted(heads - inner)))

    @property
    def size(self) -> int:
        """Tokens in all."""
        return sum(map(len, self.paths))


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens ``start:stop`` of the rest of prompt ``branch``; ``sequences`` are lent to it until ``last``."""

    branch: int
    start: int
    stop: int
    sequences: tuple[int, ...]
    last: bool


def plan(lengths: Sequence[int], tree: Tree, most: int, sequences: int, room: int) -> Iterator[list[Piece]]:
    """Pack rests of ``lengths`` tokens into batches of at most ``most`` tokens.

    ``sequences`` may be in use at once (numbered from 1) and ``room`` tokens of context. The labels' paths of a rest
    are read together with its last token.
    """
    needed = len(tree.paths)
    if needed > sequences or tree.size >= most:
        raise ModelError("chat.labels", needed=needed, size=tree.size)
    batch: list[Piece] = []
    used = held = 0  # tokens of this batch; tokens in memory of the rest that an earlier batch began
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


class _Reader:
    """Reads planned batches. Logits are not kept: of 1000 prompts they would take gigabytes."""

    def __init__(self, engine: Engine, tree: Tree, labels: Sequence[Path], shared: int) -> None:
        self._engine, self._tree, self._labels, self._shared = engine, tree, labels, shared

    def read(self, batch: Sequence[Piece], rests: Sequence[Sequence[int]]) -> dict[int, tuple[list[float], float]]:
        """The probabilities of each prompt that ``batch`` ends and their sum, by its number."""
        slots: list[Slot] = []
        paths: list[tuple[int, Path]] = []
        for piece in batch:
            if piece.start == 0:
                for sequence in piece.sequences:
                    self._engine.share(sequence)
            slots += self._text(piece, rests[piece.branch])
            if piece.last:
                paths.append((piece.branch, ()))
                for path, sequence in zip(self._tree.paths, piece.sequences, strict=True):
                    slots += self._path(path, sequence, self._shared + piece.stop)
                    paths += [(piece.branch, path[: at + 1]) for at in range(len(path))]
        rows: dict[int, dict[Path, Row]] = {branch: {} for branch, _ in paths}
        for (branch, path), row in zip(paths, self._engine.read(slots), strict=True):
            rows[branch][path] = row
        for piece in batch:
            if piece.last:
                for sequence in piece.sequences:
                    self._engine.forget(sequence, -1)
        return {branch: probabilities(logits, self._labels) for branch, logits in rows.items()}

    def _text(self, piece: Piece, rest: Sequence[int]) -> list[Slot]:
        last = piece.stop - 1 if piece.last else -1
        return [Slot(rest[at], self._shared + at, piece.sequences, at == last) for at in range(piece.start, piece.stop)]

    def _path(self, path: Path, sequence: int, position: int) -> list[Slot]:
        return [Slot(token, position + at, (sequence,), True) for at, token in enumerate(path)]


def probabilities(rows: dict[Path, Row], labels: Sequence[Path]) -> tuple[list[float], float]:
    """The labels' probabilities from the logits after each of their beginnings, divided by their sum; and the sum."""
    totals = {path: _log_sum(row) for path, row in rows.items()}
    scores = [
        sum(float(rows[label[:at]][token]) - totals[label[:at]] for at, token in enumerate(label)) for label in labels
    ]
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    return [weight / sum(weights) for weight in weights], sum(weights) * math.exp(best)


def _log_sum(row: Row) -> float:
    """The logarithm of the sum of the exponentials."""
    highest = float(row.max())
    return highest + math.log(float(np.exp(row.astype(np.float64) - highest).sum()))
