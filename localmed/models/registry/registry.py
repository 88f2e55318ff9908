"""The registry of models: only files that are registered and unchanged are ever loaded.

::

    <folder>/registry.json     what was added (``registration.py``)
    <folder>/qwen3-8b/...      the files of a model, readable by their owner only
    <folder>/.adding-qwen3-8b  a copy in progress; the next change removes what an interruption left
    <folder>/registry.lock     held by the process that changes something

``add`` inspects the file's header in a child process, copies the file, checks the hash if the manifest has one, and
records the model last, so that it is there completely or not at all. A copy is hashed while it is written, under a
temporary name, synced, and renamed. A folder that already lies under ``<folder>`` is hashed in place, and so is a
complete copy that an interrupted call did not record. A file that changes while it is hashed is refused.

``open`` returns the paths of a model only if every file has the size, timestamps (including ctime) and CRC-32 of its
last full hash and the folder has no other files; the CRC finds flipped bits on the disk. If only timestamps differ, it
hashes again.

Not covered: between the check and the loading, a process of the same user could replace a file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from localmed.config import BUILT_IN, DEFAULT
from localmed.domain import Message, digest, message
from localmed.domain.errors import Busy, InputError, LimitExceeded, ModelError, UnknownName, UsageError, reason
from localmed.models import templates
from localmed.models.registry import registration, tested
from localmed.models.registry.header import READERS, Header, inspect
from localmed.models.registry.manifests import (
    FOLDER,
    LIBRARIES,
    NAME,
    ROLES,
    WRITERS,
    FileSpec,
    Footprint,
    ModelManifest,
    load_all,
)
from localmed.models.registry.registration import Model, Registrations, Stamp, StoredFile
from localmed.process.files import lock, sync

SPARE_BYTES = 64 * 2**20  # free space to leave after a copy, for the library's files
# By role, the roles of models that can serve it. An encoder with token vectors (BGE-M3) can rerank.
SERVED_BY = {"reranker": ("reranker", "encoder"), "planner": ("planner", "chat")}
WEIGHTY = (".json", ".safetensors", ".bin", ".pt", ".model", ".txt", ".gguf")  # files that determine a model's output
RESERVED = {DEFAULT, *(name for names in BUILT_IN.values() for name in names)}  # values of ``localmed models use``
HIDDEN = (".", "__pycache__")  # prefixes of files and folders that do not belong to a model
MOST_FILES = 1_000  # of one model; a spaCy pipeline has about 30
MOST_NAME = 200  # characters of a file's path within its model
PIECE = 4 * 2**20  # bytes read at a time: 4 ms of hashing, so that Ctrl-C and the progress bar are prompt

Progress = Callable[[float, str], object]  # bytes done since the last call, and the file
Started = Callable[[int], None]  # called with the number of bytes to read


def silent(done: float, doing: str) -> None:
    """A ``Progress`` that reports nothing."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A model that may be loaded, with the absolute paths of its files."""

    model: Model
    folder: Path

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, in the order of their names."""
        return tuple(self.folder / file.name for file in self.model.files)

    @property
    def gguf(self) -> Path:
        """The GGUF file (the first of several); raise ``ModelError`` if there is none."""
        paths = sorted(path for path in self.paths if path.suffix.lower() == ".gguf")
        if not paths:
            raise ModelError("model.without_gguf", name=self.model.name)
        return paths[0]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model that has a manifest, is registered, or both."""

    name: str
    role: str
    registered: bool
    footprint: Footprint


