"""The one verifier, of packs and bundles: every folder that breaks a rule is refused, by the name of the rule."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from localmed.domain.errors import UsageError
from localmed.upkeep import signing, verifier
from localmed.upkeep.verifier import Refused, Trust
from tests.site.publishing import key_pair

FILE = 'documents/name "quoted" 中文.txt'


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two signed versions of a folder, the keys, and a stranger's."""
    folder = tmp_path_factory.mktemp("signed")
    key_pair(folder)
    key_pair(folder / "stranger")
    for version in (1, 2):
        path = folder / str(version) / "content" / FILE
        path.parent.mkdir(parents=True)
        path.write_text(f"version {version}\n")
        sign(folder / str(version), folder, version)
    return folder


def sign(folder: Path, keys: Path, version: int = 2, days: float = 30, kind: str = "pack", age: float = 0) -> None:
    signers = [signing.load_key(keys / name) for name in ("a.pem", "b.pem")]
    created = datetime.now(UTC) - timedelta(days=age)
    signing.sign_folder(folder, keys / "root.json", signers, kind, "wards", version, days, created)


def edit(path: Path, change: Callable[[Any], Any]) -> None:
    """Change JSON where it lies; ``change`` returns what replaces it, or nothing."""
    values = json.loads(path.read_text())
    path.write_text(json.dumps(change(values) or values))


def signed_again(document: Any, keys: Path, **changes: Any) -> Any:
    """The document with other values, signed: by publishers who err, or with both keys stolen."""
    text = json.dumps({**json.loads(document["signed"]), **changes})
    signers = [signing.load_key(keys / name) for name in ("a.pem", "b.pem")]
    return {"signed": text, "signatures": {signing.public(key): key.sign(text.encode()).hex() for key in signers}}


def strangers_next_root(folder: Path, made: Path, signed_by: Path) -> None:
    """A second root lists a stranger's keys, who has signed the manifest."""
    sign(folder, made / "stranger", 3)
    roots = json.loads((made / "root.json").read_text())
    theirs = json.loads((folder / "root.json").read_text())[0]
    (folder / "root.json").write_text(json.dumps([*roots, signed_again(theirs, signed_by, version=2)]))


def replaced(folder: Path, other: Path, *names: str) -> None:
    for name in names:
        shutil.copy(other / name, folder / name)


def one_key(document: Any) -> None:
    document["signatures"].popitem()


def one_key_twice(document: Any) -> None:
    key, _ = document["signatures"].popitem()
    document["signatures"][key.upper()] = document["signatures"][next(iter(document["signatures"]))]


def signature(text: str) -> Callable[[Any], None]:
    return lambda document: document.update(signatures=dict.fromkeys(document["signatures"], text))


def linked(folder: Path, name: str) -> None:
    path = folder / "content" / name
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def piped(folder: Path) -> None:
    (folder / "content" / FILE).unlink()
    os.mkfifo(folder / "content" / FILE)


def endless(folder: Path) -> None:
    with (folder / "content" / FILE).open("a") as file:
        file.truncate(2**40)  # a terabyte of nothing, which is not read to its end


