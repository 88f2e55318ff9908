"""Lay words for complaints beside the words that guides and records use. The table is ``lay_words.toml``.

A complaint is searched by its own words and, besides, by those that the table adds. English and Chinese.
"""

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
    """The words that the table of the language ``spoken`` adds to ``complaint``, "" if it knows none of its words."""
    return " ".join(dict.fromkeys(words for pattern, words in _patterns(spoken) if pattern.search(complaint)))


def silent(spoken: str) -> str:
    """The words of the language ``spoken`` that tell no complaint by themselves."""
    words: str = table("lay_words")["silent"][spoken]
    return words


def characters(complaint: str) -> str:
    """The Chinese characters of the content words of ``complaint``, each once and apart, "" if there are none.

    眼 says much where no guide has the word 眼皮跳; the index holds single characters for such searches.
    """
    singles = "".join(language.content_words(complaint))
    return " ".join(dict.fromkeys(character for character in singles if "\u4e00" <= character <= "\u9fff"))