class Registry:
    """The models under one folder."""

    def __init__(self, folder: Path, manifests: Path = FOLDER) -> None:
        self.folder, self._manifests = folder, manifests

    def self_test(self, chat: str) -> tested.Result | None:
        """The self-test result of the chat model ``chat``, or None."""
        return tested.of_chat(self.folder, chat)

    @cached_property
    def manifests(self) -> dict[str, ModelManifest]:
        """All manifests by name: those shipped, and the site's own in the model folder."""
        return load_all(self._manifests, self.folder)

    @property
    def registrations(self) -> Registrations:
        """The current registrations; raise ``ModelError`` if ``registry.json`` is damaged."""
        return registration.read(self.folder)

    def model(self, name: str) -> Model:
        """The registered model ``name``; raise ``UnknownName`` if there is none."""
        known = self.registrations.models
        if name not in known:
            raise UnknownName("model.not_registered", names=tuple(known))
        return known[name]

    def candidates(self) -> list[Candidate]:
        """Every listed or registered model, by role, then by size."""
        known: Mapping[str, Model | ModelManifest] = {**self.manifests, **self.registrations.models}
        rows = [Candidate(name, model.role, isinstance(model, Model), model.footprint) for name, model in known.items()]
        return sorted(rows, key=lambda candidate: (ROLES.index(candidate.role), candidate.footprint.weights))

    def strangers(self) -> list[str]:
        """Folders beside the registered models that are not registered; nothing in them is loaded."""
        folders = sorted(path.name for path in self.folder.iterdir() if path.is_dir()) if self.folder.is_dir() else []
        return [name for name in folders if not name.startswith(".") and name not in self.registrations.models]

    # --- loading -----------------------------------------------------------------------------------------------------

    def open(self, name: str, progress: Progress = silent) -> Opened:
        """Verify and return the files of model ``name``; raise ``ModelError`` if one is missing or has changed."""
        model, folder = self.model(name), self.folder / name
        if stranger := self._stranger(model):
            raise ModelError("model.not_loaded", name=name, problem=message("model.file_stranger", file=stranger))
        files = tuple(self._verify(model, file, progress) for file in model.files)
        if files != model.files:
            with suppress(Busy, OSError), self._changing() as before:  # otherwise the next load hashes again
                if name in before.models:
                    registration.write(self.folder, before.with_model(replace(model, files=files)))
        return Opened(model, folder)

    def _verify(self, model: Model, file: StoredFile, progress: Progress) -> StoredFile:
        """``file`` with its current stamp; hashes it only if stamp or CRC differ from the last hash."""
        path = self.folder / model.name / file.name
        if problem := self._size_problem(path, file):
            raise ModelError("model.not_loaded", name=model.name, problem=problem)
        if Stamp.of(path) == file.stamp and file.crc == _crc(path):
            return file
        current = hash_file(path, file.name, progress)
        if current.sha256 != file.sha256:
            raise ModelError("model.not_loaded", name=model.name, problem=message("file.changed", file=file.name))
        return current

    def problems(self, name: str, full: bool, progress: Progress = silent) -> list[Message]:
        """Problems with the files of model ``name``: missing, unregistered, or of another size or hash.

        Hashes all files if ``full``, else only those whose stamp differs.
        """
        model = self.model(name)
        stranger = self._stranger(model)
        wrong = [message("model.file_stranger", file=stranger)] if stranger else []
        for file in model.files:
            path = self.folder / name / file.name
            problem = self._size_problem(path, file)
            looked_at = not problem and (full or Stamp.of(path) != file.stamp)
            if looked_at and hash_file(path, file.name, progress).sha256 != file.sha256:
                problem = message("file.changed", file=file.name)
            wrong += [problem] if problem else []
        return wrong

    def _stranger(self, model: Model) -> str:
        """An unregistered file in the model's folder, or "": a library that loads the folder could read it."""
        folder, known = self.folder / model.name, {file.name for file in model.files}
        there = (path.relative_to(folder).as_posix() for path in walk(folder))
        return next((name for name in there if name not in known), "")

    def _size_problem(self, path: Path, file: StoredFile) -> Message | None:
        if not path.is_file():
            return message("file.missing", file=file.name)
        size = path.stat().st_size
        if size == file.stamp.bytes:
            return None
        return message("file.other_size", file=file.name, size=size, listed=file.stamp.bytes)

    # --- changing ----------------------------------------------------------------------------------------------------

    def add(
        self,
        source: Path,
        by: str,
        name: str = "",
        role: str = "",
        template: str = "",
        progress: Progress = silent,
        started: Started | None = None,
    ) -> Model:
        """Register the file or folder ``source`` and return the model.

        Raise ``InputError`` if a file is refused, ``UsageError`` if the name is taken or the role is missing, ``Busy``
        while another process changes the registry, ``OSError`` (ENOSPC) if there is no room for the copy.
        """
        stays = source.is_dir() and source.resolve().parent == self.folder.resolve()
        choice = choose(source, self.manifests, name, role, stays)
        with self._changing() as before:
            inside = (self.folder / choice.name).resolve() == source.resolve()
            left = () if inside or choice.name in before.models else self._find_leftover(choice)
            if choice.name in before.models:
                raise UsageError("model.registered", name=choice.name)
            if not inside and not left and (self.folder / choice.name).exists():
                raise UsageError("model.folder_there", folder=str(self.folder / choice.name))
            header, template = read_header(choice), choose_template(choice, template)
            if started:
                started(sum(path.stat().st_size for path in choice.files.values()))
            files = left or (self._hash(choice, progress) if inside else self._copy(choice, progress))
            model = _model_of(choice, files, by, template, header)
            registration.write(self.folder, before.with_model(model))
        return model

    def _find_leftover(self, choice: Choice) -> tuple[StoredFile, ...]:
        """The complete copy of ``choice`` that an interrupted call left unrecorded, or ()."""
        folder = self.folder / choice.name
        paths = {str(path.relative_to(folder)): path for path in folder.rglob("*") if not path.is_dir()}
        if paths.keys() != choice.files.keys() or any(path.is_symlink() for path in paths.values()):
            return ()
        files = self._hash(replace(choice, files=paths))
        same = all(file.sha256 == hash_file(choice.files[file.name], file.name).sha256 for file in files)
        return files if same and not folder.is_symlink() else ()

    def _hash(self, choice: Choice, progress: Progress = silent) -> tuple[StoredFile, ...]:
        files = tuple(hash_file(path, name, progress) for name, path in sorted(choice.files.items()))
        for file in files:
            check_hash(file, choice.manifest)
        return files

    def _copy(self, choice: Choice, progress: Progress) -> tuple[StoredFile, ...]:
        """Copy the files to a temporary folder and rename it; a copy that fails leaves nothing."""
        needed = sum(path.stat().st_size for path in choice.files.values()) + SPARE_BYTES
        if shutil.disk_usage(self.folder).free < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        adding = self.folder / f".adding-{choice.name}"
        try:
            files = []
            for name, path in sorted(choice.files.items()):
                files.append(copy_file(path, adding / name, name, progress))
                check_hash(files[-1], choice.manifest)
            for folder in (adding, *(path for path in adding.rglob("*") if path.is_dir())):
                sync(folder)
            adding.rename(self.folder / choice.name)
        except BaseException:  # including Ctrl-C
            shutil.rmtree(adding, ignore_errors=True)
            raise
        sync(self.folder)
        return tuple(files)

    def remove(self, name: str) -> Model:
        """Delete model ``name`` and its files; the roles that it served then have no choice."""
        with self._changing() as before:
            model = self.model(name)
            registration.write(self.folder, before.without_model(name))
            leaving = self.folder / f".removing-{name}"
            if (self.folder / name).exists():
                (self.folder / name).rename(leaving)
            shutil.rmtree(leaving, ignore_errors=True)
        return model

    def use(self, role: str, name: str, progress: Progress = silent) -> Model:
        """Let model ``name`` serve ``role``; raise ``UsageError`` if it cannot, ``ModelError`` if it has changed."""
        if role not in ROLES:
            raise UsageError("model.no_role", roles=tuple(ROLES))
        self.check_role(role, name)
        model = self.open(name, progress).model
        self.assign(role, name)
        return model

    def check_role(self, role: str, name: str) -> Model:
        """The registered model ``name`` if it can serve ``role``; raise ``UsageError`` if not."""
        model = self.model(name)
        if model.role not in SERVED_BY.get(role, (role,)):
            code = "model.for_entailment" if role == "entailment" else "model.for_other_role"
            raise UsageError(code, name=name, role=model.role, other=role)
        return model

    def assign(self, role: str, name: str) -> None:
        """Record that ``name``, which is not checked here, serves ``role``; ``DEFAULT`` removes the choice."""
        with self._changing() as before:
            roles = {other: served for other, served in before.roles.items() if other != role}
            registration.write(self.folder, replace(before, roles=roles if name == DEFAULT else {**roles, role: name}))

    @contextmanager
    def _changing(self) -> Iterator[Registrations]:
        """The registrations, locked against other changes; first removes what an interruption left."""
        for folder in (self.folder.parent, self.folder):  # the data folder may be created here, for its owner only
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with (self.folder / "registry.lock").open("a") as stream:
            if not lock(stream):
                raise Busy("model.busy")
            for left in (*self.folder.glob(".adding-*"), *self.folder.glob(".removing-*")):
                shutil.rmtree(left, ignore_errors=True)
            yield self.registrations


