"""Real implementations of the ports, small enough for any test; and corpora and imports in one line each."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from localmed.answering.role_table import RoleTable
from localmed.config import LibrarySettings, Settings
from localmed.domain import Collection, Document, Passage, SearchFilter, digest, message
from localmed.domain.accounts import SessionRole
from localmed.domain.findings import Finding, Found, Question
from localmed.domain.ports import CountingChat, Embedder, EncoderIdentity, Weights
from localmed.ingest.manifest import Manifest
from localmed.ingest.pipeline import Importer, Report
from localmed.library import generations
from localmed.library.holding import today
from localmed.library.library import SPARSE, Library, build
from localmed.library.vectors import Encoded, texts_of
from localmed.site.session import Caller, Session, local_caller
from localmed.site.site import Site
from localmed.text.language import words
from localmed.workflows.flow import Services

DIMENSIONS = 32
ANY = SearchFilter()


class HashedWords:
    """An ``Embedder``: each word adds one to the dimension its hash names; length one. Remembers what it encoded."""

    def __init__(self, version: str = "1") -> None:
        self.identity = EncoderIdentity("hashed-words", version, DIMENSIONS, ("en",))
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> npt.NDArray[np.float32]:
        self.encoded.extend(texts)
        vectors = np.full((len(texts), DIMENSIONS), 1e-3, np.float32)
        for row, text in enumerate(texts):
            for word in words(text):
                vectors[row, hashlib.sha256(word.encode()).digest()[0] % DIMENSIONS] += 1
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(unit, np.float32)


class WeighedWords(HashedWords):
    """A ``SparseEncoder`` of every language: a word's token is its hash, its weight grows with its length."""

    def __init__(self, version: str = "1") -> None:
        super().__init__()
        self.identity = EncoderIdentity("weighed-words", version, DIMENSIONS, ("en", "zh"), sparse=True)

    def encode_both(
        self, texts: Sequence[str], kind: Literal["passage", "query"]
    ) -> tuple[npt.NDArray[np.float32], list[Weights]]:
        weights: list[Weights] = [{token_of(word): len(word) / 16 for word in words(text)} for text in texts]
        return self.encode(texts, kind), weights


def token_of(word: str) -> int:
    """The token of ``WeighedWords`` for a word."""
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:3])


@contextmanager
def opened(
    settings: Settings,
    encoder: Embedder | None = None,
    *,
    chat: CountingChat | None = None,
    uses: Mapping[str, str] = MappingProxyType({}),
    day: Callable[[], str] = today,
    caller: Caller | None = None,
) -> Iterator[Session]:
    """A session at a site of its own, of whoever runs the tests unless a ``caller`` is named."""
    with Site(settings, encoder, uses, day, chat) as site:
        yield Session(site, caller or local_caller(settings))


def reader_of(*groups: str) -> Caller:
    """A caller who reads what ``groups`` may read."""
    return Caller("reader", frozenset(groups), SessionRole.READER)


class Steps:
    """A ``Recorder`` that hands each step on."""

    def __init__(self, step: Callable[[Any, Any], object]) -> None:
        self._step = step

    def begin(self, workflow: str, arguments: tuple[Any, ...]) -> None:
        """Nothing is kept."""

    def step(self, request: Any, result: Any) -> None:
        """See ``Recorder``."""
        self._step(request, result)


def services(roles: RoleTable, **others: Any) -> Services:
    """The services of a library in which nothing is found, read or judged, with ``others`` in their place."""
    nothing: dict[str, Any] = {
        "search": lambda *_: Found((), True, "en"),
        "look_up": lambda *_: None,
        "find": lambda question, *_: Finding(Question(question), Found((), True, "en"), ()),
        "naming": lambda names, *_: ((),) * len(names),
        "scopes": lambda documents: ((),) * len(documents),
        "cite": lambda *_: (),
        "judge": lambda _: (),
        "compare": lambda *_: (),
        "studies": lambda *_: (),
        "resolve": lambda references: (None,) * len(references),
    }
    return Services(**nothing | others, roles=roles)


def described(name: str = "ward", **facts: Any) -> Manifest:
    """A manifest of the collection ``name``; ``facts`` are further fields of ``Manifest``."""
    return Manifest(Collection(name, name.title()), **facts)


def write(folder: Path, texts: Mapping[str, str]) -> Path:
    """Write ``texts`` (path within the folder -> text) and return the folder."""
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def jsonl(*records: Mapping[str, Any] | str) -> str:
    """Records as JSON lines; a string is taken as the line it is."""
    return "".join(
        (record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)) + "\n" for record in records
    )


