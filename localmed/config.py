"""Settings: one TOML file read into frozen values, the paths under the data folder, and every bound with its unit.

The file is ``$LOCALMED_CONFIG``, else ``localmed.toml`` in the data folder, else the defaults below. The data folder is
``--data``, else ``$LOCALMED_DATA``, else ``~/.local/share/localmed``. An unknown key is an error: a misspelt bound
must not pass for a set one.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from localmed.errors import BadSettings

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OFFLINE = {
    # Set before any model library loads: a hospital machine has no hub, and a library that looks for one hangs.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",  # the tokenizer pool deadlocks after a spawn and wins nothing on two cores
}


# What a number may not be below: 0 where that switches something off, more where less would not work at all.
LEAST = {
    "search.dense_weight": 0,
    "search.lexical_weight": 0,
    "search.title_boost": 0,
    "ask.abstain_below": 0,
    "ask.abstain_below_lexical": 0,
    "chunk.characters": 100,  # a sentence has about 100
    "read.child_memory_bytes": 256 * 2**20,  # the interpreter with its readers takes most of it
    "library.writer_memory_bytes": 15_000_000,  # Tantivy refuses less
}
LEAST_OTHERWISE = {int: 1, float: 0.001}
MOST = {"ask.abstain_below": 1, "ask.abstain_below_lexical": 1}
MOST_OTHERWISE = 2**53  # what every system call and library takes

_Level = TypeVar("_Level", bound="DataclassInstance")


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """What one file may cost while it is parsed in a child process."""

    file_bytes: int = 512 * 2**20  # a textbook scan is ~200 MiB; above this it is not a document
    file_seconds: float = 300.0  # wall clock; a 1,000-page PDF with tables takes ~100 s
    file_cpu_seconds: int = 240
    child_memory_bytes: int = 2 * 2**30  # address space of the child
    pages: int = 3000  # longest textbooks run to ~2,500
    page_characters: int = 60_000  # a page of 6-point type holds ~15,000
    record_characters: int = 20_000_000  # one document's text; the longest textbooks hold ~10 million
    records: int = 2_000_000  # records in one file; a PubMed baseline file holds 30,000
    faults: int = 1_000  # refused records listed one by one; the rest are counted


@dataclass(frozen=True, slots=True)
class ChunkSettings:
    """How documents are cut."""

    characters: int = 1000  # a passage; MiniLM reads 256 word pieces, about 1,000 characters of English


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Hybrid search. The values marked "tuned" are chosen on questions that no reported figure uses."""

    candidates: int = 50  # taken from each index before fusion
    rrf_k: int = 60  # Cormack et al. 2009; the literature's value
    dense_weight: float = 2.0  # tuned; 1.5 to 3 are within 0.003 of each other
    lexical_weight: float = 1.0
    title_boost: float = 3.0  # tuned; 2 to 4 are within 0.005
    query_characters: int = 4_000  # of a longer question the first 4,000 count: ~700 words, longer than any vignette
    query_terms: int = 64  # rarest first; bounds the lexical search's work
    results: int = 10
    rerank: int = 20  # of the fused passages are read again by the reranker


@dataclass(frozen=True, slots=True)
class AskSettings:
    """Extractive answers."""

    passages: int = 8  # read for an answer
    sentences: int = 5  # quoted at most
    abstain_below: float = 0.5  # probability; error rates at it are in tests/benchmarks/RESULTS.md
    abstain_below_lexical: float = 0.6  # share of the question's weight, where no similarity is known


@dataclass(frozen=True, slots=True)
class LibrarySettings:
    """Generations and indexes."""

    keep_generations: int = 3
    index_above: int = 50_000  # rows; flat search over fewer answers within the time limit
    writer_memory_bytes: int = 64 * 2**20  # Tantivy's writer heap
    batch: int = 1024  # passages encoded and written together


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a site can set."""

    data: Path
    profile: str = "starter"
    read: ReadBounds = field(default_factory=ReadBounds)
    chunk: ChunkSettings = field(default_factory=ChunkSettings)
    search: SearchSettings = field(default_factory=SearchSettings)
    ask: AskSettings = field(default_factory=AskSettings)
    library: LibrarySettings = field(default_factory=LibrarySettings)


def data_folder(given: str | os.PathLike[str] | None = None) -> Path:
    """The data folder: ``given``, else ``$LOCALMED_DATA``, else ``~/.local/share/localmed``; absolute."""
    chosen = given or os.environ.get("LOCALMED_DATA") or Path.home() / ".local" / "share" / "localmed"
    return Path(chosen).expanduser().absolute()


def load(data: str | os.PathLike[str] | None = None) -> Settings:
    """Read the settings for the data folder ``data``; raise ``BadSettings`` for a key or a type that is not known."""
    folder = data_folder(data)
    file = Path(os.environ.get("LOCALMED_CONFIG") or folder / "localmed.toml")
    if not file.exists():
        if "LOCALMED_CONFIG" in os.environ:
            raise BadSettings(f"LOCALMED_CONFIG names {file}, which does not exist", "Create it or unset the variable")
        return Settings(folder)
    try:
        values = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise BadSettings(f"{file} cannot be read ({error.strerror})", "Make it a file you may read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{file} is not valid TOML ({error})", "Correct the line named") from None
    return _filled(Settings(folder), values, str(file), "")


def _filled(settings: _Level, values: dict[str, Any], file: str, prefix: str) -> _Level:
    """``settings`` with ``values`` put in, level by level."""
    known = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    changes: dict[str, Any] = {}
    for name, value in values.items():
        current = known.get(name)
        if name not in known or name == "data":
            raise BadSettings(f"{file}: unknown setting {prefix}{name}", "See config.py for the settings there are")
        path = f"{prefix}{name}"
        if dataclasses.is_dataclass(current) and not isinstance(current, type) and isinstance(value, dict):
            changes[name] = _filled(current, value, file, f"{path}.")
        elif isinstance(current, float) and isinstance(value, int) and not isinstance(value, bool):
            changes[name] = float(_within(value, path, file))
        elif type(value) is type(current):
            changes[name] = _within(value, path, file)
        else:
            raise BadSettings(f"{file}: {path} must be {_KINDS.get(type(current), 'a table')}", "Correct its value")
    return dataclasses.replace(settings, **changes)


_KINDS = {int: "a whole number", float: "a number", str: "text in quotes"}


def _within(value: Any, path: str, file: str) -> Any:
    """``value``; raise ``BadSettings`` for a number that cannot work (negative, not a number, above its most)."""
    if isinstance(value, (int, float)):
        least, most = LEAST.get(path, LEAST_OTHERWISE[type(value)]), MOST.get(path, MOST_OTHERWISE)
        if not least <= value <= most:  # also for nan
            raise BadSettings(f"{file}: {path} must be from {least} to {most}", "Correct its value")
    return value
