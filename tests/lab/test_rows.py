"""The rows of a batch outlive an interruption, and are gone on with only for the same batch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from localmed.domain.errors import InputError, UsageError
from localmed.lab.reporting import Rows, stored

MADE = {"seed": "1"}


@dataclass(frozen=True)
class Row:
    id: str
    value: int


def rows(file: Path | None, resume: bool, made: dict[str, str] = MADE) -> Rows[Row]:
    return Rows(file, made, resume, Row, "id")


def refused() -> Row:
    raise AssertionError("a finished row is not made again")


@pytest.mark.parametrize("cut", ['{"id": "b", "val', '{"id": "b"}\n', "[1]\n"])
def test_rows_outlive_an_interruption_and_going_on_never_empties_them(tmp_path: Path, cut: str) -> None:
    """Whenever the process is killed, the finished rows are whole: another name of the old file shows that."""
    file, old = tmp_path / "rows.jsonl", tmp_path / "old.jsonl"
    assert rows(file, False).get(("a",), lambda: Row("a", 1)) == Row("a", 1)
    file.write_text(file.read_text() + cut)
    old.hardlink_to(file)
    before = old.read_text()
    again = rows(file, True)
    assert again.get(("a",), refused) == Row("a", 1)
    assert old.read_text() == before
    again.get(("b",), lambda: Row("b", 2))
    assert stored(file, Row) == (MADE, [Row("a", 1), Row("b", 2)])
    with pytest.raises(UsageError) as error:
        rows(file, True, {"seed": "2"})
    assert error.value.message.code == "evaluation.other_run"
    assert not rows(file, False).done


def test_a_first_call_may_say_resume_and_rows_may_be_kept_nowhere(tmp_path: Path) -> None:
    """The file is made empty before the work, to see that it can be written."""
    (tmp_path / "rows.jsonl").touch()
    assert not rows(tmp_path / "rows.jsonl", True).done
    assert rows(None, False).get(("a",), lambda: Row("a", 1)) == Row("a", 1)


def test_what_cannot_be_written_or_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        rows(tmp_path, False)
    for content in (b"\xff", b"[1]\n"):
        (tmp_path / "rows.jsonl").write_bytes(content)
        with pytest.raises(InputError):
            stored(tmp_path / "rows.jsonl", Row)
