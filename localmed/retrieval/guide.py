"""The hospital's department guide: recognises the department of a passage and its floor.

Any document of a collection of kind ``local`` may be the guide, with one section or record for each department and its
name as heading or title ("Cardiology", "骨科(门诊二层)"). A passage belongs to the innermost heading that reads like a
department's name (Dual-RAG, Fig. 2). Floors are taken from the section's words or from a table with one row for each
department.

Names are recognised by English and Chinese words for departments. "The Lodge" is not recognised, "The Lodge
(rehabilitation unit)" is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from localmed.domain import Hit, Passage

Grouped = Mapping[str, tuple[Hit, ...]]  # department -> its hits

WORDS = 7  # in a department's name at most; longer headings are sentences
CHARACTERS = 30  # of a Chinese name at most

_ANYWHERE = re.compile(  # words that name a department anywhere in a heading
    r"\b(\w{2,}olog(y|ie|ical)|psychiatry|\w{2,}iatrics|orthop(a?e)dics|maternity|obstetrics|midwifery|dent(istry|al)"
    r"|pharmacy|surgery|reception|phlebotomy|laboratory|physiotherapy|rehabilitation|endoscopy|dialysis|nutrition"
    r"|oncology|a&e|ent)\b",
    re.IGNORECASE,
)
_LAST = re.compile(  # words that name one at the end
    r"\b(departments?|clinic|unit|medicine|centre|center|care|health|ward|emergency|throat|eyes?|tests|x-rays?"
    r"|outpatients)$",
    re.IGNORECASE,
)
_FIRST = re.compile(r"^(department|clinic|division|emergency (department|room)|accident)\b", re.IGNORECASE)
_PROSE = re.compile(
    r"[?!:;.]|\b(where|what|how|when|who|your|our|you|before|after|departments|for|about|is|are|to)\b", re.IGNORECASE
)
_CHINESE = re.compile(
    r"^[\u4e00-\u9fffA-Za-z、与及和·/ ]{1,28}?(科|门诊部?|中心|单元|病区|病房|药房|采血室|登记处|急救部)$"
)
_NOT_ONE = re.compile(r"^(各|全部|所有|其他|本)|科室|哪|什么")
_BRACKETS = re.compile(r"[(（][^()（）]*[)）]")

_FLOOR = re.compile(
    r"\b(?:(?:lower |upper )?ground|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|top"
    r"|\d{1,2}(?:st|nd|rd|th))"
    r"[ -]floor\b|\b(?:floor|level) -?\d{1,2}\b|\bbasement\b"
    r"|(?:地下|负)?[一二三四五六七八九十]{1,3}[楼层]|(?:地下|负|-)?\d{1,2} ?[楼层]"
    r"|(?<![A-Za-z0-9])B?\d{1,2} ?F(?![A-Za-z])",
    re.IGNORECASE,
)
_REACHED = re.compile(  # opening hours and telephone
    r"\b(?:ext(?:ension)?|phone|tel(?:ephone)?|bleep|hours|open|opens|opening|monday|weekdays?|24 ?h)\b"
    r"|\d{1,2}[:.]\d{2}"
    r"|分机|电话|开放|时间|周一|昼夜|全天|24小时",
    re.IGNORECASE,
)
_TELEPHONE = re.compile(r"\b(?:ext(?:ension)?|(?:tele)?phone|tel)\b|分机|电话", re.IGNORECASE)
_EMERGENCY = re.compile(r"\b(emergency|a ?& ?e|casualty)\b|急诊|急救", re.IGNORECASE)
_GENERAL = re.compile(
    r"[\W_\d]|\b(?:and|the|of|accident|department|dept|unit|room|centre|center|clinic|services?|medicine|care)\b"
    r"|医学|部|科|室|中心|门诊",
    re.IGNORECASE,
)
_ROW = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True)
class Floor:
    """A floor as written at ``start:end`` of ``passage`` (0:0: in its heading)."""

    text: str
    passage: Passage
    start: int = 0
    end: int = 0


def department(passage: Passage) -> str:
    """The department of ``passage``, or ""."""
    for heading in reversed((passage.title, *passage.headings)):
        if name := named(heading):
            return name
    return ""


def named(heading: str) -> str:
    """The department that ``heading`` names, without brackets and end marks, or ""."""
    whole = heading.strip().rstrip(":：.。")
    bare = " ".join(_BRACKETS.sub(" ", whole).split())
    if any("\u4e00" <= character <= "\u9fff" for character in bare):
        bare = bare.replace(" ", "")
        known = len(bare) <= CHARACTERS and _CHINESE.match(bare) and not _NOT_ONE.search(bare)
        return bare if known else ""
    if not bare or len(bare.split()) > WORDS or _PROSE.search(bare):
        return ""
    inside = " ".join(_BRACKETS.findall(whole)).strip("()（）")
    known_words = _ANYWHERE.search(bare) or _LAST.search(bare) or _FIRST.search(bare)
    return bare if known_words or (inside and (_ANYWHERE.search(inside) or _LAST.search(inside))) else ""


def by_department(hits: Iterable[Hit]) -> Grouped:
    """The hits of each department, in the order of their first hits."""
    grouped: dict[str, list[Hit]] = {}
    for hit in hits:
        if name := department(hit.passage):
            grouped.setdefault(name, []).append(hit)
    return {name: tuple(group) for name, group in grouped.items()}


def floor(name: str, passages: Sequence[Passage]) -> Floor | None:
    """The floor of the department ``name``: from its own sections, else from its row of a table."""
    own = [passage for passage in passages if department(passage) == name]
    for passage in own:
        if match := _FLOOR.search(passage.text):
            return Floor(match[0], passage, match.start(), match.end())
    for passage in own:
        headings = [heading for heading in (passage.title, *passage.headings) if named(heading) == name]
        if match := _FLOOR.search(" ".join(headings)):
            return Floor(match[0], passage)
    return row(name, passages)


def row(name: str, passages: Sequence[Passage]) -> Floor | None:
    """The row of a table whose first cell is ``name``; rows are "Header: cell; Header: cell" (``ingest``)."""
    for passage in passages:
        for line in _ROW.finditer(passage.text) if passage.table else ():
            first = re.split(r"[;；|]", line[0], maxsplit=1)[0]
            cell = re.split(r"[:：]", first, maxsplit=1)[-1].strip()
            match = _FLOOR.search(line[0]) if named(cell) == name or cell == name else None
            if match:
                return Floor(match[0], passage, line.start(), line.end())
    return None


def telephone(text: str) -> str:
    """The cell of a table's row that gives a telephone number ("Extension: 1000"), as written, or ""."""
    for cell in re.split(r"[;；]", text):
        name, _, value = cell.replace("：", ":").partition(":")
        if _TELEPHONE.search(name) and any(map(str.isdigit, value)):
            return cell.strip()
    return ""


def says_where(sentence: str) -> bool:
    """Whether a sentence names a floor, opening hours or a telephone."""
    return bool(_FLOOR.search(sentence) or _REACHED.search(sentence))


def is_emergency(name: str) -> bool:
    """Whether a department of that name takes emergencies, of all or of some kind ("Emergency Gynaecology")."""
    return bool(_EMERGENCY.search(name))


def is_for_all_emergencies(name: str) -> bool:
    """Whether the name says nothing but that it takes emergencies."""
    return is_emergency(name) and not _GENERAL.sub("", _EMERGENCY.sub("", name))
