"""What goes into a bundle is what the registry's manifests name, and its installer has words for all it says."""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest

from installers import bundle
from localmed.upkeep import verifier


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


def test_the_installer_has_words_for_all_it_says_and_for_all_that_the_verifier_refuses() -> None:
    folder = Path(bundle.__file__).parent / "installer"
    catalogue = tomllib.loads((folder / "messages.toml").read_text("utf-8"))
    given: dict[str, set[str]] = {}
    for path in (*folder.glob("*.py"), Path(verifier.__file__)):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                place = {"Refused": 0, "tell": 0, "_run": 1, "_done": 1}.get(call.func.id, 9)
                names = {"reason"} if place else {str(keyword.arg) for keyword in call.keywords}
                codes = re.findall(r"'([a-z_.]+)'", "".join(map(ast.unparse, call.args[place : place + 1])))
                given |= {code.removeprefix("pack."): names for code in codes}
    assert given.keys() == catalogue.keys()
    for code, sentences in catalogue.items():
        fields = {name for words in sentences.values() for _, name, *_ in Formatter().parse(words) if name}
        assert fields <= given[code], code
