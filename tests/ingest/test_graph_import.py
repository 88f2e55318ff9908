"""The import of terminologies: in step with the files, faults listed, the old graph served until the swap."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from localmed.config import ReadBounds, Settings
from localmed.domain import Document, Status
from localmed.domain.errors import BadSettings, InputError
from localmed.ingest import manifest as manifests
from localmed.ingest import readers
from localmed.ingest.graph_import import GraphImporter
from localmed.ingest.graphs import LINE_BYTES, NAME_CHARACTERS, canonical
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import Fault, FieldMapping
from localmed.ingest.parsing import Parser
from localmed.ingest.sources import Report
from localmed.library import generations
from localmed.library.graph import FILE, Graph, Name
from localmed.library.library import Library
from localmed.library.state import quarantined, rows
from localmed.library.terms import Term, folded
from localmed.site import changes, lookups
from localmed.site.session import Session
from tests.fakes import HashedWords, described, documents, hashes, import_into, opened, write
from tests.words import pattern, phrase, said, words

FIXTURES = Path(__file__).parent / "fixtures" / "graphs"
CORPORA = Path(__file__).parents[2] / "corpora"
OBO = "[Term]\nid: {id}\nname: {name}\n"


def manifest(name: str) -> Manifest:
    return manifests.load(CORPORA / f"{name}.toml")


def run(settings: Settings, *paths: Path, of: Manifest | None = None, retry: bool = False) -> Report:
    return GraphImporter(settings, of or manifest("doid"), HashedWords()).run(list(paths), retry)


@contextmanager
def served(settings: Settings) -> Iterator[Graph]:
    with Library.open(settings.data) as library:
        yield library.graph


def ids(settings: Settings, name: str) -> list[str]:
    with served(settings) as terms:
        return [concept for concept, _ in terms.find(name)]


@pytest.fixture
def ontology(corpus: Path) -> Path:
    """A folder as the Disease Ontology's, with a file that is not meant."""
    for name in ("HumanDO.tsv", "ICD10inDO.tsv"):
        shutil.copy(FIXTURES / name, corpus)
    shutil.copy(FIXTURES / "small.obo", corpus / "DO_small_slim.obo")
    return write(corpus, {"symp.obo": OBO.format(id="SYMP:1", name="tiredness"), "NOTE.md": "# Note"})


def test_the_disease_ontology_by_its_manifest(settings: Settings, ontology: Path) -> None:
    report = run(settings, ontology)
    assert {(Path(line.path).name, line.outcome) for line in report.lines} == {
        ("HumanDO.tsv", "read"), ("ICD10inDO.tsv", "read"), ("DO_small_slim.obo", "read"),
        ("symp.obo", "skipped"), ("NOTE.md", "skipped"),
    }  # fmt: skip
    with served(settings) as terms:
        concept = terms.concept("DOID:3")
        assert concept
        assert {"ICD10CM:N18", "C1561643", "MESH:D051436"} <= set(concept.xrefs)
        assert concept.defined_in
        assert concept.defined_in.edition == "2025-02-03"
        dated = {(relation.object, relation.source.edition) for relation in terms.relations(["DOID:3"])}
        assert dated == {("DOID:2", "2025-02-03"), ("SYMP:1", "2025-02-03"), ("long-lasting disease, any", "")}
        assert terms.counts() == {"doid": 3}
    assert run(settings, ontology / "symp.obo").counts["read"] == 1, "named by itself it needs no pattern"
    assert ids(settings, "tiredness") == ["SYMP:1"]
    stored = documents(settings)["DO_small_slim.obo"]
    assert (words(stored.notes), stored.edition, stored.passages) == (("3 terms, 3 relations",), "2025-02-03", 0)


