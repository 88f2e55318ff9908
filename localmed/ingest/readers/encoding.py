"""Bytes to text: finds the encoding, refuses nonsense, removes characters nobody can see.

Rules: a byte-order mark wins; then strict UTF-8; UTF-16 without a mark where the bytes show it; GB18030 (which holds
GBK and GB2312) where the characters are those that Chinese text uses; else charset-normalizer's best guess, decoded
strictly. What decodes but makes no sense is refused: text read in the wrong encoding and saved again (mojibake), or
too many replacement, unassigned or control characters. A wrong dose in garbled text must not be
searched, so nothing is repaired.

A file that ends inside a UTF-8 character keeps U+FFFD at its end; the readers say so in a note.

Not covered: single garbled words in sound text; Central European one-byte encodings, which are taken for Windows-1252;
Big5 and Japanese encodings are left to charset-normalizer.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from localmed.domain.errors import InputError, reason

_MOST_NONSENSE = 0.02  # of all characters replaced, unassigned or private; sound files have none
_MOST_CONTROLS = 0.1  # of all characters; they are removed, and text with strays among its words has ~5 %
_MOST_RUNS = 0.2  # of visible characters in runs of accented Latin: Vietnamese has ~0.1, garbled Chinese above 0.8
_LEAST_CHINESE = 0.7  # of double-byte characters from GB 2312's range: Chinese has > 0.95, Western text read so < 0.3
_LEAST_PLAIN = 0.9  # of UTF-16 characters in ASCII, Chinese or its punctuation
_SAMPLE = 65_536  # bytes or characters looked at by the statistical tests
_ENOUGH = 8  # Chinese characters before they say anything about their encoding
_MOST_BACK = 0.3  # of Chinese characters found again by undoing a wrong reading: sound text < 0.17, garbled > 0.55

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# One-byte encodings of Latin script: a page of English with a few accents fits all of them, and the guess among them is
# chance ("Naďve" for "Naïve"). Windows-1252 is what English documents are saved in.
_LATIN = frozenset(
    {"cp1250", "cp1254", "cp1257", "cp1258", "latin_1", "mac_roman", "mac_latin2"}
    | {f"iso8859_{part}" for part in (2, 3, 4, 9, 10, 13, 14, 15, 16)}
)
# What browsers take these names for: files use characters beyond what the names say.
_WIDER = dict.fromkeys(("gb2312", "gbk", "gb-2312"), "gb18030") | {"big5": "big5hkscs", "big-5": "big5hkscs"}
_WIDER |= dict.fromkeys(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii"), "cp1252")

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # what terminals take for colours
_BREAKS = re.compile(r"\r\n?|[\x85\u2028]")
_PAGE_BREAKS = re.compile("[\x0b\x0c\u2029]")
# Control, soft hyphen, zero-width, bidirectional, invisible operators, annotations, variation selectors, tags: all
# can hide words from a reader or from a search, and some have been used to hide instructions from a reader.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff\ud800-\udfff]"
)

# Latin-1 and the characters that Windows-1252 puts in its gap: what double-byte text turns into.
_RUNS = re.compile("[\u00a0-\u00ff€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ\x80-\x9f]{2,}")
_CHINESE = re.compile("[\u3400-\u9fff]")
_PLAIN = re.compile("[\t\n\r -~\u4e00-\u9fff\u3000-\u303f\uff01-\uff5e\u2010-\u2030]")
_HIGH_PAIR = re.compile(rb"[\x81-\xfe][\x40-\xfe]")
_GB2312_PAIR = re.compile(rb"[\xa1-\xa9\xb0-\xf7][\xa1-\xfe]")
_NONSENSE = ("Cn", "Co", "Cs")  # Unicode's categories: unassigned, private use, surrogate
# Only characters that could be nonsense are looked up one by one; what Chinese and Western text uses is not.
_DOUBTFUL = re.compile("[^\t\n\r\x0b\x0c -~\u00a0-\u024f\u0370-\u052f\u2000-\u27bf\u3000-\u9fff\uff00-\uffee]")


def decode(data: bytes, declared: str = "") -> str:
    """The text of ``data``, cleaned; raise ``InputError`` where it cannot be told or makes no sense.

    ``declared`` is the encoding that the file names itself; it is tried where the bytes are no Unicode.
    """
    text = _decoded(data, declared)
    if not _readable(text):
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
    """``text`` with ``\\n`` for every kind of line end, a blank line for a page break, and nothing invisible."""
    if text.isascii() and text.isprintable():
        return text
    text = _PAGE_BREAKS.sub("\n\n", _BREAKS.sub("\n", _ESCAPES.sub("", text)))
    return _UNSEEN.sub("", text)


def bounded_lines(file: BinaryIO, most: int) -> Iterator[bytes]:
    """Lines of ``file``; of one longer than ``most`` bytes only the beginning, the rest is passed over."""
    while line := file.readline(most + 1):
        rest = line
        while len(rest) > most and not rest.endswith(b"\n"):
            rest = file.readline(most + 1)
        yield line


def _decoded(data: bytes, declared: str = "") -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    if encoding := _utf16_by_zeros(data):
        return data.decode(encoding, "replace")
    if (text := _utf8(data)) is not None:
        return text
    if (text := _declared(data, declared)) is not None:
        return text
    encoding = _utf16_by_look(data) or _gb18030(data) or _guessed(data)
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        raise InputError("reader.unreadable") from None


def _declared(data: bytes, declared: str) -> str | None:
    """``data`` in the encoding that its file names; None where it names none that is known or fits."""
    name = declared.lower().replace("_", "-")
    try:
        return data.decode(_WIDER.get(name, name)) if name else None
    except (UnicodeDecodeError, LookupError):
        return None


def _utf8(data: bytes) -> str | None:
    """Strict UTF-8, but for a last character that is cut off; that becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None
    return text + "\ufffd" if decoder.getstate()[0] else text


