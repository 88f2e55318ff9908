"""Joins the printed lines of one text: with a blank, with nothing, or without the hyphen at the line's end.

First match: a line that ends in ``JOINER`` continues unchanged (its reader knew); a broken web address continues
without a blank; "pre-" before "and" keeps hyphen and blank; a hyphen between small letters is removed, after capitals
or before a capital or figure it stays ("COVID-" "19"); nothing follows a dash, slash or comparison sign that touches
the word before it ("5–" "10 mg/" "kg", "脂肪≥" "40%"); Chinese characters join directly; all else with a blank.

Not covered: whether a hyphen between small letters belongs to the word; a reader that knows says so by ``JOINER``.
"""

from __future__ import annotations

import re

from localmed.text.language import HAN

REACH = 500  # characters before a line's end that the rules examine: longer than any web address
JOINER = "\u2060"  # word joiner, after a hyphen at a line's end that stays; never part of the resulting text

WIDE = re.compile(f"[{HAN}\u3000-\u303f\uff00-\uffef]")
_HYPHENATED = re.compile(r"([^\W\d_]+)-$")
_TOUCHING = re.compile(r"[\w)%°][-‐‑–—/]$|\S[~～≥≤±]$")  # also "20%～" "40%" and "脂肪≥" "40%"
_SUSPENDED = re.compile(r"(?:and|or|to|und|oder|bis|et|ou)\b")
_ADDRESS = re.compile(r"(?:://|\bwww\.|\w@)\S*$")
_ADDRESS_MARKS = ("://", "www.", "@")  # ten times as fast as the search
_MORE_ADDRESS = re.compile(r"www\b|\S*?(?:[/_=?&%]|[.-]\w|\d)")


class Joined:
    """Joins lines in linear time: only the last ``REACH`` characters before each are examined."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._tail = ""
        self.length = 0  # characters so far

    def add(self, line: str) -> int:
        """Add the next ``line``, which is not empty; return where it starts."""
        ready = prepare(self._tail, line)
        if len(ready) < len(self._tail):  # its hyphen or mark was removed
            self._parts[-1] = self._parts[-1][:-1]
        else:
            self._parts.append(ready[len(self._tail) :])
        start = self.length + len(ready) - len(self._tail)
        self._parts.append(line)
        self._tail, self.length = (ready + line)[-REACH:], start + len(line)
        return start

    @property
    def text(self) -> str:
        """The joined text."""
        return "".join(self._parts)


def prepare(text: str, added: str) -> str:
    """``text`` with what ``added``, the next line, needs before it: a blank, nothing, or its hyphen removed."""
    if not text or not added:
        return text
    if text.endswith(JOINER):
        return text[:-1]
    word = "" if text[-1].isalnum() else text.rsplit(None, 1)[-1]  # searching every line whole is quadratic
    if any(mark in word for mark in _ADDRESS_MARKS) and _ADDRESS.search(word):
        return text if _address_goes_on(text[-1], added) else text + " "
    hyphen = _HYPHENATED.search(word)
    if hyphen and added[0].islower():
        if _SUSPENDED.match(added):
            return text + " "
        return text if hyphen[1].isupper() else text[:-1]
    if _TOUCHING.search(text[-2:]) and added[0].isalnum():
        return text
    if WIDE.match(text[-1]) and WIDE.match(added[0]):
        return text
    return text + " "


def _address_goes_on(last: str, added: str) -> bool:
    if last == ".":
        return added[0].islower()
    if last == "/":
        return bool(_MORE_ADDRESS.match(added.split(maxsplit=1)[0]))
    return last in "-_=&?%#~@:"
