"""What a verification found, as the parts of an answer, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from localmed.agents.evidence import citation
from localmed.domain import Citation, Evidence, Origin, Part, Statement, Support, TextPart
from localmed.retrieval.studies import Study
from localmed.verification.m_eval_texts import TEXTS
from localmed.verification.standing import doubted
from localmed.verification.vote import Quality
from localmed.workflows.m_eval import Assessment, Held, LeftOut, Weighed

QUOTED = 5  # of a claim's main evidence; the rest is in the table of studies

Minted = Mapping[str, Evidence]  # by passage id


def parts(assessment: Assessment, minted: Minted, language: str) -> tuple[Part, ...]:
    """The response's label, alerts, each claim, what the given evidence is worth, and the studies."""
    texts = TEXTS[language]
    if not assessment.claims:
        return alerts(assessment, texts)
    return (
        _response(assessment, texts),
        *alerts(assessment, texts),
        *(_claim(each, assessment.studies, minted, texts) for each in assessment.claims),
        *_given(assessment.quality, texts),
        *_studies(assessment, texts),
    )


def _response(assessment: Assessment, texts: Mapping[str, str]) -> Part:
    labels = [each.outcome.label for each in assessment.claims]
    counts = "; ".join(f"{texts[name]} {labels.count(name)}" for name in dict.fromkeys(labels))
    label = texts[assessment.label]
    facts = ((texts["label"], label), (texts["claims"], counts))
    return TextPart("response", texts["response"].format(label=label), facts=facts)


def alerts(assessment: Assessment, texts: Mapping[str, str]) -> tuple[Part, ...]:
    """What of the studies a reader must know before anything else."""
    facts = [(texts[each.reason], _called(each.study)) for each in assessment.left_out if _told(each)]
    facts += [(texts["doubted"], _called(each.study)) for each in assessment.studies if doubted(each.study.document)]
    return (TextPart("alerts", texts["alerts"], facts=tuple(facts)),) if facts else ()


def _told(each: LeftOut) -> bool:
    """A notice found beside the studies is no news."""
    return each.given or each.reason != "notice"


def _called(study: Study) -> str:
    document = study.document
    return f"{document.title} ({document.edition})" if document.edition else document.title


def _placed(each: Weighed, texts: Mapping[str, str]) -> str:
    """A study by title and date, and whether the answer brought it: then it says little that is new."""
    return f"{_called(each.study)}, {texts['of the answer' if each.given else 'found']}"


def _claim(held: Held, studies: Sequence[Weighed], minted: Minted, texts: Mapping[str, str]) -> Part:
    """Label, votes and spread, then of the winning group the sentences that were judged, most reliable first."""
    outcome, claim = held.outcome, held.claim
    votes = {name: outcome.votes.count(vote) for name, vote in (("plus", 1), ("minus", -1), ("none", 0))}
    spread = outcome.heterogeneity
    facts = [
        (texts["label"], texts[outcome.label]),
        (texts["votes"], texts["voted"].format(**votes, total=outcome.total)),
        (texts["heterogeneity"], texts["spread"].format(q=spread.q, tau2=spread.tau2, k=spread.k)),
    ]
    if held.unjudged:
        facts.append((texts["unjudged"], texts["unjudged studies"].format(number=held.unjudged)))
    for name, places in ((texts["main evidence"], outcome.main), (texts["dropped"], outcome.dropped)):
        if places:
            called = (_placed(studies[place], texts) for place in _best(places, studies))
            facts.append((name, "; ".join(called)))
    quotes = [_quotation(held, studies, place, minted) for place in quoted(held, studies)]
    title = texts["whole" if claim.whole else "claim"].format(text=claim.text)
    return TextPart("claim", title, tuple(quotes), tuple(facts), claim.start, claim.end)


def quoted(held: Held, studies: Sequence[Weighed]) -> list[int]:
    """The places of the studies that are quoted for a claim: the most reliable of the winning group."""
    return _best(held.outcome.main, studies)[:QUOTED]


def _best(places: Sequence[int], studies: Sequence[Weighed]) -> list[int]:
    return sorted(places, key=lambda place: -studies[place].reliability.score)


def _quotation(held: Held, studies: Sequence[Weighed], place: int, minted: Minted) -> Statement:
    premise = held.premises[place]
    passage = studies[place].study.passages[premise.place]
    evidence = minted[passage.id]
    return Statement(passage.text[premise.start : premise.end],
                     (_cited(evidence, premise.start, premise.end),), Origin.EXTRACTIVE)  # fmt: skip


def _cited(evidence: Evidence, start: int, end: int) -> Citation:
    passage = evidence.passage
    boxes = passage.boxes(start, end)
    page = boxes[0].page if boxes else passage.page
    return Citation(evidence.marker, passage.id, passage.document_id, start, end, passage.text[start:end], page, boxes)


def _given(quality: Quality | None, texts: Mapping[str, str]) -> tuple[Part, ...]:
    if quality is None:
        return ()
    return (TextPart("given", texts["given"].format(quality=texts[quality]),
                 facts=((texts["label"], texts[quality]), (texts["reason"], texts[f"why {quality}"]))),)  # fmt: skip


def _studies(assessment: Assessment, texts: Mapping[str, str]) -> tuple[Part, ...]:
    rows = sorted(enumerate(assessment.studies), key=lambda row: -row[1].reliability.score)
    facts = tuple((_called(each.study), _row(each, place, assessment, texts)) for place, each in rows)
    return (TextPart("studies", texts["studies"], facts=facts),) if facts else ()


def _row(each: Weighed, place: int, assessment: Assessment, texts: Mapping[str, str]) -> str:
    failed = each.reliability.failed
    return texts["reliability"].format(
        score=each.reliability.score,
        base=each.reliability.base,
        bonus=each.reliability.bonus,
        failed=len(failed),
        aspects=f" ({', '.join(texts.get(name, name) for name in failed)})" if failed else "",
        origin=texts["of the answer" if each.given else "found"],
        votes=" ".join("-0+"[held.outcome.votes[place] + 1] for held in assessment.claims),
    )


def statement(text: str, evidence: Sequence[Evidence]) -> Statement:
    """A sentence of the answer as a statement: quoted where a source holds it word for word, else somebody's words."""
    for each in evidence:
        if (start := each.passage.text.find(text)) >= 0:
            return Statement(text, (_cited(each, start, start + len(text)),), Origin.EXTRACTIVE)
    return Statement(text, tuple(citation(each, text) for each in evidence), Origin.GENERATED)


def supported(statements: Sequence[Statement]) -> int:
    """How many of ``statements`` what they cite supports."""
    return sum(bool(each.verdict) and each.verdict.support in (Support.VERBATIM, Support.SUPPORTED)
               for each in statements if each.verdict)  # fmt: skip
