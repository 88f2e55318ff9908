"""``localmed calibrate``: what it needs, says and leaves behind."""

from __future__ import annotations

import pytest

from localmed.evaluation import calibrating
from tests.cli.conftest import Localmed
from tests.fakes import jsonl, write

HELD = ("bolofen", "catrimab", "dunenib", "fexapril", "grinazole", "helvotide")
ABSENT = ("bolomab", "catrinib", "dunepril", "fexazole", "grinatide", "helvofen")


def test_a_site_chooses_its_threshold(localmed: Localmed, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = localmed.data.parent / "own"
    records = [{"id": name, "title": f"Leaflet: {name}", "text": f"The daily dose of {name} is {number + 2} mg."}
               for number, name in enumerate(HELD)]  # fmt: skip
    rows = [{"text": f"What is the daily dose of {name}?", "answerable": name in HELD} for name in (*HELD, *ABSENT)]
    write(folder, {"files/leaflets.jsonl": jsonl(*records), "q.jsonl": jsonl(*rows)})
    write(localmed.data, {"localmed.toml": "[ask]\nrisk = 0.3\n"})
    file = str(folder / "q.jsonl")
    assert localmed("collections", "create", "leaflets").code == 0
    assert localmed("import", str(folder / "files"), "-c", "leaflets").code == 0
    assert localmed("calibrate").code == 2, "neither a file nor --reset"
    assert localmed("calibrate", file, "--reset").code == 2
    few = localmed("calibrate", file)
    assert few.code
    assert str(calibrating.LEAST) in few.err
    monkeypatch.setattr(calibrating, "LEAST", len(ABSENT))
    measured = localmed("calibrate", file, "--dry-run", "--json").json
    assert measured["calibrated"][0]["answerable"] == len(HELD)
    assert not (localmed.data / "calibration.json").exists()
    ran = localmed("calibrate", file, "--out", str(folder / "out"))
    assert ran.code == 0
    assert "Thresholds before and now" in ran.out
    assert "calibration." not in ran.out, "every message has its words"
    report = (folder / "out" / "report.json").read_text("utf-8")
    assert (folder / "out" / "curve.csv").read_text("utf-8").count("\n") > len(calibrating.LEVELS)
    assert not any(name in report + ran.out for name in HELD), "no question is written"
    assert "calibration" in localmed("doctor").out
    assert localmed("calibrate", "--reset").code == 0
    assert localmed("calibrate", "--reset").code == 2, "there is nothing to take back"
