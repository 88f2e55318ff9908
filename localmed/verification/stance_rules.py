"""Whether a text supports a statement, by rules: the words they share, negation, direction, doubt, amounts. English.

``signals`` reads what the words of a pair tell, as numbers; ``RuleJudge`` is the ``Entailment`` that decides by them:

- Medicines that differ, or too few of the statement's words in the text: neutral.
- Amounts of the same kind of unit that differ: contradiction.
- A text that says that nobody knows, about a statement that claims to: neutral.
- Polarity or direction that differs: contradiction. A sentence's polarity is whether it says that something helps or
  harms and whether it denies that ("did not reduce"), its direction whether something rises or falls.
- Else entailment.

Rules know the words listed here and no grammar: what a negation refers to, who did what to whom, irony are not seen.
Their error rates stand in ``stance.py`` beside this file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from localmed.clinical.medicines import ingredients
from localmed.language import content_words, fold
from localmed.ports import Stance
from localmed.verification.amounts import Amount, amounts
from localmed.verification.subjects import compatible

# Opposites: a pair of texts, one of which has the one word and the other the other.
OPPOSITES = (
    ("increase", "decrease"), ("increases", "decreases"), ("increased", "decreased"), ("increasing", "decreasing"),
    ("raise", "lower"), ("raises", "lowers"), ("raised", "lowered"), ("higher", "lower"), ("more", "less"),
    ("improve", "worsen"), ("improves", "worsens"), ("improved", "worsened"), ("better", "worse"),
    ("effective", "ineffective"), ("beneficial", "harmful"), ("safe", "unsafe"), ("positive", "negative"),
    ("prevents", "causes"), ("prevent", "cause"), ("prevented", "caused"), ("common", "rare"), ("high", "low"),
    ("often", "rarely"), ("likely", "unlikely"), ("necessary", "unnecessary"), ("strong", "weak"),
    ("significant", "insignificant"), ("useful", "useless"), ("longer", "shorter"), ("similar", "different"),
    ("accurate", "inaccurate"), ("reliable", "unreliable"), ("superior", "inferior"), ("early", "late"),
    ("possible", "impossible"), ("most", "least"), ("greater", "smaller"), ("with", "without"), ("before", "after"),
    ("feasible", "unfeasible"), ("sufficient", "insufficient"), ("adequate", "inadequate"), ("all", "none"),
)  # fmt: skip

# Beginnings of words: what helps or protects, harms, rises, falls, and what is bad if there is more of it.
_HELPS = (
    r"prevent|protect|cure|heal|treat|benefi|improv|effective|efficac|safe\b|safely|help|promising|useful|recover|recommend"
    r"|inhibit|suppress|inactivat|kill|boost|shield|relie[fv]|success|avert|mitigat|ameliorat|alleviat|superior|surviv"
)
_HARMS = (
    r"harm|worse|aggravat|danger|ineffective|useless|fail|futil|unsafe|adverse|toxic|contribut|predispos|vulnerab"
    r"|susceptib|caus(?:e|es|ed|ing)\b|lead(?:s|ing)? to|trigger|facilitat|detriment|inferior|complicat|deteriorat"
)
_RISES = (
    r"increas|rais(?:e|es|ed|ing)\b|rise|rising|higher|greater|more\b|elevat|exceed|prolong|twice"
    r"|double|accelerat|enhanc|promot"
)
_FALLS = (
    r"decreas|reduc|lower|less\b|fewer|declin|diminish|slow|shorten|attenuat|drop|fewest|wane|limit|weaken|stop|curb"
)
_BAD = (
    r"risk|mortality|death|died|die\b|severity|sever|infect|incidence|odds|rate|spread|transmi|symptom|admission"
    r"|disease|illness|case|hospitali|complication|outbreak|viral load|duration|inflammat"
)
_DENIES = re.compile(
    r"\b(?:not|no|never|none|neither|nor|without|cannot|can'?t|won'?t|don'?t|doesn'?t|isn'?t|aren'?t|didn'?t|unlikely"
    r"|lack(?:s|ed|ing)?|absence|absent|nothing|nobody|rarely|myth|false|negligible|hardly|little|fail(?:s|ed)?|immune"
    r"|spared|unrelated|negative(?! (?:correlation|association)))\b|n't\b|\bun(?:able|affected)\b"
)
_DOUBTS = re.compile(
    r"\bunclear|unknown|uncertain|not (?:yet )?(?:known|clear|established|enough)"
    r"|further (?:research|stud|investigat|trial)"
    r"|more (?:research|studies|data|evidence)|debat|controver|conflicting|limited (?:data|evidence)|inconclusive"
    r"|insufficient|remains? to be|under way|lacking|protocol|hypothes|little is known|not been (?:studied|examined)"
    r"|surveyed|questionnaire|review(?:s|ed)?\b|discuss|attitude|perception|aim(?:s|ed)? (?:to|of)|we describe"
)
_CUES = {name: re.compile(rf"\b(?:{each})") for name, each in
         (("helps", _HELPS), ("harms", _HARMS), ("rises", _RISES), ("falls", _FALLS), ("bad", _BAD))}  # fmt: skip
_DIRECTED = re.compile(rf"\b(?P<way>{_RISES}|{_FALLS})\w*(?:\W+\w+){{0,4}}?\W+(?P<bad>{_BAD})")
_INVERSE = re.compile(r"\b(?:negative(?:ly)?|inverse(?:ly)?) (?:correlat|associat)")
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)?(?![\w.]*\d)")
_ENDING = re.compile(r"(?:ations?|ities|ity|ments?|ness|ings?|ives?|ions?|ies|ied|ed|es|s|ly|al|y|e)$")
_STEM = 4  # letters that an ending leaves at least

# Chosen on HealthVer's development pairs, of steps of 0.02 and 0.1.
COVERED = 0.18  # share of the statement's words in the text: below, nothing is judged
AGAINST = -0.2  # polarity: below, the two speak against one another
_LIKE = 0.5  # share of the statement's words from which differing amounts are those of one thing

# How sure each outcome is. On HealthVer's pairs a difference of polarity is right one time in three, so it never
# reaches the 0.6 from which a caller withholds a sentence; differing amounts do, and equal wording.
ALIKE = 0.9  # share of the statement's words from which it says the same
UNRELATED = Stance(0.1, 0.8, 0.1)
UNSURE = Stance(0.25, 0.5, 0.25)
OTHER_AMOUNT = Stance(0.05, 0.25, 0.7)
OTHER_POLARITY = Stance(0.25, 0.3, 0.45)
SUPPORTED = Stance(0.45, 0.35, 0.2)
SAME_WORDS = Stance(0.8, 0.15, 0.05)


@dataclass(frozen=True, slots=True)
class Signals:
    """What words tell of a pair; all between -1 and 1. ``premise_*`` and ``hypothesis_*`` are of one side alone.

    ``coverage`` is the share of the hypothesis's words that the premise has, ``reverse`` the other way round;
    ``valence`` above 0 says that something helps, below that it harms; ``denies`` and ``doubts`` are 0 or 1.
    ``polarity`` is the product of both sides' valences and denials, ``direction`` that of rising (1) and falling (-1);
    ``amount`` is -1 where amounts differ, 1 where
    they agree; ``medicine`` is -1 where both name medicines and share none.
    """

    coverage: float
    reverse: float
    premise_valence: float
    hypothesis_valence: float
    premise_denies: float
    hypothesis_denies: float
    premise_doubts: float
    hypothesis_doubts: float
    denial_differs: float
    polarity: float
    opposites: float
    direction: float
    amount: float
    number: float
    medicine: float


def signals(premise: str, hypothesis: str) -> Signals:
    """The signals of a pair."""
    one, other = fold(premise), fold(hypothesis)
    words, asked = stems(premise), stems(hypothesis)
    denial, asked_denial = bool(_DENIES.search(one)), bool(_DENIES.search(other))
    valence, asked_valence = _valence(one), _valence(other)
    signed = (_sign(valence, denial), _sign(asked_valence, asked_denial))
    return Signals(
        coverage=_share(asked, words),
        reverse=_share(words, asked),
        premise_valence=valence,
        hypothesis_valence=asked_valence,
        premise_denies=float(denial),
        hypothesis_denies=float(asked_denial),
        premise_doubts=float(bool(_DOUBTS.search(one))),
        hypothesis_doubts=float(bool(_DOUBTS.search(other))),
        denial_differs=float(denial != asked_denial),
        polarity=signed[0] * signed[1],
        opposites=float(_opposite(one, other)),
        direction=_direction(one) * _direction(other),
        amount=_amounts(premise, hypothesis),
        number=_numbers(one, other),
        medicine=-float(not compatible(ingredients(premise), ingredients(hypothesis))),
    )


def coverage(premise: str, hypothesis: str) -> float:
    """The share of the hypothesis's content words that the premise has, from 0 to 1."""
    return _share(stems(hypothesis), stems(premise))


