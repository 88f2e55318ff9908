"""M-Eval as a part of a flow: an answer's claims, held against studies of its own and further ones, and weighed.

Claims are extracted, studies found by BM25 and scored, the ``kept`` most reliable judged on every claim together with
the studies that the answer rests on, and the votes counted (M-Eval, Fig. 2). What may not count (retracted, superseded,
withdrawn, addressed to a model) is left out before anything is judged, and named. A study that does not hold the
claim's numbers does not vote for it, whatever the judge says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from localmed.answering.check import CHECK, SupportInput
from localmed.answering.claims import Claim, Premise, Read, candidates, extract, likeness, premise
from localmed.answering.reliability import APPRAISAL, AppraisalInput, Reliability, bonuses, excluded
from localmed.answering.verbatim import find_verbatim
from localmed.answering.vote import Outcome, judged, old, outcome, quality, vote
from localmed.domain.errors import Rejected
from localmed.domain.parts import Label, Quality
from localmed.domain.ports import NOT_JUDGED, Stance
from localmed.retrieval.studies import Study
from localmed.text import quantities
from localmed.text.publications import base
from localmed.workflows.ask import judged as judged_pairs
from localmed.workflows.flow import Compare, Perform, Step, Studies

UNWEIGHED = Reliability(0, 0.0, ())


@dataclass(frozen=True, slots=True)
class Bounds:
    """How many studies are ``retrieved`` by BM25 in ``collections``, and ``kept`` of them; whether they are appraised.

    ``jury`` are the roles that set the badge of an answer written elsewhere. ``judge`` is the judge of entailment,
    ``chat`` the roles that a chat model serves; without either nobody judges whether a study supports a claim.
    """

    retrieved: int
    kept: int
    collections: tuple[str, ...]
    appraise: bool = True
    jury: tuple[str, ...] = ()
    judge: str = ""
    chat: frozenset[str] = frozenset()

    @property
    def judged(self) -> bool:
        """Whether a model judges."""
        return bool(self.judge) or CHECK.name in self.chat


@dataclass(frozen=True, slots=True)
class WeighedStudy:
    """A study that counts; ``provided`` if the answer rests on it."""

    study: Study
    reliability: Reliability
    provided: bool


@dataclass(frozen=True, slots=True)
class ExcludedStudy:
    """A study that may not count, and why (see ``standing``)."""

    study: Study
    reason: str
    provided: bool


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim, what of each study was held against it, and the outcome; ``unjudged`` studies are in another language
    than the judge's, ``overruled`` ones give another amount than the claim that the judge says they support."""

    claim: Claim
    premises: tuple[Premise, ...]
    outcome: Outcome
    unjudged: int
    overruled: int = 0


@dataclass(frozen=True, slots=True)
class Assessment:
    """All of it. ``quality`` is that of the evidence given, ``None`` where there was none."""

    claims: tuple[ClaimResult, ...] = ()
    studies: tuple[WeighedStudy, ...] = ()
    left_out: tuple[ExcludedStudy, ...] = ()
    quality: Quality | None = None

    @property
    def labels(self) -> list[Label]:
        """The claims'."""
        return [held.outcome.label for held in self.claims]


Assessing = Step[Assessment]


def standing(provided: tuple[Study, ...]) -> Assessment:
    """What must be known of the studies ``provided`` before anything else, where nobody judges or weighs them."""
    counting, left_out = _standing(provided, ())
    return Assessment(studies=tuple(WeighedStudy(one, UNWEIGHED, True) for one, _ in counting), left_out=left_out)


def assess(question: str, sentences: Sequence[Claim], provided: tuple[Study, ...], bounds: Bounds) -> Assessing:
    """The assessment of an answer of the ``sentences``, which rests on the studies ``provided``."""
    possible = candidates(sentences)
    texts = tuple(claim.text for claim in possible)
    scores: Sequence[float] = (yield Compare(question, texts)) if question.strip() and texts else ()
    claims = extract(question, sentences, scores or likeness(question, texts))
    retrieved: tuple[Study, ...] = ()
    if claims:
        query = " ".join((question, *(claim.text for claim in claims if not claim.whole)))
        retrieved = yield Studies(query.strip(), bounds.retrieved, bounds.collections)
    counting, left_out = _standing(provided, _without(retrieved, provided))
    weighed = yield from _weighed(counting, bounds)
    held = yield from _held(question, claims, weighed, bounds)
    return Assessment(held, weighed, left_out, _quality(held, weighed, left_out))


def _without(retrieved: tuple[Study, ...], provided: tuple[Study, ...]) -> tuple[Study, ...]:
    """The studies found that are none of ``provided``, in another collection neither."""
    ids = {study.document.id for study in provided} | set(chain(*(study.document.identifiers for study in provided)))
    return tuple(study for study in retrieved if ids.isdisjoint({study.document.id, *study.document.identifiers}))


