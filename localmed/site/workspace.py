"""One open library with the site's models and rules: it answers the requests of flows and builds their inputs.

A workspace serves one thread while it is leased (``site.py``) and keeps nothing from one question to the next. It turns
the settings into a flow's inputs: tiers and sources to search, plan, bounds of a check, and the provenance of an
answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property, partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from localmed import __version__
from localmed.answering import judging
from localmed.answering.chat import ChatRoles
from localmed.answering.check import CHECK
from localmed.answering.planning import PLAN, SOURCES
from localmed.answering.role_table import ROLES, RoleTable, role_rules, role_table
from localmed.answering.write import scope_spans
from localmed.config import SERVED_BY
from localmed.domain import Document, Evidence, Hit, Kind, Message, Passage, Provenance, SearchFilter, Status, message
from localmed.domain.errors import BadSettings, ModelError, UnknownName, UsageError
from localmed.domain.findings import Finding, Found, Reading
from localmed.domain.ports import NOT_JUDGED, Embedder, EncoderIdentity, Stance, Watch, Weights, encode_both
from localmed.library.library import Library
from localmed.library.reading import missing
from localmed.library.remarks import Planted, Remark
from localmed.process.hooks import Hooks
from localmed.retrieval import concepts, studies
from localmed.retrieval.concepts import Card
from localmed.retrieval.marks import Similar
from localmed.retrieval.order import others_answer_better
from localmed.retrieval.question import read as understood
from localmed.retrieval.search import HybridSearch
from localmed.retrieval.sections import sections as in_sections
from localmed.retrieval.studies import Study
from localmed.retrieval.subjects import absent, closeness, subjects
from localmed.retrieval.tiers import Tier, tiers_of
from localmed.safety.prompt_injection import has_injection
from localmed.safety.safety import site_message
from localmed.text.language import clean, detect
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Services
from localmed.workflows.strategies import Sources

if TYPE_CHECKING:  # modules of a single workflow are imported when it runs
    from localmed.domain.ports import Vectors
    from localmed.site.site import Models
    from localmed.workflows.m_eval import Bounds


SECTIONS, OTHERS = 10, 3  # sections shown in the question's language, and in each other language
SCOPES = 3  # passages that state whom a document is for
LATELY, AMONG = 7, 3  # days for which a withdrawal is reported, if the document would rank among the first passages
EARLIER = 2  # previous questions searched for together with the first of a conversation


class Workspace:
    """The services of flows over one library. One thread at a time."""

    def __init__(self, library: Library, site: Models) -> None:
        """The caller who opened ``library`` closes it."""
        self.library, self._site = library, site
        self.settings = site.settings

    def services(self, hooks: Hooks, by_words_too: bool = True) -> Services:
        """The services of one run of a flow; the rules' memory ends with the run.

        ``by_words_too``: search by words alone where the encoder does not respond, instead of raising its
        ``ModelError``.
        """
        library, search = self.library, self.settings.search
        finder = self._finder()
        return Services(
            search=finder.search,
            find=partial(self._find_or_by_words, finder) if by_words_too else partial(self.find, finder=finder),
            naming=self.naming,
            scopes=self.scopes,
            look_up=self.look_up,
            cite=self.mint,
            judge=self.judge,
            compare=self.compare,
            studies=lambda query, most, names: self._mark_planted(studies.find(library, query, most, names, search)),
            resolve=lambda references: self._mark_planted(studies.named(library, references)),
            roles=self._role_table(hooks),
        )

    def withdrawn(self) -> frozenset[str]:
        """The documents that are withdrawn now."""
        statuses = self.library.holding.statuses()
        return frozenset(document for document, status in statuses.items() if status is Status.WITHDRAWN)

    def withdrawal(self, document: str, title: str) -> Message | None:
        """The message that ``document`` was withdrawn, when and why; None if it is not, or is hidden."""
        if self.library.catalogue.hides(document) or document not in self.withdrawn():
            return None
        stored = self.library.catalogue.by_ids([document]).get(document)
        entry = self.library.holding.withdrawal(document, stored.content if stored else "")
        if entry is None:
            return message("answer.withdrawn_by_source", title=title)
        return message("answer.withdrawn_since", title=title, date=entry.time[:10], reason=entry.reason)

    def standing(self, documents: Iterable[str]) -> dict[str, tuple[Status, str]]:
        """The current status of each document, and the date of an overdue review."""
        return {
            document: (self.library.status(document), self.library.holding.overdue(document)) for document in documents
        }

    def within(self, collections: tuple[str, ...]) -> SearchFilter:
        """The filter of ``collections``; raise ``UnknownName`` for one that does not exist."""
        filters = SearchFilter(collections)
        self._require_known(filters)
        return filters

    # --- how a question is asked -------------------------------------------------------------------------------------

    def plan(self, filters: SearchFilter, preset: str | None = None) -> Plan:
        """The plan of a question within ``filters`` by ``preset`` (default: the settings')."""
        self._require_known(filters)
        chosen = self.settings.ask.preset if preset is None else preset
        return Plan(
            tiers=self.tiers(chosen, filters.collections),
            passages=self.settings.ask.passages,
            roles=self.roles.on,
            own_knowledge=self.settings.workflows.own_knowledge,
            audience="patient" if chosen in self.settings.workflows.patient_presets else "staff",
            safety=self._safety(),
            jury=self._jury(),
            judge=self._judge(),
            chat=self._chat(),
            day=self.library.holding.day,
        )

    def _judge(self) -> str:
        """The judge's name; "" without one, and where the chat model judges all statements in one request."""
        judge = self._site.entailment
        return judge.name if judge.languages and not self._checks_at_once else ""

    @property
    def _checks_at_once(self) -> bool:
        """Whether the judging chat model passed the self-test in judging all statements of an answer together."""
        return self._site.chat_judges and CHECK.name in self._chat()

    def _chat(self) -> frozenset[str]:
        return frozenset(name for name in self.roles.on if self.roles.by(ROLES[name]) == "chat")

    def _jury(self) -> tuple[str, ...]:
        """The served roles of the jury; raise ``BadSettings`` for a role that is not the badge's."""
        known, named = {role.name for role in judging.ROLES}, self.settings.verification.jury
        if unknown := set(named) - known:
            raise BadSettings("settings.judge", known=", ".join(sorted(known)), name=min(unknown))
        return tuple(role for role in named if self.roles.by(ROLES[role]) != "off")

    def _safety(self) -> tuple[tuple[str, Message], ...]:
        site = self.settings.workflows
        chosen = (("en", site.safety_en), ("zh", site.safety_zh))
        numbers = (site.crisis_line, site.emergency_number)
        return tuple((language, site_message(language, text, *numbers)) for language, text in chosen)

    def screen(self, text: str) -> None:
        """Raise ``UsageError`` with the site's safety message for a text of a person in danger, by rules alone.

        For lookups outside a flow; every flow begins with ``screening.screened``.
        """
        from localmed.safety.safety import SafetyInput
        from localmed.safety.safety_rules import screen

        task = SafetyInput(text, self.plan(SearchFilter()).audience)
        if screen(task).concern:
            raise UsageError(dict(self._safety()).get(task.language) or site_message(task.language, "", ""))

    def tiers(self, preset: str, only: tuple[str, ...] = ()) -> tuple[Tier, ...]:
        """The tiers of ``preset`` ("": by priority) within the collections ``only`` (empty: all)."""
        presets = self.settings.tiers.presets
        if preset and preset not in presets:
            known = tuple(presets)
            raise UnknownName("settings.preset_unknown", known=known, name=preset)
        catalogue, hidden = self.library.catalogue, self.library.hidden
        named = [[name for name in tier if name not in hidden] for tier in presets[preset]] if preset else ()
        return tiers_of(named, catalogue.collections(), self._filled(), only)

    def sources(self, filters: SearchFilter) -> Sources:
        """The non-empty collections of each source of a plan, by kind, within ``filters``."""
        allowed = filters.collections or self._filled()
        named = {
            source: tuple(name for name in self.of_kinds((kind,)) if name in allowed)
            for source, kind in SOURCES.items()
        }
        return Sources(**named, graph=bool(self.library.graph.counts()))

    def provenance(self, judged: bool = False) -> Provenance:
        """The models, prompts and generation in use; with the judge where it checks statements or claims."""
        identity, reranker, chat = self._site.encoder.identity, self._site.reranker, self._site.chat
        by_chat = chat is not None and any(
            self.roles.by(role) == "chat" for role in ROLES.values() if role.name not in self.roles.own
        )
        models = [("encoder", f"{identity.name} {identity.version}")]
        models += [("reranker", reranker.name)] if reranker else []
        models += [("chat", chat.identity.name)] if chat and by_chat else []
        models += [("planner", self._site.planner.identity.name)] if self._site.planner else []
        judge = not self._checks_at_once and (by_chat or judged)
        models += [("entailment", self._site.entailment.name)] if judge else []
        return Provenance(
            generation=self.library.path.name,
            profile=self.settings.profile,
            models=tuple(models),
            prompts=tuple((role.name, f"{self.roles.by(role)}-{role.version}") for role in ROLES.values()),
            version=__version__,
            day=self.library.holding.day,
            emergency_number=self.settings.workflows.emergency_number,
        )

    def bounds(self) -> Bounds:
        """The numbers and collections of studies that M-Eval reads."""
        from localmed.workflows.m_eval import Bounds

        site = self.settings.workflows
        return Bounds(site.m_eval_found, site.m_eval_kept, self.of_kinds(site.m_eval_kinds))

    def of_kinds(self, kinds: Sequence[str]) -> tuple[str, ...]:
        """The non-empty collections of ``kinds``, by priority."""
        filled, collections = self._filled(), self.library.catalogue.collections()
        return tuple(
            collection.name for collection in collections if collection.kind in kinds and collection.name in filled
        )

    def _filled(self) -> set[str]:
        return {name for name, (_, passages) in self.library.catalogue.counts().items() if passages}

    def _require_known(self, filters: SearchFilter) -> None:
        for name in filters.collections:
            self.library.catalogue.collection(name)

    # --- what flows ask for ------------------------------------------------------------------------------------------

    @cached_property
    def roles(self) -> RoleTable:
        """The table of who serves which role."""
        return self._role_table(Hooks())

    def _role_table(self, hooks: Hooks) -> RoleTable:
        settings, model = self.settings, self._site.chat
        watch = Watch(cancelled=hooks.models_over, progress=lambda done, total: hooks.progress(done, total, ""))
        chat = ChatRoles(model, watch) if model else None
        own = {PLAN.name: ChatRoles(planner, watch)} if (planner := self._site.planner) else {}
        usual = "chat" if self._site.chat_chosen else SERVED_BY[settings.profile]
        rules = role_rules(self.library, self._site)
        return role_table(ROLES, usual, settings.roles, rules, chat, self._site.unfit_roles, own)

    def _finder(self) -> HybridSearch:
        encoder = CachingEncoder(self._site.encoder)  # encodes a question once for all searches
        return HybridSearch(self.library, encoder, self.settings.search, self._site.reranker)

    def naming(
        self, names: tuple[tuple[str, ...], ...], filters: SearchFilter, most: int
    ) -> tuple[tuple[Passage, ...], ...]:
        """The best ``most`` passages for each group of ``names``, by words alone."""
        search, found = self.settings.search, list[list[str]]()
        for group in names:
            rows = self.library.search_lexical(" ".join(group), most, filters, search.title_boost, search.query_terms)
            found.append([name for name, _, _ in rows])
        known = self.library.passages([*dict.fromkeys(chain.from_iterable(found))])
        return tuple(tuple(known[name] for name in one if name in known) for one in found)

    def scopes(self, documents: tuple[str, ...]) -> tuple[tuple[Passage, ...], ...]:
        """The first ``SCOPES`` passages of each document that state whom it is for."""
        whole = (self.library.document_passages(name) for name in documents)
        return tuple(tuple(it for it in passages if any(scope_spans(it)))[:SCOPES] for passages in whole)

    def _find_or_by_words(self, finder: HybridSearch, *asked: Any) -> Finding:
        """``find``, by words alone where encoder or reranker do not respond; the reader is told."""
        try:
            return self.find(*asked, finder=finder)
        except ModelError:
            return self.find(*asked, reranked=False, finder=finder)

    def find(
        self,
        question: str,
        filters: SearchFilter,
        limit: int,
        sections: int = SECTIONS,
        left_out: tuple[str, ...] = (),
        earlier: tuple[str, ...] = (),
        *,
        reranked: bool = True,
        finder: HybridSearch | None = None,
    ) -> Finding:
        """Search ``question`` for ``limit`` passages and return at most ``sections`` sections, per language.

        Sections in the question's language come first. ``earlier`` are the questions before it, ``left_out`` readings
        that are not searched for; for ``reranked`` see ``HybridSearch.search``. Raise ``UnknownName`` for an unknown
        collection.
        """
        finder = finder or self._finder()
        self._require_known(filters)
        index, text = self.library.lexical, clean(question)
        spoken = detect(text)
        read = understood(text, finder.bridge.own_terms, index.spelling, left_out)
        if earlier:
            before = dict.fromkeys(map(clean, (*earlier[:1], *earlier[-EARLIER:])))  # the first named the subject
            read = replace(read, readings=(*read.readings, Reading("", " ".join(before))))
        languages = [filters.language] if filters.language else self.library.catalogue.languages()
        own = spoken if spoken in languages else ""
        first = filters if filters.language else replace(filters, language=own)
        result = finder.search(text, first, limit, reranked, read=read)
        others = [
            name
            for name in languages
            if own and name != own and result.dense and name in self._site.encoder.identity.languages
        ]
        across = [finder.search(text, replace(filters, language=name), limit, reranked, read=read) for name in others]
        documents: dict[str, list[Passage]] = {}

        def document(name: str) -> list[Passage]:
            return documents.setdefault(name, self.library.document_passages(name))

        similar: Similar = partial(finder.similarities, read) if result.dense else lambda _: {}
        literature = {one.name for one in self.library.catalogue.collections() if one.kind is Kind.LITERATURE}
        asked = subjects(read)
        lacking = absent(read, asked, self.library)
        result = replace(result, closeness=closeness(result.closeness, read, lacking, asked))
        made = partial(in_sections, document=document, similar=similar, studies=literature.__contains__,
                       lacking=lacking)  # fmt: skip
        shown = made(result.hits, read, index, sections)
        beside = tuple(it for one in across for it in made(one.hits, read, index, OTHERS))
        standing = self.standing({it.best.passage.document_id for it in (*shown, *beside)})
        lately = partial(self._withdrawn_lately, partial(finder.search, text, reranked=reranked, read=read))
        of_others = (
            lately(replace(filters, language=name), found.hits) for name, found in zip(others, across, strict=True)
        )
        gone = tuple(dict.fromkeys((*lately(first, result.hits), *chain.from_iterable(of_others))))
        return Finding(read, result, shown, beside, standing, gone, lacking, others_answer_better(read, shown, beside))

    def _withdrawn_lately(
        self, search: Callable[..., Found], filters: SearchFilter, hits: Sequence[Hit]
    ) -> tuple[tuple[str, str, str], ...]:
        """Title, day and reason of recently withdrawn documents that ``search`` would rank among the first ``hits``."""
        since = date.fromisoformat(self.library.holding.day) - timedelta(LATELY)
        since_then = self.library.holding.withdrawn_since(since.isoformat())
        gone = {} if filters.documents else self.library.catalogue.by_ids(since_then)
        if not gone:
            return ()
        first = dict.fromkeys(hit.passage.document_id for hit in hits[:AMONG])
        both = replace(filters, documents=(*first, *gone), statuses=(*filters.statuses, Status.WITHDRAWN))
        found = dict.fromkeys(hit.passage.document_id for hit in search(both, AMONG).hits)
        return tuple((gone[name].title, *since_then[name]) for name in found if name in gone)

    def look_up(self, term: str, question: str = "", context: str = "") -> Card | None:
        """The card of ``term``, ``None`` where the graph lacks it."""
        try:
            return self.concept(term, question, context=context)
        except UnknownName:
            return None

    def concept(self, term: str, question: str = "", by_meaning: bool = False, context: str = "") -> Card:
        """The card of ``term`` from the concept graph; raise ``UnknownName`` with near names.

        ``question`` orders its relations (``by_meaning``: with the reranker, else the encoder). Together with
        ``context`` it may expand an abbreviation. Nothing is logged.
        """
        site = self._site
        reranker = (site.reranker or concepts.Cosine(site.encoder)) if by_meaning and question else None
        known = site.encoder.identity.languages if reranker else ()
        cleaned, text = clean(question), clean(context)
        return concepts.card(self.library.graph, clean(term), cleaned, reranker, site.expand, text, known)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Stance]:
        """The stance of each (premise, hypothesis); ``NOT_JUDGED`` unless the judge knows both languages."""
        judge = self._site.entailment
        if not judge.languages:  # it judges nothing, and compares
            return judge.judge(pairs)
        known = [{*map(detect, pair)} <= {*judge.languages} for pair in pairs]
        judged_pairs = [pair for pair, judged in zip(pairs, known, strict=True) if judged]
        stances = iter(judge.judge(judged_pairs) if judged_pairs else ())
        return [next(stances) if judged else NOT_JUDGED for judged in known]

    def compare(self, question: str, texts: Sequence[str]) -> tuple[float, ...]:
        """The similarity of each text to ``question``, by reranker or encoder; empty in an unknown language."""
        site = self._site
        if not texts or detect(question) not in site.encoder.identity.languages:
            return ()
        return tuple(map(float, (site.reranker or concepts.Cosine(site.encoder)).score(question, texts)))

    def mint(self, hits: tuple[Hit, ...], first: int = 1) -> tuple[Evidence, ...]:
        """Evidence for ``hits``, numbered from ``first``. Markers are made nowhere else."""
        documents = self.library.catalogue.by_ids({hit.passage.document_id for hit in hits})
        kinds = {collection.name: collection.kind for collection in self.library.catalogue.collections()}
        for hit in hits:
            document = documents.get(hit.passage.document_id)
            if document is None or hit.passage.collection not in kinds:
                raise missing(self.library.path, hit.passage.id)
            self.library.cited(document)
        standing, remarks = self.standing(documents), self.library.remarks
        return tuple(
            self._evidence(
                str(number),
                hit,
                documents[hit.passage.document_id],
                kinds[hit.passage.collection],
                standing[hit.passage.document_id],
                remarks.get(hit.passage.id),
            )
            for number, hit in zip(count(first), hits, strict=False)
        )

    def _evidence(
        self, marker: str, hit: Hit, document: Document, kind: Kind, standing: tuple[Status, str], remark: Remark | None
    ) -> Evidence:
        status, overdue = standing
        return Evidence(
            marker=marker,
            passage=hit.passage,
            document_title=document.title,
            edition=document.edition,
            status=status,
            source=document.source,
            url=document.url,
            file_sha256=document.file_sha256,
            media_type=document.media_type,
            publication_types=document.publication_types,
            replaced_by=document.replaced_by,
            kind=kind,
            overdue=overdue,
            planted=self._is_planted(hit.passage, remark),
            remark=remark.note if remark else "",
        )

    def _is_planted(self, passage: Passage, remark: Remark | None) -> bool:
        """Whether ``passage`` addresses a language model: by its remark, else by the detector.

        The detector's classifier by meaning runs only where a chat model would read the passage.
        """
        if remark and remark.planted:
            return remark.planted is Planted.SUSPECTED
        return has_injection(passage.in_context, self._site.emergency_encoder if self._chat() else None)

    def _mark_planted(self, found: Sequence[Study | None]) -> tuple[Any, ...]:
        remarks = self.library.remarks

        def planted(passage: Passage) -> bool:
            return self._is_planted(passage, remarks.get(passage.id))

        return tuple(it and replace(it, planted=any(map(planted, it.passages))) for it in found)


CACHED = 512  # texts: those of a question's few roles; a vector of 384 numbers has 1.5 kB


class CachingEncoder:
    """``Embedder`` that encodes each text once, because a question is searched for in each language.

    Made for one run of a flow, so that no text outlives its question.
    """

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self._cache: dict[tuple[str, str], Vectors] = {}

    @property
    def identity(self) -> EncoderIdentity:
        """The encoder's."""
        return self._encoder.identity

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``."""
        missing = [text for text in dict.fromkeys(texts) if (kind, text) not in self._cache]
        if len(self._cache) + len(missing) > CACHED:
            self._cache.clear()
            missing = list(dict.fromkeys(texts))
        if missing:
            vectors = self._encoder.encode(missing, kind)
            self._cache |= {(kind, text): vector for text, vector in zip(missing, vectors, strict=True)}
        cached = [self._cache[kind, text] for text in texts]
        return np.stack(cached) if cached else self._encoder.encode((), kind)

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """See ``SparseEncoder.encode_both``; not cached, because only a search uses it, once."""
        return encode_both(self._encoder, texts, kind)
