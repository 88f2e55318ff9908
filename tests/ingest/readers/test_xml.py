"""PubMed and MedQuAD on small files in the real formats, XML attacks, and the choice of a reader."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest import readers
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import medquad, pubmed
from tests.words import pattern, phrase, said, words

FIXTURES = Path(__file__).parents[1] / "fixtures"
PUBMED = FIXTURES / "pubmed_small.xml"


def articles(path: Path = PUBMED) -> dict[str, SourceRecord]:
    return {item.key: item for item in pubmed.read(path, FieldMapping()) if isinstance(item, SourceRecord)}


def shape(record: SourceRecord) -> list[tuple[str, str]]:
    return [(block.kind, "|".join(line.text for line in block.lines)) for block in record.blocks]


def test_pubmed_golden() -> None:
    records = articles()
    assert list(records) == [f"9000000{number}" for number in (1, 2, 3, 4, 5, 6)]
    first, last = records["90000001"], records["90000006"]
    assert first == SourceRecord(
        key="90000001",
        title="Examplinib versus placebo in mild asthma: a CO2-blinded trial.",
        blocks=(
            Block.of("heading", "BACKGROUND", 2),
            Block.of("paragraph", "Examplinib is invented for this file."),
            Block.of("heading", "RESULTS", 2),
            Block.of("paragraph", "Attacks fell by 12% (P < 0.01)."),
        ),
        edition="2019-03-05",
        language="en",
        identifiers=("pmid:90000001", "doi:10.0000/example.1", "pmc:PMC9000001"),
        publication_types=("Journal Article", "Randomized Controlled Trial"),
        mesh=("Asthma", "Humans"),
        relations=(("erratum_in", "pmid:90000004"),),
        notes=(message("reader.corrected"),),
    )
    assert (last.title, last.edition, last.publication_types) == ("Example Disease", "2021-06", ("Review",))
    assert shape(last) == [("heading", "Diagnosis"), ("paragraph", "By looking.")]


def test_a_retracted_paper_is_withdrawn_and_its_notice_is_not() -> None:
    records = articles()
    retracted, notice, unnumbered = records["90000002"], records["90000003"], records["90000005"]
    assert (retracted.status, retracted.relations) == ("withdrawn", (("retraction_in", "pmid:90000003"),))
    assert (notice.status, notice.relations) == ("", (("retraction_of", "pmid:90000002"),))
    assert (unnumbered.status, unnumbered.relations) == ("withdrawn", ())
    assert said("reader.retracted") in words(retracted.notes)
    assert [records[key].status for key in ("90000001", "90000004", "90000006")] == ["", "", ""]


@pytest.mark.parametrize(
    ("title", "link", "kind"),
    [("WITHDRAWN: A trial.", "", ""), ("Retracted: A trial.", "", ""), ("A trial.", "", "Retracted Publication")],
)
def test_each_sign_of_a_retraction_is_enough(tmp_path: Path, title: str, link: str, kind: str) -> None:
    content = (
        "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article>"
        f"<ArticleTitle>{title}</ArticleTitle><PublicationTypeList><PublicationType>{kind}</PublicationType>"
        "</PublicationTypeList></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"
    )
    path = tmp_path / "one.xml"
    path.write_text(content, encoding="utf-8")
    assert articles(path)["1"].status == "withdrawn"


def test_dates_as_precise_as_known() -> None:
    records = articles()
    assert [records[f"9000000{number}"].edition for number in (2, 3, 4, 5)] == [
        "2009-12",
        "2011",
        "2020-02-29",
        "2015-07",
    ]


def test_articles_without_abstract_and_in_other_languages() -> None:
    records = articles()
    assert shape(records["90000003"]) == [("paragraph", "Notice of retraction: A finding that was not one.")]
    assert words(records["90000003"].notes) == ("no abstract",)
    assert shape(records["90000005"]) == [("paragraph", "No point was found.")]
    assert records["90000005"].language == "en"
    assert any("(chi)" in note for note in words(records["90000005"].notes))


def test_pubmed_faults() -> None:
    faults = [item for item in pubmed.read(PUBMED, FieldMapping()) if isinstance(item, Fault)]
    assert [words(fault.where) for fault in faults] == ["article 5", "PMID 90000001", "DeleteCitation"]
    assert "PubMed: 2;" in words(faults[2].reason)


def test_pubmed_gzipped_and_cut_off(tmp_path: Path) -> None:
    zipped, cut, short = tmp_path / "a.xml.gz", tmp_path / "b.xml", tmp_path / "c.xml.gz"
    zipped.write_bytes(gzip.compress(PUBMED.read_bytes()))
    assert readers.name_of(zipped) == "pubmed"
    assert articles(zipped) == articles()
    content = PUBMED.read_bytes()
    cut.write_bytes(content[: content.index(b"90000004</PMID>\n    <Article")])
    items = pubmed.read(cut, FieldMapping())
    assert [item.key for item in (next(items), next(items), next(items)) if isinstance(item, SourceRecord)][
        -1
    ] == "90000003"
    with pytest.raises(InputError, match="broken XML at line"):
        next(items)
    short.write_bytes(zipped.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"its content is damaged|broken XML"):
        list(pubmed.read(short, FieldMapping()))


def test_pubmed_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "many.xml"
    article = "<PubmedArticle><MedlineCitation><Article/></MedlineCitation></PubmedArticle>"
    path.write_text(f"<PubmedArticleSet>{article * 20_000}</PubmedArticleSet>", encoding="utf-8")
    tracemalloc.start()
    count = sum(1 for _ in pubmed.read(path, FieldMapping()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 1_000_000  # an emptied element that stays in its root takes ~100 bytes, all of them 2 MB


def test_medquad_golden() -> None:
    first, last = medquad.read(FIXTURES / "medquad_small.xml", FieldMapping())
    assert isinstance(first, SourceRecord)
    assert isinstance(last, SourceRecord)
    assert (first.key, first.title, first.url) == ("0000001-1", "Example Disease", "topics/example-disease")
    assert first.identifiers == ("cui:C0000001", "cui:C0000002", "qid:0000001-1")
    assert shape(first) == [
        ("heading", "What is (are) Example Disease ?"),
        ("paragraph", "Key Points|- It is invented. - It can't be caught."),
        ("paragraph", "It serves as an example."),
    ]
    assert (last.key, shape(last)[-1]) == ("0000001-3", ("paragraph", "It ends with the test."))


def test_medquad_without_questions_and_in_its_other_vocabularies(tmp_path: Path) -> None:
    bare = medquad.read(FIXTURES / "medquad_small.xml", FieldMapping(options={"index_questions": False}))
    assert all(isinstance(item, SourceRecord) and item.blocks[0].kind == "paragraph" for item in bare)
    [lower] = medquad.read(FIXTURES / "medquad_lower.xml", FieldMapping())
    assert isinstance(lower, SourceRecord)
    assert (lower.key, lower.title, lower.identifiers[0]) == ("0000009-1", "Other Disease", "cui:C0000009")
    other = tmp_path / "other.xml"
    content = (FIXTURES / "medquad_small.xml").read_text(encoding="utf-8")
    other.write_text(content.replace("Document", "DiseaseFile"), encoding="utf-8")
    assert readers.name_of(other) == readers.name_of(FIXTURES / "medquad_lower.xml") == "medquad"
    assert len(list(medquad.read(other, FieldMapping()))) == 2


def test_a_medquad_file_without_any_answer_is_reported_once(tmp_path: Path) -> None:
    content = (FIXTURES / "medquad_small.xml").read_text(encoding="utf-8")
    emptied = content.replace("It ends with the test.", "").partition("Key Points")
    path = tmp_path / "empty.xml"
    path.write_text(emptied[0] + emptied[2][emptied[2].index("</Answer>") :], encoding="utf-8")
    [fault] = medquad.read(path, FieldMapping())
    assert isinstance(fault, Fault)
    assert words(fault.reason).startswith("all 3 answers are empty")


@pytest.mark.parametrize(
    "dtd",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">',
        '<!ENTITY b SYSTEM "file:///etc/hostname">',
    ],
)
def test_xml_attacks_are_refused(tmp_path: Path, dtd: str) -> None:
    path = tmp_path / "attack.xml"
    path.write_text(f"<!DOCTYPE PubmedArticleSet [{dtd}]><PubmedArticleSet><PMID>&b;</PMID></PubmedArticleSet>")
    assert readers.name_of(path) == "pubmed"
    with pytest.raises(InputError, match=pattern("reader.xml_refused")):
        list(pubmed.read(path, FieldMapping()))


@pytest.mark.parametrize(
    ("name", "content", "reader"),
    [
        ("a.TXT", b"x", "text"),
        ("a.markdown", b"x", "markdown"),
        ("a.ndjson", b"x", "jsonl"),
        ("a.pdf", b"x", "pdf"),
        ("a", b"%PDF-1.7", "pdf"),
        ("a.xml", b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- <x> -->\n<PubmedArticleSet/>", "pubmed"),
        ("a.xml", "<PubmedArticleSet/>".encode("utf-16"), "pubmed"),
    ],
)
def test_the_choice_of_a_reader(tmp_path: Path, name: str, content: bytes, reader: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert readers.name_of(path) == reader
    assert readers.name_of(path, "medquad") == "medquad"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.xml", b"<html><body/></html>", "root element html"),
        ("a.xml", b"<Document><p/></Document>", "root element Document"),
        ("a.xml", b"", phrase("reader.no_xml")),
        ("a.doc", b"\xd0\xcf", r"no reader for \.doc"),
        ("a.xml.gz", b"\x1f\x8bnonsense", "cannot be read"),
        ("a", b"words", "no reader for files without an extension"),
    ],
)
def test_what_no_reader_takes(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=why):
        readers.name_of(path)


def test_every_reader_named_can_be_loaded() -> None:
    assert set(readers.MODULES) == set(readers.VERSIONS)
    assert all(callable(readers.load(name)) for name in readers.VERSIONS if name != "pdf")
    with pytest.raises(InputError, match="no reader nothing"):
        readers.choose(PUBMED, "nothing")


def test_raised_figures_stay_raised(tmp_path: Path) -> None:
    path = tmp_path / "one.xml"
    path.write_text(
        "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>"
        "Below 10<sup>9</sup>/L, 5 kg/m<sup>-2</sup>, the 4<sup>th</sup> CO<sub>2</sub>.</ArticleTitle>"
        "</Article></MedlineCitation>"
        "</PubmedArticle></PubmedArticleSet>",
        encoding="utf-8",
    )
    assert articles(path)["1"].title == "Below 10⁹/L, 5 kg/m⁻², the 4th CO2."
