"""Commands that read: search, ask, show and the lists, with every filter and as JSON."""

from __future__ import annotations

import re
from pathlib import Path

import pymupdf
import pytest

from localmed.cli.common import width_of
from localmed.domain import Answer, Document, Evidence
from tests.cli.conftest import PDF_LINE, Localmed, Ran
from tests.words import phrase, said


def test_import_reports_every_file(imported: tuple[Localmed, Ran]) -> None:
    report = imported[1].json
    outcomes = {(Path(line["path"]).name, line["outcome"]) for line in report["files"]}
    assert report["collection"] == "ward"
    assert report["generation"] == 1
    assert ("broken.pdf", "quarantined") in outcomes
    assert ("photo.xyz", "skipped") in outcomes
    assert report["counts"]["read"] == 6
    assert report["counts"]["documents"] == 6


def test_search_finds_by_words_and_meaning(localmed: Localmed) -> None:
    result = localmed.ok("search", "maximum paracetamol dose", "--json").json
    assert set(result) == {
        "status",
        "notes",
        "language",
        "dense",
        "closeness",
        "flags",
        "absent",
        "read_as",
        "left_out",
        "sections",
        "others",
        "others_first",
    }
    best = result["sections"][0]
    assert (best["title"], best["collection"], best["passages"]) == ("Paracetamol", "ward", [best["passage"]])
    assert "4 g" in best["text"]
    assert all(best["text"][mark["start"] : mark["end"]] == mark["text"] for mark in best["marks"])
    assert result["dense"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"2024-05"}),
        (("--status", "superseded"), {"2019-03"}),
        (("--to", "2024-04"), set()),
        (("--to", "2019", "--status", "superseded"), {"2019-03"}),
        (("--language", "en", "-c", "ward"), {"2024-05"}),
    ],
)
def test_search_filters(localmed: Localmed, options: tuple[str, ...], expected: set[str]) -> None:
    sections = localmed.ok("search", "blood pressure target", *options, "--json").json["sections"]
    editions = {found["edition"] for found in sections if "Hypertension" in found["title"]}
    assert editions == expected


def test_the_number_of_results_can_be_set(copied: Localmed) -> None:
    (copied.data / "localmed.toml").write_text("[search]\nresults = 1\n")
    assert len(copied.titles("dose")) == 1


def test_words_need_no_quotes_and_may_come_from_standard_input(localmed: Localmed) -> None:
    quoted = localmed.ok("search", "maximum paracetamol dose").out
    assert localmed.ok("search", "maximum", "paracetamol", "dose").out == quoted
    assert localmed.ok("search", "-", stdin="maximum paracetamol dose\n").out == quoted


def test_ask_shows_the_section_first(localmed: Localmed) -> None:
    answer = localmed.ok("ask", "What is the loading dose of vancomycin?", "--json").json
    assert set(answer) == {"format", "digest", *Answer.__slots__}
    assert (answer["status"], answer["statements"]) == ("sections", []), "without a model nothing is claimed"
    first = answer["receipts"]["sections"][0]
    evidence = {piece["marker"]: piece for piece in answer["evidence"]}
    assert {line["marker"] for line in first["lines"]} <= set(evidence)
    marks = [line for line in first["lines"] if line["marked"]]
    assert PDF_LINE in [evidence[it["marker"]]["passage"]["text"][it["start"] : it["end"]] for it in marks]
    assert evidence[first["best"]]["passage"]["page"] == 2
    assert set(answer["evidence"][0]) == set(Evidence.__slots__)
    assert answer["provenance"]["generation"] == "0001"


def test_ask_prints_the_sections_with_marks_and_pages(localmed: Localmed) -> None:
    ran = localmed.ok("ask", "What is the loading dose of vancomycin?", "--trace")
    assert f"»{PDF_LINE}«" in " ".join(ran.out.split())
    assert re.search(r" 1\. \[\w{12}\] Vancomycin leaflet, no date, page 2", ran.out)
    assert re.search(r"ms  find: sections \d", ran.err)
    assert not re.search(r"answer|abstain|badge", ran.out.lower()), "no model: nothing is claimed"


@pytest.mark.parametrize("command", ["ask", "search"])
def test_a_reading_is_left_out_by_name_or_all_are(localmed: Localmed, command: str) -> None:
    for options, left_out in ((("--leave-out", "DKA"), 1), (("--as-written",), 2)):
        out = localmed.ok(command, "max dose of panadol in DKA", *options).out
        assert (phrase("finding.read_as") in out) == (left_out == 1)
        assert len(re.findall("for DKA|for panadol", out.partition(phrase("finding.left_out"))[2])) == left_out


@pytest.mark.parametrize(
    ("question", "name", "language"),
    [("azithromycin dose", "azithromycin", "en"), ("阿奇霉素的剂量", "阿奇霉素", "zh")],
)
def test_a_medicine_that_no_document_has_is_said_so_and_nothing_stands_open(
    localmed: Localmed, question: str, name: str, language: str
) -> None:
    value = localmed.ok("search", question, "--json").json
    assert (value["absent"], value["closeness"]) == ([name], "nothing near")
    assert not any(section["marks"] for section in (*value["sections"], *value["others"]))
    assert localmed.ok("ask", question, "--json").json["receipts"]["absent"] == [name]
    for command in ("search", "ask"):
        out = localmed.ok(command, question).out
        assert said("finding.absent", language, name=name) in out
        assert " mg" not in out, "no dose of another one"


def test_a_section_says_that_it_names_no_child(localmed: Localmed) -> None:
    question = "vancomycin loading dose for a child"
    first = localmed.ok("search", question, "--json").json["sections"][0]
    assert (first["title"], first["lacks"]) == ("Vancomycin leaflet", ["child"])
    assert said("finding.lacks", names=("child",)) in " ".join(localmed.ok("search", question).out.split())


