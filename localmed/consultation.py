"""A consultation: the workflows over one open generation, with the models, rules and settings of the site.

Made by the app for each question; holds nothing of one for the next. Every workflow runs here the same way: is it
allowed, who serves which role, drive the flow. The app notes in the audit log that it ran (never what was asked).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any, Protocol

from localmed import __version__
from localmed.agents import asking, decomposing, planning, planning_rules
from localmed.agents.asking import KEYWORDS, Keywords, KeywordsInput
from localmed.agents.cast import Cast, Rules, cast
from localmed.agents.chat import ChatRoles
from localmed.agents.extractive import Extractive
from localmed.agents.roles import Role
from localmed.agents.source_plan import SOURCES
from localmed.config import SERVED_BY, Settings
from localmed.domain import Answer, Document, Evidence, Hit, Provenance, SearchFilter, TraceStep
from localmed.errors import UnknownName, UsageError
from localmed.language import clean, detect
from localmed.library.library import Library
from localmed.ports import CountingChat, Embedder, Entailment, Reranker, Stance
from localmed.retrieval import concepts
from localmed.retrieval.concepts import Card
from localmed.retrieval.search import Found, HybridSearch
from localmed.retrieval.tiers import Tier, tiers_of
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver
from localmed.workflows.flows import FLOWS
from localmed.workflows.gathering import Sources
from localmed.workflows.recording import Recording
from localmed.workflows.strategies import STRATEGIES

ROLES: dict[str, Role] = {role.name: role for role in (*asking.ROLES, *decomposing.ROLES, *planning.ROLES)}
NOT_JUDGED = Stance(0.0, 1.0, 0.0)  # in a language that the judge was not shown to know nothing is claimed


class Site(Protocol):
    """What a consultation needs of the app. Models are made when they are first needed."""

    @property
    def settings(self) -> Settings: ...  # noqa: D102
    @property
    def encoder(self) -> Embedder: ...  # noqa: D102
    @property
    def reranker(self) -> Reranker | None: ...  # noqa: D102
    @property
    def chat(self) -> CountingChat | None: ...  # noqa: D102
    @property
    def entailment(self) -> Entailment: ...  # noqa: D102
    def noted(self, answer: Answer) -> Answer: ...  # noqa: D102
    @property
    def expand(self) -> concepts.Expand: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Followed:
    """How a caller follows a workflow: ``watch`` is told of each step, ``recording`` takes down what a replay needs."""

    watch: Callable[[TraceStep], object] = lambda _: None
    recording: Recording | None = None


UNFOLLOWED = Followed()


class Consultation:
    """The workflows over one library."""

    def __init__(self, library: Library, site: Site) -> None:
        self.library, self._site = library, site
        self.settings = site.settings

    # --- the workflows -----------------------------------------------------------------------------------------------

    def ask(
        self,
        question: str,
        wanted: SearchFilter,
        preset: str | None = None,
        earlier: Sequence[str] = (),
        followed: Followed = UNFOLLOWED,
    ) -> Answer:
        """Answer ``question`` from the tiers of ``preset`` (default: the settings'; "": by the collections' priority).

        ``earlier`` are the questions before it. Raise ``UnknownName`` for a preset or collection not known.
        """
        self.allow("ask")
        given = (clean(question), wanted, self.plan(wanted, preset), self.provenance(), tuple(map(clean, earlier)))
        return self.run("ask", given, followed)

    def plan_sources(
        self, question: str, wanted: SearchFilter, strategy: str = "prompting", followed: Followed = UNFOLLOWED
    ) -> Answer:
        """Answer ``question`` from a source plan made by ``strategy`` (see ``workflows.strategies``).

        Raise ``UnknownName`` for a strategy or collection not known.
        """
        self.allow("plan")
        if strategy not in STRATEGIES:
            raise UnknownName("there is no strategy of that name", f"Strategies: {', '.join(STRATEGIES)}")
        given = (clean(question), wanted, self.plan(wanted), self.sources(wanted), strategy, self.provenance())
        return self.run("plan", given, followed)

    def allow(self, workflow: str) -> None:
        """Raise ``UsageError`` if the site has switched ``workflow`` off."""
        if workflow in self.settings.workflows.off:
            raise UsageError(
                f"{workflow} is switched off at this site", "Ask whoever keeps the settings (workflows.off)"
            )

    def plan(self, wanted: SearchFilter, preset: str | None = None) -> Plan:
        """How a question within ``wanted`` is asked by ``preset``."""
        self._known(wanted)
        chosen = self.settings.ask.preset if preset is None else preset
        return Plan(
            tiers=self.tiers(chosen, wanted.collections),
            passages=self.settings.ask.passages,
            keywords=self._keywords(),
            further=chosen in self.settings.tiers.further,
            roles=self.cast.on,
            own_knowledge=self.settings.workflows.own_knowledge,
        )

    def run(self, workflow: str, given: tuple[Any, ...], followed: Followed) -> Answer:
        """Drive the flow called ``workflow`` on ``given`` to its answer."""
        driver = Driver(self.finder, self.cast, self.mint, self.look_up, self.judge, followed.watch)
        if followed.recording:
            followed.recording.begin(workflow, given)
            driver = replace(driver, record=followed.recording.step)
        return self._site.noted(driver.run(FLOWS[workflow](*given)))

    # --- what flows ask for ------------------------------------------------------------------------------------------

    @cached_property
    def cast(self) -> Cast:
        """Who serves which role."""
        settings, model = self.settings, self._site.chat
        chat = ChatRoles(model) if model else None
        return cast(ROLES, SERVED_BY[settings.profile], settings.roles, self._rules(), chat)

    def _rules(self) -> Rules:
        settings, site = self.settings, self._site
        extractive = Extractive(self.library.lexical, site.encoder, settings.ask, settings.keywords)
        return {**extractive.rules(), **planning_rules.rules(extractive.extract_keywords)}

    @cached_property
    def finder(self) -> HybridSearch:
        """Hybrid search of this library."""
        return HybridSearch(self.library, self._site.encoder, self.settings.search, self._site.reranker)

    def search(self, question: str, wanted: SearchFilter, limit: int) -> Found:
        """Hybrid search; raise ``UnknownName`` for a collection that does not exist."""
        self._known(wanted)
        asked, most = clean(question), self._keywords()
        found: Keywords = self._rules()[KEYWORDS.name](KeywordsInput(asked, most)) if most else Keywords()
        return self.finder.search(asked, wanted, limit, found.words)

    def look_up(self, term: str, question: str = "", context: str = "") -> Card | None:
        """The card of ``term``, ``None`` where the graph does not know it."""
        try:
            return self.concept(term, question, context=context)
        except UnknownName:
            return None

    def concept(self, term: str, question: str = "", by_meaning: bool = False, context: str = "") -> Card:
        """The card of ``term`` from the concept graph; raise ``UnknownName`` with near names.

        ``question`` orders its relations (``by_meaning``: by the reranker, else the encoder); it and ``context`` may
        spell an abbreviation out. Nothing of it is noted anywhere.
        """
        site = self._site
        reranker = (site.reranker or concepts.Cosine(site.encoder)) if by_meaning and question else None
        known = site.encoder.identity.languages if reranker else ()
        asked, text = clean(question), clean(context)
        return concepts.card(self.library.graph, clean(term), asked, reranker, site.expand, text, known)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Stance]:
        """The stance of each (premise, hypothesis); neutral where the judge does not know the hypothesis's language."""
        judge = self._site.entailment
        known = [pair for pair in pairs if detect(pair[1]) in judge.languages]
        judged = iter(judge.judge(known) if known else ())
        return [next(judged) if detect(pair[1]) in judge.languages else NOT_JUDGED for pair in pairs]

    def mint(self, hits: tuple[Hit, ...], first: int = 1) -> tuple[Evidence, ...]:
        """Evidence for ``hits``, numbered in their order from ``first`` on: the only place where markers are made."""
        documents = self.library.catalogue.by_ids({hit.passage.document_id for hit in hits})
        return tuple(
            self._evidence(str(number), hit, documents[hit.passage.document_id])
            for number, hit in zip(count(first), hits, strict=False)
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

    # --- the site ----------------------------------------------------------------------------------------------------

    def tiers(self, preset: str, only: tuple[str, ...] = ()) -> tuple[Tier, ...]:
        """The tiers of ``preset`` ("": by priority) within the collections ``only`` (empty: all)."""
        presets = self.settings.tiers.presets
        if preset and preset not in presets:
            known = ", ".join(presets)
            raise UnknownName("there is no preset of that name", f"Presets: {known} (settings: tiers.presets)")
        catalogue = self.library.catalogue
        filled = {name for name, (_, passages) in catalogue.counts().items() if passages}
        return tiers_of(presets[preset] if preset else (), catalogue.collections(), filled, only)

    def sources(self, wanted: SearchFilter) -> Sources:
        """The collections of each source of a plan: those of its kind that hold a passage and that ``wanted`` "
        "allows."""
        catalogue = self.library.catalogue
        filled = {name for name, (_, passages) in catalogue.counts().items() if passages}
        there = [each for each in catalogue.collections() if each.name in (wanted.collections or filled)]
        named = {source: tuple(each.name for each in there if each.kind is kind) for source, kind in SOURCES.items()}
        return Sources(**named, graph=bool(self.library.graph.counts()))

    def provenance(self) -> Provenance:
        """What answers now."""
        identity, reranker, chat = self._site.encoder.identity, self._site.reranker, self._site.chat
        by_chat = chat is not None and any(self.cast.by(role) == "chat" for role in ROLES.values())
        models = [("encoder", f"{identity.name} {identity.version}")]
        models += [("reranker", reranker.name)] if reranker else []
        models += [("chat", chat.identity.name if chat and by_chat else "none: extractive")]
        models += [("entailment", self._site.entailment.name)] if by_chat else []
        return Provenance(
            generation=self.library.path.name,
            profile=self.settings.profile,
            models=tuple(models),
            prompts=tuple((role.name, f"{self.cast.by(role)}-{role.version}") for role in ROLES.values()),
            version=__version__,
        )

    def _known(self, wanted: SearchFilter) -> None:
        for name in wanted.collections:
            self.library.catalogue.collection(name)

    def _keywords(self) -> int:
        """How many keywords to extract: none where their ranking weighs nothing."""
        return self.settings.keywords.most if self.settings.search.keyword_weight else 0
