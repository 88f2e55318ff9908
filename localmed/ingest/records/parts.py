"""What the readers of records share: bounded entries, the newest of each result, what cannot be true, who is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from localmed.clinical import measures
from localmed.domain.patient import Measured
from localmed.errors import InputError
from localmed.ingest.readers.encoding import clean

ENTRIES = 200  # of each list; a long record names 50 problems
LONGEST = 1_000  # characters of an entry looked at
ENTRY_CHARACTERS = 120  # of one entry; the longest names of medicines have about 100

IMPLAUSIBLE = "Not used, since it cannot be right as it stands: {measure} {written}"
DOUBTFUL = "Check the record: a blood pressure of {systolic:g}/{diastolic:g} is unlikely"
WIDEST = 120  # mmHg between systolic and diastolic; more is rare even with a leaking aortic valve
CUT = "Only the first {kept} of {all} {what} were read"
UNREAD = "{count} entries of the record could not be read"
TWO_PATIENTS = "the record speaks of more than one patient"
_QUALIFIER = re.compile(r"\s*\((?:disorder|finding|procedure|situation|substance|morphologic abnormality)\)\s*$")


def two_patients() -> InputError:
    """The refusal of a record of two patients."""
    return InputError(TWO_PATIENTS, "Give the record of one patient")


def entries(found: Iterable[str], what: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The entries on one line each, once each, at most ``ENTRIES``; and a note where some are left out."""
    lines = (" ".join(clean(_QUALIFIER.sub("", each[:LONGEST])).split())[:ENTRY_CHARACTERS] for each in found)
    once = tuple(dict.fromkeys(each for each in lines if each))
    note = (CUT.format(kept=ENTRIES, all=len(once), what=what),) if len(once) > ENTRIES else ()
    return once[:ENTRIES], note


def newest(found: Iterable[Measured], language: str = "en") -> tuple[tuple[Measured, ...], tuple[str, ...]]:
    """The newest plausible value of each measure, of equals the last; and notes on what cannot be true."""
    kept: dict[str, Measured] = {}
    notes: list[str] = []
    for each in found:
        if not measures.plausible(each):
            measure = measures.by_name(each.name)
            name = measure.chinese if language == "zh" else measure.name
            notes.append(IMPLAUSIBLE.format(measure=name, written=each.written))
        elif each.name not in kept or each.date >= kept[each.name].date:
            kept[each.name] = each
    notes += _pressures(kept)
    return tuple(kept.values()), tuple(dict.fromkeys(notes))[:ENTRIES]


def _pressures(kept: dict[str, Measured]) -> list[str]:
    """A note where the two blood pressures hardly go together; they stay, but for an impossible pair."""
    systolic, diastolic = kept.get("systolic blood pressure"), kept.get("diastolic blood pressure")
    if not systolic or not diastolic or 0 < systolic.value - diastolic.value <= WIDEST:
        return []
    if systolic.value <= diastolic.value:
        del kept[systolic.name], kept[diastolic.name]
    return [DOUBTFUL.format(systolic=systolic.value, diastolic=diastolic.value)]


def years(born: str, at: str) -> float | None:
    """Whole years between two ISO dates (below two years in tenths); ``None`` where either is no whole date."""
    try:
        first, last = date.fromisoformat(born[:10]), date.fromisoformat(at[:10])
    except ValueError:
        return None
    days = (last - first).days
    if not 0 <= days < 125 * 366:
        return None
    return round(days / 365.25, 1) if days < 730 else float(int(days / 365.2425 + 1e-9))
