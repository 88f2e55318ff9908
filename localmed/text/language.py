"""Language detection, sentences and searchable words for English and Chinese.

Words are folded the same way when a passage is indexed and when a question is asked: Unicode NFKC, lower case, runs of
letters and digits, decimal numbers kept whole. Chinese has no spaces, so a run of Chinese characters becomes its
overlapping pairs (and, in the index only, its single characters), as Lucene's CJK analyser does: a drug name that no
dictionary knows is found all the same. English stemming and stop words are the lexical index's.

Covers English and Chinese; other languages in Latin script are handled as English.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise

HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff"
_HAN = re.compile(f"[{HAN}]")
_HAN_RUN = re.compile(f"[{HAN}]+")
_LATIN_WORD = re.compile(r"[a-z']+")
LONGEST_RUN = 3  # Chinese characters
_TOKEN = re.compile(f"([{HAN}]+)|(\\d+(?:[.]\\d+)+|[^\\W_{HAN}]+)")
_POSSESSIVE = re.compile(r"['’]s\b")
_MINOR_BREAK = re.compile(r"[;；,，、:：\s]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_PAIRS = (("（", "）"), ("(", ")"), ("“", "”"), ("《", "》"), ("【", "】"), ("「", "」"))
WINDOW = 4_000  # characters cut into sentences at a time; hardly a sentence has as many
# what sentencex joins: 。 before a number or a small letter ("pH"); between digits it stands for a decimal point
_JOINED = re.compile(r"(?<=[。！？])\s*(?=[a-z])|(?<=[^\d０-９][。！？])\s*(?=[\d０-９])")
_CHINESE_SHARE = 0.2  # of letters: a Chinese sentence full of drug names and units still has more

_CHINESE_FILLER = frozenset(
    re.findall(
        r"\S+",
        """
        什么 怎么 怎样 怎么样 怎么办 如何 哪些 哪里 哪个 哪种 多少 多久 多长 多大 多长时间 几楼 几天 几次
        是否 能否 可以 应该 应当 为什么 有没有 是不是 请问 我想 知道 了解 一下 关于 以及 或者 还是
        需要 时候 情况 下列 以下 以上 属于 包括
        """,
    )
)
_CHINESE_PARTICLES = frozenset(
    "的了在是于与和或及对为有中前后应可能会被把从到吗呢吧啊几多大小个时将要需我你他她它这那每"
)

_ENGLISH_FILLER = frozenset(
    re.findall(
        r"\w+",
        """
        a about an and any are as at be been but by can could did do does doing for from get had has have having he her
        hers him his how i if in into is it its itself just me more most my no nor not of off on once only or other our
        out over own please same she should so some such tell than that the their them then there these they this those
        through to too under until up very was we were what when where which while who whom why will with would you your
        """,
    )
)


def detect(text: str) -> str:
    """``"zh"`` if at least a fifth of the letters are Chinese characters, else ``"en"``."""
    chinese = len(_HAN.findall(text))
    if not chinese:
        return "en"
    letters = max(chinese, sum(character.isalpha() for character in text))  # rare characters are unknown to isalpha
    return "zh" if chinese / letters >= _CHINESE_SHARE else "en"


def sentences(text: str) -> list[tuple[int, int]]:
    """The sentences of ``text`` as ``(start, end)``, without surrounding blanks; a newline always ends one.

    ``sentencex`` (rules and abbreviation lists inside its wheel) decides; in doubt it joins rather than splits.
    """
    spans: list[tuple[int, int]] = []
    offset = 0
    for line in text.split("\n"):
        if line.strip():
            for start, end in _boundaries(line):
                spans.extend(_trimmed(text, offset + start, offset + end))
        offset += len(line) + 1
    return spans


def _boundaries(line: str) -> Iterator[tuple[int, int]]:
    """The sentences of ``line``, in windows: ``sentencex`` takes cubic time for some texts (quotation marks)."""
    import sentencex  # lazily: the command line's --help must not wait for it

    spoken, at = detect(line), 0
    while at < len(line):
        piece = line[at : at + WINDOW]
        spans = [(part["start_index"], part["end_index"]) for part in sentencex.get_sentence_boundaries(spoken, piece)]
        if at + len(piece) < len(line) and len(spans) > 1:
            spans.pop()  # it may go on beyond the window
        for start, end in spans:
            yield from _parted(line, at + start, at + end)
        at += spans[-1][1] if spans else len(piece)


def _parted(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A sentence, cut where a 。 stands before a number or "pH" ("立即停药。72小时后复查。"), not within brackets."""
    for border in _JOINED.finditer(line, start, end):
        if all(
            line.count(left, start, border.start()) == line.count(right, start, border.start())
            for left, right in _PAIRS
        ):
            yield start, border.end()
            start = border.end()
    yield start, end


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    left = start + len(piece) - len(piece.lstrip())
    right = end - len(piece) + len(piece.rstrip())
    if right > left:
        yield left, right


