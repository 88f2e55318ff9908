"""Red flags in a complaint: signs for which the Emergency Department comes first. By rule, in English and Chinese.

A sign counts if somebody has it now: not what is denied ("no chest pain", "无胸痛"), nor what was in the past ("last
year", "去年"), unless the same clause says that it is back. Some signs are a red flag by themselves, others only
together. Nothing here is a diagnosis: a flag is named by the signs that were read, in the user's words' place.

Rules see wording, not people. What they miss looks like an ordinary complaint, so every answer says when to go to the
Emergency Department all the same. Other languages are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from localmed.agents.red_flag_signs import FLAGS, SIGNS

_CLAUSES = re.compile(
    r"[^.!?;。！？；\n]+?(?=[.!?;。！？；\n]|$|,? but\b|,? however\b|,? although\b"
    r"|, (?:and |then )?(?:i|he|she|it|they|we|my|his|her|now|suddenly|with|has|have|having)\b|但|却|不过)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:no|without|den(?:y|ies|ied|ying)|never had|nor|neither"
    r"|(?:do|does|did|have|has|had|is|am|are|was)(?:n'?t| not|n’t)(?: (?:had|have|has|having|feel|feeling|any"
    r"|really)\b)*)\s"
    r"(?P<between>[\w' ,/-]{0,70})$",
    re.IGNORECASE,
)
_NO_DENIAL = re.compile(
    r"\b(relief|improv\w*|better|idea|longer|way|doubt|matter|wonder|sooner|know|understand|sure|stop\w*"
    r"|help\w*|go(es)? away"
    r"|eas\w+|sleep\w*|because|why|when|if)\b",
    re.IGNORECASE,
)
_DENIED_CHINESE = re.compile(
    r"(?:无|没有|没|否认|未见|未出现|不伴|并无|未诉|不是"
    r"|不)(?P<between>[^，。；！？]{0,12})$"
)
_NO_DENIAL_CHINESE = re.compile(
    r"诱因|原因|出现|突然|缓解|好转|改善|减轻|想到|想|办法|多久|多长|完|停|知道|得了|止|敢|能|舒服|适"
)
_PAST = re.compile(
    r"\b(last (year|month|summer|winter|spring|autumn)|(years?|months?) (ago|back)|in (19|20)\d\d|as a (child"
    r"|kid)|used to"
    r"|history of|previous(ly)?|in the past|once had)\b|去年|前年|以前|曾经?|[\d一二两三四五六七八九十几]+年前"
    r"|几个?月前|小时候|既往|病史",
    re.IGNORECASE,
)
_BACK = re.compile(
    r"\b(again|now|today|tonight|since|still|right now|this morning)\b|又|再次|现在|今天|刚才|刚刚|这会儿|复发|一直",
    re.IGNORECASE,
)
_EXERTION = re.compile(
    r"\b(stairs|uphill|hill|climb\w*|exercis\w*|running|walk\w*|snor\w*|lying flat)\b|上楼|爬|运动|走路|平躺"
    r"|打呼|打鼾",
    re.IGNORECASE,
)
_REACH = 6  # words between a denial and what it denies


@dataclass(frozen=True, slots=True)
class RedFlag:
    """A red flag by its name in ``FLAGS``, and where in the text its first sign stands."""

    name: str
    start: int
    end: int


def red_flags(text: str) -> tuple[RedFlag, ...]:
    """The red flags of ``text``, in the order of ``FLAGS``; none for a text in another language."""
    present = _present(text)
    found = []
    for name, alternatives in FLAGS.items():
        for signs in alternatives:
            if all(sign in present for sign in signs):
                start, end = present[signs[0]]
                found.append(RedFlag(name, start, end))
                break
    return tuple(found)


def _present(text: str) -> Mapping[str, tuple[int, int]]:
    """The signs that somebody has now, each with the place where it is said first."""
    found: dict[str, tuple[int, int]] = {}
    for start, clause in _clauses(text):
        if _PAST.search(clause) and not _BACK.search(clause):
            continue
        for name, sign in SIGNS.items():
            for match in sign.pattern.finditer(clause):
                if _denied(clause[: match.start()]) or (sign.at_rest and _EXERTION.search(clause)):
                    continue
                if sign.unless and sign.unless.search(clause):
                    continue
                found.setdefault(name, (start + match.start(), start + match.end()))
                break
    return found


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    for match in _CLAUSES.finditer(text.replace("’", "'")):
        yield match.start(), match[0]


def _denied(before: str) -> bool:
    """Whether what follows ``before`` in its clause is denied: by a denial near it, or one that a list carries on."""
    if chinese := _DENIED_CHINESE.search(before):
        return not _NO_DENIAL_CHINESE.search(chinese["between"])
    english = _DENIED.search(before)
    if not english or _NO_DENIAL.search(english[0]):
        return False
    between = english["between"]
    if "," in between:
        return bool(re.search(r"\b(or|nor)\b", between))
    return len(between.split()) <= _REACH
