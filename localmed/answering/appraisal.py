"""The role that looks at how a study was done (M-Eval, Fig. 4): which of four aspects its abstract does not show.

A chat model is asked each aspect of the title and abstract, between marks; the rules of ``verification.reliability``
look for words. Either reads an abstract, not the study: an aspect may have been met and not been written down.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from localmed.answering import evidence as shown
from localmed.answering import reliability
from localmed.answering.prompts import instructions
from localmed.answering.roles import Choosing, Role, Rules
from localmed.domain.ports import Choice
from localmed.text.language import detect

READ = 4_000  # characters of an abstract before a model: twice a usual one
LEAST = 0.5  # probability of "yes" from which an aspect counts as met

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


@dataclass(frozen=True, slots=True)
class AppraisalInput:
    """A study's title and abstract. The result is a tuple of the ``ASPECTS`` that they do not show."""

    title: str = field(repr=False)
    text: str = field(repr=False)

    @property
    def language(self) -> str:
        """The study's."""
        return detect(self.text)


def _prompt(task: AppraisalInput) -> str:
    return shown.quoted("study", "\n".join((task.title, task.text[:READ])), task.language) + "\n"


def _branches(task: AppraisalInput) -> tuple[str, ...]:
    return tuple(_QUESTIONS[aspect][task.language] for aspect in reliability.ASPECTS)


def _failed(_: AppraisalInput, choices: Sequence[Choice]) -> tuple[str, ...]:
    pairs = zip(reliability.ASPECTS, choices, strict=True)
    return tuple(name for name, choice in pairs if choice.probabilities[0] < LEAST)


APPRAISAL = Role(
    "appraisal",
    "Which aspects of a study's method its abstract does not show",
    "1",
    "M-Eval, reliability score: level penalty",
    Choosing(
        instructions("appraisal"),
        {"en": ("yes", "no"), "zh": ("是", "否")},
        _prompt,
        _branches,
        _failed,
    ),
)
ROLES = (APPRAISAL,)
RULES: Rules = {APPRAISAL.name: lambda study: reliability.failed(study.title, study.text)}
