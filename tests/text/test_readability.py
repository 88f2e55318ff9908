"""Reading levels: the published formula, syllables by rule, Chinese by the length of sentences."""

from __future__ import annotations

import pytest

from localmed.domain.parts import ReadingScale
from localmed.text.readability import reading_level, syllables

# Counted in a dictionary, not by the rule.
COUNTED = {
    "the": 1, "pain": 1, "tablet": 2, "medicine": 3, "blood": 1, "pressure": 2, "take": 1, "doctor": 2, "stopped": 1,
    "wanted": 2, "hospital": 3, "kidneys": 2, "little": 2, "antibiotic": 5, "infection": 3,
}  # fmt: skip


def test_syllables_of_nine_in_ten_words() -> None:
    right = [word for word, count in COUNTED.items() if syllables(word) == count]
    assert len(right) >= 0.9 * len(COUNTED), sorted(set(COUNTED) - set(right))


def test_the_grade_is_the_published_formula() -> None:
    level = reading_level("Take the pill. Drink the water now.")  # 7 words, 2 sentences, 8 syllables
    assert level is not None
    assert level.value == pytest.approx(max(0.0, 0.39 * 3.5 + 11.8 * 8 / 7 - 15.59), abs=0.05)
    assert level.sentences == 2


def test_chinese_is_characters_a_sentence() -> None:
    level = reading_level("每天三次。饭后用水送服。")
    assert level is not None
    assert (level.scale, level.value, level.sentences) == (ReadingScale.CHARACTERS, 5.0, 2)