def _model_of(choice: Choice, files: tuple[StoredFile, ...], by: str, template: str, header: Header | None) -> Model:
    manifest, now = choice.manifest, datetime.now(UTC).isoformat(timespec="seconds")
    usual = LIBRARIES.get(choice.role, ("",))[0]
    if choice.role == "entailment" and template:
        usual = LIBRARIES["entailment"][-1]  # a GGUF
    marked = _fingerprint(files, manifest)
    model = Model(
        choice.name, choice.role, manifest is not None, files, now, by, marked, header, template, library=usual
    )
    kept = ("context", "library", "languages", "query_prefix", "passage_prefix") if manifest else ()
    return replace(model, **{name: getattr(manifest, name) for name in kept})


def _fingerprint(files: tuple[StoredFile, ...], manifest: ModelManifest | None) -> str:
    """A hash of the prefixes and of the files that determine the output: weights, tokenizer, settings."""
    specs = manifest.files if manifest else (FileSpec("*"),)
    weighty = [file for file in files if file.name.endswith(WEIGHTY) and any(spec.matches(file.name) for spec in specs)]
    prefixes = [manifest.query_prefix, manifest.passage_prefix] if manifest else []
    return digest(json.dumps([sorted(file.sha256 for file in weighty), prefixes]))[:12]


