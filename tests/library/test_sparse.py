"""The sparse index: exact dot products, filters and deletes, its part in a generation, and its part of the cache."""

from __future__ import annotations

import random
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from localmed.config import Settings
from localmed.domain import SearchFilter, Status, message
from localmed.domain.errors import Damaged
from localmed.library import generations
from localmed.library.library import SPARSE, Library, build
from localmed.library.migrations import VECTORS, open_database
from localmed.library.sparse import MOST_STEPS, MOST_TOKENS, STEP, SparseIndex, steps
from localmed.library.vectors import VectorCache
from tests.fakes import (
    HashedWords,
    WeighedWords,
    described,
    documents,
    import_into,
    jsonl,
    overwrite,
    token_of,
    verify,
    withdraw,
    write,
)
from tests.values import passage
from tests.words import pattern

HEAP = 15_000_000
ANY = SearchFilter()
Weighed = Mapping[int, float]

token_weights = st.dictionaries(st.integers(0, 12), st.floats(0, 5, width=16), max_size=8)


def index_of(folder: Path, *rows: Weighed) -> SparseIndex:
    """An index of one passage a row, with ids ``p0``, ``p1`` ... of documents ``d0``, ``d1`` ..."""
    index = SparseIndex(folder, make=True)
    writer = index.writer(HEAP)
    passages = [replace(passage("text"), id=f"p{n}", document_id=f"d{n}") for n in range(len(rows))]
    writer.add(passages, rows)
    writer.finish()
    index.reload()
    return index


def scores_of(index: SparseIndex, weights: Weighed, limit: int = 100, filters: SearchFilter = ANY) -> dict[str, float]:
    return {row[0]: row[2] for row in index.search(weights, limit, filters)}


def dot(question: Weighed, stored: Weighed) -> float:
    return sum(weight * steps(stored.get(token, 0.0)) * STEP for token, weight in question.items())


@hypothesis(max_examples=15, deadline=None)
@given(st.lists(token_weights, max_size=20), token_weights)
def test_the_score_is_the_dot_product(rows: list[Weighed], question: Weighed) -> None:
    with tempfile.TemporaryDirectory() as folder:
        index = index_of(Path(folder), *rows)
        assert len(index) == len(rows)
        expected = {
            f"p{n}": dot(question, row)
            for n, row in enumerate(rows)
            if any(steps(row.get(token, 0.0)) for token in question)
        }
        scores = scores_of(index, question)
        assert scores == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert list(scores.values()) == sorted(scores.values(), reverse=True)


@given(st.floats(0, MOST_STEPS * STEP))
def test_a_weight_is_kept_to_half_a_step(weight: float) -> None:
    assert abs(steps(weight) * STEP - weight) <= STEP / 2


def test_a_weight_beyond_every_model_counts_as_the_most(tmp_path: Path) -> None:
    assert steps(1e9) == MOST_STEPS
    assert scores_of(index_of(tmp_path, {1: 1e9}), {1: 1.0}) == {"p0": MOST_STEPS * STEP}


def test_tokens_whose_numbers_begin_alike_differ(tmp_path: Path) -> None:
    index = index_of(tmp_path, {1: 0.5}, {12: 0.5}, {123: 0.5})
    assert scores_of(index, {12: 1.0}) == {"p1": 0.5}


def test_the_heaviest_tokens_of_a_long_question_count(tmp_path: Path) -> None:
    index = index_of(tmp_path, {1: 0.5}, {MOST_TOKENS + 1: 0.5})
    question = {token: float(token) for token in range(1, MOST_TOKENS + 2)}
    assert set(scores_of(index, question)) == {"p1"}
    assert set(scores_of(index, dict(list(question.items())[:-1]))) == {"p0"}


@pytest.mark.parametrize("question", [{}, {99: 1.0}])
def test_nothing_in_common_is_nothing_found(tmp_path: Path, question: Weighed) -> None:
    index = index_of(tmp_path, {1: 0.5}, {})
    assert len(index) == 2
    assert scores_of(index, question) == {}
    assert scores_of(index, {1: 1.0}, limit=0) == {}


def test_documents_are_deleted_and_added_again(tmp_path: Path) -> None:
    index = index_of(tmp_path, {1: 0.5}, {1: 0.25})
    writer = index.writer(HEAP)
    writer.delete_documents(["d0"])
    writer.add([replace(passage("new"), id="p9", document_id="d0")], [{1: 1.0}])
    writer.finish()
    index.reload()
    assert scores_of(index, {1: 1.0}) == {"p9": 1.0, "p1": 0.25}


