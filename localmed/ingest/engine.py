"""Where the steps of an import run: by workers that may be other processes or machines, in place of this process.

The import itself stays one process: it decides, writes and publishes, and takes what workers come to in the order of
the files, so that a generation is the same whoever worked. What they do is parsing (each worker with a confined child
of its own, its limits and reasons for quarantine) and encoding (the same batches of texts as without them).

Not covered: worker machines need this localmed, and the data folder under the same path: files are parsed where they
are kept, no copy of a document lies on another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from localmed import __version__
from localmed.config import IngestSettings, ReadBounds
from localmed.domain import errors
from localmed.domain.errors import InputError, LibraryError
from localmed.domain.ports import encode_both
from localmed.ingest.ahead import Items, Reading, Task, in_turn, parsed
from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord
from localmed.ingest.parsing import Parser

if TYPE_CHECKING:
    from localmed.domain.ports import Embedder, Vectors, Weights

Argument = TypeVar("Argument")
Result = TypeVar("Result")
Request = TypeVar("Request")


class Workers(Protocol):
    """Runs steps side by side. A worker that is lost has its step done again by another one."""

    def start(self, step: Callable[[Argument], Result], argument: Argument) -> Callable[[], Result]:
        """Begin ``step``, a function of a module; what is returned waits for its result, or raises its error."""
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """Workers and what they need: ``encoder`` makes one there, ``ahead`` batches are begun before their turn."""

    workers: Workers
    encoder: Callable[[], Embedder]
    ahead: int

    def encoding(self, slug: str) -> Callable[[list[str]], Callable[[], Encoded]]:
        """What begins to encode texts by the encoder of ``slug``, and returns what waits for it."""
        return lambda texts: self.workers.start(encode, Texts(slug, self.encoder, tuple(texts)))


# --- parsing ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class File:
    """A file to parse, with all that decides on what comes of it."""

    task: Task
    mapping: FieldMapping
    bounds: ReadBounds


Parsed = tuple[list[SourceRecord | Fault], Mapping[str, Any] | None]  # what was read, and why no more was


class FarParsers:
    """As ``ahead.Parsers``, by workers; files are begun in their order and taken in it."""

    def __init__(
        self, workers: Workers, settings: IngestSettings, mapping: FieldMapping, bounds: ReadBounds, reading: Reading
    ) -> None:
        self._workers, self._settings, self._reading = workers, settings, reading
        self._mapping, self._bounds = mapping, bounds

    def close(self) -> None:
        """Nothing is held here."""

    def read(
        self, requests: Iterable[Request], task_of: Callable[[Request], Task | None]
    ) -> Iterator[tuple[Request, Items]]:
        """See ``ahead.Parsers.read``."""
        for request, begun in in_turn(requests, task_of, self._begun, self._settings):
            yield request, self._items(*begun) if begun else iter(())

    def _begun(self, task: Task) -> tuple[Task, Callable[[], Parsed]]:
        return task, self._workers.start(parse, File(task, self._mapping, self._bounds))

    def _items(self, task: Task, waiting: Callable[[], Parsed]) -> Items:
        self._reading(task.name, 0, 0, False)
        items, error = waiting()
        yield from items
        if error is not None:
            raise errors.from_json(error, InputError)


def parse(file: File) -> Parsed:
    """What stands in ``file``: a worker's step, by the confined child that it keeps."""
    task, items = file.task, list[SourceRecord | Fault]()
    if not task.path.exists():
        raise LibraryError("import.not_seen", folder=str(task.path.parent))
    try:
        with closing(parsed(_parser(), task, file.mapping, file.bounds)) as stream:
            for item in stream:
                items.append(item)
    except InputError as error:
        return items, errors.as_json(error)
    return items, None


@cache
def _parser() -> Parser:
    return Parser()


# --- encoding ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Texts:
    """A batch of texts and the encoder for them: its slug, and what makes it."""

    slug: str
    encoder: Callable[[], Embedder]
    texts: tuple[str, ...]


Encoded = tuple["Vectors", list["Weights"]]
_ENCODERS: dict[str, Embedder] = {}  # of this worker, by slug


def encode(batch: Texts) -> Encoded:
    """The vectors and token weights of ``batch``: a worker's step, by the encoder that it keeps."""
    if batch.slug not in _ENCODERS:
        _ENCODERS[batch.slug] = batch.encoder()
    encoder = _ENCODERS[batch.slug]
    if encoder.identity.slug != batch.slug:
        raise LibraryError("import.other_worker", here=batch.slug, there=encoder.identity.slug)
    return encode_both(encoder, batch.texts, "passage")


# --- what every worker's step comes in --------------------------------------------------------------------------------


def enveloped(version: str, step: Callable[[Any], Any], argument: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """The result of ``step``, or its error as JSON, which carries no text of a document into a log of the engine."""
    from localmed.process import confined

    try:
        if version != __version__:
            raise LibraryError("import.other_worker", here=version, there=__version__)
        return step(argument), None
    except errors.LocalmedError as error:
        return None, errors.as_json(error)
    except Exception as error:
        failed = LibraryError("import.worker_failed", kind=type(error).__name__, place=confined.place(error))
        return None, errors.as_json(failed)


def opened(envelope: tuple[Any, Mapping[str, Any] | None]) -> Any:
    """What ``enveloped`` put in; raises the error."""
    result, error = envelope
    if error is not None:
        raise errors.from_json(error, LibraryError, errors.LocalmedError)
    return result
