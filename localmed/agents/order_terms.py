"""The terms of an order by rule (LINS, medical term extraction agent): exactly as written, with their place.

A term is a medicine of our table, or a name of the concept graph or of the library (a document's title, a heading, a
row of a table), the longest at each place. Nothing is said of it: whether a medicine is started or stopped stands in
the order's own line. Not covered: terms that neither table, graph nor library holds.

Bounds: ``LONGEST`` words of a name, ``NAMED`` names that graph and library are asked for; time is linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from localmed.agents.orders import OrderTerm
from localmed.clinical import medicines
from localmed.clinical.abbreviations import meaning
from localmed.language import HAN, aligned, detect
from localmed.library.terms import folded

LONGEST = 5  # words of a term's name
NAMED = 2_000  # names asked of graph and library for one order: each costs up to a tenth of a millisecond
SHORTEST = 3  # characters of a name in English, 2 in Chinese

Known = Callable[[str], bool]  # whether the graph or the library has a name

_WORD = re.compile(rf"[A-Za-z0-9][A-Za-z0-9'’/.]*[A-Za-z0-9]|[A-Za-z0-9]|[{HAN}]+")
_HAN = re.compile(f"[{HAN}]")
_BETWEEN = re.compile(r"[ \t-]?")

Span = tuple[int, int]


def terms(order: str, known: Known = lambda _: False) -> list[OrderTerm]:
    """The terms of ``order``, in its order; ``known`` is asked for names."""
    plain = aligned(order)
    ends = {mention.start: (mention.end, "medicine") for mention in medicines.mentions(plain)}
    taken = bytearray(len(order))
    for start, (end, _) in ends.items():
        taken[start:end] = b"\1" * (end - start)
    for start, end in _named(plain, known):
        if not any(taken[start:end]):
            ends[start] = (end, "term")
    return [OrderTerm(order[start:end], start, end, kind) for start, (end, kind) in sorted(ends.items())]


def _named(text: str, known: Known) -> Iterator[Span]:
    """The names of the graph and the library, the longest at each place, until ``NAMED`` were asked for."""
    words, place = list(_words(text)), 0
    answers: dict[str, bool] = {}
    while place < len(words) and len(answers) < NAMED:
        runs = [span for span in _runs(text, words, place) if _is_known(text[slice(*span)], known, answers)]
        if runs:
            yield runs[0]
        place += sum(1 for start, _ in words[place : place + LONGEST] if start < runs[0][1]) if runs else 1


def _is_known(name: str, known: Known, answers: dict[str, bool]) -> bool:
    least = 2 if _HAN.search(name) else SHORTEST
    key = folded(name)
    if key not in answers:
        meanings = meaning(name, detect(name))
        answers[key] = len(name) >= least and (known(name) or bool(meanings and known(meanings.partition(",")[0])))
    return answers[key]


def _runs(text: str, words: list[Span], first: int) -> Iterator[Span]:
    """The runs of words from ``first`` on without punctuation inside, longest first."""
    last = first
    while last + 1 < min(len(words), first + LONGEST) and _BETWEEN.fullmatch(text, words[last][1], words[last + 1][0]):
        last += 1
    for end in range(last, first - 1, -1):
        yield words[first][0], words[end][1]


def _words(text: str) -> Iterator[Span]:
    """English words, and Chinese ones as ``rjieba``'s dictionary cuts them."""
    for match in _WORD.finditer(text):
        if not _HAN.match(match[0]):
            yield match.span()
            continue
        import rjieba  # lazily: its dictionary takes 0.25 s

        start = match.start()
        for word in rjieba.cut(match[0]):
            yield start, start + len(word)
            start += len(word)
