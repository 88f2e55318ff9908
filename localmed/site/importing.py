"""Imports: into one collection, in step with its source folders, or as a preview that stores nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.config import Settings
from localmed.domain import Collection, Kind
from localmed.domain.errors import LocalmedError, NoLibrary, UnknownName, UsageError
from localmed.ingest import manifest as manifests
from localmed.ingest import pipeline
from localmed.ingest.engine import Engine
from localmed.ingest.graph_import import GraphImporter
from localmed.ingest.manifest import Manifest
from localmed.ingest.pipeline import Importer, Progress, Report, run_together
from localmed.ingest.sources import Leaving
from localmed.library.generations import AT_ONCE, Patience
from localmed.process.hooks import SILENT, Hooks, following
from localmed.safety.prompt_injection import has_injection

NOTHING_LEFT = Leaving()
AHEAD = 2  # batches of passages a worker: one that it encodes, one that waits for it

if TYPE_CHECKING:
    from localmed.domain.previews import FilePreview
    from localmed.ingest.cluster import RayWorkers
    from localmed.site.session import Session


def manifest_of(session: Session, collection: str, file: Path | None) -> Manifest:
    """The manifest of ``collection``: from ``file``, else the stored one, else from the catalogue.

    Raise ``UnknownName`` without such a collection or library.
    """

    def catalogued() -> Collection:
        with session.workspace() as workspace:
            return workspace.library.catalogue.collection(collection)

    try:
        return manifests.chosen(session.data, collection, file, catalogued)
    except NoLibrary:
        raise UnknownName("collections.unknown_yet", name=collection) from None


def import_paths(
    session: Session,
    paths: Sequence[Path],
    manifest: Manifest,
    file: Path | None = None,
    retry: bool = False,
    removed: Sequence[str] = (),
    near_copies: bool = False,
    hooks: Hooks = SILENT,
    engine: RayWorkers | None = None,
) -> Report:
    """Import ``paths`` and forget ``removed`` ones; a manifest ``file`` is stored for later imports.

    ``near_copies`` accepts near copies of withdrawn documents, also from quarantine. The workers of ``engine`` parse
    and encode; raise ``UsageError`` with it for a concept graph, which they do not read.
    """
    name = manifest.collection.name
    if engine and manifest.collection.kind is Kind.GRAPH:
        raise UsageError("import.ray_graph", name=name)
    with session.change("import", name) as change, following(hooks.cancel_only()):
        started, advance = hooks.counter()
        importer = importer_of(session, manifest, advance, file)
        importer.near_copies = near_copies
        if engine:
            importer.engine = Engine(engine, session.site.encoder_maker, AHEAD * engine.count)
        report = importer.run(paths, retry or near_copies, started, removed)
        change.subject, change.generation = f"{report.collection}: {report.tally}", report.generation
        change.outcome = "near copies" if near_copies else "finished"
    return report


def importer_of(session: Session, manifest: Manifest, advance: Progress, file: Path | None = None) -> Importer:
    """The importer of the collection of ``manifest``, which is stored as ``file``."""
    importer = GraphImporter if manifest.collection.kind is Kind.GRAPH else Importer
    made = importer(session.settings, manifest, session.encoder, advance, file)
    made.speaks_to_models = lambda text: has_injection(text, session.site.emergency_encoder)
    return made


def workers(settings: Settings, address: str = "", count: int = 0) -> AbstractContextManager[RayWorkers]:
    """Ray workers for ``import_paths`` (see ``ingest.cluster``), to be started before a session is opened."""
    from localmed.ingest import cluster

    return cluster.workers(settings.ingest, address, count)


def update(session: Session, collection: str, retry: bool = False, hooks: Hooks = SILENT) -> Report:
    """Update ``collection`` from the folders and files that it was imported from.

    Raise ``UsageError``, with nothing changed, if it never was imported or a folder is missing.
    """
    with session.workspace() as workspace:
        origins = pipeline.origins_of(session.data, workspace.library.catalogue, collection)
    manifest = manifest_of(session, collection, None)
    return import_paths(session, origins.paths, manifest, None, retry, origins.missing, hooks=hooks)


@dataclass(frozen=True, slots=True)
class Intake:
    """The sources of a collection: ``paths`` to read and ``removed`` ones that no longer exist.

    ``file`` is a manifest to keep for later imports, ``leaving`` the files that stay as they are.
    """

    manifest: Manifest
    paths: tuple[Path, ...]
    removed: tuple[str, ...] = ()
    file: Path | None = None
    leaving: Leaving = NOTHING_LEFT


def import_together(
    session: Session,
    intakes: Mapping[str, Intake],
    retry: bool = False,
    hooks: Hooks = SILENT,
    action: str = "update",
    whole: bool = False,
    patience: Patience = AT_ONCE,
) -> dict[str, Report | LocalmedError]:
    """Import into several collections (by name) as one generation, checked by the canaries as a whole.

    A collection that cannot be imported stays as it is, with its error in place of a report; with ``whole`` the error
    is raised and nothing changes. ``patience``: how long to wait for another change to end.
    """
    with session.change(action, f"{len(intakes)} collections") as change, following(hooks.cancel_only()):
        started, advance = hooks.counter()
        outcomes: dict[str, Report | LocalmedError] = {}
        importers = {}
        for name, intake in intakes.items():
            importer = importer_of(session, intake.manifest, advance, intake.file)
            importer.leaving = intake.leaving
            try:
                importer.find(intake.paths, intake.removed)
                importers[name] = importer
                outcomes[name] = importer.report
            except LocalmedError as error:
                if whole:
                    raise
                outcomes[name] = error
        outcomes |= run_together(
            list(importers.values()), session.settings, session.encoder, retry, started, whole, patience
        )
        change.generation = max((it.generation for it in outcomes.values() if isinstance(it, Report)), default=0)
    for name, outcome in outcomes.items():
        if isinstance(outcome, Report):
            session.note("import", f"{name}: {outcome.tally}", "finished", outcome.generation)
    return outcomes


def update_all(session: Session, retry: bool = False, hooks: Hooks = SILENT) -> dict[str, Report | LocalmedError]:
    """``update`` for every collection imported from files, in one generation."""
    intakes: dict[str, Intake] = {}
    failures: dict[str, Report | LocalmedError] = {}
    for name in imported(session):
        try:
            with session.workspace() as workspace:
                origins = pipeline.origins_of(session.data, workspace.library.catalogue, name)
            intakes[name] = Intake(manifest_of(session, name, None), origins.paths, origins.missing)
        except LocalmedError as error:
            failures[name] = error
    return failures | import_together(session, intakes, retry, hooks)


def imported(session: Session) -> list[str]:
    """The collections imported from files, which ``update`` accepts, by priority."""
    with session.workspace() as workspace:
        return pipeline.imported_collections(session.data, workspace.library.catalogue)


def preview(
    session: Session, paths: Sequence[Path], collection: str, file: Path | None, hooks: Hooks
) -> Iterator[FilePreview]:
    """The outcome of importing each file of ``paths``, storing nothing; its original exists until the next file."""
    from localmed.ingest.preview import Preview

    session.may_change()
    manifest = _previewed(session, collection, file)
    started, advance = hooks.counter()
    with following(hooks.cancel_only()):
        yield from Preview(session.settings, manifest, advance).files(paths, started)


def previewed_title(session: Session, collection: str, file: Path | None) -> str:
    """The title of the collection of a dry run."""
    return _previewed(session, collection, file).collection.title


def thumbnails(original: Path, pages: Sequence[int]) -> dict[int, bytes]:
    """Small JPEGs of pages of an original, by page number."""
    from localmed.ingest import draw

    return draw.draw_thumbnails(original, pages)


def _previewed(session: Session, collection: str, file: Path | None) -> Manifest:
    """The manifest of ``collection``; a bare one if the collection does not exist."""
    try:
        return manifest_of(session, collection, file)
    except UnknownName:
        return Manifest(Collection(collection, collection))
