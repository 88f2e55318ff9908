"""The manifests: those that ship, estimates from them, and wrong ones."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from localmed.domain.errors import BadSettings
from localmed.models.registry import manifests
from localmed.models.registry.manifests import ROLES, load, load_all
from localmed.models.registry.registry import Registry, silent
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


# --- a site's own ----------------------------------------------------------------------------------------------------


def test_a_site_describes_models_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "ours.toml").write_text(ENCODER.replace("small-encoder", "ours").replace("made here", "our trainer"))
    registry = Registry(folder, write_manifests(tmp_path / "manifests"))
    assert sorted(registry.manifests) == ["ours", "small-encoder", "tiny"]
    assert registry.manifests["ours"].source == "our trainer"


def test_a_site_does_not_describe_a_known_model_anew(tmp_path: Path) -> None:
    """Its hashes would be gone."""
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "mine.toml").write_text(ENCODER)
    registry = Registry(folder, write_manifests(tmp_path / "manifests"))
    with pytest.raises(BadSettings, match=r"mine\.toml: small-encoder is already described"):
        _ = registry.manifests


@pytest.mark.parametrize("library", ['"faiss"', '""', "3"])
def test_an_encoder_says_which_library_loads_it(tmp_path: Path, library: str) -> None:
    path = tmp_path / "a.toml"
    path.write_text(ENCODER.replace('"sentence-transformers"', library))
    with pytest.raises(BadSettings, match=r"a\.toml: .*library"):
        load(path)
    path.write_text(MANIFEST.format(hash="").replace("context", 'library = "llama.cpp"\ncontext', 1))
    with pytest.raises(BadSettings, match=r"a\.toml: its library is not valid"):
        load(path)


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
