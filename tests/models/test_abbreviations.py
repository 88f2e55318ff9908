"""Abbreviations that a text spells out. Without scispaCy (the extra ``nlp``) there is nothing to test but that."""

from __future__ import annotations

import sys

import pytest

from localmed.models import abbreviations


@pytest.mark.slow
def test_without_scispacy_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scispacy.abbreviation", None)  # importing it now fails
    abbreviations._pipeline.cache_clear()
    try:
        assert abbreviations.expand("chronic kidney disease (CKD)") is None
    finally:
        abbreviations._pipeline.cache_clear()


@pytest.mark.extra("nlp")
@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("Patients with chronic kidney disease (CKD) and heart failure (HF).",
         {"CKD": "chronic kidney disease", "HF": "heart failure"}),
        ("Chronic kidney disease（CKD）is common.", {"CKD": "Chronic kidney disease"}),
        ("It was given twice (see above).", {}),
        ("慢性肾脏病（CKD）很常见。", {}),
        ("", {}),
        ("(" * 500, {}),
    ],
)  # fmt: skip
def test_pairs(text: str, pairs: dict[str, str]) -> None:
    assert abbreviations.expand(text) == pairs


@pytest.mark.extra("nlp")
def test_only_the_beginning_of_a_long_text_is_read() -> None:
    text = "word " * (abbreviations.CHARACTERS // 5) + "chronic kidney disease (CKD)"
    assert abbreviations.expand(text) == {}
