"""Decodes bytes to text: finds the encoding, refuses nonsense, removes invisible characters.

Rules, first match: a byte-order mark; UTF-16 of Western text; strict UTF-8; the declared encoding; UTF-16 of Chinese
text; GB18030 (includes GBK and GB2312) if the characters are common Chinese; charset-normalizer's best guess, decoded
strictly. Mojibake and text with too many replacement, unassigned or control characters are refused, never repaired: a
wrong dose in garbled text must not be found. A file that ends inside a UTF-8 character keeps U+FFFD at its end.

Not covered: single garbled words in sound text; Central European one-byte encodings (read as Windows-1252); Big5 and
Japanese encodings (left to charset-normalizer).
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from localmed.domain.errors import InputError, reason

_MOST_NONSENSE = 0.02  # of all characters replaced, unassigned or private; sound files have none
_MOST_CONTROLS = 0.1  # of all characters; they are removed, and text with strays has ~5 %
_MOST_RUNS = 0.2  # of visible characters in runs of accented Latin: Vietnamese has ~0.1, garbled Chinese above 0.8
_LEAST_CHINESE = 0.7  # of double-byte characters in GB 2312's range: Chinese has > 0.95, misread Western text < 0.3
_LEAST_PLAIN = 0.9  # of UTF-16 characters in ASCII, Chinese or its punctuation
_SAMPLE = 65_536  # bytes or characters of the statistical tests
_ENOUGH = 8  # Chinese characters needed for a judgement
_MOST_BACK = 0.3  # of Chinese characters that undoing a wrong reading recovers: sound text < 0.17, garbled > 0.55

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# One-byte encodings of Latin script: English with a few accents fits all of them, and a guess among them is chance
# ("Naďve" for "Naïve"). English documents are saved in Windows-1252.
_LATIN = frozenset(
    {"cp1250", "cp1254", "cp1257", "cp1258", "latin_1", "mac_roman", "mac_latin2"}
    | {f"iso8859_{part}" for part in (2, 3, 4, 9, 10, 13, 14, 15, 16)}
)
# The encodings that browsers use for these names, because files contain characters beyond them.
_WIDER = dict.fromkeys(("gb2312", "gbk", "gb-2312"), "gb18030") | {"big5": "big5hkscs", "big-5": "big5hkscs"}
_WIDER |= dict.fromkeys(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"), "cp1252")

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours of terminals
_BREAKS = re.compile(r"\r\n?|[\x85\u2028]")
_PAGE_BREAKS = re.compile("[\x0b\x0c\u2029]")
# Control, soft hyphen, zero-width, bidirectional, invisible operators, annotations, variation selectors, tags: they can
# hide words from a reader or a search, and some have been used to hide instructions.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)

# Latin-1 and the characters of Windows-1252 in its gap: misread double-byte text.
_RUNS = re.compile("[\u00a0-\u00ff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\x80-\x9f]{2,}")
_CHINESE = re.compile("[\u3400-\u9fff]")
_PLAIN = re.compile("[\t\n\r -~\u4e00-\u9fff\u3000-\u303f\uff01-\uff5e\u2010-\u2030]")
_HIGH_PAIR = re.compile(rb"[\x81-\xfe][\x40-\xfe]")
_GB2312_PAIR = re.compile(rb"[\xa1-\xa9\xb0-\xf7][\xa1-\xfe]")
_NONSENSE = ("Cn", "Co", "Cs")  # Unicode's categories: unassigned, private use, surrogate
# Characters beyond those of Chinese and Western text; only these are looked up one by one.
_DOUBTFUL = re.compile("[^\t\n\r\x0b\x0c -~\u00a0-\u024f\u0370-\u052f\u2000-\u27bf\u3000-\u9fff\uff00-\uffee]")


def decode(data: bytes, declared: str = "") -> str:
    """Decode and clean ``data``; raise ``InputError`` if its encoding is unknown or its text is nonsense.

    ``declared`` is the encoding that the file names; it is tried if the bytes are no Unicode.
    """
    text = _decode_raw(data, declared)
    counts = Counter(map(unicodedata.category, _DOUBTFUL.findall(_ESCAPES.sub("", text))))
    nonsense = text.count("\ufffd") + sum(counts[category] for category in _NONSENSE)
    most = _MOST_NONSENSE * len(text) + 1  # one for a character cut off at the end
    if nonsense > most or counts["Cc"] > _MOST_CONTROLS * len(text):
        raise InputError("reader.unreadable")
    if is_misread(text):
        raise InputError("reader.garbled")
    return clean(text)


def read_text(path: Path, declared: str = "") -> str:
    """``decode`` for a file; the error names it."""
    try:
        return text_of(path, path.read_bytes(), declared)
    except OSError as error:
        raise InputError("reader.cannot_read", name=path.name, reason=reason(error)) from None


def text_of(path: Path, data: bytes, declared: str = "") -> str:
    """``decode`` for the bytes of a file; the error names it."""
    try:
        return decode(data, declared)
    except InputError as error:
        raise error.within(path.name) from None


def clean(text: str) -> str:
    """Replace every line end by ``\\n`` and a page break by a blank line, and remove invisible characters."""
    if text.isascii() and text.isprintable():
        return text
    text = _PAGE_BREAKS.sub("\n\n", _BREAKS.sub("\n", _ESCAPES.sub("", text)))
    return _UNSEEN.sub("", text)


def bounded_lines(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Yield the lines of ``file``; the rest of a line longer than ``most`` bytes is skipped."""
    while line := file.readline(most + 1):
        rest = line
        while len(rest) > most and not rest.endswith(b"\n"):
            rest = file.readline(most + 1)
        yield line


