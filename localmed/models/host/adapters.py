"""The ports over the model host: what a command uses in place of models of its own.

Vectors, scores and stances are those that the host's model gave, bit for bit. Long lists of texts are asked for in
pieces, so that others have their turn between two of them; an import's pieces are short and wait for everybody else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from localmed.models.host.client import Client, find
from localmed.models.host.protocol import Frame, unexpected, vectors_of
from localmed.ports import (
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

if TYPE_CHECKING:
    from pathlib import Path

    from localmed.config import HostSettings
    from localmed.domain import SearchFilter
    from localmed.ports import Vectors

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
    others: tuple[str, ...] = ()
    client: Client | None = None

    def close(self) -> None:
        """Close the connections."""
        if self.client is not None:
            self.client.close()


NOTHING = Hosted()


def connect(data: Path, settings: HostSettings, choices: Mapping[str, str], user: str = "") -> Hosted:
    """What the host of the folder ``data`` serves of ``choices`` (``choices.py``); ``NOTHING`` where none is used.

    Among those who ask, ``user`` (else this process) takes turns with the others.
    """
    client = find(data, settings, user or str(os.getpid())) if settings.use else None
    if client is None:
        return NOTHING
    welcome = client.greet()
    same = {role: welcome.models.get(role) for role, each in choices.items() if welcome.choices.get(role) == each}
    try:
        return Hosted(
            _encoder(client, same.get("encoder"), settings.answer_seconds),
            _reranker(client, same.get("reranker"), settings.answer_seconds),
            _entailment(client, same.get("entailment"), settings.answer_seconds),
            _chat(client, same.get("chat")),
            HostNearest(client, settings.answer_seconds) if welcome.searches else None,
            tuple(sorted(set(choices) - set(same))),
            client,
        )
    except (TypeError, KeyError):
        client.close()
        raise unexpected() from None


def _encoder(client: Client, told: Any, seconds: float) -> Embedder | None:
    if told is None:
        return None
    identity = EncoderIdentity(**{**told, "languages": tuple(told["languages"])})
    return (HostSparseEncoder if identity.sparse else HostEncoder)(client, identity, seconds)


def _reranker(client: Client, told: Any, seconds: float) -> Reranker | None:
    return None if told is None else HostReranker(client, str(told), seconds)


def _entailment(client: Client, told: Any, seconds: float) -> Entailment | None:
    return told and HostEntailment(client, str(told["name"]), tuple(told["languages"]), seconds)


def _chat(client: Client, told: Any) -> CountingChat | None:
    return told and HostChat(client, ChatIdentity(**told))


def unhurried(encoder: Embedder) -> Embedder:
    """``encoder`` for long work: at a host it waits for everybody else."""
    return encoder.unhurried() if isinstance(encoder, HostEncoder) else encoder


class HostEncoder:
    """``Embedder``."""

    def __init__(self, client: Client, identity: EncoderIdentity, seconds: float, low: bool = False) -> None:
        self.identity = identity
        self._client, self._seconds, self._low = client, seconds, low

    def unhurried(self) -> HostEncoder:
        """The same at low priority."""
        return type(self)(self._client, self.identity, self._seconds, low=True)

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
            asked = {"texts": [texts[place] for place in places], "kind": kind, "sparse": sparse, "low": self._low}
            answer = self._client.ask("encode", asked, seconds=self._seconds)
            found, weighed = vectors_of(answer, len(places), self.identity.dimensions)
            vectors[places] = found
            for place, each in zip(places, weighed, strict=True):
                weights[place] = each
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

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """See ``Reranker.score``."""
        asked = {"question": question, "passages": list(passages)}
        answer = self._client.ask("score", asked, seconds=self._seconds)
        return [float(each) for each in _list(answer, "scores", len(passages))]


class HostEntailment:
    """``Entailment``."""

    def __init__(self, client: Client, name: str, languages: tuple[str, ...], seconds: float) -> None:
        self.name, self.languages = name, languages
        self._client, self._seconds = client, seconds

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment.judge``."""
        found: list[Stance] = []
        for start in range(0, len(pairs), PIECE):
            piece = pairs[start : start + PIECE]
            asked = {"premises": [each for each, _ in piece], "hypotheses": [each for _, each in piece]}
            answer = self._client.ask("judge", asked, seconds=self._seconds)
            found += [Stance(*map(float, shares)) for shares in _list(answer, "stances", len(piece))]
        return found


class HostChat:
    """``CountingChat``. The host's model bounds the time of each request, and its queue who waits."""

    def __init__(self, client: Client, identity: ChatIdentity) -> None:
        self.identity = identity
        self._client = client

    def complete(self, request: Request, watch: Watch = UNWATCHED) -> Reply:
        """See ``ChatModel``."""
        asked = _conversation(request.messages) | {
            "max_tokens": request.max_tokens,
            "schema": None if request.schema is None else dict(request.schema),
            "temperature": float(request.temperature),
            "seed": request.seed,
            "heard": watch.token is not UNWATCHED.token,  # else the host's model need not send its tokens
        }
        answer = self._client.ask("complete", asked, watch)
        try:
            return Reply(**answer.values)
        except TypeError:
            raise unexpected() from None

    def choose(
        self, prefix: Sequence[Message], branches: Sequence[str], labels: Sequence[str], watch: Watch = UNWATCHED
    ) -> list[Choice]:
        """See ``ChatModel``."""
        asked = _conversation(prefix) | {"branches": list(branches), "labels": list(labels)}
        answer = self._client.ask("choose", asked, watch)
        rows = _list(answer, "choices", len(branches))
        return [Choice(tuple(map(float, shares)), bool(measured)) for shares, measured in rows]

    def count(self, texts: Sequence[str]) -> list[int]:
        """See ``TokenCounter``."""
        return [int(each) for each in _list(self._client.ask("count", {"texts": list(texts)}), "counts", len(texts))]


class HostNearest:
    """Dense search at the host, in which the index is open (``library.nearest``)."""

    def __init__(self, client: Client, seconds: float) -> None:
        self._client, self._seconds = client, seconds

    def __call__(
        self, generation: str, vector: Vectors, limit: int, wanted: SearchFilter
    ) -> list[tuple[str, str, float]]:
        """See ``DenseIndex.search``, over the generation of that name, which the caller keeps from being removed."""
        asked = {
            "generation": generation,
            "limit": limit,
            "collections": list(wanted.collections),
            "language": wanted.language,
            "edition_from": wanted.edition_from,
            "edition_to": wanted.edition_to,
            "documents": list(wanted.documents),
        }
        blob = np.ascontiguousarray(vector, "<f4").tobytes()
        answer = self._client.ask("nearest", asked, seconds=self._seconds, blob=blob)
        found = answer.values.get("found")
        if not isinstance(found, list):
            raise unexpected()
        return [(str(passage), str(document), float(similarity)) for passage, document, similarity in found]


def _conversation(messages: Sequence[Message]) -> dict[str, Any]:
    return {"roles": [message.role for message in messages], "contents": [each.content for each in messages]}


def _list(answer: Frame, key: str, count: int) -> list[Any]:
    """The list of ``count`` things that ``answer`` holds; raise ``ModelError`` for anything else."""
    found = answer.values.get(key)
    if not isinstance(found, list) or len(found) != count:
        raise unexpected()
    return found
