"""A patient's text stays in the answer: no file, log, file name or error message holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from localmed.config import load
from localmed.domain import SearchFilter
from localmed.domain.errors import LocalmedError
from localmed.site.audit import Audit
from tests.cli.conftest import Localmed
from tests.fakes import opened, overwrite

MARKER = "Zyxwvutsrq"
QUESTION = f"What dose of paracetamol may Mr {MARKER}, MRN 00417, take?"
CHINESE = f"患者{MARKER}可以服用多少对乙酰氨基酚？"


def traces(folder: Path) -> list[str]:
    """The files under ``folder`` with the marker in their name or content, in any usual encoding."""
    forms = {form.encode(code) for form in (MARKER, MARKER.lower()) for code in ("utf-8", "utf-16-le")}
    matches = []
    for path in sorted(folder.rglob("*")):
        content = path.read_bytes() if path.is_file() else b""
        if MARKER.lower() in str(path.relative_to(folder)).lower() or any(form in content for form in forms):
            matches.append(str(path))
    return matches


@pytest.mark.slow
def test_nothing_of_a_question_is_kept(copied: Localmed, tmp_path: Path) -> None:
    for question in (QUESTION, CHINESE):
        shown = MARKER in copied.ok("ask", question, "--json").out
        assert shown == (question == CHINESE), "one that nothing tells from a word is in the answer, as it was asked"
        ran = copied.ok("ask", question, "--trace")
        assert MARKER not in ran.err
        assert MARKER not in copied.ok("search", question).err
        copied.ok("ask", "-", stdin=question)
    assert traces(copied.data) == []


def test_the_search_for_traces_finds_them(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(f"asked: {QUESTION}")
    (tmp_path / MARKER.lower()).mkdir()
    assert len(traces(tmp_path)) == 2


@pytest.mark.parametrize("arguments", [("ask", QUESTION, "-c", "nowhere"), ("ask", CHINESE, "-c", "x")])
def test_a_refused_question_leaves_nothing(copied: Localmed, arguments: tuple[str, ...]) -> None:
    assert MARKER not in copied(*arguments).failed(2)
    assert traces(copied.data) == []


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Library.open leaks the lease: see there
def test_a_failing_search_leaves_nothing(copied: Localmed) -> None:
    for index in (copied.data / "generations" / "0001" / "lexical").glob("*.term"):
        overwrite(index, bytes(index.stat().st_size))
    for table in (copied.data / "generations" / "0001").glob("passages.lance/data/*"):
        overwrite(table, bytes(table.stat().st_size))
    for command in ("ask", "search"):
        ran = copied(command, QUESTION)
        assert ran.code != 0
        assert MARKER not in ran.err
        assert not ran.out
    assert traces(copied.data) == []


def test_no_exception_holds_a_question(copied: Localmed) -> None:
    (copied.data / "site.sqlite").write_bytes(b"no database")
    with opened(load(copied.data)) as session:
        for ask in (
            lambda: session.ask(QUESTION, SearchFilter()),
            lambda: session.find(QUESTION, SearchFilter(), 5, 5).found,
        ):
            with pytest.raises(LocalmedError) as caught:
                ask()
            chain: BaseException | None = caught.value
            while chain is not None:
                assert MARKER not in f"{chain} {chain.args}"
                chain = chain.__context__


def test_the_audit_log_says_that_a_question_was_asked(copied: Localmed) -> None:
    copied.ok("ask", QUESTION)
    audit = Audit(copied.data)
    try:
        entry = audit.entries()[-1]
        assert entry.action == "ask"
        assert entry.outcome == "sections"
        assert entry.generation == "0001"
        assert MARKER not in str(entry)
        assert audit.verify() == []
    finally:
        audit.close()


def test_the_data_folder_is_the_owners_alone(localmed: Localmed) -> None:
    assert localmed.data.stat().st_mode & 0o077 == 0
