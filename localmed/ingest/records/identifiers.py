"""Strikes what names a patient out of prose: what stands behind a label, and numbers that are nobody else's.

A name that no label announces cannot be told from other words by rule, and stays; the text never leaves the machine
and is not stored.
"""

from __future__ import annotations

import re

from localmed.errors import InputError

STRUCK = "[…]"  # one character, so that no sentence ends in it

_LABELS = (
    r"(?:patient|full|first|last|family|given|maiden|mother|father|guardian)(?:'s)? name|(?<![a-z] )name|mrn"
    r"|(?:medical record|hospital|nhs|insurance|passport) (?:number|no\.?)|ssn"
    r"|date of birth|dob|d\.o\.b\.?|address|phone|telephone|mobile|e-?mail|next of kin"
)
_CHINESE_LABELS = (
    "患者姓名|姓名|住院号|门诊号|病历号|病案号|登记号|就诊卡号|身份证号码?|身份证|证件号码?|医保卡?号|联系电话|电话|手机号?码?|出生日期|出生年月"
    "|家庭住址|现住址|住址|地址|联系人|监护人|工作单位|籍贯"
)
# What stands behind a label goes on to the end of the line, the next comma or the next label in the line.
_LABELLED = re.compile(
    rf"(?P<label>\b(?:{_LABELS})\s*[:：#]|(?:{_CHINESE_LABELS})\s*[:：])[ \t]*"
    r"(?P<value>(?:(?![.。]\s+(?:age|sex|gender|dob|mrn|problems|allerg\w+|medic\w+)\b)[^\n;；，,|])+)",
    re.IGNORECASE,
)
_TITLED = re.compile(r"\b(Mr|Mrs|Ms|Miss|Dr|Prof)\.?\s+[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)?")
_NUMBERS = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}\.[\w.]{1,63}|(?<!\d)\d{3}-\d{2}-\d{4}(?!\d)|(?<!\d)1[3-9]\d{9}(?!\d)"
    r"|(?<!\d)\d{17}[\dXx](?!\w)"
    r"|(?<!\d)\(?\d{3}\)?[ -]\d{3}-\d{4}(?!\d)"
)
_NAMES = re.compile(r"(?:patient(?:'s)? |full )?name|mrn|患者姓名|姓名|住院号|病历号", re.IGNORECASE)


def struck(text: str) -> str:
    """``text`` with every identifier that can be told struck out."""
    text = _LABELLED.sub(lambda match: f"{match['label']} {STRUCK}", text)
    return _NUMBERS.sub(STRUCK, _TITLED.sub(lambda match: f"{match[1]} {STRUCK}", text))


def one_patient(text: str) -> None:
    """Raise ``InputError`` where the same label ("Name:", "MRN:") stands before two different values."""
    seen: dict[str, str] = {}
    for match in _LABELLED.finditer(text):
        label = match["label"].rstrip(":：# ").lower()
        value = " ".join(match["value"].split()).casefold()
        if _NAMES.fullmatch(label) and seen.setdefault(label, value) != value:
            raise InputError("record.two_patients")