# --- files to register ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Choice:
    """A model to register: its name, its role, and its files by their name in the model's folder."""

    name: str
    role: str
    files: Mapping[str, Path]
    manifest: ModelManifest | None


def choose(source: Path, manifests: Mapping[str, ModelManifest], name: str, role: str, stays: bool) -> Choice:
    """Identify the model in ``source``; ``name`` and ``role`` as requested, or "".

    Of a model with a manifest only the listed files are taken, but all files of a folder that ``stays``, since a
    library might load any of them. Raise ``InputError`` for files that cannot be registered, ``UsageError`` if a name
    or role is missing or wrong.
    """
    files = _find_files(source)
    manifest = manifests.get(name) if name else _find_manifest(source, manifests)
    if manifest and manifest.name in RESERVED:
        raise UsageError("model.built_in", name=manifest.name)
    if manifest:
        if role not in ("", manifest.role):
            raise UsageError("model.other_role", name=manifest.name, role=manifest.role)
        named = _listed_files(files, manifest, source)
        return Choice(manifest.name, manifest.role, files if stays else named, manifest)
    chosen = name or _plain(source.stem if source.is_file() else source.resolve().name)
    if not NAME.fullmatch(chosen) or chosen in RESERVED:
        raise UsageError("model.bad_name", name=chosen)
    if role not in ROLES:
        raise UsageError("model.no_manifest", roles=tuple(ROLES), name=chosen)
    return Choice(chosen, role, files, None)


def read_header(choice: Choice) -> Header | None:
    """The header of the largest file that describes the model, or None.

    Raise ``InputError`` for a damaged file, an architecture other than the manifest's, or a chat model without a GGUF.
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


def choose_template(choice: Choice, template: str) -> str:
    """The chat template: ``template``, else the manifest's; "" if the model neither chats nor is a GGUF that judges.

    Raise ``BadSettings`` for an unknown template, ``UsageError`` for a missing one.
    """
    judges = choice.role == "entailment" and any(name.lower().endswith(".gguf") for name in choice.files)
    if choice.role not in WRITERS and not judges:
        return ""
    name = template or (choice.manifest.template if choice.manifest else "")
    if not name:
        raise UsageError("model.no_chat_template", name=choice.name, known=tuple(templates.TEMPLATES))
    templates.find_template(name)
    return name


def check_hash(file: StoredFile, manifest: ModelManifest | None) -> None:
    """Raise ``InputError`` if the size or hash of ``file`` differs from the manifest's."""
    for spec in manifest.files if manifest else ():
        if not spec.matches(file.name):
            continue
        if spec.bytes and spec.bytes != file.stamp.bytes:
            raise InputError("model.manifest_size", name=file.name, size=file.stamp.bytes, listed=spec.bytes)
        if spec.sha256 and spec.sha256 != file.sha256:
            raise InputError("model.manifest_hash", name=file.name)


