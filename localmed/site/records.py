"""A patient's record for a question: read, shown and corrected by the user. Nothing is stored."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from localmed.domain.errors import UsageError
from localmed.domain.patient import EntryKind, Measured, PatientRecord, RecordEntry
from localmed.ingest.records import read
from localmed.ingest.records.text import TEXT_CHARACTERS, values_in

__all__ = ["CORRECTED", "TEXT_CHARACTERS", "corrected", "read"]
CORRECTED = 300  # entries of a corrected record
OLDEST = 125  # years
LISTS = {"problems": EntryKind.PROBLEM, "medications": EntryKind.MEDICINE, "allergies": EntryKind.ALLERGY}
QUOTED = (EntryKind.NAMED, EntryKind.UNREAD)
CODES = {EntryKind.SEX: ("female", "male"), EntryKind.PREGNANCY: ("yes", "no")}


def corrected(
    entries: Sequence[RecordEntry], language: str = "en", as_of: str = "", none_of: Collection[str] = ()
) -> PatientRecord:
    """The record of ``entries`` that the user confirmed or wrote.

    A result without a readable value is only quoted. Of the record's prose a model sees only the quoted entries,
    because the rest is uncorrected. Raise ``UsageError`` for an invalid age, sex or pregnancy, and for too many
    entries.
    """
    if len(entries) > CORRECTED:
        raise UsageError("record.entries", most=CORRECTED)
    if any(entry.text not in CODES[entry.kind] for entry in entries if entry.kind in CODES):
        raise UsageError("record.sex_word")
    sure, results = _with_results(entries)
    lists = {name: tuple(_texts(sure, kind)) for name, kind in LISTS.items()}
    pregnancy = next(_texts(sure, EntryKind.PREGNANCY), "")
    return PatientRecord(
        language=language,
        age=_age(next(_texts(sure, EntryKind.AGE), "")),
        sex=next(_texts(sure, EntryKind.SEX), ""),
        pregnant=pregnancy == "yes" if pregnancy else None,
        problems=lists["problems"],
        medications=lists["medications"],
        allergies=lists["allergies"],
        none_of=frozenset(name for name in none_of if name in LISTS and not lists[name]),
        results=results,
        text="\n".join(dict.fromkeys(entry.words for entry in sure if entry.kind in QUOTED and entry.words)),
        as_of=as_of,
        entries=tuple(sure),
    )


def _texts(entries: Sequence[RecordEntry], kind: EntryKind) -> Iterator[str]:
    return (entry.text for entry in entries if entry.kind is kind)


def _with_results(entries: Sequence[RecordEntry]) -> tuple[list[RecordEntry], tuple[Measured, ...]]:
    """The entries, with unreadable results marked as such; and the last value of each measure."""
    sure: list[RecordEntry] = []
    values: dict[str, Measured] = {}
    for entry in entries:
        known = values_in(entry.text) if entry.kind is EntryKind.RESULT else ()
        values |= {result.name: replace(result, start=0, end=0) for result in known}
        named_only = entry.kind is EntryKind.RESULT and not known
        sure.append(replace(entry, kind=EntryKind.UNREAD) if named_only else entry)
    return sure, tuple(values.values())


def _age(text: str) -> float | None:
    if not text:
        return None
    with suppress(ValueError):
        age = float(text)
        if math.isfinite(age) and 0 <= age <= OLDEST:
            return age
    raise UsageError("record.age_number", most=OLDEST)
