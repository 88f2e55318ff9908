"""The sparse index: exact dot products, deletes, and its part in a generation (filters: ``test_search.py``)."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from localmed.config import Settings
from localmed.domain import message
from localmed.domain.errors import Damaged
from localmed.library import generations
from localmed.library.lexical import MOST_STEPS, MOST_TOKENS, STEP, SparseIndex, steps
from localmed.library.library import SPARSE, Library, build
from tests.fakes import ANY, WeighedWords, described, documents, import_into, jsonl, overwrite, token_of, verify, write
from tests.values import passage
from tests.words import pattern

HEAP = 15_000_000
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


def scores_of(index: SparseIndex, weights: Weighed, limit: int = 100) -> dict[str, float]:
    return {row[0]: row[2] for row in index.search(weights, limit, ANY)}


@hypothesis(max_examples=15, deadline=None)
@given(st.lists(token_weights, max_size=20), token_weights)
def test_the_score_is_the_dot_product(rows: list[Weighed], question: Weighed) -> None:
    with tempfile.TemporaryDirectory() as folder:
        index = index_of(Path(folder), *rows)
        assert len(index) == len(rows)
        expected = {
            f"p{n}": sum(weight * steps(row.get(token, 0.0)) * STEP for token, weight in question.items())
            for n, row in enumerate(rows)
            if any(steps(row.get(token, 0.0)) for token in question)
        }
        scores = scores_of(index, question)
        assert scores == pytest.approx(expected, rel=1e-5, abs=1e-6)
        assert list(scores.values()) == sorted(scores.values(), reverse=True)


@given(st.floats(0, MOST_STEPS * STEP))
def test_a_weight_is_kept_to_half_a_step(weight: float) -> None:
    assert abs(steps(weight) * STEP - weight) <= STEP / 2


def test_what_is_found_by_which_tokens(tmp_path: Path) -> None:
    """A weight beyond every model counts as the most; numbers that begin alike differ; the heaviest tokens count."""
    index = index_of(tmp_path, {1: 1e9}, {12: 0.5}, {123: 0.5}, {}, {MOST_TOKENS + 1: 0.5})
    assert len(index) == 5
    assert scores_of(index, {1: 1.0}) == {"p0": MOST_STEPS * STEP}
    assert scores_of(index, {12: 1.0}) == {"p1": 0.5}
    assert scores_of(index, {}) == scores_of(index, {99: 1.0}) == scores_of(index, {1: 1.0}, limit=0) == {}
    long = {token: float(token) for token in range(1, MOST_TOKENS + 2)}
    assert set(scores_of(index, long)) == {"p1", "p4"}
    assert set(scores_of(index, dict(list(long.items())[:-1]))) == {"p0", "p1"}


def test_documents_are_deleted_and_added_again(tmp_path: Path) -> None:
    index = index_of(tmp_path, {1: 0.5}, {1: 0.25})
    writer = index.writer(HEAP)
    writer.delete_documents(["d0"])
    writer.add([replace(passage("new"), id="p9", document_id="d0")], [{1: 1.0}])
    writer.finish()
    index.reload()
    assert scores_of(index, {1: 1.0}) == {"p9": 1.0, "p1": 0.25}


def test_what_is_no_index_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text("no index", "utf-8")
    for folder in (tmp_path, tmp_path / "missing"):
        with pytest.raises(Damaged):
            SparseIndex(folder)
    assert not (tmp_path / "missing").exists()


# --- in a generation -------------------------------------------------------------------------------------------------


@pytest.fixture
def imported(settings: Settings, corpus: Path) -> Settings:
    records = [{"id": f"{n}", "title": f"{n}", "text": f"Sepsis guidance number {n}."} for n in range(4)]
    for name in ("other", "ward"):
        folder = write(corpus / name, {"a.jsonl": jsonl(*records)})
        import_into(settings, folder, manifest=described(name), encoder=WeighedWords())
    return settings


@pytest.mark.slow
def test_generations_share_it_and_a_change_shows(imported: Settings, corpus: Path) -> None:
    first = generations.current(imported.data)
    write(corpus / "ward", {"a.jsonl": jsonl({"id": "0", "title": "0", "text": "Burns are cooled with water."})})
    import_into(imported, corpus / "ward", encoder=WeighedWords())
    verify(imported.data)
    with Library.open(imported.data) as library:
        names = {path.name for path in (library.path / SPARSE).iterdir() if path.suffix != ".lock"}
        assert any((library.path / SPARSE / name).samefile(first / SPARSE / name)
                   for name in names if (first / SPARSE / name).exists())  # fmt: skip
        assert len(library.search_sparse({token_of("sepsis"): 1.0}, 9, ANY)) == 4
        assert len(library.search_sparse({token_of("burns"): 1.0}, 9, ANY)) == 1
    assert generations.check(first, whole=True) == []
    damaged = next(path for path in (first / SPARSE).iterdir() if path.suffix == ".store")
    overwrite(damaged, damaged.read_bytes()[::-1])
    assert any(SPARSE in str(dict(problem.parameters)["file"]) for problem in generations.check(first, whole=True))


def test_a_generation_without_its_weights_is_not_published(imported: Settings) -> None:
    with build(imported.data, WeighedWords().identity, imported.library) as builder:
        assert builder._sparse_writer is not None
        builder._sparse_writer.delete_documents([next(iter(documents(imported).values())).id])
        with pytest.raises(Damaged, match=pattern("library.counts")):
            builder.publish(message("generation.made.upgrade"))