def _find_manifest(source: Path, manifests: Mapping[str, ModelManifest]) -> ModelManifest | None:
    """The manifest that lists this file, or whose name is the folder's."""
    if source.is_dir():
        return manifests.get(_plain(source.resolve().name))
    alone = (manifest for manifest in manifests.values() if len(manifest.files) == 1)
    return next((manifest for manifest in alone if manifest.files[0].matches(source.name)), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-._")[:60]


def _listed_files(files: Mapping[str, Path], manifest: ModelManifest, source: Path) -> dict[str, Path]:
    """The files that the manifest lists; a single file may have any name."""
    if source.is_file() and len(manifest.files) == 1:
        return dict(files)
    missing = [file.name for file in manifest.files if not file.optional and not any(map(file.matches, files))]
    if missing:
        raise InputError("model.incomplete", name=manifest.name, missing=missing[0])
    return {name: path for name, path in files.items() if any(spec.matches(name) for spec in manifest.files)}


def _find_files(source: Path) -> dict[str, Path]:
    """The files of ``source``, a file or a folder, by relative path; raise ``InputError`` for an irregular one."""
    paths = [source] if not source.is_dir() else list(walk(source))
    root = source if source.is_dir() else source.parent
    files = {path.relative_to(root).as_posix(): path for path in paths}
    if not files:
        raise InputError("model.no_files", name=source.name)
    for name, path in files.items():
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
    return files


def walk(root: Path) -> Iterator[Path]:
    """Every file below ``root`` except hidden ones, in order; links to folders are not followed."""
    count = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(HIDDEN))
        for name in sorted(name for name in names if not name.startswith(HIDDEN)):
            count += 1
            if count > MOST_FILES:
                raise LimitExceeded("model.many_files", name=root.name, most=MOST_FILES)
            yield Path(folder) / name


# --- large files, in pieces -------------------------------------------------------------------------------------------


def hash_file(path: Path, name: str, progress: Progress = silent) -> StoredFile:
    """Hash ``path`` as the stored file ``name``; raise ``InputError`` if it changes meanwhile."""
    stamp = Stamp.of(path)
    sha256, crc = _read_once(path, stamp, progress)
    return StoredFile(name, sha256, stamp, crc)


def copy_file(source: Path, target: Path, name: str, progress: Progress = silent) -> StoredFile:
    """Copy ``source`` to ``target`` (mode 0400) and hash it; raise ``InputError`` if it changes meanwhile."""
    before = Stamp.of(source)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = target.with_name(f"{target.name}.part")
    with part.open("wb") as stream:
        sha256, crc = _read_once(source, before, progress, stream.write)
        stream.flush()
        os.fchmod(stream.fileno(), 0o400)
        os.fsync(stream.fileno())
    part.replace(target)
    return StoredFile(name, sha256, Stamp.of(target), crc)


def _read_once(path: Path, stamp: Stamp, progress: Progress, write: Callable[[bytes], object] = len) -> tuple[str, int]:
    """SHA-256 and CRC-32 of ``path``, passing each piece to ``write``; raise ``InputError`` if it changes meanwhile."""
    sha256, crc = hashlib.sha256(), 0
    for piece in _pieces(path, stamp.bytes, progress):
        sha256.update(piece)
        crc = zlib.crc32(piece, crc)
        write(piece)
    if Stamp.of(path) != stamp:
        raise InputError("model.file_changed", name=path.name)
    return sha256.hexdigest(), crc


def _crc(path: Path) -> int:
    crc = 0
    for piece in _pieces(path, path.stat().st_size, silent):
        crc = zlib.crc32(piece, crc)
    return crc


def _pieces(path: Path, size: int, progress: Progress) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while size > 0 and (piece := stream.read(min(PIECE, size))):
            size -= len(piece)
            yield piece
            progress(len(piece), path.name)
