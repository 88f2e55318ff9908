"""HTML, EPUB, any XML through a manifest, JATS and MEDLINE text, on files made here."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from localmed.domain.errors import InputError
from localmed.ingest import readers
from localmed.ingest.parsed import SourceRecord
from tests.ingest.readers.reading import one, read, shape, written
from tests.words import pattern, said, words

PAGE = """<!DOCTYPE html><html lang="zh-CN"><head><meta charset="{charset}"><title>脓毒症</title>
<meta property="article:published_time" content="2025-03-04T08:00:00Z"><script>var dose = 1;</script></head>
<body><nav><a>首页</a></nav><main><h1>脓毒症指南</h1><p>一小时内给抗生素。<br>血小板低于100×10<sup>9</sup>/L。</p>
<p style="display: none">看不见</p><ul><li>补液</li><li>升压</li></ul>
<table><caption>剂量</caption><tr><th>药物</th><th colspan="2">剂量</th></tr>
<tr><td rowspan="2">头孢</td><td>1g</td><td>2g</td></tr><tr><td>3g</td></tr></table>
<table><tr><td>排版用的<b>格子</b></td></tr></table>
</main><footer>版权</footer></body></html>"""


# --- HTML and EPUB ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("charset", ["utf-8", "gb2312", "gb18030", "utf-16"])
def test_html_golden_in_every_encoding(tmp_path: Path, charset: str) -> None:
    record = one(written(tmp_path / "page.html", PAGE.format(charset=charset).encode(charset)))
    assert (record.title, record.language, record.edition) == ("脓毒症", "zh", "2025-03-04")
    assert words(record.notes) == ("only the main part of the page was read",)
    assert shape(record) == [
        ("heading", 1, "脓毒症指南"),
        ("paragraph", 0, "一小时内给抗生素。|血小板低于100×10⁹/L。"),
        ("paragraph", 0, "补液"),
        ("paragraph", 0, "升压"),
        ("paragraph", 0, "剂量"),
        ("row", 0, "药物：头孢；剂量：1g；剂量：2g"),
        ("row", 0, "药物：头孢；剂量：3g"),
        ("paragraph", 0, "排版用的格子"),
    ]


def test_big5_is_read_where_it_is_declared(tmp_path: Path) -> None:
    text = "高血壓患者應當限制食鹽，每日攝入量不超過五克。醫生須告知病人並記錄血壓。"
    page = f'<meta http-equiv="Content-Type" content="text/html; charset=big5"><p>{text}</p>'
    assert shape(one(written(tmp_path / "page.htm", page.encode("big5")))) == [("paragraph", 0, text)]


def test_html_never_loses_what_is_nested_deeply(tmp_path: Path) -> None:
    path = tmp_path / "deep.html"
    path.write_text("<div>" * 300 + "deep" + "</div>" * 300 + "<p>after</p>")
    assert [text for _, _, text in shape(one(path))] == ["deep", "after"]
    path.write_text("<div>" * 3000 + "deep" + "</div>" * 3000 + "<p>after</p>")
    with pytest.raises((InputError, RecursionError)):  # the child tells of the latter in words of its own
        read(path)
    path.write_text("<html><script>document.write('x')</script></html>")
    with pytest.raises(InputError, match="contains no text"):
        read(path)


def epub(path: Path, **more: str) -> Path:
    chapter = "<html xmlns='http://www.w3.org/1999/xhtml'><head><title>x</title></head><body><h1>{}</h1><p>{}</p></body></html>"
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<container xmlns='urn:c'><rootfiles>"
        "<rootfile full-path='OEBPS/book.opf'/></rootfiles></container>",
        "OEBPS/book.opf": "<package xmlns='http://www.idpf.org/2007/opf' xmlns:dc='http://purl.org/dc/elements/1.1/'><metadata>"
        "<dc:title>Ward book</dc:title><dc:language>en-GB</dc:language><dc:date>2024-05-01</dc:date>"
        "<dc:identifier>urn:isbn:9780000000001</dc:identifier></metadata><manifest>"
        "<item id='a' href='text/a%20b.xhtml' media-type='application/xhtml+xml'/>"
        "<item id='b' href='text/b.xhtml' media-type='application/xhtml+xml'/></manifest>"
        "<spine><itemref idref='b'/><itemref idref='a'/></spine></package>",
        "OEBPS/text/a b.xhtml": chapter.format("Second", "Then rest."),
        "OEBPS/text/b.xhtml": chapter.format("First", "Wash hands."),
    }
    with zipfile.ZipFile(path, "w") as book:
        for name, content in (parts | more).items():
            book.writestr(name, content)
    return path


def test_epub_golden(tmp_path: Path) -> None:
    record = one(epub(tmp_path / "book.epub"))
    assert (record.title, record.language, record.edition) == ("Ward book", "en", "2024-05-01")
    assert record.identifiers == ("isbn:9780000000001",)
    assert [text for _, _, text in shape(record)] == ["First", "Wash hands.", "Second", "Then rest."]


def test_an_epub_that_is_locked_or_hostile(tmp_path: Path) -> None:
    locked = "<encryption><EncryptedData><EncryptionMethod Algorithm='http://www.w3.org/2001/04/xmlenc#aes128-cbc'/></EncryptedData></encryption>"
    with pytest.raises(InputError, match="is encrypted"):
        read(epub(tmp_path / "locked.epub", **{"META-INF/encryption.xml": locked}))
    attack = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>'
    with pytest.raises(InputError, match=pattern("reader.xml_refused")):
        read(epub(tmp_path / "attack.epub", **{"META-INF/container.xml": attack}))
    (tmp_path / "no.epub").write_bytes(b"PK no")
    with pytest.raises(InputError, match=pattern("reader.no_epub")):
        read(tmp_path / "no.epub")


# --- any XML ---------------------------------------------------------------------------------------------------

MONOGRAPHS = """<m:list xmlns:m="urn:m"><m:monograph code="A1"><m:names><m:name>Aspirin</m:name></m:names>
<m:meta revised="2025-01-02"/><m:dosage><m:heading>Adults</m:heading><m:para>Give <m:b>75 mg</m:b> daily.</m:para>
<m:para>With food.</m:para><m:image>x.png</m:image></m:dosage><m:warning>Not in children.</m:warning></m:monograph>
<m:monograph code="A2"><m:names><m:name>Empty</m:name></m:names></m:monograph></m:list>"""
FIELDS = {"id": "@code", "title": "names/name", "text": ("dosage", "warning"), "edition": "meta/@revised"}
OPTIONS: dict[str, Any] = {"record": "monograph", "headings": ["heading"], "skip": ["image"]}


def test_any_xml_through_a_mapping(tmp_path: Path) -> None:
    path = tmp_path / "drugs.xml"
    path.write_text(MONOGRAPHS, encoding="utf-8")
    record, fault = read(path, "xml", FIELDS, **OPTIONS)
    assert isinstance(record, SourceRecord)
    assert (record.key, record.title, record.edition) == ("A1", "Aspirin", "2025-01-02")
    assert shape(record) == [
        ("heading", 1, "Adults"),
        ("paragraph", 0, "Give 75 mg daily."),
        ("paragraph", 0, "With food."),
        ("paragraph", 0, "Not in children."),
    ]
    assert words(fault) == ("record 2", "has no text")
    with pytest.raises(InputError, match=pattern("reader.xml_fields")):
        read(path, "xml")


@pytest.mark.parametrize("body", ['<!ENTITY a "ha"><!ENTITY b "&a;&a;">', '<!ENTITY b SYSTEM "file:///etc/hostname">'])
def test_xml_attacks_reach_no_reader(tmp_path: Path, body: str) -> None:
    path = tmp_path / "attack.xml"
    path.write_text(f"<!DOCTYPE list [{body}]><list><monograph><dosage>&b;</dosage></monograph></list>")
    with pytest.raises(InputError, match=pattern("reader.xml_refused")):
        read(path, "xml", FIELDS, **OPTIONS)
    path.write_text(f"<!DOCTYPE article [{body}]><article><front><article-meta>&b;</article-meta></front></article>")
    with pytest.raises(InputError, match=pattern("reader.xml_refused")):
        read(path)


# --- JATS and MEDLINE: twelve articles in each form ------------------------------------------------------------

TYPES = ("Randomized Controlled Trial", "Review", "Case Reports", "Meta-Analysis")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def article(number: int) -> dict[str, Any]:
    return {
        "pmid": str(91000000 + number),
        "title": f"Examplinib in condition {number}: a study of what was given & when, told at some length.",
        "parts": [("BACKGROUND", f"Nobody knew {number}."), ("RESULTS", f"Attacks fell by {number} % (P < 0.01).")],
        "types": ("Journal Article", TYPES[number % 4]),
        "mesh": ("Asthma", f"Condition {number}"),
        "date": ("2019", MONTHS[number - 1], str(number)),
        "doi": f"10.0000/example.{number}",
    }


def as_xml(source: dict[str, Any]) -> str:
    parts = "".join(f'<AbstractText Label="{label}">{escape(text)}</AbstractText>' for label, text in source["parts"])
    types = "".join(f"<PublicationType>{kind}</PublicationType>" for kind in source["types"])
    mesh = "".join(
        f"<MeshHeading><DescriptorName>{heading}</DescriptorName></MeshHeading>" for heading in source["mesh"]
    )
    year, month, day = source["date"]
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{source['pmid']}</PMID><Article><Journal><JournalIssue><PubDate><Year>{year}"
        f"</Year><Month>{month}</Month><Day>{day}</Day></PubDate></JournalIssue></Journal><ArticleTitle>{escape(source['title'])}"
        f"</ArticleTitle><Abstract>{parts}</Abstract><Language>eng</Language><PublicationTypeList>{types}</PublicationTypeList>"
        f"</Article><MeshHeadingList>{mesh}</MeshHeadingList></MedlineCitation><PubmedData><ArticleIdList>"
        f'<ArticleId IdType="doi">{source["doi"]}</ArticleId></ArticleIdList></PubmedData></PubmedArticle>'
    )


def wrapped(tag: str, text: str) -> str:
    """A line of MEDLINE text, broken as PubMed breaks it."""
    lines, line = [], ""
    for word in text.split(" "):
        if len(line) + len(word) > 80:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return f"{tag:<4}- " + "\n      ".join([*lines, line])


def as_medline(source: dict[str, Any]) -> str:
    abstract = " ".join(f"{label}: {text}" for label, text in source["parts"])
    lines = [wrapped("PMID", source["pmid"]), "OWN - NLM", wrapped("TI", source["title"]), wrapped("AB", abstract)]
    lines += ["FAU - Doe, J.", "LA  - eng", *(wrapped("PT", kind) for kind in source["types"])]
    lines += [wrapped("MH", f"*{heading}/drug therapy") for heading in source["mesh"]]
    return "\n".join([*lines, f"DP  - {' '.join(source['date'])}", f"AID - {source['doi']} [doi]", "SO  - X."])


JATS = """<article article-type="review-article" xml:lang="en"><front><article-meta>
<article-id pub-id-type="pmid">{pmid}</article-id><article-id pub-id-type="doi">{doi}</article-id>
<title-group><article-title>{title}</article-title></title-group>
<pub-date pub-type="epub"><day>{day}</day><month>{month}</month><year>{year}</year></pub-date>
<abstract>{sections}</abstract><kwd-group kwd-group-type="MeSH">{keywords}</kwd-group></article-meta></front>
<body><sec><label>1</label><title>Methods</title><p>Counts above 10<sup>9</sup>/L were read.<sup><xref ref-type="bibr"
rid="r">12</xref></sup> Then more.</p><sec><title>Doses</title><table-wrap><label>Table 1</label><caption>
<p>Doses given.</p></caption><table><thead><tr><th>Drug</th><th>Dose</th></tr></thead>
<tbody><tr><td>examplinib</td><td>5 mg</td></tr>
</tbody></table><table-wrap-foot><fn><label>a</label><p>By mouth.</p></fn></table-wrap-foot></table-wrap></sec></sec>
</body><back><ref-list><ref><mixed-citation>Left out.</mixed-citation></ref></ref-list></back></article>"""


def as_jats(source: dict[str, Any]) -> str:
    year, month, day = source["date"]
    sections = "".join(f"<sec><title>{label}</title><p>{escape(text)}</p></sec>" for label, text in source["parts"])
    keywords = "".join(f"<kwd>{heading}</kwd>" for heading in source["mesh"])
    number = MONTHS.index(month) + 1
    plain = {"pmid": source["pmid"], "doi": source["doi"], "title": escape(source["title"])}
    return JATS.format(**plain, year=year, month=number, day=day, sections=sections, keywords=keywords)


def test_medline_jats_and_pubmeds_xml_give_the_same_for_the_same_articles(tmp_path: Path) -> None:
    sources = [article(number) for number in range(1, 13)]
    saved = written(tmp_path / "saved.txt", "\n" + "\n\n".join(map(as_medline, sources)) + "\n")
    xml = written(tmp_path / "saved.xml", f"<PubmedArticleSet>{''.join(map(as_xml, sources))}</PubmedArticleSet>")
    full = written(tmp_path / "set.xml", f"<pmc-articleset>{''.join(map(as_jats, sources))}</pmc-articleset>")
    assert (readers.name_of(saved), readers.name_of(tmp_path / "a.nbib")) == ("medline", "medline")
    records, articles = read(saved), read(full)
    assert records == read(xml)
    for number, expected, record, whole in zip(range(1, 13), sources, records, articles, strict=True):
        assert isinstance(record, SourceRecord)
        assert isinstance(whole, SourceRecord)
        for it in (record, whole):
            assert (it.key, it.title, it.mesh) == (expected["pmid"], expected["title"], expected["mesh"])
            assert (it.edition, it.language) == (f"2019-{number:02d}-{number:02d}", "en")
            assert it.identifiers == (f"pmid:{expected['pmid']}", f"doi:{expected['doi']}")
        assert record.publication_types == expected["types"]
        assert shape(record) == shape(whole)[1:5]
        assert whole.publication_types == ("Journal Article", "Review")
        assert shape(whole) == [
            ("heading", 1, "Abstract"),
            ("heading", 2, "BACKGROUND"),
            ("paragraph", 0, f"Nobody knew {number}."),
            ("heading", 2, "RESULTS"),
            ("paragraph", 0, f"Attacks fell by {number} % (P < 0.01)."),
            ("heading", 1, "1 Methods"),
            ("paragraph", 0, "Counts above 10⁹/L were read. Then more."),
            ("heading", 2, "Doses"),
            ("paragraph", 0, "Table 1 Doses given."),
            ("row", 0, "Drug: examplinib; Dose: 5 mg"),
            ("paragraph", 0, "a By mouth."),
        ]


def test_medline_retractions_and_faults(tmp_path: Path) -> None:
    path = tmp_path / "a.nbib"
    path.write_text(
        "PMID- 1\nTI  - A finding.\nAB  - It was: wrong.\nLA  - chi\nRIN - J. 2020;1:1. PMID: 2\nDP  - 2019 Spring\n\n"
        "PMID- 2\nOWN - NLM\n\nPMID- 1\nTI  - Again.\n\nPMID- x\nTI  - Who?\n\nPMID- 3\nTI  - Late.\n"
        "EDAT- 2021/06/07 00:00\n",
        encoding="utf-8",
    )
    first, untitled, twice, unnumbered, last = read(path)
    assert isinstance(first, SourceRecord)
    assert (first.status, first.relations, first.edition) == ("withdrawn", (("retraction_in", "pmid:2"),), "2019")
    assert shape(first) == [("paragraph", 0, "It was: wrong.")]
    assert words(first.notes[-1]) == "the article itself is in another language (chi)"
    assert words(untitled) == ("PMID 2", "has neither a title nor an abstract")
    assert words(twice) == ("PMID 1", said("reader.twice"))
    assert words(unnumbered) == ("article 4", "has no PMID")
    assert isinstance(last, SourceRecord)
    assert (last.edition, words(last.notes)) == ("2021-06-07", ("no abstract",))


def test_jats_alone_is_known_by_its_marks_and_a_retracted_one_does_not_answer(tmp_path: Path) -> None:
    path = tmp_path / "one.nxml"
    path.write_text(as_jats(article(1)).replace("review-article", "retracted-article"), encoding="utf-8")
    assert readers.name_of(path) == "jats"
    assert one(path).status == "withdrawn"
    path.write_text("<article><para>DocBook.</para></article>")
    with pytest.raises(InputError, match="root element article"):
        readers.name_of(path)
