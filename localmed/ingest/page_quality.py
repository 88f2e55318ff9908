"""Whether a page's own text can be used, or why the page needs OCR. Pure: no PDF library, no engine.

Rules: a page on which nothing is printed is blank and needs nothing. A page with an image or outlines and no text
needs OCR; so does one that an image covers while it holds little text (a stamp, a caption), and one whose text layer
is garbled: characters that no reader can make out, Chinese read in the wrong encoding, letters that make no words,
Chinese characters that no text uses. A page of figures alone is not judged by its letters.

Not covered: a text layer in sound words that are not those of the page, single garbled words in sound text, and the
pairs of letters of languages that are written in neither Latin nor Chinese script. A page of sequences of bases has the
letters of no word and is called garbled, so that nothing is thrown away for being called so (``pdf/page.py``).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from localmed.domain import Message, message
from localmed.ingest.readers.encoding import misread

NO_TEXT = message("ocr.no_text")
TOO_LITTLE = message("ocr.little_text")
GARBLED = message("ocr.garbled")
# Reasons to compare a text layer with the page as printed; OCR reads the page if they differ.
FOREIGN = message("ocr.foreign")
ODD = message("ocr.odd")
OVERPRINTED = message("ocr.overprinted")
UNTRUE = (GARBLED, FOREIGN, ODD, OVERPRINTED)  # a text layer that is not to be used
REASONS = (NO_TEXT, TOO_LITTLE, *UNTRUE)

# The thresholds were set on the text pages of a clinical guide, a three-column gazette and a Chinese guide (none may be
# routed to OCR), their scans, and their text garbled on purpose; the figures are in tests/benchmarks/RESULTS.md.
UNREADABLE = "�"
MOST_UNREADABLE = 0.3  # share of characters; a line of unmapped symbols stays under 0.03
FEW = 200  # characters over an image that covers the page: stamps and captions have fewer, pages of text ~2,000
ENOUGH_PAIRS = 150  # of letters, before they say anything: some 30 words
LEAST_COMMON_PAIRS = 0.3  # of them; pages of English have > 0.6, lists of genes > 0.4, shifted letters mostly < 0.25
ODD_PAIRS, ODD_SHARE = 15, 0.35  # of one line: pairs of letters that say something, and the share that are common
ODD_SYMBOLS, ODD_LETTERS = (
    0.2,
    8,
)  # the share of symbols that prose does without, and the least characters of such a line
ENOUGH_HAN = 50  # Chinese characters
LEAST_COMMON_HAN = 0.6  # of them; pages of Chinese have > 0.94, characters drawn at random < 0.4

# The 100 pairs of letters that English medical text uses most: 75 % of its pairs, ~13 % of shuffled letters.
_PAIRS = frozenset(
    re.findall(
        r"\w+",
        "th in he re on er an ti at es or is en al nd se ar ro te to om di of le it ed ne ma io ea me nt st ha ca "
        "as ic ve de si ng co pe ra ri li el lo ch ce ur ou ct ia us ll ta ns op sy ge ho ot pr ec os so nc no be "
        "la fo tr pl pa ac hi mp ss mo ol et il id ts rs wh ow rm ab ie fe na bl pt ly wi ut mi od",
    )
)
_SYMBOLS = re.compile(r"[!\"#$&*+<=>?@\\^`{|}~\[\]\ufffd]")
_LETTERS = re.compile(r"(?<![a-z0-9])[a-z]{4,}(?![a-z0-9])")  # neither units, abbreviations nor symbols of genes
_HAN = re.compile(r"[㐀-䶿一-鿿]")


def why_ocr(characters: int, garbled: bool, imaged: bool, blank: bool) -> Message | None:
    """Why a page with ``characters`` of text needs OCR: one of ``REASONS``, None if it does not.

    ``imaged``: an image covers most of it; ``blank``: there is no image and next to nothing is drawn.
    """
    if garbled:
        return GARBLED
    if not characters:
        return None if blank else NO_TEXT
    return TOO_LITTLE if imaged and characters < FEW else None


def is_garbled(texts: Sequence[str]) -> bool:
    """Whether the text of a page, given as its pieces, can be read by nobody."""
    if unreadable_share(texts) > MOST_UNREADABLE:
        return True
    text = " ".join(texts)
    return misread(text) or _no_words(text) or _odd_han(text)


def is_odd(line: str) -> bool:
    """Whether one line may come of a font without a usable map to characters; lists of symbols and genes may too."""
    characters = "".join(line.split())
    if len(characters) < ODD_LETTERS:
        return False
    if unreadable_share([line]) > 1 - ODD_SYMBOLS or "\ufffd" * 3 in line:
        return True
    share, pairs = common_pairs(line)
    return (pairs >= ODD_PAIRS and share < ODD_SHARE) or len(_SYMBOLS.findall(line)) > ODD_SYMBOLS * len(characters)


def unreadable_share(texts: Sequence[str]) -> float:
    """The share of characters that no reader can make out: replacement, private-use and unassigned ones."""
    characters = [character for text in texts for character in text if not character.isspace()]
    if not characters:
        return 0.0
    bad = sum(1 for one in characters if one == UNREADABLE or unicodedata.category(one) in {"Co", "Cn", "Cs"})
    return bad / len(characters)


def common_pairs(text: str) -> tuple[float, int]:
    """The share of neighbouring letters of Latin words that are a common pair, and how many pairs there are."""
    pairs = [first + second for word in _LETTERS.findall(text.casefold()) for first, second in pairwise(word)]
    return sum(pair in _PAIRS for pair in pairs) / max(1, len(pairs)), len(pairs)


def common_han(text: str) -> tuple[float, int]:
    """The share of Chinese characters that are among the common ones of mainland or Taiwan, and how many there are."""
    characters = _HAN.findall(text)
    return sum(map(_is_common, characters)) / max(1, len(characters)), len(characters)


def _no_words(text: str) -> bool:
    """Whether its letters stand in an order that no word has: a font that numbers its glyphs as it likes."""
    share, pairs = common_pairs(text)
    return pairs >= ENOUGH_PAIRS and share < LEAST_COMMON_PAIRS


def _odd_han(text: str) -> bool:
    share, characters = common_han(text)
    return characters >= ENOUGH_HAN and share < LEAST_COMMON_HAN


def _is_common(character: str) -> bool:
    """Level 1 of GB 2312 (3,755 characters) or of Big5 (5,401): the standards sort by use."""
    simplified, traditional = character.encode("gb2312", "ignore"), character.encode("big5", "ignore")
    return b"\xb0" <= simplified[:1] <= b"\xd7" or b"\xa4" <= traditional[:1] <= b"\xc6"
