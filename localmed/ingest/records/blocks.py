"""Where a record in prose says of a whole block of lines that it may hold what is not taken.

A block is the lines without an empty one or a heading between. "Stopped in May" below a medicine and "Not taking:"
above one are of other lines than their own; of which ones no rule can tell, so that they hold for all of the block.
Linear in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from localmed.ingest.records import cues
from localmed.text.language import detect

HEADING_WORDS = 8  # of an English line that may head others
HEADING_CHARACTERS = 24  # of a Chinese one
_BLANK = re.compile(r"\n[ \t]*\n\s*")
_LINE = re.compile(r"[^\n]+")


def uncertain(text: str, medicines: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The blocks ``start:end`` of ``text`` in which nothing is surely taken; ``medicines`` are the places of names.

    A heading that stops, denies or plans holds beyond empty lines, up to the next heading.
    """
    headings = {mark.start(): mark.end() for mark in cues.HEADING.finditer(text)}
    edges = sorted({0, *headings, *(blank.end() for blank in _BLANK.finditer(text))} | {len(text)})
    under = False
    for start, end in pairwise(edges):
        under = held = under and start not in headings
        for line in _LINE.finditer(text, start, end):
            heads = None if line.start() in headings else _heads(line, medicines)
            if heads is not None:
                under = heads
            held = held or under
        held = held or any(_stops(sentence) for sentence in cues.SENTENCE.finditer(text, start, end))
        if held or (end not in headings and _goes_on(text, end, medicines)):
            yield start, end


def _stops(sentence: re.Match[str]) -> bool:
    """Whether a sentence stops, denies, replaces or plans a medicine: of the block's, no rule can tell which."""
    return bool(cues.REPLACED.match(sentence[0].lstrip(" \t-*•(（")) or cues.NOT_NOW.search(sentence[0]))


def _named(medicines: Sequence[int], start: int, end: int) -> bool:
    place = bisect_left(medicines, start)
    return place < len(medicines) and medicines[place] < end


def _heads(line: re.Match[str], medicines: Sequence[int]) -> bool | None:
    """Whether a line heads what is not taken; ``None`` where it is no heading."""
    words = line[0].strip()
    length, most = (len(words), HEADING_CHARACTERS) if detect(words) == "zh" else (len(words.split()), HEADING_WORDS)
    if length > most or words.endswith((".", "。", ";", "；")) or _named(medicines, *line.span()):
        return None
    if cues.NOT_NOW.search(words) or cues.DENIED.search(words):
        return True
    return False if words.endswith((":", "：")) else None


def _goes_on(text: str, end: int, medicines: Sequence[int]) -> bool:
    """Whether the line behind the empty one at ``end`` is about what stands before it: it stops and names nothing."""
    line = _LINE.match(text, end)
    return bool(line and cues.STOPPED.search(line[0]) and not _named(medicines, *line.span()))
