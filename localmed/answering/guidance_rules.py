"""Ranks departments without a language model, by their sections in the guide.

A score adds three shares of the complaint's words in a section, weighted by rarity (its own words, those that
``lay_words`` adds, its Chinese characters); where the encoder knows the language, the similarity of complaint and
section and of complaint and nearest sentence; and a bonus or deduction for departments for children or pregnancy. A
department that shares only ``silent`` words ("lost") is not named. Weights and thresholds were chosen on the
development cases (tests/workflows/cases).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from localmed.answering import guidance
from localmed.domain import Statement
from localmed.library.lexical import LexicalIndex
from localmed.retrieval.guide import is_emergency, is_maternity
from localmed.retrieval.weights import Question, searched_text, weigh
from localmed.text import language
from localmed.text.lay_words import added, characters, silent
from localmed.text.negation import denied

SIMILAR = 0.5  # least score with an encoder
WORDS = {"en": 0.2, "zh": 0.5}  # least score by words alone; Chinese counts characters too
CLOSE = 0.45  # least share of the best score
WRONG_PERSON = 0.6  # subtracted from a department for children or pregnancy if the complaint mentions no such person
RIGHT_PERSON = 0.9  # added if it mentions one
EMERGENCY = 0.3  # subtracted from the Emergency Department: red flags choose it; its section has words of every kind
SHORTEST = 8  # characters of a sentence that can be a reason; shorter ones are floors


# Words for a pregnancy now. One that is over, wished for, prevented or only tested for does not count. Somebody
# else's does: naming Maternity as well is harmless, missing a pregnant patient is not.
_PREGNANT = re.compile(
    r"\b(?:pregnan(?:t|cy)|trimester|expecting (?:\w+ ){0,2}(?:baby|child|twins)|due date|antenatal|my waters\b"
    r"|\d\d? ?(?:weeks?|wks?|months?) (?:gone|along)|pregnancy test\b[^.]{0,30}\bpositive|positive pregnancy test)"
    r"|怀孕|怀着(?!.{0,6}(?:心|情|希望|想法|期待|态度))|怀上|孕|胎动|产检|预产期|肚子里的?(?:宝宝|孩子)|(?:宝宝|孩子)在肚子里",
    re.IGNORECASE,
)
_NOT_NOW = re.compile(
    r"\b(?:not|get|getting|become|becoming|fall|was|last|past|previous|lost (?:the|my)|prevents?|impossible) pregnan\w+"
    r"|(?<!positive )\bpregnancy (?:tests?\b(?![^.]{0,30}\bpositive)|leave)"
    r"|[备避免不防想怕像]怀?孕|(?:[上前那]次|(?<!目)前|当时|那时)怀孕|怀不上孕?"
    r"|怀孕(?:前(?!\w{0,2}(?:个月|周))|测试(?!.{0,4}阳))|验孕(?=.{0,4}阴)|孕酮",
    re.IGNORECASE,
)
_CHILD = re.compile(
    r"\b(my|our|the) (\d{1,2}[- ]?(year|month|week|day)[- ]old|baby|toddler|child|kid|little (one|boy"
    r"|girl)|newborn|infant)"
    r"|\b([1-9]|1[0-5])[- ]?(years?|yrs?|months?|weeks?)[- ]old\b"
    r"|\b(son|daughter|grandson|granddaughter|boy|girl)\b.{0,20}\b([1-9]|1[0-5])\b"
    r"|\b(toddler|baby|newborn|infant|child|kid)s?\b"
    r"|宝宝|婴儿|小孩|孩子|娃|小朋友|幼儿|新生儿|(女儿|儿子|孙子|孙女"
    r"|外孙).{0,6}([1-9一二两三四五六七八九]|1[0-5]|十[一二三四五]?)岁"
    r"|([1-9一二两三四五六七八九]|1[0-5]|十[一二三四五]?)(岁|个月大?)的?(女儿|儿子|男孩|女孩|孙)",
    re.IGNORECASE,
)
# Birth, and the weeks around it.
_BIRTH = re.compile(
    r"\b(breast-?feed\w*|gave birth|contractions|nursing|in my belly)\b|宫缩|破水|喂奶|哺乳|坐月子|产后", re.IGNORECASE
)
_CHILDREN = re.compile(r"\b(p(a?e)diatric\w*|child\w*|neonat\w*)\b|儿科|小儿|儿童|新生儿", re.IGNORECASE)


def pregnancy(complaint: str) -> str:
    """The words of ``complaint`` that mention a pregnancy, or ""."""
    return _first_affirmed(_PREGNANT, _NOT_NOW.sub(lambda match: "_" * len(match[0]), complaint))


def _first_affirmed(pattern: re.Pattern[str], complaint: str) -> str:
    lowered = complaint.lower()
    return next((one[0] for one in pattern.finditer(complaint) if not denied(lowered, one.start())), "")


def advise(index: LexicalIndex, task: guidance.GuidanceInput) -> tuple[guidance.Advised, ...]:
    """The departments that fit the complaint best, each with its best sentence as the reason."""
    own = weigh(task.question, index)
    more = weigh(added(task.question, task.language), index)
    single_words = characters(task.question).split()
    single = Question(dict(zip(single_words, index.rarity(single_words), strict=True)))
    least = SIMILAR if task.dense else WORDS[task.language]
    untold = silent(task.language)
    telling = {*own.weights, *more.weights, *single.weights} - {*index.analyse(untold), *untold.split()}
    shared = [one for one in task.departments if any(telling & terms for terms in _terms(index, one))]
    scored = [(_score(index, department, task, (own, more, single)), department) for department in shared]
    scored = sorted((pair for pair in scored if pair[0] >= least), key=lambda pair: -pair[0])
    close = [department for fits, department in scored[: guidance.SHOWN] if fits >= CLOSE * scored[0][0]]

    def coverage(text: str) -> float:
        terms = set(index.analyse(text))
        return own.coverage(terms) + more.coverage(terms)

    return tuple(guidance.Advised(department.name, (_best(department, coverage),)) for department in close)


def _terms(index: LexicalIndex, department: guidance.Department) -> list[set[str]]:
    """The index terms of each section of ``department``."""
    return [set(index.analyse(searched_text(hit.passage))) for hit in department.hits]


def _score(
    index: LexicalIndex, department: guidance.Department, task: guidance.GuidanceInput, parts: Sequence[Question]
) -> float:
    """How well ``department`` fits; about 0 to 3."""
    total = max(sum(part.coverage(terms) for part in parts) for terms in _terms(index, department))
    if task.dense:
        total += max(hit.similarity or 0.0 for hit in department.hits)
        total += max(hit.nearest or 0.0 for hit in department.hits)
    if _CHILDREN.search(department.name):
        total += RIGHT_PERSON if _first_affirmed(_CHILD, task.question) else -WRONG_PERSON
    if is_maternity(department.name):
        has_words = pregnancy(task.question) or _first_affirmed(_BIRTH, task.question)
        total += RIGHT_PERSON if has_words else -WRONG_PERSON
    return total - (EMERGENCY if is_emergency(department.name) else 0.0)


def reason(department: guidance.Department, complaint: str) -> Statement:
    """The sentence of its sections that shares most words with ``complaint``; the longest of equals."""
    words = set(language.words(complaint))
    return _best(department, lambda text: len(words & set(language.words(text))) + len(text) / 10_000)


def _best(department: guidance.Department, score: Callable[[str], float]) -> Statement:
    sentences = [
        (score(evidence.passage.text[start:end]), evidence, start, end)
        for evidence in department.evidence
        for start, end in language.sentences(evidence.passage.text)
        if end - start >= SHORTEST
    ]
    if not sentences:
        evidence = department.evidence[0]
        return evidence.quotation(0, len(evidence.passage.text))
    _, evidence, start, end = max(sentences, key=lambda scored: scored[0])
    return evidence.quotation(start, end)
