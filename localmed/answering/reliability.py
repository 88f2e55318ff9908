"""How reliable a study is, as a number (M-Eval, III-C and Fig. 4): its design, its date, and what speaks against it.

``score = base + bonus - 0.3 * failed aspects``. The base is the publication type's (``clinical.publications``): 7 for a
systematic review or a meta-analysis and 6 for a trial as in the paper; the rest of the table is ours.

The newest date among the studies compared gains 1.0, the next 0.8, and so on down to 0.2; equal dates gain the same, a
study without a date nothing. The four aspects are random selection, complete data, unbiased conclusions and blinding.
Here rules judge them on title and abstract (``failed``): *random selection* and *blinding* fail unless the abstract
speaks of them (a systematic review's search counts for its selection); *complete data* and *unbiased conclusions*, of
which abstracts are silent, fail only where the abstract admits to losses, missing data, bias or interests. Rules read
words: they are no appraisal by a person, and a chat model may be asked in their place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from localmed.answering import evidence as shown
from localmed.answering.roles import Choosing, Role, Rules
from localmed.domain import Document, Status
from localmed.domain.ports import Choice
from localmed.text.language import detect, fold
from localmed.text.publications import of_standing

ASPECTS = ("random_selection", "complete_data", "unbiased_conclusions", "blinding")
PENALTY = 0.3  # for each failed aspect; the paper's
LEAST = 0.1  # a letter that fails in all aspects comes to -0.2: a vote must not count for the other side
BONUSES = (1.0, 0.8, 0.6, 0.4, 0.2)  # by recency, the newest first; the paper's first two, gone on with

_SHOWN = {
    "random_selection": re.compile(
        r"(?<!non-)(?<!non)(?<!not )(?<!without )\brandom(?:ly|i[sz]ed|i[sz]ation|\b)"
        r"|systematic(?:ally)? (?:search|review)"
        r"|(?:search\w*|databases?)[^.]{0,60}\b(?:medline|pubmed|embase|cochrane)"
        r"|\b(?:medline|pubmed|embase|cochrane)\b[^.]{0,60}search"
        r"|(?<!非)(?<!未)随机|系统检索|检索[^。]{0,30}数据库"
    ),
    "blinding": re.compile(
        r"\b(?:single|double|triple|observer|assessor|investigator|evaluator)[- ]?(?:blind\w*|mask\w*)"
        r"|\b(?<!not )(?<!un)(?:blinded|masked)\b|placebo[- ]controlled|(?:单|双|三)盲|盲法|安慰剂对照"
    ),
}
_ADMITTED = {
    "random_selection": re.compile(r"\bnon-?\s?randomi[sz]ed|\bconvenience sampl|非随机|未随机|便利(?:抽样|样本)"),
    "complete_data": re.compile(
        r"\b(?:lost|loss|losses) to follow-?up|\bmissing data\b|\bincomplete (?:data|follow-?up|records?)"
        r"|\bdrop-?outs?\b|\bdropped out\b|\bhigh attrition\b|\bwithdrew\b|\b(?:terminated|stopped) early"
        r"|失访|脱落|缺失数据|数据(?:缺失|不完整|不全)|提前终止"
    ),
    "unbiased_conclusions": re.compile(
        r"\b(?:high|higher|serious|unclear) risk of bias|\bpublication bias (?:was|is) (?!not|un)"
        r"|\b(?:may|might|could|cannot|possible|potential)\b[^.]{0,40}\b(?:bias|confound)"
        r"|\bfunded by (?:the )?(?:manufacturer|industry|sponsor)|\bpost[- ]hoc\b"
        r"|偏倚风险(?:较?高|高)|存在[^。]{0,8}偏倚|发表偏倚|厂家资助|事后分析"
    ),
    "blinding": re.compile(
        r"\bopen[- ]?label|\bun(?:blinded|masked)\b|\bnot (?:blinded|masked)\b|\bno blinding\b"
        r"|开放标签|未(?:设|采用)?盲|非盲"
    ),
}


@dataclass(frozen=True, slots=True)
class Reliability:
    """A study's score and what it is made of; ``failed`` are names of ``ASPECTS``."""

    base: int
    bonus: float
    failed: tuple[str, ...]

    @property
    def score(self) -> float:
        """The weight of the study's vote."""
        return max(LEAST, round(self.base + self.bonus - PENALTY * len(self.failed), 1))


def bonuses(dates: Sequence[str]) -> tuple[float, ...]:
    """The bonus of each of ``dates`` (ISO, as precise as known; "" where there is none), by rank among them."""
    ranks = {date: rank for rank, date in enumerate(sorted({*dates} - {""}, reverse=True))}
    return tuple(BONUSES[ranks[date]] if ranks.get(date, len(BONUSES)) < len(BONUSES) else 0.0 for date in dates)


def failed(title: str, text: str) -> tuple[str, ...]:
    """The aspects that title and abstract do not show, by the rules of this module."""
    read = fold(f"{title}\n{text}")
    return tuple(name for name in ASPECTS if _fails(name, read))


def _fails(aspect: str, read: str) -> bool:
    if _ADMITTED[aspect].search(read):
        return True
    return aspect in _SHOWN and not _SHOWN[aspect].search(read)


# --- by a chat model --------------------------------------------------------------------------------------------------

# Which of four aspects an abstract does not show (M-Eval, Fig. 4): asked each aspect of the title and abstract, between
# marks. Like the rules it reads an abstract, not the study: an aspect may have been met and not been written down.

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
    return tuple(_QUESTIONS[aspect][task.language] for aspect in ASPECTS)


def _failed(_: AppraisalInput, choices: Sequence[Choice]) -> tuple[str, ...]:
    pairs = zip(ASPECTS, choices, strict=True)
    return tuple(name for name, choice in pairs if choice.probabilities[0] < MET)


APPRAISAL = Role(
    "appraisal",
    "Which aspects of a study's method its abstract does not show",
    "1",
    "M-Eval, reliability score: level penalty",
    Choosing({"en": ("yes", "no"), "zh": ("是", "否")}, _prompt, _branches, _failed),
)
ROLES = (APPRAISAL,)
RULES: Rules = {APPRAISAL.name: lambda study: failed(study.title, study.text)}


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
    """Why ``document`` may not count, "" if it may: a code of ``verify.standing``."""
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
    """Whether the article's journal has retracted a part of it or expressed concern."""
    return not _DOUBTS.isdisjoint(kind for kind, _ in document.relations)
