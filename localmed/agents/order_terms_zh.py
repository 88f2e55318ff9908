"""The terms of a Chinese order by rule: listed words, endings that tell, names of the library, Latin abbreviations.

A run of words (cut by ``rjieba``'s dictionary) that ends in 片, 检查, 炎 and the like is one term, from the last word
that is no part of it (a verb, a number, a particle) on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from localmed.agents import order_vocabulary_zh as words
from localmed.agents.order_abbreviations import ENGLISH, EVERY, bare, is_written_so
from localmed.agents.orders import OrderTerm
from localmed.language import HAN

_RUN = re.compile(f"[{HAN}A-Za-z0-9α-ωβ]+")
_LATIN = re.compile(r"(?<![A-Za-z])[A-Za-z]\.?(?:[A-Za-z0-9]\.?){1,6}(?![A-Za-z])")
_LISTED = re.compile(
    "|".join(
        sorted(
            map(re.escape, words.MEDICINES | words.CONDITIONS | words.TESTS | words.TREATMENTS), key=len, reverse=True
        )
    )
)
_NEGATION = re.compile(r"(不要|不得|不可|不能|勿|禁止|禁用|忌|避免|停用|停服|暂停|否认|无|未|不)[^，。；、\n]{0,8}$")
_LONGEST = 12  # characters of a term by its ending
_FORM = re.compile(
    r"(?:缓释片|肠溶片|分散片|片|软胶囊|胶囊|注射液|颗粒|口服液|混悬液|糖浆|软膏|乳膏|滴眼液|气雾剂|吸入剂|粉雾剂|栓)"
)
_KINDS = (
    (words.MEDICINES, "medicine"), (words.CONDITIONS, "condition"), (words.TESTS, "test"),
    (words.TREATMENTS, "treatment"),
)  # fmt: skip


def chinese(order: str, known: Callable[[str], bool]) -> list[OrderTerm]:
    """The terms of ``order``, in its order."""
    taken = [False] * len(order)
    found: list[OrderTerm] = []
    for start, end, kind in sorted(_candidates(order, known), key=lambda each: each[0] - each[1]):
        if not any(taken[start:end]):
            taken[start:end] = [True] * (end - start)
            denied = _NEGATION.search(order, max(0, start - 12), start)
            found.append(OrderTerm(order[start:end], start, end, kind, denied[1] if denied else ""))
    return sorted(found, key=lambda each: each.start)


def _candidates(order: str, known: Callable[[str], bool]) -> Iterator[tuple[int, int, str]]:
    for match in _LISTED.finditer(order):
        form = _FORM.match(order, match.end())
        end = form.end() if form and match[0] in words.MEDICINES else match.end()
        yield match.start(), end, next(kind for names, kind in _KINDS if match[0] in names)
    for match in words.STEMS.finditer(order):
        start = _inside(order, *match.span())
        form = _FORM.match(order, match.end())
        yield start, form.end() if form else match.end(), "medicine"
    for match in (*EVERY.finditer(order), *_LATIN.finditer(order)):
        written = match[0]
        if match.re is EVERY or (bare(written) in ENGLISH and is_written_so(written, order)):
            yield *match.span(), "abbreviation"
    yield from _by_ending(order, known)


def _by_ending(order: str, known: Callable[[str], bool]) -> Iterator[tuple[int, int, str]]:
    import rjieba  # lazily: its dictionary takes 0.25 s

    for run in _RUN.finditer(order):
        start, place = run.start(), run.start()
        for word in rjieba.cut(run[0]):
            end = place + len(word)
            if (
                word in words.STOPS
                or word.isdigit()
                or (len(word) == 1 and word in "及和与或的后前时若行做查予在为是可等对从由将把被应")
            ):
                start = end
            text = order[start:end]
            if (words.ENDINGS.search(text) and text not in words.NO_TERMS and 2 < len(text) <= _LONGEST) or (
                len(text) > 2 and known(text)
            ):
                yield start, end, "term"
            place = end


def _inside(order: str, start: int, end: int) -> int:
    """Where a medicine's name begins: after the last word that is no part of it."""
    stops = [order.rfind(stop, start, end) + len(stop) for stop in words.STOPS if order.rfind(stop, start, end) >= 0]
    return max([start, *(each for each in stops if each < end - 1)])