def test_every_passage_needs_its_weights(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="shorter"):
        SparseIndex(tmp_path, make=True).writer(HEAP).add([passage("text")], [])


def test_what_is_no_index_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text("no index", "utf-8")
    with pytest.raises(Damaged):
        SparseIndex(tmp_path)
    with pytest.raises(Damaged):
        SparseIndex(tmp_path / "missing")
    assert not (tmp_path / "missing").exists()


# --- in a generation -------------------------------------------------------------------------------------------------


def import_both(settings: Settings, ward: Path, clinic: Path) -> Settings:
    """Two collections of two languages and four dates, and one text that has been superseded."""
    records = [
        {"id": f"{language}{n}", "title": f"{language} {n}", "edition": edition, "language": language,
         "text": f"Sepsis guidance number {n}. 脓毒症 {n}。"}
        for language in ("en", "zh")
        for n, edition in enumerate(("2019-03", "2021", "2024-05-01", ""))
    ]  # fmt: skip
    old = {"id": "old", "title": "old", "status": "superseded", "text": "Sepsis as it was treated before."}
    encoder = WeighedWords()
    import_into(settings, write(ward, {"a.jsonl": jsonl(*records, old)}), encoder=encoder)
    import_into(settings, write(clinic, {"b.jsonl": jsonl(*records)}), manifest=described("clinic"), encoder=encoder)
    return settings


@pytest.fixture
def imported(settings: Settings, corpus: Path) -> Settings:
    return import_both(settings, corpus, corpus.parent / "clinic")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    root = tmp_path_factory.mktemp("sparse")
    with Library.open(import_both(Settings(root / "data"), root / "ward", root / "clinic").data) as opened:
        yield opened


@pytest.mark.parametrize(
    "filters",
    [
        SearchFilter(),
        SearchFilter(collections=("ward",)),
        SearchFilter(collections=("it's not there",)),
        SearchFilter(language="zh"),
        SearchFilter(edition_from="2021"),
        SearchFilter(edition_to="2021"),
        SearchFilter(edition_from="2019", edition_to="2019-12"),
        SearchFilter(collections=("clinic",), language="en", edition_from="2019"),
        SearchFilter(statuses=(Status.SUPERSEDED,)),
        SearchFilter(statuses=tuple(Status)),
        SearchFilter(statuses=()),
    ],
)
def test_filters_agree_with_the_lexical_index(library: Library, filters: SearchFilter) -> None:
    for limit in (2, 100):
        lexical = library.search_lexical("Sepsis", limit, filters, 3.0, 64)
        sparse = library.search_sparse({token_of("sepsis"): 1.0}, limit, filters)
        assert len(sparse) == len(lexical)
        if limit == 100:
            assert {row[0] for row in sparse} == {row[0] for row in lexical}


def test_a_filter_does_not_change_scores(library: Library) -> None:
    question = {token_of("sepsis"): 1.0, token_of("guidance"): 0.5}
    everywhere = {row[0]: row[2] for row in library.search_sparse(question, 100, ANY)}
    ward = library.search_sparse(question, 100, SearchFilter(collections=("ward",), edition_from="2019"))
    assert ward
    assert all(everywhere[row[0]] == row[2] for row in ward)


def test_what_is_withdrawn_is_not_found_and_hides_nothing(imported: Settings) -> None:
    withdrawn = [document for name, document in documents(imported, "ward").items() if "#en" in name]
    for document in withdrawn:
        withdraw(imported.data, document)
    with Library.open(imported.data) as library:
        rows = library.search_sparse({token_of("sepsis"): 1.0}, 8, SearchFilter(collections=("ward",)))
        assert len(rows) == 4
        assert not {row[1] for row in rows} & {document.id for document in withdrawn}


@pytest.mark.slow
def test_generations_share_it_and_a_change_shows(imported: Settings, corpus: Path) -> None:
    with Library.open(imported.data) as library:
        first = library.path
    write(corpus, {"a.jsonl": jsonl({"id": "en0", "title": "en 0", "text": "Burns are cooled with water."})})
    import_into(imported, corpus, encoder=WeighedWords())
    verify(imported.data)
    with Library.open(imported.data) as library:
        names = {path.name for path in (library.path / SPARSE).iterdir() if path.suffix != ".lock"}
        assert any((library.path / SPARSE / name).samefile(first / SPARSE / name)
                   for name in names if (first / SPARSE / name).exists())  # fmt: skip
        ward = SearchFilter(collections=("ward",))
        assert library.search_sparse({token_of("sepsis"): 1.0}, 9, ward) == []
        assert len(library.search_sparse({token_of("burns"): 1.0}, 9, ward)) == 1
    assert generations.check(first, whole=True) == []
    damaged = next(path for path in (first / SPARSE).iterdir() if path.suffix == ".store")
    overwrite(damaged, damaged.read_bytes()[::-1])
    assert any(SPARSE in str(dict(problem.parameters)["file"]) for problem in generations.check(first, whole=True))


