"""M-Eval as part of a flow: checks an answer's claims against its own and further studies.

Claims are extracted, studies found by BM25 and scored, and the ``kept`` most reliable ones judged on every claim
together with the studies that the answer cites; then votes are counted (M-Eval, Fig. 2). Excluded studies (retracted,
superseded, withdrawn, addressed to a model) are named and not judged. A study without the claim's numbers does not vote
for it, whatever the judge says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from localmed.answering.check import SupportInput
from localmed.answering.claims import Claim, Premise, Read, candidates, extract, premise
from localmed.answering.reliability import APPRAISAL, AppraisalInput, Reliability, bonuses, excluded
from localmed.answering.vote import Outcome, judged, old, outcome, quality, vote
from localmed.domain.parts import Label, Quality
from localmed.domain.ports import NOT_JUDGED, Stance
from localmed.retrieval.studies import Study
from localmed.text import quantities
from localmed.text.publications import base
from localmed.text.verbatim import find_verbatim
from localmed.workflows.ask import judge_pairs
from localmed.workflows.finding import Plan
from localmed.workflows.flow import Compare, Step, Studies, asked

UNWEIGHED = Reliability(0, 0.0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The number of studies ``retrieved`` by BM25 in ``collections``, and of those ``kept``."""

    retrieved: int
    kept: int
    collections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Weighed:
    """A study; ``provided``: the answer cites it; ``excluded``: why it does not count, or ""."""

    study: Study
    provided: bool
    excluded: str = ""
    reliability: Reliability = UNWEIGHED


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim with the premise of each study and the outcome.

    ``unjudged`` counts studies in a language that the judge lacks, ``overruled`` those that the judge finds in support
    but that give another amount.
    """

    claim: Claim
    premises: tuple[Premise, ...]
    outcome: Outcome
    unjudged: int
    overruled: int = 0


@dataclass(frozen=True, slots=True)
class Assessment:
    """The result; ``quality`` of the evidence given with the answer, ``None`` without any."""

    claims: tuple[ClaimResult, ...] = ()
    studies: tuple[Weighed, ...] = ()
    left_out: tuple[Weighed, ...] = ()
    quality: Quality | None = None

    @property
    def labels(self) -> list[Label]:
        """The labels of the claims."""
        return [claim.outcome.label for claim in self.claims]


def standing(provided: tuple[Study, ...]) -> Assessment:
    """The studies ``provided``, split into those that count and those that do not, without a judge."""
    counting, left_out = _standing(provided, ())
    return Assessment(studies=counting, left_out=left_out)


def assess(
    question: str, sentences: Sequence[Claim], provided: tuple[Study, ...], bounds: Bounds, plan: Plan
) -> Step[Assessment]:
    """Assess an answer of ``sentences`` that cites the studies ``provided``."""
    texts = tuple(claim.text for claim in candidates(sentences))
    scores: Sequence[float] = (yield Compare(question, texts)) if question.strip() and texts else ()
    claims = extract(question, sentences, scores or [0.0] * len(texts))
    retrieved: tuple[Study, ...] = ()
    if claims:
        query = " ".join((question, *(claim.text for claim in claims if not claim.whole)))
        retrieved = yield Studies(query.strip(), bounds.retrieved, bounds.collections)
    counting, left_out = _standing(provided, retrieved)
    weighed = yield from _weighed(counting, bounds, plan)
    results = yield from _judge(question, claims, weighed, plan)
    return Assessment(results, weighed, left_out, _quality(results, weighed, left_out))


def _standing(
    provided: tuple[Study, ...], retrieved: tuple[Study, ...]
) -> tuple[tuple[Weighed, ...], tuple[Weighed, ...]]:
    """The studies that count, and the excluded ones; a provided study that is also retrieved stands once."""
    ids = {study.document.id for study in provided} | set(chain(*(study.document.identifiers for study in provided)))
    found = (study for study in retrieved if ids.isdisjoint({study.document.id, *study.document.identifiers}))
    both = (*((study, True) for study in provided), *((study, False) for study in found))
    every = [Weighed(study, own, excluded(study.document, study.planted)) for study, own in both]
    return tuple(one for one in every if not one.excluded), tuple(one for one in every if one.excluded)


def _weighed(counting: Sequence[Weighed], bounds: Bounds, plan: Plan) -> Step[tuple[Weighed, ...]]:
    """The provided studies and the ``kept`` most reliable retrieved ones, with their reliability."""
    dates = bonuses([one.study.document.edition for one in counting])
    weighed = []
    for one, date in zip(counting, dates, strict=True):
        document, nothing = one.study.document, tuple[str, ...]()
        lacks = yield from asked(APPRAISAL, AppraisalInput(document.title, one.study.text), plan.chat, nothing)
        reliability = Reliability(base(document.publication_types, one.study.kind), date, lacks)
        weighed.append(replace(one, reliability=reliability))
    ranked = sorted((one for one in weighed if not one.provided), key=lambda one: -one.reliability.score)
    return (*(one for one in weighed if one.provided), *ranked[: bounds.kept])


def _judge(
    question: str, claims: tuple[Claim, ...], weighed: tuple[Weighed, ...], plan: Plan
) -> Step[tuple[ClaimResult, ...]]:
    """Judge every study on every claim in one request. A study that shares no word with a claim does not vote."""
    read = [tuple(Read.of(passage.text) for passage in one.study.passages) for one in weighed]
    rows = [(claim, [premise(passages, claim.text) for passages in read]) for claim in claims]
    pairs = tuple((one.text, claim.text) for claim, row in rows for one in row if one.text)
    judgements, _ = yield from judge_pairs(SupportInput(question, pairs), plan)
    stances = iter(one or NOT_JUDGED for one in judgements)
    return tuple(_outcome(claim, row, weighed, stances) for claim, row in rows)


def _outcome(claim: Claim, row: list[Premise], weighed: tuple[Weighed, ...], stances: Iterator[Stance]) -> ClaimResult:
    taken = [next(stances) if premise.text else None for premise in row]
    sides = [_side(claim, *seen) for seen in zip(taken, row, weighed, strict=True)]
    votes = [  # a study without a number or unit of the claim does not vote for it
        0 if side > 0 and not claim.whole and quantities.missing(claim.text, one.study.text) else side
        for side, one in zip(sides, weighed, strict=True)
    ]
    unjudged = sum(stance is not None and not stance.judged for stance in taken)
    bearing = sum(stance is not None for stance in taken)
    scores = [one.reliability.score for one in weighed]
    result = outcome(votes, scores, judged=unjudged < bearing or not bearing)
    return ClaimResult(claim, tuple(row), result, unjudged, overruled=votes.count(0) - sides.count(0))


def _side(claim: Claim, stance: Stance | None, premise: Premise, weighed: Weighed) -> int:
    """The vote of a study. A study that has the claim word for word supports it, whatever the judge says."""
    side = vote(stance) if stance else 0
    passage = weighed.study.passages[premise.place] if side < 0 else None
    return 1 if passage and find_verbatim(passage.text, claim.text, passage.table) else side


def _quality(
    results: tuple[ClaimResult, ...], weighed: tuple[Weighed, ...], left_out: tuple[Weighed, ...]
) -> Quality | None:
    """The quality of the provided studies; an excluded one counts as outdated."""
    places = [place for place, one in enumerate(weighed) if one.provided]
    excluded_count = sum(one.provided for one in left_out)
    if not places and not excluded_count:
        return None
    outcomes = [claim.outcome for claim in results]
    newest = max((one.study.document.edition for one in weighed if not one.provided), default="")
    aged = sum(old(weighed[place].study.document.edition, newest) for place in places)
    counts = [judged(outcomes, place) for place in places] + [(0, 0, 0)] * excluded_count
    return quality(counts, aged + excluded_count)
