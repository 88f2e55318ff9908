"""Headers of model files: what they say, and that no header can do harm."""

from __future__ import annotations

import io
import os
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.domain.errors import InputError, LimitExceeded
from localmed.models.registry import header
from localmed.models.registry.header import Header, inspect
from tests.models import model_files as files
from tests.models.model_files import ARRAY, ENTRIES, F32, I32, STRING, U8, U32, make
from tests.models.tiny_gguf import TINY, write_gguf
from tests.words import pattern


def read(content: bytes, kind: str = ".gguf") -> Header:
    return header.READERS[kind](io.BytesIO(content), len(content))


def test_what_a_header_says() -> None:
    assert read(files.gguf()) == Header("gguf", "qwen3", context=8192, kv_numbers=4 * 2 * (8 + 8))
    # layers, heads of keys and values, widths (64 / 8); and where heads differ by layer
    named = [entry_ for entry_ in ENTRIES if entry_[0] != "qwen3.attention.head_count_kv"]
    named += [
        ("qwen3.attention.head_count_kv", ARRAY, (I32, [2, 0, 1, 1])),
        ("qwen3.attention.key_length", U32, 16),
        ("qwen3.attention.value_length", U32, 4),
    ]
    assert read(files.gguf(named)).kv_numbers == (2 + 0 + 1 + 1) * (16 + 4)


def test_version_2_and_another_alignment() -> None:
    assert read(files.gguf(version=2)).architecture == "qwen3"
    aligned = [*ENTRIES, ("general.alignment", U32, 64)]
    tensors = [("a", (4,), 0, 0), ("b", (4,), 0, 64)]
    assert read(files.gguf(aligned, tensors, data=80, alignment=64)).context == 8192
    with pytest.raises(InputError) as caught:
        read(files.gguf(aligned, tensors, data=79, alignment=64))
    assert caught.value.message.code == "model.ends_early"


def test_part_of_a_model_in_several_files_needs_no_description() -> None:
    part = [("split.no", U32, 1), ("split.count", U32, 2)]
    assert read(files.gguf(part)).architecture == ""
    with pytest.raises(InputError, match="architecture"):
        read(files.gguf([("split.no", U32, 0)]))


def test_a_file_by_the_formats_own_writer(tmp_path: Path) -> None:
    template = "{{ raise_exception('run') }}"
    said = inspect(write_gguf(tmp_path / "a.gguf", template=template))
    assert (said.architecture, said.context) == ("llama", TINY.context)
    assert said.kv_numbers == TINY.layers * 2 * TINY.width  # every head has its own keys and values


def test_the_table_of_types_is_the_formats() -> None:
    import gguf as peer

    for kind, sizes in header.BLOCKS.items():
        assert peer.GGML_QUANT_SIZES[peer.GGMLQuantizationType(kind)] == sizes


HUGE = 2**64 - 1
WHOLE = files.gguf()
BAD = {
    "empty": b"",
    "another magic": b"GGML" + files.gguf()[4:],
    "version 4": files.gguf(version=4),
    "big-endian": b"GGUF" + struct.pack(">IQQ", 3, 2, 5) + bytes(200),
    "49 bytes that claim everything": b"GGUF" + struct.pack("<IQQ", 3, HUGE, HUGE) + bytes(25),
    "49 bytes with one endless array": (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + files.text("a")
                                        + struct.pack("<IIQ", 9, 8, HUGE)),
    "entries claimed below the bound": files.gguf(counts=(2, 60_000)),
    "tensors claimed below the bound": files.gguf(counts=(150_000, len(ENTRIES))),
    "a tensor too many": files.gguf(counts=(3, len(ENTRIES)), data=0),
    "no tensors": files.gguf(tensors=[]),
    "a long string": b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + files.text("a") + struct.pack("<IQ", 8, HUGE),
    "an array of arrays": files.gguf([*ENTRIES, ("x", ARRAY, (ARRAY, [(U8, [1])]))]),
    "an array of unknown things": (
        b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + files.text("a") + struct.pack("<IIQ", 9, 99, 1) + bytes(64)),
    "a key twice": files.gguf([*ENTRIES, ENTRIES[0]]),
    "an architecture that is a number": files.gguf([("general.architecture", U32, 7), *ENTRIES[1:]]),
    "absurd layers": files.gguf(files.changed(block_count=2**31)),
    "negative heads": files.gguf([*ENTRIES[:7], ("qwen3.attention.head_count_kv", I32, -2), *ENTRIES[8:]]),
    "alignment 0": files.gguf([*ENTRIES, ("general.alignment", U32, 0)]),
    "2**32 dimensions": (
        files.gguf(tensors=[], counts=(1, len(ENTRIES)), data=0) + files.text("a") + struct.pack("<I", 2**32 - 1)),
    "a size of 0": files.gguf(tensors=[("a", (0,), 0, 0)]),
    "sizes that wrap around": files.gguf(tensors=[("a", (2**32, 2**32), 0, 0)]),
    "rows that do not fit the type": files.gguf(tensors=[("a", (33,), 8, 0)]),
    "an offset beyond the end": files.gguf(tensors=[("a", (4,), 0, 2**40)]),
    "an offset that is not aligned": files.gguf(tensors=[("a", (4,), 0, 4)]),
    "no data": files.gguf(data=0),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_a_bad_header_is_told_in_bounded_time(name: str) -> None:
    began = time.process_time()
    with pytest.raises(InputError) as caught:
        read(BAD[name])
    assert time.process_time() - began < 1
    assert len(str(caught.value)) < 250
    assert str(caught.value).isprintable()


def test_every_truncation_is_told_and_a_long_header_ends_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in range(len(WHOLE)):
        with pytest.raises(InputError):
            read(WHOLE[:end])
    monkeypatch.setattr(header, "HEADER_BYTES", 200)
    with pytest.raises(InputError, match=pattern("model.header_cut")):
        read(WHOLE)


CHANGES = st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=8)), min_size=1, max_size=6)


