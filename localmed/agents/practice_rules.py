"""The roles of evidence-based practice without a language model: PICO by cues (``pico_rules``), the rest by quotation.

Statements are sentences of the evidence, word for word: those that recommend first; beside them those that give the
size of an effect; and those that make an exception or a condition of what the record holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from localmed.agents.asking import Draft
from localmed.agents.cast import Rules
from localmed.agents.extractive import Candidate, Extractive, quotation, units
from localmed.agents.pico_rules import pico
from localmed.agents.practice import (
    APPLICABILITY,
    GUIDELINE_RELEVANCE,
    PICO,
    RECOMMENDATION,
    ApplicabilityInput,
    GuidelinesInput,
    RecommendationInput,
)
from localmed.clinical import measures, medicines
from localmed.domain import Evidence, Statement
from localmed.domain.patient import PatientRecord
from localmed.language import content_words, fold

RECOMMENDS = 0.15  # what a sentence that recommends gains: as much as the first-ranked source does over the last
QUOTED = 5  # sentences at most of effects, and of what bears on the patient
OLD, KIDNEYS = 75, 60  # years; mL/min: from where guidelines make exceptions

# --- quotations -------------------------------------------------------------------------------------------------------

_RECOMMENDS = re.compile(
    r"\b(?:should|recommend\w*|advise[ds]?|suggest\w*|offer|first[- ]line|first choice|prefer\w*|consider|must"
    r"|do not|avoid"
    r"|contraindicated|the (?:target|first treatment|standard)|usual (?:first|dose|medicine))\b"
    r"|^(?:give|start|add|stop|use|treat|measure|take|check|refer|continue|repeat|assess)\b"
    r"|建议|推荐|应[当该]?|首选|可[以考]|不宜|禁用|不得|避免|慎用",
    re.IGNORECASE,
)
_EFFECT_SIZE = re.compile(
    r"\b(?:95 ?% ?ci|confidence interval|(?:relative|absolute|hazard|odds|risk) (?:risk|ratio|reduction|difference)"
    r"|\b[rho]r\b ?[=:]? ?\d|nnt|nnh|number needed|p ?[<=] ?0)"
    r"|(?:reduc|lower|increas|decreas|improv|prevent|fewer|more|rais)\w*\b[^.;]{0,80}?\bby (?:about |around |up to )?"
    r"(?:\d[\d.]*|one|two|three|half|a (?:third|quarter|half|fifth))"
    r"|\b(?:by|of|in) (?:about )?\d[\d.]* ?%[^.;]{0,60}(?:risk|events?|deaths?|mortality)|\d[\d.]* ?% (?:versus"
    r"|vs|compared)"
    r"|可信区间|置信区间|相对(?:风险|危险)|危险比|风险比|比值比|(?:降低|减少|增加|提高)[^。；]{0,20}?(?:约"
    r"|了)?\s*\d[\d.]*\s*%"
    r"|(?:降低|减少|增加)[^。；]{0,12}(?:三分之|四分之|五分之|一半)",
    re.IGNORECASE,
)
_CAUTIONS = re.compile(
    r"\b(?:if|when|unless|do not|not|stop|avoid|caution|contraindicat\w*|reduce|exceed|instead|less|lower|check"
    r"|never|with)\b"
    r"|如|若|禁|慎|避免|停|减|不宜|不得|不应|复查|监测|个体化",
    re.IGNORECASE,
)


def quantities(question: str, evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """The sentences of the evidence that give the size of an effect and share a word with the question, quoted."""
    wanted = {each for each in content_words(question) if len(each) > 1}
    found = []
    for each in _sentences(evidence):
        context = " ".join((each.evidence.passage.title, each.text))
        if _EFFECT_SIZE.search(each.text) and wanted & set(content_words(context)):
            found.append(quotation(each))
    return tuple(found[:QUOTED])


class Practice:
    """The roles by rule; sentences are scored as for an answer."""

    def __init__(self, extractive: Extractive) -> None:
        self._extractive = extractive

    def rules(self) -> Rules:
        """The roles it serves."""
        return {
            PICO.name: pico,
            GUIDELINE_RELEVANCE.name: applying,
            RECOMMENDATION.name: self.recommend,
            APPLICABILITY.name: bearing,
        }

    def recommend(self, given: RecommendationInput) -> Draft:
        """The best sentences for the question, those that recommend before others."""
        scored = [
            replace(each, score=each.score + RECOMMENDS) if _RECOMMENDS.search(each.text) else each
            for each in self._extractive.scored(given)
        ]
        best = sorted(scored, key=lambda each: (-each.score, each.place, each.start))
        return Draft(tuple(quotation(each) for each in self._extractive.chosen(best)))


def applying(given: GuidelinesInput) -> tuple[str, ...]:
    """The guidelines of which a passage helps: the others only resemble the question."""
    return tuple(each.document for each in given.guidelines if each.helpful)


def bearing(given: ApplicabilityInput) -> Draft:
    """The sentences that make an exception or condition of what the record holds, quoted; most in common first."""
    said = {each.text for each in given.said}
    subject = set(medicines.classes(" ".join((given.question, *said))))
    found = []
    for each in _sentences(given.evidence):
        fitting = each.text not in said and _CAUTIONS.search(each.text) and _about(each, subject)
        if fitting and (common := _common(each.text, set(content_words(each.evidence.document_title)), given.record)):
            found.append((common, each))
    best = sorted(found, key=lambda pair: (-pair[0], pair[1].place, pair[1].start))[:QUOTED]
    return Draft(tuple(quotation(each) for _, each in best))


def _about(candidate: Candidate, subject: set[str]) -> bool:
    """Whether a sentence names none but medicines that the question or the recommendation speaks of as well."""
    named = set(medicines.classes(candidate.text))
    return not named or not subject or bool(named & subject)


def _common(text: str, title: set[str], record: PatientRecord) -> int:
    """How many things of the record a sentence speaks of."""
    words = set(content_words(text)) - title  # what the whole document is about makes no exception
    named = set(medicines.classes(text))
    count = sum(bool(words & _telling(each)) for each in record.problems)
    count += sum(bool(named & set(medicines.classes(each))) for each in record.medications)
    count += sum(bool(medicines.met_by(each, text)) or bool(words & _telling(each)) for each in record.allergies)
    count += sum(record.result(name) is not None for name in {each.name for each in measures.measured(text)})
    return count + sum(bool(pattern.search(fold(text))) for applies, pattern in _GROUPS if applies(record))


def _telling(entry: str) -> set[str]:
    """The words of an entry that say what it is."""
    return {each for each in content_words(entry) if len(each) > 1 and each not in _GENERAL and not each[0].isdigit()}


def _kidneys(record: PatientRecord) -> bool:
    filtration = record.result("eGFR") or record.result("creatinine clearance")
    named = re.search(r"ckd|kidney|renal|肾", fold(" ".join(record.problems)))
    return bool(named) or (filtration is not None and filtration.value < KIDNEYS)


_GENERAL = frozenset(
    [
        "chronic",
        "acute",
        "disease",
        "disorder",
        "finding",
        "type",
        "stage",
        "mild",
        "severe",
        "moderate",
        "history",
        "syndrome",
        "慢性",
        "急性",
        "疾病",
    ]
)
_GROUPS = (
    (lambda record: record.pregnant is True, re.compile(r"pregnan|妊娠|孕")),
    (lambda record: record.age is not None and record.age >= OLD, re.compile(r"older|elderly|frail|老年|高龄|衰弱")),
    (lambda record: record.age is not None and record.age < 18, re.compile(r"child|infant|儿童|小儿|婴")),
    (_kidneys, re.compile(r"egfr|renal|kidney|creatinine|肾")),
)  # fmt: skip


def _sentences(evidence: Sequence[Evidence]) -> list[Candidate]:
    return [
        Candidate(each, place, start, end, 0.0, frozenset())
        for place, each in enumerate(evidence)
        for start, end in units(each.passage)
    ]
