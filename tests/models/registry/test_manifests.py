"""The manifests: those that ship, estimates from them, and wrong ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from localmed.domain.errors import BadSettings
from localmed.models.registry import manifests
from localmed.models.registry.manifests import ROLES, load, load_all
from localmed.models.registry.registry import Registry
from localmed.models.templates import TEMPLATES
from tests.models.model_files import make
from tests.models.registered import CONTENT, ENCODER, MANIFEST, encoder_folder, write_manifests


def test_the_manifests_that_ship() -> None:
    shipped = load_all()
    assert {manifest.role for manifest in shipped.values()} == set(ROLES) - {"planner"}, (
        "a planner is trained at a site"
    )
    for name, manifest in shipped.items():
        assert (manifests.FOLDER / f"{name}.toml").exists()
        assert manifest.licence
        assert manifest.source
        assert manifest.title
        for spec in manifest.files:
            assert len(spec.sha256) in (0, 64)
            assert bool(spec.sha256) == bool(spec.bytes)
        if manifest.role == "chat":
            assert manifest.template in TEMPLATES
            assert manifest.footprint.weights > 2**30
            assert manifest.footprint.bytes_a_token > 0
    sizes = sorted(manifest.shape.parameters for manifest in shipped.values() if manifest.role == "chat")
    assert sizes[0] < 2e9
    assert any(7e9 <= size <= 9e9 for size in sizes)
    assert sizes[-1] >= 27e9


def test_an_installed_package_holds_them() -> None:
    root = Path(__file__).parents[3]
    assert manifests.FOLDER.resolve() == root / "models"
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert f"{manifests.FOLDER.name}/*.toml" in settings["package-data"]["localmed.models"]


def test_an_estimate_by_hand() -> None:
    footprint = load_all()["qwen3-8b"].footprint
    assert footprint.bytes_a_token == 36 * 8 * 128 * 2 * 2  # layers, heads, width, keys and values, half precision
    assert footprint.weights == int(8.2e9 * 4.9 / 8)
    assert not footprint.exact


def test_a_registered_model_is_measured_by_its_own_file(added: Registry) -> None:
    [candidate] = [model for model in added.candidates() if model.name == "tiny"]
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
        ("[shape]", "[[shape]]"), ('family = "Tiny"', "family = "), ("context", 'library = "llama.cpp"\ncontext'),
        *(('"sentence-transformers"', library) for library in ('"faiss"', '""', "3")),
    ],
)  # fmt: skip
def test_a_manifest_that_is_wrong(tmp_path: Path, wrong: tuple[str, str]) -> None:
    path = tmp_path / "a.toml"
    whole = MANIFEST.format(hash="") if wrong[0] in MANIFEST else ENCODER
    path.write_text(whole.replace(*wrong, 1))
    with pytest.raises(BadSettings, match=r"a\.toml"):
        load(path)


# --- a site's own ----------------------------------------------------------------------------------------------------


def test_a_site_describes_models_of_its_own_and_no_known_one_anew(tmp_path: Path) -> None:
    """Its hashes would be gone."""
    write_manifests(tmp_path / "manifests")
    make(
        tmp_path / "models" / "ours.toml", ENCODER.replace("small-encoder", "ours").replace("made here", "us").encode()
    )
    registry = Registry(tmp_path / "models", tmp_path / "manifests")
    assert sorted(registry.manifests) == ["ours", "small-encoder", "tiny"]
    assert registry.manifests["ours"].source == "us"
    make(tmp_path / "models" / "mine.toml", ENCODER.encode())
    with pytest.raises(BadSettings, match=r"mine\.toml: small-encoder is already described"):
        _ = Registry(tmp_path / "models", tmp_path / "manifests").manifests


# --- what tells trainings apart --------------------------------------------------------------------------------------


def test_the_fingerprint_is_of_what_decides_on_the_output(tmp_path: Path) -> None:
    """Not of papers beside it, not of where it was added from; of prefixes too, which decide on every vector."""

    def fingerprint(name: str, manifest: str = ENCODER, **changes: bytes) -> str:
        folder = tmp_path / name
        folder.mkdir()
        write_manifests(folder / "manifests")
        (folder / "manifests" / "small-encoder.toml").write_text(manifest)
        source = encoder_folder(folder / "models" / "small-encoder" if name == "inside" else folder / "small-encoder")
        for file, content in changes.items():
            make(source / file.replace("__", "."), content)
        return Registry(folder / "models", folder / "manifests").add(source, "x").fingerprint

    first = fingerprint("first")
    assert len(first) == 12
    assert fingerprint("inside") == first, "where unnamed files lie beside it"
    assert fingerprint("papers", README__md=b"read me", onnx__json=b"{}") == first
    assert fingerprint("settings", config__json=b'{"a": 1}') != first
    assert fingerprint("prefix", ENCODER.replace("[[files]]", 'query_prefix = "q: "\n[[files]]', 1)) != first
