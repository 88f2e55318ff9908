"""What a verification came to, as the parts of an answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from localmed.agents.evidence import citation
from localmed.domain import Evidence, Origin, Part, Statement, Support
from localmed.domain.parts import (
    AlertPart,
    CitationsPart,
    CitedReference,
    ClaimPart,
    EvidenceQualityPart,
    Label,
    ResponsePart,
    StudiesPart,
    StudyRow,
    SupportPart,
    Titled,
)
from localmed.retrieval.studies import Reference, Study
from localmed.retrieval.titles import years
from localmed.verification.standing import DOUBTED, NOTICE, doubted
from localmed.verification.verbatim import find_verbatim
from localmed.verification.vote import response
from localmed.workflows.m_eval import Assessment, ClaimResult, ExcludedStudy, WeighedStudy

QUOTED = 5  # of a claim's main evidence; the rest is in the table of studies
NEAREST = 3  # sentences quoted for a claim that nobody judged
NEAR = 0.6  # share of the claim's words from which one of a study is near it

Minted = Mapping[str, Evidence]  # by passage id


def parts(assessment: Assessment, minted: Minted, carried: bool) -> tuple[Part, ...]:
    """The response's label, alerts, each claim, what the evidence given with the answer is worth, and the studies.

    Without ``carried`` what the answer cites does not carry it.
    """
    if not assessment.claims:
        return _alerts(assessment)
    quality, studies = assessment.quality, _studies(assessment)
    return (
        ResponsePart(response(assessment.labels, carried), tuple(Counter(assessment.labels).items()), carried),
        *_alerts(assessment),
        *(_claim(held, assessment.studies, minted) for held in assessment.claims),
        *((EvidenceQualityPart(quality),) if quality else ()),
        *((StudiesPart(studies),) if studies else ()),
    )


def cited_parts(named: Sequence[tuple[Reference, Study | None]], statements: tuple[Statement, ...]) -> tuple[Part, ...]:
    """What each citation names, and each sentence with the verdict on it."""
    references = tuple(CitedReference(one.marker, _document(study), _other_years(one, study)) for one, study in named)
    support = (SupportPart(statements),) if statements else ()
    return (*((CitationsPart(references),) if references else ()), *support)


def _document(study: Study | None) -> Titled | None:
    return Titled(study.document.title, study.document.edition, True) if study else None


def _other_years(reference: Reference, study: Study | None) -> tuple[str, ...]:
    """The years of the reference where none of them is the year of the document that was found."""
    own = years(f"{study.document.edition} {study.document.title}") if study else frozenset()
    cited = years(reference.text)
    return tuple(sorted(cited)) if own and not own & cited else ()


def _alerts(assessment: Assessment) -> tuple[Part, ...]:
    """What of the studies a reader must know before anything else."""
    alerts = [(left.reason, _titled(left)) for left in assessment.left_out if _notable(left)]
    alerts += [(DOUBTED, _titled(one)) for one in assessment.studies if doubted(one.study.document)]
    return (AlertPart(tuple(alerts)),) if alerts else ()


def _notable(left: ExcludedStudy) -> bool:
    """A notice found beside the studies is no news."""
    return left.provided or left.reason != NOTICE


def _titled(entry: WeighedStudy | ExcludedStudy) -> Titled:
    return Titled(entry.study.document.title, entry.study.document.edition, entry.provided)


def _claim(held: ClaimResult, studies: Sequence[WeighedStudy], minted: Minted) -> ClaimPart:
    """Label, votes and spread, then the sentences that decided, or that are nearest where nothing was decided."""
    outcome, claim = held.outcome, held.claim
    plus, minus, none = (outcome.votes.count(vote) for vote in (1, -1, 0))
    main, dropped = (
        tuple(_titled(studies[place]) for place in _best(places, studies)) for places in (outcome.main, outcome.dropped)
    )
    return ClaimPart(
        claim.text,
        outcome.label,
        (plus, minus, none),
        outcome.total,
        outcome.heterogeneity.q,
        outcome.heterogeneity.tau2,
        outcome.heterogeneity.k,
        held.unjudged,
        main,
        dropped,
        tuple(_quotation(held, studies, place, minted) for place in quoted(held, studies)),
        claim.whole,
        claim.start,
        claim.end,
    )


def quoted(held: ClaimResult, studies: Sequence[WeighedStudy]) -> list[int]:
    """The places of the studies that are quoted for a claim: the most reliable of the winning group.

    Where nobody judged, those with the sentences that are nearest to the claim.
    """
    if held.outcome.label is Label.NOT_JUDGED:
        near = [place for place, premise in enumerate(held.premises) if premise.share >= NEAR]
        return sorted(_best(near, studies), key=lambda place: -held.premises[place].share)[:NEAREST]
    return _best(held.outcome.main, studies)[:QUOTED]


def _best(places: Sequence[int], studies: Sequence[WeighedStudy]) -> list[int]:
    return sorted(places, key=lambda place: -studies[place].reliability.score)


def _quotation(held: ClaimResult, studies: Sequence[WeighedStudy], place: int, minted: Minted) -> Statement:
    premise = held.premises[place]
    passage = studies[place].study.passages[premise.place]
    return minted[passage.id].quotation(premise.start, premise.end)


def _studies(assessment: Assessment) -> tuple[StudyRow, ...]:
    """The studies, most reliable first; votes only where there were any."""
    rows = sorted(enumerate(assessment.studies), key=lambda row: -row[1].reliability.score)
    decided = [held for held in assessment.claims if held.outcome.label is not Label.NOT_JUDGED]
    return tuple(
        StudyRow(
            _titled(one),
            one.reliability.score,
            one.reliability.base,
            one.reliability.bonus,
            one.reliability.failed,
            tuple(held.outcome.votes[place] for held in decided),
        )
        for place, one in rows
    )


def statement(text: str, evidence: Sequence[Evidence]) -> Statement:
    """A sentence that somebody submitted, as a statement; it cites what says it word for word, else all of it."""
    for source in evidence:
        if place := find_verbatim(source.passage.text, text, source.passage.table):
            return Statement(text, (source.citation(*place),), Origin.SUBMITTED)
    return Statement(text, tuple(citation(source, text) for source in evidence), Origin.SUBMITTED)


def supported(statements: Sequence[Statement]) -> int:
    """How many of ``statements`` what they cite supports."""
    return sum(
        one.verdict is not None and one.verdict.support in (Support.VERBATIM, Support.SUPPORTED) for one in statements
    )