def _decode_raw(data: bytes, declared: str) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if encoding := _utf16_by_zeros(data):
        return data.decode(encoding, "replace")
    with suppress(UnicodeDecodeError):
        decoder = codecs.getincrementaldecoder("utf-8")()
        return decoder.decode(data) + ("\ufffd" if decoder.getstate()[0] else "")  # a last character may be cut off
    if name := declared.lower().replace("_", "-"):
        with suppress(UnicodeDecodeError, LookupError):
            return data.decode(_WIDER.get(name, name))
    encoding = _utf16_by_look(data) or _gb18030(data)
    if not encoding:
        import charset_normalizer  # here: it takes 40 ms to import and few files need it

        best = charset_normalizer.from_bytes(data[:_SAMPLE]).best()
        encoding = best.encoding if best else "utf-8"
        encoding = "cp1252" if encoding in _LATIN else encoding
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise InputError("reader.unreadable") from None


def _utf16_by_zeros(data: bytes) -> str:
    """Detect UTF-16 of Western text, in which every second byte is zero."""
    sample = data[:_SAMPLE]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if len(data) % 2 or half == 0 or max(even, odd) < half / 2 or min(even, odd) > half / 20:
        return ""
    return "utf-16-be" if even > odd else "utf-16-le"


def _utf16_by_look(data: bytes) -> str:
    """Detect UTF-16 of Chinese text: in one byte order it is nearly all Chinese and ASCII."""
    if len(data) % 2:
        return ""
    shares = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        sample = data[:_SAMPLE].decode(encoding, "replace")
        shares[encoding] = len(_PLAIN.findall(sample)) / max(1, len(sample))
    best = max(shares, key=lambda encoding: shares[encoding])
    return best if shares[best] >= _LEAST_PLAIN else ""


def _gb18030(data: bytes) -> str:
    try:
        data.decode("gb18030")
    except UnicodeDecodeError:
        return ""
    pairs = _HIGH_PAIR.findall(data[:_SAMPLE])
    common = sum(1 for pair in pairs if _GB2312_PAIR.fullmatch(pair))
    return "gb18030" if common >= _LEAST_CHINESE * len(pairs) else ""


def is_misread(text: str) -> bool:
    """Whether ``text`` was decoded in a wrong encoding and saved."""
    sample = text[:_SAMPLE]
    visible = len(sample) - sum(map(sample.count, " \t\r\n"))
    if sum(len(run) for run in _RUNS.findall(sample)) > _MOST_RUNS * visible:
        return True
    # UTF-8 read as GBK, written back, yields two Chinese characters for three
    back = sample.encode("gb18030", "ignore").decode("utf-8", "ignore")
    chinese = len(_CHINESE.findall(sample))
    as_gbk = chinese >= _ENOUGH and len(_CHINESE.findall(back)) > _MOST_BACK * chinese
    return "锟斤拷" in sample or as_gbk  # the former is U+FFFD in UTF-8, read as GBK
