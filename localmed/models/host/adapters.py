"""The ports over the model host: what a command uses in place of models of its own.

Vectors, scores and stances are those that the host's model gave, bit for bit. Long lists of texts are asked for in
pieces, so that others have their turn between two of them; an import's pieces are short and wait for everybody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from localmed.domain.ports import (
    UNWATCHED,
    ChatIdentity,
    Choice,
    CountingChat,
    Embedder,
    EncoderIdentity,
    Entailment,
    Message,
    Reply,
    Request,
    Reranker,
    Stance,
    Watch,
    Weights,
)
from localmed.models.host.client import Client, find
from localmed.models.host.protocol import Frame, unexpected, vectors_of

if TYPE_CHECKING:
    from pathlib import Path

    from localmed.config import HostSettings
    from localmed.domain import SearchFilter
    from localmed.domain.ports import Vectors

PIECE = 256  # texts in one request of a question; it has fewer, as a rule, so that its vectors are from one batch
LOW_PIECE = 32  # of an import: half a second of two cores, the longest that it keeps a question waiting

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Hosted:
    """What a host serves of what a command needs; None where the command loads its own or has none.

    ``others`` are the roles for which the host owns another model than the command's settings choose.
    """

    encoder: Embedder | None = None
    reranker: Reranker | None = None
    entailment: Entailment | None = None
    chat: CountingChat | None = None
    nearest: HostNearest | None = None
    fitted: Mapping[str, Embedder] = field(
        default_factory=dict
    )  # built-in encoders that rules need, whatever is chosen
    others: tuple[str, ...] = ()
    client: Client | None = None

    @property
    def lost(self) -> bool:
        """Whether the host has ended, or owns other models by now."""
        return self.client is not None and self.client.lost

    def close(self) -> None:
        """Close the connections."""
        if self.client is not None:
            self.client.close()


NOTHING = Hosted()


def connect(data: Path, settings: HostSettings, choices: Mapping[str, str], user: str = "") -> Hosted:
    """What the host of the folder ``data`` serves of ``choices`` (``choice.choices``); ``NOTHING`` where none is used.

    Among those who ask, ``user`` (else this process) takes turns with the others.
    """
    client = find(data, settings, user or str(os.getpid())) if settings.use else None
    if client is None:
        return NOTHING
    welcome = client.greet()
    same = {role: welcome.models.get(role) for role, chosen in choices.items() if welcome.choices.get(role) == chosen}
    encoder, reranker, judge, chat = map(same.get, ("encoder", "reranker", "entailment", "chat"))
    seconds = settings.answer_seconds
    try:
        return Hosted(
            None if encoder is None else _encoder(client, encoder, seconds),
            None if reranker is None else HostReranker(client, str(reranker), seconds),
            judge and HostEntailment(client, str(judge["name"]), tuple(judge["languages"]), seconds),
            chat and HostChat(client, ChatIdentity(**chat)),
            HostNearest(client, seconds) if welcome.searches else None,
            {name: _encoder(client, identity, seconds, name) for name, identity in welcome.fitted.items()},
            tuple(sorted(set(choices) - set(same))),
            client,
        )
    except (TypeError, KeyError, AttributeError):
        client.close()
        raise unexpected() from None


def _encoder(client: Client, description: Any, seconds: float, fitted: str = "") -> Embedder:
    identity = EncoderIdentity(**{**description, "languages": tuple(description["languages"])})
    return (HostSparseEncoder if identity.sparse else HostEncoder)(client, identity, seconds, fitted)


def unhurried(encoder: Embedder) -> Embedder:
    """``encoder`` for long work: at a host it waits for everybody else."""
    return encoder.unhurried() if isinstance(encoder, HostEncoder) else encoder


class HostEncoder:
    """``Embedder``."""

    def __init__(
        self, client: Client, identity: EncoderIdentity, seconds: float, fitted: str = "", low: bool = False
    ) -> None:
        """``fitted`` names it among the built-in ones; "" is the encoder that was chosen."""
        self.identity = identity
        self._client, self._seconds, self._fitted, self._low = client, seconds, fitted, low

    def unhurried(self) -> HostEncoder:
        """The same at low priority."""
        return type(self)(self._client, self.identity, self._seconds, self._fitted, low=True)

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``."""
        return self._encoded(texts, kind, False)[0]

    def _encoded(
        self, texts: Sequence[str], kind: Literal["passage", "query"], sparse: bool
    ) -> tuple[Vectors, list[Weights]]:
        """Texts of like length together, as the models batch them."""
        vectors = np.empty((len(texts), self.identity.dimensions), np.float32)
        weights: list[Weights] = [{} for _ in texts]
        for places in _pieces(texts, LOW_PIECE if self._low else PIECE):
            piece_texts = [texts[place] for place in places]
            values = {"texts": piece_texts, "kind": kind, "sparse": sparse, "low": self._low, "fitted": self._fitted}
            answer = self._client.ask("encode", values, seconds=self._seconds)
            piece, weighed = vectors_of(answer, len(places), self.identity.dimensions)
            vectors[places] = piece
            for place, text_weights in zip(places, weighed, strict=True):
                weights[place] = text_weights
        return vectors, weights


