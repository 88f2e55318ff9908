"""Readers of terminologies: what the formats hold, and bad lines among good ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from localmed.domain.errors import InputError
from localmed.ingest import readers
from localmed.ingest.graphs.lines import LINE_BYTES, NAME_CHARACTERS, canonical
from localmed.ingest.parsed import Fault, FieldMapping
from localmed.library.terms import Term, folded
from tests.words import pattern, said, words

FIXTURES = Path(__file__).parent / "fixtures" / "graphs"


def parts(reader: str, path: Path, **options: Any) -> tuple[list[Term], list[Fault]]:
    items = list(readers.load(reader)(path, FieldMapping({}, options)))
    return [item for item in items if isinstance(item, Term)], [item for item in items if isinstance(item, Fault)]


def written(tmp_path: Path, data: bytes | str) -> Path:
    path = tmp_path / "table"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# --- OBO -----------------------------------------------------------------------------------------------------


def test_an_obo_term() -> None:
    terms, faults = parts("obo", FIXTURES / "small.obo")
    assert not faults
    assert [term.id for term in terms] == ["DOID:1", "DOID:2", "DOID:3", "DOID:33", "DOID:4"]
    ckd = terms[2]
    assert ckd.name == "chronic kidney disease"
    assert ckd.names == (
        ("CKD", "", "abbreviation"), ("chronic renal failure", "", "related"), ("慢性肾脏病", "", "exact"),
    )  # fmt: skip
    assert ckd.relations == (("DOID:3", "is_a", "DOID:2", ""), ("DOID:3", "has_symptom", "SYMP:1", ""))
    assert ckd.xrefs == ("MESH:D051436", "SNOMEDCT_US:709044004", "C1561643")
    assert ckd.edition == "2025-02-03"
    assert terms[1].definition == 'A disease of the kidney, said "renal" in Latin.'


def test_what_was_replaced_leads_to_what_replaced_it() -> None:
    terms, _ = parts("obo", FIXTURES / "small.obo")
    assert {(term.name, term.replaced_by) for term in terms if term.replaced_by} == {
        ("DOID:33", "DOID:3"),
        ("Bright's disease", "DOID:2"),
    }


def test_a_bad_line_of_a_stanza_is_a_fault_and_the_rest_is_read() -> None:
    terms, faults = parts("obo", FIXTURES / "broken.obo")
    assert [words(fault.where) for fault in faults] == [f"line {n}" for n in (6, 7, 8, 9, 12, 17, 19, 22)]
    assert [(term.id, term.relations) for term in terms] == [
        ("DOID:1", (("DOID:1", "is_a", "DOID:2", ""),)),
        ("DOID:2", (("DOID:2", "is_a", "DOID:1", ""),)),
    ]
    assert not [fault for fault in faults if "SIDEWAYS" in words(fault.reason) or "closed EXACT" in words(fault.reason)]


# --- lines ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"name: \x00\n", said("graph.nul")),
        ("name: naïve\n".encode("latin-1"), "is not UTF-8"),
        (b"def: " + b"x" * LINE_BYTES + b"\n", f"is longer than {LINE_BYTES} bytes"),
    ],
)
def test_a_line_that_cannot_be_read_is_one_fault(tmp_path: Path, bad: bytes, reason: str) -> None:
    path = written(tmp_path, b"[Term]\nid: A:1\n" + bad + b"name: one\n\n[Term]\nid: A:2\nname: two\n")
    terms, faults = parts("obo", path)
    assert [term.name for term in terms] == ["one", "two"]
    assert words(faults) == [("line 3", reason)]
    assert terms[-1].end == path.stat().st_size


def test_an_over_long_last_line_without_an_end(tmp_path: Path) -> None:
    terms, faults = parts("obo", written(tmp_path, b"[Term]\nid: A:1\nname: one\n" + b"y" * (3 * LINE_BYTES)))
    assert [term.id for term in terms] == ["A:1"]
    assert len(faults) == 1


def test_utf16_is_refused_whole(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=pattern("graph.utf16.what")):
        parts("obo", written(tmp_path, "[Term]\nid: A:1\nname: one\n".encode("utf-16")))


@pytest.mark.parametrize("reader", readers.GRAPHS)
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.sampled_from(
            [b"[Term]", b"id: A:1", b"name: x", b'synonym: "', b'synonym: "x" EXACT', b"is_a: A:1", b"xref:", b"\\",
             b"|", b'"A:1"\t"x"\t', b"id\tlabel\txrefs", b"A$B$C$D", b"|" * 18, b"C1234567" + b"|" * 16, b"\xff", b"\r"]
        )
        | st.binary(max_size=20)
    )
)  # fmt: skip
def test_no_bytes_break_a_reader(tmp_path: Path, reader: str, pieces: list[bytes]) -> None:
    path = written(tmp_path, b"\n".join(pieces))
    try:
        terms, _ = parts(reader, path)
    except InputError:
        return
    assert all(term.id and 0 <= term.end <= path.stat().st_size for term in terms)


# --- tables --------------------------------------------------------------------------------------------------


def test_parents_by_name_become_ids_where_the_table_knows_them() -> None:
    terms, faults = parts("crossrefs", FIXTURES / "HumanDO.tsv")
    assert not faults
    assert [relation for term in terms for relation in term.relations] == [
        ("DOID:2", "is_a", "disease", ""),
        ("DOID:3", "is_a", "DOID:2", ""),
        ("DOID:3", "is_a", "long-lasting disease, any", ""),
    ]


def test_cross_references_of_one_cell() -> None:
    terms, _ = parts("crossrefs", FIXTURES / "ICD10inDO.tsv")
    assert [term.xrefs for term in terms] == [("ICD10CM:N08", "ICD10CM:N28.9"), ("ICD10CM:N18",)]


def test_bad_rows_of_a_table(tmp_path: Path) -> None:
    rows = ['"A:1"\t"one"\t"X:1"', '"A:2"\t"two"', '"A:3"\t"three\t"X:3"', '""\t"four"\t""', '"A:5"\t""\t""',
            f'"A:6"\t"{"n" * (NAME_CHARACTERS + 1)}"\t""', '"A:7"\t"seven"\t""']  # fmt: skip
    terms, faults = parts("crossrefs", written(tmp_path, "\n".join(["id\tlabel\txrefs", *rows])))
    assert [term.id for term in terms] == ["A:1", "A:7"]
    assert [words(fault.where) for fault in faults] == [f"line {number}" for number in (3, 4, 5, 6, 7)]


def test_a_table_without_its_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="lacks the columns id and label"):
        parts("crossrefs", written(tmp_path, "code,text\n1,2\n"))


def test_columns_may_be_called_otherwise_and_parted_by_commas(tmp_path: Path) -> None:
    path = written(tmp_path, 'code,text,up\nA:1,"one, or first",\nA:2,two,A:1\n')
    mapping = FieldMapping({"id": "code", "name": "text", "parent": "up"})
    terms = [item for item in readers.load("crossrefs")(path, mapping) if isinstance(item, Term)]
    assert [(term.name, term.relations) for term in terms] == [
        ("one, or first", ()), ("two", (("A:2", "is_a", "A:1", ""),)),
    ]  # fmt: skip


def test_a_pair_of_drugs_has_no_order() -> None:
    terms, faults = parts("interactions", FIXTURES / "ONC_High_Priority_Mapped.csv", severity="high priority")
    assert not faults
    assert {relation for term in terms for relation in term.relations} == {
        ("DB90001", "interacts_with", "DB90002", "high priority"),
        ("DB90001", "interacts_with", "DB90003", "high priority"),
    }
    assert {(term.id, term.name) for term in terms} == {
        ("DB90001", "Alphadrug"), ("DB90002", "Betadrug"), ("DB90003", "Gammadrug"),
    }  # fmt: skip


def test_bad_pairs(tmp_path: Path) -> None:
    rows = "A$DB1$B$DB2$\nA$DB1$B$\nA$DB1$A$DB1$\n$DB1$B$DB2$\nA$$B$DB2$\n\nA$DB1$B$DB2$C$\n"
    terms, faults = parts("interactions", written(tmp_path, rows))
    assert len(terms) == 2
    assert [words(fault.where) for fault in faults] == ["line 2", "line 3", "line 4", "line 5", "line 7"]


# --- UMLS ----------------------------------------------------------------------------------------------------


def test_names_of_umls() -> None:
    terms, faults = parts("umls", FIXTURES / "MRCONSO.RRF")
    assert not faults
    assert [(term.id, term.name) for term in terms] == [
        ("C1561643", "Renal Insufficiency, Chronic"), ("C0022658", "Kidney Diseases"), ("C9000001", "只有中文的概念"),
    ]  # fmt: skip
    assert terms[0].names == (
        ("Renal Insufficiency, Chronic", "en", "exact"), ("CKD", "en", "abbreviation"),
        ("慢性肾功能不全", "zh", "exact"),
    )  # fmt: skip
    assert terms[0].xrefs == ("MESH:D051436", "NCI:C80078")


def test_languages_of_umls_can_be_chosen() -> None:
    terms, _ = parts("umls", FIXTURES / "MRCONSO.RRF", languages=["GER"])
    assert [name for term in terms for name in term.names] == [("Nierenversagen, chronisches", "", "exact")]


def test_of_several_definitions_the_longest_and_none_that_is_suppressed() -> None:
    terms, _ = parts("umls", FIXTURES / "MRDEF.RRF")
    assert [(term.id, term.definition) for term in terms] == [
        ("C1561643", "Kidneys that have worked too little for three months or longer.")
    ]


def test_each_relation_of_umls_once() -> None:
    terms, faults = parts("umls", FIXTURES / "MRREL.RRF")
    assert not faults
    assert {relation for term in terms for relation in term.relations} == {
        ("C1561643", "is_a", "C0022658", "MSH"),
        ("C9000001", "has_finding", "C1561643", "NCI"),
        ("C1561643", "narrower_than", "C0022658", "MTH"),
    }


def test_bad_rows_of_umls(tmp_path: Path) -> None:
    good = (FIXTURES / "MRDEF.RRF").read_text("utf-8").splitlines()[0]
    rows = [good, "C1561643|A1|AT1|", good.replace("C1561643", "D1561643"), good.replace("Short.", ""), "", good + "x"]
    terms, faults = parts("umls", written(tmp_path, "\n".join(rows)))
    assert len(terms) == 1
    assert [words(fault.where) for fault in faults] == ["line 2", "line 3", "line 4", "line 6"]


def test_another_table_of_umls_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=pattern("graph.umls")):
        parts("umls", written(tmp_path, "C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1||\n"))


# --- names and codes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "spelled"),
    [
        ("UMLS_CUI:C0011849", "C0011849"),
        ("DRUGBANK:DB01118", "DB01118"),
        ("SNOMEDCT_US_2025_09_01:17788007", "SNOMEDCT_US:17788007"),
        ("ICD9CM_2005:205.0", "ICD9CM:205.0"),
        ("MSH:D003920", "MESH:D003920"),
        ("ICD10CM:E11", "ICD10CM:E11"),
        ("C0011849", "C0011849"),
    ],
)
def test_codes_have_one_spelling(code: str, spelled: str) -> None:
    assert canonical(code) == spelled


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Type-2 Diabetes", "type 2 diabetes"),
        ("Sjögren's syndrome", "sjogren syndrome"),
        ("KIDNEY DISEASES", "kidney disease"),
        ("beta‑blocker", "Beta blockers"),
        ("ＣＫＤ", "ckd"),
    ],
)
def test_spellings_that_are_one_name(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(
    ("one", "other"), [("lupus", "lupu"), ("hepatitis A", "hepatitis B"), ("+", "-"), ("肾炎", "肾病")]
)
def test_names_that_stay_apart(one: str, other: str) -> None:
    assert folded(one) != folded(other)
