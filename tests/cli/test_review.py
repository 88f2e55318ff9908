"""``localmed review`` from end to end: forms out, forms back, what they come to, and what is refused."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed
from tests.words import phrase

pytestmark = pytest.mark.extra("eval")

CASES = [
    {"id": f"q{n}", "question": f"Question <{n}>?", "answers": {"localmed": f"Yes {n} [1].", "alone": f"No {n}."}}
    for n in range(6)
]


@pytest.fixture
def empty(tmp_path: Path) -> Localmed:
    """A command line without a library: a review needs none."""
    return Localmed(tmp_path / "nothing")


@pytest.fixture
def cases(tmp_path: Path) -> str:
    (tmp_path / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES))
    return str(tmp_path / "cases.jsonl")


def fill(folder: Path, name: str, spoiled: str = "") -> str:
    """Fill a form in as somebody who prefers localmed does; ``spoiled`` is written over the first value."""
    key = {row["code"]: row["system"] for row in json.loads((folder / "key.json").read_text())["entries"]}
    text = (folder / f"{name}.csv").read_text("utf-8-sig")
    rows = list(csv.DictReader(text.splitlines()))
    for row in rows:
        for column in ("helpfulness", "harmlessness"):
            row[column] = "1" if key[row["code"]] == "localmed" else "-1"
    rows[0]["helpfulness"] = spoiled or rows[0]["helpfulness"]
    file = folder / f"{name}-filled.csv"
    with file.open("w") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(file)


def test_forms_go_out_and_come_back(empty: Localmed, cases: str, tmp_path: Path) -> None:
    out = tmp_path / "forms"
    done = empty.ok("review", "export", cases, "--out", str(out), "--form", "lay")
    assert "Cases: 6." in done.out
    assert {path.name for path in out.iterdir()} == {
        "key.json", "reviewer-1.csv", "reviewer-1.html", "reviewer-2.csv", "reviewer-2.html"
    }  # fmt: skip
    assert (out / "key.json").stat().st_mode & 0o077 == 0
    page = (out / "reviewer-1.html").read_text()
    assert "localmed" not in page
    assert "&lt;0&gt;" in page, "a question is text"
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.replace("&#39;", "'")
    assert page.count('type="radio"') == 6 * 2 * 2 * 2
    filled = [fill(out, "reviewer-1"), fill(out, "reviewer-2")]
    results = tmp_path / "results"
    ran = empty.ok("review", "import", *filled, "--key", str(out / "key.json"), "--out", str(results), "--json")
    assert [(row["system"], row["mean"]) for row in ran.json["scores"]][:2] == [("alone", -1.0), ("localmed", 1.0)]
    assert ran.json["agreements"][0]["alpha"] == 1.0
    assert {path.name for path in results.iterdir()} == {"report.json", "table.csv", "plot.png", "plot.svg"}
    assert "Question" not in "".join((results / name).read_text() for name in ("report.json", "table.csv", "plot.svg"))
    shown = empty.ok("review", "import", *filled, "--key", str(out / "key.json"))
    assert "helpfulness" in shown.out


def test_what_is_refused(empty: Localmed, cases: str, tmp_path: Path) -> None:
    out = tmp_path / "forms"
    arguments = ("review", "export", cases, "--out", str(out), "--form", "lay")
    empty.ok(*arguments)
    assert phrase("review.exists.command") in empty(*arguments).failed(2)
    assert "letters" in empty(*arguments[:3], "--out", str(tmp_path / "x"), "--reviewer", "../x").failed(2)
    key = str(out / "key.json")
    assert phrase("review.key") in empty("review", "import", cases, "--key", cases).failed(3)
    spoiled = fill(out, "reviewer-1", spoiled="7")
    assert "reviewer-1-filled.csv:2" in empty("review", "import", spoiled, "--key", key).failed(3)
    assert phrase("review.no_ratings") in empty("review", "import", str(out / "reviewer-2.csv"), "--key", key).failed(3)


def test_forms_in_chinese(empty: Localmed, cases: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALMED_LANGUAGE", "zh")
    empty.ok("review", "export", cases, "--out", str(tmp_path / "forms"), "--form", "dual-rag", "--reviewer", "a")
    page = (tmp_path / "forms" / "a.html").read_text()
    assert "回答是否切题" in page
    assert 'lang="zh"' in page
