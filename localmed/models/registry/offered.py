"""What ``models add`` is given: the files to take, the manifest they belong to, and what they say of themselves.

Rules: regular files only, hidden ones left out; of a model with a manifest exactly the files that it names, but all of
a folder that stays where it is, since a library might load any of them; a file whose hash is known must have it; a file
that states another architecture than its manifest is another model.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localmed.config import BUILT_IN, DEFAULT
from localmed.domain.errors import InputError, LimitExceeded, UsageError, reason
from localmed.models import templates
from localmed.models.registry.header import READERS, Header, inspect
from localmed.models.registry.manifests import NAME, ROLES, WRITERS, ModelManifest
from localmed.models.registry.registration import StoredFile

RESERVED = {DEFAULT, *(name for names in BUILT_IN.values() for name in names)}  # mean something in models use
MOST_FILES = 1_000  # of one model; a spaCy pipeline has about 30
MOST_NAME = 200  # characters of a file's path within its model


@dataclass(frozen=True, slots=True)
class Choice:
    """What will be registered: the files by their name in the model's folder, and under which name and role."""

    name: str
    role: str
    files: Mapping[str, Path]
    manifest: ModelManifest | None


def choose(source: Path, manifests: Mapping[str, ModelManifest], name: str, role: str, stays: bool) -> Choice:
    """Decide what ``source`` is; ``name`` and ``role`` as asked for, or "". All files of a folder that ``stays`` count.

    Raise ``InputError`` for files that cannot be taken, ``UsageError`` where a name or a role is missing or wrong.
    """
    files = _files_of(source)
    manifest = manifests.get(name) if name else _recognised(source, manifests)
    if manifest and manifest.name in RESERVED:
        raise UsageError("model.built_in", name=manifest.name)
    if manifest:
        if role not in ("", manifest.role):
            raise UsageError("model.other_role", name=manifest.name, role=manifest.role)
        named = _named(files, manifest, source)
        return Choice(manifest.name, manifest.role, files if stays else named, manifest)
    chosen = name or _plain(source.stem if source.is_file() else source.resolve().name)
    if not NAME.fullmatch(chosen) or chosen in RESERVED:
        raise UsageError("model.name_taken" if chosen in RESERVED else "model.bad_name", name=chosen)
    if role not in ROLES:
        raise UsageError("model.no_manifest", roles=tuple(ROLES), name=chosen)
    return Choice(chosen, role, files, None)


def inspected(choice: Choice) -> Header | None:
    """What the files' headers say: that of the largest file that describes the model.

    Raise ``InputError`` for a damaged file, for another architecture than the manifest's, and for a chat model without
    a GGUF.
    """
    paths = [path for path in choice.files.values() if path.suffix.lower() in READERS]
    headers = {path: inspect(path) for path in paths}
    described = [path for path, header in headers.items() if header.architecture] or paths
    header = headers[max(described, key=lambda path: path.stat().st_size)] if paths else None
    if choice.role in WRITERS and (not header or header.format != "gguf"):
        raise InputError("model.no_gguf_for_chat", name=choice.name)
    architecture = choice.manifest.shape.architecture if choice.manifest else ""
    if header and architecture and header.architecture != architecture:
        raise InputError("model.other_architecture", name=choice.name, architecture=architecture)
    return header


def template_of(choice: Choice, template: str) -> str:
    """The chat template: ``template``, else the manifest's; "" of a model that does not chat.

    A GGUF that judges entailment is asked as one that chats. Raise ``BadSettings`` for one that there is not,
    ``UsageError`` for a chat model without one.
    """
    judges = choice.role == "entailment" and any(name.lower().endswith(".gguf") for name in choice.files)
    if choice.role not in WRITERS and not judges:
        return ""
    name = template or (choice.manifest.template if choice.manifest else "")
    if not name:
        raise UsageError("model.no_chat_template", name=choice.name, known=tuple(templates.TEMPLATES))
    templates.named(name)
    return name


def check_hash(file: StoredFile, manifest: ModelManifest | None) -> None:
    """Raise ``InputError`` if the manifest knows the size or the hash of ``file`` and it has another."""
    for spec in manifest.files if manifest else ():
        if not spec.matches(file.name):
            continue
        if spec.bytes and spec.bytes != file.stamp.bytes:
            raise InputError("model.manifest_size", name=file.name, size=file.stamp.bytes, listed=spec.bytes)
        if spec.sha256 and spec.sha256 != file.sha256:
            raise InputError("model.manifest_hash", name=file.name)


def _recognised(source: Path, manifests: Mapping[str, ModelManifest]) -> ModelManifest | None:
    """The manifest that names this file, or a folder called as its model."""
    if source.is_dir():
        return manifests.get(_plain(source.resolve().name))
    alone = (manifest for manifest in manifests.values() if len(manifest.files) == 1)
    return next((manifest for manifest in alone if manifest.files[0].matches(source.name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:60]


def _named(files: Mapping[str, Path], manifest: ModelManifest, source: Path) -> dict[str, Path]:
    """Those of ``files`` that the manifest names; a single file given by name may be called otherwise."""
    if source.is_file() and len(manifest.files) == 1:
        return dict(files)
    missing = [file.name for file in manifest.files if not file.optional and not any(map(file.matches, files))]
    if missing:
        raise InputError("model.incomplete", name=manifest.name, missing=missing[0])
    return {name: path for name, path in files.items() if any(spec.matches(name) for spec in manifest.files)}


def _files_of(source: Path) -> dict[str, Path]:
    """The files of ``source``, a file or a folder, by their path within it."""
    paths = [source] if not source.is_dir() else list(walk(source))
    root = source if source.is_dir() else source.parent
    files = {path.relative_to(root).as_posix(): path for path in paths}
    for name, path in files.items():
        _admit(name, path)
    if not files:
        raise InputError("model.no_files", name=source.name)
    return files


def walk(root: Path) -> Iterator[Path]:
    """Every file below ``root`` but hidden ones, in order; links to folders are not followed."""
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(_shown(folders))
        for name in sorted(_shown(names)):
            count += 1
            if count > MOST_FILES:
                raise LimitExceeded("model.many_files", name=root.name, most=MOST_FILES)
            yield Path(folder) / name


def _shown(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith((".", "__pycache__"))]


def _admit(name: str, path: Path) -> None:
    """Refuse what is no regular file with something in it."""
    if not name.isprintable() or len(name) > MOST_NAME:
        raise InputError("model.file_name")
    try:
        state = path.stat()
    except OSError as error:
        raise InputError("file.unreadable", file=name, reason=reason(error)) from None
    if not stat.S_ISREG(state.st_mode):
        raise InputError("model.no_regular_file", name=name)
    if not state.st_size and path.suffix.lower() in READERS:
        raise InputError("model.empty", name=name)
