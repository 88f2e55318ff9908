"""MEDLINE text (.nbib, and .txt that begins with ``PMID-``), as PubMed's "Save" and "Send to" write it.

Rules: one record an article, with what ``pubmed.py`` takes from the XML of the same article: title, abstract with its
labelled sections as headings, publication types, MeSH descriptors, date, identifiers, links to retractions and
corrections. A record begins with its PMID; a tag has four characters and a hyphen, a line that begins with blanks
continues the one before. An article without a PMID or any text is a ``Fault``, as is a PMID that comes twice.

Not covered: authors, journals, places, references; the abstract in another language (``OAB``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from localmed.domain import message
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, once
from localmed.ingest.readers import articles, values
from localmed.ingest.readers.encoding import read_text

_LINE = re.compile(r"([A-Z]{2,4}) {0,2}- ?(.*)")
_LABEL = re.compile(r"(?:^|(?<=[.!?)%\d] ))([A-Z][A-Z0-9 &/,()-]{2,60}): ")
_PMID = re.compile(r"PMID: ?(\d+)")
_DATE = re.compile(r"(\d{4})(?: ([A-Z][a-z]{2})\b)?(?: (\d{1,2})\b)?")
_FALLBACKS = ("DEP", "EDAT", "CRDT")  # electronic publication, when PubMed got it


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """A record for each article of the file."""
    tagged = enumerate(_articles(read_text(path).removesuffix("\ufffd")), start=1)
    yield from once((_record(article, number) for number, article in tagged), "reader.pmid")


def _articles(text: str) -> Iterator[dict[str, list[str]]]:
    """The tags of each article with their values, continuation lines joined."""
    article: dict[str, list[str]] = defaultdict(list)
    tag = ""
    for line in text.split("\n"):
        if match := _LINE.fullmatch(line):
            tag = match[1]
            if tag == "PMID" and article:
                yield article
                article = defaultdict(list)
            article[tag].append(match[2].strip())
        elif line[:1] == " " and tag and line.strip():
            article[tag][-1] = f"{article[tag][-1]} {line.strip()}".strip()
    if article:
        yield article


def _record(article: dict[str, list[str]], number: int) -> SourceRecord | Fault:
    pmid = _first(article, "PMID")
    if not pmid.isdecimal():
        return Fault(message("reader.article", number=number), message("reader.no_pmid"))
    return articles.record(
        pmid=pmid,
        title=_first(article, "TI") or _first(article, "BTI") or _first(article, "TT"),
        abstract=tuple(_abstract(_first(article, "AB"))),
        edition=_date(article),
        identifiers=_identifiers(article),
        types=tuple(article["PT"]),
        mesh=tuple(dict.fromkeys(heading.partition("/")[0].strip("*") for heading in article["MH"])),
        links=tuple(_links(article)),
        languages=article["LA"],
    )


def _first(article: dict[str, list[str]], tag: str) -> str:
    return values.one_line(" ".join(article[tag][:1]))


def _abstract(text: str) -> Iterator[Block]:
    """The abstract's parts; labels count only where the first stands at its very beginning."""
    labels = list(_LABEL.finditer(text))
    if not labels or labels[0].start():
        if text:
            yield Block.of("paragraph", text)
        return
    ends = [*(label.start() for label in labels[1:]), len(text)]
    for label, end in zip(labels, ends, strict=True):
        yield Block.of("heading", label[1], 2)
        if part := text[label.end() : end].strip():
            yield Block.of("paragraph", part)


def _links(article: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    for tag, kind in values.vocabulary()["medline"].items():
        for reference in article[tag]:
            pmid = _PMID.search(reference)
            yield kind, f"pmid:{pmid[1]}" if pmid else ""


def _identifiers(article: dict[str, list[str]]) -> Iterator[str]:
    places = [*article["AID"], *article["LID"]]
    doi = next((place.removesuffix("[doi]").strip() for place in places if place.endswith("[doi]")), "")
    if doi:
        yield f"doi:{doi}"
    if pmc := _first(article, "PMC"):
        yield f"pmc:{pmc}"


def _date(article: dict[str, list[str]]) -> str:
    """``DP`` ("2019 Mar 5", "2019 Mar-Apr", "2019 Spring"), else the dates of PubMed itself."""
    if match := _DATE.match(_first(article, "DP")):
        return values.iso_date(match[1], match[2] or "", match[3] or "")
    for tag in _FALLBACKS:
        parts = re.match(r"(\d{4})[/ ]?(\d{2})?[/ ]?(\d{2})?", _first(article, tag))
        if parts and (date := values.iso_date(parts[1], parts[2] or "", parts[3] or "")):
            return date
    return ""