def test_ask_in_chinese(localmed: Localmed) -> None:
    ran = localmed.ok("ask", "普通病房的探视时间是几点？")
    assert "»普通病房的探视时间为每天14:00至19:30。«" in ran.out.replace("\n    ", "")
    assert phrase("search.words_only", "zh") not in ran.err
    own, others, _ = ran.out.partition("另见英文资料")
    assert others, "English documents are listed apart"
    assert not re.search(r"[A-Za-z]{3,} [a-z]{3,}", own), own


def test_nothing_to_show_is_said_with_what_was_searched(localmed: Localmed) -> None:
    ran = localmed.ok("ask", "What is the loading dose of vancomycin?", "--from", "2999")
    assert "Nothing in the library is close to this." in ran.out
    assert "Searched: ward" in ran.out
    chinese = localmed.ok("ask", "普通病房的探视时间是几点？", "--from", "2999").out
    assert "已检索：ward" in chinese
    assert not re.search(r"[A-Za-z]{3,} [a-z]{3,}", chinese), chinese


def test_a_superseded_source_is_marked(localmed: Localmed) -> None:
    ran = localmed.ok("ask", "What is the blood pressure target?", "--status", "superseded")
    assert "SUPERSEDED" in ran.out
    assert "140/90" in ran.out
    assert "130/80" not in ran.out
    assert "SUPERSEDED" in localmed.ok("search", "blood pressure target", "--status", "superseded").out


@pytest.mark.parametrize("question", ["What is the blood pressure target?", "普通病房的探视时间是几点？"])
@pytest.mark.parametrize("command", ["ask", "search"])
def test_lines_fit_eighty_columns(localmed: Localmed, command: str, question: str) -> None:
    for line in localmed.ok(command, question).out.splitlines():
        assert width_of(line) <= 80, line


def _passage_of(localmed: Localmed, question: str) -> str:
    return str(localmed.ok("search", question, "--json").json["sections"][0]["passage"])


def test_show_prints_a_passage(localmed: Localmed) -> None:
    passage = _passage_of(localmed, "vancomycin loading dose")
    ran = localmed.ok("show", passage[:12])
    assert PDF_LINE in ran.out
    assert "page 2" in ran.out
    shown = localmed.ok("show", passage, "--json").json
    assert set(shown) == set(Evidence.__slots__)
    assert shown["passage"]["id"] == passage


def test_show_draws_the_page_with_the_passage_marked(localmed: Localmed, tmp_path: Path) -> None:
    passage = _passage_of(localmed, "vancomycin loading dose")
    image = tmp_path / "page.png"
    assert "but on 2" in localmed("show", passage, "--image", str(image), "--page", "7").failed(2)
    assert not image.exists()
    box = localmed.ok("show", passage, "--image", str(image), "--json").json["passage"]["spans"][-1]["box"]
    picture = pymupdf.Pixmap(str(image))
    scale = picture.width / 595
    middle = round((box["y0"] + box["y1"]) / 2 * scale)
    row = [picture.pixel(x, middle) for x in range(round(box["x0"] * scale), round(box["x1"] * scale))]
    assert sum(_yellow(pixel) for pixel in row) > len(row) / 3
    assert not any(_yellow(picture.pixel(x, round(800 * scale))) for x in range(picture.width))


def _yellow(pixel: tuple[int, ...]) -> bool:
    red, green, blue = pixel[:3]
    return red > 200 and green > 180 and blue < 180


def test_show_draws_a_text_without_pages(localmed: Localmed, tmp_path: Path) -> None:
    image = tmp_path / "page.png"
    localmed.ok("show", _passage_of(localmed, "antibiotics septic shock"), "--image", str(image))
    picture = pymupdf.Pixmap(str(image))
    assert any(_yellow(picture.pixel(x, y)) for x in range(0, picture.width, 3) for y in range(0, picture.height, 3))


def test_documents_list_and_show(localmed: Localmed) -> None:
    documents = localmed.ok("documents", "list", "-c", "ward", "--json").json
    assert {document["title"] for document in documents} >= {"Paracetamol", "Vancomycin leaflet", "探视指南"}
    assert set(documents[0]) == {*Document.__slots__, "overdue"}
    superseded = localmed.ok("documents", "list", "--status", "superseded", "--json").json
    assert [evidence["edition"] for evidence in superseded] == ["2019-03"]
    shown = localmed.ok("documents", "show", documents[0]["id"][:10], "--json").json
    assert set(shown) == {*Document.__slots__, "passage_ids", "chain", "overdue"}
    assert len(shown["passage_ids"]) == shown["passages"] > 0
    assert documents[0]["id"] in localmed.ok("documents", "show", documents[0]["id"]).out


def test_quarantine(localmed: Localmed) -> None:
    (refused,) = localmed.ok("documents", "quarantine", "--json").json
    assert refused["path"].endswith("broken.pdf")
    assert refused["reason"]
    assert "broken.pdf" in localmed.ok("documents", "quarantine", "-c", "ward").out
    assert localmed.ok("documents", "quarantine", "-c", "other").out == "Quarantine: none\n"


def test_generations(localmed: Localmed) -> None:
    (only,) = localmed.ok("generations", "list", "--json").json
    assert only["number"] == 1
    assert only["served"]
    assert only["documents"] == 6
    assert localmed.ok("generations", "verify").out == f"generation 1: ok\n{said('stored.beside')}: ok\n"
    assert localmed.ok("generations", "verify", "1", "--json").json == {"1": []}
    assert only["reason"]["code"] == "generation.made.import"
    assert "import into ward" in localmed.ok("generations").out
