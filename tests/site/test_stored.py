"""The whole check: for each kind of file, damage it, lose it or add one, and see it named with what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from localmed.config import Settings
from localmed.library import generations, layout
from localmed.messages import render
from localmed.site import changes, lookups
from localmed.upkeep import check
from tests.cli.conftest import Localmed
from tests.fakes import HashedWords, documents, flip, import_into, opened, overwrite, write
from tests.words import phrase

TEXT = "Sepsis\n\nGive antibiotics within one hour.\n"


@pytest.fixture
def data(settings: Settings, corpus: Path) -> Path:
    """A library with everything that is stored beside generations."""
    import_into(settings, write(corpus, {"a.txt": TEXT, "b.txt": "Fever\n\nGive paracetamol.\n"}))
    with opened(settings, HashedWords()) as session:
        changes.set_access(session, "ward", ["staff"])
        changes.withdraw(session, documents(settings)["b.txt"], True, "recalled")
    return settings.data


def faults(data: Path) -> list[str]:
    with opened(Settings(data), HashedWords()) as session:
        return [render(fault, "en") for problems in check.find_all_faults(session, None).values() for fault in problems]


def original(data: Path) -> Path:
    return next(path for path in (data / "files").iterdir() if path.read_text() == TEXT)


def test_a_whole_library_has_no_faults(data: Path) -> None:
    (data / "localmed.toml").write_text("", "utf-8")  # the site's settings, as the guide says
    (data / "ocr").mkdir()
    (data / "uploads" / "ward").mkdir(parents=True)
    assert faults(data) == []


def test_what_is_written_to_is_for_its_owner_alone(data: Path) -> None:
    with opened(Settings(data), HashedWords()) as session:
        check.find_all_faults(session, None)
        for name in ("site.sqlite", "audit.key", "in_force.json"):
            for path in data.glob(f"{name}*"):  # with SQLite's own files beside it
                assert path.stat().st_mode & 0o077 == 0, path.name
    (data / "site.sqlite").chmod(0o640)
    with opened(Settings(data), HashedWords()) as session:
        lookups.quarantine(session)
    assert (data / "site.sqlite").stat().st_mode & 0o777 == 0o640, "given to a group on purpose"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("in_force.json", b"staff"),
        ("site.sqlite", b"recalled"),
        ("site.sqlite", b"SQLite"),
        ("generations/served.json", b"["),
        ("generations/0001/library.sqlite", b"Sepsis"),
        ("generations/0001/manifest.json", b"sha256"),
    ],
)
def test_damage_is_named(data: Path, name: str, text: bytes) -> None:
    flip(data / name, (data / name).read_bytes().index(text))
    problems = faults(data)
    named = "generation 0001" if name.endswith("manifest.json") else Path(name).name.partition(".")[0]
    assert any(named in fault for fault in problems), problems


def test_an_original_that_is_another_or_lost(data: Path) -> None:
    path = original(data)
    flip(path)
    assert [fault for fault in faults(data) if str(path) in fault and "Import the document again" in fault]
    path.unlink()
    assert [fault for fault in faults(data) if path.name[:12] in fault and "import it again" in fault]


def test_a_damaged_vector_costs_nothing_and_is_said(data: Path) -> None:
    path = next((data / "vectors").iterdir())
    flip(path, path.stat().st_size - 1)
    assert [fault for fault in faults(data) if str(path) in fault and phrase("stored.vectors") in fault]


@pytest.mark.parametrize(
    "name",
    [
        "files/notes.txt", "vectors/notes.txt", "generations/notes.txt", "generations/0001/notes.txt",
        "generations/0001/passages.lance/_versions/9.manifest",
    ],
)  # fmt: skip
def test_what_nobody_of_ours_wrote_is_named(data: Path, name: str) -> None:
    (data / name).write_bytes(b"x")
    assert [fault for fault in faults(data) if name in fault]


def test_what_a_file_server_keeps_is_no_damage(data: Path) -> None:
    for folder in (".", "files", "vectors", "kept", "corpora", "generations"):
        (data / folder / "lost+found").mkdir(parents=True, exist_ok=True)
        (data / folder / ".nfs000000000001").write_bytes(b"x")
    assert faults(data) == []
    assert not layout.unknown(data)


def test_what_the_table_does_not_know_is_told_and_is_no_damage(data: Path) -> None:
    (data / "notes.txt").write_bytes(b"x")
    assert faults(data) == []
    told = json.loads(Localmed(data)("doctor", "--json").out)["checks"]
    assert [check["level"] for check in told if "notes.txt" in check["text"]] == ["warning"]


def test_a_key_that_others_may_read_is_told(data: Path) -> None:
    data.chmod(0o700)
    (data / "audit.key").chmod(0o640)
    told = json.loads(Localmed(data)("doctor", "--json").out)["checks"]
    assert [check["level"] for check in told if "audit.key" in check["text"]] == ["problem"]


def test_the_commands_end_with_5_and_name_the_file(data: Path) -> None:
    localmed = Localmed(data)
    assert localmed.ok("generations", "verify", "--json").json["beside"] == []
    (data / "files" / "notes.txt").write_bytes(b"x")
    verified = localmed("generations", "verify")
    assert verified.code == 5
    assert "notes.txt" in verified.out
    checks = json.loads(localmed("doctor", "--full", "--json").out)["checks"]
    assert [check for check in checks if check["name"] == "beside" and check["level"] == "problem"]


def test_each_check_goes_on_after_another_has_failed(data: Path) -> None:
    (data / "site.sqlite").write_bytes(b"{")
    (data / "files" / "notes.txt").write_bytes(b"x")
    assert len(check.faults_beside(data)) >= 2
    assert generations.numbers(data) == [1]


@pytest.mark.slow
def test_when_everything_was_read_last_is_kept_and_asked_for_after_days(data: Path) -> None:
    localmed = Localmed(data)

    def whole_check() -> dict[str, str]:
        checks = localmed("doctor", "--json").json["checks"]
        return next(check for check in checks if check["name"] == "whole check")

    assert whole_check()["level"] == "notice"  # the library is new
    assert "doctor --full" in whole_check()["remedy"]
    localmed("generations", "verify")
    assert phrase("doctor.whole_check") in whole_check()["text"]
    check.note_whole_check(data, 0, "2026-01-05T02:00:00+00:00")
    assert whole_check()["level"] == "warning"
    assert "doctor --full" in whole_check()["remedy"]
    localmed("doctor", "--full")
    assert whole_check()["level"] == "ok"
    original = next((data / "files").iterdir())
    overwrite(original, b"another")
    localmed("doctor", "--full")
    assert "damaged parts found by the last full check" in whole_check()["text"]
    assert (data / layout.WHOLE_CHECK).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("text", ["", "[]", '{"time": "x", "faults": 0}', '{"time": "2026-01-05", "faults": -1}'])
def test_a_note_of_a_check_that_cannot_be_read_is_none(data: Path, text: str) -> None:
    (data / layout.WHOLE_CHECK).write_text(text)
    assert check.last_whole_check(data) is None


def test_a_library_of_before_that_was_never_read_is_told(data: Path) -> None:
    (data / "site.sqlite").unlink()
    assert phrase("doctor.whole_check_late.what") in Localmed(data)("doctor", "--json").out
