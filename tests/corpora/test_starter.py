"""The starter corpus keeps its promises: notices, dates, both languages, PDFs that match their sources, questions."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import unicodedata
from collections import Counter
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from localmed.domain import Kind
from localmed.ingest import readers
from localmed.ingest.manifest import load

CORPORA = Path(__file__).parents[2] / "corpora"
STARTER, SOURCES = CORPORA / "starter", CORPORA / "starter_sources"
COLLECTIONS = ("guidelines", "leaflets", "literature", "local", "reference")
MANIFESTS: dict[str, dict[str, Any]] = {
    name: tomllib.loads((CORPORA / f"starter-{name}.toml").read_text(encoding="utf-8")) for name in COLLECTIONS
}
DECLARED: dict[str, dict[str, Any]] = {
    file: facts for manifest in MANIFESTS.values() for file, facts in manifest.get("documents", {}).items()
}
QUESTIONS: list[dict[str, Any]] = tomllib.loads((CORPORA / "starter_questions.toml").read_text(encoding="utf-8"))[
    "question"
]
PATHS = {path.name: path for path in sorted(STARTER.rglob("*")) if path.is_file()}
FILES = sorted(PATHS)
PDFS = [name for name in FILES if name.endswith(".pdf")]
RECORD_FILES = [name for name in FILES if name.endswith((".json", ".jsonl"))]
NOTICE = {"en": "For demonstration, not for clinical use", "zh": "仅供演示，不得用于临床"}
OWNER = {"en": "Demonstration Hospital", "zh": "演示医院"}
STATUSES = {"current", "superseded", "withdrawn"}
PDF_BYTES = 300_000


def squeeze(text: str) -> str:
    """The text without white space, so that line breaks do not matter."""
    return re.sub(r"\s+", "", text)


def pages(path: Path) -> list[str]:
    with pymupdf.open(path) as pdf:
        return [page.get_text() for page in pdf]


@cache
def records(name: str) -> tuple[dict[str, Any], ...]:
    text = PATHS[name].read_text(encoding="utf-8")
    loaded = [json.loads(line) for line in text.splitlines()] if name.endswith(".jsonl") else json.loads(text)
    return tuple(loaded if isinstance(loaded, list) else [loaded])


def record_text(record: dict[str, Any]) -> str:
    sections = (f"{section['heading']}\n{section['text']}" for section in record.get("sections", ()))
    return "\n".join([record["title"], record.get("text", ""), *sections])


@cache
def text_of(name: str) -> str:
    if name in PDFS:
        return "\n".join(pages(PATHS[name]))
    if name in RECORD_FILES:
        return "\n".join(map(record_text, records(name)))
    return PATHS[name].read_text(encoding="utf-8")


def documents() -> dict[str, tuple[dict[str, Any], str]]:
    """Every document: its key, what is declared of it, and its text."""
    texts = {name: (entry, text_of(name)) for name, entry in DECLARED.items()}
    for name in RECORD_FILES:
        texts |= {f"{name}#{record['id']}": (record, record_text(record)) for record in records(name)}
    return texts


def test_there_is_a_manifest_a_folder_and_a_kind_a_collection() -> None:
    assert sorted(path.name for path in STARTER.iterdir()) == list(COLLECTIONS)
    assert {name: (manifest["kind"], manifest["priority"]) for name, manifest in MANIFESTS.items()} == {
        "guidelines": ("guideline", 10),
        "literature": ("literature", 20),
        "leaflets": ("leaflet", 30),
        "reference": ("book", 40),
        "local": ("local", 50),
    }
    for name, manifest in MANIFESTS.items():
        assert load(CORPORA / f"starter-{name}.toml").collection.name == f"starter-{name}"
        assert manifest["licence"] == "AGPL-3.0-or-later"


def test_manifests_cover_exactly_the_files_that_cannot_describe_themselves() -> None:
    assert len(PATHS) == sum(path.is_file() for path in STARTER.rglob("*"))  # no name twice
    for name, manifest in MANIFESTS.items():
        there = {path.name for path in (STARTER / name).iterdir()}
        assert set(manifest.get("documents", {})) == there - set(RECORD_FILES)
    keys = {"title", "edition", "language", "status", "replaced_by"}
    assert all(set(entry) == keys for entry in DECLARED.values())


def test_every_document_says_what_it_is_and_how_old_and_is_the_invented_hospitals() -> None:
    texts = documents()
    languages = Counter(entry["language"] for entry, _ in texts.values())
    assert languages["en"] >= 10
    assert languages["zh"] >= 6
    assert len({entry["title"] for entry, _ in texts.values()}) == len(texts)
    for key, (entry, text) in texts.items():
        assert NOTICE[entry["language"]] in text, key
        assert OWNER[entry["language"]] in text, key
        assert date.fromisoformat(entry["edition"]) <= date(2024, 12, 31)
        assert entry["status"] in STATUSES
        assert key not in DECLARED or entry["edition"] in text, "the reader of a print sees the date of the manifest"
        named = set(re.findall(r"\b([A-Z]\w+) (?:Hospital|Clinic|Infirmary)\b", text))
        assert named <= {"Demonstration", "Anticoagulation"}, key  # the latter is a department of it
        assert set(re.findall(r"(\w{2})医院", text)) <= {"演示"}, key
        assert text == unicodedata.normalize("NFC", text), key


def test_a_superseded_document_names_a_newer_current_one() -> None:
    superseded = {name: entry for name, entry in DECLARED.items() if entry["status"] == "superseded"}
    assert superseded
    for name, entry in superseded.items():
        successor = DECLARED[entry["replaced_by"]]
        assert PATHS[name].parent == PATHS[entry["replaced_by"]].parent
        assert successor["status"] == "current"
        assert successor["edition"] > entry["edition"]
    assert not any(entry["replaced_by"] for name, entry in DECLARED.items() if name not in superseded)


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pdfs")
    script = SOURCES / "make_pdfs.py"
    subprocess.run([sys.executable, "-W", "error", str(script), "--out", str(folder)], check=True, timeout=60)
    return folder


@pytest.mark.slow
def test_every_pdf_is_made_from_its_source(rebuilt: Path) -> None:
    assert sorted(path.name for path in rebuilt.rglob("*.pdf")) == PDFS
    for name in PDFS:
        made = rebuilt / PATHS[name].relative_to(STARTER)
        assert pages(made) == pages(PATHS[name]), f"{name} is older than its source: run make_pdfs.py"
        assert PATHS[name].stat().st_size < PDF_BYTES


def body(name: str) -> str:
    """A PDF's text without its running heads and feet, which would cut a paragraph that goes over a page."""
    entry = DECLARED[name]
    drop = {entry["title"], OWNER[entry["language"]]}
    lines = [line for page in pages(PATHS[name]) for line in page.splitlines() if line.strip() not in drop]
    return squeeze("".join(line for line in lines if not re.match(r"(Page \d|第\d+页|Edition \d|版本日期：\d)", line)))


