"""``registry.json`` in the folder of the models: what was added, when, by whom, and which model serves which role.

Replaced as a whole, in one step that survives a power cut; a digest of its content shows a flipped bit. A file that
cannot be read is an error, never an empty registry.
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
    """What the file system says of a file. Whoever changes the file changes it, a restored date included (ctime)."""

    bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, path: Path) -> Stamp:
        """The stamp of ``path`` now."""
        state = path.stat()
        return cls(state.st_size, state.st_mtime_ns, state.st_ctime_ns, state.st_ino)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file as it was when it was last hashed; ``name`` is relative to the model's folder.

    ``crc`` is its CRC-32, read again at every load (6 GB/s, where SHA-256 is 0.5 to 2); -1 where none was taken.
    """

    name: str
    sha256: str
    stamp: Stamp
    crc: int = -1


@dataclass(frozen=True, slots=True)
class Model:
    """A registered model. ``listed``: there was a manifest of its name; ``header`` as its largest file gives it.

    ``fingerprint`` (12 hex characters) tells trainings of one name apart. What follows ``header`` is as the manifest
    said when the model was added: a manifest that changes later must not change what a vector means.
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
        """All files together."""
        return sum(file.stamp.bytes for file in self.files)

    @property
    def footprint(self) -> Footprint:
        """What it takes, by its files and its header."""
        numbers, context = (self.header.kv_numbers, self.header.context) if self.header else (0, 0)
        return Footprint(self.bytes, numbers * KV_BYTES, context or self.context, exact=True)


@dataclass(frozen=True, slots=True)
class Registrations:
    """Everything registered: models by name, and the name of the model that serves a role."""

    models: Mapping[str, Model] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)

    def having(self, model: Model) -> Registrations:
        """With ``model`` added or put in the place of the one of its name."""
        return replace(self, models={**self.models, model.name: model})

    def without(self, name: str) -> Registrations:
        """Without the model ``name``, which then serves nothing."""
        models = {other: model for other, model in self.models.items() if other != name}
        return Registrations(models, {role: served_by for role, served_by in self.roles.items() if served_by != name})


def read(folder: Path) -> Registrations:
    """What is registered in ``folder``, empty if nothing was ever added; raise ``ModelError`` if it cannot be read."""
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
    """Replace what is registered in ``folder``."""
    models = {name: asdict(model) for name, model in sorted(registrations.models.items())}
    content = {"format": FORMAT, "models": models, "roles": dict(sorted(registrations.roles.items()))}
    written = json.dumps({"digest": _digest(content), "registry": content}, indent=1)
    files.replace(folder / FILE, written.encode(), mode=0o666)  # less the umask


def _digest(content: Any) -> str:
    return digest(json.dumps(content, sort_keys=True))


def _model(values: dict[str, Any]) -> Model:
    said = values["header"]  # an earlier version kept more of it
    header = said and {item.name: said[item.name] for item in fields(Header)}
    model: Model = Codec(()).decode({**values, "header": header}, Model)
    return model
