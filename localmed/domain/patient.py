"""A patient's record, without the identifiers that the readers recognise: its text, and the names found in it.

The readers of ``ingest.records`` make it and drop labelled names, numbers, addresses and dates of birth. It lives as
long as the question; nothing here is stored unless a caller keeps it on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from localmed.domain.messages import Message


class NameKind(StrEnum):
    """What a name of a record is; an allergy is a medicine beside words for a reaction."""

    ALLERGY = "allergy"
    MEDICINE = "medicine"
    VALUE = "value"
    CONDITION = "condition"


@dataclass(frozen=True, slots=True)
class RecordName:
    """A name at ``start:end`` of a record's text; a value with its number.

    ``keys``: the ingredients of a medicine, the name of a measure, or the names of a condition.
    """

    kind: NameKind
    keys: tuple[str, ...]
    start: int
    end: int


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
    """One patient's record as text: as pasted, or of a coded record a line for each entry.

    ``notes`` say what could not be read or cannot be true.
    """

    text: str
    notes: tuple[Message, ...] = ()
