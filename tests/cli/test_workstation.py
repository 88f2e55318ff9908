"""The workstation profile's models through the command line, on tiny checkpoints; and switching between profiles."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.library.generations import MANIFEST, read_manifest
from localmed.messages import catalogue
from localmed.models.registry.manifests import FOLDER
from tests.cli.conftest import Localmed
from tests.models.tiny import make_bge_m3, make_cross_encoder, make_nli, make_sentence_encoder
from tests.words import phrase, said

ENGLISH = {
    "visiting.txt": "Visiting hours\n\nThe visiting hours of the ward are from two to seven.\n",
    "sepsis.txt": "Sepsis\n\nThe maximum dose of the drug is given within the hour in sepsis.\n",
    "fever.txt": "Fever\n\nParacetamol is given to children with fever.\n",
}
QUESTION = "普通病房的探视时间是什么时候"
Make = Callable[[Path], Path]
WORDS_ONLY = str(catalogue("zh")["search.words_only"])


def set_to(localmed: Localmed, settings: str) -> Localmed:
    localmed.data.mkdir(exist_ok=True)
    (localmed.data / "localmed.toml").write_text(settings, "utf-8")
    return localmed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Localmed:
    """English documents, encoded by the workstation's (tiny) BGE-M3."""
    root = tmp_path_factory.mktemp("workstation")
    localmed = set_to(Localmed(root / "data"), 'profile = "workstation"\n')
    localmed.ok("models", "add", str(make_bge_m3(root / "stick" / "bge-m3")))
    localmed.ok("models", "add", str(make_cross_encoder(root / "stick" / "bge-reranker-v2-m3")))
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


def reranker_of(localmed: Localmed) -> str:
    return str(dict(localmed.ok("ask", "septic shock", "--json").json["provenance"]["models"]).get("reranker", "none"))


@pytest.mark.slow
def test_a_chinese_question_finds_english_passages_by_meaning(made: Localmed) -> None:
    ran = made.ok("search", QUESTION, "--json")
    result = ran.json
    assert (result["dense"], result["language"]) == (True, "zh")
    assert {section["language"] for section in result["sections"]} == {"en"}
    assert len(result["sections"]) == len(ENGLISH)
    assert WORDS_ONLY not in made.ok("search", QUESTION).err
    answer = made.ok("ask", QUESTION, "--json").json
    models = dict(answer["provenance"]["models"])
    assert models["encoder"].startswith("bge-m3 ")
    assert models["reranker"].startswith("bge-reranker-v2-m3 ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reranker", "name"),
    [("bge-m3", "multi-vectors of bge-m3"), ("bge-reranker-v2-m3", "bge-reranker-v2-m3 "), ("none", "")],
)
def test_rerankers_are_switched(workstation: Localmed, reranker: str, name: str) -> None:
    assert workstation.ok("models", "use", "reranker", reranker).out == f"{reranker} serves reranker\n"
    assert reranker_of(workstation).startswith(name or "none")
    assert "bge-reranker-v2-m3 serves" in workstation.ok("models", "use", "reranker", "default").out


@pytest.mark.slow
def test_from_one_profile_to_the_other_and_back(workstation: Localmed) -> None:
    set_to(workstation, 'profile = "starter"\n')
    refused = workstation("search", "visiting hours").failed(5)
    assert "bge-m3-" in refused
    assert "localmed reindex" in refused
    shutil.move(workstation.data / "models", workstation.data / "elsewhere")  # starter needs none of it
    assert workstation.ok("reindex", "--json").json["encoder"].startswith("multilingual-e5")
    assert workstation.ok("reindex").out.startswith("Nothing changed")
    assert workstation.titles("visiting hours")[0] == "Visiting hours"
    set_to(workstation, 'profile = "starter"\n[models]\nfolder = "elsewhere"\n')
    output = workstation.ok("models", "use", "encoder", "bge-m3").out
    assert "bge-m3 serves encoder" in output
    assert "built with multilingual-e5" in output
    assert "localmed reindex" in output
    workstation.ok("models", "use", "reranker", "bge-m3")
    assert "bge-m3-" in workstation("search", "visiting hours").failed(5)
    assert "Generation 0004 is in use" in workstation.ok("reindex").out
    assert workstation.ok("search", QUESTION, "--json").json["dense"]
    workstation.ok("generations", "rollback", "3", "--yes")
    assert "multilingual-e5" in workstation("search", "visiting hours").failed(5)
    assert workstation.ok("models", "use", "encoder", "default").out == "e5 serves encoder\n"
    assert workstation.ok("search", "visiting hours", "--json").json["dense"]


@pytest.mark.slow
def test_an_encoder_of_the_hospitals_own(workstation: Localmed, tmp_path: Path) -> None:
    """Described in a manifest beside the models: its prefixes count, and what it means is noted when it is added."""
    folder = workstation.data / "models"
    manifest = (FOLDER / "multilingual-e5-small.toml").read_text("utf-8").replace("multilingual-e5-small", "ours")
    (folder / "ours.toml").write_text(manifest, "utf-8")
    workstation.ok("models", "add", str(make_sentence_encoder(tmp_path / "ours")))
    assert "localmed reindex" in workstation.ok("models", "use", "encoder", "ours").out
    assert "ours-" in workstation("search", "visiting hours").failed(5)
    encoder = workstation.ok("reindex", "--json").json["encoder"]
    result = workstation.ok("search", QUESTION, "--json").json
    assert (result["dense"], len(result["sections"])) == (True, len(ENGLISH))
    (folder / "ours.toml").write_text(manifest.replace('"query: "', '"find: "'), "utf-8")
    assert workstation.ok("reindex").out.startswith("Nothing changed")  # as it was when it was added
    workstation.ok("models", "remove", "ours", "--yes")
    workstation.ok("models", "add", str(tmp_path / "ours"))
    assert workstation.ok("models", "use", "encoder", "ours").out.count(encoder) == 1
    assert workstation.ok("reindex", "--json").json["encoder"] != encoder
    assert "no token vectors" in workstation("models", "use", "reranker", "ours").failed(2)


