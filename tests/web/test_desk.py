"""The first page of the ward: one box, what the library has on what is typed, keys, and a bar of four words."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path

import pytest

from localmed.domain import Collection, Kind, Receipts, SearchFilter, ShownLine
from localmed.ingest.manifest import Manifest
from localmed.presentation.finding import Piece, blocks, view
from localmed.presentation.pages import moment
from localmed.site import changes, importing, lookups, page_images
from localmed.site.governing import Change
from localmed.site.session import Session, local_caller
from tests.fakes import HashedWords, opened, write
from tests.web.conftest import Client, Clients, OpenWindow
from tests.web.test_ask import PDF_QUESTION, source_links
from tests.web.test_sections import SENTENCE
from tests.words import said


def words_of_bar(page: str) -> list[str]:
    bar = re.search(r"<nav.*?</nav>", page, re.DOTALL)
    return re.findall(r"<a [^>]*>([^<]+)</a>", bar[0]) if bar else []


def test_the_ward_sees_four_words_and_everybody_else_what_they_may_do(client: Clients) -> None:
    ward = ["Ask", "Orders", "Departments", "History"]
    assert words_of_bar(client("reader").get("/").text) == ward
    assert words_of_bar(client("librarian").get("/").text) == [*ward, "Library"]
    assert {*ward} < {*words_of_bar(client("admin").get("/").text)}


def test_other_ways_to_ask_stand_under_the_box_and_what_was_asked_last(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.get("/").text
    assert 'href="/practice"' in page
    assert 'href="/search"' in page
    assert said("web.ask.last") not in page
    asked = "dose of paracetamol?"
    reader.form("/ask", question=asked)
    assert asked in reader.get("/").text
    assert asked not in copied_clients("librarian").get("/").text


def test_suggestions_need_a_login_and_its_form(client: Clients) -> None:
    reader = client("reader")
    assert reader.form("/ask/suggestions", question="sep").json()
    assert reader.form("/ask/suggestions", question="").json() == []
    assert reader.http.post("/ask/suggestions", data={"question": "sep"}).status_code >= 400, "no form's token"
    assert client().http.post("/ask/suggestions", data={"question": "sep"}).url.path == "/login"


@pytest.mark.slow
def test_by_keyboard_from_the_box_to_the_page(copied_clients: Clients, browser: OpenWindow) -> None:
    window = browser(copied_clients)
    window.sign_in("reader")
    page = window.page
    page.wait_for_selector("#question:focus")
    page.keyboard.type("seps")
    page.wait_for_selector("#question-list [role=option]")
    page.keyboard.press("ArrowDown")
    chosen = page.inner_text("#question-list [aria-selected=true]")
    page.keyboard.press("Enter")
    assert page.input_value("#question") == chosen
    assert page.is_hidden("#question-list")
    page.keyboard.type(" and more")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-answer] .card")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".card h3 a:focus")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-answer] [data-pane]:not(.first):not([hidden]) [data-focus]")
    page.keyboard.press("Escape")
    page.wait_for_selector(".card h3 a:focus")
    page.keyboard.press("/")
    page.wait_for_selector("#question:focus")
    assert page.input_value("#question") == f"{chosen} and more", "the box keeps what was asked"
    answer = page.url
    page.go_back()
    page.wait_for_selector("[data-before]")
    page.go_forward()
    page.wait_for_selector("[data-answer] .card")
    assert page.url == answer
    page.reload()
    page.wait_for_selector("[data-answer] .card")
    window.was_quiet()


@pytest.mark.slow
@pytest.mark.parametrize("within", [".source", ".card"])
def test_a_copied_sentence_carries_its_source_and_the_date(client: Clients, browser: OpenWindow, within: str) -> None:
    window = browser(client)
    window.sign_in("reader", client("reader").form("/ask", question=PDF_QUESTION).url.path)
    window.page.eval_on_selector(
        within, "(one) => one.querySelectorAll('details').forEach((fold) => { fold.open = true; })"
    )
    copied = window.page.evaluate(
        """(within) => {
            const mark = document.querySelector(`${within} mark`), data = new DataTransfer();
            document.getSelection().selectAllChildren(mark);
            mark.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true }));
            return [data.getData("text/plain"), data.getData("text/html")];
        }""",
        within,
    )
    text, source, when = copied[0].split("\n\n")
    assert text == SENTENCE
    assert copied[1].startswith(SENTENCE + f"<p>{source}</p><p>{when}</p>")
    assert source.startswith("Vancomycin leaflet")
    assert when == said("web.answer.copied_on", date=datetime.now().astimezone().date().isoformat())


@pytest.mark.slow
def test_a_copied_section_keeps_its_tables_and_carries_its_source(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.sign_in("reader", client("reader").form("/ask", question=PDF_QUESTION).url.path)
    source = window.page.get_attribute(".card", "data-cited")
    copied = window.page.evaluate(
        """async () => {
            const card = document.querySelector(".card"), folded = document.createElement("details");
            const kept = [], columns = ["Clearance", "Dose"];
            const tables = [["15 to 29", "20 mg"], ["30 to 49", "40 mg"]].map((cells) => {
                const table = document.createElement("table");
                for (const [place, texts] of [[table.createTHead(), columns], [table.createTBody(), cells]])
                    { const row = place.insertRow(); for (const text of texts) row.insertCell().append(text); }
                return table;
            });
            const cut = Object.assign(document.createElement("p"), { textContent: "Ours." });
            cut.dataset.cut = "";
            folded.append(Object.assign(document.createElement("summary"), { textContent: "Earlier" }), tables[0]);
            folded.open = true;
            card.querySelector(".section").replaceChildren(folded, tables[1], cut);
            navigator.clipboard.write = async ([item]) => { kept.push(item); };
            const [first, second] = [...document.querySelectorAll("[data-copy-section]")], before = first.textContent;
            first.click();
            await new Promise((done) => setTimeout(done));
            if (first.textContent !== first.dataset.done) throw "it does not say so";
            second.click();
            await new Promise((done) => setTimeout(done));
            if (first.textContent !== before) throw "two buttons say so";
            const [one, other] = card.querySelectorAll(".section > table tbody td"), data = new DataTransfer();
            document.getSelection().setBaseAndExtent(one.firstChild, 0, other.firstChild, 5);
            one.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true }));
            const kinds = ["text/plain", "text/html"].map(async (kind) => (await kept[0].getType(kind)).text());
            return [...await Promise.all(kinds), data.getData("text/html")];
        }"""
    )
    closed = window.page.evaluate(
        """async () => {
            const kept = [];
            document.querySelector(".card .section details").open = false;
            navigator.clipboard.write = async ([item]) => { kept.push(item); };
            document.querySelector("[data-copy-section]").click();
            await new Promise((done) => setTimeout(done));
            return await (await kept[0].getType("text/plain")).text();
        }"""
    )
    assert closed.split("\n\n")[0] == "[...]\nClearance | Dose\n30 to 49 | 40 mg\n[...]", "rows that are folded stay"
    row = "<tr><td>30 to 49</td><td>40 mg</td></tr>"
    assert copied[2].startswith(f'<table border="1">{row}</table>'), "two cells of a row are a table too"
    rows = "Clearance | Dose\n15 to 29 | 20 mg\n30 to 49 | 40 mg\n[...]"
    assert copied[0].split("\n\n")[0] == rows, "cells stay apart, the header stands once, no word of ours"
    cells = "<thead><tr><td>Clearance</td><td>Dose</td></tr></thead><tbody><tr><td>{}</td><td>{}</td></tr></tbody>"
    tables = [
        f'<table border="1">{cells.format(*row)}</table>' for row in (("15 to 29", "20 mg"), ("30 to 49", "40 mg"))
    ]
    assert "".join((*tables, "<p>[...]</p>")) in copied[1]
    assert f"<p>{source}</p>" in copied[1]


def source_of(reader: Client) -> str:
    """Where the source of a sentence of a PDF stands, without its query."""
    return source_links(reader.form("/ask", question=PDF_QUESTION).text)[0].partition("?")[0]


@pytest.mark.slow
def test_another_language_keeps_what_was_typed_and_what_was_asked(client: Clients, browser: OpenWindow) -> None:
    window = browser(client, locale="en-GB")
    window.sign_in("reader")
    page = window.page
    for path, field in (("/", "#question"), ("/orders", "#order"), ("/search", "#question")):
        page.goto(window.url + path)
        page.fill(field, PDF_QUESTION)
        for language in ("zh", "en"):
            page.click(f"button[name=language][value={language}]")
            page.wait_for_selector(f"html[lang={language}]")
            assert page.input_value(field) == PDF_QUESTION
            assert page.url == window.url + path
    page.goto(window.url)
    page.fill("#question", PDF_QUESTION)
    page.press("#question", "Enter")
    page.wait_for_url("**/answers/*")
    page.click("button[name=language][value=zh]")
    page.wait_for_selector("html[lang=zh]")
    assert "/answers/" in page.url
    assert page.locator("[data-answer] .card").count()
    assert page.input_value("#question") == PDF_QUESTION
    window.was_quiet()


def test_rows_are_set_out_as_a_table_and_lines_as_paragraphs() -> None:
    pieces = [Piece("First.", True, True), Piece("Second.", False, False), Piece("Third.", False, True)]
    rows = [Piece("Drug: amoxicillin; Dose: 500 mg", False, True, True), Piece("Drug: x; Dose: 5 mg", True, True, True)]
    first, second, table = blocks([*pieces, *rows])
    assert [[piece.text for piece in one.pieces] for one in (first, second)] == [["First.", "Second."], ["Third."]]
    assert table.columns == ("Drug", "Dose")
    assert [row.marked for row in table.rows] == [False, True]
    assert table.rows[0].cells == (("amoxicillin", 1), ("500 mg", 1))


@pytest.mark.parametrize("width", [390, 1280])
def test_no_column_of_a_table_is_hidden(
    copied_clients: Clients, browser: OpenWindow, width: int, tmp_path: Path
) -> None:
    header = ["Medicine", "Form", "Usual adult dose", "Maximum a day", "Renal caution", "Notes"]
    row = [
        "Zoliquis",
        "Tablet",
        "Atrial fibrillation: 5 mg twice a day",
        "10 mg",
        "2.5 mg if CrCl 15 to 29",
        "No INR test",
    ]
    (tmp_path / "doses.csv").write_text(f"{','.join(header)}\n{','.join(row)}\n", "utf-8")
    with opened(copied_clients.settings, HashedWords()) as session:
        importing.import_paths(session, [tmp_path / "doses.csv"], Manifest(Collection("ward", "Ward documents")))
    window = browser(copied_clients, viewport={"width": width, "height": 800})
    window.sign_in("reader")
    page = window.page
    page.fill("#question", "Zoliquis renal caution")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-answer] .section table", timeout=60_000)
    cells = page.locator("[data-answer] .section table").first.locator("td")
    for cell, name, text in zip(cells.all(), header, row, strict=True):
        box = cell.bounding_box()
        assert box, name
        assert box["x"] + box["width"] <= width, name
        assert cell.inner_text() == text
        assert name in cell.evaluate("(cell) => getComputedStyle(cell, '::before').content")
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)")


def govern(clients: Clients, **values: str) -> str:
    """Set what is known of the document of the PDF; its id."""
    session = Session(clients.site, local_caller(clients.settings))
    document = next(row for row in lookups.documents(session) if "ancomycin" in row.title)
    changes.govern(session, [Change((document,), values)])
    return document.id


def test_a_section_names_owner_and_review_and_a_missed_review_is_marked(copied_clients: Clients) -> None:
    govern(copied_clients, owner="Pharmacy", review_by="2020-01")
    reader = copied_clients("reader")
    page = reader.form("/ask", question=PDF_QUESTION).text
    for part in (page, reader.get(source_links(page)[0]).text):
        assert "owner Pharmacy" in part
        assert re.search(r'class="tag">REVIEW OVERDUE since 2020-01<', part)


def test_words_are_found_in_the_document_beside_the_page(client: Clients) -> None:
    reader = client("reader")
    base = source_of(reader)
    page = reader.form(f"{base}/find", words="LOADING dose").text
    assert "<mark>loading</mark> dose of vancomycin" in page
    found = re.search(r'<ul class="places".*?href="(/passages/[^"]+)"', page, re.DOTALL)
    assert found
    assert reader.get(found[1].replace("&amp;", "&")).status_code == 200
    assert "Passages with nowhere: 0" in reader.form(f"{base}/find", words="nowhere").text
    beside = reader.form(f"{base}/find", words="loading", part="1", page="1").text
    assert "<mark>loading</mark>" in beside
    assert "<html" not in beside, "of the pane alone"


def test_a_text_is_read_to_its_end_and_marked_only_where_it_was_found(copied_clients: Clients, tmp_path: Path) -> None:
    parts = [f"## Part {number}\n\n{f'Rest for {number} days. ' * 90}\n" for number in range(1, 5)]
    dose = "| Severity | First choice |\n|---|---|\n| Low | Zolicillin 500 mg |\n"
    (tmp_path / "long.md").write_text(f"# Rest\n\n{''.join(parts)}\n## Dose\n\n{dose}", "utf-8")
    with opened(copied_clients.settings, HashedWords()) as session:
        importing.import_paths(session, [tmp_path / "long.md"], Manifest(Collection("ward", "Ward documents")))
        stored = next(one for one in lookups.documents(session) if one.source.endswith("long.md"))
    reader = copied_clients("reader")
    page, seen = reader.get(f"/documents/{stored.id}").text, []
    while True:
        assert "<mark>" not in page, "nothing was asked"
        seen.append(page)
        after = re.search(r'data-key="after" href="([^"]+)"', page)
        if not after:
            break
        page = reader.get(after[1].replace("&amp;", "&")).text
    assert len(seen) > 1
    assert [name for page in seen for name in dict.fromkeys(re.findall(r"<h2>(.*?)</h2>", page))][-1] == "Dose"
    assert '<td data-column="First choice">Zolicillin 500 mg</td>' in seen[-1]
    found = source_links(reader.form("/ask", question="Zolicillin").text)[0]
    assert "<mark>Zolicillin 500 mg</mark>" in reader.get(found).text, "at the part where it stands"


def test_all_marks_of_a_section_are_marked_where_it_opens(client: Clients) -> None:
    answer = Session(client.site, local_caller(client.settings)).ask(PDF_QUESTION, SearchFilter())
    section, known = answer.sections[0], answer.by_marker
    marker, start, end = section.link
    passage = known[marker].passage
    moved = tuple(replace(span, box=replace(span.box, y0=700, y1=710)) for span in passage.spans)
    row = replace(known[marker], marker="row", passage=replace(passage, id="row", spans=moved))
    lines = (*section.lines, ShownLine("row", start, end, marked=True))
    receipts = replace(answer.receipts or Receipts(), sections=(replace(section, lines=lines),))
    both = replace(answer, receipts=receipts, evidence=(*answer.evidence, row))
    assert [name for name, *_ in both.marks_of(*both.sections[0].link)][-1] == "row"
    next_page = tuple(replace(span, box=replace(span.box, page=span.box.page + 1)) for span in passage.spans)
    later = replace(both, evidence=(*answer.evidence, replace(row, passage=replace(row.passage, spans=next_page))))
    shown = view(later, "en")
    assert shown
    assert shown.sections[0].pages == (2, 3), "both are printed"
    boxes = page_images.other_marks(both, known[marker], both.sections[0].link[1:])
    assert {box.y0 for box in boxes} == {700}
    assert page_images.other_marks(both, known[marker], (start, end - 1)) == (), "a citation marks itself"
    bare = replace(section, lines=tuple(replace(line, marked=False) for line in section.lines))
    none = replace(answer, receipts=replace(answer.receipts or Receipts(), sections=(bare,), others=()))
    assert none.marks_of(*bare.link) == (), "nothing is marked on the page that is not in the section"


def test_the_original_is_opened_by_whoever_may_read_it(client: Clients) -> None:
    reader = client("reader")
    reply = reader.get(f"{source_of(reader)}/original")
    assert reply.content.startswith(b"%PDF")
    assert reply.headers["content-type"] == "application/pdf"
    assert reply.headers["content-disposition"].startswith("inline")
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    text = source_links(reader.form("/ask", question="dose of paracetamol?").text)[0].partition("?")[0]
    assert reader.get(f"{text}/original").status_code == 404, "text is shown anyway"
    assert client().get(f"{source_of(reader)}/original").url.path == "/login"


def test_a_sheet_to_print_has_question_sections_images_and_date(client: Clients) -> None:
    reader = client("reader")
    answer = reader.form("/ask", question=PDF_QUESTION).url.path
    sheet = reader.get(f"{answer}/sheet").text
    assert f"<mark>{SENTENCE}</mark>" in sheet
    assert said("web.answer.asked_on", date=date.today().isoformat()) in sheet
    assert f"<title>{PDF_QUESTION} · localmed</title>" in sheet
    assert len(re.findall(r"<time data-printed>\d{4}-\d\d-\d\d \d\d:\d\d</time>", sheet)) == 1, "told once"
    on_paper = re.sub(r'(?s)<(\w+) class="screen">.*?</\1>', "", sheet.partition("<main")[2])
    assert on_paper.count(PDF_QUESTION) == 1
    (generation,) = lookups.generations_kept(Session(client.site, local_caller(client.settings)))
    assert said("web.answer.library", time=moment(generation.created)) in sheet
    assert re.search(rf'class="running[^>]*><span><strong>{re.escape(PDF_QUESTION[:60])}', sheet), (
        "the head of every page"
    )
    assert "Ward documents" in sheet
    images = re.findall(rf'<img src="({answer}/sources/[^"]+)"', sheet)
    assert images
    cards = re.findall(r'(?s)<article class="card.*?</article>', sheet)
    assert any(f"<mark>{SENTENCE}</mark>" in card and images[0] in card for card in cards), (
        "below the text of its section"
    )
    assert all(reader.get(one.replace("&amp;", "&")).headers["content-type"] == "image/png" for one in images)


def test_a_sheet_says_where_it_leaves_text_out(copied_clients: Clients, tmp_path: Path) -> None:
    lines = [f"Advice {number} about hip protectors is given to the family in writing." for number in range(60)]
    folder = write(tmp_path / "other", {"falls.md": "# Falls\n\n" + "\n\n".join(["Check the bed rail first.", *lines])})
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    importing.import_paths(session, [folder], Manifest(Collection("other", "Other documents")))
    reader = copied_clients("reader")
    sheet = reader.get(f"{reader.form('/ask', question='bed rail check').url.path}/sheet").text
    assert "Check the bed rail first." in sheet
    assert "Advice 59" not in sheet
    assert said("finding.cut_in") in sheet, "no page of a text"
    assert said("finding.cut") not in sheet, "nothing opens on paper"


def test_favourites_stand_under_the_box_of_their_ward(copied_clients: Clients) -> None:
    document = govern(copied_clients, tags="favourite:ward")
    link = f'href="/documents/{document}"'
    assert link in copied_clients("reader").get("/").text
    assert link not in copied_clients("librarian").get("/").text, "of another group"
    assert copied_clients("reader").get(f"/documents/{document}").url.path.startswith("/passages/")


def test_the_newest_editions_leave_out_literature(copied_clients: Clients, tmp_path: Path) -> None:
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    for name, kind, days in (
        ("studies", Kind.LITERATURE, "78"),
        ("formulary", Kind.BOOK, "4"),
        ("rules", Kind.LOCAL, "356"),
    ):
        for day in days:
            path = tmp_path / name / f"{name}-{day}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"# {name} {day}\n\nThe {name} of the {day} is the {name} to read about falls.\n", "utf-8")
        importing.import_paths(session, [tmp_path / name], Manifest(Collection(name, name, kind=kind)))
    for one in lookups.documents(session):
        if one.collection != "ward":
            changes.govern(session, [Change((one,), {"edition": f"2025-01-0{one.title[-1]}"})])
    newest = [one.title for one in lookups.first_documents(session, "en")[1]]
    assert newest == ["rules 6", "rules 5", "formulary 4", "rules 3"]


def test_that_no_model_checks_anything_is_on_the_first_page_and_above_the_sections(client: Clients) -> None:
    reader = client("reader")
    assert said("web.ask.hint_no_model") in reader.get("/").text
    page = reader.form("/ask", question=PDF_QUESTION).text
    assert re.findall(rf'<p class="about([^"]*)">{re.escape(said("answer.sections"))}', page) == [""]


def test_the_guide_says_what_one_may_do(client: Clients) -> None:
    reader, librarian = (client(user).get("/guide").text for user in ("reader", "librarian"))
    assert "On the ward" in reader
    assert "In the library" not in reader
    assert "In the library" in librarian


def test_a_librarian_tries_a_passage_by_a_question(client: Clients) -> None:
    librarian = client("librarian")
    base = source_of(librarian)
    found = re.search(r'action="/library/documents/(\w+)/pages/(\d+)/wrong"', librarian.get(base).text)
    assert found
    assert "/wrong" not in client("reader").get(source_of(client("reader"))).text
    passage = re.search(r'href="/passages/(\w+)\?', librarian.get(f"/library/documents/{found[1]}").text)
    assert passage
    path = f"/library/documents/{found[1]}/passages/{passage[1]}/try"
    assert re.search("Found: section [1-9]", librarian.form(path, question=PDF_QUESTION).text)
    assert "Not among the first 10" in librarian.form(path, question="重症医学科的探视时间是几点？").text


def test_a_page_that_was_read_wrongly_carries_a_note(copied_clients: Clients) -> None:
    librarian, reader = copied_clients("librarian"), copied_clients("reader")
    wrong = re.search(r'action="(/library/documents/\w+/pages/\d+/wrong)"', librarian.get(source_of(librarian)).text)
    assert wrong
    assert reader.form(wrong[1]).status_code == 403
    librarian.form(wrong[1], what="The 5 of the dose is a 50.\x07")
    shown = reader.form("/ask", question=PDF_QUESTION).text
    assert "This page was read wrongly" in shown
    assert "The 5 of the dose is a 50." in shown


def test_titles_are_edited_in_the_list_which_is_filtered_and_sorted(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    document = govern(copied_clients, owner="Pharmacy", review_by="2020-01")
    overdue = librarian.form("/library/documents", only="overdue", sort="title", edits="1").text
    assert re.findall(r'name="title-(\w+)"', overdue) == [document]
    unowned = librarian.form("/library/documents", only="unowned", sort="title").text
    titles = re.findall(r'href="/library/documents/\w+">([^<]+)<', unowned)
    assert titles == sorted(titles, key=str.casefold)
    assert len(titles) > 1
    fields = {f"title-{document}": "Vancomycin, adults", f"was-{document}": "Vancomycin leaflet"}
    librarian.form("/library/documents/set", **fields)
    assert "Vancomycin, adults" in librarian.get("/library/documents").text
