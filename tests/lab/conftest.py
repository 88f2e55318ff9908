"""A library of nine notes in which dense and lexical search are worth different things, and its files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from localmed.config import LibrarySettings, SearchSettings, Settings
from localmed.lab.retrieval import Bench
from localmed.lab.sets import Question, QuestionSet
from localmed.library.library import Library
from tests.fakes import HashedWords, import_into, jsonl, write

SUBJECTS = ("asthma", "sepsis", "gout", "migraine", "eczema", "anaemia", "stroke", "measles", "scurvy")


@dataclass(frozen=True)
class NamesItsSubject:
    """A ``Reranker``: 1 where the passage holds the question's last word, else 0."""

    name: str = "names-its-subject 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        subject = question.split()[-1].lower()
        return [float(subject in passage.lower().split()) for passage in passages]


def notes() -> str:
    """A record a subject, and a long one of every subject's name that word search prefers to each of them."""
    records = [
        {"id": f"n{number}", "title": f"Note {number}", "text": f"The treatment of {subject} begins with rest.",
         "identifiers": [f"pmid:{1000 + number}", "shared:1"]}
        for number, subject in enumerate(SUBJECTS)
    ]  # fmt: skip
    return jsonl(*records)


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of the imported library. Not to be changed."""
    root = tmp_path_factory.mktemp("evaluated")
    settings = Settings(root / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))
    import_into(settings, write(root / "corpus", {"notes.jsonl": notes(), "gloves.txt": "Gloves are worn once.\n"}))
    return settings


@pytest.fixture
def library(evaluated: Settings) -> Iterator[Library]:
    with Library.open(evaluated.data) as opened:
        yield opened


@pytest.fixture
def ids(library: Library) -> dict[str, str]:
    """The record's own name (n0, n1, ...) -> document id."""
    return {document.key.rpartition("#")[2]: document.id for document in library.catalogue.documents()}


@pytest.fixture
def bench(library: Library) -> Bench:
    settings = SearchSettings(sentences=0)  # the order by sentence finds each subject, whatever the variant
    return Bench(library, HashedWords(), settings, NamesItsSubject(), 20)


@pytest.fixture
def questions(ids: dict[str, str]) -> QuestionSet:
    """A question a subject; its record is the answer."""
    questions = tuple(
        Question(f"q{number}", f"Which treatment of {subject}") for number, subject in enumerate(SUBJECTS)
    )
    judged = {question.id: {ids[f"n{number}"]: 1} for number, question in enumerate(questions)}
    return QuestionSet("subjects", questions, judged)
