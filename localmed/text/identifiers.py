"""Finds identifiers of patients: names beside a title or "patient", labelled numbers and dates of birth.

Labels are in ``identifiers.toml``; identity cards, telephones, e-mail addresses and NHS numbers are recognised by their
form. A name without a title or label is missed. Eponyms ("called Kawasaki Disease") are no patients.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache, partial

from localmed.text.tables import table

FORMS = (  # numbers that are nobody else's
    r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{1,63}",
    r"(?<!\d)\d{17}[\dXx](?!\w)",  # identity card
    r"(?<!\d)1[3-9]\d{9}(?!\d)",  # mobile telephone, China
    r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)",
    r"(?<!\d)\(?\d{3}\)?[ -]\d{3}-\d{4}(?!\d)",
    r"(?<![\d.])\d{3} \d{3} \d{4}(?![\d.])",  # NHS number
    r"(?<!\d)0\d{4} ?\d{3} ?\d{3}(?!\d)",  # telephone, United Kingdom
    r"(?<!\w)[A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2}(?!\w)",  # postcode, United Kingdom
    r"(?<!\w)\d{1,4}[A-Za-z]? (?:[A-Z][a-z]+ ){1,3}(?:Road|Street|Lane|Avenue|Drive|Close|Court|Way|Rd|St|Ave)\b",
)
_MONTH = r"[a-z]{3,9}\.?"
_DAY = (  # a whole date: a year or a month alone tells nobody
    r"(?:\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{4}\s?年\s?\d{1,2}\s?月\s?\d{1,2}\s?[日号]"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH}\s\d{{4}}|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?,?\s\d{{4}})"
)
_NAME = r"[A-Z][a-z'’-]+"
MASK = "█"


def unnamed(text: str) -> str:
    """``text`` with a block for each character of its identifiers, so that offsets stay valid."""
    return hiding(identifiers(text))(text)


def hiding(words: Iterable[str], mark: str = "") -> Callable[[str], str]:
    """What puts ``mark``, or as many blocks, in the place of ``words``, where these stand alone, in any text."""
    longest_first = sorted((word for word in words if len(word) > 1), key=len, reverse=True)
    if not longest_first:
        return str
    pattern = re.compile("|".join(map(_whole, longest_first)))
    return partial(pattern.sub, lambda match: mark or MASK * len(match[0]))


def _whole(word: str) -> str:
    """A pattern of ``word`` where it stands alone; Chinese has no blanks between words, nor before a number."""
    edges = ("", "") if word[0] > "\u2e80" else (r"(?<![^\W\u2e80-\uffff])", r"(?![^\W\u2e80-\uffff])")
    return re.escape(word).join(edges)


def identifiers(text: str) -> tuple[str, ...]:
    """The distinct identifiers in ``text``."""
    return tuple(dict.fromkeys(match["word"].strip() for pattern in _patterns() for match in pattern.finditer(text)))


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    words = table("identifiers")
    zh, en = words["zh"], words["en"]
    letter = rf"(?![{zh['no_name']}])[\u4e00-\u9fff]"
    name = rf"(?:{_any(zh['double'])}|[{zh['surnames']}])(?:{letter}){{1,2}}?"
    labels, number = _any([*en["numbers"], *zh["numbers"]]), r"[A-Za-z]{0,4}\d[\dA-Za-z-]{2,24}"
    births = _any([*en["births"], *zh["births"]])
    titles, before = _any(en["titles"]), _any(en["before"])
    person = rf"(?!(?:{_any(en['no_name'])})\b){_NAME}"
    no_title = rf"(?!\s+(?i:{_any(en['no_name'])})\b)"
    sources = (
        *(rf"(?P<word>{form})" for form in FORMS),
        rf"(?i:(?<![a-z])(?:{labels}))\s*(?:is|no\.?|number|为|是|号)?\s*[:：#]?\s*(?P<word>{number})",
        rf"(?i:(?<![a-z])(?:{births})\s*(?:is|was|为|是)?\s*[:：]?\s*(?P<word>{_DAY}))",
        rf"(?i:\b(?:patient(?:'s)?|pt|client)\s+name)\s*[:：]\s*(?P<word>{person}(?:,?[ \t]+{person}){{0,3}})",
        rf"(?m:(?i:^\s*name|\b(?:patient|pt))\s*[:：]\s*(?P<word>{person}(?:,?[ \t]+{person}){{1,3}}))",
        rf"\bPatient\s+(?P<word>{person}(?:\s+{person}){{1,2}})(?=\s*[,(]?\s*(?:\d|[MF]\b|male\b|female\b|aged\b))",
        rf"姓名\s*[:：]\s*(?P<word>(?:{_any(zh['double'])}|[{zh['surnames']}]){letter}{{1,2}}?)(?=[\s，,。；;、（(/]|性别|年龄|$)",
        rf"\b(?:{titles})\b\.?\s+(?P<word>(?:[A-Z]\.?\s?){{0,3}}{_NAME}(?:\s+{_NAME})?)",
        rf"\b(?:{before})\b[,:]?\s+(?P<word>{person}(?:\s+{person}){{1,2}}+){no_title}",
        rf"(?:{_any(zh['before'])})[:：]?\s*(?P<word>{name})(?=[，,、（(\s]*[男女])",
        rf"(?P<word>{name})(?={_any(zh['after'])})",
        rf"(?P<word>[{zh['surnames']}]某某?)(?=[，,。；;、\s]|[男女]|$)",
    )
    return tuple(map(re.compile, sources))


def _any(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
