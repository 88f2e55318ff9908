"""Faults planted into statements that are right, each of one kind, the same at every run. English and Chinese.

``number``: a number becomes another one, of the same passage where it has one that fits. ``unit``: a unit becomes
another one of its kind or a thousandfold one. ``drug``: a medicine becomes another one, of the same passage where it
names one. ``negation``: an order or finding is turned round. ``citation``: the passage that shares most words with the
statement, the right one apart. ``nowhere``: a plausible sentence that the corpus does not hold. ``exception``: the
statement without the exception that its source makes.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localmed.domain import Passage
from localmed.text.language import content_words, detect, words
from tests.values import passage

CASES = Path(__file__).parents[1] / "answering" / "cases"
KINDS = ("number", "unit", "drug", "negation", "citation", "nowhere", "exception")
_NUMBER = re.compile(r"(?<![A-Za-z0-9.-])\d+(?:\.\d+)?(?![A-Za-z0-9]|\.\d)")
_UNITS = {
    "en": (
        ("micrograms", "milligrams"), ("mmol/L", "mg/dL"), ("mg", "g"), ("mL/kg", "L/kg"), ("mL", "L"), ("g", "mg"),
        ("mmHg", "kPa"), ("units", "mg"), ("seconds", "minutes"), ("minutes", "hours"), ("hours", "days"),
        ("hour", "day"), ("days", "weeks"), ("day", "hour"), ("weeks", "months"), ("week", "month"),
        ("months", "weeks"), ("years", "months"), ("%", "mmol/L"),
    ),
    "zh": (
        ("毫克", "克"), ("克", "毫克"), ("mmHg", "kPa"), ("秒", "分钟"), ("分钟", "小时"), ("小时", "天"), ("天", "周"),
        ("周", "个月"), ("个月", "周"), ("岁", "个月"), ("℃", "℉"), ("摄氏度", "华氏度"), ("微克", "毫克"),
        ("μmol/L", "mmol/L"), ("mg/L", "g/L"), ("%", "mmol/L"),
    ),
}  # fmt: skip
DRUGS = {
    "en": (
        "amlodipine", "amoxicillin", "apixaban", "aspirin", "atorvastatin", "bisoprolol", "clarithromycin",
        "co-amoxiclav", "doxycycline", "enoxaparin", "furosemide", "gliclazide", "ibuprofen", "losartan", "metformin",
        "nitrofurantoin", "paracetamol", "prednisolone", "ramipril", "salbutamol", "sertraline", "spironolactone",
        "warfarin", "adrenaline", "noradrenaline", "glucagon", "insulin", "heparin",
    ),
    "zh": ("氨氯地平", "比索洛尔", "阿司匹林", "对乙酰氨基酚", "布洛芬", "二甲双胍", "胰岛素", "华法林", "氯沙坦"),
}  # fmt: skip
_TURNS = {
    "en": (
        (r"\b(should|must|may|can|need) not be\b", r"\1 be"), (r"\b(should|must|may|can) not\b", r"\1"),
        (r"\bdo not\b", "do"), (r"\b[Nn]ever\b", "always"), (r"\b(is|are|was|were) not\b", r"\1"),
        (r"\bis avoided\b", "is preferred"), (r"\bshould be avoided\b", "should be used"),
        (r"\bavoided if\b", "preferred if"), (r"\b(should|must|can|may) (?=\w)", r"\1 not "),
        (r"\b(is|are) (?=\w)", r"\1 not "), (r"\b(\w+s) (?=(?:the|a|an|between|hospital|intravenous|antibiotics)\b)",
         r"never \1 "), (r"^(?:Let|Wait|Hold)", "Do not let"),
    ),
    "zh": (
        (r"不要", "应当"), (r"不能", "可以"), (r"不宜", "可以"), (r"不推荐", "推荐"), (r"应当?(?=[^不])", "不应"),
        (r"要(?=[^不])", "不要"), (r"可以", "不可以"), (r"属于", "不属于"), (r"支持", "不支持"),
        (r"适用于", "不适用于"), (r"可(?=[^以])", "不可"),
        (r"首选", "不选"), (r"是", "不是"), (r"每", "不必每"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A statement that is right, and the passage that it rests on; ``drugs`` are those that are swapped in it."""

    text: str
    passage: Passage
    language: str
    drugs: tuple[str, ...]
    dropped: str = ""


@dataclass(frozen=True)
class Fault:
    """A statement with a fault of ``kind``, and the passage that it cites."""

    kind: str
    text: str
    passage: Passage
    pair: Pair


def written(name: str) -> list[Passage]:
    """The passages that ``cases/<name>.toml`` brings itself, about what the corpus does not have."""
    return [
        passage(text, document["title"], language=name[-2:])
        for document in _documents(name)
        for text in document.get("passages", ())
    ]


def pairs(name: str, passages: Sequence[Passage], titles: Sequence[str] = (), tables: bool = True) -> list[Pair]:
    """The pairs of ``cases/<name>.toml`` with their ``passages``; raise ``ValueError`` for a lost anchor.

    ``titles`` limits the documents; without ``tables`` a pair whose passage is not there is left out.
    """
    planted = []
    for document in _documents(name):
        if titles and document["title"] not in titles:
            continue
        own = [passage_ for passage_ in passages if passage_.title == document["title"]]
        for anchor, text, *dropped in document["pairs"]:
            there = [passage_ for passage_ in own if _bare(anchor) in _bare(passage_.text)]
            if not there and not tables:
                continue
            (rests_on,) = there
            drugs = tuple(document.get("drugs", DRUGS[name[-2:]]))
            planted.append(Pair(text, rests_on, name[-2:], drugs, *dropped))
    return planted


