"""Finds a statement word for word in a text: the only support that a rule can be certain of.

``find_verbatim`` needs one or more whole sentences: the rest of a sentence may deny or limit a part of it ("Do not |
give aspirin | unless ..."). A question, an item of a list (its heading may reverse it) and a line that continues
another do not count. Words, numbers and signs are compared in order; capitals, punctuation, line breaks, grouping
commas and numbers as English words make no difference; any other change of a word, number, sign or unit does.
``holds`` finds the words anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localmed.text.language import HAN, content_words, fold
from localmed.text.numbers import english

LEAST_WORDS = 2  # content words of a statement; "Pregnancy." as a sentence of its own states nothing
_SIGNLESS = re.escape(r""".,;:!?'"()[]{}*#_|•·…。，、；：！？“”‘’（）［］【】《》〈〉「」—–―""")
_TOKEN = re.compile(
    rf"[{HAN}]|(?P<grouped>\d{{1,3}}(?:,\d{{3}})+(?![\d,]))|\d+(?:[.,·]\d+)*|[^\W\d_{HAN}]+|(?P<minus>[-–−](?=\d))"
    rf"|[^\s\w{_SIGNLESS}-]"
)
_ITEM_CHARACTERS = 12  # before a sentence, in which the mark of a list's item stands
_STOP = re.compile(r"[.!?](?=$|[\s\"'”’)\]])|[。！？]")
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")
_ITEM = re.compile(r"\n\s*(?:[-*•–]|\(?\d{1,2}[.)、])\s*$")
_BEFORE_LIST = re.compile(r"[:：]\s*$")
_ABBREVIATED = frozenset(re.findall(r"\w+", "e g i vs al approx dr no nos fig tab ca cf st max min etc"))


@dataclass(frozen=True, slots=True)
class _Token:
    """A word, number, sign or Chinese character as it is compared, and where it stands."""

    text: str
    start: int
    end: int


def find_verbatim(text: str, statement: str, rows: bool = False) -> tuple[int, int] | None:
    """Where ``text`` says ``statement`` in whole sentences, ``None`` if nowhere; with ``rows`` its lines are sentences.

    Nothing is said by a statement of hardly a word or by one that asks.
    """
    words = [token.text for token in _tokens(statement)]
    if len(set(content_words(statement))) < LEAST_WORDS or statement.rstrip().endswith(("?", "？")):
        return None
    tokens = list(_tokens(text))
    for first, last in _runs([token.text for token in tokens], words):
        if _begins(text, tokens, first, rows) and _ends(text, tokens, last, rows):
            return tokens[first].start, _with_stop(text, tokens[last].end)
    return None


def holds(text: str, statement: str) -> bool:
    """Whether ``text`` has the words of ``statement`` in their order, anywhere: "5 mg" is not in "15 mg"."""
    words = [token.text for token in _tokens(statement)]
    return bool(words) and next(_runs([token.text for token in _tokens(text)], words), None) is not None


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        plain = "-" if match["minus"] else fold(match[0])
        plain = plain.replace(",", "") if match["grouped"] else plain
        yield _Token(str(english().get(plain, plain)), match.start(), match.end())


def _runs(tokens: Sequence[str], words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The first and last place of every stretch of ``tokens`` that is ``words``."""
    for first in range(len(tokens) - len(words) + 1):
        if tokens[first : first + len(words)] == words:
            yield first, first + len(words) - 1


def _begins(text: str, tokens: Sequence[_Token], at: int, rows: bool) -> bool:
    """Whether a sentence begins with the token at ``at``, and not in a list or in the middle of another."""
    before = tokens[at - 1] if at else _Token("", 0, 0)
    gap = text[before.end : tokens[at].start]
    if rows and "\n" in gap:
        return True
    listed = _ITEM.search(f"\n{text[: tokens[at].start]}"[-_ITEM_CHARACTERS:])
    return not listed and not text[tokens[at].start].islower() and (at == 0 or _stops(before, gap))


def _ends(text: str, tokens: Sequence[_Token], at: int, rows: bool) -> bool:
    """Whether a sentence that is no question ends with the token at ``at``."""
    gap = text[tokens[at].end : tokens[at + 1].start if at + 1 < len(tokens) else len(text)]
    stop = _STOP.search(gap)
    if stop and stop[0] in "?？":
        return False
    return at + 1 == len(tokens) or (rows and "\n" in gap) or _stops(tokens[at], gap)


def _stops(before: _Token, gap: str) -> bool:
    """Whether a sentence ends in the ``gap`` after a token: at a full stop, or at a paragraph's end before no list."""
    if _PARAGRAPH.search(gap) and not _BEFORE_LIST.search(_PARAGRAPH.split(gap)[0]):
        return True
    stop = _STOP.search(gap)
    return bool(stop and (stop[0] != "." or before.text not in _ABBREVIATED))


def _with_stop(text: str, end: int) -> int:
    """The end of a stretch with the full stop that follows it."""
    stop = re.compile(r"[.!。！]").match(text, end)
    return stop.end() if stop else end
