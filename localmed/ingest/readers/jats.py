"""Reads JATS and NLM full text (.nxml, .xml) of PubMed Central and publishers.

Rules: one record an article: title, abstracts and body with sections as headings, tables as rows with their headers,
captions, boxes, appendices, table notes. The key is the PMID, PMCID or DOI. The kind of article becomes PubMed's word
(``publication_types``), MeSH comes from a keyword group of that type, the date is the first of publication. References
and raised reference numbers are left out; raised figures stay raised. An article that is retracted by its kind or title
is ``withdrawn``.

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
from localmed.ingest.readers.pubmed import is_withdrawn
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
_DATES = ("epub", "electronic", "ppub", "print", "pub", "collection", "")


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """Yield a record for each article of the file, and faults."""
    articles = enumerate(elements(path, frozenset({"article"})), start=1)
    yield from once(_record(article, number) for number, article in articles)


def _record(article: Element, number: int) -> SourceRecord | Fault:
    where, meta = message("reader.article", number=number), article.find("front/article-meta")
    if meta is None:
        return Fault(where, message("reader.no_article_meta"))
    title_element = meta.find("title-group/article-title")
    title = "" if title_element is None else flat(_drop_references(title_element))
    identifiers = tuple(_identifiers(meta))
    parts: list[Block] = []
    for abstract in (*meta.iterfind("abstract"), *meta.iterfind("trans-abstract")):
        untitled = abstract.find("title") is None
        parts += [Block.of("heading", "Abstract", 1)] if untitled else []
        parts += markup.blocks_of(_drop_references(abstract), _VOCABULARY, int(untitled))
    for name in ("body", "back", "floats-group"):
        if (element := article.find(name)) is not None:
            parts += markup.blocks_of(_drop_references(element), _VOCABULARY)
    blocks = tuple(parts)
    key = identifiers[0].partition(":")[2] if identifiers else f"#{number}"
    if not any(block.kind != "heading" for block in blocks):
        if not title:
            return Fault(where, message("reader.no_title_no_text"))
        blocks = (Block.of("paragraph", title),)
    kind = publications.of_jats().get(article.get("article-type", "").lower(), "")
    kinds = tuple(dict.fromkeys(filter(None, ("Journal Article", kind))))
    groups = (
        group
        for group in meta.iterfind("kwd-group")
        if "mesh" in (group.get("kwd-group-type", "") + group.get("vocab", "")).lower()
    )
    withdrawn = is_withdrawn(kinds, (), title)
    return SourceRecord(
        key=key,
        title=title,
        blocks=blocks,
        edition=_date(meta),
        language=values.language(article.get("{http://www.w3.org/XML/1998/namespace}lang", "")),
        identifiers=identifiers,
        publication_types=kinds,
        mesh=tuple(word for group in groups for word in texts(group, "kwd")),
        relations=tuple(_relations(meta)),
        status="withdrawn" if withdrawn else "",
        notes=(message("reader.retracted"),) if withdrawn else (),
    )


def _drop_references(element: Element) -> Element:
    """Remove raised reference numbers, which would join the words and figures before them."""
    for parent in list(element.iter()):
        kept: Element | None = None
        for child in list(parent):
            if _is_raised_reference(child, name_of(parent) == "sup"):
                if kept is None:  # the words after the child stay in place
                    parent.text = (parent.text or "") + (child.tail or "")
                else:
                    kept.tail = (kept.tail or "") + (child.tail or "")
                parent.remove(child)
            else:
                kept = child
    return element


def _is_raised_reference(element: Element, raised: bool) -> bool:
    bibliographic = name_of(element) == "xref" and element.get("ref-type") == "bibr"
    inside = [child.get("ref-type") == "bibr" for child in element if name_of(child) == "xref"]
    only = name_of(element) == "sup" and bool(inside) and all(inside)
    return only or (bibliographic and (raised or any(name_of(child) == "sup" for child in element)))


def _identifiers(meta: Element) -> Iterator[str]:
    for scheme, kinds in (("pmid", ("pmid",)), ("pmc", ("pmc", "pmcid")), ("doi", ("doi",))):
        numbers = [text for kind in kinds for text in texts(meta, f"article-id[@pub-id-type='{kind}']")]
        for number in numbers[:1]:
            yield f"pmc:PMC{number.removeprefix('PMC')}" if scheme == "pmc" else f"{scheme}:{number}"


def _relations(meta: Element) -> Iterator[tuple[str, str]]:
    for article in meta.iterfind("related-article"):
        kind = article.get("related-article-type", "").replace("-", "_")
        target = article.get("{http://www.w3.org/1999/xlink}href", "")
        scheme = article.get("ext-link-type", "")
        if kind and target and scheme in ("doi", "pmid", "pubmed"):
            yield kind, f"{'pmid' if scheme == 'pubmed' else scheme}:{target}"


def _date(meta: Element) -> str:
    """The date of publication by the order of ``_DATES``, as precisely as known."""
    dates = {}
    for element in meta.iterfind("pub-date"):
        year, month, day = (next(iter(texts(element, name)), "") for name in ("year", "month", "day"))
        kind = element.get("pub-type") or element.get("publication-format") or ""
        dates[kind] = values.iso_date(year, month, day)
    return next(filter(None, [*(dates.get(kind) for kind in _DATES), *dates.values()]), "")
