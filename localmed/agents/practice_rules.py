"""The roles of evidence-based practice without a language model: PICO by cues (``pico_rules``), the rest by quotation.

Statements are sentences of the evidence, word for word: those that recommend first, and those that give the size of an
effect. Where the question names a medicine, a sentence that is about another one is not used: what it is about are the
medicines it names, else those last named before it, else those of its headings. What the sources say of patients like
this one takes reading: without a model nothing is said of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from localmed.agents import practice
from localmed.agents.asking import Draft
from localmed.agents.extractive import Candidate, Extractive, units
from localmed.agents.pico_rules import pico
from localmed.agents.roles import Rules
from localmed.agents.subject import Subject
from localmed.domain import Evidence, Statement
from localmed.domain.patient import Measured
from localmed.language import content_words
from localmed.verification import cases

RECOMMENDS = 0.15  # what a sentence that recommends gains: as much as the first-ranked source does over the last
FITS = 0.3  # what one gains that is for a value of the patient's: more than by recommending
QUOTED = 5  # sentences at most of effects

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


class Practice:
    """The roles by rule; sentences are scored as for an answer."""

    def __init__(self, extractive: Extractive) -> None:
        self._extractive = extractive

    def rules(self) -> Rules:
        """The roles it serves."""
        return {
            practice.PICO.name: pico,
            practice.GUIDELINE_RELEVANCE.name: applying,
            practice.RECOMMENDATION.name: self.recommend,
            practice.APPLICABILITY.name: lambda _: Draft(),
        }

    def recommend(self, task: practice.RecommendationInput) -> Draft:
        """The best sentences for the question that are about its medicines, those that recommend before others.

        What is for the patient's values comes before that, and what is for other values is left out.
        """
        subject = Subject.of(task.question, task.pico.intervention)
        values = task.record.results if task.record else ()
        scored = [
            replace(candidate, score=candidate.score + _gain(candidate.text, values))
            for candidate in self._extractive.scored(task)
            if subject.fits(candidate.evidence.passage, candidate.start, candidate.end)
            and not cases.for_another(values, candidate.text)
        ]
        best = sorted(scored, key=lambda candidate: (-candidate.score, candidate.place, candidate.start))
        return Draft(tuple(candidate.quotation for candidate in self._extractive.chosen(best)))


def _gain(text: str, values: Sequence[Measured]) -> float:
    fitting = any(cases.fits(value, text) for value in values)
    return (FITS if fitting else 0.0) + (RECOMMENDS if _RECOMMENDS.search(text) else 0.0)


def applying(task: practice.GuidelinesInput) -> tuple[str, ...]:
    """The guidelines of which a passage helps: the others only resemble the question."""
    return tuple(guideline.document for guideline in task.guidelines if guideline.helpful)


def quantities(question: str, evidence: Sequence[Evidence]) -> tuple[Statement, ...]:
    """The sentences of the evidence that give the size of an effect, share a word with the question and are about its
    medicines, quoted.
    """
    words = {word for word in content_words(question) if len(word) > 1}
    subject = Subject.of(question)
    quotations = [
        candidate.quotation
        for candidate in _sentences(evidence)
        if _EFFECT_SIZE.search(candidate.text)
        and words & set(content_words(f"{candidate.evidence.passage.title} {candidate.text}"))
        and subject.fits(candidate.evidence.passage, candidate.start, candidate.end)
    ]
    return tuple(quotations[:QUOTED])


def _sentences(evidence: Sequence[Evidence]) -> list[Candidate]:
    return [
        Candidate(source, place, start, end, 0.0)
        for place, source in enumerate(evidence)
        for start, end in units(source.passage)
    ]
