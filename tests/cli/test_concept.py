"""``localmed concept``, and graphs in the other commands."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed, environment
from tests.words import phrase, said

FIXTURES = Path(__file__).parents[1] / "ingest" / "fixtures" / "graphs"
CORPORA = Path(__file__).parents[2] / "corpora"
SECRET = "chronic kidny diseese of Mrs Example"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Localmed:
    """A library with two graphs."""
    localmed = Localmed(tmp_path_factory.mktemp("graph") / "data")
    for name, files in (("doid", ["small.obo"]), ("onc_interactions", ["ONC_High_Priority_Mapped.csv"])):
        paths = [str(FIXTURES / file) for file in files]
        localmed.ok("import", *paths, "-c", name, "--manifest", str(CORPORA / f"{name}.toml"))
    return localmed


def test_a_card(graph: Localmed) -> None:
    out = graph.ok("concept", "Chronic", "Kidney", "Diseases").out
    for expected in (
        "chronic kidney disease [DOID:3]", "lasts for more than three months", "(Disease Ontology, 2025-02-03)",
        "慢性肾脏病", "MESH:D051436", "Relations, 2 of 2", "kidney disease", "has symptom",
    ):  # fmt: skip
        assert expected in " ".join(out.split()), expected


def test_a_card_for_scripts(graph: Localmed) -> None:
    card = graph.ok("concept", "alphadrug", "--query", "with gammadrug?", "--json").json
    assert card["concept"]["id"] == "DB90001"
    best = card["relations"][0]
    assert (best["object_name"], best["detail"], best["source"]["edition"]) == ("Gammadrug", "high priority", "2014")
    assert card["ordered_by"] == "words"


def test_by_meaning(graph: Localmed) -> None:
    card = graph.ok("concept", "alphadrug", "-q", "with gammadrug?", "--by-meaning", "--json").json
    assert "cosine of multilingual-e5-small" in card["ordered_by"]


def test_an_unknown_term_ends_with_2_and_near_names(graph: Localmed) -> None:
    refusal = graph("concept", "chronic kidny disease").failed(2)
    assert said("graph.unknown_near", near="chronic kidney disease") in refusal
    assert "kidny" not in refusal
    assert phrase("graph.unknown") in graph("concept", "qqqq").failed(2)


def test_a_definition_that_is_found_can_be_opened(graph: Localmed, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(graph.data, data, symlinks=True)
    copied = Localmed(data)
    (tmp_path / "ward.md").write_text("# Visiting\n\nVisitors come from two to seven.\n")
    copied.ok("collections", "create", "ward", "--title", "Ward")
    copied.ok("import", str(tmp_path / "ward.md"), "-c", "ward")
    answer = copied.ok("ask", "What is chronic kidney disease?", "--json").json
    first = answer["receipts"]["sections"][0]["best"]
    (passage,) = [piece["passage"]["id"] for piece in answer["evidence"] if piece["marker"] == first]
    shown = copied.ok("show", passage[:12], "--image", str(tmp_path / "page.png"))
    assert "lasts for more than three months" in " ".join(shown.out.split())
    assert (tmp_path / "page.png").exists()


def test_the_term_is_written_nowhere(graph: Localmed) -> None:
    graph("concept", SECRET, "-q", SECRET)
    graph.ok("concept", "CKD", "-q", SECRET)
    for path in graph.data.rglob("*"):
        assert not path.is_file() or b"kidny" not in path.read_bytes(), path


def test_graphs_are_listed_with_their_terms(graph: Localmed) -> None:
    listed = graph.ok("collections", "list", "--json").json
    assert {name: (row["kind"], row["documents"], row["terms"]) for name, row in listed.items()} == {
        "doid": ("graph", 1, 3), "onc_interactions": ("graph", 1, 3),
    }  # fmt: skip
    assert "terms" in graph.ok("collections").out
    documents = graph.ok("documents", "list", "-c", "doid", "--json").json
    notes = [(document["edition"], [note["text"] for note in document["notes"]]) for document in documents]
    assert notes == [("2025-02-03", ["3 terms, 3 relations"])]


def test_a_card_loads_no_model(graph: Localmed) -> None:
    import subprocess

    script = (
        "import sys\nfrom localmed.cli import main\n"
        "try: main.run(sys.argv[1:])\n"
        "except SystemExit as end: assert end.code == 0, end.code\n"
        "print(sorted({'torch', 'lancedb', 'pyarrow', 'spacy', 'onnxruntime'} & set(sys.modules)))"
    )
    arguments = ["--data", str(graph.data), "concept", "CKD", "-q", "which drugs are safe"]
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, env=environment()
    )
    assert ran.stdout.splitlines()[-1] == "[]"


def test_a_source_that_is_hidden_or_not_yet_effective_is_not_in_the_graph(graph: Localmed, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(graph.data, data, symlinks=True)
    copied = Localmed(data)
    command = ("concept", "chronic kidney disease", "--json")
    names = list(copied.ok("collections", "list", "--json").json)
    assert copied.ok(*command).json["total"]
    for name in names:
        copied.ok("collections", "readers", name, "--group", "doctors")
    assert copied.ok("--as-group", "doctors", *command).json == copied.ok(*command).json
    assert "kidney" not in copied("--as-group", "nurses", *command).failed(2)  # no near names either
    for document in copied.ok("documents", "list", "--json").json:
        copied.ok("documents", "set", document["id"], "--effective-from", "2999")
    copied(*command).failed(2)
