"""The registry: whole or not at all, and nothing that has changed is opened. Each test does the bad thing."""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from localmed.errors import BadSettings, Busy, InputError, LimitExceeded, ModelError, UnknownName, UsageError
from localmed.models import manifests, offered, record
from localmed.models.copying import PIECE, silent
from localmed.models.manifests import ROLES, load, load_all
from localmed.models.registry import Registry
from localmed.models.templates import TEMPLATES
from tests.models import model_files as files
from tests.models.model_files import make

MANIFEST = """
name = "tiny"
role = "chat"
family = "Tiny"
title = "Tiny chat"
licence = "MIT"
source = "made here"
languages = ["en"]
context = 4096
template = "chatml"
[[files]]
name = "Tiny-*.gguf"
{hash}
[shape]
architecture = "qwen3"
parameters = 1000
bits_per_weight = 8
layers = 2
kv_heads = 2
head_width = 8
"""
ENCODER = """
name = "small-encoder"
role = "encoder"
family = "Small"
title = "Small encoder"
licence = "MIT"
source = "made here"
[[files]]
name = "config.json"
[[files]]
name = "model.safetensors | pytorch_model.bin"
[[files]]
name = "extra/*.json"
optional = true
"""
CONTENT = files.gguf()


def write_manifests(folder: Path, hashed: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tiny.toml").write_text(MANIFEST.format(hash=hashed))
    (folder / "small-encoder.toml").write_text(ENCODER)
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "models", write_manifests(tmp_path / "manifests"))


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return make(tmp_path / "stick" / "Tiny-Q8_0.gguf", CONTENT)


@pytest.fixture
def added(registry: Registry, tiny: Path) -> Registry:
    registry.add(tiny, "librarian")
    registry.use("chat", "tiny")
    return registry


def encoder_folder(folder: Path) -> Path:
    make(folder / "config.json", b"{}")
    make(folder / "model.safetensors", files.safetensors())
    make(folder / "extra" / "a.json", b"{}")
    make(folder / "onnx" / "model.onnx", b"not wanted")
    make(folder / ".cache" / "x", b"hidden")
    return folder


def stored(registry: Registry, name: str = "tiny", file: str = "Tiny-Q8_0.gguf") -> Path:
    path = registry.folder / name / file
    path.chmod(0o600)
    return path


def leftovers(registry: Registry) -> list[str]:
    return sorted(path.name for path in registry.folder.iterdir() if path.name.startswith((".adding", ".removing")))


# --- adding --------------------------------------------------------------------------------------------------------


def test_a_file_is_copied_hashed_and_recorded(registry: Registry, tiny: Path) -> None:
    seen: list[float] = []
    totals: list[int] = []
    model = registry.add(tiny, "librarian", progress=lambda done, _: seen.append(done), started=totals.append)
    assert (model.name, model.role, model.listed, model.by, model.template) == (
        "tiny",
        "chat",
        True,
        "librarian",
        "chatml",
    )
    assert model.files[0].sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert totals == [len(CONTENT)] == [sum(seen)]
    assert model.header is not None
    assert model.header.architecture == "qwen3"
    assert registry.model("tiny") == model  # as it was written
    [path] = registry.opened("tiny").paths
    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(registry.folder.stat().st_mode) == 0o700
    assert not leftovers(registry)


def test_a_folder_takes_what_its_manifest_names(registry: Registry, tmp_path: Path) -> None:
    model = registry.add(encoder_folder(tmp_path / "stick" / "Small-Encoder"), "x")
    assert [each.name for each in model.files] == ["config.json", "extra/a.json", "model.safetensors"]
    assert registry.opened("small-encoder").paths[1].read_bytes() == b"{}"


def test_a_folder_that_lies_in_its_place_is_not_copied(registry: Registry) -> None:
    folder = encoder_folder(registry.folder / "small-encoder")
    before = (folder / "model.safetensors").stat().st_ino
    registry.add(folder, "x")
    assert registry.opened("small-encoder").paths[2].stat().st_ino == before
    assert (folder / "onnx").exists()


def test_a_model_that_no_manifest_lists(registry: Registry, tmp_path: Path) -> None:
    path = make(tmp_path / "Some Model v2.gguf", CONTENT)
    with pytest.raises(UsageError, match="--role"):
        registry.add(path, "x")
    model = registry.add(path, "x", role="chat", template="llama3")
    assert (model.name, model.listed, model.template, model.role) == ("some-model-v2", False, "llama3", "chat")


