"""Makes text from outside (documents, names, paths, patients) safe to show on a terminal or a page.

A document's title may contain escape sequences that move the cursor, retitle the window or fill the clipboard, and
bidirectional controls that show "5 mg" for "50 mg". Removes control characters except newline, bidirectional controls
and Unicode line separators.
"""

from __future__ import annotations

import re

from localmed.domain import Message
from localmed.messages import render

# Escape sequences go as a whole: without its escape, "\x1b]0;title\x07" would still leave "]0;title" in the text.
_SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"  # OSC, DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"
)
_BLANKS = re.compile(r"[\t\v\f\x85\u2028\u2029]")
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f"  # C0 but the newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"  # interlinear marks, tags, lone surrogates
)
_OBEYED = re.compile(f"{_CONTROLS.pattern}|[\u2028\u2029]")


def neutral(text: str) -> str:
    """``text`` without control sequences; tabs and odd line ends become blanks, newlines stay."""
    if text.isascii() and text.replace("\n", " ").isprintable():
        return text
    plain = _SEQUENCE.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub("", _BLANKS.sub(" ", plain))


def one_line(text: str) -> str:
    """``text`` neutralised, as one line."""
    return " ".join(neutral(text).split())


def escaped(json: str) -> str:
    """JSON text with every control character escaped: the same values, safe on a terminal."""
    return _OBEYED.sub(_escape, json)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    units = (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))
    return "".join(f"\\u{unit:04x}" for unit in units)


def words(message: Message | None, language: str) -> str:
    """``message`` in ``language``, neutralised, on one line; "" for None."""
    return one_line(render(message, language)) if message else ""