def test_interactions_with_their_severity_and_date(settings: Settings, corpus: Path) -> None:
    for file in FIXTURES.glob("ONC*"):
        shutil.copy(file, corpus)
    run(settings, corpus, of=manifest("onc_interactions"))
    with served(settings) as terms:
        for drug, other in (("DB90001", "DB90002"), ("DB90002", "DB90001")):  # found from both sides
            pair = [relation for relation in terms.relations([drug]) if other in (relation.subject, relation.object)]
            assert [(relation.detail, relation.source.title, relation.source.edition) for relation in pair] == [
                ("high priority", "ONC high-priority list", "2014")
            ]
        assert {relation.detail for relation in terms.relations(["DB90004"])} == {"non-interruptive"}


def test_umls_tables_meet_the_disease_ontology(settings: Settings, ontology: Path, tmp_path: Path) -> None:
    meta = tmp_path / "META"
    meta.mkdir()
    for file in FIXTURES.glob("*.RRF"):
        shutil.copy(file, meta)
    write(meta, {"MRSTY.RRF": "C1561643|T047|B2|Disease|AT|256|\n"})
    run(settings, ontology)
    report = run(settings, meta, of=manifest("umls"))
    assert {Path(line.path).name for line in report.lines if line.outcome == "skipped"} == {"MRSTY.RRF"}
    with served(settings) as terms:
        assert terms.same("DOID:3") == ["C1561643"]
        assert [concept for concept, _ in terms.find("慢性肾功能不全")] == ["C1561643"]
        assert len(terms.relations(["DOID:3", "C1561643"])) == 6
        assert terms.counts()["umls"] == 3


# --- in step -------------------------------------------------------------------------------------------------------


