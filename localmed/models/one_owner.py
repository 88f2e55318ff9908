"""The ports over a model of this process that works for one thread at a time.

Models of one process share one lock: torch divides a single call among all cores already, tokenizers and the thread
pools below them are not safe to share, and some models are parts of others (MaxSim reads with the encoder's weights).
Who waits for its turn may give up meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Literal, cast

from localmed import hooks
from localmed.ports import Embedder, EncoderIdentity, Entailment, Reranker, SparseEncoder, Stance, Weights

if TYPE_CHECKING:
    from localmed.ports import Vectors

    Owner = RLock

LOOK = 0.05  # seconds between two looks at a cancellation


@contextmanager
def turn(owner: Owner) -> Iterator[None]:
    """Hold ``owner`` within the block; raise ``Cancelled`` if the caller gives up while it waits."""
    while not owner.acquire(timeout=LOOK):
        hooks.check()
    try:
        hooks.check()
        yield
    finally:
        owner.release()


class OwnedEncoder:
    """``Embedder``."""

    def __init__(self, encoder: Embedder, owner: Owner) -> None:
        self._encoder, self._owner = encoder, owner

    @property
    def identity(self) -> EncoderIdentity:
        """The encoder's."""
        return self._encoder.identity

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``."""
        with turn(self._owner):
            return self._encoder.encode(texts, kind)


class OwnedSparseEncoder(OwnedEncoder):
    """``SparseEncoder``."""

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """See ``SparseEncoder.encode_both``."""
        with turn(self._owner):
            return cast(SparseEncoder, self._encoder).encode_both(texts, kind)


def owned_encoder(encoder: Embedder, owner: Owner) -> OwnedEncoder:
    """``encoder`` for several threads, a sparse one where it is one."""
    return (OwnedSparseEncoder if encoder.identity.sparse else OwnedEncoder)(encoder, owner)


class OwnedReranker:
    """``Reranker``."""

    def __init__(self, reranker: Reranker, owner: Owner) -> None:
        self.name = reranker.name
        self._reranker, self._owner = reranker, owner

    def score(self, question: str, passages: Sequence[str]) -> Sequence[float]:
        """See ``Reranker.score``."""
        with turn(self._owner):
            return self._reranker.score(question, passages)


class OwnedEntailment:
    """``Entailment``."""

    def __init__(self, judge: Entailment, owner: Owner) -> None:
        self.name, self.languages = judge.name, judge.languages
        self._judge, self._owner = judge, owner

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Stance]:
        """See ``Entailment.judge``."""
        with turn(self._owner):
            return self._judge.judge(pairs)
