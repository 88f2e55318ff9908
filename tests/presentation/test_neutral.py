"""Nothing that a terminal or a page would obey is left in what comes from outside."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localmed.presentation.neutral import escaped, neutral, one_line

OBEYED = "\x1b\x07\x08\r\x9b\x9d\x90\u202e\u202a\u2066\u2069\u200f\u061c\ufeff\u2028\x85\x00\x7f"
ANYTHING = st.text(st.one_of(st.characters(), st.sampled_from(OBEYED + "[]0;m52c\n ")), max_size=60)


def obeyed(text: str) -> list[str]:
    """The characters of ``text`` that move, hide, reorder or break it."""
    bidirectional = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return [
        character
        for character in text
        if (unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") and character != "\n")
        or unicodedata.bidirectional(character) in bidirectional
        or character in "\u200e\u200f\u061c"
    ]


@settings(max_examples=2_000, deadline=None)
@given(ANYTHING)
@pytest.mark.slow
def test_no_control_or_bidi_character_is_left(text: str) -> None:
    assert obeyed(neutral(text)) == []
    assert neutral(neutral(text)) == neutral(text)
    assert "\n" not in one_line(text)


@settings(max_examples=500, deadline=None)
@given(ANYTHING)
def test_json_keeps_its_values(text: str) -> None:
    written = escaped(json.dumps({"title": text}, ensure_ascii=False))
    assert json.loads(written) == {"title": text}
    assert obeyed(written) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;owned\x07Dose 5 mg", "Dose 5 mg"),
        ("\x1b[31mred\x1b[0m and \x9b1mbold", "red and bold"),
        ("\x1b]52;c;c2VjcmV0\x1b\\copied", "copied"),
        ("5\u202e0 mg", "50 mg"),
        ("a\tb\x0bc\u2028d", "a b c d"),
        ("first\r\nsecond\rthird", "first\nsecondthird"),
        ("剂量：5 毫克", "剂量：5 毫克"),
        ("β-lactam, naïve, ≥ 5 µg", "β-lactam, naïve, ≥ 5 µg"),
        ("👩\u200d⚕️", "👩\u200d⚕️"),
    ],
)
def test_what_people_read_stays(text: str, shown: str) -> None:
    assert neutral(text) == shown