def test_the_graph_is_in_step_with_its_files_and_the_published_generation_is_left(
    settings: Settings, ontology: Path, tmp_path: Path
) -> None:
    run(settings, ontology)
    before = generations.current(settings.data)
    kept = hashes(before)
    report = run(settings, ontology)
    assert (report.counts["unchanged"], report.counts["read"], report.generation) == (3, 0, 0)
    assert generations.current(settings.data) == before
    write(ontology, {"DO_small_slim.obo": OBO.format(id="DOID:8", name="mumps")})

    def interrupt(done: float, doing: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GraphImporter(settings, manifest("doid"), HashedWords(), interrupt).run([ontology])
    assert (generations.current(settings.data), ids(settings, "CKD")) == (before, ["DOID:3"])
    report = run(settings, ontology)
    assert (report.counts["read"], report.counts["unchanged"]) == (1, 2)
    assert hashes(before) == kept
    assert (ids(settings, "mumps"), ids(settings, "nephropathy")) == (["DOID:8"], [])
    assert ids(settings, "kidney disease") == ["DOID:2"]  # the table still has it
    (ontology / "DO_small_slim.obo").unlink()
    assert run(settings, ontology).counts["removed"] == 1
    assert ids(settings, "mumps") == []
    assert set(documents(settings)) == {"HumanDO.tsv", "ICD10inDO.tsv"}
    graph = generations.current(settings.data) / FILE
    import_into(settings, write(tmp_path / "ward", {"a.txt": "Wash your hands before and after every patient."}))
    after = generations.current(settings.data) / FILE
    assert after != graph
    assert after.samefile(graph), "it outlives an import of documents unshared"


def slim(session: Session) -> Document:
    return next(document for document in lookups.documents(session, "doid") if document.source.endswith(".obo"))


def named(session: Session) -> list[tuple[str, Name]]:
    """What the graph being served finds under one name."""
    with session.workspace() as workspace:
        return workspace.library.graph.find("CKD")


def test_removed_superseded_and_withdrawn_files_do_not_answer(settings: Settings, ontology: Path) -> None:
    run(settings, ontology)
    with opened(settings, HashedWords()) as session:
        obo = slim(session)
        changes.mark(session, obo, Status.SUPERSEDED)
        assert named(session) == []
        changes.mark(session, obo, Status.CURRENT)
        assert named(session)
        changes.withdraw(session, obo, True, "test")
        assert named(session) == []
        changes.withdraw(session, obo, False, "test")
        changes.remove(session, [obo])
        assert named(session) == []
        with session.workspace() as workspace:
            assert len(workspace.library.graph.documents()) == 2


@pytest.mark.parametrize("by_name", [False, True])
def test_a_superseded_file_that_is_renamed_stays_so(settings: Settings, ontology: Path, by_name: bool) -> None:
    run(settings, ontology)
    with opened(settings, HashedWords()) as session:
        changes.mark(session, slim(session), Status.SUPERSEDED)
    renamed = (ontology / "DO_small_slim.obo").rename(ontology / "DO_other.obo")
    report = run(settings, renamed if by_name else ontology)
    assert ids(settings, "CKD") == []
    assert documents(settings)["DO_other.obo"].status is Status.SUPERSEDED
    assert "DO_small_slim.obo" not in documents(settings)
    assert {line.outcome for line in report.lines if line.path == str(renamed)} == {"read", "note"}
    assert run(settings, ontology).generation == 0 or by_name
    with opened(settings, HashedWords()) as session:
        changes.mark(session, lookups.document(session, documents(settings)["DO_other.obo"].id), Status.CURRENT)
    assert ids(settings, "CKD") == ["DOID:3"]


# --- bad input -----------------------------------------------------------------------------------------------------


def test_bad_lines_are_listed_up_to_a_bound_and_the_good_ones_served(settings: Settings, corpus: Path) -> None:
    shutil.copy(FIXTURES / "broken.obo", corpus / "doid.obo")
    report = run(settings, corpus)
    assert (report.counts["read"], report.counts["quarantined"]) == (1, 8)
    assert ids(settings, "first") == ["DOID:1"]
    with rows(settings.data) as state:
        assert {words(entry.place) for entry in quarantined(state, "doid")} >= {"line 6", "line 12", "line 22"}
    write(corpus, {"doid.obo": OBO.format(id="DOID:1", name="first")})
    run(settings, corpus)
    with rows(settings.data) as state:
        assert quarantined(state, "doid") == []
    write(corpus, {"doid.obo": OBO.format(id="DOID:1", name="first") + "no tag\n" * 50})
    report = run(replace(settings, read=ReadBounds(faults=3)), corpus)
    details = [words(line.detail) for line in report.lines if line.outcome == "quarantined"]
    assert len(details) == 4
    assert details[-1] == "the whole file: more refused parts, not listed: 47 (read.faults)"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "contains no terms"),
        ("\x00" * 100, "contains no terms: line 1: contains a NUL byte"),
        ("just prose\nabout nothing\n", "contains no terms"),
        ("[Term]\nname: x\n", "contains no terms: line 1: begins a term without an id"),
    ],
)
def test_a_file_without_terms_is_quarantined_and_leaves_what_was_there(
    settings: Settings, corpus: Path, text: str, why: str
) -> None:
    write(corpus, {"doid.obo": OBO.format(id="DOID:1", name="first")})
    run(settings, corpus)
    write(corpus, {"doid.obo": text, "DO_other.obo": OBO.format(id="DOID:2", name="second")})
    report = run(settings, corpus)
    refused = [words(line.detail) for line in report.lines if line.outcome == "quarantined"]
    assert len(refused) == 1
    assert f"doid.obo {why}" in refused[0]
    assert ids(settings, "first") == ["DOID:1"]
    assert ids(settings, "second") == ["DOID:2"]
    again = run(settings, corpus)
    assert "as before" in next(words(line.detail) for line in again.lines if line.outcome == "quarantined")


def test_a_file_over_a_bound_is_refused_and_tried_again(settings: Settings, ontology: Path) -> None:
    report = run(replace(settings, read=ReadBounds(records=1)), ontology)
    details = [words(line.detail) for line in report.lines if line.outcome == "quarantined"]
    assert details
    assert all("read.records" in detail for detail in details)
    run(replace(settings, read=ReadBounds(file_bytes=5)), ontology, retry=True)
    with rows(settings.data) as state:
        assert {entry.sha256 for entry in quarantined(state, "doid")} == {""}
    assert run(settings, ontology).counts["quarantined"] == 0


