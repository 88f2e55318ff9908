"""The parts of a verification (M-Eval): the response's label, alerts, claims, studies, the answer's citations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from localmed.domain import Message, message
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
from localmed.messages import CLAUSES, joined
from localmed.presentation.neutral import one_line, words
from localmed.presentation.statements import statement_view
from localmed.presentation.views import PartView, Row, VotesView

SPREAD_FROM = 2  # studies with a vote: one alone disagrees with nobody
DOES_COUNT = "doubted"  # of an alert: the study counts all the same
SIGNS: Mapping[int | None, str] = {1: "+", 0: "0", -1: "-"}  # of votes
NO_VOTE = "\u2013"


def response(part: ResponsePart, language: str) -> PartView:
    """The label of the response, the claims by label, and its limits."""
    counts = tuple(message("verify.count_of", count=count, label=_label(label)) for label, count in part.claims)
    rows = [_row("column.claims", message("verify.counts", counts=counts), language)]
    if part.label is Label.NOT_ENOUGH and not part.carried and {label for label, _ in part.claims} == {Label.SUPPORTED}:
        rows.append(Row("", words(message("verify.not_carried"), language)))
    if part.label is Label.MISTAKEN:
        rows.append(Row("", words(message("verify.label_and_badge"), language)))
    return PartView(words(message("verify.response", label=_label(part.label)), language), tuple(rows))


def alerts(part: AlertPart, language: str) -> PartView:
    """Studies that may not count, or that their editors doubt."""
    return PartView(
        words(message("verify.alerts"), language),
        tuple(Row(words(_alert(code), language), _title(study)) for code, study in part.alerts),
        warning=True,
    )


def _alert(code: str) -> Message:
    why = Message(f"verify.standing.{code}")
    return why if code == DOES_COUNT else message("verify.alert", why=why)


def claim(part: ClaimPart, language: str) -> PartView:
    """A claim: its label, votes and spread, and the deciding sentences."""
    title = message("verify.whole" if part.whole else "verify.claim", text=one_line(part.claim))
    statements = tuple(statement_view(statement, language) for statement in part.statements)
    return PartView(words(title, language), tuple(_claim_rows(part, language)), statements)


def _claim_rows(part: ClaimPart, language: str) -> Iterable[Row]:
    yield _row("verify.label", _label(part.label), language)
    if part.label is Label.NOT_JUDGED:
        nearest = message("verify.nearest") if part.statements else message("verify.nothing_near")
        yield Row("", words(nearest, language))
        return
    plus, minus, none = part.votes
    yield _row("verify.votes", message("verify.voted", plus=plus, minus=minus, none=none, total=part.total), language)
    if part.voters >= SPREAD_FROM:
        spread = message("verify.spread", q=part.q, tau2=part.tau2, voters=part.voters)
        yield _row("verify.heterogeneity", spread, language)
    if part.unjudged:
        yield _row("verify.label_of.not_judged", message("verify.unjudged_studies", count=part.unjudged), language)
    for code, studies in (("verify.main", part.main), ("verify.dropped", part.dropped)):
        if studies:
            yield Row(
                words(Message(code), language),
                joined((_study_with_origin(study, language) for study in studies), language, CLAUSES),
            )


def quality(part: EvidenceQualityPart, language: str) -> PartView:
    """The quality of the evidence that was given with the answer."""
    quality = Message(f"verify.quality.{part.quality.value}")
    return PartView(words(message("verify.quality_of", quality=quality), language), ())


def studies(part: StudiesPart, language: str) -> PartView:
    """Each study by its title, with its reliability, origin and votes."""
    rows = tuple(Row("", _title(row.study), _study(row, language)) for row in part.studies)
    return PartView(words(message("verify.studies"), language), rows)


def _study(row: StudyRow, language: str) -> str:
    detail = message(
        "verify.study_detail",
        score=row.reliability,
        parts=_reliability(row),
        origin=message("verify.given" if row.study.from_answer else "verify.found"),
    )
    votes = message("verify.study_votes", votes=" ".join(SIGNS[vote] for vote in row.votes))
    return words(message("verify.with_votes", detail=detail, votes=votes) if row.votes else detail, language)


def _reliability(row: StudyRow) -> Message:
    if not row.failed:
        return message("verify.reliability", base=row.base, bonus=row.bonus)
    aspects = tuple(Message(f"verify.aspect.{aspect}") for aspect in row.failed)
    return message("verify.reliability_less", base=row.base, bonus=row.bonus, aspects=aspects)


def votes(parts: Iterable[Any], language: str) -> VotesView | None:
    """How each study voted on each claim; None without studies."""
    parts = tuple(parts)
    claims = [part for part in parts if isinstance(part, ClaimPart)]
    rows = [row for part in parts if isinstance(part, StudiesPart) for row in part.studies]
    if not claims or not rows:
        return None
    return VotesView(
        tuple((one_line(one.claim), words(_label(one.label), language)) for one in claims),
        tuple((_title(row.study), f"{row.reliability:.1f}", _signs(claims, row.votes)) for row in rows),
    )


def _signs(claims: Iterable[ClaimPart], cast: Iterable[int]) -> tuple[str, ...]:
    """A study's votes by claim; a dash for a claim that was not judged."""
    votes = iter(cast)
    judged = (one.label is not Label.NOT_JUDGED for one in claims)
    return tuple(SIGNS.get(next(votes, None), NO_VOTE) if one else NO_VOTE for one in judged)


def citations(part: CitationsPart, language: str) -> PartView:
    """The study that each marker names."""
    rows = tuple(Row(f"[{one_line(one.marker)}]", _reference(one, language)) for one in part.references)
    return PartView(words(message("verify.citations"), language), rows)


def _reference(reference: CitedReference, language: str) -> str:
    if reference.study is None:
        return words(message("verify.unknown"), language)
    title = _title(reference.study)
    if not reference.years:
        return title
    return words(message("verify.other_edition", title=title, years=reference.years), language)


def support(part: SupportPart, language: str) -> PartView:
    """The answer's sentences, each with the result of its check."""
    statements = tuple(statement_view(statement, language, verdicts=True) for statement in part.statements)
    return PartView(words(message("verify.support"), language), (), statements)


def _label(label: Label) -> Message:
    return Message(f"verify.label_of.{label}")


def _title(study: Titled) -> str:
    return one_line(f"{study.title} ({study.edition})" if study.edition else study.title)


def _study_with_origin(study: Titled, language: str) -> str:
    """A study by title and date, and whether it came with the answer, which makes it no independent evidence."""
    code = "verify.study_given" if study.from_answer else "verify.study_found"
    return words(Message(code, (("title", _title(study)),)), language)


def _row(label: str, text: Message, language: str) -> Row:
    return Row(words(Message(label), language), words(text, language))


VIEWS: Mapping[type, Any] = {
    ResponsePart: response,
    AlertPart: alerts,
    ClaimPart: claim,
    EvidenceQualityPart: quality,
    StudiesPart: studies,
    CitationsPart: citations,
    SupportPart: support,
}