def test_only_a_sparse_encoder_has_one(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, {"a.txt": "Sepsis\n\nText.\n"}))
    with Library.open(settings.data) as library:
        assert not (library.path / SPARSE).exists()


def test_a_generation_without_its_weights_is_not_published(imported: Settings) -> None:
    identity = WeighedWords().identity
    with build(imported.data, identity, imported.library) as builder:
        assert builder._sparse_writer is not None
        builder._sparse_writer.delete_documents([next(iter(documents(imported).values())).id])
        with pytest.raises(Damaged, match=pattern("library.counts")):
            builder.publish(message("generation.made.upgrade"))


# --- in the cache ----------------------------------------------------------------------------------------------------


def test_weights_are_kept_with_the_vectors(tmp_path: Path) -> None:
    encoder = WeighedWords()
    texts = ["sepsis", "", "dose of paracetamol", "sepsis"]
    cache = VectorCache(tmp_path, encoder)
    first = cache.encode_both(texts)
    cache.close()
    again = VectorCache(tmp_path, encoder)
    vectors, weights = again.encode_both(texts)
    assert again.encoded == 0
    assert (vectors == first[0]).all()
    assert weights == first[1]
    expected = encoder.encode_both(texts, "passage")[1]
    for mine, theirs in zip(weights, expected, strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3)
    again.close()


def test_asking_for_vectors_alone_loses_no_weights(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path, WeighedWords())
    cache.encode(["sepsis"])
    assert cache.encode_both(["sepsis"])[1] == [{token_of("sepsis"): pytest.approx(6 / 16, rel=1e-3)}]
    assert cache.encoded == 1
    cache.close()


def test_a_cache_of_before_there_were_digests_is_encoded_again(tmp_path: Path) -> None:
    encoder = HashedWords()
    cache = VectorCache(tmp_path, encoder)
    cache.encode(["sepsis"])
    cache.close()
    path = tmp_path / f"{encoder.identity.slug}.sqlite"
    with sqlite3.connect(path) as new:
        rows = new.execute("SELECT key, vector FROM vectors").fetchall()
    new.close()
    path.unlink()
    old = open_database(path, VECTORS[:1])
    old.executemany("INSERT INTO vectors VALUES (?, ?)", rows)
    old.close()
    taken = VectorCache(tmp_path, encoder)
    assert taken.encode_both(["sepsis"])[1] == [{}]
    assert taken.encoded == 1
    taken.close()


@pytest.mark.parametrize("place", ["key", "vector", "weights", "digest"])
def test_a_damaged_row_costs_time_only(tmp_path: Path, place: str) -> None:
    cache = VectorCache(tmp_path, WeighedWords())
    vectors, weights = cache.encode_both(["sepsis"])
    stored = cache._database.execute(f"SELECT {place} FROM vectors").fetchone()[0]
    cache._database.execute(f"UPDATE vectors SET {place} = ?", (bytes([stored[0] ^ 4]) + stored[1:],))
    again = cache.encode_both(["sepsis"])
    assert (again[0] == vectors).all()
    assert again[1] == weights
    assert cache.encoded == 2
    cache.close()


def test_flipped_bits_of_the_cache_cost_time_only(tmp_path: Path) -> None:
    encoder, texts, chance = WeighedWords(), [f"sepsis {number}" for number in range(300)], random.Random(3)
    cache = VectorCache(tmp_path, encoder)
    vectors, weights = cache.encode_both(texts)
    cache.close()
    path = tmp_path / f"{encoder.identity.slug}.sqlite"
    whole, encoded = path.read_bytes(), 0
    for _ in range(40):
        place = chance.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        cache = VectorCache(tmp_path, encoder)
        again = cache.encode_both(texts)
        assert (again[0] == vectors).all()
        assert again[1] == weights
        encoded += cache.encoded
        cache.close()
    assert encoded
