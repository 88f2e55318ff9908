"""Commands that change the library: documents, collections, generations, imports."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from localmed.cli import speaking
from tests.cli.conftest import FILES, MANIFEST, Localmed
from tests.words import phrase, said


def test_withdraw_takes_effect_at_once_and_survives_rollback(copied: Localmed) -> None:
    document = copied.id_of("Paracetamol")
    assert "Paracetamol" in copied.titles("paracetamol")
    copied.ok("documents", "withdraw", document[:10], "--reason", "recalled")
    assert "Paracetamol" not in copied.titles("paracetamol")
    answer = copied.ok("ask", "What is the maximum dose of paracetamol?", "--status", "superseded",
                       "--status", "current", "--json").json  # fmt: skip
    assert document not in {evidence["passage"]["document_id"] for evidence in answer["evidence"]}
    assert len(copied.ok("generations", "list", "--json").json) == 1
    copied.ok("collections", "priority", "ward", "7")
    copied.ok("generations", "rollback", "--yes")
    assert "Paracetamol" not in copied.titles("paracetamol")
    assert copied.ok("documents", "show", document, "--json").json["status"] == "withdrawn"
    copied.ok("documents", "reinstate", document, "--reason", "a mistake")
    assert "Paracetamol" in copied.titles("paracetamol")


def test_supersede_and_undo(copied: Localmed, folder: Path) -> None:
    old, new = copied.id_of("Sepsis: the first hour"), copied.id_of("Paracetamol")
    refusal = copied("documents", "supersede", old, "--by", new, stdin="n\n")
    assert (refusal.code, refusal.err) == (130, f"localmed: {said('cli.not_confirmed')}\n")
    assert "will be superseded by Paracetamol (" in refusal.out
    assert "no word in common" in refusal.out
    assert copied.ok("documents", "show", old, "--json").json["status"] == "current"
    assert "is superseded by Paracetamol (" in copied.ok("documents", "supersede", old, "--by", new, "--yes").out
    copied.ok("documents", "supersede", old)
    copied.ok("import", str(folder), "-c", "ward", "--retry")
    shown = copied.ok("documents", "show", old, "--json").json
    assert shown["status"] == "superseded"
    assert shown["replaced_by"] == new
    copied.ok("documents", "supersede", old, "--undo")
    assert copied.ok("documents", "show", old, "--json").json["status"] == "current"


def test_a_mark_on_a_withdrawn_document_holds_once_it_is_reinstated(copied: Localmed) -> None:
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "withdraw", document, "--reason", "recalled")
    assert "superseded, but withdrawn until it is reinstated" in copied.ok("documents", "supersede", document).out
    copied.ok("documents", "reinstate", document, "--reason", "a mistake")
    assert copied.ok("documents", "show", document, "--json").json["status"] == "superseded"
    copied.ok("documents", "supersede", document, "--undo")
    assert copied.ok("documents", "show", document, "--json").json["status"] == "current"
    assert "Paracetamol" in copied.titles("paracetamol")


def test_what_its_source_withdrew_is_marked_by_nobody(copied: Localmed, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("Lidoflazine\n\nLidoflazine was given three times a day.\n")
    manifest = tmp_path / "drugs.toml"
    manifest.write_text('name = "drugs"\ntitle = "Drugs"\n[documents."old.txt"]\nstatus = "withdrawn"\n')
    copied.ok("import", str(tmp_path / "old.txt"), "-c", "drugs", "--manifest", str(manifest))
    (document,) = (row["id"] for row in copied.ok("documents", "list", "-c", "drugs", "--json").json)
    for undo in ([], ["--undo"]):
        refusal = copied("documents", "supersede", document, *undo).failed(2)
        assert "was withdrawn by its source" in refusal
        assert "localmed collections update drugs" in refusal
        assert copied.ok("documents", "show", document, "--json").json["status"] == "withdrawn"


def test_remove_asks_first(copied: Localmed) -> None:
    document = copied.id_of("Paracetamol")
    assert copied("documents", "remove", document, stdin="n\n").code == 130
    assert "Paracetamol" in copied.titles("paracetamol")
    copied.ok("documents", "remove", document, stdin="y\n")
    assert "Paracetamol" not in copied.titles("paracetamol")
    for unclear in ((), ("--all",), ("abc", "--all", "-c", "ward")):
        copied("documents", "remove", *unclear, "--yes").failed(2)


def test_remove_all_of_a_collection(copied: Localmed) -> None:
    copied.ok("documents", "remove", "--all", "-c", "ward", "--yes")
    assert copied.ok("documents", "list", "--json").json == []
    assert copied.ok("search", "paracetamol").out.startswith("Nothing in the library is close to this.")
    assert copied.ok("ask", "paracetamol dose", "--json").json["status"] == "abstained"
    assert copied.ok("documents").out == "Documents: none\n"
    copied("documents", "remove", "--all", "-c", "ward", "--yes").failed(2)


def test_rollback_says_what_it_undoes_asks_and_serves_the_generation_before(copied: Localmed) -> None:
    copied.ok("documents", "remove", copied.id_of("Paracetamol"), "--yes")
    question = copied("generations", "rollback", stdin="n\n")
    assert question.code == 130
    assert "Going back from generation 2 to 1 undoes:\n2  " in question.out
    assert "Paracetamol" not in copied.titles("paracetamol")
    assert said("generation.served", number=1) in copied.ok("generations", "rollback", stdin="y\n").out
    assert "Paracetamol" in copied.titles("paracetamol")
    assert [row["served"] for row in copied.ok("generations", "list", "--json").json] == [True, False]
    copied.ok("generations", "rollback", "2", "--yes")
    assert "Paracetamol" not in copied.titles("paracetamol")
    copied("generations", "rollback", "99").failed(2)


def test_upgrade_makes_a_generation(copied: Localmed) -> None:
    assert said("generation.served", number=2) in copied.ok("generations", "upgrade").out
    assert "Paracetamol" in copied.titles("paracetamol")
    checked = copied.ok("generations", "verify").out
    assert checked == f"generation 1: ok\ngeneration 2: ok\n{said('stored.beside')}: ok\n"


def test_prune_removes_what_no_generation_needs(copied: Localmed) -> None:
    copied.ok("generations", "prune", "--yes")  # of files that were refused
    (copied.data / "files" / ("0" * 64)).write_text("of a generation that is gone")
    assert "Files removed: 1 (" in copied.ok("generations", "prune", stdin="y\n").out
    assert "Files removed: 0 (" in copied.ok("generations", "prune", "--yes").out
    assert "Paracetamol" in copied.titles("paracetamol")


def test_verify_names_a_damaged_file(copied: Localmed) -> None:
    catalogue = copied.data / "generations" / "0001" / "library.sqlite"
    content = bytearray(catalogue.read_bytes())
    content[-1] ^= 1
    catalogue.write_bytes(bytes(content))
    ran = copied("generations", "verify")
    assert ran.code == 5
    assert "library.sqlite" in ran.out
    assert copied("generations", "verify", "--json").json["1"]


def test_collections(copied: Localmed) -> None:
    copied.ok("collections", "create", "textbooks", "--title", "Textbooks", "--priority", "50", "--language", "en")
    assert copied.ok("collections", "list", "--json").json["textbooks"]["title"] == "Textbooks"
    copied("collections", "create", "textbooks").failed(2)
    copied.ok("collections", "priority", "textbooks", "1")
    assert list(copied.ok("collections", "list", "--json").json) == ["textbooks", "ward"]
    copied("collections", "priority", "nowhere", "1").failed(2)
    for name in ("", "../up", "x" * 61):
        copied("collections", "create", "--", name).failed(2)


@pytest.mark.slow
def test_the_first_collection_makes_the_library(tmp_path: Path) -> None:
    fresh = Localmed(tmp_path / "data")
    fresh.ok("collections", "create", "书籍")
    assert list(fresh.ok("collections", "list", "--json").json) == ["书籍"]
    assert fresh.ok("search", "anything").out.startswith("Nothing in the library is close to this.")


# --- imports ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bad_file_is_reported_and_the_rest_imported(copied: Localmed, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "bad.pdf").write_text("not a PDF")
    (folder / "empty.txt").write_text("")
    (folder / "good.txt").write_text("Heparin is given under the skin.")
    ran = copied.ok("import", str(folder), "-c", "ward")
    for name in ("bad.pdf", "empty.txt", "good.txt"):
        assert name in ran.out
    assert "quarantined: 2" in ran.out
    assert "good" in copied.titles("heparin")
    again = copied.ok("import", str(folder), "-c", "ward", "--json").json
    assert again["counts"]["quarantined"] == 2
    retried = copied.ok("import", str(folder), "-c", "ward", "--retry", "--json").json
    assert retried["counts"]["quarantined"] == 2


def test_the_manifest_given_first_is_used_later(copied: Localmed, folder: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed"
    changed.mkdir()
    (changed / "hypertension-2019.md").write_text(FILES["hypertension-2019.md"] + "\nOne more sentence.\n", "utf-8")
    copied.ok("import", str(changed), "-c", "ward")
    statuses = [row["status"] for row in copied.ok("documents", "list", "--json").json if row["edition"] == "2019-03"]
    assert statuses == ["superseded", "superseded"]


@pytest.mark.parametrize("manifest", ["not toml [", MANIFEST.replace('"ward"', '"other"'), None])
def test_a_bad_manifest_is_refused(copied: Localmed, folder: Path, tmp_path: Path, manifest: str | None) -> None:
    file = tmp_path / "manifest.toml"
    if manifest is not None:
        file.write_text(manifest, "utf-8")
    copied("import", str(folder), "-c", "ward", "--manifest", str(file)).failed(2 if manifest is not None else 3)


def test_importing_what_is_not_there(copied: Localmed, tmp_path: Path) -> None:
    copied("import", str(tmp_path / "missing"), "-c", "ward").failed(3)
    assert "collections create" in copied("import", str(tmp_path), "-c", "other").failed(2)
    fresh = Localmed(tmp_path / "fresh")
    assert "collections create new" in fresh("import", str(tmp_path), "-c", "new").failed(2)


def test_file_names_of_any_kind(copied: Localmed, tmp_path: Path) -> None:
    folder = tmp_path / "names"
    folder.mkdir()
    names = [b"[b]bold[red].txt", "用药指南.txt".encode(), b"two\nlines.txt", "用药.txt".encode("gbk")]
    for number, name in enumerate(names):
        (folder / os.fsdecode(name)).write_text(f"Drug {number}.")
    ran = copied.ok("import", str(folder), "-c", "ward")
    assert "documents: 3" in ran.out
    assert "skipped: 1" in ran.out
    assert "not UTF-8" in ran.out
    assert "用药指南" in copied.ok("documents").out


@pytest.mark.parametrize(
    ("options", "remedy"),
    [
        (("--ray-workers", "2"), "--engine ray"),
        (("--engine", "ray", "--dry-run"), "--dry-run"),
        (("--engine", "ray", "--ray-address", "10.0.0.5:6379"), "ingest.clusters"),
        (("--engine", "ray", "--ray-address", "10.0.0.5:6379", "--ray-workers", "2"), "--ray-workers"),
    ],
)
def test_what_ray_does_not_do_is_refused_before_it_starts(
    localmed: Localmed, tmp_path: Path, options: tuple[str, ...], remedy: str
) -> None:
    assert remedy in localmed("import", str(tmp_path), "-c", "ward", *options).failed(2)


def test_without_ray_it_says_what_to_install(
    localmed: Localmed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert "localmed[ray]" in localmed("import", str(tmp_path), "-c", "ward", "--engine", "ray").failed(2)


# --- collections update ----------------------------------------------------------------------------------------------


def _imported(localmed: Localmed, folder: Path, name: str, **texts: str) -> Path:
    folder.mkdir()
    for file, text in texts.items():
        (folder / f"{file}.txt").write_text(text, "utf-8")
    localmed.ok("collections", "create", name)
    localmed.ok("import", str(folder), "-c", name)
    return folder


def test_update_is_the_one_command_after_changes(copied: Localmed, tmp_path: Path) -> None:
    folder = _imported(copied, tmp_path / "more", "more", one="Aspirin is given.", two="Heparin is given.")
    (folder / "one.txt").write_text("Clopidogrel is given.", "utf-8")
    (folder / "two.txt").unlink()
    (folder / "three.txt").write_text("Insulin is given.", "utf-8")
    report = copied.ok("collections", "update", "more", "--json").json
    counts = report["counts"]
    assert (report["collection"], counts["read"], counts["removed"]) == ("more", 2, 1)
    assert "Nothing changed" in copied.ok("collections", "update", "more").out


def test_update_refuses_what_is_not_there(copied: Localmed, tmp_path: Path) -> None:
    folder = _imported(copied, tmp_path / "more", "more", one="Aspirin is given.")
    folder.rename(tmp_path / "elsewhere")
    assert "mounted" in copied("collections", "update", "more").failed(2)
    copied.ok("collections", "create", "empty")
    assert phrase("source.never_imported.what") in copied("collections", "update", "empty").failed(2)
    copied("collections", "update", "nowhere").failed(2)
    copied("collections", "update").failed(2)
    copied("collections", "update", "more", "--all").failed(2)


def test_update_all_goes_on_after_one_that_fails(copied: Localmed, tmp_path: Path) -> None:
    missing = _imported(copied, tmp_path / "gone", "gone", one="Aspirin is given.")
    there = _imported(copied, tmp_path / "there", "there", two="Heparin is given.")
    copied.ok("collections", "create", "empty")
    missing.rename(tmp_path / "elsewhere")
    (there / "two.txt").write_text("Insulin is given.", "utf-8")
    ran = copied("collections", "update", "--all", "--json")
    assert ran.code == 2
    updates = {update["collection"]: update for update in ran.json}
    assert set(updates) == {"ward", "gone", "there"}
    assert "mounted" in updates["gone"]["error"]["remedy"]
    assert updates["there"]["counts"]["read"] == 1
    assert ran.err.startswith("localmed: gone: ")


def test_update_of_a_collection_of_which_all_was_refused_fails(copied: Localmed, tmp_path: Path) -> None:
    (tmp_path / "bad.pdf").write_text("not a PDF")
    copied.ok("collections", "create", "bad")
    assert copied("import", str(tmp_path / "bad.pdf"), "-c", "bad").code == 3
    assert copied("collections", "update", "bad").code == 3


# --- what a librarian does with collections and lists -----------------------------------------------------------------


def test_a_collection_gets_another_title(copied: Localmed) -> None:
    copied.ok("collections", "set", "ward", "--title", "Ward notes", "--priority", "3")
    (row,) = [
        collection for name, collection in copied.ok("collections", "list", "--json").json.items() if name == "ward"
    ]
    assert (row["title"], row["priority"]) == ("Ward notes", 3)
    copied("collections", "set", "ward").failed(2)
    copied("collections", "set", "nowhere", "--title", "x").failed(2)


def test_a_deleted_collection_leaves_nothing_behind(copied: Localmed, tmp_path: Path) -> None:
    _imported(copied, tmp_path / "more", "more", one="Aspirin is given.")
    assert "documents (1)" in copied("collections", "delete", "more", stdin="n\n").out
    assert "Aspirin" in copied.ok("search", "aspirin").out
    assert "Deleted more" in copied.ok("collections", "delete", "more", "--yes").out
    assert set(copied.ok("collections", "list", "--json").json) == {"ward"}
    assert "Aspirin is given" not in copied.ok("search", "aspirin").out
    assert not (copied.data / "corpora" / "more.toml").exists()
    copied("collections", "delete", "more", "--yes").failed(2)
    copied.ok("generations", "verify")


# --- the language of the commands -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environment", "setting", "spoken"),
    [({}, "", "en"), ({"LANG": "zh_CN.UTF-8"}, "", "zh"), ({"LANG": "zh_CN.UTF-8"}, "en", "en"), ({}, "zh", "zh"),
     ({"LOCALMED_LANGUAGE": "en", "LANG": "zh_CN"}, "zh", "en"), ({"LC_ALL": "C", "LANG": "zh_CN"}, "", "en"),
     ({"LOCALMED_LANGUAGE": "fr"}, "", "en")],
)  # fmt: skip
def test_which_language_the_commands_speak(environment: dict[str, str], setting: str, spoken: str) -> None:
    speaking.choose(setting)
    try:
        assert speaking.language(environment) == spoken
    finally:
        speaking.choose("")


def test_errors_checks_and_tables_are_in_the_readers_language(
    copied: Localmed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(speaking.VARIABLE, "zh")
    assert copied("collections", "set", "nowhere", "--title", "x").failed(2).startswith("localmed: 没有资料集“nowhere”")
    assert "资料库：" in copied("doctor").out
    assert "标题" in copied.ok("documents").out
    checks = copied("doctor", "--json").json["checks"]
    assert {"code", "parameters", "text", "name", "level"} <= set(checks[0])


def test_the_hint_of_an_empty_folder_works_when_pasted(tmp_path: Path) -> None:
    empty = Localmed(tmp_path / "data")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("Aspirin is given after a heart attack.\n")
    hint = said("library.none.command").partition(": ")[2]
    assert hint in empty("search", "aspirin").failed(5)
    for line in hint.replace("FOLDER", str(tmp_path / "folder")).split(" && "):
        empty.ok(*line.removeprefix("localmed ").split())
    assert "Aspirin" in empty.ok("search", "aspirin").out
