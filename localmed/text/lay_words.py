"""Adds the words of guides and records to lay words of a complaint, English and Chinese (``lay_words.toml``)."""

from __future__ import annotations

import re
from functools import cache

from localmed.text import language
from localmed.text.tables import table


@cache
def _patterns(spoken: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    rows = table("lay_words")[spoken]
    return tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in rows.items())


def added(complaint: str, spoken: str) -> str:
    """The words that the table of the language ``spoken`` adds to ``complaint``."""
    return " ".join(dict.fromkeys(words for pattern, words in _patterns(spoken) if pattern.search(complaint)))


def silent(spoken: str) -> str:
    """Words that are no complaint by themselves."""
    words: str = table("lay_words")["silent"][spoken]
    return words


def characters(complaint: str) -> str:
    """The single Chinese characters of the content words of ``complaint``, separated by spaces.

    No guide has the word 眼皮跳, but 眼 finds the right section.
    """
    singles = "".join(language.content_words(complaint))
    return " ".join(dict.fromkeys(character for character in singles if "\u4e00" <= character <= "\u9fff"))
