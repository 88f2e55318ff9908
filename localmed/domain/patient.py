"""A patient's record as a value: what a recommendation may depend on, and nothing that says who the patient is.

The readers of ``ingest.records`` make it; names, numbers, addresses and dates of birth are left behind there. It lives
as long as the question: nothing here is stored unless a caller keeps it on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from localmed.domain.messages import Message


class EntryKind(StrEnum):
    """What a record's entry is of.

    ``NAMED`` is a medicine that the record names outside a list of what is taken, ``UNREAD`` what is quoted and not
    read: a value, a line of a list in doubt, a sentence on a reaction or a pregnancy.
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
    """What was read from a record: ``text``, and the very ``words`` of the record that it was read from.

    They stand at ``start:end`` of the record's text; both are 0 where the record is coded.
    """

    kind: EntryKind
    text: str
    words: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Measured:
    """A result or a vital sign: ``name`` is that of a measure of ``measures``, ``value`` in its first unit.

    ``written`` is value and unit as the record has them; ``date`` is "" where the record has none. It stands at
    ``start:end`` of the record's text, 0 where the record is coded.
    """

    name: str
    value: float
    written: str
    date: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class PatientRecord:
    """What is known of one patient, each list as the record has it.

    ``age`` is in years at ``as_of`` (the record's date, "" if it has none), ``sex`` "female", "male" or "".
    ``none_of`` names the lists ("problems", "medications", "allergies") of which the record says that there is nothing;
    an empty list that is not named there is not known. ``results`` holds the newest of each measure. ``text`` is prose
    for a model to read, "" for coded records. ``entries`` are what was read, each with
    its words; ``notes`` say what could not be read or cannot be true.
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
