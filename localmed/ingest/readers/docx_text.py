"""The words of one Word paragraph: what a reader of the printed page would see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from localmed.domain import Message, message
from localmed.ingest.readers.values import superscript

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"

DELETED = frozenset({W + "del", W + "moveFrom"})
UNREAD = DELETED | {_MC + "Fallback"}
_ELSEWHERE = frozenset({W + "txbxContent", W + "pPr", W + "instrText", W + "delText"})
_BLANKS = frozenset({W + "tab", W + "br", W + "cr", W + "ptab"})
_LITERAL = {W + "noBreakHyphen": "-", W + "softHyphen": ""}


class Words:
    """Counts what is not read as it stands."""

    def __init__(self) -> None:
        self.hidden = 0
        self.changes = 0

    def notes(self) -> Iterator[Message]:
        """What a librarian must know of it."""
        if self.changes:
            yield message("reader.tracked_changes", count=self.changes)
        if self.hidden:
            yield message("reader.hidden_text", count=self.hidden)


def paragraph_text(paragraph: Any, words: Words) -> str:
    """The text of ``paragraph`` without that of text boxes in it."""
    return "".join(_texts(paragraph, words))


def _texts(parent: Any, words: Words) -> Iterator[str]:
    for element in parent:
        tag = element.tag
        if tag in DELETED or tag == W + "ins" or tag == W + "moveTo":
            words.changes += 1
        if tag in UNREAD or tag in _ELSEWHERE:
            continue
        if tag == W + "r":
            yield _run(element, words)
        elif tag in (W + "t", _M + "t"):
            yield element.text or ""
        elif tag in _BLANKS:
            yield " "
        elif tag == W + "sym":
            yield _symbol(element)
        elif tag in _LITERAL:
            yield _LITERAL[tag]
        elif isinstance(tag, str):
            yield from _texts(element, words)


def _run(run: Any, words: Words) -> str:
    properties = run.find(W + "rPr")
    text = "".join(_texts(run, words))
    if properties is None:
        return text
    if _on(properties.find(W + "vanish")):
        words.hidden += bool(text.strip())
        return ""
    raised = properties.find(W + "vertAlign")
    return superscript(text) if raised is not None and raised.get(W + "val") == "superscript" else text


def _on(switch: Any) -> bool:
    return switch is not None and switch.get(W + "val", "true") not in ("0", "false", "off")


def _symbol(element: Any) -> str:
    """A character of a symbol font: most stand in the private area, where the Symbol font's own code is the rest."""
    try:
        code = int(element.get(W + "char", ""), 16)
    except ValueError:
        return ""
    if 0xF000 <= code <= 0xF0FF:
        return _SYMBOLS.get(code - 0xF000, "\ufffd")
    return chr(code) if code <= 0x10FFFF else "\ufffd"


# The Symbol font's code -> Unicode, for what medical texts use; any other becomes U+FFFD rather than a wrong sign.
_SYMBOLS = {
    0x61: "α", 0x62: "β", 0x63: "χ", 0x64: "δ", 0x65: "ε", 0x67: "γ", 0x6B: "κ", 0x6C: "λ", 0x6D: "μ", 0x70: "π",
    0x73: "σ", 0x77: "ω", 0x44: "Δ", 0x57: "Ω", 0x53: "Σ", 0xA3: "≤", 0xB3: "≥", 0xB0: "°", 0xB1: "±", 0xB4: "×",
    0xB8: "÷", 0xB9: "≠", 0xBB: "≈", 0xA5: "∞", 0xB7: "•", 0xAC: "←", 0xAD: "↑", 0xAE: "→", 0xAF: "↓", 0xD6: "√",
}  # fmt: skip
