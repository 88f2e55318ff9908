"""Runs the steps of an import, parsing and encoding, by workers that may be other processes or machines.

The import stays one process: it decides, writes, publishes, and takes results in the order of the files, so a
generation is the same whoever worked. Worker machines need this version of localmed, and the data folder under the
same path: no copy of a document lies on another machine.
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
from localmed.ingest.ahead import Items, Reading, Task, begin_ahead, parse_task
from localmed.ingest.parsed import Fault, FieldMapping, SourceRecord
from localmed.ingest.parsing import Parser

if TYPE_CHECKING:
    from localmed.domain.ports import Embedder, Vectors, Weights

Result = TypeVar("Result")
Request = TypeVar("Request")


class Workers(Protocol):
    """Runs steps side by side. If a worker is lost, another repeats its step."""

    def start(self, step: Callable[..., Result], *arguments: Any) -> Callable[[], Result]:
        """Begin ``step``, a function of a module; the returned function waits for its result or raises its error."""
        ...


@dataclass(frozen=True, slots=True)
class Engine:
    """Workers, the function by which they make their ``encoder``, and how many batches begin ``ahead``."""

    workers: Workers
    encoder: Callable[[], Embedder]
    ahead: int

    def encoding(self, slug: str) -> Callable[[list[str]], Callable[[], Encoded]]:
        """A function that begins to encode texts by the encoder ``slug`` and returns one that waits for the result."""
        return lambda texts: self.workers.start(encode, slug, self.encoder, tuple(texts))


# --- parsing ----------------------------------------------------------------------------------------------------------


Parsed = tuple[list[SourceRecord | Fault], Mapping[str, Any] | None]  # (items, error that ended the file)


class FarParsers:
    """Parses by workers, with the interface of ``ahead.Parsers``."""

    def __init__(
        self, workers: Workers, settings: IngestSettings, mapping: FieldMapping, bounds: ReadBounds, reading: Reading
    ) -> None:
        self._workers, self._settings, self._reading = workers, settings, reading
        self._mapping, self._bounds = mapping, bounds

    def close(self) -> None:
        """Nothing to close."""

    def read(
        self, requests: Iterable[Request], task_of: Callable[[Request], Task | None]
    ) -> Iterator[tuple[Request, Items]]:
        """See ``ahead.Parsers.read``."""
        for request, begun in begin_ahead(requests, task_of, self._begin, self._settings):
            yield request, self._items(*begun) if begun else iter(())

    def _begin(self, task: Task) -> tuple[Task, Callable[[], Parsed]]:
        return task, self._workers.start(parse, task, self._mapping, self._bounds)

    def _items(self, task: Task, waiting: Callable[[], Parsed]) -> Items:
        self._reading(task.name, 0, 0, False)
        items, error = waiting()
        yield from items
        if error is not None:
            raise errors.from_json(error, InputError)


def parse(task: Task, mapping: FieldMapping, bounds: ReadBounds) -> Parsed:
    """The items of a file and the error that ended it: a worker's step, run by the confined child that it keeps."""
    items: list[SourceRecord | Fault] = []
    if not task.path.exists():
        raise LibraryError("import.not_seen", folder=str(task.path.parent))
    try:
        with closing(parse_task(_parser(), task, mapping, bounds)) as stream:
            for item in stream:
                items.append(item)
    except InputError as error:
        return items, errors.as_json(error)
    return items, None


@cache
def _parser() -> Parser:
    return Parser()


# --- encoding ---------------------------------------------------------------------------------------------------------


Encoded = tuple["Vectors", list["Weights"]]
_ENCODERS: dict[str, Embedder] = {}  # this worker's, by slug


def encode(slug: str, make: Callable[[], Embedder], texts: tuple[str, ...]) -> Encoded:
    """The vectors and token weights of ``texts``: a worker's step, run by the encoder that it keeps."""
    if slug not in _ENCODERS:
        _ENCODERS[slug] = make()
    encoder = _ENCODERS[slug]
    if encoder.identity.slug != slug:
        raise LibraryError("import.other_worker", here=slug, there=encoder.identity.slug)
    return encode_both(encoder, texts, "passage")


# --- envelopes --------------------------------------------------------------------------------------------------------


def run_enveloped(version: str, step: Callable[..., Any], *arguments: Any) -> tuple[Any, Mapping[str, Any] | None]:
    """The result of ``step``, or its error as JSON, which carries no document text into the engine's logs."""
    from localmed.process import confined

    try:
        if version != __version__:
            raise LibraryError("import.other_worker", here=version, there=__version__)
        return step(*arguments), None
    except errors.LocalmedError as error:
        return None, errors.as_json(error)
    except Exception as error:
        failed = LibraryError("import.worker_failed", kind=type(error).__name__, place=confined.place(error))
        return None, errors.as_json(failed)


def open_envelope(envelope: tuple[Any, Mapping[str, Any] | None]) -> Any:
    """The result in an envelope; raise its error."""
    result, error = envelope
    if error is not None:
        raise errors.from_json(error, LibraryError, errors.LocalmedError)
    return result
