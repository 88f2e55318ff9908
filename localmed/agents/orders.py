"""The roles of a medical order (LINS, medical order explanation): terms, their explanation, questions that stand alone.

Inputs, outputs and how a chat model is asked. A model's term must stand in the order exactly as it writes it; a plain
line must hold every number, dose and negation of the order's line; a question must not hold what identifies a patient.
What does not is rejected. Plain words are a model's alone: there are no rules that restate an order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from localmed.agents import evidence as shown
from localmed.agents.asking import AnswerInput, QuestionInput, cited_writing, to_correct
from localmed.agents.roles import Role, Writing
from localmed.clinical.medicines import names as medicines
from localmed.errors import Rejected
from localmed.language import detect
from localmed.verification import faithfulness

TERMS = 60  # of an order at most: what a page of orders holds
LINES = 80  # of an order that are restated, the same page
# The part of an address before its @ has 64 characters at most (RFC 5321); without a bound a long word takes minutes.
IDENTIFYING = re.compile(
    r"(?:\b(?i:tel|phone|mobile|mrn|id|email|ssn|dob)\b[.:：#]?\s*|(?:电话|手机|住院号|病历号|身份证号?)[:：]?\s*)?"
    r"(?:\d{5,}[\dXx]?|[^\s@]{1,64}@\S+|\d{3,4}-\d{3,4}(?:-\d+)?|\b\d{1,4}[/-]\d{1,2}[/-]\d{1,4}\b)"
)


@dataclass(frozen=True, slots=True)
class OrderTerm:
    """A term exactly as written, ``start:end`` in the order; ``kind``: medicine, condition, else term."""

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
        """The order's."""
        return detect(self.order)


@dataclass(frozen=True, slots=True)
class PlainInput:
    """The lines of an order. The result of ``PLAIN_ORDER`` has one text a line, "" where it did not keep all of it."""

    lines: tuple[str, ...]

    @property
    def language(self) -> str:
        """The order's."""
        return detect("\n".join(self.lines))


@dataclass(frozen=True, slots=True)
class TermInput(AnswerInput):
    """A term to explain from ``evidence``, for a patient. ``names`` are what else the term is called, ``patient`` what
    is known of the patient, without what identifies.

    ``question`` asks for it in words, so that a search can too. The result is a ``Draft``.
    """

    term: str = ""
    names: tuple[str, ...] = ()
    patient: str = ""


@dataclass(frozen=True, slots=True)
class RetrievalInput(QuestionInput):
    """A follow-up question about an order. ``patient`` is what is known of the patient, ``terms`` those of both texts.

    The result is a question that stands alone and holds nothing that identifies the patient.
    """

    patient: str = ""
    order: str = ""
    terms: tuple[OrderTerm, ...] = ()


def _terms(task: OrderInput, value: Any) -> tuple[OrderTerm, ...]:
    terms: list[OrderTerm] = []
    place = 0
    for text in value["terms"]:
        start = task.order.find(text, place)
        if start < 0:
            raise Rejected("agents.unknown_term")
        place = start + len(text)
        terms.append(OrderTerm(text, start, place))
    return tuple(terms[:TERMS])


def _plain(task: PlainInput, value: Any) -> tuple[str, ...]:
    plain = [" ".join(str(line).split()) for line in value["lines"]]
    if len(plain) != len(task.lines):
        raise Rejected("agents.lines_left_out")
    return tuple(_survivor(line, text, task.language) for line, text in zip(task.lines, plain, strict=True))


def _survivor(line: str, plain: str, expected: str) -> str:
    """``told`` if every fact and medicine of ``line`` is in it, and none of its own, in ``wanted``; else ""."""
    if not plain or detect(plain) != expected or medicines(line) != medicines(plain):
        return ""
    return "" if faithfulness.lost(line, plain) or faithfulness.added(line, plain) else plain


def _alone(task: RetrievalInput, value: Any) -> str:
    question = shown.in_language(" ".join(str(value["question"]).split()), task.language)
    if IDENTIFYING.search(question) or any(name in question for name in names_in(f"{task.patient}\n{task.order}")):
        raise Rejected("agents.identifying_question")
    return question


_NAMED = (
    re.compile(r"\b(?i:name|patient|mr|mrs|ms|miss|dr)\b\.?\s*[:：]?\s*([A-Z][\w'’-]+(?: +[A-Z][\w'’-]*\.?){0,3})"),
    re.compile(r"(?:姓名|患者)\s*[:：]\s*([\u4e00-\u9fff·]{2,6}?)(?=[\s，,。；;、]|$)"),
    re.compile(r"(?<![\u4e00-\u9fff])([\u4e00-\u9fff]{1,3})(?=先生|女士|小姐)"),
)


def names_in(patient: str) -> tuple[str, ...]:
    """The names that a patient's information gives as such, whole and in parts, longest first."""
    names = [match[1] for pattern in _NAMED for match in pattern.finditer(patient)]
    names += [part for name in names for part in name.split() if len(part) > 2]
    return tuple(sorted(set(names), key=lambda name: (-len(name), name)))