def _share(words: frozenset[str], there: frozenset[str]) -> float:
    return len(words & there) / max(1, len(words))


def stems(text: str) -> frozenset[str]:
    """The content words of ``text`` without their endings."""
    return frozenset(_stem(word) for word in content_words(text))


def _stem(word: str) -> str:
    cut = _ENDING.sub("", word)
    return cut if len(cut) >= _STEM else word


def _valence(text: str) -> float:
    """From -1 (harms) to 1 (helps): cues on either side, "lower risk" being one that helps."""
    helps, harms = len(_CUES["helps"].findall(text)), len(_CUES["harms"].findall(text))
    for match in _DIRECTED.finditer(text):
        if _CUES["falls"].match(match["way"]):
            helps += 1
        else:
            harms += 1
    helps += 2 * len(_INVERSE.findall(text))
    return (helps - harms) / max(1, helps + harms)


def _sign(valence: float, denial: bool) -> float:
    """What is said after a denial: that something does not help is nearer to harm than to help."""
    return -valence if denial else valence


def _direction(text: str) -> float:
    """1 if more words of rising than of falling are in ``text``, -1 if fewer, else 0."""
    difference = len(_CUES["rises"].findall(text)) - len(_CUES["falls"].findall(text))
    return float((difference > 0) - (difference < 0))


