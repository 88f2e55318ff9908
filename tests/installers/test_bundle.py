"""What goes into a bundle is what the registry's manifests name."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from installers import bundle


@pytest.mark.parametrize(("content", "name", "refusal"), [
    ("weights", "small", ""), ("other weights", "small", "another hash"), ("weights", "unknown", "no model of"),
])  # fmt: skip
def test_a_model_with_another_hash_than_its_manifest_states_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, name: str, refusal: str
) -> None:
    monkeypatch.setattr(bundle, "PROJECT", tmp_path)
    folder = tmp_path / name
    for path in (tmp_path / "models", folder):
        path.mkdir()
    (folder / "model.bin").write_text(content, "utf-8")
    manifest = f'[[files]]\nname = "model.bin"\nsha256 = "{hashlib.sha256(b"weights").hexdigest()}"\n'
    (tmp_path / "models" / "small.toml").write_text(manifest, "utf-8")
    if refusal:
        with pytest.raises(SystemExit, match=refusal):
            bundle._check_model(folder)
    else:
        bundle._check_model(folder)