def _utf16_by_zeros(data: bytes) -> str:
    """UTF-16 of Western text: every second byte is zero, always the same one of the two."""
    sample = data[:_SAMPLE]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if len(data) % 2 or half == 0 or max(even, odd) < half / 2 or min(even, odd) > half / 20:
        return ""
    return "utf-16-be" if even > odd else "utf-16-le"


def _utf16_by_look(data: bytes) -> str:
    """UTF-16 of Chinese text: read in the right byte order it is nearly all Chinese and ASCII."""
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


def _guessed(data: bytes) -> str:
    import charset_normalizer  # here: it takes 40 ms to import and few files come this far

    best = charset_normalizer.from_bytes(data[:_SAMPLE]).best()
    guess = best.encoding if best else "utf-8"
    return "cp1252" if guess in _LATIN else guess


def _readable(text: str) -> bool:
    counts = Counter(map(unicodedata.category, _DOUBTFUL.findall(_ESCAPES.sub("", text))))
    nonsense = text.count("\ufffd") + sum(counts[category] for category in _NONSENSE)
    most = _MOST_NONSENSE * len(text) + 1  # one for a character cut off at the end
    return nonsense <= most and counts["Cc"] <= _MOST_CONTROLS * len(text)


def is_misread(text: str) -> bool:
    """Whether ``text`` was read in a wrong encoding before it came here."""
    sample = text[:_SAMPLE]
    visible = len(sample) - sum(map(sample.count, " \t\r\n"))
    if sum(len(run) for run in _RUNS.findall(sample)) > _MOST_RUNS * visible:
        return True
    return "锟斤拷" in sample or _is_utf8_as_gbk(sample)  # the former is U+FFFD in UTF-8, read as GBK


def _is_utf8_as_gbk(text: str) -> bool:
    """Whether ``text`` is UTF-8 that somebody read as GBK: written back, it yields two Chinese characters for three."""
    chinese = len(_CHINESE.findall(text))
    back = text.encode("gb18030", "ignore").decode("utf-8", "ignore")
    return chinese >= _ENOUGH and len(_CHINESE.findall(back)) > _MOST_BACK * chinese
