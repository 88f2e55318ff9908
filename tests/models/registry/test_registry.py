"""The registry: whole or not at all, and nothing that has changed is opened. Each test does the bad thing."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localmed.domain.errors import BadSettings, Busy, InputError, UnknownName, UsageError
from localmed.models.registry import registration
from localmed.models.registry import registry as module
from localmed.models.registry.registry import PIECE, Registry
from tests.models import model_files as files
from tests.models.model_files import make
from tests.models.registered import CONTENT, encoder_folder, leftovers, write_manifests
from tests.words import pattern


def test_a_file_is_copied_hashed_and_recorded(registry: Registry, tiny: Path) -> None:
    seen: list[float] = []
    totals: list[int] = []
    model = registry.add(tiny, "librarian", progress=lambda done, _: seen.append(done), started=totals.append)
    named = ("tiny", "chat", True, "librarian", "chatml")
    assert (model.name, model.role, model.listed, model.by, model.template) == named
    assert model.files[0].sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert totals == [len(CONTENT)] == [sum(seen)]
    assert model.header is not None
    assert model.header.architecture == "qwen3"
    assert registry.model("tiny") == model  # as it was written
    [path] = registry.open("tiny").paths
    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(registry.folder.stat().st_mode) == 0o700
    data = Registry(tiny.parent / "data" / "models")
    data.add(tiny, "librarian", role="chat", template="chatml")
    assert stat.S_IMODE(data.folder.parent.stat().st_mode) == 0o700
    assert not leftovers(registry)


def test_a_copy_that_was_not_recorded_is_taken_if_it_is_the_same(registry: Registry, tiny: Path) -> None:
    """As a kill leaves it between the renaming of the copy and the record."""
    added = registry.add(tiny, "x")
    inode = registry.open("tiny").paths[0].stat().st_ino
    registration.write(registry.folder, registry.registrations.without_model("tiny"))
    assert registry.add(tiny, "x").files[0].sha256 == added.files[0].sha256
    assert registry.open("tiny").paths[0].stat().st_ino == inode, "it is not copied again"
    registration.write(registry.folder, registry.registrations.without_model("tiny"))
    tiny.write_bytes(CONTENT[:-1] + b"?")
    with pytest.raises(UsageError) as raised:
        registry.add(tiny, "x")
    assert raised.value.message.code == "model.folder_there"


def test_a_folder_takes_what_its_manifest_names(registry: Registry, tmp_path: Path) -> None:
    model = registry.add(encoder_folder(tmp_path / "stick" / "Small-Encoder"), "x")
    assert [file.name for file in model.files] == ["config.json", "extra/a.json", "model.safetensors"]
    assert registry.open("small-encoder").paths[1].read_bytes() == b"{}"


def test_a_folder_that_lies_in_its_place_is_not_copied(registry: Registry) -> None:
    folder = encoder_folder(registry.folder / "small-encoder")
    before = (folder / "model.safetensors").stat().st_ino
    registry.add(folder, "x")
    assert registry.open("small-encoder").folder.joinpath("model.safetensors").stat().st_ino == before
    assert "onnx/model.onnx" in [file.name for file in registry.model("small-encoder").files]  # it might be loaded


def test_a_model_that_no_manifest_lists_needs_a_role_and_a_template(registry: Registry, tmp_path: Path) -> None:
    path = make(tmp_path / "Some Model v2.gguf", CONTENT)
    with pytest.raises(UsageError, match="--role"):
        registry.add(path, "x")
    with pytest.raises(UsageError, match=r"the chat template of some-model-v2\. Give --template, one of: chatml"):
        registry.add(path, "x", role="chat")
    with pytest.raises(BadSettings, match="no chat template 'poem'"):
        registry.add(path, "x", role="chat", template="poem")
    assert not registry.registrations.models
    assert not (registry.folder / "some-model-v2").exists()
    assert registry.add(path, "x", "other", role="encoder", template="poem").template == ""
    model = registry.add(path, "x", role="chat", template="llama3")
    assert (model.name, model.listed, model.template, model.role) == ("some-model-v2", False, "llama3", "chat")


def test_a_split_model_is_described_by_its_first_file(registry: Registry, tmp_path: Path) -> None:
    make(tmp_path / "big" / "big-00001-of-00002.gguf", CONTENT)
    make(tmp_path / "big" / "big-00002-of-00002.gguf", files.gguf([("split.no", files.U32, 1)]))
    header = registry.add(tmp_path / "big", "x", role="chat", template="chatml").header
    assert header is not None
    assert header.architecture == "qwen3"
    assert registry.open("big").gguf.name == "big-00001-of-00002.gguf"


@pytest.mark.parametrize("hashed", ['sha256 = "00ff"', "bytes = 7", ""])
def test_a_file_that_is_not_the_manifests_is_refused(tmp_path: Path, tiny: Path, hashed: str) -> None:
    known = hashed or f'sha256 = "{hashlib.sha256(CONTENT).hexdigest()}"\nbytes = {len(CONTENT)}'
    registry = Registry(tmp_path / "models", write_manifests(tmp_path / "manifests", known))
    if not hashed:  # it is the manifest's
        assert registry.add(tiny, "x").listed
        return
    with pytest.raises(InputError, match="its manifest"):
        registry.add(tiny, "x")
    assert not registry.registrations.models
    assert not leftovers(registry)
    assert not (registry.folder / "tiny").exists()


LLAMA = files.gguf([("general.architecture", files.STRING, "llama"), *files.ENTRIES[1:]])
REFUSED: dict[str, Callable[[Path], object]] = {  # what is wrong with a file or folder called small-encoder or Tiny-Q4
    "empty": lambda root: make(root / "Tiny-Q4.gguf", b""),
    "version": lambda root: make(root / "Tiny-Q4.gguf", b"GGUF" + bytes(45)),
    "early": lambda root: make(root / "Tiny-Q4.gguf", CONTENT[:-1]),
    "architecture": lambda root: make(root / "Tiny-Q4.gguf", LLAMA),
    r"no \.gguf": lambda root: make(root / "Tiny-Q4.bin", b"x"),
    "not a regular file": lambda root: os.mkfifo(root / "Tiny-Q4"),
    pattern("model.no_files"): lambda root: (root / "Tiny-Q4").mkdir(),
    "is missing": lambda root: (encoder_folder(root / "small-encoder") / "model.safetensors").unlink(),
    "more than 3": lambda root: encoder_folder(root / "small-encoder"),
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_cannot_be_a_model_is_refused_before_it_is_copied(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    root = tmp_path / "stick"
    root.mkdir()
    REFUSED[problem](root)
    monkeypatch.setattr(module, "MOST_FILES", 3)
    [source] = root.iterdir()
    with pytest.raises(InputError, match=problem):
        registry.add(source, "x", role="encoder" if source.name == "small-encoder" else "chat")
    assert not registry.registrations.models
    assert not leftovers(registry)


@pytest.mark.parametrize("name", ["../up", "/abs", "Ünï", "a" * 61, ".hidden", "a b"])
def test_names_that_cannot_be(registry: Registry, tiny: Path, name: str) -> None:
    with pytest.raises(UsageError):
        registry.add(tiny, "x", name=name, role="chat")
    assert not registry.folder.exists()


def test_a_name_that_is_taken(added: Registry, tiny: Path) -> None:
    with pytest.raises(UsageError, match=pattern("model.registered.what")):
        added.add(tiny, "x")
    (added.folder / "mine").mkdir()
    with pytest.raises(UsageError, match="not registered"):
        added.add(tiny, "x", name="mine", role="chat")
    assert (added.folder / "mine").exists()
    assert added.strangers() == ["mine"]


def test_one_change_at_a_time(added: Registry, tiny: Path) -> None:
    with added._changing():
        with pytest.raises(Busy):
            added.add(tiny, "x", "b", "chat")
        with pytest.raises(Busy):
            added.remove("tiny")
        with pytest.raises(Busy):
            added.use("chat", "tiny")
        assert added.open("tiny")  # reading goes on


def test_what_happens_while_it_is_copied_leaves_nothing(registry: Registry, tiny: Path) -> None:
    """Ctrl-C, and a file that grows."""

    def interrupted(done: float, doing: str) -> None:
        raise KeyboardInterrupt

    def grow(done: float, doing: str) -> None:
        with tiny.open("ab") as stream:
            stream.write(b"more")

    with pytest.raises(KeyboardInterrupt):
        registry.add(tiny, "x", progress=interrupted)
    assert not leftovers(registry)
    with pytest.raises(InputError, match=pattern("model.file_changed")):
        registry.add(tiny, "x", progress=grow)
    assert not leftovers(registry)
    assert not registry.registrations.models
    assert registry.add(tiny, "x")


KILLED = """
import sys, time, pathlib
from localmed.models.registry.registry import Registry
root = pathlib.Path(sys.argv[1])
def wait(done, doing):
    print("copying", flush=True)
    time.sleep(60)
