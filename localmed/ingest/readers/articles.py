"""An article as PubMed describes it, whatever format it came in: one record, and whether it may answer.

A paper that is retracted or withdrawn says so in its publication types, in a link or in its title; each alone makes it
``withdrawn``, so that it cannot answer. An article without an abstract is its title, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from localmed.domain import message
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


def withdrawn(types: tuple[str, ...], links: tuple[tuple[str, str], ...], title: str) -> bool:
    """Whether its publication types, its links or its title say that a paper is retracted or withdrawn."""
    linked = any(kind in _RETRACTED_LINKS for kind, _ in links)
    return linked or not _RETRACTED_TYPES.isdisjoint(types) or bool(_RETRACTED_TITLE.match(title))


def record(
    pmid: str,
    title: str,
    abstract: tuple[Block, ...],
    edition: str,
    identifiers: Iterable[str],
    types: tuple[str, ...],
    mesh: tuple[str, ...],
    links: tuple[tuple[str, str], ...],
    languages: Iterable[str],
) -> SourceRecord | Fault:
    """The record of an article; a fault where it has no text.

    ``links`` are (kind, identifier), "" where PubMed names none; ``languages`` are its codes.
    """
    if not (title or abstract):
        return Fault(message("reader.pmid", key=pmid), message("reader.no_title_no_abstract"))
    taken_back = withdrawn(types, links, title)
    notes = [message("reader.retracted")] if taken_back else []
    if not abstract:
        notes.append(message("reader.no_abstract"))
    kinds = {kind for kind, _ in links}
    notes += [note for kind, note in _NOTED_LINKS.items() if kind in kinds]
    if others := set(languages) - _NO_OTHER_LANGUAGE:
        notes.append(message("reader.other_language", languages=tuple(sorted(others))))
    return SourceRecord(
        key=pmid,
        title=title,
        blocks=abstract or (Block.of("paragraph", title),),
        edition=edition,
        language="zh" if _mostly_chinese(title, abstract) else "en",
        identifiers=(f"pmid:{pmid}", *identifiers),
        publication_types=types,
        mesh=mesh,
        relations=tuple((kind, target) for kind, target in links if target),
        status="withdrawn" if taken_back else "",
        notes=tuple(notes),
    )


def _mostly_chinese(title: str, abstract: tuple[Block, ...]) -> bool:
    """Whether more than a quarter of the characters are Chinese: titles and abstracts in English have next to none."""
    text = title + "".join(line.text for block in abstract for line in block.lines)
    return sum("\u3400" <= character <= "\u9fff" for character in text) > len(text) / 4