@given(st.binary(max_size=400), CHANGES)
def test_noise_and_changes_never_do_more_than_fail(noise: bytes, changes: list[tuple[int, bytes]]) -> None:
    changed = bytearray(WHOLE)
    for place, data in changes:
        changed[place : place + len(data)] = data
    for content in (noise, b"GGUF\x03\x00\x00\x00" + noise, bytes(changed)):
        with suppress(InputError):
            assert read(content).architecture.isprintable()


# --- safetensors ---------------------------------------------------------------------------------------------------


def entry(*offsets: Any) -> bytes:
    return files.safetensors({"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": offsets}})


def test_a_safetensors_header() -> None:
    assert read(files.safetensors(), ".safetensors") == Header("safetensors")
    for content in (
        b"", b"1234567", files.safetensors(length=2**63), files.safetensors(length=10_000), files.safetensors(length=5),
        files.safetensors(b"[]"), files.safetensors(b"[" * 100_000), files.safetensors(b"\xff\xfe"),
        files.safetensors({}), files.safetensors({"w": []}), entry(0, 17), entry(16, 0), entry(0), entry("a", "b"),
        files.safetensors(data=15), files.safetensors(data=17), b"\x80\x04" + bytes(100),
    ):  # fmt: skip
        with pytest.raises(InputError):
            read(content, ".safetensors")


# --- the child -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["49 bytes that claim everything", "empty", "an array of arrays"])
def test_the_child_tells_what_is_wrong(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"^a.gguf: "):
        inspect(make(tmp_path / "a.gguf", BAD[name]))


def test_a_child_that_hangs_is_ended(tmp_path: Path) -> None:
    hang = (sys.executable, "-c", "import time; time.sleep(60)")
    began = time.monotonic()
    with pytest.raises(LimitExceeded, match="longer than"):
        inspect(make(tmp_path / "a.gguf", WHOLE), hang, seconds=0.3)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "script",
    ["import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "print('no')", "print('[]')", "print('7')",
     "print('[\"header\", {}]')", "print('[\"header\", {\"format\": 7}]')", "print('[\"header\", [1]]')",
     "print('[' * 99999)", "print('[\"error\", \"x\"]')", ""],
)  # fmt: skip
def test_what_a_child_sends_is_not_believed(tmp_path: Path, script: str) -> None:
    with pytest.raises(InputError, match=pattern("model.header_crash")):
        inspect(make(tmp_path / "a.gguf", WHOLE), (sys.executable, "-c", script))


def test_the_child_has_limits(tmp_path: Path) -> None:
    """One that takes a gigabyte says so, and is not killed for it."""
    script = (
        "from localmed.models.registry import header\nheader.READERS['.gguf'] = lambda *_: bytes(2**30)\nheader.main()"
    )
    with pytest.raises(LimitExceeded, match=pattern("model.header_memory")):
        inspect(make(tmp_path / "a.gguf", WHOLE), (sys.executable, "-c", script))


def test_a_large_vocabulary_is_read_within_the_limits(tmp_path: Path) -> None:
    tokens = [f"token{number}" for number in range(150_000)]
    entries = [*ENTRIES[:9], ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
               ("tokenizer.ggml.scores", ARRAY, (F32, [0.0] * len(tokens)))]  # fmt: skip
    assert inspect(make(tmp_path / "a.gguf", files.gguf(entries))).context == 8192


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = make(tmp_path / "a.gguf", WHOLE)
    path.chmod(0)
    with pytest.raises(InputError, match="cannot be read"):
        inspect(path)
