"""Reads an answer to verify from a file: text, Markdown, JSON, or the output of ``localmed ask --json``.

JSON is an object with ``answer`` (the text) and optional ``question`` and ``sources``. A source is the text of a
reference, or an object: ``marker`` (else its number in the list), ``title``, ``pmid``, ``doi``, ``id`` (of a document
or passage of this library). A source's own text is ignored: only the library counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from localmed.answering.marked_text import REFERENCES
from localmed.domain.errors import InputError, LimitExceeded
from localmed.retrieval.studies import Reference
from localmed.text.language import clean

TEXT_BYTES = 2 * 2**20  # of one file; the longest answers have some 20 KiB, and JSON of ours brings its sources along


@dataclass(frozen=True, slots=True)
class VerifyInput:
    """An answer to ``question`` (may be ""), with sources named beside its list of references."""

    question: str = field(repr=False)
    text: str = field(repr=False)
    references: tuple[Reference, ...] = ()

    def cleaned(self) -> VerifyInput:
        """The same as every library takes it (see ``language.clean``)."""
        references = (
            Reference(
                clean(reference.marker),
                clean(reference.text),
                tuple(map(clean, reference.identifiers)),
                clean(reference.id),
            )
            for reference in self.references
        )
        return VerifyInput(clean(self.question), clean(self.text), tuple(references))


def read(data: bytes, question: str = "") -> VerifyInput:
    """The answer in ``data``; ``question`` takes precedence over the file's.

    Raise ``InputError`` for another format, ``LimitExceeded`` for too much text.
    """
    if len(data) > TEXT_BYTES:
        raise LimitExceeded("verify.too_big", most=TEXT_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("verify.no_utf8") from None
    if text.lstrip().startswith("{"):
        return of_object(_parsed(text), question)
    return VerifyInput(question, text)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("verify.no_json") from None


def of_object(value: Any, question: str = "") -> VerifyInput:
    """The answer of a JSON object; raise ``InputError`` without one."""
    if isinstance(value, Mapping) and isinstance(value.get("statements"), list):
        return _own(value, question)
    answer = value.get("answer") if isinstance(value, Mapping) else None
    if not isinstance(answer, str):
        raise InputError("verify.no_answer")
    sources = value.get("sources") or ()
    if not isinstance(sources, (list, tuple)):
        raise InputError("verify.no_sources")
    references = tuple(_reference(source, place) for place, source in enumerate(sources[:REFERENCES], 1))
    return VerifyInput(question or _text(value.get("question")), answer, references)


def _reference(source: Any, place: int) -> Reference:
    """One source; ``marker`` is its own, else its place."""
    if isinstance(source, str):
        return Reference(str(place), source)
    if not isinstance(source, Mapping):
        raise InputError("verify.source", number=place)
    schemes = (("pmid", _text(source.get("pmid"))), ("doi", _text(source.get("doi")).lower()))
    identifiers = tuple(f"{scheme}:{value.removeprefix(f'{scheme}:').strip()}" for scheme, value in schemes if value)
    marker = _text(source.get("marker")).strip("[] ") or str(place)
    return Reference(marker, _text(source.get("title")), identifiers, _text(source.get("id")))


def _own(value: Mapping[str, Any], question: str) -> VerifyInput:
    """An answer of ``ask --json``: sentences with markers, evidence by passage."""
    try:
        statements = [statement for statement in value["statements"] if not statement.get("withheld")]
        marked = [
            (str(statement["text"]), "".join(f"[{one['marker']}]" for one in statement["citations"]))
            for statement in statements
        ]
        names = tuple(Reference(str(source["marker"]), id=str(source["passage"]["id"])) for source in value["evidence"])
    except (KeyError, TypeError, AttributeError):
        raise InputError("verify.not_own") from None
    return VerifyInput(question or _text(value.get("question")), "\n".join(map(" ".join, marked)), names[:REFERENCES])


def _text(value: Any) -> str:
    """``value`` as text if it is a string or number (a PMID), else ""."""
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
