"""A patient's record as a value: what a recommendation may depend on, and nothing that says who the patient is.

The readers of ``ingest.records`` make it; names, numbers, addresses and dates of birth are left behind there. It lives
as long as the question: nothing here is stored unless a caller keeps it on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass

FERTILE = (12, 55)  # years; outside them pregnancy is not asked about


@dataclass(frozen=True, slots=True)
class Measured:
    """A result or a vital sign: ``name`` is that of a measure of ``measures``, ``value`` in its first unit.

    ``written`` is value and unit as the record has them; ``date`` is "" where the record has none.
    """

    name: str
    value: float
    written: str
    date: str = ""


@dataclass(frozen=True, slots=True)
class PatientRecord:
    """What is known of one patient, each list as the record has it.

    ``age`` is in years at ``as_of`` (the record's date, "" if it has none), ``sex`` "female", "male" or "".
    ``none_of`` names the lists ("problems", "medications", "allergies") of which the record says that there is nothing;
    an empty list that is not named there is not known. ``results`` holds the newest of each measure. ``text`` is prose
    for a model to read, "" for coded records. ``notes`` say what could not be read or cannot be true, in our words.
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
    notes: tuple[str, ...] = ()

    def result(self, name: str) -> Measured | None:
        """The newest value of the measure ``name``; age counts as one."""
        if name == "age" and self.age is not None:
            return Measured("age", self.age, f"{self.age:g}", self.as_of)
        return next((each for each in self.results if each.name == name), None)

    @property
    def may_be_pregnant(self) -> bool:
        """Whether pregnancy is a question that the record leaves open."""
        fertile = self.age is None or FERTILE[0] <= self.age <= FERTILE[1]
        return self.pregnant is None and self.sex == "female" and fertile