def test_a_reader_of_documents_is_refused(settings: Settings, ontology: Path) -> None:
    with pytest.raises(BadSettings, match=pattern("graph.reader")):
        run(settings, ontology, of=replace(manifest("symp"), reader="pdf"))
    odd = manifest("symp")
    odd.mapping.options["files"]["symp*.obo"]["reader"] = "pdf"
    report = run(settings, ontology, of=odd)
    assert "no graph reader pdf" in next(words(x.detail) for x in report.lines if x.outcome == "quarantined")
    report = import_into(settings, ontology / "symp.obo", manifest=described(reader="obo"))
    assert phrase("import.terms") in words(report.lines[0].detail)


def test_a_term_with_thousands_of_relations_and_a_circle(settings: Settings, corpus: Path) -> None:
    many = "".join(f"is_a: DOID:{n} ! x\n" for n in range(2, 5_002))
    circle = OBO.format(id="DOID:2", name="two") + "is_a: DOID:1\nis_a: DOID:2\n"
    write(corpus, {"doid.obo": OBO.format(id="DOID:1", name="hub") + many + "\n" + circle})
    run(settings, corpus)
    with opened(settings, HashedWords()) as session:
        hub = session.concept("hub", "what about DOID:4711")
        assert hub.total == 5_001
        assert hub.relations[0].object == "DOID:4711"
        assert session.concept("two").total == 2


@pytest.mark.parametrize(
    "sent", ['["term", "A:1"]', '["term", "A:1", "x", "", [["n"]], [], [], "", "", 0]', '["record"]']
)
def test_what_a_child_sends_is_checked(tmp_path: Path, sent: str) -> None:
    child = f"import sys; sys.stdin.readline(); print({sent!r}, flush=True); sys.stdin.read()"
    with (
        Parser((sys.executable, "-c", child)) as parser,
        pytest.raises(InputError, match=pattern("import.no_record")),
    ):
        list(parser.terms(write(tmp_path, {"a": "x"}) / "a", "obo", FieldMapping(), ReadBounds(), "a"))


# --- readers of terminologies ----------------------------------------------------------------------------------------


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
    replaced = {(term.name, term.replaced_by) for term in terms if term.replaced_by}
    assert replaced == {("DOID:33", "DOID:3"), ("Bright's disease", "DOID:2")}


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
        (b"def: " + b"x" * (3 * LINE_BYTES) + b"\n", f"is longer than {LINE_BYTES} bytes"),
    ],
)
def test_a_line_that_cannot_be_read_is_one_fault(tmp_path: Path, bad: bytes, reason: str) -> None:
    path = written(tmp_path, b"[Term]\nid: A:1\n" + bad + b"name: one\n\n[Term]\nid: A:2\nname: two\n")
    terms, faults = parts("obo", path)
    assert [term.name for term in terms] == ["one", "two"]
    assert words(faults) == [("line 3", reason)]
    assert terms[-1].end == path.stat().st_size


@pytest.mark.parametrize(
    ("reader", "content", "why"),
    [
        ("obo", "[Term]\nid: A:1\nname: one\n".encode("utf-16"), pattern("graph.utf16")),
        ("crossrefs", b"code,text\n1,2\n", "lacks the columns id and label"),
        ("umls", b"C0000001|T047|B2.2.1.2.1|Disease or Syndrome|AT1||\n", pattern("graph.umls")),
    ],
)
def test_what_is_refused_whole(tmp_path: Path, reader: str, content: bytes, why: str) -> None:
    with pytest.raises(InputError, match=why):
        parts(reader, written(tmp_path, content))


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
    terms, _ = parts("crossrefs", FIXTURES / "ICD10inDO.tsv")
    assert [term.xrefs for term in terms] == [("ICD10CM:N08", "ICD10CM:N28.9"), ("ICD10CM:N18",)]


