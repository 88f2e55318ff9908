"""PubMed: ``PubmedArticleSet`` XML, plain or gzipped, as the baseline, the update files and exports hold it.

Rules: one record an article, keyed by its PMID: title, abstract with its labelled sections as headings, publication
types, MeSH descriptors, date of publication as precisely as known, links to retractions, corrections and comments. A
paper that is retracted or withdrawn says so in its publication types, in a link or in its title; each alone makes it
``withdrawn``, so that it cannot answer. An article without an abstract is its title, with a note. One without a PMID or
without any text is a ``Fault``, and so is a PMID that comes twice in a file.

Titles and abstracts of articles in other languages are PubMed's English translations, so the record's language is that
of its text and a note names the article's own. Each PMID of a ``DeleteCitation`` list is a withdrawn record without
text where the option ``versions`` is ``"latest"``, so that it takes the place of what an earlier file brought; else the
list is one fault, for a reader sees one file and cannot remove what another one brought.

MEDLINE text (``read_medline``: .nbib, and .txt that begins with ``PMID-``), as PubMed's "Save" and "Send to" write it,
gives the same records. There an article begins with its PMID; a tag has four characters and a hyphen, a line that
begins with blanks continues the one before.

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

# --- an article, whatever format it came in ---------------------------------------------------------------------------

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
    if others := {code for code in languages if values.language(code) not in _NO_OTHER_LANGUAGE}:
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


_ARTICLES = frozenset({"PubmedArticle", "PubmedBookArticle", "DeleteCitation"})
_DELETED = message("reader.deleted")
_UNTITLED = frozenset({"", "[Not Available].", "[Not Available]"})

# Where the date of publication stands, best first: journal issue, electronic article, book, then when PubMed got it.
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
_TAGGED_DATES = ("DEP", "EDAT", "CRDT")  # electronic publication, when PubMed got it


def read(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:
    """A record for each article and each deletion; faults for those that cannot be used."""
    yield from once(_items(path, mapping.options.get("versions") == "latest"), "reader.pmid")


def _items(path: Path, latest: bool) -> Iterator[SourceRecord | Fault]:
    for number, article in enumerate(elements(path, _ARTICLES), start=1):
        if article.tag != "DeleteCitation":
            yield _record(article, message("reader.article", number=number))
        elif latest:
            yield from map(_deleted, texts(article, "PMID"))
        else:
            count = len(texts(article, "PMID"))
            yield Fault(named("DeleteCitation"), message("reader.pubmed_deleted", count=count))


def _deleted(pmid: str) -> SourceRecord:
    """What stands for a record that PubMed has taken back."""
    title = f"PMID {pmid}"
    return SourceRecord(
        pmid, title, (), language="en", identifiers=(f"pmid:{pmid}",), status="withdrawn", notes=(_DELETED,)
    )


def _record(article: Element, where: Message) -> SourceRecord | Fault:
    citation = next((element for path in _CITATIONS if (element := article.find(path)) is not None), None)
    pmid = "" if citation is None else flat(citation.find("PMID"))
    if citation is None or not pmid.isdecimal():
        return Fault(where, message("reader.no_pmid"))
    return record(
        pmid=pmid,
        title=_title(citation),
        abstract=tuple(_abstract(citation)),
        edition=_date(article),
        identifiers=_identifiers(article),
        types=(*texts(citation, ".//PublicationTypeList/PublicationType"), *texts(citation, "PublicationType")),
        mesh=texts(citation, "MeshHeadingList/MeshHeading/DescriptorName"),
        links=tuple(_links(citation)),
        languages=(*texts(citation, "Article/Language"), *texts(citation, "Language")),
    )


def _title(citation: Element) -> str:
    titles = (flat(citation.find(path)) for path in _TITLES)
    return next((title for title in titles if title not in _UNTITLED), "")


def _abstract(citation: Element) -> Iterator[Block]:
    """The abstract's parts, each with its label as a heading before it."""
    for part in (*citation.iterfind("Article/Abstract/AbstractText"), *citation.iterfind("Abstract/AbstractText")):
        text = flat(part)
        label = values.one_line(part.get("Label", ""))
        if text and label and label != "UNLABELLED":
            yield Block.of("heading", label, 2)
        if text:
            yield Block.of("paragraph", text)


