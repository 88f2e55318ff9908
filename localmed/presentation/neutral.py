"""Text that comes from outside (documents, names, paths, patients) made safe to put on a terminal or a page.

A document's title may hold escape sequences that move the cursor, retitle the window or fill the clipboard, and
bidirectional controls that show "5 mg" where "50 mg" stands. Of what is shown no control character is left but the
newline, none of Unicode's bidirectional controls, and no separator that a terminal takes for a line's end.
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
    """``text`` without what a terminal or a browser would obey: blanks for tabs and odd line ends, newlines stay."""
    if text.isascii() and text.replace("\n", " ").isprintable():
        return text
    plain = _SEQUENCE.sub("", text.replace("\r\n", "\n"))
    return _CONTROLS.sub("", _BLANKS.sub(" ", plain))


def one_line(text: str) -> str:
    """``text`` neutralised, as one line."""
    return " ".join(neutral(text).split())


def escaped(json: str) -> str:
    """JSON text with every such character written as its escape: the same values, nothing that a terminal obeys."""
    return _OBEYED.sub(_escape, json)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    units = (code,) if code < 0x10000 else (0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF))
    return "".join(f"\\u{unit:04x}" for unit in units)


def words(message: Message | None, language: str) -> str:
    """``message`` in ``language``, neutralised, on one line; "" for none."""
    return one_line(render(message, language)) if message else ""