GOOD = (FIXTURES / "MRDEF.RRF").read_text("utf-8").splitlines()[0]


@pytest.mark.parametrize(
    ("reader", "rows", "ids", "bad"),
    [
        ("crossrefs",
         ["id\tlabel\txrefs", '"A:1"\t"one"\t"X:1"', '"A:2"\t"two"', '"A:3"\t"three\t"X:3"', '""\t"four"\t""',
          '"A:5"\t""\t""', f'"A:6"\t"{"n" * (NAME_CHARACTERS + 1)}"\t""', '"A:7"\t"seven"\t""'],
         ["A:1", "A:7"], (3, 4, 5, 6, 7)),
        ("interactions",
         ["A$DB1$B$DB2$", "A$DB1$B$", "A$DB1$A$DB1$", "$DB1$B$DB2$", "A$$B$DB2$", "", "A$DB1$B$DB2$C$", ""],
         ["DB1", "DB2"], (2, 3, 4, 5, 7)),
        ("umls",
         [GOOD, "C1561643|A1|AT1|", GOOD.replace("C1561643", "D1561643"), GOOD.replace("Short.", ""), "", GOOD + "x"],
         ["C1561643"], (2, 3, 4, 6)),
    ],
)  # fmt: skip
def test_bad_rows_are_faults(
    tmp_path: Path, reader: str, rows: list[str], ids: list[str], bad: tuple[int, ...]
) -> None:
    terms, faults = parts(reader, written(tmp_path, "\n".join(rows)))
    assert [term.id for term in terms] == ids
    assert [words(fault.where) for fault in faults] == [f"line {number}" for number in bad]


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
    terms, _ = parts("umls", FIXTURES / "MRCONSO.RRF", languages=["GER"])
    assert [name for term in terms for name in term.names] == [("Nierenversagen, chronisches", "", "exact")]


def test_definitions_and_relations_of_umls() -> None:
    """Of several definitions the longest and none that is suppressed, each relation once."""
    terms, _ = parts("umls", FIXTURES / "MRDEF.RRF")
    assert [(term.id, term.definition) for term in terms] == [
        ("C1561643", "Kidneys that have worked too little for three months or longer.")
    ]
    terms, faults = parts("umls", FIXTURES / "MRREL.RRF")
    assert not faults
    assert {relation for term in terms for relation in term.relations} == {
        ("C1561643", "is_a", "C0022658", "MSH"),
        ("C9000001", "has_finding", "C1561643", "NCI"),
        ("C1561643", "narrower_than", "C0022658", "MTH"),
    }


# --- names and codes -----------------------------------------------------------------------------------------


def test_codes_have_one_spelling() -> None:
    spellings = {
        "UMLS_CUI:C0011849": "C0011849", "DRUGBANK:DB01118": "DB01118", "MSH:D003920": "MESH:D003920",
        "SNOMEDCT_US_2025_09_01:17788007": "SNOMEDCT_US:17788007", "ICD9CM_2005:205.0": "ICD9CM:205.0",
        "ICD10CM:E11": "ICD10CM:E11", "C0011849": "C0011849",
    }  # fmt: skip
    assert {code: canonical(code) for code in spellings} == spellings


def test_spellings_that_are_one_name() -> None:
    same = {"Type-2 Diabetes": "type 2 diabetes", "Sjögren's syndrome": "sjogren syndrome", "ＣＫＤ": "ckd",
            "KIDNEY DISEASES": "kidney disease", "beta‑blocker": "Beta blockers"}  # fmt: skip
    other = {"lupus": "lupu", "hepatitis A": "hepatitis B", "肾炎": "肾病", "+": "-"}
    assert [one for one in (same | other) if folded(one) == folded((same | other)[one])] == [*same]
