"""PubMed and MedQuAD on small files in the real formats, XML attacks, and the choice of a reader."""

from __future__ import annotations

import gzip
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from localmed.domain import message
from localmed.domain.errors import InputError
from localmed.ingest import readers
from localmed.ingest.parsed import Block, Fault, FieldMapping, SourceRecord
from localmed.ingest.readers import pubmed
from tests.ingest.readers.reading import FIXTURES, one, read, shape, texts, written
from tests.words import phrase, said, words

PUBMED = FIXTURES / "pubmed_small.xml"
MAPPING = FieldMapping()


def articles(path: Path = PUBMED) -> dict[str, SourceRecord]:
    return {item.key: item for item in pubmed.read(path, MAPPING) if isinstance(item, SourceRecord)}


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
    assert shape(last) == [("heading", 2, "Diagnosis"), ("paragraph", 0, "By looking.")]
    dates = {"90000002": "2009-12", "90000003": "2011", "90000004": "2020-02-29", "90000005": "2015-07"}
    assert {key: records[key].edition for key in dates} == dates, "as precise as known"
    notice, chinese = records["90000003"], records["90000005"]
    assert texts(notice) == ["Notice of retraction: A finding that was not one."]
    assert words(notice.notes) == ("no abstract",)
    assert (texts(chinese), chinese.language) == (["No point was found."], "en")
    assert any("(chi)" in note for note in words(chinese.notes))
    faults = [item for item in read(PUBMED) if isinstance(item, Fault)]
    assert [words(fault.where) for fault in faults] == ["article 5", "PMID 90000001", "DeleteCitation"]
    assert "PubMed: 2;" in words(faults[2].reason)


def test_a_retracted_paper_is_withdrawn_and_its_notice_is_not() -> None:
    records = articles()
    retracted, notice, unnumbered = records["90000002"], records["90000003"], records["90000005"]
    assert (retracted.status, retracted.relations) == ("withdrawn", (("retraction_in", "pmid:90000003"),))
    assert (notice.status, notice.relations) == ("", (("retraction_of", "pmid:90000002"),))
    assert (unnumbered.status, unnumbered.relations) == ("withdrawn", ())
    assert said("reader.retracted") in words(retracted.notes)
    assert [records[key].status for key in ("90000001", "90000004", "90000006")] == ["", "", ""]


ARTICLE = (
    "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>{title}</ArticleTitle>"
    "<PublicationTypeList><PublicationType>{kind}</PublicationType></PublicationTypeList></Article></MedlineCitation>"
    "</PubmedArticle></PubmedArticleSet>"
)


@pytest.mark.parametrize(
    ("title", "kind"),
    [("WITHDRAWN: A trial.", ""), ("Retracted: A trial.", ""), ("A trial.", "Retracted Publication")],
)
def test_each_sign_of_a_retraction_is_enough(tmp_path: Path, title: str, kind: str) -> None:
    assert one(written(tmp_path / "one.xml", ARTICLE.format(title=title, kind=kind))).status == "withdrawn"


def test_raised_figures_stay_raised(tmp_path: Path) -> None:
    title = "Below 10<sup>9</sup>/L, 5 kg/m<sup>-2</sup>, the 4<sup>th</sup> CO<sub>2</sub>."
    record = one(written(tmp_path / "one.xml", ARTICLE.format(title=title, kind="")))
    assert record.title == "Below 10⁹/L, 5 kg/m⁻², the 4th CO2."


def test_pubmed_gzipped_and_cut_off(tmp_path: Path) -> None:
    content = PUBMED.read_bytes()
    zipped = written(tmp_path / "a.xml.gz", gzip.compress(content))
    assert readers.name_of(zipped) == "pubmed"
    assert articles(zipped) == articles()
    items = pubmed.read(
        written(tmp_path / "b.xml", content[: content.index(b"90000004</PMID>\n    <Article")]), MAPPING
    )
    assert [item.key for item in islice(items, 3) if isinstance(item, SourceRecord)][-1] == "90000003"
    with pytest.raises(InputError, match="broken XML at line"):
        next(items)
    with pytest.raises(InputError, match=r"its content is damaged|broken XML"):
        read(written(tmp_path / "c.xml.gz", zipped.read_bytes()[:-40]))


def test_pubmed_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    article = "<PubmedArticle><MedlineCitation><Article/></MedlineCitation></PubmedArticle>"
    path = written(tmp_path / "many.xml", f"<PubmedArticleSet>{article * 20_000}</PubmedArticleSet>")
    tracemalloc.start()
    count = sum(1 for _ in pubmed.read(path, MAPPING))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 20_000
    assert peak < 1_000_000  # an emptied element that stays in its root takes ~100 bytes, all of them 2 MB


def test_medquad_in_its_vocabularies_with_and_without_questions(tmp_path: Path) -> None:
    content = (FIXTURES / "medquad_small.xml").read_text("utf-8")
    other = written(tmp_path / "other.xml", content.replace("Document", "DiseaseFile"))
    first, last = read(FIXTURES / "medquad_small.xml")
    assert isinstance(first, SourceRecord)
    assert isinstance(last, SourceRecord)
    assert read(other) == [first, last]
    assert (first.key, first.title, first.url) == ("0000001-1", "Example Disease", "topics/example-disease")
    assert first.identifiers == ("cui:C0000001", "cui:C0000002", "qid:0000001-1")
    assert shape(first) == [
        ("heading", 1, "What is (are) Example Disease ?"),
        ("paragraph", 0, "Key Points|- It is invented. - It can't be caught."),
        ("paragraph", 0, "It serves as an example."),
    ]
    assert (last.key, shape(last)[-1]) == ("0000001-3", ("paragraph", 0, "It ends with the test."))
    bare = read(other, index_questions=False)
    assert all(isinstance(item, SourceRecord) and item.blocks[0].kind == "paragraph" for item in bare)
    lower = one(FIXTURES / "medquad_lower.xml")
    assert (lower.key, lower.title, lower.identifiers[0]) == ("0000009-1", "Other Disease", "cui:C0000009")
    emptied = content.replace("It ends with the test.", "").partition("Key Points")
    empty = written(tmp_path / "empty.xml", emptied[0] + emptied[2][emptied[2].index("</Answer>") :])
    [fault] = read(empty)
    assert isinstance(fault, Fault)
    assert words(fault.reason).startswith("all 3 answers are empty")


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
    path = written(tmp_path / name, content)
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
    with pytest.raises(InputError, match=why):
        readers.name_of(written(tmp_path / name, content))


def test_every_reader_named_can_be_loaded() -> None:
    assert set(readers.MODULES) == set(readers.VERSIONS)
    assert all(callable(readers.load(name)) for name in readers.VERSIONS if name != "pdf")
    with pytest.raises(InputError, match="no reader nothing"):
        readers.name_of(PUBMED, "nothing")
