"""What is opened, used and removed: nothing that has changed, nothing that is not recorded."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.domain import message
from localmed.domain.errors import ModelError, UnknownName, UsageError
from localmed.messages import render
from localmed.models.registry import registration
from localmed.models.registry.registry import Registry
from tests.models.model_files import make
from tests.models.registered import CONTENT, encoder_folder, stored
from tests.words import pattern


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def replace_with_the_same_dates(path: Path) -> None:
    """Another file of equal size and modification time: the status time still tells."""
    before = path.stat()
    other = make(path.with_name("other"), bytes(before.st_size))
    other.replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (flip, "sha256 differs"),
        (replace_with_the_same_dates, "sha256 differs"),
        (lambda path: os.truncate(path, 50), "has 50 bytes"),
        (lambda path: os.truncate(path, 0), "has 0 bytes"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(CONTENT + b"x"), "bytes, not"),
    ],
)
def test_a_changed_file_is_never_opened(added: Registry, harm: object, reason: str) -> None:
    assert callable(harm)
    harm(stored(added))
    for attempt in (lambda: added.open("tiny"), lambda: added.use("chat", "tiny")):
        with pytest.raises(ModelError, match=reason):
            attempt()
    for full in (False, True):
        [problem] = added.problems("tiny", full)
        assert reason in render(problem, "en")


@pytest.mark.parametrize("name", ["model.safetensors", "deep/down/code.py"])
def test_a_file_put_beside_is_told(added: Registry, name: str) -> None:
    """A library that loads a whole folder could take it for the model's."""
    make(added.folder / "tiny" / name, b"x" * 30)
    with pytest.raises(ModelError, match=pattern("model.file_stranger")):
        added.open("tiny")
    assert added.problems("tiny", full=False) == [message("model.file_stranger", file=name)]


def test_a_flipped_bit_beneath_the_dates_is_not_loaded(added: Registry) -> None:
    """Size and every date as they were: a disk's own fault looks so. A look without loading needs a full hash."""
    path = stored(added)
    flip(path)
    model = added.model("tiny")
    forged = replace(model.files[0], stamp=registration.Stamp.of(path))
    registration.write(added.folder, added.registrations.with_model(replace(model, files=(forged,))))
    with pytest.raises(ModelError, match="sha256 differs"):
        added.open("tiny")
    assert not added.problems("tiny", full=False)
    assert added.problems("tiny", full=True) == [message("file.changed", file="Tiny-Q8_0.gguf")]


def test_a_touched_file_or_one_without_a_sum_is_hashed_once(added: Registry) -> None:
    """As an earlier version left it. Somebody who changes the registry meanwhile is no hindrance."""
    model, seen = added.model("tiny"), list[str]()
    older = tuple(replace(file, crc=-1) for file in model.files)
    registration.write(added.folder, added.registrations.with_model(replace(model, files=older)))
    with added._changing():
        assert added.open("tiny").model.files == older
    for _ in range(3):
        added.open("tiny", lambda done, doing: seen.append(doing))
    assert added.model("tiny").files == model.files
    os.utime(stored(added))
    for _ in range(3):
        added.open("tiny", lambda done, doing: seen.append(doing))
    assert seen == ["Tiny-Q8_0.gguf"] * 2


# --- using and removing --------------------------------------------------------------------------------------------


def test_roles(added: Registry, tmp_path: Path) -> None:
    added.add(encoder_folder(tmp_path / "small-encoder"), "x")
    added.assign("entailment", "chat")  # whatever serves chat
    assert added.registrations.roles == {"chat": "tiny", "entailment": "chat"}
    added.use("encoder", "small-encoder")
    added.use("reranker", "small-encoder")  # one with token vectors can
    added.assign("reranker", "default")
    assert added.registrations.roles == {"chat": "tiny", "entailment": "chat", "encoder": "small-encoder"}
    added.remove("small-encoder")
    assert added.registrations.roles == {"chat": "tiny", "entailment": "chat"}
    added.add(encoder_folder(tmp_path / "small-encoder"), "x")
    for role, name, error in (
        ("encoder", "tiny", UsageError),
        ("chat", "small-encoder", UsageError),
        ("entailment", "tiny", UsageError),
        ("chat", "nothing", UnknownName),
        ("poet", "tiny", UsageError),
    ):
        with pytest.raises(error):
            added.use(role, name)


@pytest.mark.parametrize("gone", [False, True])
def test_removing(added: Registry, gone: bool) -> None:
    if gone:
        stored(added).unlink()
    added.remove("tiny")
    assert not (added.folder / "tiny").exists()
    assert not added.registrations.models
    assert not added.registrations.roles
    with pytest.raises(UnknownName):
        added.remove("tiny")


# --- the record ----------------------------------------------------------------------------------------------------


def test_every_damage_to_the_record_is_told(added: Registry) -> None:
    path = added.folder / registration.FILE
    whole = path.read_bytes()
    for damage in (b"", whole[:-20], b"[]", b"{}", b"\xff\xfe", whole.replace(b'"tiny"', b'"tinx"', 1), b"null"):
        path.write_bytes(damage)
        with pytest.raises(ModelError, match="cannot be read"):
            added.open("tiny")
        with pytest.raises(ModelError):
            added.remove("tiny")
        assert path.read_bytes() == damage  # not overwritten with an empty one
    path.write_bytes(whole)
    before = added.registrations
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with suppress(ModelError):
            assert added.registrations == before, "a flipped bit is told or harmless"


def test_after_the_record_is_lost_models_are_added_where_they_lie(added: Registry) -> None:
    (added.folder / registration.FILE).unlink()
    assert added.strangers() == ["tiny"]
    assert added.add(added.folder / "tiny", "x").name == "tiny"
    assert added.open("tiny")


def test_a_record_written_while_it_is_read(added: Registry) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            added.use("chat", "tiny")

    thread = threading.Thread(target=write)
    thread.start()
    try:
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            assert added.registrations.roles == {"chat": "tiny"}
    finally:
        stop.set()
        thread.join()
