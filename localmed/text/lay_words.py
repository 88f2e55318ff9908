"""Adds the words of guides and records to lay words of a complaint, English and Chinese (``lay_words.toml``)."""

from __future__ import annotations

import re
from functools import cache

from localmed.text.tables import table


@cache
def _patterns(spoken: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = table("lay_words")[spoken]
    return tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in rows.items())


def added(complaint: str, spoken: str) -> str:
    """The words that the table of the language ``spoken`` adds to ``complaint``."""
    return " ".join(dict.fromkeys(words for pattern, words in _patterns(spoken) if pattern.search(complaint)))
