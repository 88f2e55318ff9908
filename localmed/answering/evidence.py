"""Formats evidence for a chat model, and reads statements of its replies.

Quoted material stands between marks and cannot close them. A model's statement cites, in each passage it names, the
sentence that shares most words with it, so that the citation opens the right place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localmed.answering.roles import words
from localmed.domain import Citation, Evidence, Origin, Statement
from localmed.domain.errors import Rejected
from localmed.text import language

BEARING = 0.5  # a source is cited if it shares at least this part of the words that the best source shares
LETTERS = 8  # a shorter text (a number, a name) has no language


def between_marks(name: str, text: str) -> str:
    """``text`` as quoted material with a name; breaks up marks inside it."""
    inside = text.replace("<<<", "< < <").replace(">>>", "> > >")
    return f"<<<{name}\n{inside}\n>>>"


def quoted(name: str, text: str, language: str, **values: str) -> str:
    """``text`` between marks, with ``name`` translated to ``language``."""
    return between_marks(words("quoted_names", language)[name].format(**values), text)


def evidence_text(evidence: Sequence[Evidence], language: str) -> str:
    """Each piece of evidence with marker, title, headings, kind and date."""
    called = words("kinds", language)

    def shown(piece: Evidence) -> str:
        kind, date = called[piece.kind.value or "none"], piece.edition or called["undated"]
        return quoted("source", piece.passage.in_context, language, number=piece.marker, kind=kind, date=date)

    return "\n".join(map(shown, evidence))


def object_of(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def texts_schema(name: str, most: int, characters: int) -> Mapping[str, Any]:
    """The schema of an object with one list of at most ``most`` texts."""
    item = {"type": "string", "minLength": 1, "maxLength": characters}
    return object_of({name: {"type": "array", "items": item, "maxItems": most}})


def cited(text: str, markers: Sequence[str], evidence: Sequence[Evidence], expected: str) -> Statement:
    """A model's sentence as a statement; raise ``Rejected`` for another language or an unknown marker."""
    known, said = {piece.marker: piece for piece in evidence}, in_language(" ".join(text.split()), expected)
    if not markers or set(markers) - set(known):
        raise Rejected("agents.unknown_source")
    bearing = _bearing([known[name] for name in dict.fromkeys(markers)], said)
    return Statement(said, tuple(citation(piece, said) for piece in bearing), Origin.GENERATED)


def citation(evidence: Evidence, text: str) -> Citation:
    """The first sentence of ``evidence`` that shares most words with ``text``."""
    source, words = evidence.passage.text, set(language.words(text))
    spans = language.sentences(source) or [(0, len(source))]
    return evidence.citation(*max(spans, key=lambda span: len(words & set(language.words(source[slice(*span)])))))


def _bearing(evidence: Sequence[Evidence], text: str) -> list[Evidence]:
    """The relevant sources of ``text``: a small model names every source it was shown."""
    words = set(language.words(text))
    shares = [len(words & set(language.words(citation(piece, text).quote))) for piece in evidence]
    return [piece for piece, share in zip(evidence, shares, strict=True) if share >= BEARING * max(shares)]


def unverified(sentences: Sequence[str], expected: str) -> tuple[Statement, ...]:
    """A model's own knowledge as statements without citations, labelled unverified."""
    texts = [" ".join(sentence.split()) for sentence in sentences]
    return tuple(Statement(in_language(text, expected), (), Origin.UNVERIFIED) for text in texts if text)


def in_language(text: str, expected: str) -> str:
    """``text``; raise ``Rejected`` if it is empty or in the other language."""
    if not text:
        raise Rejected("agents.nothing_said")
    if sum(character.isalpha() for character in text) >= LETTERS and language.detect(text) != expected:
        raise Rejected("agents.other_language")
    return text
