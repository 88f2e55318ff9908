"""Where an installation lies and what belongs to it; which version serves, and what has to go when it goes.

::

    PREFIX/versions/NAME/       a virtual environment and share/ (what the bundle said, SBOM, evidence)
    PREFIX/current              link to the version that serves; PREFIX/previous to the one before
    PREFIX/installer/           install.sh, installer.pyz, root.json; trust.json: what the next bundle is verified by
    PREFIX/installed.json       every file outside PREFIX that was written, with its digest
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from localmed.upkeep.verifier import Refused

USER = "localmed"
OUTSIDE = {
    # what of the bundle's targets goes where, below the root
    "systemd/localmed.service": "etc/systemd/system/localmed.service",
    "systemd/localmed-refresh.service": "etc/systemd/system/localmed-refresh.service",
    "systemd/localmed-refresh.timer": "etc/systemd/system/localmed-refresh.timer",
    "systemd/localmed.sysusers": "etc/sysusers.d/localmed.conf",
    "desktop/localmed.desktop": "usr/local/share/applications/localmed.desktop",
    "desktop/localmed.svg": "usr/local/share/icons/hicolor/scalable/apps/localmed.svg",
    "desktop/localmed": "usr/local/bin/localmed",
}


class Place:
    """The folders of an installation; ``root`` is / but for a trial."""

    def __init__(self, root: Path, prefix: Path, data: Path) -> None:
        self.root, self.prefix, self.data = root, prefix, data
        self.trial = root != Path("/")
        self.versions, self.current, self.previous = (prefix / name for name in ("versions", "current", "previous"))
        self.installer = prefix / "installer"
        self.trust = self.installer / "trust.json"  # whose bundles this machine takes, and the newest that it took

    def served(self) -> str:
        """The version that serves, "" if none does."""
        return self.current.resolve().name if self.current.is_symlink() else ""

    def switch(self, name: str) -> None:
        """Let the version ``name`` serve from now on, in one step; the one before stays for a rollback."""
        before = self.served()
        _link(self.current, Path("versions") / name)
        if before and before != name:
            _link(self.previous, Path("versions") / before)

    def write_outside(self, source: Path, values: dict[str, str]) -> None:
        """Write units, launcher and icon; a file that somebody else has written or changed is not touched."""
        written = self.recorded()
        for name, relative in OUTSIDE.items():
            target = self.root / relative
            if target.exists() and _digest(target) != written.get(str(target), ""):
                raise Refused("not_ours", file=str(target))
            content = (source / name).read_text("utf-8")
            for key, value in values.items():
                content = content.replace(f"@{key}@", value)
            target.parent.mkdir(parents=True, exist_ok=True)
            replace(target, content.encode(), 0o755 if name == "desktop/localmed" else 0o644)
            written[str(target)] = _digest(target)
            self.record(written)

    def recorded(self) -> dict[str, str]:
        """The files outside the prefix, with their digests."""
        path = self.prefix / "installed.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def record(self, written: dict[str, str]) -> None:
        """Note which files lie outside the prefix."""
        replace(self.prefix / "installed.json", json.dumps(written, indent=1).encode(), 0o644)

    def remove(self, purge: bool) -> list[str]:
        """Take everything away that was installed, with ``purge`` the data too; return files that somebody changed."""
        kept = []
        for name, digest in self.recorded().items():
            path = Path(name)
            if path.exists() and _digest(path) == digest:
                path.unlink()
                _remove_empty(path.parent, self.root)
            elif path.exists():
                kept.append(name)
        shutil.rmtree(self.prefix, ignore_errors=True)
        _remove_empty(self.prefix.parent, self.root)
        if purge:
            shutil.rmtree(self.data, ignore_errors=True)
            _remove_empty(self.data.parent, self.root)
        return kept

    def running(self) -> Iterator[int]:
        """The processes that run from here, but for this one."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if words and words[0].startswith(f"{self.versions}/".encode()):
                    yield int(entry.name)


def _link(link: Path, target: Path) -> None:
    fresh = link.with_name(f".{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)
    _sync(link.parent)


def replace(path: Path, content: bytes, mode: int) -> None:
    """Make ``content`` what ``path`` holds, in one step and synced."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(content)
    fresh.chmod(mode)
    with fresh.open("rb") as stream:
        os.fsync(stream.fileno())
    fresh.replace(path)
    _sync(path.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _remove_empty(folder: Path, root: Path) -> None:
    """In a trial, the folders that were made for it; those of a machine are never taken away."""
    while root != Path("/") and folder != root and folder.is_relative_to(root):
        try:
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
