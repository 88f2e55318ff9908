"""Reads and writes ``registry.json``: the registered models, and which one serves each role.

The file is replaced atomically and synced. A digest of its content detects flipped bits. An unreadable file is an
error, never an empty registry.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from localmed.domain import digest
from localmed.domain.codec import Codec
from localmed.domain.errors import ModelError, reason
from localmed.models.registry.header import Header
from localmed.models.registry.manifests import KV_BYTES, Footprint
from localmed.process import files

FILE = "registry.json"
FORMAT = 2


@dataclass(frozen=True, slots=True)
class Stamp:
    """File metadata that changes whenever the file does, even if its date is restored (ctime)."""

    bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The current stamp of ``path``."""
        state = path.stat()
        return cls(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as of its last full hash; ``name`` is relative to the model's folder.

    ``crc`` is its CRC-32, checked at every load (6 GB/s; SHA-256 reaches 0.5 to 2); -1 if unknown.
    """

    name: str
    sha256: str
    stamp: Stamp
    crc: int = -1


@dataclass(frozen=True, slots=True)
class Model:
    """A registered model. ``listed``: it had a manifest. ``header`` is from its largest file.

    ``fingerprint`` (12 hex characters) distinguishes trainings of the same name. The fields after ``header`` are copied
    from the manifest when the model is added, because a later change must not alter the meaning of stored vectors.
    """

    name: str
    role: str
    listed: bool
    files: tuple[StoredFile, ...]
    added: str
    by: str
    fingerprint: str
    header: Header | None = None
    template: str = ""
    context: int = 0
    library: str = ""
    languages: tuple[str, ...] = ()
    query_prefix: str = ""
    passage_prefix: str = ""

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.stamp.bytes for file in self.files)

    @property
    def footprint(self) -> Footprint:
        """Memory needed, from its files and header."""
        numbers, context = (self.header.kv_numbers, self.header.context) if self.header else (0, 0)
        return Footprint(self.bytes, numbers * KV_BYTES, context or self.context, exact=True)


@dataclass(frozen=True, slots=True)
class Registrations:
    """The registered models by name, and the name of the model that serves each role."""

    models: Mapping[str, Model] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)

    def with_model(self, model: Model) -> Registrations:
        """Add or replace ``model``."""
        return replace(self, models={**self.models, model.name: model})

    def without_model(self, name: str) -> Registrations:
        """Remove model ``name`` and the roles that it serves."""
        models = {other: model for other, model in self.models.items() if other != name}
        return Registrations(models, {role: served_by for role, served_by in self.roles.items() if served_by != name})


def read(folder: Path) -> Registrations:
    """The registrations of ``folder``, empty if there are none; raise ``ModelError`` if the file is unreadable."""
    try:
        outer = json.loads(files.own_bytes(folder / FILE))
        content = outer["registry"]
        if outer["digest"] != _digest(content) or content["format"] != FORMAT:
            raise ValueError
        models = {name: _model(values) for name, values in content["models"].items()}
        return Registrations(models, content["roles"])
    except FileNotFoundError:
        return Registrations()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError("model.record_unreadable", file=str(folder / FILE), kind=reason(error)) from None


def write(folder: Path, registrations: Registrations) -> None:
    """Replace the registrations of ``folder``."""
    models = {name: asdict(model) for name, model in sorted(registrations.models.items())}
    content = {"format": FORMAT, "models": models, "roles": dict(sorted(registrations.roles.items()))}
    written = json.dumps({"digest": _digest(content), "registry": content}, indent=1)
    files.replace(folder / FILE, written.encode(), mode=0o666)  # less the umask


def _digest(content: Any) -> str:
    return digest(json.dumps(content, sort_keys=True))


def _model(values: dict[str, Any]) -> Model:
    said = values["header"]  # an earlier version stored more fields
    header = said and {item.name: said[item.name] for item in fields(Header)}
    model: Model = Codec(()).decode({**values, "header": header}, Model)
    return model
