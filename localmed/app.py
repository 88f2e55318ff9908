"""The composition root: settings in, a running system out. The only place that chooses implementations.

Everything heavy is made when first needed, so that a command pays for what it uses: a Chinese question never loads the
encoder, a listing never loads an index.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from localmed.agents.chat_entailment import ChatEntailment
from localmed.config import CHAT, DEFAULT, Settings, built_in, chosen_models, model_folder, profile_known
from localmed.consultation import UNFOLLOWED, Consultation, Followed
from localmed.domain import Answer, Collection, Document, Evidence, Hit, Kind, SearchFilter, Status
from localmed.errors import NoLibrary, UsageError
from localmed.ingest import draw, summaries, updates
from localmed.ingest import manifest as manifests
from localmed.ingest.graph_import import GraphImporter
from localmed.ingest.manifest import Manifest
from localmed.ingest.pipeline import Importer, Progress, Report
from localmed.library import generations
from localmed.library.library import Builder, Library, build, today
from localmed.library.readers import Readers, groups_of
from localmed.library.withdrawals import Withdrawals
from localmed.models import chat_choice, choice, shipped_weights
from localmed.models.host.adapters import NOTHING, Hosted, connect, unhurried
from localmed.models.host.choices import choices
from localmed.models.minilm import MiniLM
from localmed.models.registry.registry import Registry
from localmed.operations import governing, model_changes
from localmed.operations.audit import Audit, actor
from localmed.operations.reindex import reindex
from localmed.ports import CountingChat, Embedder, Entailment, Reranker
from localmed.retrieval.concepts import Card, Expand
from localmed.retrieval.search import Found
from localmed.verification.stance import starter

if TYPE_CHECKING:
    from localmed.models.host.server import Host
    from localmed.models.host.server import Status as HostStatus


class App:
    """One data folder with its settings. A context manager; one thread at a time."""

    def __init__(
        self,
        settings: Settings,
        encoder: Embedder | None = None,
        uses: Mapping[str, str] = MappingProxyType({}),
        day: Callable[[], str] = today,
    ) -> None:
        """``encoder``, and ``uses`` (role -> model), override what was chosen; ``day`` tells the date (ISO)."""
        profile_known(settings)
        self.settings = settings
        self._encoder, self._uses, self._day = encoder, uses, day
        self.readers, self._groups = Readers(settings.data), groups_of(settings.reader.groups, settings.data)
        self._library: Library | None = None
        self._consultation: Consultation | None = None

    def __enter__(self) -> App:
        """The app itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close what was opened."""
        self.close()

    def close(self) -> None:
        """Give up the lease on the generation, the connections to the model host and the chat model's process."""
        self._leave()
        if "_hosted" in self.__dict__:
            self._hosted.close()
        if "chat" in self.__dict__ and isinstance(self.chat, chat_choice.Closing):
            self.chat.close()

    def _leave(self) -> None:
        """Give up the lease on the generation; the next use takes the newest."""
        if self._library:
            self._library.close()
        self._library = self._consultation = None

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.settings.data

    @cached_property
    def encoder(self) -> Embedder:
        """The encoder that was chosen; its weights load at the first use."""
        return self._encoder or self._hosted.encoder or choice.encoder(self.serving, self.registry)

    @cached_property
    def reranker(self) -> Reranker | None:
        """The reranker that was chosen; its weights load at the first use."""
        return self._hosted.reranker or choice.reranker(self.serving, self.registry, self.encoder)

    @cached_property
    def chat(self) -> CountingChat | None:
        """The chat model that was chosen, if one was; it loads at the first request."""
        return self._hosted.chat or chat_choice.chat(self.settings.chat, self.serving, self.registry)

    @cached_property
    def entailment(self) -> Entailment:
        """The judge of entailment that was chosen: a cross-encoder, the chat model, else the starter's."""
        found = self._hosted.entailment or choice.entailment(self.serving, self.registry)
        if found is None and self.serving["entailment"] == CHAT and self.chat:
            return ChatEntailment(self.chat)
        return found or starter(shipped_weights.arrays("starter-entailment"), self.encoder, MiniLM)

    @cached_property
    def _hosted(self) -> Hosted:
        """What a model host serves of what was chosen."""
        return NOTHING if self._encoder else connect(self.data, self.settings.host, self._choices())

    def _choices(self) -> dict[str, str]:
        return choices(self.serving, self.registry.registrations, self.settings.chat)

    def serve_models(self, stop: int, ready: Callable[[HostStatus, Path], None]) -> None:
        """Be the model host of this data folder until something can be read from the file number ``stop``."""
        from localmed.library.nearest import Nearest
        from localmed.models.host import hosting

        def made() -> Host:
            return hosting.made(self.settings, self.serving, self.registry, Nearest(self.data))

        hosting.serve(self.data, made, ready, stop)

    def host_status(self) -> HostStatus | None:
        """How the model host is, None if none runs; raise ``ModelError`` if it does not answer as it should."""
        from localmed.models.host import hosting

        return hosting.status(self.data, self.settings.host, self._choices())

    @cached_property
    def registry(self) -> Registry:
        """The registered models."""
        return Registry(model_folder(self.settings))

    @property
    def serving(self) -> dict[str, str]:
        """What serves each role now: what ``localmed models use`` chose, else the profile's (``chosen_models``)."""
        registered = self.registry.registrations
        return chosen_models(self.settings, {**registered.roles, **self._uses}, registered.models)

    def built_with(self) -> str:
        """The encoder of the generation being served; "" if nothing has been imported."""
        with suppress(NoLibrary):
            return generations.read_manifest(generations.current(self.data)).encoder
        return ""

    def use(self, role: str, name: str, progress: Progress) -> None:
        """Let ``name`` (a registered model, one of ``BUILT_IN``, ``DEFAULT``) serve ``role`` from now on.

        Raise ``UsageError`` for one that cannot, ``ModelError`` for one that has changed or is not complete.
        """
        self.librarian()
        registered = self.registry.registrations
        if not built_in(role, name):
            self.registry.fitting(role, name)
        roles = {**registered.roles, role: name}
        if name == DEFAULT:
            del roles[role]
        choice.check(role, chosen_models(self.settings, roles, registered.models), self.registry)
        if (role, name) == ("entailment", CHAT) and self.chat is None:
            raise UsageError("no chat model serves", "First: localmed models use chat NAME")
        model_changes.use(self.registry, self.data, role, name, progress)

    @property
    def library(self) -> Library:
        """The generation in use, leased: one and the same through a whole question, whatever is swapped meanwhile."""
        if self._library is None:
            self._library = Library.open(self.data, self.hidden(), self._day())
        return self._library

    def newest(self) -> Library:
        """The generation being served now; every question and look-up begins with it."""
        served = self._library
        if served and (generations.current(self.data), self.hidden()) != (served.path, served.hidden):
            self._leave()
        self.library.holding.day = self._day()
        return self.library

    def hidden(self) -> frozenset[str]:
        """The collections that whoever runs this may not read."""
        return self.readers.hidden_from(self._groups)

    # --- questions -------------------------------------------------------------------------------------------------

    def consultation(self) -> Consultation:
        """The workflows over the generation being served now; every question and look-up begins with it."""
        library = self.newest()
        if self._consultation is None or self._consultation.library is not library:
            self._consultation = Consultation(library, self)
            if self._hosted.nearest:
                library.searched_by(partial(self._hosted.nearest, library.path.name))
        return self._consultation

    def search(self, question: str, wanted: SearchFilter, limit: int) -> Found:
        """Hybrid search; raise ``UnknownName`` for a collection that does not exist."""
        return self.consultation().search(question, wanted, limit)

    def ask(
        self,
        question: str,
        wanted: SearchFilter,
        preset: str | None = None,
        earlier: Sequence[str] = (),
        followed: Followed = UNFOLLOWED,
    ) -> Answer:
        """See ``Consultation.ask``; the other workflows are the consultation's as well."""
        return self.consultation().ask(question, wanted, preset, earlier, followed)

    def noted(self, answer: Answer) -> Answer:
        """``answer``, noted in the audit log: by its workflow, counts and status."""
        self.note(answer.workflow, f"{len(answer.statements)} statements", answer.status.value, answer)
        return answer

    def concept(self, term: str, question: str = "", by_meaning: bool = False) -> Card:
        """See ``Consultation.concept``."""
        return self.consultation().concept(term, question, by_meaning)

    @property
    def expand(self) -> Expand:
        """Spells abbreviations out."""
        from localmed.models import abbreviations

        return abbreviations.expand

    # --- looking up ------------------------------------------------------------------------------------------------

    def documents(self, collection: str = "") -> list[Document]:
        """The documents, of a collection or all, each with the status in force now."""
        library = self.newest()
        if collection:
            library.catalogue.collection(collection)
        return [replace(each, status=library.status(each.id)) for each in library.catalogue.documents(collection)]

    def document(self, prefix: str) -> Document:
        """The document whose id starts with ``prefix``, with the status in force now."""
        found = self.newest().catalogue.document(prefix)
        return replace(found, status=self.library.status(found.id))

    def evidence_of(self, prefix: str) -> Evidence:
        """The passage whose id starts with ``prefix``, as evidence."""
        return self.consultation().mint((Hit(self.newest().passage(prefix), 0.0),))[0]

    def draw(
        self, evidence: Evidence, image: Path, page: int | None = None, span: tuple[int, int] | None = None
    ) -> None:
        """See ``ingest.draw.cited``."""
        document = partial(self.library.lexical.of_document, evidence.passage.document_id)
        draw.cited(self.data, evidence, image, page, span, document)

    # --- changes ---------------------------------------------------------------------------------------------------

    def manifest(self, collection: str, file: Path | None) -> Manifest:
        """See ``manifest.chosen``."""
        return manifests.chosen(self.data, collection, file, lambda: self.newest().catalogue.collection(collection))

    def librarian(self) -> None:
        """Raise ``UsageError`` for a reader of groups: who does not see the whole library may not change it."""
        if self._groups is not None:
            raise UsageError("this is not for readers of groups", "Leave out --as-group and the setting reader.groups")

    def _build(self) -> AbstractContextManager[Builder]:
        self.librarian()
        return build(self.data, self.encoder.identity, self.settings.library)

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
        self.librarian()
        importer = GraphImporter if manifest.collection.kind is Kind.GRAPH else Importer
        report = importer(self.settings, manifest, unhurried(self.encoder), progress).run(
            paths, retry, started, removed
        )
        if file:
            manifests.keep(self.data, manifest.collection.name, file)
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

    def put_collection(self, collection: Collection) -> int:
        """Create or change a collection; return the new generation's number."""
        with self._build() as builder:
            builder.put_collection(collection)
            summaries.complete(builder, self.encoder, self.settings)  # its kind may have become "guideline"
            number = builder.publish(f"collection {collection.name}")
        self.note("collection", collection.name, f"priority {collection.priority}", generation=number)
        return number

    def remove(self, documents: list[Document]) -> int:
        """Remove documents from every index; files of which nothing is left are forgotten."""
        with self._build() as builder:
            builder.remove(each.id for each in documents)
            updates.unsettle(builder.catalogue, documents)
            number = builder.publish(f"remove {len(documents)} documents")
        self.note("remove", " ".join(each.id[:12] for each in documents[:20]), f"{len(documents)}", generation=number)
        return number

    def mark(self, document: Document, status: Status, replaced_by: str = "", reason: str = "") -> int:
        """See ``operations.governing.mark``; return the new generation's number."""
        with self._build() as builder:
            governing.mark(builder, document.id, status, replaced_by, reason)
            number = builder.publish(f"mark {document.id[:12]} {status.value}")
        self.note("mark", document.id, status.value, generation=number)
        return number

    def govern(self, changes: Sequence[governing.Change]) -> int:
        """See ``operations.governing.apply``, all or nothing; return the new generation's number."""
        with self._build() as builder:
            governing.apply(builder, changes, lambda name: self.manifest(name, None), self.encoder, self.settings)
            number = builder.publish(f"govern {len(changes)} files or documents")
        for change in changes:
            self.note("govern", change.subject, change.fields, generation=number)
        return number

    def set_readers(self, collection: str, groups: Sequence[str]) -> None:
        """Let only ``groups`` read ``collection`` (none: everybody), from the next question on."""
        self.librarian()
        self.readers.put(collection, groups)
        self.note("readers", collection, " ".join(groups) or "everybody")

    def withdraw(self, document: Document, withdrawn: bool, reason: str) -> None:
        """Withdraw a document, or take that back: in force on the next query, in every generation."""
        self.librarian()
        Withdrawals(self.data).append(document, withdrawn, reason, actor())
        self.note("withdraw" if withdrawn else "reinstate", document.id, "in force")

    def rollback(self, number: int | None) -> int:
        """Serve generation ``number`` (default: the one before the current); checks its files first."""
        self.librarian()
        with generations.lock_writer(self.data):
            chosen = generations.rollback(self.data, number)
        self._leave()
        self.note("rollback", f"generation {chosen}", "served", generation=chosen)
        return chosen

    def upgrade(self) -> int:
        """Build a generation with today's schema from the current one."""
        with self._build() as builder:
            number = builder.publish("upgrade")
        self.note("upgrade", f"generation {number}", "served", generation=number)
        return number

    def reindex(self, progress: Progress, started: Callable[[int], None], again: bool = False) -> int:
        """Bring the library to the chosen encoder; return the new generation's number, 0 if it was its already."""
        self.librarian()
        number = reindex(self.settings, unhurried(self.encoder), progress, started, again)
        if number:
            self._leave()
            self.note("reindex", self.encoder.identity.slug, "served", generation=number)
        return number

    def note(
        self, action: str, subject: str, outcome: str, answer: Answer | None = None, generation: int | None = None
    ) -> None:
        """One line in the audit log."""
        with closing(Audit(self.data)) as audit:
            audit.append(action, subject, outcome, f"{generation:04d}" if generation else "", answer)
