"""Corpus manifests: one TOML file per collection describes it, its fields and facts about its files.

::

    name = "starter-guidelines"          # the collection
    title = "Starter guidelines"         # and: language, source, licence, kind, priority, reader
    files = ["*.txt", "wiki_*"]          # of a folder, only these; without it, all with a known extension
    [fields]                             # which of the source's fields is our title, text, edition, ...
    [options]                            # for the reader
    [documents."hypertension-2019.md"]   # of one file: title, edition, language, status, replaced_by,
                                         # owner, approver, effective_from, review_by
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from localmed.domain import STATED, Collection, Kind, is_date
from localmed.domain.errors import BadSettings, UsageError, toml_place
from localmed.ingest.parsed import FieldMapping
from localmed.library import layout
from localmed.library.governed import GOVERNANCE
from localmed.process import files

if TYPE_CHECKING:
    from localmed.ingest.sources import Source

KEYS = frozenset(
    {"name", "title", "language", "source", "licence", "priority", "kind", "reader", "files"}
    | {"fields", "options", "documents"}
)
_NAME = re.compile(r"[^\W_][\w-]{0,63}")  # it is used as a file name
FACTS = frozenset({"title", "edition", "language", "status", "replaced_by", *GOVERNANCE})


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest; ``documents`` maps a file name (or path within the imported folder) to facts about it."""

    collection: Collection
    reader: str = ""
    mapping: FieldMapping = field(default_factory=FieldMapping)
    documents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    files: tuple[str, ...] = ()

    @property
    def latest(self) -> bool:
        """Whether a record is stored once in the collection, in its newest version (``duplicates.py``)."""
        return self.mapping.options.get("versions") == "latest"

    def facts(self, source: Source) -> dict[str, str]:
        """The facts about a file, by its path within its folder or by its name."""
        if not self.documents:
            return {}
        return dict(self.documents.get(source.name) or self.documents.get(source.path.name) or {})

    def recipe(self, facts: Mapping[str, str]) -> str:
        """The parts of this manifest that decide how a file with ``facts`` is read, as text."""
        values = [self.reader, dict(self.mapping.fields), dict(self.mapping.options), dict(facts)]
        return json.dumps([*values, self.collection.language], sort_keys=True)


def load(path: Path) -> Manifest:
    """Read a manifest; raise ``BadSettings`` naming the file and the wrong key, or ``InputError``."""
    try:
        values = tomllib.loads(files.contents(path).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings("manifest.toml", path=str(path), place=toml_place(error)) from None
    _check(path, values)
    described = {key: values[key] for key in ("priority", "language", "source", "licence") if key in values}
    name, kind = values["name"], Kind(values.get("kind", ""))
    fields = {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.get("fields", {}).items()
    }
    return Manifest(
        Collection(name, values.get("title", name), **described, kind=kind),
        values.get("reader", ""),
        FieldMapping(fields, values.get("options", {})),
        values.get("documents", {}),
        tuple(values.get("files", ())),
    )


def chosen(data: Path, collection: str, file: Path | None, known: Callable[[], Collection]) -> Manifest:
    """The manifest of ``collection``: ``file``, else the one last imported with, else its catalogue row alone.

    ``known`` returns that row, whose values (a priority set since) override the kept manifest. Raise ``UsageError`` if
    the manifest belongs to another collection.
    """
    kept = kept_path(data, collection)
    if not file and not kept.exists():
        return Manifest(known())
    manifest = load(file or kept)
    if manifest.collection.name != collection:
        raise UsageError("manifest.other_collection", described=manifest.collection.name, collection=collection)
    return manifest if file else replace(manifest, collection=known())


def keep(data: Path, collection: str, file: Path) -> None:
    """Keep ``file`` as the manifest of ``collection`` for later imports."""
    kept = kept_path(data, collection)
    kept.parent.mkdir(exist_ok=True, mode=0o700)
    files.replace(kept, files.contents(file))


def forget(data: Path, collection: str) -> None:
    """Remove the kept manifest of a deleted collection."""
    kept_path(data, collection).unlink(missing_ok=True)


def kept_path(data: Path, collection: str) -> Path:
    """The path of the manifest that a collection was last imported with."""
    return data / layout.CORPORA / f"{collection}.toml"


def _check(path: Path, values: dict[str, Any]) -> None:
    unknown = set(values) - KEYS
    if unknown:
        raise BadSettings("manifest.key", path=str(path), key=sorted(unknown)[0], keys=tuple(sorted(KEYS)))
    for name in ("name", "title", "language", "source", "licence", "reader"):
        if not isinstance(values.get(name, ""), str):
            raise BadSettings("manifest.text", path=str(path), key=name)
    if not values.get("name"):
        raise BadSettings("manifest.no_name", path=str(path))
    if not _NAME.fullmatch(values["name"]):
        raise BadSettings("manifest.name", path=str(path))
    if values.get("kind", "") not in set(Kind):
        kinds = tuple(kind.value for kind in Kind if kind)
        raise BadSettings("manifest.kind", path=str(path), kind=str(values["kind"]), kinds=kinds)
    if type(values.get("priority", 0)) is not int:
        raise BadSettings("manifest.priority", path=str(path))
    for name in ("fields", "options", "documents"):
        if not isinstance(values.get(name, {}), dict):
            raise BadSettings("manifest.corpus_table", path=str(path), key=name)
    files = values.get("files", [])
    if not isinstance(files, list) or not all(isinstance(file, str) and file for file in files):
        raise BadSettings("manifest.files", path=str(path))
    if values.get("options", {}).get("versions", "latest") != "latest":
        raise BadSettings("manifest.versions", path=str(path))
    for name, value in values.get("fields", {}).items():
        names = value if isinstance(value, list) else [value]
        if not all(isinstance(field_name, str) for field_name in names):
            raise BadSettings("manifest.field", path=str(path), key=name)
    _check_documents(path, values.get("documents", {}))


def _check_documents(path: Path, documents: dict[str, Any]) -> None:
    for file, facts in documents.items():
        known = isinstance(facts, dict) and not set(facts) - FACTS
        if not known or not all(isinstance(value, str) for value in facts.values()):
            raise BadSettings("manifest.facts", path=str(path), file=file, facts=tuple(sorted(FACTS)))
        if facts.get("status", "current") not in STATED:
            raise BadSettings("manifest.status", path=str(path), file=file, statuses=STATED)
        for name in ("effective_from", "review_by"):
            if facts.get(name) and not is_date(facts[name]):
                raise BadSettings("manifest.date", path=str(path), file=file, key=name)
