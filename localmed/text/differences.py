"""What one edition of a document says otherwise than another, sentence by sentence, with the words that differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from localmed.domain import Passage
from localmed.text.furniture import spans

_WORDS = re.compile(r"\d+(?:[.,]\d+)*|[㐀-鿿]|\w+|\W")
LONGEST = 400  # words and blanks of a text that is compared by words
RELATED = 0.4  # of the words in common, below which the whole text is another


class Line(NamedTuple):
    """A heading, sentence or table row, and the heading above it."""

    heading: str
    text: str


class Run(NamedTuple):
    """Text that differs, or does not."""

    text: str
    differs: bool


class Difference(NamedTuple):
    """What stands under ``heading`` in one edition and in the other; empty where one says nothing there."""

    heading: str
    before: str
    after: str

    @property
    def runs(self) -> tuple[tuple[Run, ...], tuple[Run, ...]]:
        """Both texts by words; unrelated, long and lone ones differ as a whole. The time grows with their product."""
        old, new = _WORDS.findall(self.before), _WORDS.findall(self.after)
        matcher = SequenceMatcher(None, old, new, autojunk=False)
        if max(len(old), len(new)) > LONGEST or matcher.quick_ratio() < RELATED or matcher.ratio() < RELATED:
            return tuple(Run(self.before, True) for _ in old[:1]), tuple(Run(self.after, True) for _ in new[:1])
        pairs = matcher.get_opcodes()
        was = tuple(Run("".join(old[i:j]), tag != "equal") for tag, i, j, _, _ in pairs if i < j)
        now = tuple(Run("".join(new[k:m]), tag != "equal") for tag, _, _, k, m in pairs if k < m)
        return was, now


def lines(passages: Iterable[Passage]) -> list[Line]:
    """The headings and sentences of a document, in reading order."""
    found: list[Line] = []
    for headings, together in groupby(passages, key=lambda it: it.headings):
        heading = headings[-1] if headings else ""
        found += [Line(heading, heading)] if heading else []
        found += [Line(heading, " ".join(it.text[start:end].split())) for it in together for start, end in spans(it)]
    return found


def differences(before: Sequence[Line], after: Sequence[Line]) -> list[Difference]:
    """What ``after`` says otherwise than ``before``, in reading order."""
    said, says = [line.text for line in before], [line.text for line in after]
    found = []
    for tag, i, j, k, m in SequenceMatcher(None, said, says, autojunk=False).get_opcodes():
        if tag != "equal":
            heading = next(line.heading for line in (*after[k:m], *before[i:j]))
            found.append(Difference(heading, " ".join(said[i:j]), " ".join(says[k:m])))
    return found
