"""The roles of a medical order (LINS, medical order explanation): terms, plain lines, self-contained questions.

Inputs, outputs and prompts. A reply is rejected if a term is not in the order as written, a plain line lacks a number,
dose or negation of the order's line, or a question identifies the patient. No rules restate an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from localmed.answering import evidence as shown
from localmed.answering.asking import QuestionInput, a_question
from localmed.answering.roles import Role, Writing
from localmed.domain.errors import Rejected
from localmed.library.terms import folded
from localmed.text import faithfulness
from localmed.text.abbreviations import PERIOD, abbreviations
from localmed.text.language import detect
from localmed.text.medicines import names as medicines
from localmed.text.tables import listed, table

TERMS = 60  # of an order at most: one page of orders
_LETTER = re.compile(r"[^\W\d_]")
_PERIODS = {"7": "days", "52": "weeks", "12": "months"}
LINES = 80  # of an order that are restated: the same page
# The part of an address before its @ has 64 characters at most (RFC 5321); without a bound a long word takes minutes.
IDENTIFYING = re.compile(
    r"(?:\b(?i:tel|phone|mobile|mrn|id|email|ssn|dob)\b[.:：#]?\s*|(?:电话|手机|住院号|病历号|身份证号?)[:：]?\s*)?"
    r"(?:\d{5,}[\dXx]?|[^\s@]{1,64}@\S+|\d{3,4}-\d{3,4}(?:-\d+)?|\b\d{1,4}[/-]\d{1,2}[/-]\d{1,4}\b"
    r"|\[…\])"  # what was struck before
)


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """A term exactly as written, ``start:end`` in the order; ``kind``: medicine, else term."""

    text: str
    start: int
    end: int
    kind: str = "term"


@dataclass(frozen=True, slots=True)
class OrderInput:
    """A medical order. The result of ``MEDICAL_TERMS`` is a tuple of ``OrderTerm``, in the order's order."""

    order: str

    @property
    def language(self) -> str:
        """The order's language."""
        return detect(self.order)


@dataclass(frozen=True, slots=True)
class PlainInput:
    """The lines of an order. The result of ``PLAIN_ORDER`` has one text a line, "" if it does not keep everything."""

    lines: tuple[str, ...]

    @property
    def language(self) -> str:
        """The order's language."""
        return detect("\n".join(self.lines))


@dataclass(frozen=True, slots=True)
class RetrievalInput(QuestionInput):
    """A follow-up question about an order, with the record (``patient``) and the terms.

    The result is a self-contained question that does not identify the patient.
    """

    patient: str = ""
    order: str = ""
    terms: tuple[OrderTerm, ...] = ()


def names_nothing(text: str) -> bool:
    """Whether ``text`` has no letters or only ordinary words, such as "from midnight"."""
    words = folded(text).split()
    return not _LETTER.search(text) or set(words) <= set(listed(table("orders")["no_names"]["en"]))


def _terms(task: OrderInput, value: Any) -> tuple[OrderTerm, ...]:
    """The terms with their places: a small model does not keep the order of copies."""
    terms: list[OrderTerm] = []
    place = 0
    for text in value["terms"]:
        start = task.order.find(text, place)
        start = task.order.find(text) if start < 0 else start
        if start < 0:
            raise Rejected("agents.unknown_term")
        place = start + len(text)
        if not text[:1].isdigit() and not names_nothing(text):  # an amount is no term
            terms.append(OrderTerm(text, start, place))
    apart: list[OrderTerm] = []
    for term in sorted(terms, key=lambda term: (term.start, -term.end)):
        if not apart or term.start >= apart[-1].end:
            apart.append(term)
    return tuple(apart[:TERMS])


def _plain(task: PlainInput, value: Any) -> tuple[str, ...]:
    plain = [" ".join(str(line).split()) for line in value["lines"]]
    if len(plain) != len(task.lines):
        raise Rejected("agents.lines_left_out")
    return tuple(_faithful(line, text, task.language) for line, text in zip(task.lines, plain, strict=True))


