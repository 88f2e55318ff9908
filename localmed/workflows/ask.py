"""Ask: find, judge whether it suffices, answer with citations, check; or abstain and say what was searched.

The shape of MAIRAG (LINS, Fig. 1b): keywords, retrieval, passage relevance, cited answer; over tiers of collections
(HRD): the first tier that holds something helpful answers. A plan may look one tier ``further`` and compare what both
would cite: a differing dose or a newer edition becomes a possible conflict, while the first tier still leads.
Decomposition, self-knowledge and coherence join here with the agents; today's roles are served without a model.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any

from localmed.agents.roles import (
    CITED_ANSWER,
    KEYWORDS,
    RELEVANCE,
    AnswerInput,
    Keywords,
    KeywordsInput,
    Relevance,
    RelevanceInput,
)
from localmed.domain import Answer, AnswerStatus, Conflict, Evidence, Hit, Provenance, SearchFilter, Statement, Status
from localmed.language import detect, words
from localmed.retrieval.search import Found
from localmed.retrieval.tiers import Tier
from localmed.verification import citations
from localmed.verification.conflicts import Cited, conflicts
from localmed.workflows.flow import Cite, Flow, Perform, Request, Search

NO_WORDS = "The question holds no word that can be searched for"
NOT_ENOUGH = "Nothing found was relevant enough to answer from"
ALL_WITHHELD = "Every sentence failed its check and was withheld"
UNNAMED = "Not named in the sources: {words}"
SKIPPED = "Not searched, as the library holds nothing of it: {names}"
NO_TIER = "No collection that the question was to be asked of holds a passage"
LEXICAL_ONLY = {
    "zh": "The encoder of this profile does not know Chinese: only words were searched, and no meaning was compared",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is asked: the tiers in order, the passages read of each, the keywords required (0: none)."""

    tiers: tuple[Tier, ...]
    passages: int
    keywords: int = 0
    further: bool = False


@dataclass(frozen=True, slots=True)
class Tried:
    """A tier that was searched, and how its hits were judged."""

    tier: Tier
    found: Found
    relevance: Relevance

    @property
    def hits(self) -> tuple[Hit, ...]:
        """What an answer is read from: the hits that help (LINS, PRA)."""
        return self.relevance.helpful(self.found.hits)


def ask(question: str, wanted: SearchFilter, plan: Plan, provenance: Provenance) -> Flow:
    """The flow of one question over the tiers of ``plan``."""
    keywords = Keywords()
    if plan.keywords:
        keywords = yield Perform(KEYWORDS, KeywordsInput(question, plan.keywords))
    request = Search(question, wanted, plan.passages, keywords.words)
    waiting = iter(plan.tiers)
    tried, skipped = yield from _search(request, waiting)
    leading = tried[-1] if tried and tried[-1].relevance.enough else None
    further: list[Tried] = []
    if leading and plan.further:
        further, more = yield from _search(request, waiting, most=1)
        skipped += more
    answer = _begun(question, [*tried, *further], skipped, provenance)
    if not leading:
        return _abstained(answer, _why(question, tried))
    beyond = further[0] if further and further[0].relevance.enough else None
    return (yield from _answered(answer, leading, beyond))


def _search(
    request: Search, tiers: Iterator[Tier], most: int = 0
) -> Generator[Request, Any, tuple[list[Tried], tuple[str, ...]]]:
    """Search tier by tier until one is helpful (or ``most`` are searched); those tried, and the names skipped."""
    tried: list[Tried] = []
    skipped: tuple[str, ...] = ()
    for tier in tiers:
        skipped += tier.skipped
        if not tier.collections:
            continue
        found: Found = yield replace(request, wanted=tier.limit(request.wanted))
        given = RelevanceInput(request.question, found.hits, found.dense, found.reranker)
        relevance: Relevance = yield Perform(RELEVANCE, given)
        tried.append(Tried(tier, found, relevance))
        if relevance.enough or len(tried) == most:
            break
    return tried, skipped


def _begun(question: str, tried: list[Tried], skipped: tuple[str, ...], provenance: Provenance) -> Answer:
    """The answer so far: nothing but what was searched, and what the reader must know of that."""
    language = tried[0].found.language if tried else detect(question)
    searched = tuple(name for each in tried for name in each.tier.collections)
    notes: tuple[str, ...] = ()
    if tried and not tried[0].found.dense and language in LEXICAL_ONLY:
        notes += (LEXICAL_ONLY[language],)
    if skipped:
        notes += (SKIPPED.format(names=", ".join(dict.fromkeys(skipped))),)
    return Answer(AnswerStatus.ABSTAINED, question, language, (), (), searched, provenance, notes=notes)


def _answered(answer: Answer, leading: Tried, beyond: Tried | None) -> Flow:
    """The cited answer of ``leading``; what ``beyond`` would have cited is compared with it, and nothing else of it."""
    evidence: tuple[Evidence, ...] = yield Cite((*leading.hits, *(beyond.hits if beyond else ())))
    ours, theirs = evidence[: len(leading.hits)], evidence[len(leading.hits) :]
    given = AnswerInput(answer.question, ours, leading.found.dense)
    drafted: tuple[Statement, ...] = yield Perform(CITED_ANSWER, given)
    statements, verification = citations.check(drafted, ours)
    if all(each.withheld for each in statements):
        return _abstained(replace(answer, verification=verification), ALL_WITHHELD if statements else NOT_ENOUGH)
    possible: tuple[Conflict, ...] = ()
    if beyond:
        given = AnswerInput(answer.question, theirs, beyond.found.dense)
        others: tuple[Statement, ...] = yield Perform(CITED_ANSWER, given)
        checked, _ = citations.check(others, theirs)
        possible = conflicts(answer.question, _cited(statements, ours), _cited(checked, theirs))
    cited = {each.evidence.marker for each in _cited(statements, ours, withheld=True)}
    against = {each.against for each in possible}
    shown = tuple(each for each in evidence if each.marker in cited | against)
    return replace(
        answer,
        status=AnswerStatus.ANSWERED,
        statements=statements,
        evidence=shown,
        verification=verification,
        notes=answer.notes + _unnamed(leading.relevance) + _warnings(shown),
        conflicts=possible,
    )


def _cited(
    statements: tuple[Statement, ...], evidence: tuple[Evidence, ...], withheld: bool = False
) -> tuple[Cited, ...]:
    """The quotations of the statements that stand (or of all), each with its source."""
    known = {each.marker: each for each in evidence}
    return tuple(
        Cited(citation, known[citation.marker])
        for each in statements
        for citation in each.citations
        if withheld or not each.withheld
    )


def _why(question: str, tried: list[Tried]) -> str:
    if not tried:
        return NO_TIER
    return NOT_ENOUGH if words(question) else NO_WORDS


def _abstained(answer: Answer, reason: str) -> Answer:
    return replace(answer, notes=(*answer.notes, reason))


def _unnamed(relevance: Relevance) -> tuple[str, ...]:
    """Where the sources lack a word of the question, the reader sees that they may be about something else."""
    return (UNNAMED.format(words=", ".join(relevance.unnamed)),) if relevance.unnamed else ()


def _warnings(evidence: tuple[Evidence, ...]) -> tuple[str, ...]:
    """What the reader must know of the sources shown, those of possible conflicts included."""
    return tuple(
        f"Source {each.marker} is {each.status.value}: {each.document_title} ({each.edition or 'no date'})"
        for each in evidence
        if each.status is not Status.CURRENT
    )
