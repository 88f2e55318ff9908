"""Filling an empty library from the starter corpus, if it is installed, or from a folder of the machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Collection, Kind, Message, message
from localmed.domain.errors import LocalmedError, UsageError
from localmed.ingest import manifest as manifests
from localmed.ingest.manifest import Manifest
from localmed.process.hooks import Hooks
from localmed.site import importing
from localmed.site.importing import Intake

if TYPE_CHECKING:
    from localmed.site.session import Session

CORPORA = Path(__file__).resolve().parents[2] / "corpora"  # next to the package in a checkout and in the bundle
PREFIX = "starter-"


def starter_manifests() -> list[Path]:
    """The manifests of the installed starter corpus."""
    return [path for path in sorted(CORPORA.glob(f"{PREFIX}*.toml")) if _folder(path).is_dir()]


def _folder(manifest: Path) -> Path:
    return CORPORA / "starter" / manifest.stem.removeprefix(PREFIX)


def import_starter(session: Session, hooks: Hooks) -> Message:
    """Import all collections of the starter corpus as one generation; return the counts."""
    intakes = {file.stem: Intake(manifests.load(file), (_folder(file),), file=file) for file in starter_manifests()}
    documents = 0
    for outcome in importing.import_together(session, intakes, hooks=hooks).values():
        if isinstance(outcome, LocalmedError):
            raise outcome
        documents += outcome.counts["documents"]
    return message("job.imported", count=documents, refused=0)


def folder_of(text: str) -> Path:
    """The folder that a user typed; raise ``UsageError`` if it is not one."""
    path = Path(text.strip()).expanduser()
    if "\0" in text or not path.is_absolute() or not path.is_dir():
        raise UsageError("job.no_folder")
    return path


def import_folder(session: Session, folder: str, name: str, title: str, hooks: Hooks) -> Message:
    """Import ``folder`` of this machine into the collection ``name``; return the counts."""
    manifest = Manifest(Collection(name, title, kind=Kind.LOCAL))
    counts = importing.import_paths(session, [folder_of(folder)], manifest, hooks=hooks).counts
    return message("job.imported", count=counts["documents"], refused=counts["quarantined"])
