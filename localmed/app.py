"""The composition root: settings in, a running system out. The only place that chooses implementations.

Everything heavy is made when first needed, so that a command pays for what it uses: a Chinese question never loads the
encoder, a listing never loads an index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from localmed import __version__
from localmed.agents.extractive import Extractive
from localmed.agents.roles import CITED_ANSWER, KEYWORDS, RELEVANCE, Keywords, KeywordsInput
from localmed.config import Settings, chosen_models
from localmed.domain import (
    Answer,
    Collection,
    Document,
    Evidence,
    Hit,
    Kind,
    Provenance,
    SearchFilter,
    Status,
    TraceStep,
)
from localmed.errors import UnknownName, UsageError
from localmed.ingest import draw, summaries, updates
from localmed.ingest import manifest as manifests
from localmed.ingest.graph_import import GraphImporter
from localmed.ingest.manifest import Manifest
from localmed.ingest.pipeline import Importer, Progress, Report
from localmed.language import clean
from localmed.library import generations, originals
from localmed.library.library import Library, build
from localmed.library.withdrawals import Withdrawals
from localmed.models import choice
from localmed.models.registry import Registry
from localmed.operations.audit import Audit, actor
from localmed.operations.reindex import reindex
from localmed.ports import Embedder, Reranker
from localmed.retrieval import concepts
from localmed.retrieval.concepts import Card
from localmed.retrieval.search import Found, HybridSearch
from localmed.retrieval.tiers import Tier, tiers_of
from localmed.workflows.ask import Plan, ask
from localmed.workflows.flow import Driver


class App:
    """One data folder with its settings. A context manager; one thread at a time."""

    def __init__(self, settings: Settings, encoder: Embedder | None = None) -> None:
        """``encoder`` overrides the profile's (tests, benchmarks)."""
        self.settings = settings
        self._models = chosen_models(settings)
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
        """The encoder that the settings choose; its weights load at the first use."""
        return self._encoder or choice.encoder(self._models)

    @cached_property
    def reranker(self) -> Reranker | None:
        """The reranker that the settings choose; its weights load at the first use."""
        return choice.reranker(self._models, self.encoder)

    @cached_property
    def registry(self) -> Registry:
        """The registered models."""
        return Registry(Path(self._models.folder))

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
        asked, most = clean(question), self._keywords()
        found: Keywords = self._performer().perform(KEYWORDS, KeywordsInput(asked, most)) if most else Keywords()
        return self._hybrid().search(asked, wanted, limit, found.words)

    def ask(
        self,
        question: str,
        wanted: SearchFilter,
        watch: Callable[[TraceStep], None] | None = None,
        preset: str | None = None,
    ) -> Answer:
        """Answer ``question`` from the tiers of ``preset`` (default: the settings'; "": by the collections' priority).

        The audit log notes that it was asked, not what. Raise ``UnknownName`` for a preset or collection not known.
        """
        self.newest()
        self._known(wanted)
        chosen = self.settings.ask.preset if preset is None else preset
        further = chosen in self.settings.tiers.further
        plan = Plan(self.tiers(chosen, wanted.collections), self.settings.ask.passages, self._keywords(), further)
        driver = Driver(self._hybrid(), self._performer(), self.mint, watch or _unwatched)
        answer = driver.run(ask(clean(question), wanted, plan, self.provenance()))
        self.note("ask", f"{len(answer.statements)} statements", answer.status.value, answer)
        return answer

    def tiers(self, preset: str, only: tuple[str, ...] = ()) -> tuple[Tier, ...]:
        """The tiers of ``preset`` ("": by priority) within the collections ``only`` (empty: all)."""
        presets = self.settings.tiers.presets
        if preset and preset not in presets:
            known = ", ".join(presets)
            raise UnknownName("there is no preset of that name", f"Presets: {known} (settings: tiers.presets)")
        catalogue = self.library.catalogue
        filled = {name for name, (_, passages) in catalogue.counts().items() if passages}
        return tiers_of(presets[preset] if preset else (), catalogue.collections(), filled, only)

    def _keywords(self) -> int:
        """How many keywords to extract: none where their ranking weighs nothing."""
        return self.settings.keywords.most if self.settings.search.keyword_weight else 0

    def _performer(self) -> Extractive:
        return Extractive(self.library.lexical, self.encoder, self.settings.ask, self.settings.keywords)

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
        reranker = (("reranker", self.reranker.name),) if self.reranker else ()
        return Provenance(
            generation=self.library.path.name,
            profile=self.settings.profile,
            models=(("encoder", f"{identity.name} {identity.version}"), *reranker, ("chat", "none: extractive")),
            prompts=tuple((role.name, role.version) for role in (KEYWORDS, RELEVANCE, CITED_ANSWER)),
            version=__version__,
        )

    def _hybrid(self) -> HybridSearch:
        if self._search is None:
            self._search = HybridSearch(self.library, self.encoder, self.settings.search, self.reranker)
        return self._search

    def _known(self, wanted: SearchFilter) -> None:
        for name in wanted.collections:
            self.library.catalogue.collection(name)

    def concept(self, term: str, question: str = "", by_meaning: bool = False, context: str = "") -> Card:
        """The card of ``term`` from the concept graph; raise ``UnknownName`` with near names.

        ``question`` orders its relations (``by_meaning``: by the reranker, else the encoder); it and ``context`` may
        spell an abbreviation out. Nothing of it is noted anywhere.
        """
        from localmed.models import abbreviations

        reranker = (self.reranker or concepts.Cosine(self.encoder)) if by_meaning and question else None
        known = self.encoder.identity.languages if reranker else ()
        asked, text = clean(question), clean(context)
        return concepts.card(self.newest().graph, clean(term), asked, reranker, abbreviations.expand, text, known)

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
        removed: Sequence[str] = (),
    ) -> Report:
        """Import ``paths``, forget ``removed`` (gone); a manifest ``file`` is kept for later imports."""
        importer = GraphImporter if manifest.collection.kind is Kind.GRAPH else Importer
        report = importer(self.settings, manifest, self.encoder, progress).run(paths, retry, started, removed)
        if file:
            self._keep_manifest(file, manifest.collection.name)
        counts = " ".join(f"{name}={count}" for name, count in report.counts.items() if count)
        self.note("import", f"{manifest.collection.name}: {counts}", "finished", generation=report.generation)
        return report

    def update(
        self,
        collection: str,
        retry: bool = False,
        progress: Progress | None = None,
        started: Callable[[int], None] | None = None,
    ) -> Report:
        """Bring ``collection`` in step with the folders and files it was imported from.

        Raise ``UsageError`` where it never was or where one of the folders is gone; nothing changes then.
        """
        found = updates.origins_of(self.data, self.newest().catalogue, collection)
        manifest = self.manifest(collection, None)
        return self.import_paths(list(found.paths), manifest, None, retry, progress, started, found.gone)

    def imported(self) -> list[str]:
        """The collections that were imported from files, which ``update`` can bring in step, first priority first."""
        return updates.imported(self.data, self.newest().catalogue)

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
            summaries.complete(builder, self.encoder, self.settings)  # its kind may have become "guideline"
            number = builder.publish(f"collection {collection.name}")
        self.note("collection", collection.name, f"priority {collection.priority}", generation=number)
        return number

    def remove(self, documents: list[Document]) -> int:
        """Remove documents from every index; files of which nothing is left are forgotten."""
        with build(self.data, self.encoder.identity, self.settings.library) as builder:
            builder.remove(each.id for each in documents)
            updates.unsettle(builder.catalogue, documents)
            number = builder.publish(f"remove {len(documents)} documents")
        self.note("remove", " ".join(each.id[:12] for each in documents[:20]), f"{len(documents)}", generation=number)
        return number

    def mark(self, document: Document, status: Status, replaced_by: str = "", reason: str = "") -> int:
        """Mark a document current or superseded; return the new generation's number.

        Raise ``UsageError`` if it is to be current though its source withdrew it; only the ledger's can be taken back.
        """
        with build(self.data, self.encoder.identity, self.settings.library) as builder:
            stored = builder.catalogue.document(document.id)  # its own status, not the ledger's
            if status is Status.CURRENT and stored.status is Status.WITHDRAWN:
                raise UsageError(
                    f"document {document.id[:12]} was withdrawn by its source, which no mark lifts",
                    f"Once its file or manifest no longer says so: localmed collections update {document.collection}",
                )
            builder.mark(stored, status, replaced_by, reason)
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

    def reindex(self, progress: Progress, started: Callable[[int], None], again: bool = False) -> int:
        """Bring the library to the chosen encoder; return the new generation's number, 0 if it was its already."""
        number = reindex(self.settings, self.encoder, progress, started, again)
        if number:
            self.close()
            self.note("reindex", self.encoder.identity.slug, "served", generation=number)
        return number

    def note(
        self, action: str, subject: str, outcome: str, answer: Answer | None = None, generation: int | None = None
    ) -> None:
        """One line in the audit log."""
        with closing(Audit(self.data)) as audit:
            audit.append(action, subject, outcome, f"{generation:04d}" if generation else "", answer)


def _unwatched(step: TraceStep) -> None:
    del step