def test_a_library_of_starter_is_its_own(copied: Localmed) -> None:
    assert copied.ok("models", "use", "encoder", "default").out == "e5 serves encoder\n"
    assert copied.ok("reindex").out.startswith(phrase("reindex.nothing"))
    assert copied.ok("reindex", "--again", "--json").json["generation"] == 2
    assert "Sepsis: the first hour" in copied.titles("septic shock")
    found = copied.ok("search", "几点可以去看住院的亲人", "--json").json
    assert (found["dense"], found["sections"][0]["title"]) == (True, "探视指南")


@pytest.mark.slow
def test_a_library_of_an_encoder_that_is_gone_says_so(copied: Localmed) -> None:
    stored = copied.data / "generations" / "0001" / MANIFEST
    before = replace(read_manifest(stored.parent), encoder="all-MiniLM-L6-v2-0.1.0-384-sentences")
    stored.chmod(0o600)
    stored.write_text(before.to_json(), "utf-8")
    for command in (("search", "sepsis"), ("ask", "sepsis"), ("doctor",)):
        ran = copied(*command)
        output = " ".join((ran.out + ran.err).split())
        assert ran.code == 5
        assert "built with all-MiniLM-L6-v2" in output
        assert "localmed reindex" in output
    assert copied.ok("reindex", "--json").json["encoder"].startswith("multilingual-e5-small")
    assert copied.ok("search", "探视时间", "--json").json["dense"]
    assert "all-MiniLM" not in copied("doctor").out


def test_without_its_models_the_profile_says_what_to_add(copied: Localmed, tmp_path: Path) -> None:
    set_to(copied, 'profile = "workstation"\n')
    for command in (("search", "sepsis"), ("reindex",), ("ask", "sepsis")):
        output = copied(*command).failed(6)
        assert said("model.not_registered_for.what", name="bge-m3", role="encoder") in output
        assert "localmed models add FOLDER --as bge-m3" in output
    lying = make_bge_m3(copied.data / "models" / "bge-m3")  # put there by hand: not loaded
    assert f"localmed models add {lying} --as bge-m3" in copied("reindex").failed(6)
    set_to(copied, "")
    assert "registered: none" in copied("models", "use", "reranker", "bge-reranker-v2-m3").failed(2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 1000), "has 1000 bytes"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "is missing"),
        (lambda folder: (folder / "code.py").write_text("print()"), phrase("model.file_stranger")),
    ],
)
def test_what_has_changed_is_never_loaded(workstation: Localmed, harm: Callable[[Path], object], expected: str) -> None:
    folder = workstation.data / "models" / "bge-m3"
    for path in folder.iterdir():
        path.chmod(0o600)
    harm(folder)
    for command in (("search", QUESTION), ("ask", QUESTION), ("models", "use", "encoder", "bge-m3")):
        assert expected in workstation(*command).failed(6)


@pytest.mark.slow
def test_a_judge_of_entailment_is_added_and_chosen(workstation: Localmed, tmp_path: Path) -> None:
    def serving() -> str:
        return " ".join(workstation.ok("models", "list").out.split())  # a narrow terminal breaks the line

    assert "entailment: none" in serving()
    folder = make_nli(tmp_path / "nli-deberta-v3-base", kind="DebertaV2")
    workstation.ok("models", "add", str(folder))
    assert "entailment: nli-deberta-v3-base" in serving()  # the profile's own
    assert phrase("site.no_chat.what") in workstation("models", "use", "entailment", "chat").failed(2)
    workstation.ok("models", "use", "entailment", "none")
    assert "entailment: none" in serving()
    workstation.ok("models", "use", "entailment", "nli-deberta-v3-base")
    unnamed = make_nli(tmp_path / "unnamed", ["LABEL_0", "LABEL_1", "LABEL_2"])
    workstation.ok("models", "add", str(unnamed), "--role", "entailment")
    assert "must name its labels" in workstation("models", "use", "entailment", "unnamed").failed(6)
    assert "entailment: nli-deberta-v3-base" in serving()


@pytest.mark.parametrize(
    ("make", "name", "harm", "expected"),
    [
        (make_bge_m3, "bge-m3", "missing sparse_linear.pt", "sparse_linear.pt is missing"),
        (make_bge_m3, "bge-m3", "cut model.safetensors", "bytes early"),
        (make_cross_encoder, "bge-reranker-v2-m3", "older model.safetensors", "model.safetensors is missing"),
        (make_nli, "none", "missing tokenizer.json", "is reserved"),
    ],
)
def test_what_is_not_whole_is_not_added(tmp_path: Path, make: Make, name: str, harm: str, expected: str) -> None:
    localmed, folder = Localmed(tmp_path / "data"), make(tmp_path / name)
    how, file = harm.split()
    if how == "missing":
        (folder / file).unlink()
    elif how == "older":
        (folder / file).rename(folder / "pytorch_model.bin")
    else:
        os.truncate(folder / file, (folder / file).stat().st_size - 7)
    assert expected in localmed(
        "models", "add", str(folder), *(("--role", "entailment") if name == "none" else ())
    ).failed(2 if name == "none" else 3)
    assert not localmed.ok("models", "verify", "--json").json