def without_identity(text: str, patient: str = "") -> str:
    """``text`` without the names that it or ``patient`` gives, and without numbers and dates that identify."""
    for name in dict.fromkeys((*names_in(patient), *names_in(text))):
        text = text.replace(name, "…")
    return IDENTIFYING.sub("…", text)


def _parts_of(task: RetrievalInput) -> Iterator[str]:
    if task.patient:
        yield shown.between_marks("patient", without_identity(task.patient))
    yield shown.between_marks("terms of the order", ", ".join(dict.fromkeys(term.text for term in task.terms)))
    yield task.question


def _plain_prompt(task: PlainInput) -> str:
    return "\n".join(shown.between_marks(f"line {number}", line) for number, line in enumerate(task.lines, 1))


def _plain_schema(task: PlainInput) -> Any:
    count = len(task.lines)
    item = {"type": "string", "maxLength": 800}
    return shown.object_of({"lines": {"type": "array", "items": item, "minItems": count, "maxItems": count}})


def _term_prompt(task: TermInput) -> str:
    patient = (shown.between_marks("patient", task.patient),) if task.patient else ()
    return "\n".join((task.term, *patient, *to_correct(task)))


MEDICAL_TERMS = Role(
    "medical_terms",
    "The terms of an order that a patient may not know, exactly as written",
    "1",
    "LINS, medical term extraction agent (MTEA)",
    Writing(
        {
            "en": "Name the medical terms of this order that a patient may not understand: medicines, illnesses, "
            "tests, "
            "treatments and abbreviations. Copy each exactly as it is written, in the order in which they stand. "
            f"Name a term each time it stands there. {shown.QUOTED['en']}",
            "zh": "请列出这份医嘱中患者可能看不懂的医学词语：药物、疾病、检查、治疗和缩写。照原文逐字抄写，"
            "按出现的先后排列。"
            f"{shown.QUOTED['zh']}",
        },
        lambda _: shown.texts_schema("terms", TERMS, 80),
        lambda task: shown.between_marks("order", task.order),
        _terms,
        max_tokens=800,
    ),
)
PLAIN_ORDER = Role(
    "plain_order",
    "Each line of an order in plain words, with every number, dose and negation",
    "1",
    "LINS, medical order explanation",
    Writing(
        {
            "en": "Say each line of this order in plain words that a patient understands, one text for each line. "
            "Begin "
            "with: The order says. Keep every number, unit, medicine, negation, stop and hold exactly. Add no advice. "
            f"{shown.QUOTED['en']}",
            "zh": "请把这份医嘱的每一行用患者能懂的话说一遍，一行对应一条，以“医嘱写的是”开头。数字、单位、药名、"
            f"否定、停用、暂停必须原样保留，不得加入建议。{shown.QUOTED['zh']}",
        },
        _plain_schema,
        _plain_prompt,
        _plain,
        max_tokens=1500,
    ),
)
TERM_EXPLANATION = Role(
    "term_explanation",
    "What a term of an order means, in plain words, with citations",
    "1",
    "LINS, medical order explanation: term explanation",
    cited_writing(
        {
            "en": "Explain the medical term to a patient in at most three short, plain sentences, from the sources "
            "only. Give each sentence the markers of the sources that say it. Keep numbers and negations exactly. If "
            f"the sources do not explain the term, give an empty list. {shown.QUOTED['en']}",
            "zh": "请仅依据所给来源，用最多三句浅显的短句向患者解释该医学词语，并为每句标明出处编号；"
            "数字和否定必须与来源一致。"
            f"来源没有解释时给出空列表。{shown.QUOTED['zh']}",
        },
        _term_prompt,
        max_tokens=400,
    ),
)
RETRIEVAL_QUESTION = Role(
    "retrieval_question",
    "A patient's follow-up question made to stand alone, without what identifies the patient",
    "1",
    "LINS, retrieval question agent (QEA)",
    Writing(
        {
            "en": "Rewrite the patient's question about the order so that it can be searched for by itself: name the "
            "illness, medicine or test that is meant. Leave out names, dates, numbers and whatever identifies the "
            f"patient. Do not answer. {shown.QUOTED['en']}",
            "zh": "请改写患者关于医嘱的问题，使它单独也能用于检索：写出所指的疾病、药物或检查。"
            "不得包含姓名、日期、号码等"
            f"可识别患者的内容。不要回答。{shown.QUOTED['zh']}",
        },
        lambda _: shown.object_of({"question": {"type": "string", "minLength": 1, "maxLength": 500}}),
        lambda task: "\n".join(_parts_of(task)),
        _alone,
        max_tokens=200,
    ),
)
ROLES = (MEDICAL_TERMS, PLAIN_ORDER, TERM_EXPLANATION, RETRIEVAL_QUESTION)