def _standing(
    provided: tuple[Study, ...], retrieved: tuple[Study, ...]
) -> tuple[list[tuple[Study, bool]], tuple[ExcludedStudy, ...]]:
    """The studies that may count, each with whether it was given, and those that may not."""
    both = [*((study, True) for study in provided), *((study, False) for study in retrieved)]
    reasons = [excluded(study.document, study.planted) for study, _ in both]
    counting = [pair for pair, reason in zip(both, reasons, strict=True) if not reason]
    pairs = zip(both, reasons, strict=True)
    return counting, tuple(ExcludedStudy(study, reason, own) for (study, own), reason in pairs if reason)


def _weighed(counting: list[tuple[Study, bool]], bounds: Bounds) -> Step[tuple[WeighedStudy, ...]]:
    """The given studies and the ``kept`` most reliable of those found, each with its reliability."""
    studies = [study for study, _ in counting]
    failed = (yield from _appraised(studies)) if bounds.appraise else ((),) * len(studies)
    dates = bonuses([study.document.edition for study in studies])
    weighed = [
        WeighedStudy(study, Reliability(base(study.document.publication_types, study.kind), date, lacks), own)
        for (study, own), date, lacks in zip(counting, dates, failed, strict=True)
    ]
    ranked = sorted((entry for entry in weighed if not entry.provided), key=lambda entry: -entry.reliability.score)
    return (*(entry for entry in weighed if entry.provided), *ranked[: bounds.kept])


def _appraised(studies: list[Study]) -> Step[tuple[tuple[str, ...], ...]]:
    """The aspects that each study does not show; by the rules where a model's reply cannot be used."""
    inputs = [AppraisalInput(study.document.title, study.text) for study in studies]
    try:
        failed: tuple[tuple[str, ...], ...] = yield tuple(Perform(APPRAISAL, input_) for input_ in inputs)
    except Rejected:
        failed = yield tuple(Perform(APPRAISAL, input_, by_rules=True) for input_ in inputs)
    return failed


def _held(
    question: str, claims: tuple[Claim, ...], weighed: tuple[WeighedStudy, ...], bounds: Bounds
) -> Step[tuple[ClaimResult, ...]]:
    """Every study on every claim: one request to the judge. A study that shares no word with a claim says neither."""
    read = [tuple(Read.of(passage.text) for passage in entry.study.passages) for entry in weighed]
    premises = [[premise(passages, claim.text) for passages in read] for claim in claims]
    pairs = [
        (row_premise.text, claim.text)
        for claim, row in zip(claims, premises, strict=True)
        for row_premise in row
        if row_premise.text
    ]
    judgements, _ = yield from judged_pairs(SupportInput(question, tuple(pairs)), bounds.judge, bounds.chat)
    stances = iter(one or NOT_JUDGED for one in judgements)
    return tuple(_outcome(claim, row, weighed, stances) for claim, row in zip(claims, premises, strict=True))


def _outcome(claim: Claim, row: list[Premise], weighed: tuple[WeighedStudy, ...], stances: Any) -> ClaimResult:
    taken: list[Stance | None] = [next(stances) if row_premise.text else None for row_premise in row]
    judged_so = [_side(claim, *seen) if seen[0] else 0 for seen in zip(taken, row, weighed, strict=True)]
    votes = [
        0 if side > 0 and _other_amount(claim, entry.study) else side
        for side, entry in zip(judged_so, weighed, strict=True)
    ]
    scores = [entry.reliability.score for entry in weighed]
    unjudged = sum(stance is not None and not stance.judged for stance in taken)
    bearing = sum(stance is not None for stance in taken)
    result = outcome(votes, scores, judged=unjudged < bearing or not bearing)
    return ClaimResult(claim, tuple(row), result, unjudged, overruled=votes.count(0) - judged_so.count(0))


def _side(claim: Claim, stance: Stance | None, premise: Premise, weighed: WeighedStudy) -> int:
    """The vote of a study; whatever a judge makes of it, what it says word for word it does not contradict."""
    side = vote(stance) if stance else 0
    passage = weighed.study.passages[premise.place]
    return 1 if side < 0 and find_verbatim(passage.text, claim.text, passage.table) else side


def _other_amount(claim: Claim, study: Study) -> bool:
    """Whether ``claim`` gives a number or a unit that ``study`` does not hold, by rule."""
    return not claim.whole and quantities.missing(claim.text, study.text) is not None


def _quality(
    held: tuple[ClaimResult, ...], weighed: tuple[WeighedStudy, ...], left_out: tuple[ExcludedStudy, ...]
) -> Quality | None:
    """Of what the answer rests on; a study that may not count is one that is out of date."""
    places = [place for place, entry in enumerate(weighed) if entry.provided]
    excluded_count = sum(entry.provided for entry in left_out)
    if not places and not excluded_count:
        return None
    outcomes = [claim.outcome for claim in held]
    newest = max((entry.study.document.edition for entry in weighed if not entry.provided), default="")
    aged = sum(old(weighed[place].study.document.edition, newest) for place in places)
    counts = [judged(outcomes, place) for place in places] + [(0, 0, 0)] * excluded_count
    return quality(counts, aged + excluded_count)
