"""A consultation: the workflows over one open generation, with the models, rules and settings of the site.

Made by the app for each generation; holds nothing of one question for the next. Every workflow runs here the same way:
is it allowed, who serves which role, drive the flow. The app notes in the audit log that it ran (never what was asked).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Protocol

from localmed import __version__
from localmed.agents import judging
from localmed.agents.appraisal import APPRAISAL
from localmed.agents.asking import KEYWORDS, Keywords, KeywordsInput
from localmed.agents.cast import Cast, cast
from localmed.agents.chat import ChatRoles
from localmed.agents.safety import message
from localmed.agents.source_plan import SOURCES
from localmed.casting import ROLES, Models, SiteRules
from localmed.config import SERVED_BY
from localmed.domain import Answer, Document, Evidence, Hit, Kind, Passage, Provenance, SearchFilter, TraceStep
from localmed.errors import BadSettings, UnknownName, UsageError
from localmed.language import clean, detect
from localmed.library.library import Library
from localmed.ports import NOT_JUDGED, CountingChat, Entailment, Stance
from localmed.retrieval import concepts, studies
from localmed.retrieval.concepts import Card
from localmed.retrieval.guideline_map import to_read
from localmed.retrieval.search import Found, HybridSearch
from localmed.retrieval.tiers import Tier, tiers_of
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Driver
from localmed.workflows.flows import flow
from localmed.workflows.gathering import Sources
from localmed.workflows.recording import Recording

if TYPE_CHECKING:  # what one workflow needs is imported when that one runs
    from localmed.domain.patient import PatientRecord
    from localmed.verification.answer_file import VerifyInput
    from localmed.verification.link_eval import LinkInput
    from localmed.workflows.explain import ExplainInput
    from localmed.workflows.m_eval import Bounds


class Site(Models, Protocol):
    """What a consultation needs of the app. Models are made when they are first needed."""

    @property
    def chat(self) -> CountingChat | None: ...  # noqa: D102
    @property
    def entailment(self) -> Entailment: ...  # noqa: D102
    def noted(self, answer: Answer) -> Answer: ...  # noqa: D102


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
        check: bool = False,
    ) -> Answer:
        """Answer ``question`` from the tiers of ``preset`` (default: the settings'; "": by the collections' priority).

        ``earlier`` are the questions before it. With ``check`` the answer's claims are held against further studies
        (M-Eval). Raise ``UnknownName`` for a preset or collection not known.
        """
        self.allow("ask")
        provenance = self.provenance(judged=check)
        given = (clean(question), wanted, self.plan(wanted, preset), provenance, tuple(map(clean, earlier)))
        if not check:
            return self.run("ask", given, followed)
        self.allow("verify")
        return self.run("ask_and_verify", (*given, self._bounds()), followed)

    def verify(self, given: VerifyInput, followed: Followed = UNFOLLOWED) -> Answer:
        """Hold an answer from anywhere against the library: its citations, then its claims (M-Eval)."""
        self.allow("verify")
        return self.run("verify", (given.cleaned(), self._bounds(), self.provenance(judged=True)), followed)

    def plan_sources(
        self, question: str, wanted: SearchFilter, strategy: str = "prompting", followed: Followed = UNFOLLOWED
    ) -> Answer:
        """Answer ``question`` from a source plan made by ``strategy`` (see ``workflows.strategies``).

        Raise ``UnknownName`` for a strategy or collection not known.
        """
        from localmed.workflows.strategies import STRATEGIES

        self.allow("plan")
        if strategy not in STRATEGIES:
            raise UnknownName("there is no strategy of that name", f"Strategies: {', '.join(STRATEGIES)}")
        given = (clean(question), wanted, self.plan(wanted), self.sources(wanted), strategy, self.provenance())
        return self.run("plan", given, followed)

    def explain(self, given: ExplainInput, wanted: SearchFilter, followed: Followed = UNFOLLOWED) -> Answer:
        """Explain a medical order from the patient's tiers, and answer questions about it."""
        self.allow("explain")
        cleaned = replace(given, order=clean(given.order), questions=tuple(map(clean, given.questions)))
        plan = replace(self.plan(wanted, "patient"), audience="patient")
        return self.run("explain", (cleaned, wanted, plan, self.provenance()), followed)

    def ebm(
        self,
        question: str,
        wanted: SearchFilter,
        record: PatientRecord | None = None,
        is_pico: bool = False,
        followed: Followed = UNFOLLOWED,
    ) -> Answer:
        """Answer a clinical question about the patient of ``record`` from the tiers of HERD (preset ``ebm``)."""
        self.allow("ebm")
        given = (clean(question), wanted, self.plan(wanted, "ebm"), self.provenance(), record, is_pico)
        return self.run("ebm", given, followed)

    def departments(self, complaint: str, followed: Followed = UNFOLLOWED) -> Answer:
        """Where to go with ``complaint`` (in a patient's own words), by the guide: the collections of kind local."""
        self.allow("departments")
        wanted = SearchFilter(self._of_kinds((Kind.LOCAL,)))
        plan = replace(self.plan(wanted), audience="patient")
        return self.run("departments", (clean(complaint), wanted, plan, self.provenance()), followed)

    def links(
        self, given: LinkInput, wanted: SearchFilter, preset: str | None = None, followed: Followed = UNFOLLOWED
    ) -> Answer:
        """Evaluate an answer by Link-Eval; ``wanted`` and ``preset`` are those that it was asked with."""
        from localmed.verification.link_eval import LinkBasis

        judge = self._site.entailment
        basis = LinkBasis(judge.name, tuple(judge.languages))
        return self.run("links", (given, wanted, self.plan(wanted, preset), basis, self.provenance()), followed)

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
            audience="patient" if chosen in self.settings.workflows.patient_presets else "staff",
            safety=self._safety(),
            unsupported=self.settings.verification.unsupported,
            jury=self._jury(),
        )

    def _jury(self) -> tuple[str, ...]:
        """The roles of the jury that are served; raise ``BadSettings`` for one that is none of the badge's."""
        known, named = {role.name for role in judging.ROLES}, self.settings.verification.jury
        if unknown := set(named) - known:
            raise BadSettings(f"there is no judge {sorted(unknown)[0]!r} (setting verification.jury)",
                              f"Judges: {', '.join(sorted(known))}")  # fmt: skip
        return tuple(each for each in named if self.cast.by(ROLES[each]) != "off")

    def _safety(self) -> tuple[tuple[str, str], ...]:
        """The site's safety message in each language."""
        site = self.settings.workflows
        chosen = (("en", site.safety_en), ("zh", site.safety_zh))
        return tuple((language, message(language, text, site.crisis_line)) for language, text in chosen)

    def run(self, workflow: str, given: tuple[Any, ...], followed: Followed) -> Answer:
        """Drive the flow called ``workflow`` on ``given`` to its answer."""
        library, search = self.library, self.settings.search
        served = replace(self.cast, rules=SiteRules(library, self._site))  # what it remembers ends with the run
        driver = Driver(
            self.finder, served, self.mint, self.look_up, self.judge, followed.watch, read=self.read,
            compare=self.compare, studies=lambda query, most, names: studies.find(library, query, most, names, search),
            resolve=lambda references: studies.named(library, references),
        )  # fmt: skip
        if followed.recording:
            followed.recording.begin(workflow, given)
            driver = replace(driver, record=followed.recording.step)
        return self._site.noted(driver.run(flow(workflow)(*given)))

    # --- what flows ask for ------------------------------------------------------------------------------------------

    @cached_property
    def cast(self) -> Cast:
        """Who serves which role."""
        settings, model = self.settings, self._site.chat
        chat = ChatRoles(model) if model else None
        return cast(ROLES, SERVED_BY[settings.profile], settings.roles, SiteRules(self.library, self._site), chat)

    @cached_property
    def finder(self) -> HybridSearch:
        """Hybrid search of this library."""
        return HybridSearch(self.library, self._site.encoder, self.settings.search, self._site.reranker)

    def search(self, question: str, wanted: SearchFilter, limit: int) -> Found:
        """Hybrid search; raise ``UnknownName`` for a collection that does not exist."""
        self._known(wanted)
        asked, most = clean(question), self._keywords()
        rules = SiteRules(self.library, self._site)
        found: Keywords = rules[KEYWORDS.name](KeywordsInput(asked, most)) if most else Keywords()
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

    def read(self, document: str, hits: tuple[Hit, ...]) -> tuple[Passage, ...]:
        """The passages of ``document``: all of a short one, else those of ``hits`` that are its, as many as fit."""
        return to_read(self.library, document, hits, self.settings.reading.whole_document_characters)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> Sequence[Stance]:
        """The stance of each (premise, hypothesis); ``NOT_JUDGED`` where the judge does not know both languages."""
        judge = self._site.entailment
        if not judge.languages:  # it judges nothing, and compares
            return judge.judge(pairs)
        known = [{*map(detect, pair)} <= {*judge.languages} for pair in pairs]
        asked = [pair for pair, judged in zip(pairs, known, strict=True) if judged]
        stances = iter(judge.judge(asked) if asked else ())
        return [next(stances) if judged else NOT_JUDGED for judged in known]

    def compare(self, question: str, texts: Sequence[str]) -> tuple[float, ...]:
        """How like ``question`` each text is, by reranker or encoder; empty in a language that these do not know."""
        site = self._site
        if not texts or detect(question) not in site.encoder.identity.languages:
            return ()
        return tuple(map(float, (site.reranker or concepts.Cosine(site.encoder)).score(question, texts)))

    def mint(self, hits: tuple[Hit, ...], first: int = 1) -> tuple[Evidence, ...]:
        """Evidence for ``hits``, numbered in their order from ``first`` on: the only place where markers are made."""
        documents = self.library.catalogue.by_ids({hit.passage.document_id for hit in hits})
        kinds = {each.name: each.kind for each in self.library.catalogue.collections()}
        return tuple(
            self._evidence(str(number), hit, documents[hit.passage.document_id], kinds[hit.passage.collection])
            for number, hit in zip(count(first), hits, strict=False)
        )

    def _evidence(self, marker: str, hit: Hit, document: Document, kind: Kind) -> Evidence:
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
            kind=kind,
            overdue=self.library.holding.overdue(document.id),
        )

    # --- the site ----------------------------------------------------------------------------------------------------

    def tiers(self, preset: str, only: tuple[str, ...] = ()) -> tuple[Tier, ...]:
        """The tiers of ``preset`` ("": by priority) within the collections ``only`` (empty: all)."""
        presets = self.settings.tiers.presets
        if preset and preset not in presets:
            known = ", ".join(presets)
            raise UnknownName("there is no preset of that name", f"Presets: {known} (settings: tiers.presets)")
        catalogue, hidden = self.library.catalogue, self.library.hidden
        filled = {name for name, (_, passages) in catalogue.counts().items() if passages}
        named = [[each for each in tier if each not in hidden] for tier in presets[preset]] if preset else ()
        return tiers_of(named, catalogue.collections(), filled, only)

    def sources(self, wanted: SearchFilter) -> Sources:
        """The collections of each source of a plan: those of its kind that hold a passage and that ``wanted`` "
        "allows."""
        catalogue = self.library.catalogue
        filled = {name for name, (_, passages) in catalogue.counts().items() if passages}
        there = [each for each in catalogue.collections() if each.name in (wanted.collections or filled)]
        named = {source: tuple(each.name for each in there if each.kind is kind) for source, kind in SOURCES.items()}
        return Sources(**named, graph=bool(self.library.graph.counts()))

    def provenance(self, judged: bool = False) -> Provenance:
        """What answers now; the judge of entailment where a model's words or (``judged``) claims are held to it."""
        identity, reranker, chat = self._site.encoder.identity, self._site.reranker, self._site.chat
        by_chat = chat is not None and any(self.cast.by(role) == "chat" for role in ROLES.values())
        models = [("encoder", f"{identity.name} {identity.version}")]
        models += [("reranker", reranker.name)] if reranker else []
        models += [("chat", chat.identity.name if chat and by_chat else "none: extractive")]
        models += [("entailment", self._site.entailment.name)] if by_chat or judged else []
        return Provenance(
            generation=self.library.path.name,
            profile=self.settings.profile,
            models=tuple(models),
            prompts=tuple((role.name, f"{self.cast.by(role)}-{role.version}") for role in ROLES.values()),
            version=__version__,
            day=self.library.holding.day,
        )

    def _bounds(self) -> Bounds:
        """How many studies M-Eval looks at, and where."""
        from localmed.workflows.m_eval import Bounds

        site = self.settings.workflows
        on = APPRAISAL.name in self.cast.on
        judged = bool(self._site.entailment.languages)
        return Bounds(site.m_eval_found, site.m_eval_kept, self._of_kinds(site.m_eval_kinds), on, self._jury(), judged)

    def _of_kinds(self, kinds: Sequence[str]) -> tuple[str, ...]:
        """The collections of ``kinds`` that hold a passage, first priority first."""
        catalogue = self.library.catalogue
        filled = {name for name, (_, passages) in catalogue.counts().items() if passages}
        return tuple(each.name for each in catalogue.collections() if each.kind in kinds and each.name in filled)

    def _known(self, wanted: SearchFilter) -> None:
        for name in wanted.collections:
            self.library.catalogue.collection(name)

    def _keywords(self) -> int:
        """How many keywords to extract: none where their ranking weighs nothing."""
        return self.settings.keywords.most if self.settings.search.keyword_weight else 0
