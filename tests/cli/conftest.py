"""A small library imported once, through the command line, and copied for the tests that change it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from localmed.cli import main

PROGRESS = re.compile(r"^.+: \d+ % done\n", re.MULTILINE)  # of work that takes over two seconds
COMMAND = (sys.executable, "-P", "-m", "localmed")

MANIFEST = """
name = "ward"
title = "Ward documents"
licence = "test"
priority = 5
[fields]
id = "id"
title = "title"
text = "text"
[documents."hypertension-2019.md"]
edition = "2019-03"
status = "superseded"
[documents."hypertension-2024.md"]
edition = "2024-05"
"""
FILES = {
    "sepsis.txt": "Sepsis: the first hour\n\nGive antibiotics within one hour of recognition of septic shock. "
    "Measure lactate and repeat it if it is above 2 mmol/L.\n",
    "faq.jsonl": '{"id": "1", "title": "Paracetamol", "text": "The maximum dose of paracetamol in adults is 4 g in 24 '
    'hours. In adults under 50 kg it is 2 g in 24 hours."}\n',
    "hypertension-2019.md": "# Hypertension guideline\n\nThe blood pressure target is below 140/90 mmHg.\n",
    "hypertension-2024.md": "# Hypertension guideline\n\nThe blood pressure target is below 130/80 mmHg.\n",
    "visit.md": "# 探视指南\n\n## 探视时间\n\n"
    "普通病房的探视时间为每天14:00至19:30。重症医学科的探视时间为每天16:00至18:00。\n",
    "broken.pdf": "%PDF-1.7\nthis is not a PDF",
    "photo.xyz": "no reader",
}
PDF_LINE = "The loading dose of vancomycin is 25 mg/kg by slow infusion."


@dataclass(frozen=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def failed(self, code: int) -> str:
        """The one line on stderr of a command that must end with ``code``, but for how far it was on a slow machine."""
        assert self.code == code, self
        line = PROGRESS.sub("", self.err)
        assert line.endswith("\n"), self
        assert line.count("\n") == 1, self
        assert line.startswith("localmed: "), self
        assert "Traceback" not in line, self
        assert not self.out, self
        return line


@dataclass(frozen=True)
class Localmed:
    """The command line on one data folder, in this process (the encoder loads once)."""

    data: Path

    def __call__(self, *arguments: str, stdin: str = "") -> Ran:
        kept = io.BytesIO(), io.BytesIO()
        out, err = (io.TextIOWrapper(stream, "utf-8", write_through=True) for stream in kept)
        before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
        code = -1
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                main.run(["--data", str(self.data), *arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else -1
        finally:
            sys.stdin = before
        return Ran(code, *(stream.getvalue().decode() for stream in kept))

    def ok(self, *arguments: str, stdin: str = "") -> Ran:
        ran = self(*arguments, stdin=stdin)
        assert ran.code == 0, f"{ran.code}\n{ran.out}\n{ran.err}"
        return ran

    def process(self, *arguments: str | bytes, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """The command in a process of its own."""
        command = [*COMMAND, "--data", str(self.data), *arguments]
        return subprocess.run(command, capture_output=True, timeout=120, check=False, env=environment(), **options)

    def id_of(self, title: str) -> str:
        """The id of the one current document with this title."""
        ids = [row["id"] for row in self.ok("documents", "list", "--json").json if row["title"] == title]
        assert len(ids) == 1, ids
        return str(ids[0])

    def titles(self, *search: str) -> list[str]:
        return [found["title"] for found in self.ok("search", *search, "--json").json["sections"]]


def notes_of(answer: dict[str, Any]) -> list[str]:
    """The words of the notes of an answer that ``--json`` printed."""
    return [str(note["text"]) if isinstance(note, dict) else str(note) for note in answer["notes"]]


def environment() -> dict[str, str]:
    """This process's environment without settings of localmed or of a terminal."""
    left_out = ("LOCALMED_", "COLUMNS", "HF_", "TRANSFORMERS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(left_out)}


def make_pdf(path: Path) -> None:
    """A PDF of two pages; ``PDF_LINE`` stands on the second."""
    with pymupdf.open() as pdf:
        for heading, line in (("Introduction", "This leaflet is for the pharmacy."), ("Vancomycin", PDF_LINE)):
            page = pdf.new_page(width=595, height=842)
            page.insert_text((72, 90), heading, fontsize=18)
            page.insert_text((72, 140), line, fontsize=11)
        pdf.set_metadata({"title": "Vancomycin leaflet"})
        pdf.save(path)


def write_files(folder: Path) -> Path:
    """The folder that the library is made from."""
    folder.mkdir()
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    make_pdf(folder / "vancomycin.pdf")
    return folder


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Localmed, Ran]:
    """The library and what its import printed. Not to be changed: see ``copied``."""
    root = tmp_path_factory.mktemp("library")
    manifest = root / "ward.toml"
    manifest.write_text(MANIFEST, "utf-8")
    localmed = Localmed(root / "data")
    folder = write_files(root / "documents")
    ran = localmed("import", str(folder), "-c", "ward", "--manifest", str(manifest), "--json")
    assert ran.code == 0, ran
    return localmed, ran


@pytest.fixture
def localmed(imported: tuple[Localmed, Ran]) -> Localmed:
    """The library, for reading."""
    return imported[0]


@pytest.fixture
def copied(imported: tuple[Localmed, Ran], tmp_path: Path) -> Localmed:
    """A copy of the library, for changing."""
    data = tmp_path / "data"
    shutil.copytree(imported[0].data, data, symlinks=True)
    return Localmed(data)


@pytest.fixture
def folder(imported: tuple[Localmed, Ran]) -> Path:
    """Where the documents were imported from."""
    return imported[0].data.parent / "documents"


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOCALMED_DATA", "LOCALMED_CONFIG", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