def _documents(name: str) -> list[dict[str, Any]]:
    documents: list[dict[str, Any]] = tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["document"]
    return documents


def faults(right: Sequence[Pair], passages: Sequence[Passage]) -> Iterator[Fault]:
    """Every fault that can be planted into each of ``right``."""
    nowhere = tomllib.loads((CASES / "nowhere.toml").read_text("utf-8"))
    for number, pair in enumerate(right):
        draw = random.Random(number)
        for kind, plant in _PLANTS.items():
            if (text := plant(pair, draw)) and text != pair.text:
                yield Fault(kind, text, pair.passage, pair)
        yield Fault("citation", pair.text, nearest(pair, passages), pair)
        invented = nowhere[pair.language]
        yield Fault("nowhere", invented[number % len(invented)], pair.passage, pair)
        if pair.dropped:
            yield Fault("exception", pair.dropped, pair.passage, pair)


def nearest(pair: Pair, passages: Sequence[Passage]) -> Passage:
    """The passage in the statement's language that shares most words with it, those that repeat the right one apart.

    One in the other language may say the same, and no rule would know.
    """
    words = _content_words(pair.text)
    others = [
        candidate
        for candidate in passages
        if candidate.id != pair.passage.id
        and candidate.language == pair.passage.language
        and _bare(candidate.text) != _bare(pair.passage.text)
        and candidate.title not in _ALSO.get(pair.passage.title, ())
        and not _repeats(pair.passage, candidate)
    ]
    return max(others, key=lambda candidate: (len(words & _content_words(candidate.in_context)), candidate.id))


# Documents that say the same in other words: citing them would be no fault.
_ALSO: dict[str, tuple[str, ...]] = {
    "Hypertension in adults: diagnosis and treatment": (
        "Hypertension in adults: diagnosis and treatment (2019)", "Type 2 diabetes in adults: diagnosis and treatment",
    ),
    "Hypoglycaemia in adult inpatients: ward protocol": ("Type 2 diabetes in adults: diagnosis and treatment",),
    "Type 2 diabetes in adults: diagnosis and treatment": (
        "Short formulary for adults", "Taking metformin: information for patients", "Laboratory guide: HbA1c",
        "Hypoglycaemia in adult inpatients: ward protocol", "Hypertension in adults: diagnosis and treatment",
    ),
    "Community-acquired pneumonia in adults": ("Short formulary for adults",),
    "How to use your inhaler": ("Short formulary for adults",),
    "Laboratory guide: HbA1c": ("Type 2 diabetes in adults: diagnosis and treatment",),
    "Short formulary for adults": (
        "Type 2 diabetes in adults: diagnosis and treatment", "Community-acquired pneumonia in adults",
        "Taking warfarin: information for patients",
    ),
}  # fmt: skip


def _repeats(one: Passage, other: Passage) -> bool:
    """Whether two passages of a document say the same by their nature: a table and the text, or a list of changes."""
    same = one.title == other.title
    return same and (one.table != other.table or "What changed in this edition" in (one.headings + other.headings))


def _number(pair: Pair, draw: random.Random) -> str:
    there = list(_NUMBER.finditer(pair.text))
    if not there:
        return ""
    match = draw.choice(there)
    own = {pair_[0] for pair_ in there}
    near = sorted({number for number in _NUMBER.findall(pair.passage.text) if number not in own})
    other: str
    if near and draw.random() < 0.5:
        other = draw.choice(near)
    else:
        values = [f"{float(match[0]) * factor:g}" for factor in (0.5, 2.0, 1.5, 10.0)]
        other = draw.choice([value for value in values if value not in own])
    return pair.text[: match.start()] + other + pair.text[match.end() :]


def _unit(pair: Pair, _: random.Random) -> str:
    for unit, other in _UNITS[pair.language]:
        edge = r"(?![a-z])" if unit.isascii() else ""
        pattern = re.compile(rf"(\d\s?)(?<![a-z]){re.escape(unit)}{edge}")
        if pattern.search(pair.text):
            return pattern.sub(rf"\g<1>{other}", pair.text, count=1)
    return ""


def _drug(pair: Pair, draw: random.Random) -> str:
    def named(text: str) -> list[str]:
        return [drug for drug in pair.drugs if re.search(rf"(?<![a-z-]){drug}", text.lower())]

    there = named(pair.text)
    if not there:
        return ""
    drug = draw.choice(there)
    near = [name for name in named(pair.passage.text) if name not in there]
    others = [name for name in pair.drugs if name not in there and name not in drug and drug not in name]
    other = draw.choice(near) if near and draw.random() < 0.5 else draw.choice(others)
    return re.sub(rf"(?<![a-zA-Z-]){drug}", other, pair.text, count=1, flags=re.IGNORECASE)


def _negation(pair: Pair, _: random.Random) -> str:
    for pattern, other in _TURNS[pair.language]:
        if re.search(pattern, pair.text):
            return re.sub(pattern, other, pair.text, count=1)
    return ""


_PLANTS: dict[str, Callable[[Pair, random.Random], str]] = {
    "number": _number, "unit": _unit, "drug": _drug, "negation": _negation,
}  # fmt: skip


def _content_words(text: str) -> set[str]:
    return set(content_words(text) if detect(text) == "en" else words(text, for_query=True))


def _bare(text: str) -> str:
    return re.sub(r"\s+", "", text)