def break_point(text: str, start: int, limit: int) -> int:
    """Where to cut an over-long sentence: after the last minor break before ``limit``, else at ``limit``."""
    breaks = [match.end() for match in _MINOR_BREAK.finditer(text, start + (limit - start) // 2, limit)]
    return breaks[-1] if breaks else limit


def clean(text: str) -> str:
    """``text`` as every library takes it: half a character (lone surrogate) becomes U+FFFD, controls become blanks."""
    return _CONTROLS.sub(" ", text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))


def fold(text: str) -> str:
    """NFKC and lower case: full-width and half-width, ligatures and capitals no longer differ."""
    return unicodedata.normalize("NFKC", text).lower()


def aligned(text: str) -> str:
    """``text`` with a blank for each character that ``fold`` would lengthen, join or drop: places in it folded are
    places in ``text``.
    """
    if text.isascii():
        return text
    plain = "".join(" " if unicodedata.combining(one) or len(fold(one)) != 1 else one for one in text)
    return plain if len(fold(plain)) == len(plain) else "".join(one if one.isascii() else " " for one in plain)


def words(text: str, for_query: bool = False) -> list[str]:
    """The searchable words of ``text`` in order (see the module's docstring); any text gives a list, maybe empty."""
    searchable: list[str] = []
    for chinese, other in _TOKEN.findall(_POSSESSIVE.sub("", fold(text))):
        if other:
            searchable.append(other)
            continue
        pairs = [chinese[i : i + 2] for i in range(len(chinese) - 1)]
        if not for_query or not pairs:
            searchable.extend(chinese)
        searchable.extend(pairs)
    return searchable


def question_words(question: str) -> list[str]:
    """The words of a question that carry its subject: no stop words, no asking; all of them if nothing is left.

    Chinese is cut into words first (``rjieba``: a dictionary inside its wheel), so that no pair stands across a word's
    border: such pairs occur in no passage and would make an answerable question look foreign.
    """
    content = [part for word in content_words(question) for part in words(word, for_query=True)]
    return content or words(question, for_query=True)


def content_words(text: str) -> list[str]:
    """The words of ``text`` without stop words and asking, in order; Chinese ones whole, not in pairs. Maybe empty."""
    content: list[str] = []
    for chinese, other in _TOKEN.findall(_POSSESSIVE.sub("", fold(text))):
        if other:
            content += [other] if other not in _ENGLISH_FILLER else []
        else:
            content += _chinese_words(chinese)
    return content


def _without_copula(word: str) -> tuple[str, ...]:
    """``word`` in parts where the dictionary has joined a 是 to it: 窗是 is 窗 and 是."""
    joined = len(word) > 1 and word.endswith("是") and word not in _CHINESE_FILLER
    return (word[:-1], word[-1]) if joined else (word,)


def _chinese_words(text: str) -> list[str]:
    """The words of ``text`` that are not filler.

    Single characters are particles and units, unless several stand together: then they are mostly a name that the
    dictionary cuts up (metformin comes as 二甲 | 双 | 胍), and are taken as one word.
    """
    import rjieba  # lazily: its dictionary takes 0.25 s

    content: list[str] = []
    singles = ""
    for word in [*(part for cut in rjieba.cut(text) for part in _without_copula(cut)), ""]:
        if len(word) == 1 and word not in _CHINESE_PARTICLES:
            singles += word
            continue
        content += [part for part in (singles, word) if len(part) > 1 and part not in _CHINESE_FILLER]
        singles = ""
    return content


def terms(text: str, language: str) -> frozenset[str]:
    """What a likeness weighs: the words of an English text and their pairs; runs of one to three Chinese characters."""
    if language == "en":
        words = _LATIN_WORD.findall(text.lower().replace("’", "'"))
        return frozenset(words) | set(map(" ".join, pairwise(words)))
    return frozenset(
        run[start : start + length]
        for run in _HAN_RUN.findall(text)
        for length in range(1, LONGEST_RUN + 1)
        for start in range(len(run) - length + 1)
    )
