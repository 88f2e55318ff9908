"""What names a patient in what somebody types: names beside a title or the word "patient", numbers beside their label.

The words are in ``identifiers.toml``; numbers that are nobody else's (identity cards, telephones, e-mail addresses, NHS
numbers) are told by their form. A name that nothing announces cannot be told from other words by rule, and is missed.
"""

from __future__ import annotations

import re
from functools import cache

from localmed.clinical.tables import table

_FORMS = (
    r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{1,63}",
    r"(?<!\d)\d{17}[\dXx](?!\w)",  # identity card
    r"(?<!\d)1[3-9]\d{9}(?!\d)",  # mobile telephone, China
    r"(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)",
    r"(?<!\d)\(?\d{3}\)?[ -]\d{3}-\d{4}(?!\d)",
    r"(?<![\d.])\d{3} \d{3} \d{4}(?![\d.])",  # NHS number
)
_NAME = r"[A-Z][a-z'’-]+"


def identifiers(text: str) -> tuple[str, ...]:
    """The names and numbers in ``text`` that tell who a patient is, once each."""
    return tuple(dict.fromkeys(match["word"].strip() for pattern in _patterns() for match in pattern.finditer(text)))


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    words = table("identifiers")
    zh, en = words["zh"], words["en"]
    letter = rf"(?![{zh['no_name']}])[\u4e00-\u9fff]"
    name = rf"(?:{_any(zh['double'])}|[{zh['surnames']}])(?:{letter}){{1,2}}?"
    labels, number = _any([*en["numbers"], *zh["numbers"]]), r"[A-Za-z]{0,4}\d[\dA-Za-z-]{2,24}"
    titles, before = _any(en["titles"]), _any(en["before"])
    sources = (
        *(rf"(?P<word>{form})" for form in _FORMS),
        rf"(?i:(?<![a-z])(?:{labels}))\s*(?:is|no\.?|number|为|是|号)?\s*[:：#]?\s*(?P<word>{number})",
        rf"\b(?:{titles})\b\.?\s+(?P<word>{_NAME}(?:\s+{_NAME})?)",
        rf"\b(?:{before})\b[,:]?\s+(?P<word>{_NAME}(?:\s+{_NAME}){{1,2}})",
        rf"(?:{_any(zh['before'])})[:：]?\s*(?P<word>{name})(?=[，,、（(\s]*[男女])",
        rf"(?P<word>{name})(?={_any(zh['after'])})",
        rf"(?P<word>[{zh['surnames']}]某某?)(?=[，,。；;、\s]|[男女]|$)",
    )
    return tuple(map(re.compile, sources))


def _any(words: list[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
