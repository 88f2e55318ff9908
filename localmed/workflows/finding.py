"""Finding, as every workflow does it: keywords, then tier by tier (LINS, HRD), until passages help (LINS, PRA).

With the relevance role off, what the first tier finds is taken as it is: plain retrieval, as in the paper. A chat
model is shown of a tier only what the rules give a chance, most likely first and a few at a time, until something
helps. Where it finds no help in what the rules would answer from, the rules' word stands, and that is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from localmed.agents.asking import KEYWORDS, RELEVANCE, Keywords, KeywordsInput, Relevance, RelevanceInput
from localmed.agents.safety import Audience
from localmed.clinical import qualifiers
from localmed.domain import Evidence, Hit, Message, SearchFilter, message
from localmed.language import detect
from localmed.retrieval.search import Found
from localmed.retrieval.tiers import Tier
from localmed.workflows.flow import Cite, Perform, Search, Step, attempt

Notes = tuple[Message, ...]
JUDGED = 4  # passages that a chat model judges at once: what an answer is mostly written from
BATCHES = 2  # of them at most, the second where nothing of the first helps
CHANCE = 0.1  # least probability by rule; of 30 answered questions the best passage had 0.64, of 15 others at most 0.29
READ = 4_000  # characters of a question, some 700 words; safety rules read all of it before


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is asked: the tiers in order, the passages read of each, the keywords required (0: none).

    ``further`` looks one tier beyond the one that answers, for conflicts. ``roles`` are the names of those that are on;
    ``own_knowledge`` says whether the site allows an answer without a source, labelled so; it is compared with
    ``own_samples`` others of the model.
    ``unsupported`` is what happens to a sentence that its sources do not carry (``config.UNSUPPORTED``), ``jury`` are
    the roles that judge the badge, ``judge`` is the judge of entailment ("": none). ``audience`` is who asks;
    ``safety`` is what the site says to somebody in danger: (language, message). ``chat`` are the roles that a chat
    model serves, ``day`` is the day of the question. ``languages`` are those of the library's documents that the
    encoder knows.
    """

    tiers: tuple[Tier, ...]
    passages: int
    keywords: int = 0
    further: bool = False
    roles: frozenset[str] = frozenset({"keywords", "relevance", "cited_answer"})
    own_knowledge: bool = False
    own_samples: int = 0
    audience: Audience = "staff"
    safety: tuple[tuple[str, Message], ...] = ()
    unsupported: str = "withhold"
    jury: tuple[str, ...] = ()
    judge: str = ""
    chat: frozenset[str] = frozenset()
    day: str = ""
    languages: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchedTier:
    """A tier that was searched, and how its hits were judged."""

    tier: Tier
    result: Found
    relevance: Relevance

    @property
    def hits(self) -> tuple[Hit, ...]:
        """What an answer is read from: the hits that help (LINS, PRA)."""
        return self.relevance.helpful(self.result.hits)


@dataclass(frozen=True, slots=True)
class TierSearch:
    """The tiers ``tried``, the names that were ``skipped`` since the library holds nothing of them."""

    tried: tuple[SearchedTier, ...] = ()
    skipped: tuple[str, ...] = ()
    notes: Notes = ()

    @property
    def leading(self) -> SearchedTier | None:
        """The tier that answers."""
        return self.tried[-1] if self.tried and self.tried[-1].relevance.enough else None

    def __add__(self, other: TierSearch) -> TierSearch:
        """Both searches."""
        return TierSearch(self.tried + other.tried, self.skipped + other.skipped, self.notes + other.notes)


def bounded(question: str) -> tuple[str, Notes]:
    """What of ``question`` is answered, and that the rest was left out."""
    note = message("workflow.question_cut", characters=len(question), read=READ)
    return question[:READ], (note,) if len(question) > READ else ()


def request(question: str, filters: SearchFilter, plan: Plan) -> Step[tuple[Search, Notes]]:
    """The search for ``question``, by its keywords as well if the plan wants any."""
    keywords, notes = Keywords(), Notes()
    if plan.keywords and KEYWORDS.name in plan.roles:
        keywords, notes = yield from attempt(KEYWORDS, KeywordsInput(question, plan.keywords))
    return Search(question, filters, plan.passages, keywords.words), notes


def search(
    request: Search,
    tiers: Iterator[Tier],
    plan: Plan,
    most: int = 0,
    whole: str = "",
    context: str = "",
    unsure: bool = False,
) -> Step[TierSearch]:
    """Search tier by tier until one is helpful, or ``most`` (0: all) are searched, for a part of ``whole``.

    ``context`` is the question as it was put, where ``request`` holds only words of it. With ``unsure`` the likeliest
    tier leads where none is sure.
    """
    done = TierSearch()
    for tier in tiers:
        done += TierSearch(skipped=tier.skipped)
        if not tier.collections:
            continue
        result: Found = yield replace(request, filters=tier.limit(request.filters))
        labels, notes = yield from judged(request.question, result, plan, context)
        relevance = of_the_same(request.question, result.hits, labels, whole)
        done += TierSearch((SearchedTier(tier, result, relevance),), notes=notes)
        if relevance.enough or len(done.tried) == most:
            break
    second = _likeliest(done.tried) if unsure and not done.leading else None
    return done + TierSearch((second,)) if second else done


