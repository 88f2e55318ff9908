"""What the model host does when asked: each request is read strictly, and becomes a job for the owner of its model.

A job runs in the owner's thread and returns the frame that answers. Whatever a request lacks or has too much of is a
``ModelError`` before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

from localmed.domain import SearchFilter
from localmed.domain.errors import ModelError
from localmed.domain.ports import (
    CountingChat,
    Embedder,
    Entailment,
    Message,
    Request,
    Reranker,
    Role,
    SparseEncoder,
    Watch,
)
from localmed.models.host.protocol import Frame, vector_of, vectors_frame

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors

MOST_NEAREST = 100_000  # passages of one search; where many are withdrawn it is repeated for four times as many
MOST_TEXTS = 1024  # in one request: an encoder's longest turn, some 15 seconds on two cores. Commands send fewer

Job = Callable[[Watch], Frame]
Owner = Literal["small", "chat", "index"]  # of encoder, reranker and entailment; of the chat model; of the indexes
OWNERS: tuple[Owner, ...] = ("small", "chat", "index")

_Kind = TypeVar("_Kind")


class Nearest(Protocol):
    """Searches the dense index of any generation (``library.dense``)."""

    def warm(self) -> None:
        """Open the one being served."""
        ...

    def __call__(
        self, generation: str, vector: Vectors, limit: int, filters: SearchFilter
    ) -> list[tuple[str, str, float]]:
        """The nearest passages as ``(id, document, similarity)``."""
        ...

    def similarities(self, generation: str, questions: Vectors, ids: Sequence[str]) -> dict[str, list[float]]:
        """By passage: how near each of its sentences is to the nearest of ``questions`` (Q, D)."""
        ...


@dataclass(frozen=True, slots=True)
class Owned:
    """What a host owns. Encoder, reranker and entailment may share weights: one thread owns them all.

    The indexes are here although they are no models: a command that only searches need not open them (``nearest``).
    """

    encoder: Embedder
    reranker: Reranker | None = None
    entailment: Entailment | None = None
    chat: CountingChat | None = None
    nearest: Nearest | None = None
    fitted: Mapping[str, Embedder] = field(default_factory=dict)  # those that weights of rules were fitted on

    def described(self) -> dict[str, Any]:
        """Who they are, as the first frame tells it: by role, None where there is none."""
        judge, chat = self.entailment, self.chat
        return {
            "encoder": asdict(self.encoder.identity),
            "reranker": self.reranker.name if self.reranker else None,
            "entailment": {"name": judge.name, "languages": list(judge.languages)} if judge else None,
            "chat": asdict(chat.identity) if chat else None,
        }


def job_of(owned: Owned, request: Frame) -> tuple[Owner, Job]:
    """Who does what is ``request``, and the job; raise ``ModelError`` for what is no request."""
    make = JOBS.get(request.kind)
    if make is None:
        raise _refused()
    owner, build = make
    return owner, build(owned, request)


def _encode(owned: Owned, request: Frame) -> Job:
    values = request.values
    texts, encoder = _texts(values, "texts"), _encoder(owned, _typed(values, "fitted", str))
    kind = cast(Literal["passage", "query"], _one_of(values, "kind", ("passage", "query")))
    if not _typed(values, "sparse", bool):
        return lambda _: vectors_frame(encoder.encode(texts, kind), None)
    if not encoder.identity.sparse:
        raise _refused()
    return lambda _: vectors_frame(*cast(SparseEncoder, encoder).encode_both(texts, kind))


def _encoder(owned: Owned, fitted: str) -> Embedder:
    """The encoder that was chosen, or the one named ``fitted``."""
    if fitted and fitted not in owned.fitted:
        raise _refused()
    return owned.fitted[fitted] if fitted else owned.encoder


def _score(owned: Owned, request: Frame) -> Job:
    values = request.values
    question, passages, keep = _typed(values, "question", str), _texts(values, "passages"), _typed(values, "keep", bool)
    reranker = owned.reranker
    if reranker is None:
        raise _refused()
    return lambda _: Frame("scores", {"scores": [float(score) for score in reranker.score(question, passages, keep)]})


def _judge(owned: Owned, request: Frame) -> Job:
    values = request.values
    premises, hypotheses, judge = _texts(values, "premises"), _texts(values, "hypotheses"), owned.entailment
    if judge is None or len(premises) != len(hypotheses):
        raise _refused()
    pairs = list(zip(premises, hypotheses, strict=True))

    def job(_: Watch) -> Frame:
        judged = judge.judge(pairs)
        rows = [(stance.entailment, stance.neutral, stance.contradiction) for stance in judged]
        marked = [[list(run) for run in stance.marked] for stance in judged]
        return Frame("stances", {"stances": [[float(share) for share in row] for row in rows], "marked": marked})

    return job


def _complete(owned: Owned, frame: Frame) -> Job:
    values = frame.values
    chat, schema = _chat(owned), values.get("schema")
    if schema is not None and not isinstance(schema, dict):
        raise _refused()
    request = Request(
        _messages(values),
        _typed(values, "max_tokens", int),
        schema,
        _typed(values, "temperature", float),
        _typed(values, "seed", int),
    )
    streams = _typed(values, "heard", bool)
    return lambda watch: Frame(
        "reply", asdict(chat.complete(request, watch if streams else Watch(cancelled=watch.cancelled)))
    )


def _choose(owned: Owned, request: Frame) -> Job:
    values = request.values
    chat, prefix = _chat(owned), _messages(values)
    branches, labels = _texts(values, "branches"), _texts(values, "labels")

    def job(watch: Watch) -> Frame:
        chosen = chat.choose(prefix, branches, labels, watch)
        return Frame("choices", {"choices": [[list(choice.probabilities), choice.measured] for choice in chosen]})

    return job


def _count(owned: Owned, request: Frame) -> Job:
    values = request.values
    chat, texts = _chat(owned), _texts(values, "texts")
    return lambda _: Frame("counts", {"counts": chat.count(texts)})


def _near(owned: Owned, request: Frame) -> Job:
    values, nearest = request.values, owned.nearest
    generation, limit = _typed(values, "generation", str), _typed(values, "limit", int)
    if nearest is None or not 0 < limit <= MOST_NEAREST:
        raise _refused()
    filters = SearchFilter(
        collections=tuple(_texts(values, "collections")),
        language=_typed(values, "language", str),
        edition_from=_typed(values, "edition_from", str),
        edition_to=_typed(values, "edition_to", str),
        documents=tuple(_texts(values, "documents")),
    )
    vector = vector_of(request)
    return lambda _: Frame("found", {"found": [list(row) for row in nearest(generation, vector, limit, filters)]})


def _similar(owned: Owned, request: Frame) -> Job:
    values, nearest = request.values, owned.nearest
    generation, count = _typed(values, "generation", str), _typed(values, "questions", int)
    passages = _texts(values, "passages")
    vectors = vector_of(request)
    if nearest is None or count <= 0 or len(vectors) % count:
        raise _refused()
    questions = vectors.reshape(count, -1)
    return lambda _: Frame("similar", {"similarities": nearest.similarities(generation, questions, passages)})


JOBS: dict[str, tuple[Owner, Callable[[Owned, Frame], Job]]] = {
    "encode": ("small", _encode),
    "score": ("small", _score),
    "judge": ("small", _judge),
    "complete": ("chat", _complete),
    "choose": ("chat", _choose),
    "count": ("chat", _count),
    "nearest": ("index", _near),
    "similarities": ("index", _similar),
}


# --- reading what was sent -----------------------------------------------------------------------------------------


def _chat(owned: Owned) -> CountingChat:
    if owned.chat is None:
        raise _refused()
    return owned.chat


def _messages(values: Mapping[str, Any]) -> tuple[Message, ...]:
    roles = [_one_of({"role": text}, "role", ("system", "user", "assistant")) for text in _texts(values, "roles")]
    contents = _texts(values, "contents")
    if len(roles) != len(contents):
        raise _refused()
    return tuple(Message(cast(Role, role), content) for role, content in zip(roles, contents, strict=True))


def _texts(values: Mapping[str, Any], key: str) -> list[str]:
    texts = _typed(values, key, list)
    if len(texts) > MOST_TEXTS or not all(isinstance(text, str) for text in texts):
        raise _refused()
    return texts


def _one_of(values: Mapping[str, Any], key: str, known: tuple[str, ...]) -> str:
    value = _typed(values, key, str)
    if value not in known:
        raise _refused()
    return value


def _typed(values: Mapping[str, Any], key: str, kind: type[_Kind]) -> _Kind:
    value = values.get(key)
    if type(value) is not kind:
        raise _refused()
    return value


def _refused() -> ModelError:
    return ModelError("host.not_its_work")
