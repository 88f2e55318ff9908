"""The reliability score of a study by design, date and faults (M-Eval, III-C and Fig. 4).

``score = base + bonus - 0.3 * failed aspects``. The base is the publication type's (``clinical.publications``): 7 for a
systematic review or a meta-analysis and 6 for a trial as in the paper; the rest of the table is ours.

The newest date among the studies compared gains 1.0, the next 0.8, down to 0.2; equal dates gain the same, a missing
date nothing. The aspects are random selection, complete data, unbiased conclusions and blinding. If the settings name
the role, a chat model judges them by title and abstract, one call for each study; an abstract may omit an aspect that
the study met. Without a model none has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from localmed.answering import evidence as shown
from localmed.answering.roles import Choosing, Role
from localmed.domain import Document, Status
from localmed.domain.ports import Choice
from localmed.text.language import detect
from localmed.text.publications import of_standing

PENALTY = 0.3  # for each failed aspect; the paper's
LEAST = 0.1  # a letter that fails in all aspects comes to -0.2: a vote must not count for the other side
BONUSES = (1.0, 0.8, 0.6, 0.4, 0.2)  # by recency, the newest first; the paper's first two, gone on with


@dataclass(frozen=True, slots=True)
class Reliability:
    """A study's score and its components; ``failed`` are names of ``ASPECTS``."""

    base: int
    bonus: float
    failed: tuple[str, ...] = ()

    @property
    def score(self) -> float:
        """The weight of the study's vote."""
        return max(LEAST, round(self.base + self.bonus - PENALTY * len(self.failed), 1))


def bonuses(dates: Sequence[str]) -> tuple[float, ...]:
    """The bonus of each of ``dates`` (ISO, as precise as known, or "") by rank."""
    ranks = {date: rank for rank, date in enumerate(sorted({*dates} - {""}, reverse=True))}
    return tuple(BONUSES[ranks[date]] if ranks.get(date, len(BONUSES)) < len(BONUSES) else 0.0 for date in dates)


# --- the aspects ------------------------------------------------------------------------------------------------------

READ = 4_000  # characters of an abstract before a model: twice a usual one
MET = 0.5  # probability of "yes" from which an aspect counts as met

_QUESTIONS = {
    "random_selection": {
        "en": "Were participants or data selected or allocated at random, or, in a review, by a systematic search?",
        "zh": "研究对象或数据是否随机选取或分配（综述则是否经系统检索）？",
    },
    "complete_data": {"en": "Are the data complete, without important losses?", "zh": "数据是否完整、没有重要缺失？"},
    "unbiased_conclusions": {
        "en": "Do the conclusions follow from the results, without bias or interests?",
        "zh": "结论是否由结果得出、没有偏倚或利益影响？",
    },
    "blinding": {"en": "Was anybody blinded to the treatment?", "zh": "研究是否采用盲法？"},
}
ASPECTS = tuple(_QUESTIONS)


@dataclass(frozen=True, slots=True)
class AppraisalInput:
    """A study's title and abstract; the result is a tuple of missing ``ASPECTS``."""

    title: str = field(repr=False)
    text: str = field(repr=False)

    @property
    def language(self) -> str:
        """The study's."""
        return detect(self.text)


def _failed(_: AppraisalInput, choices: Sequence[Choice]) -> tuple[str, ...]:
    return tuple(name for name, choice in zip(ASPECTS, choices, strict=True) if choice.probabilities[0] < MET)


# Which aspects of a study's method its abstract does not show (M-Eval, reliability score: level penalty).
APPRAISAL = Role(
    "appraisal",
    "1",
    Choosing(
        {"en": ("yes", "no"), "zh": ("是", "否")},
        lambda task: shown.quoted("study", f"{task.title}\n{task.text[:READ]}", task.language) + "\n",
        lambda task: tuple(question[task.language] for question in _QUESTIONS.values()),
        _failed,
    ),
)
ROLES = (APPRAISAL,)


# --- whether a study may count at all ---------------------------------------------------------------------------------

# Not if it is retracted, withdrawn or superseded, no study, or speaks to a model: it never counts for or against a
# claim, and a reader is told of it: that a claim rests on a retracted study is worth knowing. The library's status
# decides, and what PubMed says of an article in its publication types and links, should its status say otherwise.

PLANTED = "planted"  # text addressed to a language model ("label this claim supported")
RETRACTED = "retracted"
NOTICE = "notice"  # of a retraction, correction or concern: it speaks of a study and is none
DOUBTED = "doubted"  # counts, but its editors say that something is wrong with it

_RETRACTED_LINKS = frozenset({"retraction_in", "retracted_and_republished_in"})
_DOUBTS = frozenset({"partial_retraction_in", "expression_of_concern_in"})


def excluded(document: Document, planted: bool) -> str:
    """The reason to exclude ``document``, a code of ``verify.standing``, or ""."""
    types = {type_.lower() for type_ in document.publication_types}
    links = {kind for kind, _ in document.relations}
    if not types.isdisjoint(of_standing(RETRACTED)) or not links.isdisjoint(_RETRACTED_LINKS):
        return RETRACTED
    if document.status is not Status.CURRENT:
        return document.status.value
    if not types.isdisjoint(of_standing(NOTICE)):
        return NOTICE
    return PLANTED if planted else ""


def doubted(document: Document) -> bool:
    """Whether the journal has retracted a part of the article or expressed concern."""
    return not _DOUBTS.isdisjoint(kind for kind, _ in document.relations)
