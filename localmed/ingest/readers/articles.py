"""An article as PubMed describes it, whatever format it came in: one record, and whether it may answer.

A paper that is retracted or withdrawn says so in its publication types, in a link or in its title; each alone makes it
``withdrawn``, so that it cannot answer. An article without an abstract is its title, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from localmed.domain import Message, message
from localmed.ingest.parsed import Block, Fault, SourceRecord

_RETRACTED_TYPES = frozenset({"Retracted Publication", "Withdrawn Publication"})
_RETRACTED_LINKS = frozenset({"retraction_in", "retracted_and_republished_in"})
_RETRACTED_TITLE = re.compile(r"(retracted|withdrawn)( article)?\s*:", re.IGNORECASE)
_NOTED_LINKS = {
    "partial_retraction_in": message("reader.partly_retracted"),
    "expression_of_concern_in": message("reader.concern"),
    "erratum_in": message("reader.corrected"),
    "update_in": message("reader.updated"),
}
_NO_OTHER_LANGUAGE = frozenset({"eng", "und", "mul"})


@dataclass(frozen=True, slots=True)
class Article:
    """What a reader found. ``links`` are (kind, identifier), "" where PubMed names none; ``languages`` its codes."""

    pmid: str
    title: str
    abstract: tuple[Block, ...]
    edition: str
    identifiers: tuple[str, ...]
    types: tuple[str, ...]
    mesh: tuple[str, ...]
    links: tuple[tuple[str, str], ...]
    languages: frozenset[str]


def withdrawn(types: tuple[str, ...], links: tuple[tuple[str, str], ...], title: str) -> bool:
    """Whether its publication types, its links or its title say that a paper is retracted or withdrawn."""
    linked = any(kind in _RETRACTED_LINKS for kind, _ in links)
    return linked or not _RETRACTED_TYPES.isdisjoint(types) or bool(_RETRACTED_TITLE.match(title))


def record(article: Article) -> SourceRecord | Fault:
    """The record of ``article``; a fault where it has no text."""
    if not (article.title or article.abstract):
        return Fault(message("reader.pmid", key=article.pmid), message("reader.no_title_no_abstract"))
    taken_back = withdrawn(article.types, article.links, article.title)
    return SourceRecord(
        key=article.pmid,
        title=article.title,
        blocks=article.abstract or (Block.of("paragraph", article.title),),
        edition=article.edition,
        language="zh" if _mostly_chinese(article) else "en",
        identifiers=(f"pmid:{article.pmid}", *article.identifiers),
        publication_types=article.types,
        mesh=article.mesh,
        relations=tuple((kind, target) for kind, target in article.links if target),
        status="withdrawn" if taken_back else "",
        notes=tuple(_notes(article, taken_back)),
    )


def _notes(article: Article, taken_back: bool) -> Iterator[Message]:
    if taken_back:
        yield message("reader.retracted")
    if not article.abstract:
        yield message("reader.no_abstract")
    kinds = {kind for kind, _ in article.links}
    yield from (note for kind, note in _NOTED_LINKS.items() if kind in kinds)
    if languages := article.languages - _NO_OTHER_LANGUAGE:
        yield message("reader.other_language", languages=tuple(sorted(languages)))


def _mostly_chinese(article: Article) -> bool:
    """Whether more than a quarter of the characters are Chinese: titles and abstracts in English have next to none."""
    text = article.title + "".join(line.text for block in article.abstract for line in block.lines)
    return sum("\u3400" <= character <= "\u9fff" for character in text) > len(text) / 4
