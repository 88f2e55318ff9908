"""A publisher of content packs, and what a site came to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from localmed.domain.errors import LocalmedError
from localmed.site import lookups
from localmed.site.session import Session
from localmed.upkeep import packs, signing

MANIFEST = 'name = "{name}"\ntitle = "Wards"\nkind = "guideline"\n'
SEPSIS = "Sepsis: give antibiotics within one hour of recognition of septic shock.\n"
WARFARIN = "Warfarin: check the INR every day until it is stable for two days.\n"


@dataclass(frozen=True)
class Publisher:
    """Who makes packs: two keys, a root, and what they arrange."""

    folder: Path

    @property
    def keys(self) -> list[Path]:
        return [self.folder / "a.pem", self.folder / "b.pem"]

    @property
    def root(self) -> Path:
        return self.folder / "root.json"

    @property
    def source(self) -> Path:
        return self.folder / "source"

    def write(self, name: str, text: str) -> None:
        path = self.source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def pack(self, name: str, version: int = 1, **changes: Any) -> Path:
        out = self.folder / name
        keys = changes.get("keys", self.keys)
        packs.build(self.source, out, self.root, keys, version, changes.get("days", 30))
        return out


def key_pair(folder: Path) -> list[Ed25519PrivateKey]:
    """Two keys and their root, in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("a.pem", "b.pem"):
        signing.make_key(folder / name)
    keys = [signing.load_key(folder / name) for name in ("a.pem", "b.pem")]
    signing.make_root(folder / "root.json", keys)
    return keys


def publisher(folder: Path) -> Publisher:
    key_pair(folder)
    made = Publisher(folder)
    made.write("pack.toml", 'name = "wards"\ntitle = "Ward guidelines"\n')
    made.write("collections/wards.toml", MANIFEST.format(name="wards"))
    made.write("documents/wards/sepsis.txt", SEPSIS)
    made.write("documents/wards/warfarin.txt", WARFARIN)
    return made


def titles(session: Session) -> set[str]:
    return {Path(document.key).name for document in lookups.documents(session)}


def refused(session: Session, folder: Path) -> str:
    """The code of the one error that ``folder`` is refused with; nothing of it has arrived."""
    before = sorted((session.data / "packs").glob("*"))
    with pytest.raises(LocalmedError) as caught:
        packs.import_pack(session, folder)
    assert sorted((session.data / "packs").glob("*")) == before
    assert caught.value.exit_code in (2, 3)
    return caught.value.message.code
