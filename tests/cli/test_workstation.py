"""The workstation profile's models through the command line, on tiny checkpoints; and switching between profiles."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from localmed.cli.texts import texts
from localmed.workflows.ask import LEXICAL_ONLY
from tests.cli.conftest import Localmed
from tests.models.tiny import make_bge_m3, make_cross_encoder

ENGLISH = {
    "visiting.txt": "Visiting hours\n\nThe visiting hours of the ward are from two to seven.\n",
    "sepsis.txt": "Sepsis\n\nThe maximum dose of the drug is given within the hour in sepsis.\n",
    "fever.txt": "Fever\n\nParacetamol is given to children with fever.\n",
}
QUESTION = "普通病房的探视时间是什么时候"
WORDS_ONLY = texts("zh")["words_only"]


def set_to(localmed: Localmed, settings: str) -> Localmed:
    localmed.data.mkdir(exist_ok=True)
    (localmed.data / "localmed.toml").write_text(settings, "utf-8")
    return localmed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Localmed:
    """English documents, encoded by the workstation's (tiny) BGE-M3."""
    root = tmp_path_factory.mktemp("workstation")
    localmed = set_to(Localmed(root / "data"), 'profile = "workstation"\n')
    make_bge_m3(localmed.data / "models" / "bge-m3")
    make_cross_encoder(localmed.data / "models" / "bge-reranker-v2-m3")
    (root / "documents").mkdir()
    for name, text in ENGLISH.items():
        (root / "documents" / name).write_text(text, "utf-8")
    localmed.ok("collections", "create", "ward")
    localmed.ok("import", str(root / "documents"), "-c", "ward")
    return localmed


@pytest.fixture
def workstation(made: Localmed, tmp_path: Path) -> Localmed:
    """A copy of it, to be changed."""
    return Localmed(shutil.copytree(made.data, tmp_path / "data", symlinks=True))


@pytest.mark.slow
def test_a_chinese_question_finds_english_passages_by_meaning(made: Localmed) -> None:
    ran = made.ok("search", QUESTION, "--json")
    found = ran.json
    assert (found["dense"], found["language"]) == (True, "zh")
    assert {hit["passage"]["language"] for hit in found["hits"]} == {"en"}
    assert len(found["hits"]) == len(ENGLISH)
    assert all(hit["similarity"] is not None and hit["lexical_rank"] == -1 for hit in found["hits"])
    assert found["reranker"].startswith("bge-reranker-v2-m3 ")
    scores = [hit["rerank_score"] for hit in found["hits"]]
    assert all(0 < score < 1 for score in scores)
    assert WORDS_ONLY not in made.ok("search", QUESTION).err
    answer = made.ok("ask", QUESTION, "--json").json
    assert LEXICAL_ONLY["zh"] not in answer["notes"]
    models = dict(answer["provenance"]["models"])
    assert models["encoder"].startswith("bge-m3 ")
    assert models["reranker"] == found["reranker"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reranker", "name"),
    [("bge-m3", "multi-vectors of bge-m3"), ("bge-reranker-v2-m3", "bge-reranker-v2-m3 "), ("none", "")],
)
def test_rerankers_are_switched_in_the_settings(workstation: Localmed, reranker: str, name: str) -> None:
    set_to(workstation, f'profile = "workstation"\n[models]\nreranker = "{reranker}"\n')
    found = workstation.ok("search", "visiting hours", "--json").json
    assert found["reranker"].startswith(name)
    assert bool(found["reranker"]) == bool(name)
    assert all((hit["rerank_score"] is not None) == bool(name) for hit in found["hits"])


@pytest.mark.slow
def test_from_one_profile_to_the_other_and_back(workstation: Localmed) -> None:
    set_to(workstation, 'profile = "starter"\n')
    refused = workstation("search", "visiting hours").failed(5)
    assert "bge-m3-" in refused
    assert "localmed reindex" in refused
    shutil.move(workstation.data / "models", workstation.data / "elsewhere")  # starter needs none of it
    assert workstation.ok("reindex", "--json").json["encoder"].startswith("all-MiniLM")
    assert workstation.ok("reindex").out.startswith("Nothing changed")
    assert workstation.titles("visiting hours")[0] == "Visiting hours"
    set_to(
        workstation, 'profile = "starter"\n[models]\nencoder = "bge-m3"\nreranker = "bge-m3"\nfolder = "elsewhere"\n'
    )
    assert "Generation 0004 is served" in workstation.ok("reindex").out
    assert workstation.ok("search", QUESTION, "--json").json["dense"]
    workstation.ok("generations", "rollback", "3")
    assert "all-MiniLM" in workstation("search", "visiting hours").failed(5)
    set_to(workstation, "")
    assert workstation.ok("search", "visiting hours", "--json").json["dense"]


def test_a_library_of_starter_is_its_own(copied: Localmed) -> None:
    assert copied.ok("reindex").out.startswith("Nothing changed: the library is of all-MiniLM")
    assert copied.ok("reindex", "--again", "--json").json["generation"] == 2
    assert "Sepsis: the first hour" in copied.titles("septic shock")
    assert WORDS_ONLY in copied.ok("search", QUESTION).err


def test_the_starter_encoder_reranks_too(copied: Localmed) -> None:
    set_to(copied, '[models]\nreranker = "maxsim"\n')
    assert copied.ok("search", "septic shock", "--json").json["reranker"].startswith("MaxSim over all-MiniLM")


def test_without_its_checkpoint_the_profile_says_what_to_copy(copied: Localmed) -> None:
    set_to(copied, 'profile = "workstation"\n')
    for command in (("search", "sepsis"), ("reindex",), ("ask", "sepsis")):
        said = copied(*command).failed(6)
        assert "bge-m3" in said
        assert "Copy" in said
    set_to(copied, '[models]\nreranker = "bge-reranker-v2-m3"\n')
    assert "bge-reranker-v2-m3" in copied("search", "sepsis").failed(6)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ('profile = "laptop"\n', "starter, workstation"),
        ('[models]\nencoder = "minilm-l12"\n', "minilm, bge-m3"),
        ('[models]\nreranker = ""\nencoder = "bge"\n', "minilm, bge-m3"),
        ('[models]\nreranker = "cohere"\n', "bge-reranker-v2-m3"),
        ('[models]\nencoder = "bge-m3"\nreranker = "maxsim"\n', "minilm"),
        ("[models]\nreranker = 3\n", "text in quotes"),
    ],
)
def test_unknown_models_are_refused(copied: Localmed, settings: str, told: str) -> None:
    assert told in set_to(copied, settings)("search", "sepsis").failed(2)