Registry(root / "models", root / "manifests").add(root / "stick" / "Tiny-Q8_0.gguf", "x", progress=wait)
"""


def test_kill_9_while_adding(registry: Registry, tiny: Path, tmp_path: Path) -> None:
    tiny.write_bytes(files.gguf(data=PIECE * 2))
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"copying\n"
        process.send_signal(signal.SIGKILL)
    assert leftovers(registry) == [".adding-tiny"]
    with pytest.raises(UnknownName):
        registry.open("tiny")
    assert registry.strangers() == []
    assert registry.add(tiny, "x").bytes == tiny.stat().st_size
    assert not leftovers(registry)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 8 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("spare", [None, -(2**40)])
def test_a_full_disk(
    small_disk: Path, tmp_path: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, spare: int | None
) -> None:
    """Told beforehand; and while copying, where the look beforehand was too hopeful."""
    if spare is not None:
        monkeypatch.setattr("localmed.models.registry.registry.SPARE_BYTES", spare)
    tiny.write_bytes(files.gguf(data=20 * 2**20))
    registry = Registry(small_disk / "models", write_manifests(tmp_path / "manifests"))
    with pytest.raises(OSError, match="No space left") as caught:
        registry.add(tiny, "x")
    assert caught.value.errno == errno.ENOSPC
    assert not leftovers(registry)
    assert not registry.registrations.models
