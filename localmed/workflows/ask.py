"""Ask: find, judge whether it suffices, answer with citations, check; or abstain and say what was searched.

The shape of MAIRAG (LINS, Fig. 1b): retrieval, passage relevance, cited answer. Decomposition, self-knowledge and
coherence join here with the agents; today's roles are served without a language model.
"""

from __future__ import annotations

from dataclasses import replace

from localmed.agents.roles import CITED_ANSWER, RELEVANCE, AnswerInput, Relevance, RelevanceInput
from localmed.domain import Answer, AnswerStatus, Evidence, Provenance, SearchFilter, Statement, Status
from localmed.language import words
from localmed.retrieval.search import Found
from localmed.verification import citations
from localmed.workflows.flow import Cite, Flow, Perform, Search

NO_WORDS = "The question holds no word that can be searched for"
NOT_ENOUGH = "Nothing found was relevant enough to answer from"
ALL_WITHHELD = "Every sentence failed its check and was withheld"
LEXICAL_ONLY = {
    "zh": "The encoder of this profile does not know Chinese: only words were searched, and no meaning was compared",
}


def ask(question: str, wanted: SearchFilter, passages: int, searched: tuple[str, ...], provenance: Provenance) -> Flow:
    """The flow of one question over the collections ``searched``, reading at most ``passages`` passages."""
    found: Found = yield Search(question, wanted, passages)
    answer = Answer(AnswerStatus.ABSTAINED, question, found.language, (), (), searched, provenance)
    if not found.dense and found.language in LEXICAL_ONLY:
        answer = replace(answer, notes=(LEXICAL_ONLY[found.language],))
    relevance: Relevance = yield Perform(RELEVANCE, RelevanceInput(question, found.hits, found.dense))
    if not relevance.enough:
        return _abstained(answer, NOT_ENOUGH if words(question) else NO_WORDS)
    evidence: tuple[Evidence, ...] = yield Cite(found.hits)
    drafted: tuple[Statement, ...] = yield Perform(CITED_ANSWER, AnswerInput(question, evidence, found.dense))
    statements, verification = citations.check(drafted, evidence)
    if all(each.withheld for each in statements):
        return _abstained(replace(answer, verification=verification), ALL_WITHHELD if statements else NOT_ENOUGH)
    used = {citation.marker for each in statements for citation in each.citations}
    cited = tuple(each for each in evidence if each.marker in used)
    return replace(
        answer,
        status=AnswerStatus.ANSWERED,
        statements=statements,
        evidence=cited,
        verification=verification,
        notes=answer.notes + _warnings(cited),
    )


def _abstained(answer: Answer, reason: str) -> Answer:
    return replace(answer, notes=(*answer.notes, reason))


def _warnings(evidence: tuple[Evidence, ...]) -> tuple[str, ...]:
    """What the reader must know of the sources used."""
    return tuple(
        f"Source {each.marker} is {each.status.value}: {each.document_title} ({each.edition or 'no date'})"
        for each in evidence
        if each.status is not Status.CURRENT
    )
