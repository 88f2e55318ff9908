"""Reindexing: another encoder's vectors from the passages that are stored, and nothing else changed."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import pytest

from localmed.config import LibrarySettings, SearchSettings, Settings
from localmed.domain import Collection, SearchFilter, Status, message
from localmed.domain.errors import NoLibrary, WrongEncoder
from localmed.domain.ports import EncoderIdentity
from localmed.library import generations
from localmed.library.library import SPARSE, Library, build
from localmed.site import changes, lookups
from localmed.site.audit import Audit
from localmed.site.changes import reindexed
from tests.fakes import (
    HashedWords,
    WeighedWords,
    described,
    documents,
    import_into,
    jsonl,
    opened,
    token_of,
    verify,
    write,
)

BATCH = 4
ANY = SearchFilter()
TEXTS = {f"{number}.txt": f"Title {number}\n\nText {number} about sepsis.\n" for number in range(10)}


class Narrow(HashedWords):
    """An encoder of half the dimensions, which may be interrupted after some texts."""

    def __init__(self, texts: int = 10**9) -> None:
        super().__init__()
        self.identity = EncoderIdentity("narrow", "1", 16, ("en",))
        self._left = texts

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> npt.NDArray[np.float32]:
        self._left -= len(texts)
        if self._left < 0:
            raise KeyboardInterrupt
        wide = super().encode(texts, kind)
        folded = wide[:, :16] + wide[:, 16:]
        return np.asarray(folded / np.linalg.norm(folded, axis=1, keepdims=True), np.float32)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "data", library=LibrarySettings(batch=BATCH, writer_memory_bytes=15_000_000))


@pytest.fixture
def imported(settings: Settings, corpus: Path) -> Settings:
    """Ten documents encoded by ``HashedWords``, whose files are gone from the disk and from ``files/``."""
    import_into(settings, write(corpus, TEXTS))
    shutil.rmtree(corpus)
    shutil.rmtree(settings.data / "files")
    (settings.data / "files").mkdir()
    return settings


def run(settings: Settings, encoder: HashedWords, again: bool = False) -> tuple[int, list[float]]:
    """Reindex; return the generation and the passages: in all, and as they were done."""
    steps: list[float] = []
    number = reindexed(settings, encoder, lambda done, _: steps.append(done), steps.append, again)
    return number, steps


def test_every_passage_is_encoded_anew_and_no_file_is_read(imported: Settings) -> None:
    before = documents(imported)
    encoder = Narrow()
    number, steps = run(imported, encoder)
    assert (number, steps) == (2, [10, 4, 4, 2])
    assert len(encoder.encoded) == 20, "each passage and its one sentence"
    assert documents(imported) == before
    verify(imported.data)
    with Library.open(imported.data) as library:
        assert library.manifest.encoder == encoder.identity.stored_as
        library.require(encoder.identity)
        passage = next(library.lexical.all_passages())
        vector = encoder.encode([passage.in_context], "query")[0]
        assert library.search_dense(vector, 1, ANY)[0][0] == passage.id
    assert generations.check(generations.path_of(imported.data, 1), whole=True) == []
    first, second = (generations.path_of(imported.data, number) / "lexical" for number in (1, 2))
    assert all(path.samefile(second / path.name) for path in first.glob("*.store")), "the lexical index is shared"


def test_a_sparse_index_comes_and_goes_with_its_encoder(imported: Settings) -> None:
    run(imported, WeighedWords())
    verify(imported.data)
    with Library.open(imported.data) as library:
        assert len(library.search_sparse({token_of("sepsis"): 1.0}, 99, ANY)) == 10
    run(imported, Narrow())
    verify(imported.data)
    assert not (generations.current(imported.data) / SPARSE).exists()


def test_what_was_decided_stays(imported: Settings) -> None:
    with opened(imported, HashedWords()) as session:
        by_title = {document.title: document for document in lookups.documents(session)}
        changes.mark(session, by_title["Title 1"], Status.SUPERSEDED)
        changes.withdraw(session, by_title["Title 2"], True, "recalled")
        changes.put_collection(session, Collection("ward", "Ward", priority=3))
    with opened(imported, WeighedWords()) as session:
        changes.reindex(session)
        statuses = {document.title: document.status for document in lookups.documents(session)}
        assert statuses["Title 1"] is Status.SUPERSEDED
        assert statuses["Title 2"] is Status.WITHDRAWN
        assert lookups.collection(session, "ward").priority == 3
        titles = {hit.passage.title for hit in session.find("sepsis", ANY, 20, 20).found.hits}
        assert titles == set(statuses) - {"Title 1", "Title 2"}
    with Audit(imported.data) as log:
        assert log.entries()[-1].action == "reindex"


def test_the_encoders_own_library_is_left_alone(imported: Settings) -> None:
    assert run(imported, HashedWords()) == (0, [])
    encoder = HashedWords()
    number, steps = run(imported, encoder, again=True)
    assert (number, steps[0]) == (2, 10)
    assert encoder.encoded == [], "all of it was in the cache"
    verify(imported.data)


def test_interrupted_it_changes_nothing_and_goes_on(imported: Settings) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(imported, Narrow(texts=18))
    assert generations.current(imported.data).name == "0001"
    assert not (imported.data / "generations" / "building").exists()
    with opened(imported, HashedWords()) as session:
        assert session.find("sepsis", ANY, 20, 20).found.dense
    encoder = Narrow()
    assert run(imported, encoder)[0] == 2
    assert len(encoder.encoded) == 4, "two batches of four passages were in the cache"
    verify(imported.data)


def test_an_import_afterwards_reads_what_is_new(settings: Settings, corpus: Path) -> None:
    import_into(settings, write(corpus, TEXTS))
    run(settings, WeighedWords())
    write(corpus, {"new.txt": "New\n\nA new text about burns.\n"})
    encoder = WeighedWords()
    report = import_into(settings, corpus, encoder=encoder)
    assert (report.counts["read"], report.counts["unchanged"], len(encoder.encoded)) == (1, 10, 2)
    verify(settings.data)


def test_an_empty_library_and_none(settings: Settings) -> None:
    with pytest.raises(NoLibrary):
        run(settings, Narrow())
    with build(settings.data, HashedWords().identity, settings.library) as builder:
        builder.put_collection(described().collection)
        builder.publish(message("generation.made.upgrade"))
    assert run(settings, Narrow()) == (2, [0])
    verify(settings.data)


# --- encoders never mix ----------------------------------------------------------------------------------------------


def test_another_encoder_is_refused_with_what_to_do(imported: Settings, corpus: Path) -> None:
    corpus.mkdir()
    with opened(imported, Narrow()) as session:
        for action in (
            lambda: session.find("sepsis", ANY, 5, 5).found,
            lambda: changes.put_collection(session, Collection("other", "Other")),
            lambda: import_into(imported, write(corpus, {"a.txt": "A\n\nText.\n"}), encoder=Narrow()),
        ):
            with pytest.raises(WrongEncoder, match="hashed-words-1-32") as raised:
                action()
            assert "localmed reindex" in raised.value.remedy
            assert "profile" in raised.value.remedy
    assert sorted(path.name for path in generations.folder(imported.data).iterdir() if path.is_dir()) == ["0001"]


@pytest.mark.slow
def test_back_to_a_generation_of_the_encoder_before(imported: Settings) -> None:
    with opened(imported, WeighedWords()) as session:
        changes.reindex(session)
        assert session.find("sepsis", ANY, 5, 5).found.hits
        changes.rollback(session, 1)
        with pytest.raises(WrongEncoder, match="hashed-words"):
            session.find("sepsis", ANY, 5, 5)
    with opened(imported, HashedWords()) as session:
        assert session.find("sepsis", ANY, 5, 5).found.hits


def test_token_weights_take_part_in_the_search(settings: Settings, corpus: Path) -> None:
    """A word that only the sparse index ranks highly moves its passage up; with no weight it does not."""
    records = [{"id": f"{n}", "title": f"T{n}", "text": f"dose {'x' * n} sepsis"} for n in range(1, 9)]
    import_into(settings, write(corpus, {"a.jsonl": jsonl(*records)}), encoder=WeighedWords())
    scores = []
    for weight in (0.0, 5.0):
        search = SearchSettings(sparse_weight=weight, dense_weight=0.0)
        with opened(Settings(settings.data, search=search), WeighedWords()) as session:
            hits = session.find(f"{'x' * 8} dose", ANY, 8, 8).found.hits
            scores.append({hit.passage.title: hit.score for hit in hits})
    gained = {title: scores[1][title] - scores[0].get(title, 0.0) for title in scores[1]}
    assert max(gained, key=lambda title: gained[title]) == "T8"
