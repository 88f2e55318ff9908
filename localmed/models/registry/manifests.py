"""Model manifests: one TOML file a model, with its origin and requirements. No weights.

::

    name = "qwen3-8b"                      # and: role, family, title, languages, licence, terms, source
    context = 32768                        # tokens that it was trained to read
    library = "sentence-transformers"      # of an encoder: the library; of an entailment judge: its kind
    query_prefix = "query: "               # and passage_prefix, of an encoder that was trained with them
    template = "chatml"                    # of a chat model or a judging GGUF: one of models/templates.py
    [[files]]                              # name may be a pattern (Qwen3-8B-Q*.gguf) or a choice (a | b)
    name = "Qwen3-8B-Q4_K_M.gguf"
    bytes = 0                              # 0 and "": unknown, recorded when the file is added
    sha256 = ""
    optional = false
    [shape]                                # to estimate memory before the file is there
    architecture = "qwen3"                 # as in the GGUF
    parameters = 8_200_000_000             # and: bits_per_weight, layers, kv_heads, head_width

The shipped manifests are in ``models/`` at the top of the project; ``shipped`` beside this file links there, so that an
installed package contains them. A site puts its own manifests into its model folder.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from localmed.domain.errors import BadSettings, InputError, toml_place
from localmed.process.files import contents

FOLDER = Path(__file__).parent.parent / "shipped"
ROLES = ("chat", "encoder", "reranker", "entailment", "terms", "planner")
WRITERS = ("chat", "planner")  # roles that need a GGUF with a template
LIBRARIES = {  # by role, if there are several; the default first
    "encoder": ("sentence-transformers", "FlagEmbedding"),
    "entailment": ("", "FactCG", "MiniCheck", "LettuceDetect", "GGUF"),  # "": a classifier with three named labels
}
NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")  # also the folder's name
KV_BYTES = 2  # bytes of a number in the key-value cache: half precision, llama.cpp's default


@dataclass(frozen=True, slots=True)
class FileSpec:
    """A file of the model; ``name`` is one or more patterns (``a | b``), relative to the model's folder."""

    name: str
    bytes: int = 0
    sha256: str = ""
    optional: bool = False

    def matches(self, name: str) -> bool:
        """Whether ``name`` matches."""
        return any(fnmatchcase(name, pattern.strip()) for pattern in self.name.split("|"))


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes for the memory estimate; 0 if unknown or irrelevant."""

    architecture: str = ""
    parameters: int = 0
    bits_per_weight: float = 0.0
    layers: int = 0
    kv_heads: int = 0
    head_width: int = 0


@dataclass(frozen=True, slots=True)
class Footprint:
    """Memory of the weights and of each token of context. ``exact``: from the files, not estimated.

    ``context`` is the model's longest context in tokens (0: unknown). Working memory comes on top (``upkeep/fit.py``).
    """

    weights: int  # bytes; 0: unknown
    bytes_a_token: int
    context: int
    exact: bool


@dataclass(frozen=True, slots=True)
class ModelManifest:
    """One manifest."""

    name: str
    role: str
    family: str
    title: str
    licence: str
    source: str
    languages: tuple[str, ...] = ()
    terms: str = ""
    context: int = 0
    template: str = ""
    library: str = ""
    query_prefix: str = ""
    passage_prefix: str = ""
    files: tuple[FileSpec, ...] = ()
    shape: Shape = field(default_factory=Shape)

    @property
    def footprint(self) -> Footprint:
        """The estimate from its shape."""
        shape = self.shape
        weights = int(shape.parameters * shape.bits_per_weight / 8)
        numbers = 2 * shape.layers * shape.kv_heads * shape.head_width  # keys and values
        return Footprint(weights, numbers * KV_BYTES, self.context, exact=False)


def load_all(folder: Path = FOLDER, *further: Path) -> dict[str, ModelManifest]:
    """The manifests in the folders, by name; raise ``BadSettings`` naming the faulty file and key."""
    by_name: dict[str, ModelManifest] = {}
    for path in (path for place in (folder, *further) for path in sorted(place.glob("*.toml"))):
        manifest = load(path)
        if manifest.name in by_name:  # a site must not replace a shipped manifest and its hashes
            raise BadSettings("manifest.twice", path=str(path), name=manifest.name)
        by_name[manifest.name] = manifest
    return by_name


def load(path: Path) -> ModelManifest:
    """Read one manifest."""
    try:
        values = tomllib.loads(contents(path).decode())
    except InputError as error:
        raise BadSettings(*error.messages) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings("manifest.toml", path=str(path), place=toml_place(error)) from None
    specs, shape = values.pop("files", []), values.pop("shape", {})
    if not isinstance(specs, list) or not specs:
        raise BadSettings("manifest.no_files", path=str(path))
    manifest: ModelManifest = _make(ModelManifest, path, values)
    if manifest.role not in ROLES or not NAME.fullmatch(manifest.name):
        raise BadSettings("manifest.name_or_role", path=str(path), roles=tuple(ROLES))
    libraries = LIBRARIES.get(manifest.role, ("",))
    if manifest.library not in libraries:
        raise BadSettings("manifest.library", path=str(path), libraries=tuple(filter(None, libraries)))
    files = tuple(_make(FileSpec, path, spec) for spec in specs)
    return replace(manifest, files=files, shape=_make(Shape, path, shape))


def _make(kind: Any, path: Path, values: Any) -> Any:
    """Make a ``kind`` from ``values``; each must have the field's type."""
    if not isinstance(values, dict):
        raise BadSettings("manifest.table", path=str(path), name=kind.__name__)
    known = {item.name: item for item in fields(kind)}
    for name, value in values.items():
        if name not in known or not _has_type(value, str(known[name].type)):
            raise BadSettings("manifest.unknown", path=str(path), name=name)
    needed = (item for item in known.values() if item.default is MISSING and item.default_factory is MISSING)
    missing = [item.name for item in needed if item.name not in values]
    if missing:
        raise BadSettings("manifest.missing", path=str(path), name=missing[0])
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _has_type(value: Any, kind: str) -> bool:
    if kind.startswith("tuple"):
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    if kind == "float":
        return type(value) in (int, float) and value >= 0
    return type(value).__name__ == kind and (kind != "int" or value >= 0)
