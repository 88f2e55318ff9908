"""Weights shipped with the project load only if they are the file that their manifest lists."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from localmed.errors import ModelError
from localmed.models.registry.manifests import FOLDER, load_all
from localmed.models.shipped_weights import arrays

NAME = "starter-entailment"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for ending in ("toml", "npz"):
        shutil.copy(FOLDER / f"{NAME}.{ending}", tmp_path)
    return tmp_path


def test_the_shipped_file_is_the_listed_one(folder: Path) -> None:
    assert set(arrays(NAME)) == set(arrays(NAME, folder)) == {"coefficients", "biases", "encoder", "features"}


def test_every_shipped_file_is_listed() -> None:
    listed = {file.name for manifest in load_all().values() for file in manifest.files if file.sha256}
    assert {path.name for path in FOLDER.glob("*.npz")} <= listed


def test_a_changed_byte_is_refused(folder: Path) -> None:
    file = folder / f"{NAME}.npz"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ModelError, match="not the file of its manifest"):
        arrays(NAME, folder)


def test_a_missing_or_longer_file_is_refused(folder: Path) -> None:
    file = folder / f"{NAME}.npz"
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(ModelError, match="not the file of its manifest"):
        arrays(NAME, folder)
    file.unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        arrays(NAME, folder)


def test_a_listed_file_that_holds_no_arrays_is_refused(folder: Path) -> None:
    content = b"PK\x03\x04 nothing of the kind"
    (folder / f"{NAME}.npz").write_bytes(content)
    manifest = folder / f"{NAME}.toml"
    lines = [line for line in manifest.read_text().splitlines() if not line.startswith(("bytes", "sha256"))]
    lines += [f"bytes = {len(content)}", f'sha256 = "{hashlib.sha256(content).hexdigest()}"']
    manifest.write_text("\n".join(lines))
    with pytest.raises(ModelError, match="holds no arrays"):
        arrays(NAME, folder)
