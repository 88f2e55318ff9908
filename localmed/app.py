"""The composition root: settings in, a running system out. The only place that chooses implementations.

Everything heavy is made when first needed, so that a command pays for what it uses: a Chinese question never loads the
encoder, a listing never loads an index.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from localmed import __version__
from localmed.agents.extractive import Extractive
from localmed.agents.roles import CITED_ANSWER, RELEVANCE
from localmed.config import Settings
from localmed.domain import Answer, Collection, Document, Evidence, Hit, Provenance, SearchFilter, Status, TraceStep
from localmed.errors import BadSettings, UsageError
from localmed.ingest import draw
from localmed.ingest import manifest as manifests
from localmed.ingest.manifest import Manifest
from localmed.ingest.pipeline import Importer, Progress, Report
from localmed.language import clean
from localmed.library import generations, originals
from localmed.library.library import Library, build
from localmed.library.withdrawals import Withdrawals
from localmed.operations.audit import Audit, actor
from localmed.ports import Embedder
from localmed.retrieval.search import Found, HybridSearch
from localmed.workflows.ask import ask
from localmed.workflows.flow import Driver


class App:
    """One data folder with its settings. A context manager; one thread at a time."""

    def __init__(self, settings: Settings, encoder: Embedder | None = None) -> None:
        """``encoder`` overrides the profile's (tests, benchmarks)."""
        if settings.profile != "starter":
            raise BadSettings(f"there is no profile {settings.profile!r}", 'Set profile = "starter"')
        self.settings = settings
        self._encoder = encoder
        self._library: Library | None = None
        self._search: HybridSearch | None = None

    def __enter__(self) -> App:
        """The app itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened."""
        self.close()

    def close(self) -> None:
        """Give up the lease on the generation; the next use takes the newest."""
        if self._library:
            self._library.close()
        self._library = self._search = None

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.settings.data

    @cached_property
    def encoder(self) -> Embedder:
        """The profile's encoder; its weights load at the first use."""
        from localmed.models.minilm import MiniLM

        return self._encoder or MiniLM()

    @property
    def library(self) -> Library:
        """The generation in use, leased: one and the same through a whole question, whatever is swapped meanwhile."""
        if self._library is None:
            self._library = Library.open(self.data)
        return self._library

    def newest(self) -> Library:
        """The generation being served now; every question and look-up begins with it."""
        if self._library and generations.current(self.data) != self._library.path:
            self.close()
        return self.library

    # --- questions -------------------------------------------------------------------------------------------------

    def search(self, question: str, wanted: SearchFilter, limit: int) -> Found:
        """Hybrid search; raise ``UnknownName`` for a collection that does not exist."""
        self.newest()
        self._known(wanted)
        return self._hybrid().search(clean(question), wanted, limit)

    def ask(self, question: str, wanted: SearchFilter, watch: Callable[[TraceStep], None] | None = None) -> Answer:
        """Answer ``question``; the audit log notes that it was asked, not what."""
        self.newest()
        self._known(wanted)
        performer = Extractive(self.library.lexical, self.encoder, self.settings.ask)
        driver = Driver(self._hybrid(), performer, self.mint, watch or _unwatched)
        searched = wanted.collections or tuple(each.name for each in self.library.catalogue.collections())
        answer = driver.run(ask(clean(question), wanted, self.settings.ask.passages, searched, self.provenance()))
        self.note("ask", f"{len(answer.statements)} statements", answer.status.value, answer)
        return answer

    def mint(self, hits: tuple[Hit, ...]) -> tuple[Evidence, ...]:
        """Evidence for ``hits``, numbered in their order: the only place where markers are made."""
        documents = self.library.catalogue.by_ids({hit.passage.document_id for hit in hits})
        return tuple(
            self._evidence(str(number), hit, documents[hit.passage.document_id]) for number, hit in enumerate(hits, 1)
        )

    def _evidence(self, marker: str, hit: Hit, document: Document) -> Evidence:
        return Evidence(
            marker=marker,
            passage=hit.passage,
            document_title=document.title,
            edition=document.edition,
            status=self.library.status(document.id),
            source=document.source,
            url=document.url,
            file_sha256=document.file_sha256,
            media_type=document.media_type,
            publication_types=document.publication_types,
            replaced_by=document.replaced_by,
        )

    def provenance(self) -> Provenance:
        """What answers now."""
        identity = self.encoder.identity
        return Provenance(
            generation=self.library.path.name,
            profile=self.settings.profile,
            models=(("encoder", f"{identity.name} {identity.version}"), ("chat", "none: extractive")),
            prompts=tuple((role.name, role.version) for role in (RELEVANCE, CITED_ANSWER)),
            version=__version__,
        )

    def _hybrid(self) -> HybridSearch:
        if self._search is None:
            self._search = HybridSearch(self.library, self.encoder, self.settings.search)
        return self._search

    def _known(self, wanted: SearchFilter) -> None:
        for name in wanted.collections:
            self.library.catalogue.collection(name)

    # --- looking up ------------------------------------------------------------------------------------------------

    def documents(self, collection: str = "") -> list[Document]:
        """The documents, of a collection or all, each with the status in force now."""
        self.newest()
        if collection:
            self.library.catalogue.collection(collection)
        found = self.library.catalogue.documents(collection)
        return [replace(each, status=self.library.status(each.id)) for each in found]

    def document(self, prefix: str) -> Document:
        """The document whose id starts with ``prefix``, with the status in force now."""
        found = self.newest().catalogue.document(prefix)
        return replace(found, status=self.library.status(found.id))

    def evidence_of(self, prefix: str) -> Evidence:
        """The passage whose id starts with ``prefix``, as evidence."""
        return self.mint((Hit(self.newest().passage(prefix), 0.0),))[0]

    def draw(
        self, evidence: Evidence, image: Path, page: int | None = None, span: tuple[int, int] | None = None
    ) -> None:
        """Write a page of ``evidence`` (its first, or ``page``) as PNG with the passage, or ``span`` of it, marked."""
        passage = evidence.passage
        start, end = span or (0, len(passage.text))
        if not passage.spans:
            return draw.text(passage.title, passage.text, start, min(end, len(passage.text)), image)
        marked = passage.boxes(start, end)
        chosen = page or (marked[0].page if marked else passage.page)
        boxes = [box for box in marked if box.page == chosen]
        if not boxes:
            pages = sorted({box.page for box in passage.boxes()})
            raise UsageError(f"the passage is not on page {page}", f"It is on {', '.join(map(str, pages))}")
        return draw.page(originals.path_of(self.data, evidence.file_sha256), boxes[0].page, boxes, image)

    # --- changes ---------------------------------------------------------------------------------------------------

    def manifest(self, collection: str, file: Path | None) -> Manifest:
        """The manifest of ``collection``: ``file``, else the one it was last imported with, else its catalogue row."""
        kept = self.data / "corpora" / f"{collection}.toml"
        if not file and not kept.exists():
            return Manifest(self.newest().catalogue.collection(collection))
        manifest = manifests.load(file or kept)
        if manifest.collection.name != collection:
            raise UsageError(
                f"the manifest describes {manifest.collection.name!r}, not {collection!r}",
                f"Give --collection {manifest.collection.name}",
            )
        if file:
            return manifest
        # What the librarian has set of the collection since (its priority) stands.
        return replace(manifest, collection=self.newest().catalogue.collection(collection))

    def import_paths(
        self,
        paths: list[Path],
        manifest: Manifest,
        file: Path | None = None,
        retry: bool = False,
        progress: Progress | None = None,
        started: Callable[[int], None] | None = None,
    ) -> Report:
        """Import ``paths``; a manifest ``file`` is kept for the collection's later imports."""
        report = Importer(self.settings, manifest, self.encoder, progress).run(paths, retry, started)
        if file:
            self._keep_manifest(file, manifest.collection.name)
        counts = " ".join(f"{name}={count}" for name, count in report.counts.items() if count)
        self.note("import", f"{manifest.collection.name}: {counts}", "finished", generation=report.generation)
        return report

    def _keep_manifest(self, file: Path, collection: str) -> None:
        kept = self.data / "corpora" / f"{collection}.toml"
        kept.parent.mkdir(exist_ok=True, mode=0o700)
        fresh = kept.with_suffix(".new")
        fresh.write_bytes(file.read_bytes())
        fresh.replace(kept)

    def put_collection(self, collection: Collection) -> int:
        """Create or change a collection; return the new generation's number."""
        with build(self.data, self.encoder.identity, self.settings.library) as builder:
            builder.put_collection(collection)
            number = builder.publish(f"collection {collection.name}")
        self.note("collection", collection.name, f"priority {collection.priority}", generation=number)
        return number

    def remove(self, documents: list[Document]) -> int:
        """Remove documents from every index; files of which nothing is left are forgotten."""
        with build(self.data, self.encoder.identity, self.settings.library) as builder:
            builder.remove(each.id for each in documents)
            for collection, source in {(each.collection, each.source) for each in documents}:
                if not builder.catalogue.of_file(collection, source):
                    builder.catalogue.remove_file(collection, source)
            number = builder.publish(f"remove {len(documents)} documents")
        self.note("remove", " ".join(each.id[:12] for each in documents[:20]), f"{len(documents)}", generation=number)
        return number

    def mark(self, document: Document, status: Status, replaced_by: str = "", reason: str = "") -> int:
        """Mark a document current or superseded; return the new generation's number."""
        with build(self.data, self.encoder.identity, self.settings.library) as builder:
            builder.mark(document, status, replaced_by, reason)
            number = builder.publish(f"mark {document.id[:12]} {status.value}")
        self.note("mark", document.id, status.value, generation=number)
        return number

    def withdraw(self, document: Document, withdrawn: bool, reason: str) -> None:
        """Withdraw a document, or take that back: in force on the next query, in every generation."""
        Withdrawals(self.data).append(document, withdrawn, reason, actor())
        self.note("withdraw" if withdrawn else "reinstate", document.id, "in force")

    def rollback(self, number: int | None) -> int:
        """Serve generation ``number`` (default: the one before the current); checks its files first."""
        with generations.lock_writer(self.data):
            chosen = generations.rollback(self.data, number)
        self.close()
        self.note("rollback", f"generation {chosen}", "served", generation=chosen)
        return chosen

    def upgrade(self) -> int:
        """Build a generation with today's schema from the current one."""
        with build(self.data, self.encoder.identity, self.settings.library) as builder:
            number = builder.publish("upgrade")
        self.note("upgrade", f"generation {number}", "served", generation=number)
        return number

    def note(
        self, action: str, subject: str, outcome: str, answer: Answer | None = None, generation: int | None = None
    ) -> None:
        """One line in the audit log."""
        with closing(Audit(self.data)) as audit:
            audit.append(action, subject, outcome, f"{generation:04d}" if generation else "", answer)


def _unwatched(step: TraceStep) -> None:
    del step