class HostSparseEncoder(HostEncoder):
    """``SparseEncoder``."""

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """See ``SparseEncoder.encode_both``."""
        return self._encoded(texts, kind, True)


def _pieces(texts: Sequence[str], most: int) -> Iterator[list[int]]:
    """The places of ``texts``: in their order if they are one piece, else the longest first."""
    places = list(range(len(texts)))
    if len(places) > most:
        places.sort(key=lambda place: -len(texts[place]))
    for start in range(0, len(places), most):
        yield places[start : start + most]


class HostReranker:
    """``Reranker``."""

    def __init__(self, client: Client, name: str, seconds: float) -> None:
        self.name = name
        self._client, self._seconds = client, seconds

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        """See ``Reranker.score``."""
        values = {"question": question, "passages": list(passages), "keep": keep}
        answer = self._client.ask("score", values, seconds=self._seconds)
        return [float(score) for score in _list(answer, "scores", len(passages))]


class HostEntailment:
    """``Entailment``."""

    def __init__(self, client: Client, name: str, languages: tuple[str, ...], seconds: float) -> None:
        self.name, self.languages = name, languages
        self._client, self._seconds = client, seconds

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment.judge``."""
        stances: list[Stance] = []
        for start in range(0, len(pairs), PIECE):
            piece = pairs[start : start + PIECE]
            values = {"premises": [premise for premise, _ in piece], "hypotheses": [text for _, text in piece]}
            answer = self._client.ask("judge", values, seconds=self._seconds)
            rows = zip(_list(answer, "stances", len(piece)), _list(answer, "marked", len(piece)), strict=True)
            stances += [_stance(shares, marked) for shares, marked in rows]
        return stances


def _stance(shares: Sequence[float], marked: Sequence[tuple[int, int]]) -> Stance:
    supported, neither, contradicted = map(float, shares)
    return Stance(supported, neither, contradicted, tuple((int(start), int(end)) for start, end in marked))


class HostChat:
    """``CountingChat``. The host's model bounds the time of each request, and its queue who waits."""

    def __init__(self, client: Client, identity: ChatIdentity) -> None:
        self.identity = identity
        self._client = client

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        values = _conversation(request.messages) | {
            "max_tokens": request.max_tokens,
            "schema": None if request.schema is None else dict(request.schema),
            "temperature": float(request.temperature),
            "seed": request.seed,
            "heard": watch.token is not UNWATCHED.token,  # else the host's model need not send its tokens
        }
        answer = self._client.ask("complete", values, watch)
        try:
            return Reply(**answer.values)
        except TypeError:
            raise unexpected() from None

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``."""
        values = _conversation(prefix) | {"branches": list(branches), "labels": list(labels)}
        answer = self._client.ask("choose", values, watch)
        rows = _list(answer, "choices", len(branches))
        return [Choice(tuple(map(float, shares)), bool(measured)) for shares, measured in rows]

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``TokenCounter``."""
        answer = self._client.ask("count", {"texts": list(texts)})
        return [int(number) for number in _list(answer, "counts", len(texts))]


class HostNearest:
    """Dense search at the host, in which the index is open (``library.dense``)."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client, self._seconds = client, seconds

    def __call__(
        self, generation: str, vector: Vectors, limit: int, filters: SearchFilter
    ) -> list[tuple[str, str, float]]:
        """See ``DenseIndex.search``, over the generation of that name, which the caller keeps from being removed."""
        values = {
            "generation": generation,
            "limit": limit,
            "collections": list(filters.collections),
            "language": filters.language,
            "edition_from": filters.edition_from,
            "edition_to": filters.edition_to,
            "documents": list(filters.documents),
        }
        blob = np.ascontiguousarray(vector, "<f4").tobytes()
        answer = self._client.ask("nearest", values, seconds=self._seconds, blob=blob)
        rows = answer.values.get("found")
        if not isinstance(rows, list):
            raise unexpected()
        return [(str(passage), str(document), float(similarity)) for passage, document, similarity in rows]

    def similarities(self, generation: str, questions: Vectors, ids: Sequence[str]) -> dict[str, list[float]]:
        """See ``DenseIndex.similarities``."""
        values = {"generation": generation, "questions": len(questions), "passages": list(ids)}
        blob = np.ascontiguousarray(questions, "<f4").tobytes()
        answer = self._client.ask("similarities", values, seconds=self._seconds, blob=blob)
        rows = answer.values.get("similarities")
        if not isinstance(rows, dict):
            raise unexpected()
        return {str(passage): [float(one) for one in row] for passage, row in rows.items()}


def _conversation(messages: Sequence[Message]) -> dict[str, Any]:
    return {"roles": [message.role for message in messages], "contents": [message.content for message in messages]}


def _list(answer: Frame, key: str, count: int) -> list[Any]:
    """The list of ``count`` things that ``answer`` holds; raise ``ModelError`` for anything else."""
    values = answer.values.get(key)
    if not isinstance(values, list) or len(values) != count:
        raise unexpected()
    return values