MANIFEST = "manifest.json"
CASES: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "as signed": ("", lambda folder, made: None),
    "byte of a file altered": ("altered", lambda folder, made: (folder / "content" / FILE).write_text("Version 2\n")),
    "file cut short": ("altered", lambda folder, made: (folder / "content" / FILE).write_text("version")),
    "file without end": ("altered", lambda folder, made: endless(folder)),
    "file of the version before": ("altered", lambda folder, made: replaced(folder, made / "1", f"content/{FILE}")),
    "file missing": ("incomplete", lambda folder, made: (folder / "content" / FILE).unlink()),
    "file a link": ("malformed", lambda folder, made: linked(folder, FILE)),
    "folder a link": ("malformed", lambda folder, made: linked(folder, "documents")),
    "file a pipe": ("malformed", lambda folder, made: piped(folder)),
    "version before": ("older", lambda folder, made: replaced(folder, made / "1", MANIFEST, f"content/{FILE}")),
    "manifest before": ("older", lambda folder, made: replaced(folder, made / "1", MANIFEST)),
    "same version, other content": ("older", lambda folder, made: sign(folder, made, days=31)),
    "signed text altered": ("signatures", lambda folder, made: edit(
        folder / MANIFEST, lambda it: it.update(signed=it["signed"].replace('"version": 2', '"version": 3')))),
    "one key": ("signatures", lambda folder, made: edit(folder / MANIFEST, one_key)),
    "one key twice": ("signatures", lambda folder, made: edit(folder / MANIFEST, one_key_twice)),
    "wrong signatures": ("signatures", lambda folder, made: edit(folder / MANIFEST, signature("00" * 64))),
    "empty signatures": ("signatures", lambda folder, made: edit(folder / MANIFEST, signature(""))),
    "stranger's keys": ("signatures", lambda folder, made: sign(folder, made / "stranger", 3)),
    "stranger's keys, trusted root": ("signatures", lambda folder, made: edit(
        folder / MANIFEST, lambda it: signed_again(it, made / "stranger", version=3))),
    "stranger's next root": ("signatures", lambda folder, made: strangers_next_root(folder, made, made / "stranger")),
    "next root not by its own keys": ("signatures", lambda folder, made: strangers_next_root(folder, made, made)),
    "expired": ("expired", lambda folder, made: sign(folder, made, 3, days=1, age=2)),
    "clock behind its making": ("clock", lambda folder, made: sign(folder, made, 3, age=-3653)),
    "another kind": ("malformed", lambda folder, made: sign(folder, made, 3, kind="bundle")),
    "manifest missing": ("incomplete", lambda folder, made: (folder / MANIFEST).unlink()),
    "manifest no JSON": ("malformed", lambda folder, made: (folder / MANIFEST).write_text("{")),
    "manifest a list": ("malformed", lambda folder, made: (folder / MANIFEST).write_text("[]")),
    "manifest deep": ("malformed", lambda folder, made: (folder / MANIFEST).write_text("[" * 10**6)),
    "root no list": ("malformed", lambda folder, made: (folder / "root.json").write_text("{}")),
    "no roots": ("malformed", lambda folder, made: (folder / "root.json").write_text("[]")),
    "name no folder's": ("malformed", lambda folder, made: edit(
        folder / MANIFEST, lambda it: signed_again(it, made, name="../x"))),
    "size negative": ("malformed", lambda folder, made: edit(
        folder / MANIFEST, lambda it: signed_again(it, made, files={"a": [-1, "0" * 64]}))),
    **{f"path {name!r}": ("malformed", lambda folder, made, name=name: edit(
        folder / MANIFEST, lambda it: signed_again(it, made, files={name: [1, "0" * 64]})))  # type: ignore[misc]
       for name in ("../../outside", "/etc/outside", "a/../../b", "a//b", "a\\b", "documents/x/..", "")},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_folder_is_refused_by_the_rule_that_it_breaks(case: str, made: Path, tmp_path: Path) -> None:
    code, harm = CASES[case]
    shutil.copytree(made / "2", folder := tmp_path / "folder")
    trust = Trust.of((made / "root.json").read_bytes())
    trust = trust.after(verifier.verify(made / "1", "pack", trust)).after(verifier.verify(made / "2", "pack", trust))
    harm(folder, made)
    found = ""
    try:
        verifier.verify(folder, "pack", Trust.of(trust.kept())).copy(FILE, tmp_path / "copy")
    except Refused as refused:
        found = refused.code.removeprefix("pack.")
    assert found == code
    assert (tmp_path / "copy").exists() == (not code)


def test_new_keys_are_followed_once_and_for_all(made: Path, tmp_path: Path) -> None:
    first, old = made / "root.json", [signing.load_key(made / name) for name in ("a.pem", "b.pem")]
    new = key_pair(tmp_path / "new")
    second = tmp_path / "new/root2.json"
    with pytest.raises(UsageError):
        signing.make_root(second, new, first, old[:1])
    signing.make_root(second, new, first, old)
    shutil.copytree(made / "2", folder := tmp_path / "folder")
    signing.sign_folder(folder, second, new, "pack", "wards", 3, 30)
    before = Trust.of(first.read_bytes())
    after = before.after(verifier.verify(folder, "pack", before))
    assert after.follow(before.roots).roots == after.roots  # the old root does not come back
    signing.sign_folder(folder, first, old, "pack", "wards", 4, 30)
    with pytest.raises(Refused, match="signatures"):
        verifier.verify(folder, "pack", after)
    roots = [*after.roots, after.roots[0]]  # a root that was signed once, at another place
    with pytest.raises(Refused, match="malformed"):
        Trust.of(json.dumps(roots).encode())


def test_a_root_expires_too(made: Path) -> None:
    (root,) = json.loads((made / "root.json").read_text())
    trust = Trust.of(json.dumps([signed_again(root, made, expires="2026-01-01T00:00:00+00:00")]).encode())
    edit(made / "1/root.json", lambda _: trust.roots)
    with pytest.raises(Refused, match="expired"):
        verifier.verify(made / "1", "pack", trust)


@pytest.mark.parametrize("answer", ["exit 127", "echo unknown option -rawin >&2; exit 1"])
def test_an_openssl_that_cannot_verify_is_told(answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "openssl").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "openssl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    key = Ed25519PrivateKey.generate()
    with pytest.raises(Refused, match="openssl"):
        verifier.valid(key.public_key().public_bytes_raw(), b"text", key.sign(b"text"))
