"""Which hyphens at the ends of printed lines belong to their word, told from the rest of the document.

Rules, first match, for a line that ends in letters and a hyphen before one that begins in small letters: the hyphen
stays if the word stands with it elsewhere ("non-normal"), goes if it stands elsewhere without it, stays if both halves
are words of the document by themselves and long enough not to be one by chance ("clean-body"), and goes otherwise, as
typesetters' hyphens do. Hyphens beside capitals and figures are settled where lines are joined (``line_ends.py``).

Not covered: words that a document breaks once and writes nowhere else; no dictionary is asked.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from localmed.ingest.line_ends import JOINER
from localmed.ingest.parsed import Block, Line

SHORTEST_FIRST, SHORTEST_SECOND = 3, 4  # letters: halves of broken words are seldom words themselves when so long

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_OPEN = re.compile(r"([^\W\d_]+(?:-[^\W\d_]+)*)-$")
_START = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a document in small letters: plain ones, and pairs of neighbours within words with hyphens."""

    plain: frozenset[str]
    pairs: frozenset[tuple[str, str]]


def settled(blocks: Sequence[Block]) -> list[Block]:
    """``blocks`` with the hyphens that belong to their words marked."""
    words = _words(blocks)
    return [_marked(block, words) for block in blocks]


def _words(blocks: Sequence[Block]) -> _Words:
    plain: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for word in (word.lower() for block in blocks for word in _whole_words(block)):
        parts = word.split("-")
        if len(parts) == 1:
            plain.add(word)
        pairs.update(itertools.pairwise(parts))
    return _Words(frozenset(plain), frozenset(pairs))


def _whole_words(block: Block) -> Iterator[str]:
    """The words of ``block`` but those that a line's end breaks."""
    broken = False
    for line in block.lines:
        words = _WORD.findall(line.text)
        stop = len(words) - 1 if _OPEN.search(line.text) else len(words)
        yield from words[int(broken) : stop]
        broken = bool(_OPEN.search(line.text))


def _marked(block: Block, words: _Words) -> Block:
    lines = list(block.lines)
    for index in range(len(lines) - 1):
        first, second = _OPEN.search(lines[index].text), _START.match(lines[index + 1].text)
        if first and second and second[0][0].islower() and _stays(first[1].lower(), second[0].lower(), words):
            lines[index] = _kept(lines[index])
    return block if lines == list(block.lines) else replace(block, lines=tuple(lines))


def _kept(line: Line) -> Line:
    return replace(line, text=line.text + JOINER)


def _stays(first: str, second: str, words: _Words) -> bool:
    last = first.rpartition("-")[2]
    if (last, second) in words.pairs:
        return True
    if last + second in words.plain:
        return False
    known = last in words.plain and second in words.plain
    return known and len(last) >= SHORTEST_FIRST and len(second) >= SHORTEST_SECOND
