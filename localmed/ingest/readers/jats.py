"""JATS and NLM full text (.nxml, .xml), as PubMed Central and publishers give articles.

Rules: one record an article: title, abstracts and body with their sections as headings, tables as rows that carry their
headers, captions, boxes, appendices, table notes. The key is the article's PMID, PMCID or DOI. The kind of article
becomes PubMed's word for it (``publication_types``), MeSH is what a keyword group of that type holds, the date is the
first of publication. References and reference numbers that are raised are left out, raised figures stay raised.
A retracted article, by its kind or its title, is ``withdrawn``.

Not covered: authors and journals, formulas beyond their words, supplementary files, tables of the OASIS model (their
cells are read as text).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from localmed.domain import message
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, once
from localmed.ingest.readers import markup, values
from localmed.ingest.readers.markup import Vocabulary, elements, flat, name_of, texts
from localmed.ingest.readers.pubmed import withdrawn
from localmed.text import publications

_VOCABULARY = Vocabulary(
    skipped=frozenset(
        {"ref-list", "tex-math", "object-id", "permissions", "supplementary-material", "graphic", "media"}
        | {"inline-graphic", "kwd-group"}
    ),
    blocks=frozenset(
        {"p", "sec", "abstract", "trans-abstract", "body", "back", "list", "list-item", "def-list", "def-item", "def"}
        | {"term", "disp-quote", "disp-formula", "boxed-text", "table-wrap", "table-wrap-foot", "fig", "caption", "fn"}
        | {"app", "app-group", "ack", "notes", "glossary", "statement", "verse-group", "verse-line", "speech", "table"}
        | {"fn-group", "floats-group", "fig-group", "attrib", "tr", "td", "th", "row", "entry", "preformat"}
    ),
    headings={"title": 0},
    sections=frozenset({"sec", "app"}),
    labels=frozenset({"label"}),
)
_IDS = (("pmid", "pmid"), ("doi", "doi"), ("pmc", "pmc"), ("pmcid", "pmc"))
_DATES = ("epub", "electronic", "ppub", "print", "pub", "collection", "")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """A record for each article of the file."""
    yield from once(_record(article, number) for number, article in enumerate(elements(path, _ARTICLE), start=1))


_ARTICLE = frozenset({"article"})


def _record(article: Element, number: int) -> SourceRecord | Fault:
    where, meta = message("reader.article", number=number), article.find("front/article-meta")
    if meta is None:
        return Fault(where, message("reader.no_article_meta"))
    title_element = meta.find("title-group/article-title")
    title = "" if title_element is None else flat(_bare(title_element))
    identifiers = tuple(_identifiers(meta))
    blocks = tuple(_blocks(article, meta))
    key = identifiers[0].partition(":")[2] if identifiers else f"#{number}"
    if not any(block.kind != "heading" for block in blocks):
        if not title:
            return Fault(where, message("reader.no_title_no_text"))
        blocks = (Block.of("paragraph", title),)
    kinds = _kinds(article.get("article-type", ""))
    taken_back = withdrawn(kinds, (), title)
    return SourceRecord(
        key=key,
        title=title,
        blocks=blocks,
        edition=_date(meta),
        language=values.language(article.get("{http://www.w3.org/XML/1998/namespace}lang", "")),
        identifiers=identifiers,
        publication_types=kinds,
        mesh=tuple(_mesh(meta)),
        relations=tuple(_relations(meta)),
        status="withdrawn" if taken_back else "",
        notes=(message("reader.retracted"),) if taken_back else (),
    )


def _blocks(article: Element, meta: Element) -> Iterator[Block]:
    for abstract in (*meta.iterfind("abstract"), *meta.iterfind("trans-abstract")):
        if abstract.find("title") is None:
            yield Block.of("heading", "Abstract", 1)
        yield from markup.blocks_of(_bare(abstract), _VOCABULARY, 0 if abstract.find("title") is not None else 1)
    for part in ("body", "back", "floats-group"):
        if (element := article.find(part)) is not None:
            yield from markup.blocks_of(_bare(element), _VOCABULARY)


def _bare(element: Element) -> Element:
    """``element`` without raised reference numbers, which would stand at the words and figures before them."""
    for parent in list(element.iter()):
        kept: Element | None = None
        for child in list(parent):
            if _is_raised_reference(child, name_of(parent) == "sup"):
                _say(parent, kept, child.tail)
                parent.remove(child)
            else:
                kept = child
    return element


def _is_raised_reference(element: Element, raised: bool) -> bool:
    bibliographic = name_of(element) == "xref" and element.get("ref-type") == "bibr"
    inside = [child for child in element if name_of(child) == "xref"]
    only = (
        name_of(element) == "sup" and bool(inside) and all(reference.get("ref-type") == "bibr" for reference in inside)
    )
    return only or (bibliographic and (raised or any(name_of(child) == "sup" for child in element)))


def _say(parent: Element, before: Element | None, text: str | None) -> None:
    """Put the words after a removed child where it stood."""
    if before is None:
        parent.text = (parent.text or "") + (text or "")
    else:
        before.tail = (before.tail or "") + (text or "")


def _identifiers(meta: Element) -> Iterator[str]:
    numbers: dict[str, str] = {}
    for kind, scheme in _IDS:
        for text in texts(meta, f"article-id[@pub-id-type='{kind}']"):
            numbers.setdefault(scheme, text)
    for scheme in ("pmid", "pmc", "doi"):
        if scheme in numbers:
            number = numbers[scheme]
            yield f"pmc:PMC{number.removeprefix('PMC')}" if scheme == "pmc" else f"{scheme}:{number}"


def _kinds(kind: str) -> tuple[str, ...]:
    """PubMed's words for the kind of article; every article of a journal is one of its articles."""
    known = publications.of_jats().get(kind.lower(), "")
    return tuple(dict.fromkeys(filter(None, ("Journal Article", known))))


def _mesh(meta: Element) -> Iterator[str]:
    for group in meta.iterfind("kwd-group"):
        if "mesh" in (group.get("kwd-group-type", "") + group.get("vocab", "")).lower():
            yield from texts(group, "kwd")


def _relations(meta: Element) -> Iterator[tuple[str, str]]:
    """What this article says of others, such as the one that it corrects."""
    for article in meta.iterfind("related-article"):
        kind = article.get("related-article-type", "").replace("-", "_")
        target = article.get("{http://www.w3.org/1999/xlink}href", "")
        scheme = article.get("ext-link-type", "")
        if kind and target and scheme in ("doi", "pmid", "pubmed"):
            yield kind, f"{'pmid' if scheme == 'pubmed' else scheme}:{target}"


def _date(meta: Element) -> str:
    """The first date of publication, as precisely as known."""
    dates = {
        date_.get("pub-type") or date_.get("publication-format") or "": date_ for date_ in meta.iterfind("pub-date")
    }
    editions = [_iso(dates[kind]) for kind in _DATES if kind in dates] + [_iso(date_) for date_ in dates.values()]
    return next(filter(None, editions), "")


def _iso(element: Element) -> str:
    year, month, day = (next(iter(texts(element, name)), "") for name in ("year", "month", "day"))
    return values.iso_date(year, month, day)
