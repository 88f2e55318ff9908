"""The seams: what localmed needs of a model, each a Protocol of one method. Adapters live in ``models/``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


STORED = "sentences"  # beside a passage's vector


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """Which encoder made a vector. Two vectors compare only if their identities are equal.

    ``languages`` are those the encoder was trained for: a question in another language is not searched densely.
    ``sparse`` says that it is a ``SparseEncoder``: its generations have a sparse index.
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
        """The identity with what is stored of each passage: an index of anything else has to be made anew."""
        return f"{self.slug}-{STORED}"


class Embedder(Protocol):
    """A dense encoder."""

    @property
    def identity(self) -> EncoderIdentity:
        """Who this is."""
        ...

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """Unit vectors of ``texts``: float32, shape ``(len(texts), dimensions)``, in their order."""
        ...


class Reranker(Protocol):
    """Reads a question and a passage together, more closely than a search over all passages can."""

    @property
    def name(self) -> str:
        """Name and version, for an answer's provenance."""
        ...

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> Sequence[float]:
        """One score a passage, in their order; higher is better; comparable within one call only.

        ``keep``: the passages are the library's, and what was read of them may be kept for the next question. Of any
        other text, which may be a patient's, nothing outlives the call.
        """
        ...


@dataclass(frozen=True, slots=True)
class Stance:
    """How a premise stands to a hypothesis: three probabilities that add up to one.

    ``marked`` are the characters of the hypothesis that a judge of words finds not said; () from all others.
    """

    entailment: float
    neutral: float
    contradiction: float
    marked: tuple[tuple[int, int], ...] = ()

    @property
    def label(self) -> Literal["entailment", "neutral", "contradiction"]:
        """The most probable; of equals the more careful: neutral, then contradiction."""
        if self.neutral >= max(self.entailment, self.contradiction):
            return "neutral"
        return "contradiction" if self.contradiction >= self.entailment else "entailment"

    @property
    def judged(self) -> bool:
        """Whether anybody judged; what is not judged is neither support nor contradiction."""
        return self.entailment + self.neutral + self.contradiction > 0


NOT_JUDGED = Stance(0.0, 0.0, 0.0)  # in a language that the judge was not shown to know, or where there is no judge


class Entailment(Protocol):
    """Judges whether a text (the premise) supports a statement (the hypothesis), speaks against it, or neither."""

    @property
    def name(self) -> str:
        """Name and version, for an answer's provenance."""
        ...

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it was shown to judge; in another one nothing is claimed. None: it judges nothing."""
        ...

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Stance]:
        """The stance of each ``(premise, hypothesis)``, in their order."""
        ...


Weights = Mapping[int, float]  # token id -> weight, above 0


class SparseEncoder(Embedder, Protocol):
    """An encoder that weighs a text's tokens as well (learned sparse retrieval; BGE-M3, Chen et al. 2024)."""

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """``encode``'s vectors and each text's weights, from one pass over the texts."""
        ...


def encode_both(
    encoder: Embedder, texts: Sequence[str], kind: Literal["passage", "query"]
) -> tuple[Vectors, list[Weights]]:
    """The vectors and token weights of ``texts``; no weights from an encoder that is not a sparse one."""
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
    """What a chat model is asked: the same request gives the same reply (temperature 0, a fixed seed).

    With a JSON ``schema`` the reply is an object of that schema or an error, never anything else.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 512
    schema: Mapping[str, Any] | None = None
    temperature: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A chat model's answer; ``value`` is the validated object where there was a schema.

    ``finish`` is "length" where ``max_tokens`` cut the text; a reply to a schema that was cut is an error instead.
    """

    text: str
    prompt_tokens: int
    reply_tokens: int
    finish: Literal["stop", "length"]
    value: Any = None


@dataclass(frozen=True, slots=True)
class Choice:
    """How probable each label is, in the order of the labels; they add up to one.

    ``measured`` is false where the model only named a label: that label has a one then, which is no probability.
    """

    probabilities: tuple[float, ...]
    measured: bool = True

    @property
    def best(self) -> int:
        """Which label is the most probable; the first of equals."""
        return self.probabilities.index(max(self.probabilities))


@dataclass(frozen=True, slots=True)
class Watch:
    """How a caller follows a request: ``token`` gets the text as it comes, ``cancelled`` is asked while it runs.

    ``progress`` is told how many of its branches a choice has read, and of how many. All may be called from another
    thread than the caller's. A cancelled request raises ``Cancelled``.
    """

    token: Callable[[str], object] = lambda _: None
    cancelled: Callable[[], bool] = lambda: False
    progress: Callable[[int, int], object] = lambda _done, _total: None


UNWATCHED = Watch()


@dataclass(frozen=True, slots=True)
class ChatIdentity:
    """Which chat model answers, for an answer's provenance. ``sha256`` is "" where the file is not ours to read.

    ``context`` counts the tokens of prompt and reply together. ``remote``: every branch of a choice is a request of its
    own, in which what the branches share is sent and read again.
    """

    name: str
    sha256: str
    context: int
    remote: bool = False


class ChatModel(Protocol):
    """A language model that follows instructions. Raises ``ModelError`` where it cannot answer."""

    @property
    def identity(self) -> ChatIdentity:
        """Who this is."""
        ...

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """The reply to ``request``; raise ``ModelError`` before generating where prompt and reply do not fit."""
        ...

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """One choice among ``labels`` for each branch, in their order; nothing is generated.

        A branch is text that continues the last message of ``prefix``, which is the user's. What the branches share is
        read once.
        """
        ...


class NoJudge:
    """``Entailment`` where no model judges: every pair is not judged."""

    name = "none"
    languages: tuple[str, ...] = ()

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        return [NOT_JUDGED] * len(pairs)


class CountingChat(ChatModel, Protocol):
    """A chat model that counts as its tokenizer does, as all of ours do: a prompt can be fitted beforehand."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, in their order."""
        ...
