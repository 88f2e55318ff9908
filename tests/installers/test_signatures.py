"""The installer's own check of signatures gives python-tuf's verdict on every folder, right or attacked."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from localmed.domain.errors import LocalmedError
from localmed.upkeep import signing, trust
from tests.installers import small

sys.path.insert(0, str(Path(__file__).parents[2] / "installers" / "installer"))
import signatures  # type: ignore[import-not-found]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two signed versions of a folder, the keys, and a stranger's root."""
    folder = tmp_path_factory.mktemp("signed")
    keys, root = small.keys(folder / "keys")
    small.keys(folder / "stranger")
    for version in (1, 2):
        (folder / str(version) / "targets").mkdir(parents=True)
        (folder / str(version) / "targets" / 'name "quoted" 中文.txt').write_text(f"version {version}\n")
        _sign(folder / str(version), root, keys, version, 30)
    return folder


def _sign(folder: Path, root: Path, keys: list[Path], version: int, days: float) -> None:
    expires = datetime.now(UTC).replace(microsecond=0) + timedelta(days=days)
    signing.sign_folder(folder, [root], [signing.load_key(key) for key in keys], version, expires)


def _values(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / "metadata" / f"{name}.json").read_text()))


def _write(folder: Path, name: str, values: dict[str, Any]) -> None:
    (folder / "metadata" / f"{name}.json").write_text(json.dumps(values))


def right(folder: Path, made: Path) -> None:
    """Nothing is wrong."""


def changed_length(folder: Path, made: Path) -> None:
    values = _values(folder, "targets")
    next(iter(values["signed"]["targets"].values()))["length"] += 1
    _write(folder, "targets", values)


def changed_version(folder: Path, made: Path) -> None:
    values = _values(folder, "timestamp")
    values["signed"]["version"] += 1
    _write(folder, "timestamp", values)


def rolled_back(folder: Path, made: Path) -> None:
    shutil.rmtree(folder)
    shutil.copytree(made / "1", folder)


def old_targets(folder: Path, made: Path) -> None:
    shutil.copy(made / "1/metadata/targets.json", folder / "metadata")


def old_snapshot(folder: Path, made: Path) -> None:
    shutil.copy(made / "1/metadata/snapshot.json", folder / "metadata")


def one_key(folder: Path, made: Path) -> None:
    values = _values(folder, "snapshot")
    del values["signatures"][1:]
    _write(folder, "snapshot", values)


def one_key_twice(folder: Path, made: Path) -> None:
    values = _values(folder, "timestamp")
    values["signatures"] = values["signatures"][:1] * 2
    _write(folder, "timestamp", values)


def wrong_signature(folder: Path, made: Path) -> None:
    values = _values(folder, "targets")
    values["signatures"][0]["sig"] = "00" * 64
    _write(folder, "targets", values)


def empty_signature(folder: Path, made: Path) -> None:
    values = _values(folder, "targets")
    values["signatures"][0]["sig"] = ""
    _write(folder, "targets", values)


def expired(folder: Path, made: Path) -> None:
    _sign(folder, made / "keys/root.json", [made / "keys/a.pem", made / "keys/b.pem"], 2, -1)


def strangers_keys(folder: Path, made: Path) -> None:
    _sign(folder, made / "keys/root.json", [made / "stranger/a.pem", made / "stranger/b.pem"], 2, 30)


def strangers_next_root(folder: Path, made: Path) -> None:
    root = json.loads((made / "stranger/root.json").read_text())
    root["signed"]["version"] = 2
    (folder / "metadata/2.root.json").write_text(json.dumps(root))


def no_json(folder: Path, made: Path) -> None:
    (folder / "metadata/snapshot.json").write_text("{")


def other_role(folder: Path, made: Path) -> None:
    shutil.copy(folder / "metadata/snapshot.json", folder / "metadata/timestamp.json")


def missing(folder: Path, made: Path) -> None:
    (folder / "metadata/targets.json").unlink()


def negative(folder: Path, made: Path) -> None:
    values = _values(folder, "timestamp")
    values["signed"]["version"] = -1
    _write(folder, "timestamp", values)


CASES: list[Callable[[Path, Path], None]] = [
    right, changed_length, changed_version, rolled_back, old_targets, old_snapshot, one_key, one_key_twice,
    wrong_signature, empty_signature, expired, strangers_keys, strangers_next_root, no_json, other_role, missing,
    negative,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_both_give_the_same_verdict(case: Callable[[Path, Path], None], made: Path, tmp_path: Path) -> None:
    root = (made / "keys/root.json").read_bytes()
    before = made / ("2" if case is rolled_back else "1")  # python-tuf reads nothing again that it has seen
    known, seen = tmp_path / "known", signatures.verify(before / "metadata", root, {}).versions
    known.mkdir()
    trust.verify(before, made / "keys/root.json", known, datetime(2026, 1, 1, tzinfo=UTC))
    folder = tmp_path / "folder"
    shutil.copytree(made / "2", folder)
    case(folder, made)
    verdicts = []
    for check in (
        lambda: trust.verify(folder, made / "keys/root.json", known, datetime(2026, 1, 1, tzinfo=UTC)).described,
        lambda: signatures.verify(folder / "metadata", root, seen).files,
    ):
        try:
            verdicts.append(sorted(check()))
        except (LocalmedError, signatures.Refused):
            verdicts.append([])
    assert bool(verdicts[0]) == bool(verdicts[1]) == (case is right), verdicts
    assert verdicts[0] == verdicts[1]


def test_a_path_out_of_the_bundle_is_refused(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(made / "2", folder)
    values = _values(folder, "targets")
    values["signed"]["targets"] = {"../outside": next(iter(values["signed"]["targets"].values()))}
    _write(folder, "targets", values)
    monkeypatch.setattr(signatures, "valid", lambda *_: True)  # as if both publishers had signed it
    with pytest.raises(signatures.Refused) as refused:
        signatures.verify(folder / "metadata", (made / "keys/root.json").read_bytes(), {})
    assert refused.value.code == "path"
