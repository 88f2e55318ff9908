"""Orders and patients' records without a model, on cases of other authors (``tests/workflows/cases``).

Of an order: a medicine whose status anything beside the order's own lines tells otherwise than the order. Of a record:
the medicines, allergies and values that are found as names; nothing is said of them.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from localmed.answering.orders_rules import lines_of
from localmed.answering.record import allergens, names_in
from localmed.domain.patient import NameKind
from localmed.ingest.records import read
from localmed.text import medicines
from localmed.text.abbreviations import abbreviations
from tests.benchmarks.common import Place, Row, met

CASES = Path(__file__).parents[1] / "workflows" / "cases"
STOPS = frozenset({"stop", "stopped", "停用", "停药"})
SECOND = "by a second author who had seen no rules, half of them held back and looked at once"


def run(_: Place) -> list[Row]:
    """The two rows."""
    return [second_orders_row(), third_notes_row()]


def second_orders_row() -> Row:
    """What is said beside the lines."""
    cases = tomllib.loads((CASES / "orders_second_author.toml").read_text("utf-8"))["order"]
    wrong = sum(_second_wrong(case) for case in cases)
    how = f"{len(cases)} orders in English and Chinese {SECOND}; read by explain"
    return Row("Orders of a second author: a medicine's status told wrongly", "0", str(wrong), met(not wrong), how)


def _second_wrong(case: dict[str, Any]) -> bool:
    """Whether an abbreviation's only meaning stops something."""
    order = case["text"]
    meanings = [
        one.meanings for start, end in lines_of(order) for one in abbreviations(order[start:end], case["language"])
    ]
    return any(STOPS & {*texts} and len(texts) == 1 for texts in meanings)


def third_notes_row() -> Row:
    """What an author marked as the patient's in pasted notes and is found by name."""
    notes = json.loads((CASES / "notes_third_author.json").read_text("utf-8"))
    found, held = {"medicines": 0, "allergies": 0, "values": 0}, {"medicines": 0, "allergies": 0, "values": 0}
    for note in notes:
        text = read(note["text"].encode()).text
        names = names_in(text)
        taken = " ; ".join(text[one.start : one.end].lower() for one in names if one.kind is NameKind.MEDICINE)
        allergic = " ; ".join(own.lower() for _, own, _, _ in allergens(text))
        values = {key for one in names if one.kind is NameKind.VALUE for key in one.keys}
        for name, listed, there in (
            ("medicines", note["medications"], lambda it, known=taken: _is_named(it, known)),
            ("allergies", note["allergies"], lambda it, known=allergic: _is_named(it, known)),
            ("values", [one["name"] for one in note["results"]], values.__contains__),
        ):
            held[name] += len(listed)
            found[name] += sum(map(there, listed))
    counts = ", ".join(f"{name} {found[name]} of {count}" for name, count in held.items())
    how = (
        f"{len(notes)} notes as pasted on a ward, in English and Chinese, by a third author who had seen no rules; "
        "9 of the allergies are to no medicine (latex, plasters, foods) and are not looked for"
    )
    return Row("What a third author's notes name and is found", "-", counts, "-", how)


def _is_named(written: str, known: str) -> bool:
    return any(one.written in known for one in medicines.mentions(written))