def _opposite(premise: str, hypothesis: str) -> bool:
    """Whether one says a word whose opposite, and not itself, the other says."""
    mine, yours = set(re.findall(r"[a-z]+", premise)), set(re.findall(r"[a-z]+", hypothesis))
    return any(
        (one in mine and one not in yours and other in yours and other not in mine)
        or (other in mine and other not in yours and one in yours and one not in mine)
        for one, other in OPPOSITES
    )


def _amounts(premise: str, hypothesis: str) -> float:
    """1 if every amount of the hypothesis is met by one of the premise, -1 if one of a kind that both have is not."""
    read, asked = amounts(premise), amounts(hypothesis)
    comparable = [each for each in asked if any(each.kind == other.kind for other in read)]
    if not comparable:
        return 0.0
    return 1.0 if all(any(_equal(each, other) for other in read) for each in comparable) else -1.0


def _equal(one: Amount, other: Amount) -> bool:
    return one.kind == other.kind and one.agrees(other)


def _numbers(premise: str, hypothesis: str) -> float:
    """The same for bare numbers, by which a premise without any of the hypothesis's says nothing for sure."""
    read, asked = set(_NUMBER.findall(premise)), set(_NUMBER.findall(hypothesis))
    if not asked or not read:
        return 0.0
    return 1.0 if asked <= read else -1.0


class RuleJudge:
    """``Entailment`` by the rules alone; loads nothing."""

    name = "rules 1"
    languages = ("en",)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment``."""
        return [decided(signals(premise, hypothesis)) for premise, hypothesis in pairs]


def decided(read: Signals) -> Stance:
    """The stance that the rules take."""
    if found := sure(read):
        return found
    if read.coverage < COVERED:
        return UNRELATED
    if read.premise_doubts > read.hypothesis_doubts:
        return UNSURE
    return OTHER_POLARITY if _against(read) else SUPPORTED


def sure(read: Signals) -> Stance | None:
    """The stance where a rule needs no second opinion: other medicines or amounts, or the same words; else None."""
    if read.medicine < 0:
        return UNRELATED
    if read.amount < 0:
        return OTHER_AMOUNT if read.coverage >= _LIKE else UNSURE
    same = read.coverage >= ALIKE and read.number >= 0
    return SAME_WORDS if same and not (_against(read) or read.premise_doubts > read.hypothesis_doubts) else None


def _against(read: Signals) -> bool:
    """Whether the two say opposite things, as far as polarity, direction and opposite words tell."""
    turned = read.direction < 0 and not read.premise_denies and not read.hypothesis_denies
    denied = read.denial_differs and read.polarity <= 0
    return bool(turned or denied or read.opposites or read.polarity < AGAINST)