def _links(citation: Element) -> Iterator[tuple[str, str]]:
    """What other articles say of this one and it of them; the target is "" where PubMed names no PMID."""
    for link in citation.iterfind("CommentsCorrectionsList/CommentsCorrections"):
        kind = _snake_case(link.get("RefType", ""))
        pmid = flat(link.find("PMID"))
        if kind and kind != "cites":
            yield kind, f"pmid:{pmid}" if pmid else ""


def _snake_case(name: str) -> str:
    """``RetractionIn`` as ``retraction_in``; PubMed writes the one name with "and" inside without its capital."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.replace("RetractedandRep", "RetractedAndRep")).lower()


def _identifiers(article: Element) -> Iterator[str]:
    """DOI and PMC number, each once; the lists inside references are other articles' and are not looked at."""
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
    for path in _DATES:
        for element in article.iterfind(path):
            if date := _date_of(element):
                return date
    return ""


def _date_of(element: Element) -> str:
    """The date in ``element``; of a range in words ("1998 Dec-1999 Jan") its beginning, of a season its year."""
    year, month, day = (flat(element.find(name)) for name in ("Year", "Month", "Day"))
    if year:
        return values.iso_date(year, month, day)
    words = re.search(r"(\d{4})(?: ([A-Z][a-z]{2})\b)?", flat(element.find("MedlineDate")))
    return values.iso_date(words[1], words[2] or "") if words else ""


# --- MEDLINE text ----------------------------------------------------------------------------------------------------


def read_medline(path: Path, mapping: FieldMapping) -> Iterator[SourceRecord | Fault]:  # noqa: ARG001 - every reader's signature
    """A record for each article of the file."""
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
    return record(
        pmid=pmid,
        title=_first(article, "TI") or _first(article, "BTI") or _first(article, "TT"),
        abstract=tuple(_tagged_abstract(_first(article, "AB"))),
        edition=_tagged_date(article),
        identifiers=_tagged_identifiers(article),
        types=tuple(article["PT"]),
        mesh=tuple(dict.fromkeys(heading.partition("/")[0].strip("*") for heading in article["MH"])),
        links=tuple(_tagged_links(article)),
        languages=article["LA"],
    )


def _first(article: dict[str, list[str]], tag: str) -> str:
    return values.one_line(" ".join(article[tag][:1]))


def _tagged_abstract(text: str) -> Iterator[Block]:
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


def _tagged_links(article: dict[str, list[str]]) -> Iterator[tuple[str, str]]:
    for tag, kind in values.vocabulary()["medline"].items():
        for reference in article[tag]:
            pmid = _PMID.search(reference)
            yield kind, f"pmid:{pmid[1]}" if pmid else ""


def _tagged_identifiers(article: dict[str, list[str]]) -> Iterator[str]:
    places = [*article["AID"], *article["LID"]]
    doi = next((place.removesuffix("[doi]").strip() for place in places if place.endswith("[doi]")), "")
    if doi:
        yield f"doi:{doi}"
    if pmc := _first(article, "PMC"):
        yield f"pmc:{pmc}"


def _tagged_date(article: dict[str, list[str]]) -> str:
    """``DP`` ("2019 Mar 5", "2019 Mar-Apr", "2019 Spring"), else the dates of PubMed itself."""
    if match := _TAGGED_DATE.match(_first(article, "DP")):
        return values.iso_date(match[1], match[2] or "", match[3] or "")
    for tag in _TAGGED_DATES:
        parts = re.match(r"(\d{4})[/ ]?(\d{2})?[/ ]?(\d{2})?", _first(article, tag))
        if parts and (date := values.iso_date(parts[1], parts[2] or "", parts[3] or "")):
            return date
    return ""
