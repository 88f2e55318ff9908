"""The import of terminologies: in step with the files, faults listed, the old graph served until the swap."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import ReadBounds, Settings
from localmed.domain import Status
from localmed.domain.errors import BadSettings, InputError
from localmed.ingest import manifest as manifests
from localmed.ingest.graph_import import GraphImporter
from localmed.ingest.manifest import Manifest
from localmed.ingest.parsed import FieldMapping
from localmed.ingest.parsing import Parser
from localmed.ingest.report import Report
from localmed.library import generations
from localmed.library.graph import FILE, Graph, Name
from localmed.library.library import Library
from localmed.library.state import State
from localmed.site import changes, lookups
from localmed.site.session import Session
from tests.fakes import HashedWords, described, documents, hashes, import_into, opened, write
from tests.words import pattern, phrase, words

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


def test_what_is_unchanged_is_not_read_again(settings: Settings, ontology: Path) -> None:
    run(settings, ontology)
    before = generations.current(settings.data)
    report = run(settings, ontology)
    assert (report.counts["unchanged"], report.counts["read"], report.generation) == (3, 0, 0)
    assert generations.current(settings.data) == before


def test_a_changed_file_replaces_its_terms_and_leaves_the_published_generation(
    settings: Settings, ontology: Path
) -> None:
    run(settings, ontology)
    before = generations.current(settings.data)
    kept = hashes(before)
    write(ontology, {"DO_small_slim.obo": OBO.format(id="DOID:8", name="mumps")})
    report = run(settings, ontology)
    assert (report.counts["read"], report.counts["unchanged"]) == (1, 2)
    assert ids(settings, "mumps") == ["DOID:8"]
    assert ids(settings, "nephropathy") == []
    assert ids(settings, "kidney disease") == ["DOID:2"]  # the table still has it
    assert hashes(before) == kept


def test_files_that_are_gone_are_removed(settings: Settings, ontology: Path) -> None:
    run(settings, ontology)
    (ontology / "DO_small_slim.obo").unlink()
    report = run(settings, ontology)
    assert report.counts["removed"] == 1
    assert ids(settings, "nephropathy") == []
    assert set(documents(settings)) == {"HumanDO.tsv", "ICD10inDO.tsv"}


def test_a_graph_outlives_an_import_of_documents_unshared(settings: Settings, ontology: Path, tmp_path: Path) -> None:
    run(settings, ontology)
    before = generations.current(settings.data)
    import_into(settings, write(tmp_path / "ward", {"a.txt": "Wash your hands before and after every patient."}))
    after = generations.current(settings.data)
    assert after != before
    assert (after / FILE).samefile(before / FILE)
    assert ids(settings, "CKD") == ["DOID:3"]


def named(session: Session) -> list[tuple[str, Name]]:
    """What the graph being served finds under one name."""
    with session.workspace() as workspace:
        return workspace.library.graph.find("CKD")


def test_removed_superseded_and_withdrawn_files_do_not_answer(settings: Settings, ontology: Path) -> None:
    run(settings, ontology)
    with opened(settings, HashedWords()) as session:
        slim = next(document for document in lookups.documents(session, "doid") if document.source.endswith(".obo"))
        changes.mark(session, slim, Status.SUPERSEDED)
        assert named(session) == []
        changes.mark(session, slim, Status.CURRENT)
        assert named(session)
        changes.withdraw(session, slim, True, "test")
        assert named(session) == []
        changes.withdraw(session, slim, False, "test")
        changes.remove(session, [slim])
        assert named(session) == []
        with session.workspace() as workspace:
            assert len(workspace.library.graph.documents()) == 2


@pytest.mark.parametrize("by_name", [False, True])
def test_a_superseded_file_that_is_renamed_stays_so(settings: Settings, ontology: Path, by_name: bool) -> None:
    run(settings, ontology)
    with opened(settings, HashedWords()) as session:
        changes.mark(
            session,
            next(document for document in lookups.documents(session, "doid") if document.source.endswith(".obo")),
            Status.SUPERSEDED,
        )
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


def test_an_interrupted_import_leaves_the_old_generation(settings: Settings, ontology: Path) -> None:
    run(settings, ontology)
    before = generations.current(settings.data)
    kept = hashes(before)
    write(ontology, {"DO_small_slim.obo": OBO.format(id="DOID:8", name="mumps")})

    def interrupt(done: float, doing: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GraphImporter(settings, manifest("doid"), HashedWords(), interrupt).run([ontology])
    assert generations.current(settings.data) == before
    assert hashes(before) == kept
    assert ids(settings, "CKD") == ["DOID:3"]


# --- bad input -----------------------------------------------------------------------------------------------------


def test_bad_lines_are_listed_and_the_good_ones_served(settings: Settings, corpus: Path) -> None:
    shutil.copy(FIXTURES / "broken.obo", corpus / "doid.obo")
    report = run(settings, corpus)
    assert (report.counts["read"], report.counts["quarantined"]) == (1, 8)
    assert ids(settings, "first") == ["DOID:1"]
    with State(settings.data) as state:
        assert {words(entry.place) for entry in state.quarantined("doid")} >= {"line 6", "line 12", "line 22"}
    write(corpus, {"doid.obo": OBO.format(id="DOID:1", name="first")})
    run(settings, corpus)
    with State(settings.data) as state:
        assert state.quarantined("doid") == []


def test_faults_are_listed_up_to_their_bound(settings: Settings, corpus: Path) -> None:
    write(corpus, {"doid.obo": OBO.format(id="DOID:1", name="first") + "no tag\n" * 50})
    bounded = replace(settings, read=ReadBounds(faults=3))
    report = run(bounded, corpus)
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


def test_more_terms_than_allowed_end_the_file(settings: Settings, corpus: Path) -> None:
    write(corpus, {"doid.obo": "".join(OBO.format(id=f"DOID:{n}", name=f"n{n}") for n in range(9))})
    report = run(replace(settings, read=ReadBounds(records=5)), corpus)
    assert "more than 5 records" in words(report.lines[0].detail)


def test_a_file_that_could_not_be_copied_is_tried_again(settings: Settings, ontology: Path) -> None:
    run(replace(settings, read=ReadBounds(file_bytes=5)), ontology)
    with State(settings.data) as state:
        assert {entry.sha256 for entry in state.quarantined("doid")} == {""}
    assert run(settings, ontology).counts["quarantined"] == 0


def test_a_reader_of_documents_is_refused(settings: Settings, ontology: Path) -> None:
    with pytest.raises(BadSettings, match=pattern("graph.reader")):
        run(settings, ontology, of=replace(manifest("symp"), reader="pdf"))
    odd = manifest("symp")
    odd.mapping.options["files"]["symp*.obo"]["reader"] = "pdf"
    report = run(settings, ontology, of=odd)
    assert "no graph reader pdf" in next(words(x.detail) for x in report.lines if x.outcome == "quarantined")


def test_terms_are_refused_by_a_collection_of_documents(settings: Settings, ontology: Path) -> None:
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


def test_a_file_named_by_itself_needs_no_pattern(settings: Settings, ontology: Path) -> None:
    report = run(settings, ontology / "symp.obo")
    assert report.counts["read"] == 1
    assert ids(settings, "tiredness") == ["SYMP:1"]
