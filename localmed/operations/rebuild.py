"""A damaged generation made anew from its catalogue and the originals, where no copy of what is damaged is whole.

Hard links share their bytes, so a flipped bit in an index is in every generation that has the file. The catalogue of
each is a file of its own: where that is whole, and every original that it names is what its name says, every file is
read again as if it had just been imported, and only what the catalogue already says (titles by hand, marks, dates,
owners, summaries) is taken over. Vectors come from the cache beside the generations; what it lacks is encoded. The
canaries are asked before it is served.

Not covered: a catalogue or an original that is damaged, which a backup mends.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from localmed.domain import Kind, message
from localmed.errors import Damaged, LibraryError, UnknownName
from localmed.files import open_regular, told_if_full
from localmed.hooks import SILENT, Hooks, following
from localmed.ingest import manifest as manifests
from localmed.ingest import summaries
from localmed.ingest.reading import UNSETTLED, unmarked
from localmed.ingest.sources import Source
from localmed.library import generations, layout, originals
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.catalogue import Catalogue, ImportedFile, originals_of
from localmed.library.generations import AT_ONCE, Patience
from localmed.library.graph import FILE as GRAPH
from localmed.library.intact import sha256_of
from localmed.library.library import Builder
from localmed.library.state import State
from localmed.operations.importing import importer_of

if TYPE_CHECKING:
    from localmed.ingest.pipeline import Progress
    from localmed.session import Session


@dataclass(frozen=True, slots=True)
class KeptSource(Source):
    """A file that was imported from ``path``, of which the ``original`` is read."""

    original: Path = Path()

    @property
    def content(self) -> Path:
        """The original."""
        return self.original

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.original.stat().st_size

    def opened(self, path: Path) -> BinaryIO:
        """The original, whatever lies at ``path`` now."""
        del path
        return open_regular(self.original)


class Salvage(Builder):
    """A builder that begins with the catalogue (and the concept graph, where it is whole) of a damaged generation."""

    def __init__(self, session: Session, number: int) -> None:
        """The caller holds the writer lock."""
        self._number = number
        super().__init__(session.data, session.encoder.identity, session.settings.library)

    def begin(self) -> tuple[Path, int]:
        """The folder with that catalogue alone; nothing else is shared with any other generation."""
        building = generations.abandon_build(self._data)
        building.mkdir(parents=True, mode=0o700)
        with generations.lease(self._data, self._number) as damaged:
            generations.copy_checked(damaged, CATALOGUE, building)
            if GRAPH in generations.read_manifest(damaged).files:
                with suppress(Damaged):
                    generations.copy_checked(damaged, GRAPH, building)
        return building, 0


def possible(data: Path, number: int) -> bool:
    """Whether generation ``number`` can be made anew: every byte of its catalogue and its originals is read."""
    with suppress(LibraryError, UnknownName, OSError), generations.lease(data, number) as generation:
        entry = generations.read_manifest(generation).files[CATALOGUE]
        if sha256_of(generation / CATALOGUE) == entry.sha256:
            return all(sha256_of(data / layout.FILES / sha256) == sha256 for sha256 in originals_of(generation))
    return False


def rebuild(session: Session, number: int, hooks: Hooks = SILENT, patience: Patience = AT_ONCE) -> int:
    """Make generation ``number`` anew and serve it; return the new generation's number.

    Raise ``Damaged``, with nothing changed, where not every document could be read again.
    """
    with session.change("repair", f"generation {number}") as change, following(hooks.cancel_only()):
        started, advance = hooks.counter()
        with _salvaging(session, number, patience) as builder, State(session.data) as state:
            names = [collection.name for collection in builder.catalogue.collections()]
            listed = {name: list(_marked_unread(builder.catalogue, name)) for name in names}
            started(sum(_kept(session.data, file).bytes for files in listed.values() for file in files))
            for name in names:
                _read_again(session, builder, state, name, listed[name], advance)
            summaries.complete(builder, session.encoder, session.settings, advance)
            change.generation = builder.publish(message("generation.made.rebuild", number=number))
        change.outcome = "served"
    return change.generation


@contextmanager
def _salvaging(session: Session, number: int, patience: Patience) -> Iterator[Salvage]:
    with told_if_full(session.data), closing(generations.lock_writer(session.data, patience)):
        try:
            builder = Salvage(session, number)
        except BaseException:
            generations.abandon_build(session.data)
            raise
        try:
            yield builder
        finally:
            builder.discard()


def _marked_unread(catalogue: Catalogue, name: str) -> Iterator[ImportedFile]:
    """The files of collection ``name``, so marked that each is written though its documents are the same."""
    for file in catalogue.files(name).values():
        catalogue.put_file(replace(file, recipe=UNSETTLED + unmarked(file.recipe)))
        yield file


def _kept(data: Path, file: ImportedFile) -> KeptSource:
    return KeptSource(Path(file.path), file.root, original=originals.path_of(data, file.sha256))


def _read_again(
    session: Session, builder: Salvage, state: State, name: str, files: list[ImportedFile], advance: Progress
) -> None:
    manifest = manifests.chosen(session.data, name, None, lambda: builder.catalogue.collection(name))
    if manifest.collection.kind is Kind.GRAPH and (builder.path / GRAPH).exists():
        return  # the concept graph is whole
    importer = importer_of(session, manifest, advance)
    importer.read_again(builder, state, [_kept(session.data, file) for file in files])