def _faithful(line: str, plain: str, expected: str) -> str:
    """``plain`` if it has exactly the facts and medicines of ``line`` in the language ``expected``, else "".

    The meaning of an abbreviation is no added fact, and its digits ("O2") are no number.
    """
    if not plain or detect(plain) != expected or medicines(line) != medicines(plain):
        return ""
    written = PERIOD.sub(lambda match: f"{match[1]} {_PERIODS[match[2]]}", line)
    spelled = abbreviations(written, expected)
    bare = written
    for entry in reversed(spelled):
        if any(character.isdigit() for character in entry.written) and entry.written[0].lower() != "q":
            bare = bare[: entry.start] + " " * (entry.end - entry.start) + bare[entry.end :]
    meanings = "; ".join(wording for entry in spelled for wording in entry.meanings)
    lost, added = faithfulness.lost(bare, plain), faithfulness.added(f"{written}; {meanings}", plain)
    return "" if lost or added else plain


def _alone(task: RetrievalInput, value: Any) -> str:
    question = a_question(str(value["question"]), f"{task.patient}\n{task.order}\n{task.question}", task.language)
    if IDENTIFYING.search(question) or any(name in question for name in names_in(f"{task.patient}\n{task.order}")):
        raise Rejected("agents.identifying_question")
    return question


_NAMED = (
    re.compile(r"\b(?i:name|patient|mr|mrs|ms|miss|dr)\b\.?\s*[:：]?\s*([A-Z][\w'’-]+(?: +[A-Z][\w'’-]*\.?){0,3})"),
    re.compile(r"(?:姓名|患者)\s*[:：]\s*([\u4e00-\u9fff·]{2,6}?)(?=[\s，,。；;、]|$)"),
    re.compile(r"(?<![\u4e00-\u9fff])([\u4e00-\u9fff]{1,3})(?=先生|女士|小姐)"),
)


def names_in(patient: str) -> tuple[str, ...]:
    """The names in a patient's information, whole and in parts, longest first."""
    names = [match[1] for pattern in _NAMED for match in pattern.finditer(patient)]
    names += [part for name in names for part in name.split() if len(part) > 2]
    return tuple(sorted(set(names), key=lambda name: (-len(name), name)))


def without_identity(text: str, patient: str = "") -> str:
    """``text`` without names in it or in ``patient`` and without identifying numbers and dates."""
    for name in dict.fromkeys((*names_in(patient), *names_in(text))):
        text = text.replace(name, "…")
    return IDENTIFYING.sub("…", text)


def _parts_of(task: RetrievalInput) -> Iterator[str]:
    if task.patient:
        yield shown.quoted("patient", without_identity(task.patient), task.language)
    terms = ", ".join(dict.fromkeys(term.text for term in task.terms))
    yield shown.quoted("terms", terms, task.language)
    yield task.question


def _plain_prompt(task: PlainInput) -> str:
    numbered = enumerate(task.lines, 1)
    return "\n".join(shown.quoted("line", line, task.language, number=str(number)) for number, line in numbered)


def _plain_schema(task: PlainInput) -> Any:
    count = len(task.lines)
    item = {"type": "string", "maxLength": 800}
    return shown.object_of({"lines": {"type": "array", "items": item, "minItems": count, "maxItems": count}})


# LINS, medical term extraction agent (MTEA).
MEDICAL_TERMS = Role(
    "medical_terms",
    "2",
    Writing(
        lambda _: shown.texts_schema("terms", TERMS, 80),
        lambda task: shown.quoted("order", task.order, task.language),
        _terms,
        max_tokens=800,
    ),
)
# LINS, medical order explanation.
PLAIN_ORDER = Role(
    "plain_order",
    "2",
    Writing(_plain_schema, _plain_prompt, _plain, max_tokens=1500),
)
# LINS, retrieval question agent (QEA).
RETRIEVAL_QUESTION = Role(
    "retrieval_question",
    "2",
    Writing(
        lambda _: shown.object_of({"question": {"type": "string", "minLength": 1, "maxLength": 500}}),
        lambda task: "\n".join(_parts_of(task)),
        _alone,
        max_tokens=200,
    ),
)
ROLES = (MEDICAL_TERMS, PLAIN_ORDER, RETRIEVAL_QUESTION)
