"""Governance as a librarian and a ward see it: set, sheets, chains, readers, overdue, kept answers."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import MANIFEST, PDF_LINE, Localmed
from tests.words import phrase, said

LATER, EARLIER = "2999-12-01", "2020-01-01"
DOSE = "What is the maximum dose of paracetamol in adults?"


def shown(localmed: Localmed, document: str) -> Any:
    return localmed.ok("documents", "show", document, "--json").json


@pytest.mark.slow
def test_what_is_set_holds_for_answers_lists_and_later_imports(
    copied: Localmed, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "set", document, "--effective-from", LATER, "--owner", "Dr Lin", "--approver", "Dr Wu")
    assert "Paracetamol" not in copied.titles("paracetamol")
    assert "Paracetamol" not in copied.titles("paracetamol", "--status", "current", "--status", "superseded")
    answer = copied.ok("ask", DOSE, "--json").json
    assert document not in {evidence["passage"]["document_id"] for evidence in answer["evidence"]}
    assert f"not yet effective {LATER}" in " ".join(copied.ok("documents").out.split())
    assert shown(copied, document)["status"] == "pending"
    (passage,) = shown(copied, document)["passage_ids"]
    assert "not yet effective" in copied.ok("show", passage).out
    copied.ok("import", str(folder), "-c", "ward", "--retry")
    copied.ok("documents", "set", document, "--effective-from", "", "--review-by", EARLIER)
    assert "Paracetamol" in copied.titles("paracetamol")
    governance = shown(copied, document)["governance"]
    assert governance == {"owner": "Dr Lin", "approver": "Dr Wu", "effective_from": "", "review_by": EARLIER}


@pytest.mark.slow
def test_overdue_is_said_in_both_languages(copied: Localmed) -> None:
    english, chinese = copied.id_of("Paracetamol"), copied.id_of("探视指南")
    for document in (english, chinese):
        copied.ok("documents", "set", document, "--review-by", EARLIER)
    out = copied.ok("ask", DOSE).out
    assert f"REVIEW OVERDUE since {EARLIER}" in out
    assert said("answer.overdue", "zh", date=EARLIER) in copied.ok("ask", "重症医学科的探视时间是什么？").out
    answer = copied.ok("ask", DOSE, "--json").json
    assert {evidence["overdue"] for evidence in answer["evidence"] if evidence["document_title"] == "Paracetamol"} == {
        EARLIER
    }
    assert "REVIEW OVERDUE" in copied.ok("search", "paracetamol dose").out
    sections = copied.ok("search", "paracetamol dose", "--json").json["sections"]
    assert {section["overdue"] for section in sections if section["document"] == english} == {EARLIER}
    assert {row["id"] for row in copied.ok("documents", "due", "--json").json} == {english, chinese}
    lines = copied.ok("doctor").out
    assert "overdue: 2; not yet effective: 0" in lines


def test_a_replay_comes_to_the_same_answer_whatever_the_day(copied: Localmed, tmp_path: Path) -> None:
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "set", document, "--review-by", EARLIER)
    recording = tmp_path / "recording.json"
    answer = copied.ok("ask", DOSE, "--json", "--record", str(recording)).json
    copied.ok("documents", "set", document, "--review-by", "", "--effective-from", LATER)
    replayed = copied.ok("replay", str(recording), "--json").json
    assert replayed["receipts"] == answer["receipts"]
    assert EARLIER in {piece["overdue"] for piece in replayed["evidence"]}
    assert answer["provenance"]["day"] == replayed["provenance"]["day"] != ""


def test_due_soon(copied: Localmed) -> None:
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "set", document, "--review-by", LATER)
    assert copied.ok("documents", "due", "--json").json == []
    assert copied.ok("documents", "due", "--within", "36500", "--json").json == []
    with closing(sqlite3.connect(":memory:")) as clock:
        (soon,) = clock.execute("SELECT date('now', 'localtime', '+30 days')").fetchone()
    copied.ok("documents", "set", document, "--review-by", soon)
    assert copied.ok("documents", "due", "--within", "25", "--json").json == []
    assert [row["id"] for row in copied.ok("documents", "due", "--within", "35", "--json").json] == [document]


def test_a_new_edition_is_what_searches_are_limited_by(copied: Localmed, folder: Path) -> None:
    document = copied.id_of("Paracetamol")
    assert "Paracetamol" not in copied.titles("paracetamol", "--from", "2025")
    copied.ok("documents", "set", document, "--edition", "2025-06")
    assert "Paracetamol" in copied.titles("paracetamol", "--from", "2025")
    assert "Paracetamol" not in copied.titles("paracetamol", "--to", "2024")
    copied.ok("generations", "verify")
    copied.ok("documents", "remove", document, "--yes")
    copied.ok("import", str(folder), "-c", "ward")
    assert shown(copied, document)["edition"] == "2025-06"
    assert "Paracetamol" in copied.titles("paracetamol", "--from", "2025")


def test_a_heading_is_corrected_taken_for_text_and_read_again(copied: Localmed) -> None:
    document = copied.id_of("探视指南")

    def headings() -> list[str]:
        passage = shown(copied, document)["passage_ids"][0]
        return list(copied.ok("show", passage, "--json").json["passage"]["headings"])

    for options, then in (
        (("--heading", "探视时间", "探视时段"), ["探视指南", "探视时段"]),
        (("--no-heading", "探视时段"), ["探视指南"]),
        (("--heading", "探视时间", ""), ["探视指南", "探视时间"]),
    ):
        copied.ok("documents", "set", document, *options)
        assert headings() == then
    assert "documents show" in copied("documents", "set", document, "--no-heading", "探视时段").failed(2)


def test_the_manifest_has_the_last_word(copied: Localmed, folder: Path, tmp_path: Path) -> None:
    document = copied.id_of("Sepsis: the first hour")
    copied.ok("documents", "set", document, "--owner", "Dr Lin", "--approver", "Dr Wu")
    manifest = tmp_path / "ward.toml"
    manifest.write_text(MANIFEST + '[documents."sepsis.txt"]\nowner = "Dr Zhou"\neffective_from = "2020-05"\n', "utf-8")
    copied.ok("import", str(folder), "-c", "ward", "--manifest", str(manifest))
    governance = shown(copied, document)["governance"]
    assert governance == {"owner": "Dr Zhou", "approver": "Dr Wu", "effective_from": "2020-05", "review_by": ""}
    before = copied.ok("generations", "list", "--json").json
    refusal = copied("documents", "set", document, "--owner", "Dr Lin", "--approver", "Dr He").failed(2)
    assert "manifest" in refusal
    assert "Lin" not in refusal
    assert copied.ok("generations", "list", "--json").json == before
    copied.ok("documents", "set", document, "--owner", "Dr Zhou", "--approver", "Dr He")
    assert shown(copied, document)["governance"] == {**governance, "approver": "Dr He"}


@pytest.mark.parametrize("date", ["2026-02-30", "tomorrow", "01/12/2026"])
def test_what_is_no_date_is_refused(copied: Localmed, date: str) -> None:
    copied("documents", "set", copied.id_of("Paracetamol"), "--review-by", date).failed(2)
    manifest = copied.data.parent / "m.toml"
    manifest.write_text(f'name = "ward"\n[documents."a.txt"]\neffective_from = "{date}"\n')
    assert "a.txt" in copied("import", str(copied.data), "-c", "ward", "--manifest", str(manifest)).failed(2)


def test_a_sheet_is_taken_whole_or_not_at_all(copied: Localmed, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("文件,负责人,复审日期\nsepsis.txt,林医生,2020-01-01\nvisit.md,林医生,someday\n", "utf-8")
    ran = copied("documents", "govern", str(sheet), "-c", "ward")
    assert ran.code == 3
    assert "row 3: review by is not a date" in ran.err
    assert "林" not in ran.err
    assert (
        shown(copied, copied.id_of("Sepsis: the first hour"))["governance"]
        == shown(copied, copied.id_of("Paracetamol"))["governance"]
    )
    sheet.write_text("文件,负责人,复审日期,备注\nsepsis.txt,林医生,2020-01-01,x\nvisit.md,林医生,,\n", "utf-8")
    ran = copied.ok("documents", "govern", str(sheet), "-c", "ward", "--json")
    assert ran.json["changed"] == 2
    assert "备注" in ran.err
    out = tmp_path / "out.csv"
    copied.ok("documents", "sheet", str(out), "-c", "ward")
    assert "sepsis.txt,Sepsis: the first hour,,林医生,,,2020-01-01," in out.read_text("utf-8-sig")
    assert copied.ok("documents", "govern", str(out), "-c", "ward", "--json").json["changed"] == 0
    copied("documents", "sheet", str(out), "-c", "ward").failed(2)


def test_names_of_staff_are_in_no_log(copied: Localmed) -> None:
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "set", document, "--owner", "Dr Lin-Marker", "--review-by", EARLIER)
    with closing(sqlite3.connect(copied.data / "site.sqlite")) as database:
        assert "Lin-Marker" not in "\n".join(database.iterdump())
        last = json.loads(database.execute("SELECT entry FROM journal ORDER BY id DESC").fetchone()[0])
    assert (last["action"], last["subject"], last["outcome"]) == ("govern", document[:12], "owner review_by")


# --- chains -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_chain_keeps_its_links_over_imports_and_says_what_was_removed(copied: Localmed, folder: Path) -> None:
    first, second, third = map(copied.id_of, ("Sepsis: the first hour", "Paracetamol", "Vancomycin leaflet"))
    copied.ok("documents", "supersede", first, "--by", second, "--yes")
    copied.ok("documents", "supersede", second, "--by", third, "--yes")
    copied("documents", "supersede", third, "--by", first, "--yes").failed(2)
    copied("documents", "supersede", third, "--by", third, "--yes").failed(2)
    copied.ok("import", str(folder), "-c", "ward", "--retry")
    chain = shown(copied, first)["chain"]
    assert [link["id"] for link in chain["newer"]] == [second, third]
    assert [link["id"] for link in shown(copied, third)["chain"]["older"]] == [second, first]
    copied.ok("documents", "remove", second, "--yes")
    for document, way in ((first, "newer"), (third, "older")):
        links = shown(copied, document)["chain"][way]
        (removed,) = [link for link in links if link["id"] == second]
        assert (removed["title"], removed["status"], len(links)) == ("Paracetamol", "removed", 2)
        assert removed["removed"]
    assert "Paracetamol (no date), removed 20" in copied.ok("documents", "show", first).out
    copied.ok("import", str(folder), "-c", "ward")
    links = shown(copied, first)["chain"]["newer"]
    assert [(link["status"], link["removed"]) for link in links] == [("superseded", ""), ("current", "")]


# --- readers ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_collection_that_may_not_be_read_is_nowhere(copied: Localmed, tmp_path: Path) -> None:
    (tmp_path / "order.txt").write_text("Paracetamol 1 g orally every 8 hours for fever\n")
    document = copied.id_of("Paracetamol")
    (passage,) = shown(copied, document)["passage_ids"]
    (copied.data / "localmed.toml").write_text('[tiers.presets]\nmine = [["ward"], ["guideline"]]\n')
    copied.ok("collections", "access", "ward", "--group", "doctors")
    copied.ok("collections", "create", "secret", "--group", "doctors")
    nurse = ("--as-group", "nurses")
    commands: tuple[tuple[str, ...], ...] = (
        ("search", "paracetamol"), ("ask", DOSE, "--trace"), ("ask", DOSE, "--preset", "mine"), ("documents",),
        ("ask", DOSE, "--preset", "ebm"), ("plan", DOSE), ("ebm", DOSE), ("collections",), ("documents", "due"),
        ("explain", str(tmp_path / "order.txt")), ("departments", "fever"), ("documents", "quarantine"), ("models",),
    )  # fmt: skip
    for arguments in commands:
        ran = copied.ok(*nurse, *arguments)
        output = (ran.out + ran.err).replace("Ask the ward", "")  # a direction of a leaflet
        for secret in ("ward", "secret", "4 g in 24", "faq.jsonl", "broken.pdf", document[:12], passage[:12]):
            assert secret not in output, (arguments, secret)
    refused: tuple[tuple[str, ...], ...] = (
        ("show", passage), ("documents", "show", document), ("search", "paracetamol", "-c", "ward"),
        ("documents", "list", "-c", "ward"), ("collections", "access", "secret"), ("documents", "remove", document),
        ("import", str(tmp_path), "-c", "ward"), ("collections", "create", "secret"), ("generations", "rollback"),
        ("documents", "sheet", str(tmp_path / "s.csv"), "-c", "ward"),
    )  # fmt: skip
    for arguments in refused:
        refusal = copied(*nurse, *arguments).failed(2)
        assert "Paracetamol" not in refusal
    assert "Paracetamol" in copied.titles("paracetamol")
    doctor = copied.ok("--as-group", "doctors", "ask", DOSE, "--json").json
    assert doctor["searched"] == ["ward"]
    copied.ok("collections", "access", "ward", "--everybody")
    assert "4 g in 24" in copied.ok(*nurse, "ask", DOSE).out


def test_the_settings_name_the_groups_and_a_rollback_lifts_nothing(copied: Localmed) -> None:
    copied.ok("collections", "access", "ward", "--group", "doctors")
    copied.ok("collections", "priority", "ward", "9")
    copied.ok("generations", "rollback", "--yes")
    (copied.data / "localmed.toml").write_text('[reader]\ngroups = ["nurses"]\n')
    assert copied.titles("paracetamol") == []
    (copied.data / "localmed.toml").write_text('[reader]\ngroups = ["nurses", "doctors"]\n')
    assert "Paracetamol" in copied.titles("paracetamol")
    (copied.data / "site.sqlite").write_bytes(b"{")
    copied("search", "paracetamol").failed(5)


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", ".", "-c", "ward", "--dry-run"), ("import", ".", "-c", "other", "--dry-run"),
        ("generations",), ("generations", "list", "--json"), ("generations", "prune", "--yes"),
        ("models", "use", "reranker", "none"), ("models", "add", "."), ("models", "remove", "qwen3-8b", "--yes"),
    ],
)  # fmt: skip
def test_what_is_for_those_who_see_everything(localmed: Localmed, arguments: tuple[str, ...]) -> None:
    assert phrase("access.not_for_groups.what") in localmed("--as-group", "nurses", *arguments).failed(2)


@pytest.mark.slow
def test_a_text_that_nobody_approved_is_due(copied: Localmed, folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "documents"
    shutil.copytree(folder, own)
    copied.ok("import", str(own), "-c", "own", "--manifest", str(named(tmp_path, "own")))
    (document,) = [row["id"] for row in copied.ok("documents", "list", "-c", "own", "--json").json
                   if row["title"].startswith("Sepsis")]  # fmt: skip
    copied.ok("documents", "set", document, "--approver", "Dr Wu")
    assert copied.ok("documents", "due", "--json").json == []
    (own / "sepsis.txt").write_text("Sepsis: the first hour\n\nGive antibiotics within three hours.\n", "utf-8")
    report = copied.ok("import", str(own), "-c", "own").out
    assert "no approver now" in " ".join(report.split())
    assert [(row["id"], row["approval_lapsed"]) for row in copied.ok("documents", "due", "--json").json] == [
        (document, True)
    ]
    assert "not approved" in " ".join(copied.ok("documents", "due").out.split())
    copied.ok("documents", "set", document, "--approver", "Dr Wu")
    assert copied.ok("documents", "due", "--json").json == []


def named(folder: Path, name: str) -> Path:
    """The manifest of the collection ``name``."""
    (folder / "m.toml").write_text(MANIFEST.replace('"ward"', f'"{name}"'), "utf-8")
    return folder / "m.toml"


def test_the_doctor_counts_nothing_of_hidden_collections_for_a_reader(copied: Localmed) -> None:
    copied.ok("collections", "access", "ward", "--group", "doctors")
    names = {check["name"] for check in copied("doctor", "--json").json["checks"]}
    assert {"governance", "quarantine", "library"} <= names
    seen = {check["name"] for check in copied("--as-group", "nurses", "doctor", "--json").json["checks"]}
    assert names - seen >= {"governance", "quarantine", "disk", "state", "audit"}


def test_as_group_only_narrows_what_the_setting_names(copied: Localmed) -> None:
    copied.ok("collections", "access", "ward", "--group", "doctors")
    (copied.data / "localmed.toml").write_text('[reader]\ngroups = ["nurses", "doctors"]\n')
    assert "Paracetamol" in copied.titles("paracetamol")
    assert copied.ok("--as-group", "nurses", "search", "paracetamol", "--json").json["sections"] == []
    (copied.data / "localmed.toml").write_text('[reader]\ngroups = ["nurses"]\n')
    for groups in (("doctors",), ("nurses", "doctors")):
        options = [part for group in groups for part in ("--as-group", group)]
        assert "reader.groups" in copied(*options, "search", "paracetamol").failed(2)


def test_a_rollback_names_what_answers_before_its_day(copied: Localmed) -> None:
    early, removed, back = map(copied.id_of, ("Paracetamol", "Sepsis: the first hour", "Vancomycin leaflet"))
    copied.ok("documents", "set", back, "--effective-from", LATER)
    copied.ok("documents", "set", early, "--effective-from", LATER)
    output = copied.ok("generations", "rollback", "--yes").out
    assert f"now in use (1): {early[:12]}" in output
    assert back[:12] not in output
    copied.ok("documents", "remove", removed, "--yes")
    assert phrase("generation.early") not in copied.ok("generations", "rollback", "--yes").out


# --- kept answers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["json", "recording"])
def test_what_a_kept_answer_cites_is_shown_after_everything_is_gone(
    copied: Localmed, tmp_path: Path, form: str
) -> None:
    kept = copied.data / "kept" / "answer.json"
    kept.parent.mkdir()
    question = ("ask", "What is the loading dose of vancomycin?", "--json", "--record", str(tmp_path / "recording"))
    printed = copied.ok(*question).out
    kept.write_text(printed if form == "json" else (tmp_path / "recording").read_text("utf-8"), "utf-8")
    (source,) = [evidence for evidence in json.loads(printed)["evidence"] if PDF_LINE in evidence["passage"]["text"]]
    copied.ok("documents", "remove", source["passage"]["document_id"], "--yes")
    for other in copied.ok("documents", "list", "--json").json[:3]:
        copied.ok("documents", "remove", other["id"], "--yes")
    copied.ok("generations", "prune", "--yes")
    copied("show", source["passage"]["id"]).failed(2)
    image = tmp_path / "page.png"
    shown_now = copied.ok("show", source["marker"], "--answer", str(kept), "--image", str(image), "--json").json
    assert shown_now == source | {"status": "superseded"}, "it is no longer in the library"
    assert image.read_bytes().startswith(b"\x89PNG")
    assert "page 2" in copied.ok("show", source["marker"], "--answer", str(kept)).out
    assert PDF_LINE in copied.ok("show", source["marker"], "--answer", str(kept), "--page", "2").out
    refused = copied("show", source["marker"], "--answer", str(kept), "--page", "9").failed(3)
    assert said("search.page_not_its", page=9, pages="2") in refused
    copied("show", "99", "--answer", str(kept)).failed(2)
    values = json.loads(kept.read_text("utf-8").replace(PDF_LINE, "Give 500 mg."))
    answer, altered = values.get("answer", values), tmp_path / "altered.json"
    for _ in ("a wrong digest", "none"):
        altered.write_text(json.dumps(values))
        assert phrase("kept.altered") in copied("show", source["marker"], "--answer", str(altered)).failed(5)
        answer.pop("digest", None)
    copied.ok("collections", "access", "ward", "--group", "doctors")
    copied("--as-group", "nurses", "show", source["marker"], "--answer", str(kept)).failed(2)
    kept.unlink()
    copied.ok("generations", "prune", "--yes")
    assert not (copied.data / "files" / source["file_sha256"]).exists()


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "3", '{"evidence": [{}]}', '{"format": "x"}', '{"evidence": 1}', "\x00"]
)
def test_what_is_no_answer_is_refused(localmed: Localmed, tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    localmed("show", "1", "--answer", str(tmp_path / "a.json")).failed(3)


def test_a_kept_answer_says_what_has_become_of_its_documents(copied: Localmed, tmp_path: Path) -> None:
    kept = tmp_path / "answer.json"
    kept.write_text(copied.ok("ask", DOSE, "--json").out, "utf-8")
    document = copied.id_of("Paracetamol")
    marker = next(
        evidence["marker"]
        for evidence in json.loads(kept.read_text("utf-8"))["evidence"]
        if evidence["passage"]["document_id"] == document
    )
    show = ("show", marker, "--answer", str(kept))
    before = copied.ok(*show).out
    assert said("documents.status_withdrawn") not in before
    assert "no longer in the library" not in before
    copied.ok("documents", "set", document, "--review-by", EARLIER)
    assert said("answer.overdue", date=EARLIER) in copied.ok(*show).out
    copied.ok("documents", "supersede", document)
    assert said("documents.status_superseded") in copied.ok(*show).out
    copied.ok("documents", "withdraw", document, "--reason", "recalled")
    assert said("documents.status_withdrawn") in copied.ok(*show).out
    copied.ok("documents", "remove", document, "--yes")
    output = copied.ok(*show).out
    assert said("documents.status_withdrawn") in output
    assert "Paracetamol was withdrawn on 20" in output
    assert "This text is no longer in the library" in output
    assert "4 g in 24 hours" in output
    assert copied.ok(*show, "--json").json["status"] == "withdrawn"


def test_what_is_set_of_a_withdrawn_document_does_not_withdraw_it_for_good(copied: Localmed) -> None:
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "withdraw", document, "--reason", "recalled")
    copied.ok("documents", "set", document, "--owner", "Dr Lin")
    copied.ok("documents", "reinstate", document, "--reason", "a mistake")
    assert shown(copied, document)["status"] == "current"


def test_the_older_edition_answers_until_the_newer_is_effective_and_that_is_said(copied: Localmed) -> None:
    old, new = copied.id_of("Paracetamol"), copied.id_of("Vancomycin leaflet")
    copied.ok("documents", "set", new, "--effective-from", LATER)
    assert phrase("documents.marked_current") in copied.ok("documents", "supersede", old, "--by", new, "--yes").out
    assert "Paracetamol" in copied.titles("paracetamol")
    copied.ok("documents", "set", new, "--effective-from", EARLIER)
    assert "Paracetamol" not in copied.titles("paracetamol")
    assert "Paracetamol" in copied.titles("paracetamol", "--status", "superseded")


def test_a_passage_is_noted_and_switched_off(copied: Localmed) -> None:
    passage = shown(copied, copied.id_of("Paracetamol"))["passage_ids"][0]
    assert "--note" in copied("documents", "remark", passage).failed(2)
    copied.ok("documents", "remark", passage[:12], "--note", "Under 50 kg ask the pharmacist")
    assert said("answer.remark", note="Under 50 kg ask the pharmacist") in " ".join(copied.ok("ask", DOSE).out.split())
    copied.ok("documents", "remark", passage[:12], "--off", "--note", "")
    assert "Paracetamol" not in copied.titles("paracetamol")
    (row,) = copied.ok("documents", "remarks", "--json").json
    assert (row["passage"], row["off"], row["note"]) == (passage, True, "")
    assert "switched off" in copied.ok("documents", "remarks").out
    assert phrase("documents.remark_none") in copied.ok("documents", "remark", passage[:12], "--on").out
    assert "Paracetamol" in copied.titles("paracetamol")


def test_a_title_and_tags_are_set_and_outlive_an_import(copied: Localmed, folder: Path) -> None:
    document = copied.id_of("Sepsis: the first hour")
    copied.ok("documents", "set", document, "--title", "Septic shock on the ward", "--tags", "ICU, emergency, ICU")
    assert "Septic shock on the ward" in copied.titles("septic shock")
    assert "Septic shock on the ward" in copied.ok("ask", "When to give antibiotics in septic shock?").out
    copied.ok("import", str(folder), "-c", "ward", "--retry")
    (folder / "sepsis.txt").write_text("Sepsis: the first hour\n\nGive antibiotics within one hour.\n", "utf-8")
    copied.ok("import", str(folder), "-c", "ward")
    record = shown(copied, document)
    assert (record["title"], record["tags"]) == ("Septic shock on the ward", ["ICU", "emergency"])
    assert "Septic shock on the ward" in copied.titles("antibiotics within one hour")
    assert [row["id"] for row in copied.ok("documents", "list", "--title", "icu", "--json").json] == [document]
    assert [row["id"] for row in copied.ok("documents", "list", "--title", "sepsis.txt", "--json").json] == [document]
    assert "title" in copied("documents", "set", document, "--title", "").failed(2)


def test_many_documents_are_set_at_once_and_none_gets_anothers_title(copied: Localmed) -> None:
    both = copied.id_of("Sepsis: the first hour"), copied.id_of("Paracetamol")
    copied.ok("documents", "set", *both, "--owner", "Dr Lin", "--tags", "ward")
    assert {shown(copied, one)["governance"]["owner"] for one in both} == {"Dr Lin"}
    assert phrase("governance.one_title") in copied("documents", "set", *both, "--title", "Both").failed(2)
    copied.ok("documents", "set", both[0], "--tags", "")
    assert [shown(copied, one)["tags"] for one in both] == [[], ["ward"]]


def test_a_sheet_names_no_path_of_the_server(copied: Localmed, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.txt").write_text(f"Fluids {folder}\n\nGive {folder} litres.\n", "utf-8")
    (tmp_path / "alone.txt").write_text("Oxygen\n\nGive oxygen.\n", "utf-8")
    paths = [str(tmp_path / name) for name in ("a/same.txt", "b/same.txt", "alone.txt")]
    copied.ok("import", *paths, "-c", "ward")
    sheet = tmp_path / "sheet.csv"
    copied.ok("documents", "sheet", str(sheet), "-c", "ward")
    assert str(tmp_path) not in sheet.read_text("utf-8-sig")
    lines = [line for line in sheet.read_text("utf-8-sig").splitlines() if "Fluids" in line or "Oxygen" in line]
    (tmp_path / "back.csv").write_text("file,owner\n" + "".join(f"{line.split(',')[0]},Dr Lin\n" for line in lines))
    assert copied.ok("documents", "govern", str(tmp_path / "back.csv"), "-c", "ward", "--json").json["changed"] == 3


# --- withdrawn since --------------------------------------------------------------------------------------------------


def test_a_replay_names_what_was_withdrawn_since(copied: Localmed, tmp_path: Path) -> None:
    recording = tmp_path / "recording.json"
    answer = copied.ok("ask", DOSE, "--json", "--record", str(recording)).json
    document = copied.id_of("Paracetamol")
    copied.ok("documents", "withdraw", document, "--reason", "recalled")
    replayed = copied.ok("replay", str(recording), "--json").json
    (note,) = (note for note in replayed["notes"] if note not in answer["notes"])
    assert note["text"] == f"Paracetamol was withdrawn on {datetime.now(UTC).date().isoformat()}: recalled"
    assert "was withdrawn on" in copied.ok("replay", str(recording)).out
    copied.ok("documents", "reinstate", document, "--reason", "checked")
    assert copied.ok("replay", str(recording), "--json").json["notes"] == answer["notes"]


def test_an_altered_recording_shows_nothing_of_it(copied: Localmed, tmp_path: Path) -> None:
    recording = tmp_path / "recording.json"
    copied.ok("ask", DOSE, "--record", str(recording))
    values = json.loads(recording.read_text("utf-8"))
    values["steps"] = json.loads(json.dumps(values["steps"]).replace(" 4 g", " 9 g"))
    recording.write_text(json.dumps(values), "utf-8")
    ran = copied("replay", str(recording))
    assert (ran.code, "9 g" in ran.out) == (3, False)
