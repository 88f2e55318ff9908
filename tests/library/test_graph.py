"""The concept graph: what is found by which name, what is one relation away, and whose bytes a change touches."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import Collection, Kind, Passage, message
from localmed.domain.errors import Damaged
from localmed.library import generations, graph
from localmed.library.graph import RELATIONS_READ, Concept, Graph, Relation, Source, cited_passage, with_prefix
from localmed.library.library import Library, build
from localmed.library.migrations import GRAPH, open_database
from localmed.library.terms import Term
from tests.fakes import HashedWords, hashes

KIDNEY = (
    Term("D:1", "kidney disease", "A disease of the kidney.", (("nephropathy", "", "exact"),)),
    Term(
        "D:2", "chronic kidney disease", "",
        (("CKD", "", "abbreviation"), ("慢性肾脏病", "", "exact"), ("renal failure", "", "broad")),
        (("D:2", "is_a", "D:1", ""),), ("C0000002", "ICD10:N18"),
    ),
    Term("D:9", "Bright's disease", names=(("old nephritis", "", "exact"),), replaced_by="D:1"),
)  # fmt: skip


def source(document: str = "a", edition: str = "", collection: str = "one") -> Source:
    return Source(document, collection, f"Source {document}", edition)


def put(terms: Graph, of: Source, content: Iterable[Term]) -> None:
    number = terms.put_source(of)
    terms.add(number, content)
    terms.keep(number)


@contextmanager
def stored(path: Path, **contents: Iterable[Term]) -> Iterator[Graph]:
    """A graph read back from disk; each keyword is a document with its terms, in a collection of the same name."""
    path.mkdir(exist_ok=True)
    writing = Graph(path / graph.FILE, writable=True)
    for name, content in contents.items():
        put(writing, source(name, collection=name), content)
    writing.close()
    reading = Graph(path / graph.FILE)
    try:
        yield reading
    finally:
        reading.close()


def known(terms: Graph, identifier: str) -> Concept:
    concept = terms.concept(identifier)
    assert concept
    return concept


def cited(concept: Concept) -> Passage:
    passage = cited_passage(concept)
    assert passage
    return passage


def ids(terms: Graph, name: str) -> list[str]:
    return [concept for concept, _ in terms.find(name)]


# --- names -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["chronic kidney disease", "Chronic Kidney  Diseases", "CHRONIC-KIDNEY-DISEASE", "ckd", "慢性肾脏病", "D:2", "d:2"],
)
def test_a_concept_is_found_by_every_name_in_every_spelling(tmp_path: Path, name: str) -> None:
    with stored(tmp_path, one=KIDNEY) as terms:
        assert ids(terms, name) == ["D:2"]


def test_what_was_replaced_is_found_as_what_replaced_it(tmp_path: Path) -> None:
    with stored(tmp_path, one=KIDNEY) as terms:
        assert ids(terms, "Bright disease") == ids(terms, "old nephritis") == ["D:1"]
        assert ids(terms, "D:9") == []
        concept = known(terms, "D:1")
        assert [name.text for name in concept.names] == ["kidney disease", "nephropathy"]


def test_the_best_of_several_meanings_comes_first(tmp_path: Path) -> None:
    meanings = (
        Term("D:4", "something else", names=(("all", "", "related"),)),
        Term("D:5", "leukaemia", names=(("ALL", "", "abbreviation"),)),
        Term("D:3", "everything", names=(("All", "", "exact"),)),
        Term("D:6", "ALL"),
    )
    with stored(tmp_path, one=meanings) as terms:
        assert ids(terms, "ALL") == ["D:6", "D:3", "D:5", "D:4"]


def test_near_names_continue_or_resemble_and_nothing_is_found_by_nothing(tmp_path: Path) -> None:
    with stored(tmp_path, one=KIDNEY) as terms:
        assert [ids(terms, name) for name in ("", "  ", "!!!", "x" * 20_000, "%", "D:")] == [[]] * 6
        assert terms.near("chronic kidny disease")[0] == "chronic kidney disease"
        assert terms.near("kidney") == ["kidney disease"]
        assert terms.near("") == terms.near("zzz") == terms.near("y" * 20_000) == []


# --- what is put together ----------------------------------------------------------------------------------------


def test_sources_add_up_to_one_concept(tmp_path: Path) -> None:
    more = (Term("D:2", definition="Kidneys too weak for long."), Term("D:2", xrefs=("MESH:D1",)))
    with stored(tmp_path, one=KIDNEY, two=more) as terms:
        concept = known(terms, "D:2")
        assert (concept.name, concept.collection, concept.definition) == (
            "chronic kidney disease", "one", "Kidneys too weak for long.",
        )  # fmt: skip
        assert concept.defined_in == source("two", collection="two")
        assert concept.xrefs == ("C0000002", "ICD10:N18", "MESH:D1")
        assert terms.counts() == {"one": 2, "two": 1}
        assert terms.concept("D:404") is None


def test_concepts_of_other_sources_that_mean_the_same(tmp_path: Path) -> None:
    umls = (Term("C0000002", "Renal Insufficiency, Chronic"),)
    symptoms = (Term("S:1", "weak kidneys", xrefs=("C0000002",)), Term("S:2", "another", xrefs=("ICD10:N18",)))
    with stored(tmp_path, one=KIDNEY, umls=umls, symptoms=symptoms) as terms:
        assert terms.same("D:2") == ["C0000002", "S:1"]  # a code of ICD-10 is not a meaning
        assert set(terms.same("C0000002")) == {"D:2", "S:1"}
        assert terms.same("D:1") == []


def test_relations_of_both_directions_each_once_from_the_newest_source(tmp_path: Path) -> None:
    path = tmp_path / graph.FILE
    writing = Graph(path, writable=True)
    put(writing, source("old", "2019"), KIDNEY)
    put(writing, source("new", "2024"), KIDNEY)
    put(writing, source("undated"), KIDNEY)
    writing.close()
    reading = Graph(path)
    expected = Relation("D:2", "chronic kidney disease", "is_a", "D:1", "kidney disease", "", source("new", "2024"))
    assert reading.relations(["D:1"]) == reading.relations(["D:2"]) == [expected]
    assert reading.relations(["D:1", "D:2"]) == [expected]
    assert reading.relations([]) == []
    reading.close()


def test_relations_are_read_up_to_a_bound_and_a_circle_is_two(tmp_path: Path) -> None:
    hub = [Term(f"C:{n}", f"c{n}", relations=((f"C:{n}", "is_a", f"C:{(n + 1) % 3}", ""),)) for n in range(3)]
    hub += [Term("D:0", "hub")]
    hub += [Term(f"E:{n}", f"e{n}", relations=((f"E:{n}", "is_a", "D:0", ""),)) for n in range(RELATIONS_READ + 5)]
    with stored(tmp_path, one=hub) as terms:
        assert len(terms.relations(["D:0"])) == RELATIONS_READ
        assert len(terms.relations(["C:0"])) == 2


def test_what_is_hidden_is_in_no_look_up(tmp_path: Path) -> None:
    with stored(tmp_path, one=KIDNEY, two=[Term("D:2", "chronic kidney disease", "Defined.")]) as terms:
        terms.hide(["one"])
        assert ids(terms, "CKD") == ids(terms, "kidney disease") == []
        assert terms.relations(["D:2"]) == []
        assert terms.same("D:2") == []
        assert terms.near("nephropath") == []
        concept = known(terms, "D:2")
        assert (concept.names[0].text, concept.xrefs) == ("chronic kidney disease", ())
        terms.hide([])
        assert ids(terms, "CKD") == ["D:2"]


# --- decay ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["A disease of the kidney.", "nephropathy", "renal failure", "is_a", "ICD10:N18", "Source one"]
)
def test_a_row_that_has_decayed_is_damage(tmp_path: Path, text: str) -> None:
    """One that an index does not lead to any more is not found; none is shown otherwise than it was stored."""
    with stored(tmp_path, one=KIDNEY) as reading:
        before = _read_all(reading)
    path, damaged = tmp_path / graph.FILE, 0
    whole = path.read_bytes()
    for place in [place for place in range(len(whole)) if whole.startswith(text.encode(), place)]:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        reading = Graph(path)
        try:
            assert _read_all(reading) <= before
        except Damaged:
            damaged += 1
        reading.close()
    assert damaged


def _read_all(reading: Graph) -> set[object]:
    """What is shown of two concepts, piece by piece."""
    shown: set[object] = {*reading.documents(), *reading.counts().items()}
    for name in ("kidney disease", "nephropathy", "renal failure"):
        shown |= {*reading.find(name), *reading.near(name)}
    for identifier in ("D:1", "D:2"):
        shown |= {*reading.same(identifier), *reading.relations([identifier])}
        if concept := reading.concept(identifier):
            shown |= {concept.name, concept.definition, concept.defined_in, *concept.names, *concept.xrefs}
    return shown


def test_a_graph_of_before_there_were_checksums_answers_and_gets_them(tmp_path: Path) -> None:
    path = tmp_path / graph.FILE
    with stored(tmp_path, one=KIDNEY):
        pass
    rows = sqlite3.connect(path)
    tables = {
        table: rows.execute(f"SELECT {columns} FROM {table}").fetchall() for table, columns in graph._COLUMNS.items()
    }
    rows.close()
    path.unlink()
    old = open_database(path, GRAPH[:1])
    for table, values in tables.items():
        old.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values[0]))})", values)
    old.close()
    reading = Graph(path)
    assert ids(reading, "CKD") == ["D:2"]
    reading.close()
    assert graph.outdated(path)
    Graph(path, writable=True).close()
    written = sqlite3.connect(path)
    assert all(row[0] for table in tables for row in written.execute(f"SELECT digest FROM {table}"))
    written.close()


# --- changing ------------------------------------------------------------------------------------------------------


def test_a_source_replaces_itself_and_nothing_else(tmp_path: Path) -> None:
    with stored(tmp_path, one=KIDNEY, two=[Term("D:7", "gout")]):
        pass
    writing = Graph(tmp_path / graph.FILE, writable=True)
    put(writing, source("one"), [Term("D:8", "mumps")])
    writing.close()
    reading = Graph(tmp_path / graph.FILE)
    assert ids(reading, "CKD") == []
    assert reading.relations(["D:2"]) == []
    assert ids(reading, "mumps") == ["D:8"]
    assert ids(reading, "gout") == ["D:7"]
    reading.close()


def test_what_is_taken_back_leaves_what_was_there(tmp_path: Path) -> None:
    writing = Graph(tmp_path / graph.FILE, writable=True)
    put(writing, source("one"), KIDNEY)
    number = writing.put_source(source("one"))
    writing.add(number, [Term("D:8", "mumps")])
    writing.undo()
    assert ids(writing, "mumps") == []
    assert ids(writing, "CKD") == ["D:2"]
    writing.close()
    assert [path.name for path in tmp_path.iterdir()] == [graph.FILE]  # no journal is left


# --- in generations ------------------------------------------------------------------------------------------------


@pytest.fixture
def served(settings: Settings) -> Settings:
    """A library whose graph holds ``KIDNEY`` as document ``one``."""
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.put_collection(Collection("one", "One", kind=Kind.GRAPH))
        put(builder.graph.writable(), source("one"), KIDNEY)
        builder.publish(message("generation.made.upgrade"))
    return settings


def test_a_changed_graph_leaves_the_published_file_byte_identical(served: Settings) -> None:
    before = generations.current(served.data)
    kept = hashes(before)
    with build(served.data, HashedWords().identity, served.library) as builder:
        builder.graph.remove(["one"])
        put(builder.graph.writable(), source("two"), [Term("D:7", "gout")])
        assert hashes(before) == kept
        builder.publish(message("generation.made.upgrade"))
    after = generations.current(served.data)
    assert hashes(before) == kept
    assert not (after / graph.FILE).samefile(before / graph.FILE)
    assert sorted(path.name for path in after.glob("graph*")) == [graph.FILE]
    assert generations.check(after, whole=True) == generations.check(before, whole=True) == []
    with Library.open(served.data) as library:
        assert ids(library.graph, "gout") == ["D:7"]
        assert ids(library.graph, "CKD") == []


def test_an_unchanged_graph_is_shared_not_copied(served: Settings) -> None:
    before = generations.current(served.data)
    with build(served.data, HashedWords().identity, served.library) as builder:
        builder.put_collection(Collection("other", "Other"))
        builder.graph.remove(["a document that is not of the graph"])
        builder.publish(message("generation.made.upgrade"))
    after = generations.current(served.data)
    assert after != before
    assert (after / graph.FILE).samefile(before / graph.FILE)
    with Library.open(served.data) as library:
        assert ids(library.graph, "CKD") == ["D:2"]


def test_without_a_graph_nothing_is_found(settings: Settings) -> None:
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.put_collection(Collection("other", "Other"))
        builder.publish(message("generation.made.upgrade"))
    assert not (generations.current(settings.data) / graph.FILE).exists()
    with Library.open(settings.data) as library:
        assert ids(library.graph, "CKD") == []
        assert library.graph.counts() == {}


def test_a_definition_is_a_passage_that_its_id_finds(tmp_path: Path) -> None:
    with stored(tmp_path, one=KIDNEY, other=(Term("D:7", "CKD stage 5", "Kidney failure."),)) as terms:
        passage = cited(known(terms, "D:1"))
        assert (passage.document_id, passage.collection, passage.title) == ("one", "one", "Source one")
        assert passage.text == "kidney disease: A disease of the kidney."
        assert with_prefix(terms, passage.id[:12]) == [passage]
        assert len(with_prefix(terms, "")) == 2
        assert with_prefix(terms, "f" * 12) == []
        assert cited_passage(known(terms, "D:2")) is None
        terms.hide(["one"])
        assert with_prefix(terms, passage.id) == []
    longer = (Term("D:1", "kidney disease", "A disease of the kidney, of whatever cause."),)
    with stored(tmp_path / "more", one=KIDNEY, two=longer) as terms:
        passage = cited(known(terms, "D:1"))
        assert (passage.document_id, with_prefix(terms, passage.id)) == ("two", [passage])
        terms.hide(["two"])
        assert with_prefix(terms, passage.id) == [], "what now stands in its place is another passage"