def test_a_split_model_counts_all_its_files(registry: Registry, tmp_path: Path) -> None:
    make(tmp_path / "big" / "big-00001-of-00002.gguf", CONTENT)
    make(tmp_path / "big" / "big-00002-of-00002.gguf", files.gguf([("split.no", files.U32, 1)]))
    header = registry.add(tmp_path / "big", "x", role="chat").header
    assert header is not None
    assert (header.architecture, header.parameters) == ("qwen3", 2 * 68)
    assert registry.opened("big").gguf.name == "big-00001-of-00002.gguf"


@pytest.mark.parametrize("hashed", ['sha256 = "00ff"', "bytes = 7"])
def test_a_file_that_is_not_the_manifests_is_refused(tmp_path: Path, tiny: Path, hashed: str) -> None:
    registry = Registry(tmp_path / "models", write_manifests(tmp_path / "manifests", hashed))
    with pytest.raises(InputError, match="than its manifest says"):
        registry.add(tiny, "x")
    assert not registry.record.models
    assert not leftovers(registry)
    assert not (registry.folder / "tiny").exists()


def test_a_file_that_is_the_manifests_is_taken(tmp_path: Path, tiny: Path) -> None:
    known = f'sha256 = "{hashlib.sha256(CONTENT).hexdigest()}"\nbytes = {len(CONTENT)}'
    registry = Registry(tmp_path / "models", write_manifests(tmp_path / "manifests", known))
    assert registry.add(tiny, "x").listed
    assert registry.manifests["tiny"].hashed


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"GGUF" + bytes(45), "version"),
        (CONTENT[:-1], "early"),
        (files.gguf([("general.architecture", files.STRING, "llama"), *files.ENTRIES[1:]]), "architecture"),
    ],
)
def test_a_bad_file_is_refused_before_it_is_copied(
    registry: Registry, tmp_path: Path, content: bytes, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        registry.add(make(tmp_path / "Tiny-Q4.gguf", content), "x")
    assert not registry.record.models


def test_chat_needs_a_gguf(registry: Registry, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no \.gguf"):
        registry.add(make(tmp_path / "a.bin", b"x"), "x", role="chat")


def test_what_is_no_file_is_refused(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="not a regular file"):
        registry.add(tmp_path / "pipe", "x", role="chat")
    (tmp_path / "none").mkdir()
    with pytest.raises(InputError, match="holds no files"):
        registry.add(tmp_path / "none", "x", role="chat")
    monkeypatch.setattr(offered, "MOST_FILES", 2)
    with pytest.raises(LimitExceeded, match="more than 2"):
        registry.add(encoder_folder(tmp_path / "small-encoder"), "x")


def test_an_incomplete_folder_is_refused(registry: Registry, tmp_path: Path) -> None:
    folder = encoder_folder(tmp_path / "small-encoder")
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="pytorch_model.bin is missing"):
        registry.add(folder, "x")


@pytest.mark.parametrize("name", ["../up", "/abs", "Ünï", "a" * 61, ".hidden", "a b"])
def test_names_that_cannot_be(registry: Registry, tiny: Path, name: str) -> None:
    with pytest.raises(UsageError):
        registry.add(tiny, "x", name=name, role="chat")
    assert not registry.folder.exists()


def test_a_name_that_is_taken(added: Registry, tiny: Path) -> None:
    with pytest.raises(UsageError, match="registered already"):
        added.add(tiny, "x")
    (added.folder / "mine").mkdir()
    with pytest.raises(UsageError, match="not registered"):
        added.add(tiny, "x", name="mine", role="chat")
    assert (added.folder / "mine").exists()
    assert added.strangers() == ["mine"]


def test_one_change_at_a_time(added: Registry, tiny: Path) -> None:
    with added._changing():
        for change in (
            lambda: added.add(tiny, "x", "b", "chat"),
            lambda: added.remove("tiny"),
            lambda: added.use("chat", "tiny"),
        ):
            with pytest.raises(Busy):
                change()
        assert added.opened("tiny")  # reading goes on


def test_ctrl_c_leaves_nothing(registry: Registry, tiny: Path) -> None:
    def interrupted(done: float, doing: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        registry.add(tiny, "x", progress=interrupted)
    assert not leftovers(registry)
    assert not registry.record.models
    assert registry.add(tiny, "x")


def test_a_file_that_grows_while_it_is_copied(registry: Registry, tiny: Path) -> None:
    def grow(done: float, doing: str) -> None:
        with tiny.open("ab") as stream:
            stream.write(b"more")

    with pytest.raises(InputError, match="changed while it was read"):
        registry.add(tiny, "x", progress=grow)
    assert not leftovers(registry)


KILLED = """
import sys, time, pathlib
from localmed.models.registry import Registry
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
        registry.opened("tiny")
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
        monkeypatch.setattr("localmed.models.registry.SPARE_BYTES", spare)
    tiny.write_bytes(files.gguf(data=20 * 2**20))
    registry = Registry(small_disk / "models", write_manifests(tmp_path / "manifests"))
    with pytest.raises(OSError, match="No space left") as caught:
        registry.add(tiny, "x")
    assert caught.value.errno == errno.ENOSPC
    assert not leftovers(registry)
    assert not registry.record.models


# --- opening -------------------------------------------------------------------------------------------------------


def test_the_model_of_a_role(added: Registry) -> None:
    assert added.serving("chat").gguf.name == "Tiny-Q8_0.gguf"
    with pytest.raises(ModelError, match="no model was chosen for encoder"):
        added.serving("encoder")
    with pytest.raises(UnknownName):
        added.opened("other")


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
    ("harm", "told"),
    [
        (flip, "sha256 differs"),
        (replace_with_the_same_dates, "sha256 differs"),
        (lambda path: os.truncate(path, 50), "has 50 bytes"),
        (lambda path: os.truncate(path, 0), "has 0 bytes"),
        (lambda path: path.unlink(), "is missing"),
        (lambda path: path.write_bytes(CONTENT + b"x"), "bytes, not"),
    ],
)
def test_a_changed_file_is_never_opened(added: Registry, harm: object, told: str) -> None:
    assert callable(harm)
    harm(stored(added))
    for attempt in (lambda: added.opened("tiny"), lambda: added.serving("chat"), lambda: added.use("chat", "tiny")):
        with pytest.raises(ModelError, match=told):
            attempt()
    for full in (False, True):
        [problem] = added.problems("tiny", full)
        assert told in problem


def test_a_flipped_bit_beneath_the_dates_needs_a_full_hash(added: Registry) -> None:
    """The documented limit: size and every date as they were. A disk's own fault looks so."""
    path = stored(added)
    flip(path)
    before = added.record
    file = before.models["tiny"].files[0]
    forged = record.StoredFile(file.name, file.sha256, record.Stamp.of(path))
    model = before.models["tiny"]
    record.write(added.folder, before.having(type(model)(**{**fields_of(model), "files": (forged,)})))
    assert added.opened("tiny")
    assert not added.problems("tiny", full=False)
    assert added.problems("tiny", full=True) == ["Tiny-Q8_0.gguf has changed (sha256 differs)"]


def fields_of(model: record.Model) -> dict[str, object]:
    return {name: getattr(model, name) for name in record.Model.__dataclass_fields__}


def test_a_touched_file_is_hashed_once(added: Registry) -> None:
    os.utime(stored(added))
    seen: list[str] = []
    for _ in range(3):
        added.opened("tiny", lambda done, doing: seen.append(doing))
    assert seen == ["Tiny-Q8_0.gguf"]


def test_a_touched_file_opens_while_somebody_changes_the_registry(added: Registry) -> None:
    os.utime(stored(added))
    with added._changing():
        assert added.opened("tiny").paths


# --- using and removing --------------------------------------------------------------------------------------------


def test_roles(added: Registry, tmp_path: Path) -> None:
    added.add(encoder_folder(tmp_path / "small-encoder"), "x")
    added.use("entailment", "tiny")  # a chat model may judge
    assert added.record.roles == {"chat": "tiny", "entailment": "tiny"}
    for role, name, error in (
        ("encoder", "tiny", UsageError),
        ("chat", "small-encoder", UsageError),
        ("chat", "nothing", UnknownName),
        ("poet", "tiny", UsageError),
    ):
        with pytest.raises(error):
            added.use(role, name)


def test_removing(added: Registry) -> None:
    added.remove("tiny")
    assert not (added.folder / "tiny").exists()
    assert not added.record.models
    assert not added.record.roles
    with pytest.raises(UnknownName):
        added.remove("tiny")


def test_removing_what_is_gone_already(added: Registry) -> None:
    stored(added).unlink()
    added.remove("tiny")
    assert not added.record.models


# --- the record ----------------------------------------------------------------------------------------------------


def test_every_damage_to_the_record_is_told(added: Registry) -> None:
    path = added.folder / record.FILE
    whole = path.read_bytes()
    for damage in (b"", whole[:-20], b"[]", b"{}", b"\xff\xfe", whole.replace(b'"tiny"', b'"tinx"', 1), b"null"):
        path.write_bytes(damage)
        with pytest.raises(ModelError, match="cannot be read"):
            added.opened("tiny")
        with pytest.raises(ModelError):
            added.remove("tiny")
        assert path.read_bytes() == damage  # not overwritten with an empty one
    path.write_bytes(whole)
    assert added.opened("tiny")


def test_a_flipped_bit_in_the_record_is_told_or_harmless(added: Registry) -> None:
    path = added.folder / record.FILE
    whole, before = path.read_bytes(), added.record
    for place in range(0, len(whole), 7):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            assert added.record == before
        except ModelError:
            continue


def test_after_the_record_is_lost_models_are_added_where_they_lie(added: Registry) -> None:
    (added.folder / record.FILE).unlink()
    assert added.strangers() == ["tiny"]
    assert added.add(added.folder / "tiny", "x").name == "tiny"
    assert added.opened("tiny")


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
            assert added.record.roles == {"chat": "tiny"}
    finally:
        stop.set()
        thread.join()


# --- manifests -----------------------------------------------------------------------------------------------------


def test_the_manifests_that_ship() -> None:
    shipped = load_all()
    assert {each.role for each in shipped.values()} == set(ROLES)
    for name, each in shipped.items():
        assert (manifests.FOLDER / f"{name}.toml").exists()
        assert each.licence
        assert each.source
        assert each.title
        for spec in each.files:
            assert len(spec.sha256) in (0, 64)
            assert bool(spec.sha256) == bool(spec.bytes)
        if each.role == "chat":
            assert each.template in TEMPLATES
            assert each.footprint.weights > 2**30
            assert each.footprint.bytes_a_token > 0
    sizes = sorted(each.shape.parameters for each in shipped.values() if each.role == "chat")
    assert sizes[0] < 2e9
    assert any(7e9 <= each <= 9e9 for each in sizes)
    assert sizes[-1] >= 27e9


def test_an_estimate_by_hand() -> None:
    footprint = load_all()["qwen3-8b"].footprint
    assert footprint.bytes_a_token == 36 * 8 * 128 * 2 * 2  # layers, heads, width, keys and values, half precision
    assert footprint.weights == int(8.2e9 * 4.9 / 8)
    assert not footprint.exact


def test_a_registered_model_is_measured_by_its_own_file(added: Registry) -> None:
    [candidate] = [each for each in added.candidates() if each.name == "tiny"]
    assert candidate.footprint.exact
    assert candidate.footprint.weights == len(CONTENT)
    assert candidate.footprint.bytes_a_token == 4 * 2 * 16 * 2
    assert candidate.footprint.context == 8192  # the header's, not the manifest's


@pytest.mark.parametrize(
    "wrong",
    [
        ("context = 4096", "context = -1"), ("context = 4096", 'context = "x"'), ('role = "chat"', 'role = "poet"'),
        ('name = "tiny"', 'name = "../tiny"'), ("layers = 2", "layer = 2"), ('licence = "MIT"', ""),
        ('["en"]', "[1]"), ("[[files]]", "[files]"), ('name = "Tiny-*.gguf"', ""), ("kv_heads = 2", "kv_heads = true"),
        ("[shape]", "[[shape]]"), ('family = "Tiny"', "family = "),
    ],
)  # fmt: skip
def test_a_manifest_that_is_wrong(tmp_path: Path, wrong: tuple[str, str]) -> None:
    path = tmp_path / "a.toml"
    path.write_text(MANIFEST.format(hash="").replace(*wrong, 1))
    with pytest.raises(BadSettings, match=r"a\.toml"):
        load(path)


def test_nobody_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    silent(1, "x")
    assert capsys.readouterr() == ("", "")
