"""What is not effective or not readable is found by no search; dates decide; old generations still answer."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from localmed.config import LibrarySettings, SearchSettings, Settings
from localmed.domain import Collection, Governance, Kind, SearchFilter, Status, is_date, message
from localmed.domain.errors import UnknownName, UsageError
from localmed.ingest.manifest import Manifest
from localmed.library import generations, intact
from localmed.library.access import groups_of
from localmed.library.catalogue import FILE
from localmed.library.dense import Nearest
from localmed.library.governed import NO_HEADING, Governed, heading_field
from localmed.library.in_force import in_force
from localmed.library.lexical import dump, parse_passage
from localmed.library.library import Library, build
from localmed.library.migrations import LIBRARY, open_database
from localmed.retrieval import studies
from localmed.retrieval.search import HybridSearch
from tests.fakes import HashedWords, WeighedWords, import_into, opened, restrict, write
from tests.values import passage

COLLECTIONS = ("ward", "icu", "pharmacy")
GROUPS = ("doctors", "nurses", "pharmacists")
FIRST = date(2026, 1, 1)
DATES = ("", "2026-01-10", "2026-01-20", "2026-02", "2027")
STATUSES = ("current", "superseded")
QUESTION = "sepsis antibiotics"


def documents() -> dict[str, dict[str, dict[str, str]]]:
    """Of each collection, file name -> the manifest's facts: every date with every status."""
    return {
        name: {
            f"{name} {status} {effective or 'always'}.txt": {
                "status": status, "effective_from": effective, "title": f"{name} {status} {effective}"
            }
            for effective in DATES
            for status in STATUSES
        }
        for name in COLLECTIONS
    }  # fmt: skip


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A library of three collections of guidelines, searched by words, vectors and weights."""
    root = tmp_path_factory.mktemp("governance")
    settings = Settings(
        root / "data", library=LibrarySettings(writer_memory_bytes=15_000_000), search=SearchSettings(sparse_weight=0.5)
    )
    for name, files in documents().items():
        folder = write(root / name, {file: f"Sepsis antibiotics of {file}, {name}." for file in files})
        manifest = Manifest(Collection(name, name, kind=Kind.GUIDELINE), documents=files)
        import_into(settings, folder, manifest=manifest, encoder=WeighedWords())
    return settings


def paths(library: Library, settings: Settings, filters: SearchFilter) -> Iterator[tuple[str, set[str]]]:
    """Every way in which passages are found, with the documents that it finds."""
    encoder = WeighedWords()
    vectors, weights = encoder.encode_both([QUESTION], "query")
    rows = {
        "lexical": library.search_lexical(QUESTION, 100, filters, 3.0, 64),
        "dense": library.search_dense(vectors[0], 100, filters),
        "sparse": library.search_sparse(weights[0], 100, filters),
    }
    yield from ((name, {document for _, document, _ in rows_}) for name, rows_ in rows.items())
    host = Nearest(library.data)
    name = library.path.name
    library.searched_by(partial(host.search, name), partial(host.similarities, name))
    yield "host", {document for _, document, _ in library.search_dense(vectors[0], 100, filters)}
    result = HybridSearch(library, encoder, settings.search).search(QUESTION, filters, 100)
    yield "hybrid", {hit.passage.document_id for hit in result.hits}


@given(
    st.integers(0, 420),
    st.dictionaries(st.sampled_from(COLLECTIONS), st.sets(st.sampled_from(GROUPS), min_size=1)),
    st.sets(st.sampled_from(GROUPS)),
    st.sampled_from([(Status.CURRENT,), (Status.CURRENT, Status.SUPERSEDED), tuple(Status)]),
    st.sets(st.sampled_from(COLLECTIONS)),
)
@hypothesis(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.slow
def test_no_search_finds_what_is_not_effective_or_not_readable(
    settings: Settings,
    days: int,
    restricted: dict[str, set[str]],
    groups: set[str],
    statuses: tuple[Status, ...],
    named: set[str],
) -> None:
    day = (FIRST + timedelta(days)).isoformat()
    readable = {
        collection for collection in COLLECTIONS if not restricted.get(collection) or restricted[collection] & groups
    }
    may = {
        facts["title"]
        for name in readable & (named or readable)
        for facts in documents()[name].values()
        if facts["effective_from"] <= day and facts["status"] in statuses
    }
    hidden = frozenset(COLLECTIONS) - readable
    with Library.open(settings.data, hidden, day) as library:
        by_way = dict(paths(library, settings, SearchFilter(tuple(sorted(named)), statuses=statuses)))
        titles = {document.id: document.title for document in library.catalogue.documents()}
        for way, ids in by_way.items():
            assert {titles.get(document, "hidden") for document in ids} <= may, way
        for way in ("lexical", "dense", "sparse", "host"):
            assert {titles[document] for document in by_way[way]} == may, way
        seen = studies.find(library, QUESTION, 100, tuple(sorted(named or readable)), settings.search)
        assert all(study.document.collection in readable for study in seen)
        assert not any(study.document.status is Status.PENDING for study in seen)
        assert {collection.name for collection in library.catalogue.collections()} == readable
        assert set(library.catalogue.counts()) == readable


def test_what_is_hidden_is_nowhere(settings: Settings) -> None:
    with Library.open(settings.data, day="2026-06-01") as whole:
        (secret,) = [document for document in whole.catalogue.documents("icu") if document.title == "icu current "]
        (passage,) = whole.lexical.of_document(secret.id)
    with Library.open(settings.data, frozenset({"icu"}), "2026-06-01") as library:
        for look_up in (
            lambda: library.passage(passage.id),
            lambda: library.catalogue.document(secret.id),
            lambda: library.catalogue.collection("icu"),
        ):
            with pytest.raises(UnknownName) as caught:
                look_up()
            assert "icu" not in str(caught.value).replace("'icu'", "")  # what was asked for may be repeated
        assert library.passages([passage.id]) == {}
        assert library.lexical.of_document(secret.id) == []
        assert library.catalogue.by_ids([secret.id]) == {}
        assert library.catalogue.files("icu") == {}
        reference = studies.Reference("1", secret.title, id=secret.id)
        assert studies.named(library, [reference, studies.Reference("2", id=passage.id)]) == (None, None)


def test_a_reference_to_what_is_not_yet_effective_is_not_held(settings: Settings) -> None:
    with Library.open(settings.data, day="2026-06-01") as library:
        (late,) = [document for document in library.catalogue.documents("icu") if document.title == "icu current 2027"]
        assert library.status(late.id) is Status.PENDING
        assert studies.named(library, [studies.Reference("1", id=late.id)]) == (None,)
        library.holding.day = "2027-01-01"
        assert studies.named(library, [studies.Reference("1", id=late.id)])[0] is not None


# --- dates ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("review", "day", "late"),
    [
        ("", "9999-12-31", False),
        ("2026-12-01", "2026-12-01", False),
        ("2026-12-01", "2026-12-02", True),
        ("2026-12", "2026-12-31", False),
        ("2026-12", "2027-01-01", True),
        ("2026", "2026-12-31", False),
        ("2026", "2027-01-01", True),
    ],
)
def test_review_by(review: str, day: str, late: bool) -> None:
    assert Governance(review_by=review).overdue(day) is late


@pytest.mark.parametrize("text", ["", "26-12-01", "2026-13", "2026-02-30", "2026-2-3", "20261201", "2026-12-01 "])
def test_what_is_no_date(text: str) -> None:
    assert not is_date(text)


def test_the_catalogue_and_the_value_agree_on_overdue(settings: Settings, tmp_path: Path) -> None:
    dates = ["2026-02-28", "2026-03", "2025", "2026"]
    facts = {f"{number}.txt": {"review_by": date_} for number, date_ in enumerate(dates)}
    own = replace(settings, data=tmp_path / "data")
    folder = write(tmp_path / "c", {name: f"Sepsis {name}" for name in facts})
    import_into(own, folder, manifest=Manifest(Collection("ward", "Ward"), documents=facts))
    with Library.open(own.data) as library:
        stored = {document.id: document.governance for document in library.catalogue.documents()}
        for day in ("2025-12-31", "2026-01-01", "2026-03-01", "2026-03-31", "2026-04-01", "2027-01-01"):
            assert set(library.catalogue.overdue(day)) == {
                name for name, fields in stored.items() if fields.overdue(day)
            }


def superseding(settings: Settings, corpus: Path, facts: dict[str, dict[str, str]]) -> dict[str, str]:
    """Import the files of ``facts``; return their ids by name."""
    write(corpus, {f"{name}.txt": f"Sepsis, edition {name}." for name in facts})
    manifest = Manifest(Collection("ward", "Ward"), documents={f"{name}.txt": facts_ for name, facts_ in facts.items()})
    import_into(settings, corpus, manifest=manifest)
    with Library.open(settings.data) as library:
        return {Path(document.source).stem: document.id for document in library.catalogue.documents()}


def test_the_older_edition_holds_until_the_newer_is_effective(tmp_path: Path, corpus: Path) -> None:
    settings = Settings(tmp_path / "data")
    ids = superseding(settings, corpus, {
        "a": {"status": "superseded", "replaced_by": "b.txt"},
        "b": {"status": "superseded", "replaced_by": "c.txt", "effective_from": "2026-03-01"},
        "c": {"effective_from": "2026-05-01"},
    })  # fmt: skip
    with Library.open(settings.data) as library:
        for day, holds in (("2026-02-28", "a"), ("2026-03-01", "b"), ("2026-04-30", "b"), ("2026-05-01", "c")):
            library.holding.day = day
            answering = {document for _, document, _ in library.search_lexical("sepsis", 9, SearchFilter(), 3.0, 64)}
            assert answering == {ids[holds]}, day


def test_a_circle_of_successors_ends(tmp_path: Path, corpus: Path) -> None:
    settings = Settings(tmp_path / "data")
    both = {"status": "superseded", "effective_from": "2027"}
    withdrawn = {"c": {"status": "withdrawn", "effective_from": "2999"}}
    facts = {"a": both | {"replaced_by": "b.txt"}, "b": both | {"replaced_by": "a.txt"}} | withdrawn
    ids = superseding(settings, corpus, facts)
    with Library.open(settings.data, day="2026-01-01") as library:
        for day, status in (("2026-01-01", Status.PENDING), ("2027-01-01", Status.SUPERSEDED)):
            library.holding.day = day
            assert {library.status(ids[name]) for name in ("a", "b")} == {status}
            assert library.status(ids["c"]) is Status.WITHDRAWN, "that comes before pending"


# --- readers ----------------------------------------------------------------------------------------------------------


def test_who_sees_everything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert groups_of((), tmp_path) is None
    assert groups_of((), tmp_path / "not there yet") is None
    assert groups_of(("nurses",), tmp_path) == frozenset({"nurses"})
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # root, who runs tests, may write anywhere
    assert groups_of((), tmp_path) == frozenset()


@pytest.mark.parametrize("name", ["", "two words", "a/b", "x" * 61, "-a", "a\n"])
def test_what_is_no_group_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        restrict(tmp_path, "icu", [name])
    assert in_force(tmp_path).access == {}


def test_a_restriction_and_a_new_day_hold_from_the_next_question(settings: Settings) -> None:
    days = ["2026-01-15"]
    reader = replace(settings, reader=replace(settings.reader, groups=("nurses",)))
    with opened(reader, WeighedWords(), day=lambda: days[0]) as session:
        try:
            before = {hit.passage.collection for hit in session.find(QUESTION, SearchFilter(), 50, 50).found.hits}
            restrict(settings.data, "icu", ["doctors"])
            after = {hit.passage.title for hit in session.find(QUESTION, SearchFilter(), 50, 50).found.hits}
            answer = session.ask("When are antibiotics of sepsis given?", SearchFilter())
            days[0] = "2026-02-01"
            later = {hit.passage.title for hit in session.find(QUESTION, SearchFilter(), 50, 50).found.hits}
        finally:
            restrict(settings.data, "icu", [])
    assert before == set(COLLECTIONS)
    assert after == {f"{name} current {day}" for name in ("ward", "pharmacy") for day in ("", "2026-01-10")}
    assert later - after == {
        f"{name} current {day}" for name in ("ward", "pharmacy") for day in ("2026-01-20", "2026-02")
    }
    assert answer.provenance.day == "2026-01-15"
    assert "icu" not in repr(answer)


# --- what an older localmed wrote -------------------------------------------------------------------------------------


def as_before(data: Path) -> None:
    """Give the generation being served the catalogue that the schema before this one would have."""
    generation = generations.current(data)
    with closing(sqlite3.connect(generation / FILE)) as new:
        rows = {
            table: [dict(zip((column[0] for column in cursor.description), row, strict=True)) for row in cursor]
            for table in ("collections", "files", "documents", "marks", "summaries")
            if (cursor := new.execute(f"SELECT * FROM {table}"))
        }
    (generation / FILE).unlink()
    old = open_database(generation / FILE, LIBRARY[:2])
    for table, values in rows.items():
        columns = [row[1] for row in old.execute(f"PRAGMA table_info({table})")]
        marks = ", ".join("?" * len(columns))
        old.executemany(
            f"INSERT INTO {table} VALUES ({marks})", [[value[name] for name in columns] for value in values]
        )
    old.close()
    manifest = generations.read_manifest(generation)
    entry = intact.FileEntry(sha256=intact.sha256_of(generation / FILE), bytes=(generation / FILE).stat().st_size)
    changed = replace(manifest, files={**manifest.files, FILE: entry})
    (generation / "manifest.json").write_text(changed.to_json())


def test_a_generation_of_the_schema_before_answers_and_is_carried_on(tmp_path: Path, corpus: Path) -> None:
    settings = Settings(tmp_path / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))
    ids = superseding(settings, corpus, {"a": {"status": "superseded", "replaced_by": "b.txt"}, "b": {}})
    as_before(settings.data)
    with Library.open(settings.data) as library, closing(sqlite3.connect(library.path / FILE)) as stored:
        assert stored.execute("PRAGMA user_version").fetchone() == (2,)
        answering = {document for _, document, _ in library.search_lexical("sepsis", 9, SearchFilter(), 3.0, 64)}
        assert answering == {ids["b"]}
        assert library.catalogue.document(ids["b"]).governance == Governance()
        assert library.catalogue.succeeding(ids["a"]) == (ids["b"], [])
        assert library.catalogue.removed(ids["a"]) is None
    with Library.open(settings.data, frozenset({"ward"})) as library:
        assert library.catalogue.documents() == []
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.publish(message("generation.made.upgrade"))
    with Library.open(settings.data) as library:
        assert library.status(ids["a"]) is Status.SUPERSEDED
        assert library.manifest.number == 2


def test_corrected_headings_are_the_same_again_and_every_character_keeps_its_box(tmp_path: Path) -> None:
    first, second, third, fourth, fifth = (
        replace(passage(text), id=text, headings=("Title", *headings))
        for text, *headings in (("One.", "Dose", "Adults"), ("Two.", "Never."), ("Three.", "Never.", "Chidren"),
                                ("Four.", "Dosag"), ("Five.", "Dosage"))
    )  # fmt: skip
    set_ = {second: NO_HEADING, third: "Children", fourth: "Dosage", fifth: NO_HEADING}
    with closing(open_database(tmp_path / FILE, LIBRARY)) as database:
        governed = Governed(database)
        rows = [(first.document_id, heading_field(one.headings), value) for one, value in set_.items()]
        database.executemany("INSERT INTO governed VALUES (?, ?, ?, '')", rows)
        whole = governed.apply_to_passages([first, second, third, fourth, fifth])
        assert whole[4].headings == ("Title", "Dosage"), "the section above has the name of what is no heading"
        assert [parse_passage(dump(it)) for it in whole] == governed.apply_to_passages(whole) == whole
        made = whole[:3]
        assert [it.headings[1:] for it in made] == [("Dose", "Adults"), ("Dose", "Adults"), ("Dose", "Children")]
        assert [it.text for it in made] == ["One.", "Never.\nTwo.", "Three."]
        assert [made[1].text[span.start : span.end] for span in made[1].spans] == ["Two."]
        database.execute("DELETE FROM governed")
        assert governed.apply_to_passages(whole) == [first, second, third, fourth, fifth]
