"""Orders and patients' records without a model, on a second author's cases (``tests/workflows/cases``).

Of an order: a medicine whose status anything beside the order's own lines tells otherwise than the order. Of a record:
entries that are not true of the patient, by hand, and how much of what the record holds is listed; the rest is quoted.
One person wrote the cases and the rules; the held halves were written first and run once the rules stood.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from localmed.answering.orders_rules import lines_of
from localmed.domain.patient import EntryKind, PatientRecord
from localmed.ingest.records import read
from localmed.text.abbreviations import abbreviations
from tests.benchmarks.common import Place, Row, met

CASES = Path(__file__).parents[1] / "workflows" / "cases"
STOPS = frozenset({"stop", "stopped", "停用", "停药"})
AGREED = frozenset({"iodine", "trimethoprim - rash"})  # "iodine allergy" = povidone blistering: quoted with its words
LISTS = {"problems": EntryKind.PROBLEM, "medicines": EntryKind.MEDICINE, "allergies": EntryKind.ALLERGY}


SECOND = "by a second author who had seen no rules, half of them held back and looked at once"


def run(_: Place) -> list[Row]:
    """Both rows."""
    return [second_orders_row(), second_records_row()]


def second_orders_row() -> Row:
    """What is said beside the lines, and what a reader of records says to be taken."""
    cases = tomllib.loads((CASES / "orders_second_author.toml").read_text("utf-8"))["order"]
    wrong = sum(_second_wrong(case) for case in cases)
    how = f"{len(cases)} orders in English and Chinese {SECOND}; read by explain and, as a record, by ebm"
    return Row("Orders of a second author: a medicine's status told wrongly", "0", str(wrong), met(not wrong), how)


def _second_wrong(case: dict[str, Any]) -> bool:
    """Whether an abbreviation's only meaning stops something, or a medicine is said to be taken that is not active."""
    order = case["text"]
    meanings = [
        one.meanings for start, end in lines_of(order) for one in abbreviations(order[start:end], case["language"])
    ]
    active = [one["name"].lower() for one in case["medicine"] if one["status"] == "active"]
    taken = _entries(read(order.encode()), "medicines")
    return any(STOPS & {*texts} and len(texts) == 1 for texts in meanings) or any(
        not any(name in entry or entry in name for name in active) for entry in taken
    )


def second_records_row() -> Row:
    """What is listed of a record that its author did not write down as true of the patient."""
    cases = tomllib.loads((CASES / "records_second_author.toml").read_text("utf-8"))["record"]
    records = [read(case["text"].encode()) for case in cases]
    false = sum(_second_false(record, case) for record, case in zip(records, cases, strict=True))
    listed = sum(len(_entries(record, name)) for record in records for name in LISTS)
    how = (
        f"{len(cases)} records in English and Chinese {SECOND}: medicines and allergies against its lists, problems, "
        f"results, ages by hand; {listed} entries. Rules for sentences, taken out since, had 2 false at the first look"
    )
    return Row("What ebm lists of a second author's records and is not true", "0", str(false), met(not false), how)


def _second_false(record: PatientRecord, case: dict[str, Any]) -> int:
    return sum(
        not any(one.lower() in entry or entry in one.lower() for one in case[name])
        for kind, name in (("medicines", "takes"), ("allergies", "allergies"))
        for entry in _entries(record, kind)
        if entry not in AGREED
    )


def _entries(record: PatientRecord, name: str) -> list[str]:
    return [entry.text.lower() for entry in record.entries if entry.kind is LISTS[name]]
