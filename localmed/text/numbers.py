"""Numbers in words, English and Chinese (``numbers.toml``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from localmed.text.tables import in_characters, listed, table

HAN = "[一二两三四五六七八九十]"


@cache
def english() -> Mapping[str, int]:
    """The value of each English word, from zero to twelve."""
    return {word: value for value, word in enumerate(listed(table("numbers")["words"]["en"]))}


@cache
def chinese() -> Mapping[str, int]:
    """The value of each Chinese character, from zero to ten."""
    return {word: value for value, word in enumerate(listed(table("numbers")["words"]["zh"]))} | {"两": 2, "〇": 0}


@cache
def in_sources() -> Mapping[str, int]:
    """The value of each English word that is read in a source, from two on: "one" is often no number."""
    return {**{word: value for word, value in english().items() if value > 1}, **table("numbers")["values"]}


def counted(texts: str) -> str:
    """What a Chinese number word counts in ``texts`` ("source" or "order"), as alternatives of a regular expression."""
    return in_characters(table("numbers")["counted"][texts])


@cache
def spans() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Times that are written without a number, in folded text, and each with its wording in digits."""
    return tuple((re.compile(pattern), digits) for pattern, digits in table("numbers")["spans"].items())
