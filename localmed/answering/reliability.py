"""How reliable a study is, as a number (M-Eval, III-C and Fig. 4): its design, its date, and what speaks against it.

``score = base + bonus - 0.3 * failed aspects``. The base is the publication type's (``clinical.publications``): 7 for a
systematic review or a meta-analysis and 6 for a trial as in the paper; the rest of the table is ours.

The newest date among the studies compared gains 1.0, the next 0.8, and so on down to 0.2; equal dates gain the same, a
study without a date nothing. The four aspects are random selection, complete data, unbiased conclusions and blinding.
Here rules judge them on title and abstract (``failed``): *random selection* and *blinding* fail unless the abstract
speaks of them (a systematic review's search counts for its selection); *complete data* and *unbiased conclusions*, of
which abstracts are silent, fail only where the abstract admits to losses, missing data, bias or interests. Rules read
words: they are no appraisal by a person, and a chat model may be asked in their place (``agents.appraisal``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from localmed.text.language import fold

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