def every_tier(question: str, filters: SearchFilter, plan: Plan) -> Step[tuple[SearchedTier, ...]]:
    """Every tier of ``plan`` searched and judged as ``search`` does it, whichever would answer."""
    own_request, _ = yield from request(bounded(question)[0], filters, plan)
    done = TierSearch()
    for tier in plan.tiers:
        done += yield from search(own_request, iter((tier,)), plan)
    return done.tried


def _likeliest(tried: Sequence[SearchedTier]) -> SearchedTier | None:
    """The tier to quote from as not sure, if any."""
    seconds = [replace(one, relevance=second) for one in tried if (second := one.relevance.second)]
    return max(seconds, key=lambda one: one.relevance.probability, default=None)


def across(request: Search, plan: Plan) -> Step[TierSearch]:
    """Search the documents of the languages that were not asked in: all tiers at once, each language by itself."""
    names = tuple(dict.fromkeys(name for tier in plan.tiers for name in tier.collections))
    within = request.filters if any(tier.whole for tier in plan.tiers) else replace(request.filters, collections=names)
    others = [] if within.language or not names else [one for one in plan.languages if one != detect(request.question)]
    done = TierSearch()
    for language in others:
        result: Found = yield replace(request, filters=replace(within, language=language), keywords=())
        labels, notes = yield from judged(request.question, result, plan)
        relevance = of_the_same(request.question, result.hits, labels)
        done += TierSearch((SearchedTier(Tier(names), result, relevance),), notes=notes)
        if relevance.enough:
            break
    return done


def of_the_same(question: str, hits: Sequence[Hit], relevance: Relevance, whole: str = "") -> Relevance:
    """``relevance`` without hits that speak of another population, subtype, setting or purpose than ``question``."""
    differing = [qualifiers.differing(question, hit.passage, whole) for hit in hits]
    if not any(differing):
        return relevance
    kept = tuple(0.0 if words else value for words, value in zip(differing, relevance.probabilities, strict=True))
    likely = tuple(0.0 if words else value for words, value in zip(differing, relevance.likely, strict=False))
    everywhere = tuple(word for word in differing[0] if all(word in words for words in differing))
    return replace(relevance, probabilities=kept, likely=likely, differing=everywhere)


def judged(question: str, result: Found, plan: Plan, context: str = "") -> Step[tuple[Relevance, Notes]]:
    """How likely each hit of ``result`` holds an answer to ``question``; with the role off all do."""
    if RELEVANCE.name not in plan.roles:
        return Relevance((1.0,) * len(result.hits), 1.0), ()
    task = RelevanceInput(question, result.hits, result.dense, result.reranker)
    if RELEVANCE.name not in plan.chat:
        return (yield from attempt(RELEVANCE, task))
    ruled: Relevance = yield Perform(RELEVANCE, task, by_rules=True)
    ranked = sorted(range(len(task.hits)), key=lambda place: -ruled.probabilities[place])
    near = [place for place in ranked if ruled.probabilities[place] >= CHANCE]
    by_place: dict[int, float] = {}
    relevance, notes = ruled, Notes()
    for batch in (near[start : start + JUDGED] for start in range(0, min(len(near), JUDGED * BATCHES), JUDGED)):
        part = replace(task, hits=tuple(task.hits[place] for place in batch), question=context or question)
        judgement, more = yield from attempt(RELEVANCE, part)
        by_place |= dict(zip(batch, judgement.probabilities, strict=True))
        labels = tuple(by_place.get(place, 0.0) for place in range(len(task.hits)))
        relevance, notes = replace(judgement, probabilities=labels, quotable=ruled.enough), notes + more
        if relevance.enough:
            break
    if ruled.enough and not relevance.enough:
        return replace(ruled, doubted=True), notes
    return relevance, tuple(dict.fromkeys(notes))


def minted(hits: Sequence[Hit], known: Sequence[Evidence] = ()) -> Step[tuple[Evidence, ...]]:
    """Evidence for ``hits``, in their order: what is ``known`` keeps its marker, the others get the next ones."""
    by_passage = {piece.passage.id: piece for piece in known}
    fresh = tuple(hit for hit in hits if hit.passage.id not in by_passage)
    first = max((int(piece.marker) for piece in known), default=0) + 1
    pieces: tuple[Evidence, ...] = (yield Cite(fresh, first)) if fresh else ()
    by_passage |= {piece.passage.id: piece for piece in pieces}
    return tuple(by_passage[hit.passage.id] for hit in hits)
