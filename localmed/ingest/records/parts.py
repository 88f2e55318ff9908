"""Shared by the readers of records: their text, the newest results, implausible values, removal of identifiers."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from types import MappingProxyType

from localmed.domain import Message, message
from localmed.domain.errors import InputError
from localmed.domain.patient import Measured, PatientRecord
from localmed.ingest.readers.encoding import clean
from localmed.text import measures
from localmed.text.identifiers import hiding, identifiers
from localmed.text.language import aligned, detect, fold

ENTRIES = 200  # of each list; a long record names 50 problems
LONGEST = 1_000  # characters of one entry, which may be the prose of a whole list
HEADINGS = {"problems": "Problems", "medications": "Medicines", "allergies": "Allergies"}

WIDEST = 120  # mmHg between systolic and diastolic; more is rare even with a leaking aortic valve
_QUALIFIER = re.compile(r"\s*\((?:disorder|finding|procedure|situation|substance|morphologic abnormality)\)\s*$")


def of_prose(text: str) -> PatientRecord:
    """The record in ``text`` without identifiers, with notes on values that cannot be true and on what was struck."""
    struck = strike_identifiers(text)
    _, notes = newest_results(measures.measured(fold(aligned(struck))), detect(struck))
    left_out = (message("explain.struck", mark=STRUCK),) if STRUCK in struck else ()
    return PatientRecord(struck, (*notes, *left_out))


def person_of(age: float | None, sex: str) -> dict[str, str]:
    """Age and sex by their labels."""
    return {"Age": f"{age:g}" if age is not None else "", "Sex": sex}


def of_entries(
    names_by_list: Mapping[str, Iterable[str]],
    results: Iterable[Measured],
    notes: Iterable[Message] = (),
    person: Mapping[str, str] = MappingProxyType({}),
    none_of: Collection[str] = (),
    as_of: str = "",
) -> PatientRecord:
    """The record of coded lists and values, a line each below their headings; ``person``: age and sex by label.

    ``none_of`` are lists that the record states to be empty.
    """
    lines = [f"Record of {as_of}"] if as_of else []
    lines += [f"{label}: {text}" for label, text in person.items() if text]
    told = [*notes]
    for name, heading in HEADINGS.items():
        entries, cut = _entries(names_by_list[name], name)
        told += cut
        if entries:
            lines += [f"{heading}:", *(f"- {entry}" for entry in entries)]
        elif name in none_of:
            lines.append(f"{heading}: none")
    latest, remarks = newest_results(results)
    dated = [(one, f" ({one.date})" if one.date and one.date != as_of else "") for one in latest]
    lines += ["Results:", *(f"- {one.name}: {one.written}{date}" for one, date in dated)] if latest else []
    return PatientRecord("\n".join(lines), (*told, *remarks))


def _entries(texts: Iterable[str], what: str) -> tuple[tuple[str, ...], tuple[Message, ...]]:
    """The distinct entries, each on one line, at most ``ENTRIES``; and a note if some are left out."""
    lines = (" ".join(clean(_QUALIFIER.sub("", text[:LONGEST])).split()) for text in texts)
    once = tuple(dict.fromkeys(line for line in lines if line))
    note = (message(f"record.cut_{what}", kept=ENTRIES, entries=len(once)),) if len(once) > ENTRIES else ()
    return once[:ENTRIES], note


def newest_results(
    results: Iterable[Measured], language: str = "en"
) -> tuple[tuple[Measured, ...], tuple[Message, ...]]:
    """The newest plausible value of each measure, of equals the last; and notes on implausible ones."""
    kept: dict[str, Measured] = {}
    notes: list[Message] = []
    for result in results:
        if not measures.plausible(result):
            notes.append(message("record.implausible", measure=measure_name(result, language), written=result.written))
        elif result.name not in kept or result.date >= kept[result.name].date:
            kept[result.name] = result
    notes += _pressures(kept)
    return tuple(kept.values()), tuple(dict.fromkeys(notes))[:ENTRIES]


def measure_name(result: Measured, language: str) -> str:
    """The name of a result's measure in the record's language."""
    return measures.by_name(result.name).chinese if language == "zh" else result.name


def _pressures(kept: dict[str, Measured]) -> list[Message]:
    """A note if the blood pressures hardly go together; an impossible pair is removed."""
    systolic, diastolic = kept.get(measures.SYSTOLIC), kept.get(measures.DIASTOLIC)
    if not systolic or not diastolic or 0 < systolic.value - diastolic.value <= WIDEST:
        return []
    if systolic.value <= diastolic.value:
        del kept[systolic.name], kept[diastolic.name]
    return [message("record.doubtful_pressure", systolic=systolic.value, diastolic=diastolic.value)]


def years(born: str, at: str) -> float | None:
    """Whole years between two ISO dates (below two years in tenths); None if either is incomplete."""
    try:
        first, last = date.fromisoformat(born[:10]), date.fromisoformat(at[:10])
    except ValueError:
        return None
    days = (last - first).days
    if not 0 <= days < 125 * 366:
        return None
    return round(days / 365.25, 1) if days < 730 else float(int(days / 365.2425 + 1e-9))


# --- identifiers ------------------------------------------------------------------------------------------------------

# Values after a label, and what ``text/identifiers.py`` finds. A name without a label cannot be recognised by rule and
# stays; the text never leaves the machine and is not stored.
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
# A value ends with the line, at the next comma or the next label.
_LABELLED = re.compile(
    rf"(?P<label>\b(?:{_LABELS})\s*[:：#]|(?:{_CHINESE_LABELS})\s*[:：])[ \t]*"
    r"(?P<value>(?:(?!\s+(?:[男女]|性别|年龄|过敏史|(?:fe)?male\b|\d{1,3}(?:[mfy]\b|yo\b|岁)"
    r"|(?:age|sex|gender|allerg\w+|meds|medic\w+|dh|pmh)\s*[:：])"
    r"|[.。]\s+(?:age|sex|gender|dob|mrn|problems|allerg\w+|medic\w+)\b)[^\n;；，,|])+)",
    re.IGNORECASE,
)
_TITLED = re.compile(r"\b(Mr|Mrs|Ms|Miss|Dr|Prof)\.?\s+[A-Z][\w'-]+(?:\s+[A-Z][\w'-]+)?")
_NAMES = re.compile(r"(?:patient(?:'s)? |full )?name|mrn|患者姓名|姓名|住院号|病历号", re.IGNORECASE)


def strike_identifiers(text: str) -> str:
    """``text`` with every recognised identifier replaced."""
    text = _LABELLED.sub(lambda match: f"{match['label']} {STRUCK}", text)
    text = _TITLED.sub(lambda match: f"{match[1]} {STRUCK}", text)
    return hiding(identifiers(text), STRUCK)(text)


def check_one_patient(text: str) -> None:
    """Raise ``InputError`` if a label ("Name:", "MRN:") precedes two different values."""
    seen: dict[str, str] = {}
    for match in _LABELLED.finditer(text):
        label = match["label"].rstrip(":：# ").lower()
        value = " ".join(match["value"].split()).casefold()
        if _NAMES.fullmatch(label) and seen.setdefault(label, value) != value:
            raise InputError("record.two_patients")
