"""Evidence as a chat model is shown it, and statements as they are read back from one.

Quoted material stands between marks and cannot close them; the model's statements get citations minted here: of each
passage they name, the sentence that shares most words with them, so that opening the citation shows the right place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from localmed.answering.roles import words
from localmed.domain import Citation, Evidence, Origin, Statement
from localmed.domain.errors import Rejected
from localmed.text import language

BEARING = 0.5  # of the words that the best source's sentence shares with a statement: with fewer one is not cited
LETTERS = 8  # a shorter text (a number, a name) has no language of its own


def between_marks(name: str, text: str) -> str:
    """``text`` as quoted material called ``name``; marks inside it are broken up."""
    inside = text.replace("<<<", "< < <").replace(">>>", "> > >")
    return f"<<<{name}\n{inside}\n>>>"


def quoted(name: str, text: str, language: str, **values: str) -> str:
    """``text`` between marks, under what ``name`` is called in ``language``."""
    return between_marks(words("quoted_names", language)[name].format(**values), text)


def evidence_text(evidence: Sequence[Evidence], language: str) -> str:
    """Each piece of evidence under its marker, with title, headings, and by what one that differs is weighed."""
    called = words("kinds", language)

    def shown(piece: Evidence) -> str:
        kind, date = called[piece.kind.value or "none"], piece.edition or called["undated"]
        return quoted("source", piece.passage.in_context, language, number=piece.marker, kind=kind, date=date)

    return "\n".join(map(shown, evidence))


def object_of(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an object with just these properties, all of them required."""
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
    """A sentence that a model wrote, as ``GENERATED``; raise ``Rejected`` for another language or an unknown marker."""
    known, said = {piece.marker: piece for piece in evidence}, in_language(" ".join(text.split()), expected)
    if not markers or set(markers) - set(known):
        raise Rejected("agents.unknown_source")
    bearing = _bearing([known[name] for name in dict.fromkeys(markers)], said)
    return Statement(said, tuple(citation(piece, said) for piece in bearing), Origin.GENERATED)


def citation(evidence: Evidence, text: str) -> Citation:
    """The sentence of ``evidence`` that shares the largest part of the words of ``text``; of equals the first."""
    source, words = evidence.passage.text, set(language.words(text))
    spans = language.sentences(source) or [(0, len(source))]
    return evidence.citation(*max(spans, key=lambda span: len(words & set(language.words(source[slice(*span)])))))


def _bearing(evidence: Sequence[Evidence], text: str) -> list[Evidence]:
    """Of the sources named for ``text`` those that bear on it: a small model names every source it was shown."""
    words = set(language.words(text))
    shares = [len(words & set(language.words(citation(piece, text).quote))) for piece in evidence]
    return [piece for piece, share in zip(evidence, shares, strict=True) if share >= BEARING * max(shares)]


def unverified(sentences: Sequence[str], expected: str) -> tuple[Statement, ...]:
    """What a model says from its own knowledge: without citations, and labelled so."""
    texts = [" ".join(sentence.split()) for sentence in sentences]
    return tuple(Statement(in_language(text, expected), (), Origin.UNVERIFIED) for text in texts if text)


def in_language(text: str, expected: str) -> str:
    """``text``; raise ``Rejected`` if it is empty or in the other language."""
    if not text:
        raise Rejected("agents.nothing_said")
    if sum(character.isalpha() for character in text) >= LETTERS and language.detect(text) != expected:
        raise Rejected("agents.other_language")
    return text
