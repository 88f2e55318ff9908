"""The reader: does this piece of text answer the question? A small cross-encoder for English and Chinese, on the CPU.

The lower layers and the table of words are those of the packaged encoder (``models/e5.py``); the upper ones were
trained further on question answering of public sets (tests/benchmarks/train_reader.py, docs/models.md) and come in
``reader.npz`` in 8 bits, one scale a row. Question and piece are read together as one text (Devlin et al. 2019,
section 4.3, "answerable"); the logit is of the means of both and of the token that speaks most for being the answer.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from localmed.errors import ModelError
from localmed.language import sentences
from localmed.models.bert import Loaded, MaxSim
from localmed.models.e5 import E5, PREFIXES

if TYPE_CHECKING:
    from torch import Tensor

WEIGHTS = Path(__file__).with_name("reader.npz")
QUESTION_TOKENS, PAIR_TOKENS = 48, 128  # read at most
SHA256 = "37dc34996a3153270c6eefff8a4b2284e9f077bac30f71f5007275b102e7f12e"  # of reader.npz
MOST_BYTES = 20 * 2**20
PASSAGES, WINDOWS = 3, 8  # of the nearest passages, and of the sentences of each, so many are read
NAME, NAMES = 80, 3  # characters of a title or heading at most, and how many of them stand before a passage's text
GAIN = 0.4  # of the reader's probability beside MaxSim's score; 0.2 to 0.8 part answers from others about alike
MOST_LOGIT = 30.0
FROM = 6  # the first of the layers that were trained
FEATURES = 5  # of the pair: first token, both means, their product and their difference


@dataclass(frozen=True, slots=True)
class Pair:
    """The tokens of question and text, and how many of them are the question's with its marks."""

    ids: list[int]
    question: int


def pairs(loaded: Loaded, question: str, texts: Sequence[str]) -> list[Pair]:
    """``question`` with each of ``texts``, cut to what is read."""
    first, *rest = loaded.ids([PREFIXES["query"] + question, *(PREFIXES["passage"] + text for text in texts)])
    cut = [*first[: QUESTION_TOKENS - 1], first[-1]] if len(first) > QUESTION_TOKENS else first
    room = PAIR_TOKENS - len(cut)
    return [Pair([*cut, *ids[1 : room + 1]], len(cut)) for ids in rest]


def logits(torch: Any, head: Mapping[str, Tensor], hidden: Tensor, mask: Tensor, questions: Sequence[int]) -> Any:
    """The logit of each pair (B,), and of each token for being the answer (B, T), -inf outside the text."""
    places = torch.arange(hidden.shape[1])[None]  # (1, T)
    question = places < torch.tensor(questions)[:, None]  # (B, T)
    hidden, text = hidden.float(), mask & ~question
    of_question, of_text = _mean(hidden, question), _mean(hidden, text)
    features = (hidden[:, 0], of_question, of_text, of_question * of_text, (of_question - of_text).abs())
    tokens = (hidden @ head["token"]).masked_fill(~text, float("-inf"))
    pair = torch.cat(features, dim=1) @ head["pair"] + head["scale"] * tokens.max(dim=1).values + head["bias"]
    return pair, tokens


def _mean(hidden: Tensor, kept: Tensor) -> Any:
    real = kept[..., None].float()
    return (hidden * real).sum(1) / real.sum(1).clamp(min=1.0)


class Reader:
    """Question and text read together. One owner at a time, as the encoder whose lower layers it shares."""

    def __init__(self, encoder: E5, weights: Path = WEIGHTS, sha256: str = SHA256) -> None:
        """Nothing is loaded before the first question."""
        self._encoder, self._path, self._sha256 = encoder, weights, sha256

    @property
    def name(self) -> str:
        """Which weights."""
        return f"reader {self._sha256[:12]}"

    def score(self, question: str, texts: Sequence[str]) -> list[float]:
        """The logit that each text answers ``question``."""
        loaded, head = self._loaded
        made, torch = pairs(loaded, question, texts), loaded.network.torch
        scores = [0.0] * len(made)
        for places, hidden, mask in loaded.network.batches([pair.ids for pair in made]):
            questions = [made[place].question for place in places]
            for place, logit in zip(places, logits(torch, head, hidden, mask, questions)[0].tolist(), strict=True):
                scores[place] = logit
        return scores

    @cached_property
    def _loaded(self) -> tuple[Loaded, Mapping[str, Tensor]]:
        base = self._encoder._loaded
        torch, network = base.network.torch, base.network
        own = {name: torch.from_numpy(values) for name, values in _stored(self._path, self._sha256)}
        head = {name.removeprefix("head."): own.pop(name) for name in list(own) if name.startswith("head.")}
        like = next(iter(network.weights.values())).dtype
        weights = {**network.weights, **{name: values.to(like) for name, values in own.items()}}
        return replace(base, network=replace(network, weights=weights)), head


def _stored(path: Path, sha256: str) -> Iterator[tuple[str, Any]]:
    """The arrays of the file by name, in float32; raise ``ModelError`` if it is not the one that was tried."""
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise ModelError("model.other_weights", file=path.name, package="localmed")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for name in arrays.files:
            if not name.endswith(".scale") or name == "head.scale":
                values = arrays[name].astype(np.float32)
                yield name, values * arrays[f"{name}.scale"][:, None] if f"{name}.scale" in arrays.files else values


class ReadingMaxSim:
    """``Reranker``: MaxSim, and of the passages nearest by it the sentence that the reader thinks likeliest.

    A sentence is read with the passage's title and headings, which ``Passage.in_context`` has before its text. What
    the reader says of the likeliest one, as a probability, is added ``GAIN`` times to the passage's score.
    """

    def __init__(self, encoder: E5, reader: Reader | None = None) -> None:
        """Share ``encoder``'s weights."""
        self._near, self._reader = MaxSim(encoder), reader or Reader(encoder)

    @property
    def name(self) -> str:
        """Both of them."""
        return f"{self._reader.name} and {self._near.name}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See ``Reranker.score``: MaxSim's from -1 to 1, and up to ``GAIN`` more."""
        scores = self._near.score(question, passages)
        nearest = sorted(range(len(passages)), key=lambda place: -scores[place])[:PASSAGES]
        pieces = [(place, piece) for place in nearest for piece in windows(passages[place])]
        readings = self._reader.score(question, [piece for _, piece in pieces])
        best = dict.fromkeys(nearest, -MOST_LOGIT)
        for (place, _), logit in zip(pieces, readings, strict=True):
            best[place] = max(best[place], logit)
        return [score + GAIN * _sigmoid(best.get(place, -MOST_LOGIT)) for place, score in enumerate(scores)]


def windows(passage: str) -> list[str]:
    """The sentences of a passage that are read, each after its title and headings: short pieces in front."""
    pieces = [passage[start:end] for start, end in sentences(passage)]
    names = next((n for n, piece in enumerate(pieces) if len(piece) > NAME or n == NAMES), len(pieces) - 1)
    before = " ".join(pieces[: max(1, names)])
    return [f"{before}\n{piece}" for piece in pieces[max(1, names) :][:WINDOWS]] or pieces[:1]


def _sigmoid(logit: float) -> float:
    return 1 / (1 + exp(-max(-MOST_LOGIT, min(MOST_LOGIT, logit))))
