"""A withdrawal holds from the next query on, whatever happens to the library, until it is taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import SearchFilter, Status
from localmed.library import generations
from localmed.library.library import Library
from localmed.site import changes
from tests import fakes
from tests.fakes import HashedWords, answers, described, documents, import_into, opened, titles, write

SEPSIS = "Give antibiotics within one hour of recognition. Measure lactate and repeat it if it is high.\n"
FEVER = "Fever\n\nGive antibiotics only when there is a bacterial cause.\n"


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    write(corpus, {"sepsis.txt": SEPSIS, "fever.txt": FEVER})
    import_into(settings, corpus)
    return settings


def withdraw(settings: Settings, name: str = "sepsis.txt", withdrawn: bool = True) -> str:
    document = documents(settings)[name]
    fakes.withdraw(settings.data, document, withdrawn)
    return document.id


def test_it_holds_in_a_library_that_is_open(filled: Settings) -> None:
    with Library.open(filled.data) as library:
        assert titles(library, "antibiotics") == {"sepsis", "Fever"}
        document = withdraw(filled)
        assert titles(library, "antibiotics") == {"Fever"}
        assert library.status(document) is Status.WITHDRAWN
        filters = SearchFilter(statuses=(Status.WITHDRAWN,))
        assert {row[1] for row in library.search_lexical("antibiotics", 5, filters, 3.0, 64)} == {document}
        withdraw(filled, withdrawn=False)
        assert titles(library, "antibiotics") == {"sepsis", "Fever"}
        assert library.status(document) is Status.CURRENT


def test_it_survives_re_import_change_and_rollback(filled: Settings, corpus: Path) -> None:
    withdraw(filled)
    write(corpus, {"sepsis.txt": SEPSIS + "\nAnother paragraph.\n"})
    import_into(filled, corpus)
    assert answers(filled, "antibiotics") == {"Fever"}
    generations.rollback(filled.data, 1)
    assert answers(filled, "antibiotics") == {"Fever"}


def test_the_same_text_stays_withdrawn_wherever_it_comes_from(filled: Settings, corpus: Path, tmp_path: Path) -> None:
    withdraw(filled)
    (corpus / "sepsis.txt").rename(corpus / "renamed.txt")
    import_into(filled, corpus)
    assert set(documents(filled)) == {"renamed.txt", "fever.txt"}
    assert answers(filled, "antibiotics") == {"Fever"}
    (corpus / "renamed.txt").unlink()
    import_into(filled, corpus)
    import_into(filled, write(corpus, {"sepsis.txt": SEPSIS}))
    import_into(filled, write(tmp_path / "other", {"x.txt": SEPSIS}), manifest=described("clinic"))
    assert answers(filled, "lactate") == set(), "removed and imported again, or in another collection"


def test_a_superseded_document_stays_so_when_its_file_is_renamed(filled: Settings, corpus: Path) -> None:
    with opened(filled, HashedWords()) as session:
        changes.mark(session, documents(filled)["sepsis.txt"], Status.SUPERSEDED)
    (corpus / "sepsis.txt").rename(corpus / "sepsis-old.txt")
    import_into(filled, corpus)
    assert documents(filled)["sepsis-old.txt"].status is Status.SUPERSEDED