@pytest.mark.parametrize("name", PDFS)
def test_no_line_of_a_source_is_lost_in_its_pdf(name: str) -> None:
    text = body(name)
    source = (SOURCES / name).with_suffix(".md").read_text(encoding="utf-8")
    for line in source.splitlines()[1:]:
        for cell in line.strip("|").split("|"):
            piece = squeeze(re.sub(r"^(#+|-|\d\.) ", "", cell.strip()))
            assert piece.startswith("---") or "Edition" in piece or piece in text, piece


def test_questions_are_answered_where_they_say_or_nowhere() -> None:
    first = [(question["language"], question["answerable"]) for question in QUESTIONS[:3]]
    assert first == [("en", True), ("zh", True), ("en", False)], "the demonstration"
    kinds = Counter((question["language"], question["answerable"]) for question in QUESTIONS)
    assert kinds["en", True] >= 15
    assert kinds["zh", True] >= 10
    assert kinds["en", False] + kinds["zh", False] >= 8
    assert len({question["text"] for question in QUESTIONS}) == len(QUESTIONS)
    library = "\n".join(map(text_of, FILES)).lower()
    for question in QUESTIONS:
        if question["answerable"]:
            assert squeeze(question["evidence"]) in squeeze(text_of(question["document"])), question["text"]
            assert DECLARED.get(question["document"], {}).get("status", "current") == "current"
        else:
            assert question["document"] == ""
            assert question["absent"]
            assert not [word for word in question["absent"] if word.lower() in library], question["text"]


# --- every manifest that comes with the project ----------------------------------------------------------------------


EVERY = [path for path in CORPORA.glob("*.toml") if path.stem not in ("starter_questions", "demo_model")]
KINDS = {
    "omim": Kind.BOOK,
    "oncokb": Kind.BOOK,
    "medqa_textbooks": Kind.BOOK,
    "wikipedia": Kind.WIKI,
    "pubmed": Kind.LITERATURE,
    "medquad": Kind.LEAFLET,
}


def test_each_manifest_says_what_it_is_and_all_of_the_papers_databases_are_there() -> None:
    assert set(KINDS) <= {path.stem for path in EVERY}
    for path in EVERY:
        manifest = load(path)
        collection = manifest.collection
        assert collection.name == path.stem
        assert collection.kind is KINDS.get(path.stem, collection.kind)
        assert collection.kind is not Kind.OTHER
        assert collection.licence
        assert collection.source
        assert manifest.reader in ("", *readers.MODULES)
