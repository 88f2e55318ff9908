"""``localmed explain``: the page, what is refused, and that nothing of a patient is left anywhere."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed
from tests.cli.test_privacy import MARKER, traces
from tests.words import said

ORDER = f"Patient: {MARKER} Smith\n1. Paracetamol 1 g PO QID, max 4 g/day\n2. Do not take aspirin.\n3. Lactate in AM\n"
QUESTION = "What is the maximum dose of this medicine in adults?"


@pytest.fixture
def order(tmp_path: Path) -> Path:
    path = tmp_path / "order.txt"
    path.write_text(ORDER, "utf-8")
    return path


def test_an_order_is_explained(localmed: Localmed, order: Path) -> None:
    out = localmed.ok("explain", str(order), "--question", QUESTION).out
    assert "NOT RELEASED" in out
    assert "1. Paracetamol 1 g PO QID, max 4 g/day" in out
    assert "QID: four times a day" in out
    assert "2. Do not take aspirin." in out
    assert "needs a chat model, which the administrator can add" in " ".join(out.split())
    assert "gives no advice" in out
    answer = localmed.ok("explain", "-", "--question", QUESTION, "--json", stdin=ORDER).json
    assert (answer["workflow"], answer["released_by"]) == ("explain", "")
    question = next(part for part in answer["parts"] if "searched_as" in part)
    assert question["searched_as"] == "", "of two medicines none is chosen"


def test_chinese(localmed: Localmed) -> None:
    out = localmed.ok("explain", "-", stdin="对乙酰氨基酚0.5g 口服 一日三次\n不要自行停药").out
    assert "对乙酰氨基酚0.5g 口服 一日三次" in out
    assert "不要自行停药" in out
    assert "未发放" in out


def test_a_leaflet_is_written_once_for_its_owner(localmed: Localmed, order: Path, tmp_path: Path) -> None:
    page = tmp_path / "leaflet.html"
    options = ("explain", str(order), "--leaflet", str(page))
    assert "--released-by" in localmed(*options).failed(2)
    assert not page.exists()
    assert "Released by A. Nurse" in localmed.ok(*options, "--released-by", " A.  Nurse ").out
    assert "A. Nurse" in page.read_text("utf-8")
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "exists already" in localmed(*options, "--released-by", "A. Nurse").failed(2)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", 3),
        (b"12 34 ... !", 3),
        (b"PK\x03\x04\x14\x00\x06\x00" + bytes(range(256)) * 20, 3),
        ("Принимать по одной таблетке три раза в день".encode(), 3),
        (b"take 5 mg daily\n" * 80_000, 3),
    ],
)
def test_bad_orders_are_refused_in_one_line(localmed: Localmed, tmp_path: Path, data: bytes, code: int) -> None:
    path = tmp_path / "order"
    path.write_bytes(data)
    localmed("explain", str(path)).failed(code)


def test_nothing_of_a_patient_is_left(copied: Localmed, order: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.txt"
    record.write_text(f"Name: {MARKER} Smith\nProblems: hypertension\n", "utf-8")
    question = f"I am {MARKER} Smith, tel 555-123-4567. Is this condition bad?"
    ran = copied.ok("explain", str(order), "--patient", str(record), "--question", question, "--trace")
    assert MARKER not in ran.err
    assert traces(copied.data) == []
    answer = copied.ok("explain", str(order), "--patient", str(record), "--question", question, "--json").json
    (searched,) = (part["searched_as"] for part in answer["parts"] if "searched_as" in part)
    assert searched == "Is this condition bad?"
    for arguments, code in ((("--profile", "x"), 2), (("--patient", str(tmp_path / MARKER)), 3)):
        refused = copied("explain", "-", *arguments, stdin=ORDER)
        assert refused.code == code
        assert MARKER not in refused.err


def test_what_is_kept_is_its_owners(copied: Localmed, order: Path) -> None:
    assert not (copied.data / "kept").exists()
    copied.ok("explain", str(order), "--keep")
    (file,) = (copied.data / "kept").iterdir()
    assert MARKER not in file.name
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text("utf-8"))["workflow"] == "explain"


def test_a_recording_replays_to_the_same_answer(localmed: Localmed, order: Path, tmp_path: Path) -> None:
    record = tmp_path / "record.txt"
    record.write_text("Problems: hypertension\n", "utf-8")
    file = tmp_path / "recording.json"
    options = ("--patient", str(record), "--question", QUESTION, "--record", str(file), "--released-by", "A. Nurse")
    localmed.ok("explain", str(order), *options)
    replayed = localmed.ok("replay", str(file))
    assert replayed.err == f"{said('recording.same')}\n"
    assert "Released by A. Nurse" in replayed.out


def test_no_leaflet_of_an_ambiguous_abbreviation_or_an_unchecked_line(localmed: Localmed, tmp_path: Path) -> None:
    order, page = tmp_path / "order.txt", tmp_path / "leaflet.html"
    options = ("explain", str(order), "--leaflet", str(page), "--released-by", "Ada")
    for text, problem in (
        ("Chloramphenicol drops OD\n", "OD"),
        ("Paracetamol 1 g PO, enoxaparin 40 mg SC\n", "--lines-checked"),
    ):
        order.write_text(text, "utf-8")
        assert problem in localmed(*options).failed(2)
        assert not page.exists()
    localmed.ok(*options, "--lines-checked")
    assert page.exists()
