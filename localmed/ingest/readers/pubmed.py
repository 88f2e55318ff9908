"""Reads PubMed files: ``PubmedArticleSet`` XML, plain or gzipped (baseline, updates, exports), and MEDLINE text.

Rules: one record an article, keyed by its PMID: title, abstract with its labels as headings, publication types, MeSH
descriptors, date of publication as precisely as known, links to retractions, corrections and comments. A retraction in
the publication types, a link or the title makes a record ``withdrawn``, so that it cannot answer. An article without an
abstract is its title, with a note. An article without a PMID or text is a ``Fault``, and so is a repeated PMID.

PubMed translates titles and abstracts, so the record's language is that of its text, and a note names the article's.
With the option ``versions = "latest"`` each PMID of a ``DeleteCitation`` list is a withdrawn record without text that
replaces an earlier file's; otherwise the list is one fault, because a reader sees one file only.

MEDLINE text (.nbib, and .txt that begins with ``PMID-``), as PubMed's "Save" and "Send to" write it, gives the same
records: an article begins with its PMID, a tag has four characters and a hyphen, and a line that begins with blanks
continues the one before.

Not covered: authors, journals, references, full text, abstracts in another language (``OtherAbstract``, ``OAB``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

from localmed.domain import Message, message
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord, named, once
from localmed.ingest.readers import values
from localmed.ingest.readers.encoding import read_text
from localmed.ingest.readers.markup import elements, flat, texts

# --- articles of both formats -----------------------------------------------------------------------------------------

_RETRACTED_TYPES = frozenset({"Retracted Publication", "Withdrawn Publication"})
_RETRACTED_LINKS = frozenset({"retraction_in", "retracted_and_republished_in"})
_RETRACTED_TITLE = re.compile(r"(retracted|withdrawn)( article)?\s*:", re.IGNORECASE)
_NOTED_LINKS = {
    "partial_retraction_in": message("reader.partly_retracted"),
    "expression_of_concern_in": message("reader.concern"),
    "erratum_in": message("reader.corrected"),
    "update_in": message("reader.updated"),
}
_NO_OTHER_LANGUAGE = frozenset({"en", "und", "mul"})


def is_withdrawn(types: tuple[str, ...], links: tuple[tuple[str, str], ...], title: str) -> bool:
    """Whether publication types, links or title say that a paper is retracted or withdrawn."""
    linked = any(kind in _RETRACTED_LINKS for kind, _ in links)
    return linked or not _RETRACTED_TYPES.isdisjoint(types) or bool(_RETRACTED_TITLE.match(title))


def _make_record(
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
    """Make the record of an article, or a fault without text.

    ``links`` are (kind, identifier or ""); ``languages`` are PubMed's codes.
    """
    if not (title or abstract):
        return Fault(message("reader.pmid", key=pmid), message("reader.no_title_no_abstract"))
    withdrawn = is_withdrawn(types, links, title)
    notes = [message("reader.retracted")] if withdrawn else []
    if not abstract:
        notes.append(message("reader.no_abstract"))
    kinds = {kind for kind, _ in links}
    notes += [note for kind, note in _NOTED_LINKS.items() if kind in kinds]
    if others := {code for code in languages if values.language(code) not in _NO_OTHER_LANGUAGE}:
        notes.append(message("reader.other_language", languages=tuple(sorted(others))))
    text = title + "".join(line.text for block in abstract for line in block.lines)
    chinese = sum("\u3400" <= character <= "\u9fff" for character in text) > len(text) / 4  # English has next to none
    return SourceRecord(
        key=pmid,
        title=title,
        blocks=abstract or (Block.of("paragraph", title),),
        edition=edition,
        language="zh" if chinese else "en",
        identifiers=(f"pmid:{pmid}", *identifiers),
        publication_types=types,
        mesh=mesh,
        relations=tuple((kind, target) for kind, target in links if target),
        status="withdrawn" if withdrawn else "",
        notes=tuple(notes),
    )


_ARTICLES = frozenset({"PubmedArticle", "PubmedBookArticle", "DeleteCitation"})
_DELETED = message("reader.deleted")
_UNTITLED = frozenset({"", "[Not Available].", "[Not Available]"})

# Places of the date of publication, best first: journal issue, electronic article, book, arrival at PubMed.
_DATES = (
    "MedlineCitation/Article/Journal/JournalIssue/PubDate",
    "MedlineCitation/Article/ArticleDate",
    "BookDocument/ContributionDate",
    "BookDocument/Book/PubDate",
    "PubmedData/History/PubMedPubDate[@PubStatus='pubmed']",
    "PubmedData/History/PubMedPubDate[@PubStatus='entrez']",
)
_CITATIONS = ("MedlineCitation", "BookDocument")
_TITLES = ("Article/ArticleTitle", "ArticleTitle", "Article/VernacularTitle", "VernacularTitle", "Book/BookTitle")

# MEDLINE text.
_TAGGED = re.compile(r"([A-Z]{2,4}) {0,2}- ?(.*)")
_LABEL = re.compile(r"(?:^|(?<=[.!?)%\d] ))([A-Z][A-Z0-9 &/,()-]{2,60}): ")
_PMID = re.compile(r"PMID: ?(\d+)")
_TAGGED_DATE = re.compile(r"(\d{4})(?: ([A-Z][a-z]{2})\b)?(?: (\d{1,2})\b)?")
_TAGGED_DATES = ("DEP", "EDAT", "CRDT")  # electronic publication, arrival at PubMed


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """Yield a record for each article and each deletion, and faults."""
    yield from once(_items(path, mapping.options.get("versions") == "latest"), "reader.pmid")


def _items(path: Path, latest: bool) -> Iterator[SourceRecord | Fault]:
    for number, article in enumerate(elements(path, _ARTICLES), start=1):
        if article.tag != "DeleteCitation":
            yield _record(article, message("reader.article", number=number))
            continue
        pmids = texts(article, "PMID")
        if not latest:
            yield Fault(named("DeleteCitation"), message("reader.pubmed_deleted", count=len(pmids)))
            continue
        for pmid in pmids:
            ids, title = (f"pmid:{pmid}",), f"PMID {pmid}"
            yield SourceRecord(pmid, title, (), language="en", identifiers=ids, status="withdrawn", notes=(_DELETED,))


def _record(article: Element, where: Message) -> SourceRecord | Fault:
    citation = next((element for path in _CITATIONS if (element := article.find(path)) is not None), None)
    pmid = "" if citation is None else flat(citation.find("PMID"))
    if citation is None or not pmid.isdecimal():
        return Fault(where, message("reader.no_pmid"))
    titles = (flat(citation.find(path)) for path in _TITLES)
    return _make_record(
        pmid=pmid,
        title=next((title for title in titles if title not in _UNTITLED), ""),
        abstract=tuple(_abstract(citation)),
        edition=_date(article),
        identifiers=_identifiers(article),
        types=(*texts(citation, ".//PublicationTypeList/PublicationType"), *texts(citation, "PublicationType")),
        mesh=texts(citation, "MeshHeadingList/MeshHeading/DescriptorName"),
        links=tuple(_links(citation)),
        languages=(*texts(citation, "Article/Language"), *texts(citation, "Language")),
    )


def _abstract(citation: Element) -> Iterator[Block]:
    for part in (*citation.iterfind("Article/Abstract/AbstractText"), *citation.iterfind("Abstract/AbstractText")):
        text = flat(part)
        label = values.one_line(part.get("Label", ""))
        if text and label and label != "UNLABELLED":
            yield Block.of("heading", label, 2)
        if text:
            yield Block.of("paragraph", text)


def _links(citation: Element) -> Iterator[tuple[str, str]]:
    """Links from and to other articles, as (``retraction_in``, PMID or "")."""
    for link in citation.iterfind("CommentsCorrectionsList/CommentsCorrections"):
        name = link.get("RefType", "").replace("RetractedandRep", "RetractedAndRep")  # PubMed omits one capital
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        pmid = flat(link.find("PMID"))
        if kind and kind != "cites":
            yield kind, f"pmid:{pmid}" if pmid else ""


def _identifiers(article: Element) -> Iterator[str]:
    """DOI and PMC number, each once, without those of references."""
    identifiers = {
        "doi": (
            *texts(article, "PubmedData/ArticleIdList/ArticleId[@IdType='doi']"),
            *texts(article, "PubmedBookData/ArticleIdList/ArticleId[@IdType='doi']"),
            *texts(article, "MedlineCitation/Article/ELocationID[@EIdType='doi']"),
        ),
        "pmc": texts(article, "PubmedData/ArticleIdList/ArticleId[@IdType='pmc']"),
    }
    yield from (f"{scheme}:{numbers[0]}" for scheme, numbers in identifiers.items() if numbers)


def _date(article: Element) -> str:
    """The best date; the beginning of a range in words ("1998 Dec-1999 Jan"), the year of a season."""
    for element in (element for path in _DATES for element in article.iterfind(path)):
        year, month, day = (flat(element.find(name)) for name in ("Year", "Month", "Day"))
        words = re.search(r"(\d{4})(?: ([A-Z][a-z]{2})\b)?", flat(element.find("MedlineDate")))
        if words and not year:
            year, month, day = words[1], words[2] or "", ""
        if date := values.iso_date(year, month, day):
            return date
    return ""


# --- MEDLINE text ----------------------------------------------------------------------------------------------------


def read_medline(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """Yield a record for each article of a MEDLINE text file, and faults."""
    tagged = enumerate(_tagged_articles(read_text(path).removesuffix("\ufffd")), start=1)
    yield from once((_tagged_record(article, number) for number, article in tagged), "reader.pmid")


def _tagged_articles(text: str) -> Iterator[dict[str, list[str]]]:
    """The tags of each article with their values, continuation lines joined."""
    article: dict[str, list[str]] = defaultdict(list)
    tag = ""
    for line in text.split("\n"):
        if match := _TAGGED.fullmatch(line):
            tag = match[1]
            if tag == "PMID" and article:
                yield article
                article = defaultdict(list)
            article[tag].append(match[2].strip())
        elif line[:1] == " " and tag and line.strip():
            article[tag][-1] = f"{article[tag][-1]} {line.strip()}".strip()
    if article:
        yield article


def _tagged_record(article: dict[str, list[str]], number: int) -> SourceRecord | Fault:
    pmid = _first(article, "PMID")
    if not pmid.isdecimal():
        return Fault(message("reader.article", number=number), message("reader.no_pmid"))
    links = [
        (kind, _PMID.search(reference))
        for tag, kind in values.vocabulary()["medline"].items()
        for reference in article[tag]
    ]
    doi = next((place for place in (*article["AID"], *article["LID"]) if place.endswith("[doi]")), "")
    numbers = {"doi": doi.removesuffix("[doi]").strip(), "pmc": _first(article, "PMC")}
    return _make_record(
        pmid=pmid,
        title=_first(article, "TI") or _first(article, "BTI") or _first(article, "TT"),
        abstract=tuple(_tagged_abstract(_first(article, "AB"))),
        edition=_tagged_date(article),
        identifiers=(f"{scheme}:{number}" for scheme, number in numbers.items() if number),
        types=tuple(article["PT"]),
        mesh=tuple(dict.fromkeys(heading.partition("/")[0].strip("*") for heading in article["MH"])),
        links=tuple((kind, f"pmid:{target[1]}" if target else "") for kind, target in links),
        languages=article["LA"],
    )


def _first(article: dict[str, list[str]], tag: str) -> str:
    return values.one_line(" ".join(article[tag][:1]))


def _tagged_abstract(text: str) -> Iterator[Block]:
    """The abstract's parts; labels count only if the abstract begins with one."""
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


def _tagged_date(article: dict[str, list[str]]) -> str:
    """``DP`` ("2019 Mar 5", "2019 Mar-Apr", "2019 Spring"), else the dates of PubMed itself."""
    if match := _TAGGED_DATE.match(_first(article, "DP")):
        return values.iso_date(match[1], match[2] or "", match[3] or "")
    for tag in _TAGGED_DATES:
        parts = re.match(r"(\d{4})[/ ]?(\d{2})?[/ ]?(\d{2})?", _first(article, tag))
        if parts and (date := values.iso_date(parts[1], parts[2] or "", parts[3] or "")):
            return date
    return ""
