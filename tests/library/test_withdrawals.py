"""A withdrawal holds from the next query on, whatever happens to the library, until it is taken back."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.domain import SearchFilter, Status
from localmed.domain.errors import Damaged, LibraryError
from localmed.library import generations
from localmed.library.library import Library
from localmed.library.withdrawals import Withdrawals
from localmed.site import changes
from tests.fakes import HashedWords, answers, documents, import_into, opened, titles, write
from tests.words import pattern

SEPSIS = "Give antibiotics within one hour of recognition. Measure lactate and repeat it if it is high.\n"
FEVER = "Fever\n\nGive antibiotics only when there is a bacterial cause.\n"


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    write(corpus, {"sepsis.txt": SEPSIS, "fever.txt": FEVER})
    import_into(settings, corpus)
    return settings


def withdraw(settings: Settings, name: str = "sepsis.txt", withdrawn: bool = True) -> str:
    document = documents(settings)[name]
    Withdrawals(settings.data).append(document, withdrawn, "test", "me")
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


def test_the_same_text_under_another_name_stays_withdrawn(filled: Settings, corpus: Path) -> None:
    withdraw(filled)
    (corpus / "sepsis.txt").rename(corpus / "renamed.txt")
    import_into(filled, corpus)
    assert set(documents(filled)) == {"renamed.txt", "fever.txt"}
    assert answers(filled, "antibiotics") == {"Fever"}


def test_the_same_text_in_another_folder_and_collection_stays_withdrawn(
    filled: Settings, corpus: Path, tmp_path: Path
) -> None:
    from tests.fakes import described

    withdraw(filled)
    import_into(filled, write(tmp_path / "other", {"x.txt": SEPSIS}), manifest=described("clinic"))
    assert answers(filled, "lactate") == set()


def test_what_was_withdrawn_and_then_removed_does_not_come_back(filled: Settings, corpus: Path) -> None:
    withdraw(filled)
    (corpus / "sepsis.txt").unlink()
    import_into(filled, corpus)
    write(corpus, {"sepsis.txt": SEPSIS})
    import_into(filled, corpus)
    assert answers(filled, "lactate") == set()


@pytest.mark.parametrize("line", ['{"time": "2024', "\n", "null\n", "{}\n", "\xff\n", '{"withdrawn": "yes"}\n'])
def test_a_torn_line_stops_every_answer(filled: Settings, line: str) -> None:
    with Library.open(filled.data) as library:
        withdraw(filled)
        with (filled.data / "withdrawals").open("a", encoding="latin-1") as ledger:
            ledger.write(line)
        for _ in range(2):
            with pytest.raises(Damaged, match=r"line 2 of .* cannot be read\. No questions are answered"):
                titles(library, "antibiotics")
            with pytest.raises(Damaged):
                library.status("any")


def test_a_line_without_its_end_is_torn_even_if_it_reads_well(filled: Settings) -> None:
    withdraw(filled)
    ledger = filled.data / "withdrawals"
    ledger.write_bytes(ledger.read_bytes()[:-1])
    with pytest.raises(Damaged):
        answers(filled, "antibiotics")


def test_a_value_of_the_wrong_kind_is_no_withdrawal_taken_back(filled: Settings) -> None:
    withdraw(filled)
    ledger = filled.data / "withdrawals"
    values = json.loads(ledger.read_text()) | {"withdrawn": 0}
    ledger.write_text(json.dumps(values) + "\n")
    with pytest.raises(Damaged):
        answers(filled, "antibiotics")


def test_a_full_disk_leaves_no_torn_line(filled: Settings) -> None:
    withdraw(filled)
    size = (filled.data / "withdrawals").stat().st_size
    document = documents(filled)["fever.txt"]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, before[1]))
    try:
        with pytest.raises(LibraryError, match=pattern("library.full.what")):
            Withdrawals(filled.data).append(document, True, "x" * 100, "me")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (filled.data / "withdrawals").stat().st_size == size
    assert answers(filled, "antibiotics") == {"Fever"}


@pytest.mark.slow
def test_two_processes_write_whole_lines(filled: Settings) -> None:
    code = (
        "import sys; from pathlib import Path; from localmed.domain import Document; "
        "from localmed.library.withdrawals import Withdrawals\n"
        "d = Document(sys.argv[2], 'c', 'k', 't' * 5000, 'en', 's', '', 'content', 'text')\n"
        "for _ in range(40): Withdrawals(Path(sys.argv[1])).append(d, True, 'r', 'a')"
    )
    children = [subprocess.Popen([sys.executable, "-c", code, str(filled.data), name]) for name in ("one", "two")]
    assert [child.wait(60) for child in children] == [0, 0]
    assert len(Withdrawals(filled.data).entries) == 80


def test_it_is_on_the_disk_before_it_is_reported(filled: Settings) -> None:
    """The ledger, and the folder that names it, are synced before ``append`` returns."""
    synced: list[str] = []
    _WATCH.append(lambda handle: synced.append(str(Path(f"/proc/self/fd/{handle}").readlink())))
    try:
        sys.setprofile(_profile)
        withdraw(filled)
    finally:
        sys.setprofile(None)
        _WATCH.clear()
    known = str(filled.data / "withdrawals.known.new")
    ledger, noted, folder = synced[-3:]
    assert (ledger, folder) == (str(filled.data / "withdrawals"), str(filled.data))
    assert noted.startswith(known.removesuffix("new"))


_WATCH: list = []  # type: ignore[type-arg]


def _profile(frame, event, argument) -> None:  # type: ignore[no-untyped-def]
    if event == "c_call" and argument is os.fsync and _WATCH:
        _WATCH[0](frame.f_locals.get("handle"))


def test_a_flipped_bit_in_an_id_cancels_no_withdrawal(filled: Settings) -> None:
    withdraw(filled)
    ledger = filled.data / "withdrawals"
    values = json.loads(ledger.read_text())
    values["document"] = ("0" if values["document"][0] != "0" else "1") + values["document"][1:]
    ledger.write_text(json.dumps(values) + "\n")
    with pytest.raises(Damaged, match="line 1"):
        answers(filled, "antibiotics")


def test_a_line_that_is_being_written_is_waited_for(filled: Settings) -> None:
    """Whoever appends holds the lock until the line is whole: half a line must not stop an answer."""
    withdraw(filled)
    ledger = filled.data / "withdrawals"
    whole = ledger.read_bytes()
    with ledger.open("r+b") as writing, Library.open(filled.data) as library, ThreadPoolExecutor(1) as asking:
        fcntl.flock(writing, fcntl.LOCK_EX)
        writing.truncate(len(whole) // 2)
        question = asking.submit(titles, library, "antibiotics")
        time.sleep(0.2)
        assert not question.done()
        writing.seek(0)
        writing.write(whole)
        writing.flush()
        fcntl.flock(writing, fcntl.LOCK_UN)
        assert question.result(20) == {"Fever"}


@pytest.mark.parametrize("kept", [0, 1])
def test_a_ledger_cut_at_the_end_of_a_line_stops_every_answer(filled: Settings, kept: int) -> None:
    """It reads well, and the withdrawals that it lacks would be lifted without a word."""
    withdraw(filled, "fever.txt")
    document = documents(filled)["sepsis.txt"]
    withdraw(filled)
    ledger = filled.data / "withdrawals"
    whole = ledger.read_bytes()
    ledger.write_bytes(b"".join(whole.splitlines(keepends=True)[:kept]))
    for attempt in (
        lambda: answers(filled, "antibiotics"),
        lambda: Withdrawals(filled.data).append(document, True, "again", "me"),
    ):
        with pytest.raises(Damaged, match=pattern("withdrawal.cut.what")):
            attempt()
    ledger.write_bytes(whole)
    assert answers(filled, "antibiotics") == set()


def test_a_crash_between_the_line_and_what_is_known_of_it_keeps_the_line(filled: Settings) -> None:
    withdraw(filled, "fever.txt")
    known = (filled.data / "withdrawals.known").read_bytes()
    withdraw(filled)
    (filled.data / "withdrawals.known").write_bytes(known)
    assert answers(filled, "antibiotics") == set()


def test_a_lost_ledger_stops_every_answer(filled: Settings) -> None:
    withdraw(filled)
    (filled.data / "withdrawals").unlink()
    with pytest.raises(Damaged, match="is missing"):
        answers(filled, "antibiotics")


def test_a_superseded_document_stays_so_when_its_file_is_renamed(filled: Settings, corpus: Path) -> None:
    with opened(filled, HashedWords()) as session:
        changes.mark(session, documents(filled)["sepsis.txt"], Status.SUPERSEDED)
    (corpus / "sepsis.txt").rename(corpus / "sepsis-old.txt")
    import_into(filled, corpus)
    assert documents(filled)["sepsis-old.txt"].status is Status.SUPERSEDED