def import_into(
    settings: Settings,
    *paths: Path,
    manifest: Manifest | None = None,
    encoder: HashedWords | None = None,
    retry: bool = False,
) -> Report:
    """Import ``paths`` into the collection of ``manifest`` ("ward")."""
    return Importer(settings, manifest or described(), encoder or HashedWords()).run(list(paths), retry)


def documents(settings: Settings, collection: str = "") -> dict[str, Document]:
    """What the served catalogue holds, by the name of the file and the record in it."""
    with Library.open(settings.data) as library:
        return {document.key.rpartition("/")[2]: document for document in library.catalogue.documents(collection)}


def answers(settings: Settings, question: str, filters: SearchFilter = ANY, limit: int = 10) -> set[str]:
    """The titles of the documents that both indexes together find for ``question``."""
    with Library.open(settings.data) as library:
        return titles(library, question, filters, limit)


def titles(library: Library, question: str, filters: SearchFilter = ANY, limit: int = 10) -> set[str]:
    """The titles that an open library finds by words, which must be those of documents that it may find by meaning."""
    vector = HashedWords().encode([question], "query")[0]
    lexical = library.search_lexical(question, limit, filters, 3.0, 64)
    near = library.search_dense(vector, 1000, filters)
    assert {row[1] for row in lexical} <= {row[1] for row in near}
    return {passage.title for passage in library.passages([row[0] for row in lexical]).values()}


def verify(data: Path) -> None:
    """The served generation is whole: every hash, and the indexes and the catalogue hold the same documents."""
    with Library.open(data) as library:
        assert generations.check(library.path, whole=True) == []
        catalogued = library.catalogue.passages_by_document()
        assert Counter(passage.document_id for passage in library.lexical.all_passages()) == catalogued
        assert Counter(library.dense._table.to_arrow()["document"].to_pylist()) == catalogued
        if (library.path / SPARSE).exists():
            assert len(library.sparse) == library.manifest.passages
        assert library.manifest.passages == sum(catalogued.values())


def hashes(folder: Path) -> dict[str, str]:
    """The sha256 of every file under ``folder`` but lock files and what is noted of them."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".lock" and path.name != "checked.json"
    }


def overwrite(path: Path, content: bytes) -> None:
    """Write ``content`` into ``path`` without emptying it first: an index that still maps the file would crash."""
    with path.open("r+b") as stream:
        stream.write(content)


def flip(path: Path, place: int | None = None, bit: int = 0, decayed: bool = False) -> bytes:
    """Flip a bit of ``path`` (in its middle); return what was there. ``decayed``: as a disk does, without a time."""
    whole, state = path.read_bytes(), path.stat()
    place = len(whole) // 2 if place is None else place
    overwrite(path, whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place:][1:])
    if decayed:
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    return whole


def encoded(encoder: Embedder, passages: Sequence[Passage]) -> Encoded:
    """What ``encoder`` makes of ``passages`` and of their sentences, without a cache."""
    made = [encoder.encode(texts, "passage") for texts in texts_of(passages, encoder.identity)]
    return Encoded(np.stack([one[0] for one in made]), [one[1:] for one in made])


def built(data: Path, encoder: Embedder, stored: Sequence[Passage]) -> Path:
    """The folder of a library of ``stored``, whose documents are of the collection "c"."""
    (data / "files").mkdir(parents=True)
    with build(data, encoder.identity, LibrarySettings()) as builder:
        builder.put_collection(Collection("c", "C"))
        for one in {passage.document_id: passage for passage in stored}.values():
            of_it = sum(passage.document_id == one.document_id for passage in stored)
            builder.put(Document(one.document_id, "c", one.title, one.title, one.language, one.title, "0" * 64,
                                 digest(one.text), "text/plain", passages=of_it))  # fmt: skip
        builder.add(stored, encoded(encoder, stored))
        builder.publish(message("generation.made.upgrade"))
    return data


def withdraw(data: Path, document: Document, withdrawn: bool = True, reason: str = "test") -> None:
    """Withdraw a document, or take that back, as ``changes.withdraw`` does."""
    from localmed.library import in_force
    from localmed.site.audit import entry_of

    with in_force.changing(data) as change:
        change.withdraw(entry_of("withdraw", document.id, "in force"), document, withdrawn, reason)


def restrict(data: Path, collection: str, groups: Sequence[str]) -> None:
    """Let only ``groups`` read ``collection``, as ``changes.set_access`` does."""
    from localmed.library import access, in_force
    from localmed.site.audit import entry_of

    with in_force.changing(data) as change:
        access.put(change, entry_of("access", collection, "in force"), collection, groups)
