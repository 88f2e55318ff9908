"""The interfaces to models, as small Protocols. Adapters are in ``models/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


STORED = "sentences"  # stored besides a passage's vector


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Which encoder made a vector. Vectors are comparable only if their identities are equal.

    ``languages`` are those of its training: questions in other languages are not searched densely. ``sparse``: it is a
    ``SparseEncoder``, and its generations have a sparse index.
    """

    name: str
    version: str
    dimensions: int
    languages: tuple[str, ...]
    sparse: bool = False

    @property
    def slug(self) -> str:
        """The identity as a file name."""
        return f"{self.name}-{self.version}-{self.dimensions}".replace("/", "-")

    @property
    def stored_as(self) -> str:
        """The identity with the stored form: an index with another value must be rebuilt."""
        return f"{self.slug}-{STORED}"


class Embedder(Protocol):
    """A dense encoder."""

    @property
    def identity(self) -> EncoderIdentity:
        """Its identity."""
        ...

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """Unit vectors of ``texts``: float32, shape ``(len(texts), dimensions)``, in order."""
        ...


class Reranker(Protocol):
    """Scores a question and a passage together, more precisely than a search can."""

    @property
    def name(self) -> str:
        """Name and version, for provenance."""
        ...

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        """One score a passage, in order; higher is better; comparable within one call only.

        ``keep``: the passages are the library's and may be cached. Other text may be a patient's and does not outlive
        the call.
        """
        ...


@dataclass(frozen=True, slots=True)
class Stance:
    """How a premise relates to a hypothesis: three probabilities with sum one.

    ``marked`` are the characters of the hypothesis that are not supported, from judges of single words; else ().
    """

    entailment: float
    neutral: float
    contradiction: float
    marked: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> Literal["entailment", "neutral", "contradiction"]:
        """The most probable; ties prefer neutral, then contradiction."""
        if self.neutral >= max(self.entailment, self.contradiction):
            return "neutral"
        return "contradiction" if self.contradiction >= self.entailment else "entailment"

    @property
    def judged(self) -> bool:
        """Whether the pair was judged; otherwise it is neither support nor contradiction."""
        return self.entailment + self.neutral + self.contradiction > 0


NOT_JUDGED = Stance(0.0, 0.0, 0.0)  # there is no judge, or none for this language


class Entailment(Protocol):
    """Judges whether a text (the premise) supports a statement (the hypothesis), contradicts it, or neither."""

    @property
    def name(self) -> str:
        """Name and version, for provenance."""
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages in which it was shown to judge well, empty if none; in others nothing is claimed."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Stance]:
        """The stance of each ``(premise, hypothesis)``, in order."""
        ...


Weights = Mapping[int, float]  # token id -> positive weight


class SparseEncoder(Embedder, Protocol):
    """An encoder that also weighs tokens (learned sparse retrieval; BGE-M3, Chen et al. 2024)."""

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """The vectors of ``encode`` and each text's token weights, from one pass."""
        ...


def encode_both(
    encoder: Embedder, texts: Sequence[str], kind: Literal["passage", "query"]
) -> tuple[Vectors, list[Weights]]:
    """The vectors and token weights of ``texts``; empty weights if the encoder is not sparse."""
    if encoder.identity.sparse:
        return cast(SparseEncoder, encoder).encode_both(texts, kind)
    return encoder.encode(texts, kind), [{} for _ in texts]


Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation with a chat model."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """A request to a chat model; equal requests give equal replies (temperature 0, a fixed seed).

    With a JSON ``schema`` the reply is a valid object or an error.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 512
    schema: Mapping[str, Any] | None = None
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat model's reply; ``value`` is the validated object if there was a schema.

    ``finish`` is "length" if ``max_tokens`` cut the text; with a schema that is an error.
    """

    text: str
    prompt_tokens: int
    reply_tokens: int
    finish: Literal["stop", "length"]
    value: Any = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The probability of each label, in order; the sum is one.

    Not ``measured``: the model only named a label, which gets 1.0; that is no probability.
    """

    probabilities: tuple[float, ...]
    measured: bool = True

    @property
    def best(self) -> int:
        """The index of the most probable label; the first of equals."""
        return self.probabilities.index(max(self.probabilities))


@dataclass(frozen=True, slots=True)
class Watch:
    """How a caller follows a request: ``token`` receives the text as it comes, ``cancelled`` is polled.

    ``progress`` receives the number of finished branches of a choice and of all. All may be called from another thread.
    A cancelled request raises ``Cancelled``.
    """

    token: Callable[[str], object] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], object] = lambda _done, _total: None


UNWATCHED = Watch()


@dataclass(frozen=True, slots=True)
class ChatIdentity:
    """Which chat model answers, for provenance. ``sha256`` is "" if the model is on a server.

    ``context`` counts tokens of prompt and reply together. ``remote``: every branch of a choice is a request of its
    own, which sends the shared prefix again.
    """

    name: str
    sha256: str
    context: int
    remote: bool = False


class ChatModel(Protocol):
    """A language model that follows instructions. Raises ``ModelError`` if it cannot answer."""

    @property
    def identity(self) -> ChatIdentity:
        """Its identity."""
        ...

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """The reply to ``request``; raise ``ModelError`` before generating if prompt and reply do not fit."""
        ...

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """One choice among ``labels`` for each branch, in order; nothing is generated.

        A branch continues the last message of ``prefix``, which must be the user's. The shared prefix is read once.
        """
        ...


class NoJudge:
    """An ``Entailment`` that judges nothing."""

    name = "none"
    languages: tuple[str, ...] = ()

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        return [NOT_JUDGED] * len(pairs)


class CountingChat(ChatModel, Protocol):
    """A chat model with its tokenizer's count, so that prompts can be fitted beforehand."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text, in order."""
        ...
