"""Records of one line."""

from __future__ import annotations

import pytest

from localmed.domain.patient import EntryKind
from localmed.ingest.records.text import read_text

WARFARIN, RAMIPRIL, ASPIRIN = "warfarin 3 mg", "ramipril 5 mg od", "aspirin 75 mg"


@pytest.mark.parametrize(("text", "age", "sex", "problems", "taken", "named"), [
    ("72M, AF, on warfarin 3 mg, wants ibuprofen for his knee", 72, "male", ("AF",), (WARFARIN,), ("ibuprofen",)),
    ("60F, HTN, not on warfarin 3 mg, on ramipril 5 mg od", 60, "female", ("HTN",), (RAMIPRIL,), ("warfarin",)),
    ("72M, AF, on warfarin 3 mg, stopped in May", 72, "male", ("AF",), (), ("warfarin",)),
    ("88F, mother took warfarin 3 mg, on aspirin 75 mg", 88, "female", (), (ASPIRIN,), ("warfarin",)),
    ("72岁男，房颤，口服华法林3 mg，膝痛想吃布洛芬", 72, "male", ("房颤",), ("华法林3 mg",), ("布洛芬",)),
    ("72岁男，房颤，口服华法林3 mg，已停", 72, "male", ("房颤",), (), ("华法林",)),
])  # fmt: skip
def test_a_record_of_one_line(
    text: str, age: float, sex: str, problems: tuple[str, ...], taken: tuple[str, ...], named: tuple[str, ...]
) -> None:
    record = read_text(text)
    assert (record.age, record.sex, record.problems, record.medications) == (age, sex, problems, taken)
    assert tuple(entry.text for entry in record.entries if entry.kind is EntryKind.NAMED) == named
    assert all(entry.words in text for entry in record.entries)


def test_a_wish_is_nothing_that_is_taken() -> None:
    assert read_text("膝痛，想吃布洛芬0.2 g").medications == ()
