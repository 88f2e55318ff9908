"""A bundle installed, updated, rolled back and removed in an empty network; a wrong one changes nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from localmed.upkeep import signing
from tests.installers import small
from tests.site.publishing import key_pair
from tests.strict import cannot

pytestmark = pytest.mark.slow
VERSIONS = "opt/localmed/versions"


@pytest.fixture(scope="module", autouse=True)
def _namespaces() -> None:
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rn", "--", "true"], check=False).returncode:
        cannot("network namespaces are not permitted here")


@pytest.fixture(scope="module")
def publisher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys and the first bundle."""
    folder = tmp_path_factory.mktemp("publisher")
    key_pair(folder)
    small.build(folder, 1, folder)
    return folder


def tree(root: Path) -> set[str]:
    """Every file and link below ``root``."""
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir() or path.is_symlink()}


@pytest.mark.timeout(900)  # seven installations, each a venv of its own
def test_a_machine_from_the_first_bundle_to_the_last(publisher: Path, tmp_path: Path) -> None:
    """One story, since each installation takes seconds: install, update, roll back, remove, purge."""
    folder, first = publisher, publisher / "bundle-1"
    root = tmp_path / "machine"
    done = small.install(first, root)
    assert done.returncode == 0, done
    assert (root / "opt/localmed/current").resolve().name == "0.1.0-1"
    outside = {path for path in tree(root) if not path.startswith(("opt/", "var/"))}
    assert outside == {
        "etc/systemd/system/localmed.service",
        "etc/systemd/system/localmed-refresh.service",
        "etc/systemd/system/localmed-refresh.timer",
        "etc/sysusers.d/localmed.conf",
        "usr/local/bin/localmed",
        "usr/local/share/applications/localmed.desktop",
        "usr/local/share/icons/hicolor/scalable/apps/localmed.svg",
    }
    for path in outside:
        assert "@PREFIX@" not in (root / path).read_text(), path
    bill = json.loads((root / VERSIONS / "0.1.0-1/share/localmed/sbom.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert [row["hashes"][0]["alg"] for row in bill["components"] if row["name"] == "localmed"] == ["SHA-256"]
    assert "pack trust" in (root / "var/lib/localmed/asked").read_text()

    # An update whose self-test fails leaves the first version serving, and nothing of itself.
    before = tree(root)
    bad = small.build(folder, 2, folder, status="abstained")
    done = small.install(bad, root)
    assert done.returncode == 3, done
    assert "abstained" in done.stderr
    assert tree(root) == before

    # Nor does one that loses canary questions of the library that is there.
    (root / "var/lib/localmed/current").symlink_to("generations/0001")
    done = small.install(small.build(folder, 21, folder, canaries=7), root)
    assert done.returncode == 3, done
    assert "test questions" in done.stderr
    (root / "var/lib/localmed/current").unlink()
    assert tree(root) == before

    # The next one comes with new keys, which replace the old ones on this machine.
    old = [signing.load_key(folder / name) for name in ("a.pem", "b.pem")]
    signing.make_root(tmp_path / "new/root.json", key_pair(tmp_path / "new"), folder / "root.json", old)
    third = small.build(folder, 30, tmp_path / "new")
    assert small.install(third, root).returncode == 0
    assert (root / "opt/localmed/current").resolve().name == "0.1.0-30"
    assert small.install(first, root).returncode == 3  # older, and by old keys
    assert (root / "opt/localmed/current").resolve().name == "0.1.0-30"
    assert small.install(root / "opt/localmed/installer", root, "--rollback").returncode == 0
    assert (root / "opt/localmed/current").resolve().name == "0.1.0-1"

    # Removing waits for what runs; a file that somebody changed is theirs.
    sleeper = subprocess.Popen([root / VERSIONS / "0.1.0-1/bin/python", "-c", "input()"], stdin=subprocess.PIPE)
    try:
        done = small.install(root / "opt/localmed/installer", root, "--uninstall", "--keep-data", alone=False)
        assert done.returncode == 3
        assert str(sleeper.pid) in done.stderr
    finally:
        sleeper.communicate()
    unit = root / "etc/systemd/system/localmed.service"
    unit.write_text(unit.read_text() + "# ours\n")
    done = small.install(third, root, "--uninstall", "--keep-data")
    assert done.returncode == 0, done
    assert tree(root) == {"etc/systemd/system/localmed.service", "var/lib/localmed/asked"}
    unit.unlink()

    assert small.install(first, root).returncode == 0  # again, over the data that was kept
    assert small.install(first, root, "--uninstall", "--purge").returncode == 0
    assert not tree(root)


def test_a_machine_with_a_file_of_its_own_is_left_alone(publisher: Path, tmp_path: Path) -> None:
    root = tmp_path / "machine"
    theirs = root / "etc/systemd/system/localmed.service"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("[Service]\n")
    done = small.install(publisher / "bundle-1", root)
    assert done.returncode == 3
    assert str(theirs) in done.stderr
    assert theirs.read_text() == "[Service]\n"
    assert not (root / "opt/localmed/current").exists()


# --- whatever is wrong with the stick ---------------------------------------------------------------------------------


def wheel_swapped(stick: Path) -> None:
    small.wheel(stick / "content/wheels", requires="Requires-Dist: elsewhere\n")


def installer_changed(stick: Path) -> None:
    with (stick / "content/installer.pyz").open("ab") as file:
        file.write(b"x")


def root_changed(stick: Path) -> None:
    for path in (stick / "content/root.json", stick / "root.json"):
        path.write_text(path.read_text() + " ")


def manifest_changed(stick: Path) -> None:
    path = stick / "manifest.json"
    path.write_text(path.read_text().replace("0.1.0", "0.1.1"))


HARMS = [wheel_swapped, installer_changed, root_changed, manifest_changed]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_a_stick_that_was_altered_changes_nothing(
    publisher: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    stick, root = tmp_path / "stick", tmp_path / "machine"
    shutil.copytree(publisher / "bundle-1", stick)
    harm(stick)
    done = small.install(stick, root)
    assert done.returncode == 3, done
    assert done.stderr.count("\n") == 1, done
    assert not tree(root)


def test_a_wheel_that_needs_another_is_told_before_it_serves(publisher: Path, tmp_path: Path) -> None:
    stick = small.build(tmp_path, 7, publisher, requires="Requires-Dist: elsewhere\n")
    done = small.install(stick, tmp_path / "machine")
    assert done.returncode == 3
    assert "could not be installed" in done.stderr
    assert not tree(tmp_path / "machine")
