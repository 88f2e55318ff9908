"""A patient's record, without the identifiers that the readers recognise: what a recommendation may depend on.

The readers of ``ingest.records`` make it and drop labelled names, numbers, addresses and dates of birth. It lives as
long as the question; nothing here is stored unless a caller keeps it on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from localmed.domain.messages import Message


class EntryKind(StrEnum):
    """The kind of a record's entry.

    ``NAMED`` is a medicine that the record mentions outside a medication list. ``UNREAD`` is quoted without being
    interpreted: a value, a doubtful list line, a sentence about a reaction or a pregnancy.
    """

    AGE = "age"
    SEX = "sex"
    PREGNANCY = "pregnancy"
    PROBLEM = "problem"
    MEDICINE = "medicine"
    ALLERGY = "allergy"
    RESULT = "result"
    NAMED = "named"
    UNREAD = "unread"


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """An entry of a record: ``text``, read from the ``words`` at ``start:end`` of the record (0 if it is coded)."""

    kind: EntryKind
    text: str
    words: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """A result or vital sign: ``name`` is from ``measures``, ``value`` in its first unit.

    ``written`` is value and unit as written; ``date`` may be "". Its place is ``start:end``, 0 for coded records.
    """

    name: str
    value: float
    written: str
    date: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class PatientRecord:
    """One patient's record.

    ``age`` is in years at ``as_of`` (the record's date, or ""); ``sex`` is "female", "male" or "". ``none_of`` names
    the lists ("problems", "medications", "allergies") that the record states to be empty; other empty lists are
    unknown. ``results`` has the newest of each measure. ``text`` is prose for a model to read, "" for coded records.
    ``entries`` are what was read; ``notes`` say what could not be read or cannot be true.
    """

    language: str = "en"
    age: float | None = None
    sex: str = ""
    pregnant: bool | None = None
    problems: tuple[str, ...] = ()
    medications: tuple[str, ...] = ()
    allergies: tuple[str, ...] = ()
    none_of: frozenset[str] = frozenset()
    results: tuple[Measured, ...] = ()
    text: str = ""
    as_of: str = ""
    entries: tuple[RecordEntry, ...] = ()
    notes: tuple[Message, ...] = ()
