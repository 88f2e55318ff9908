"""Asking without a browser: events, the kept answer, its sources as images, follow-ups, history and reports."""

from __future__ import annotations

import html
import json
import re
import stat
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from localmed.config import Settings
from localmed.domain import Collection, Kind, SearchFilter, Status, message
from localmed.domain.accounts import SessionRole
from localmed.domain.answers import answer_json
from localmed.domain.errors import ModelError
from localmed.domain.findings import Closeness
from localmed.ingest.manifest import Manifest
from localmed.people import feedback, history
from localmed.people.feedback import Opinion
from localmed.site import changes, importing, lookups, page_images
from localmed.site.audit import Audit
from localmed.site.governing import Change
from localmed.site.session import Caller, Session, local_caller
from localmed.site.site import Site
from localmed.text.identifiers import MASK
from localmed.web import ask as web_ask
from tests.fakes import HashedWords, write
from tests.web.conftest import Client, Clients, make_accounts, with_model
from tests.words import phrase, said, words
from tests.workflows.test_ask import Model, wrote

QUESTION = "What is the maximum dose of paracetamol in adults?"
PDF_QUESTION = "What is the loading dose of vancomycin?"
DOSE_MODEL = Model(wrote(("The maximum dose of paracetamol in adults is 4 g in 24 hours.", "The maximum dose")))
ANSWER_WORDS = ("answer", "badge", "答案", "回答", "标记")


def streamed(client: Client, **fields: str) -> list[dict[str, Any]]:
    """The events of a question."""
    values = {"form": client.token(), **fields}
    reply = client.http.post("/ask", data=values, headers={"accept": "text/event-stream"})
    assert reply.headers["content-type"].startswith("text/event-stream"), reply.text
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]


def source_links(page: str) -> list[str]:
    return [link.replace("&amp;", "&") for link in re.findall(r'<h3><a href="([^"]+)" data-source>', page)]


def words_of(page: str) -> str:
    """What is read of a page: without its tags and addresses."""
    return re.sub(r"<[^>]*>", " ", page)


@pytest.mark.parametrize(("language", "headline"), [("en", "Found by a search"), ("zh", "由检索找到")])
def test_without_a_model_the_sections_stand_there_and_nothing_is_called_an_answer(
    client: Clients, language: str, headline: str
) -> None:
    reader = client("reader")
    reader.http.cookies.set("localmed_language", language)
    events = streamed(reader, question=QUESTION)
    assert {event["kind"] for event in events[:-1]} <= {"step", "progress"}
    assert events[-1]["kind"] == "answer"
    assert not any("4 g" in str(event["value"]) for event in events[:-1])
    html = events[-1]["value"]["html"]
    page = reader.get(events[-1]["value"]["path"]).text
    for shown in (html, page):
        assert headline in shown
        assert "<mark>The maximum dose of paracetamol in adults is 4 g in 24 hours.</mark>" in shown
        assert not [word for word in ANSWER_WORDS if word in words_of(shown).lower()]


def test_the_first_sections_are_open_and_of_the_others_a_sentence_stands_there(client: Clients) -> None:
    page = client("reader").form("/ask", question=QUESTION).text
    cards = re.findall(r'<article class="card[^>]*>(.*?)</article>', page, re.DOTALL)
    assert len(cards) > 3
    folded = [bool(re.search("<details[^>]*><summary>.*?<div", card, re.DOTALL)) for card in cards]
    assert not any(folded[:3])
    assert folded[-1]
    assert "Give antibiotics within one hour" in page


def test_where_nothing_is_found_the_page_says_what_was_searched_and_how_the_question_was_read(client: Clients) -> None:
    reader = client("reader")
    reader.http.cookies.set("localmed_language", "en")
    for page in (reader.form(path, question="扑热息痛").text for path in ("/ask", "/search")):
        assert "Nothing in the library is close to this." in page
        assert "Searched: ward" in page
        assert "Also searched for: 对乙酰氨基酚 (for 扑热息痛)" in page


class Silent(HashedWords):
    """An encoder whose host is gone."""

    def encode(self, texts: Any, kind: Any) -> Any:
        raise ModelError("host.ended")


PANADOL, DKA = "paracetamol (for panadol)", "diabetic ketoacidosis (for DKA)"


def test_where_nothing_is_near_titles_stand_folded_and_the_librarian_hears_of_it(
    copied_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localmed.retrieval.search.said", lambda *_: Closeness.NOTHING_NEAR)
    question = "Where is the permit for paracetamol?"
    reader = copied_clients("reader")
    event = streamed(reader, question=question)[-1]
    page = event["value"]["html"]
    sheet = reader.get(f"{event['value']['path']}/sheet").text
    assert f">{said('finding.none')}</h2>" in sheet, "on paper no titles stand below"
    assert said("finding.below") not in sheet
    assert phrase("finding.nothing_near") in page
    assert phrase("finding.nearest") in page
    assert "<mark>" not in page
    assert 'class="card' not in page
    assert "data-mark" not in page, "no page is opened"
    assert question in copied_clients("librarian").get("/library/questions").text


class Bilingual(HashedWords):
    """An encoder that knows both languages."""

    def __init__(self) -> None:
        super().__init__()
        self.identity = replace(self.identity, languages=("en", "zh"))


@pytest.mark.parametrize("closeness", [Closeness.NOTHING_NEAR, Closeness.SOME_WAY, Closeness.CLOSE])
def test_the_other_language_is_a_count_above_sections_that_are_not_close(
    copied_clients: Clients, monkeypatch: pytest.MonkeyPatch, closeness: Closeness
) -> None:
    monkeypatch.setattr("localmed.retrieval.search.said", lambda *_: closeness)
    with Site(copied_clients.settings, Bilingual()) as site:
        reader = Clients(copied_clients.settings, site)("reader")
        page = streamed(reader, question="普通病房的探视时间是几点？")[-1]["value"]["html"]
    before, folded = page.split('<details class="others"><summary>')
    title = "finding.only" if closeness is Closeness.NOTHING_NEAR else "finding.also"
    assert folded.startswith(words(message(title, language=message("source.language.en"))) + ": 3</summary>")
    assert ('<article class="card' in before) is (closeness is Closeness.CLOSE)
    nothing = words(message("finding.nothing_in", language=message("source.language.zh")))
    assert (nothing in before) is (closeness is Closeness.NOTHING_NEAR)
    assert ("/sources/" in page.partition("<aside")[2]) is (closeness is not Closeness.NOTHING_NEAR), (
        "no page beside titles"
    )


def test_what_no_document_has_is_said_above_folded_titles_and_what_a_section_lacks_at_it(client: Clients) -> None:
    page = client("reader").form("/ask", question="azithromycin dose").text
    assert said("finding.absent", name="azithromycin") in page
    assert "<mark>" not in page
    assert phrase("finding.nearest") in page
    page = client("reader").form("/ask", question="sepsis antibiotics for a newborn").text
    assert said("finding.lacked", names=("newborn",)) in page
    assert "<mark>" not in page
    assert phrase("finding.nearest") in page, "only titles"
    page = client("reader").form("/ask", question="status epilepticus what first").text
    assert said("finding.lacked", names=("status epilepticus",)) in page
    for named in ("neutropenic sepsis, which antibiotics", "dose of paracetamol, no history of epilepsy"):
        assert phrase("finding.lacked") not in client("reader").form("/ask", question=named).text
    page = client("reader").form("/ask", question="vancomycin loading dose for a child").text
    assert f"· {said('finding.lacks', names=('child',))}" in page
    page = client("reader").form("/ask", question="blood pressure target of Mr Zebedee Quixworth").text
    assert phrase("finding.absent") not in page, "a patient is no subject"


def test_a_warning_sign_stands_above_the_follow_up_too(client: Clients) -> None:
    reader = client("reader")
    first = streamed(reader, question="crushing chest pain and sweating, paracetamol?")[-1]["value"]
    assert phrase("finding.flagged") in first["html"]
    after = first["path"].rpartition("/")[2]
    for _ in range(history.EARLIER + 2):
        later = streamed(reader, question="And what is the maximum dose?", after=after)[-1]["value"]
        assert phrase("finding.flagged") in later["html"]
        after = later["path"].rpartition("/")[2]


def readings(page: str) -> tuple[list[str], list[str]]:
    """What a page offers to leave out, and what it says was left out."""
    left_out = re.search(rf"{phrase('finding.left_out')}([^<]*)", page)
    named = [one for one in (PANADOL, DKA) if left_out and one in left_out[1]]
    return [one for one in (PANADOL, DKA) if f'aria-label="{said("finding.leave_out", reading=one)}"' in page], named


@pytest.mark.parametrize("path", ["/ask", "/search"])
def test_each_reading_is_left_out_by_itself_and_all_come_back(client: Clients, path: str) -> None:
    reader = client("reader")
    reader.http.cookies.set("localmed_language", "en")

    def press(page: str, button: str) -> str:
        """The page after a press of ``button``: a form sends its hidden fields and what the button is called."""
        rows = re.findall(
            rf'<form method="post" action="{path}" data-ask class="readings">(.*?)</form>', page, re.DOTALL
        )
        (row,) = (one for one in rows if button in one)
        fields = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', row)
        fields += re.findall(rf'<button class="quiet" name="(left_out)" value="([^"]*)"[^<]*{re.escape(button)}', row)
        body = urlencode(fields)
        headers = {"content-type": "application/x-www-form-urlencoded"}
        reply = reader.http.post(path, content=body, headers=headers, follow_redirects=True)
        assert "anadol" not in str(reply.url)
        return reply.text

    page = reader.form(path, question="max dose of panadol in DKA").text
    assert readings(page) == ([PANADOL, DKA], [])
    one = press(page, said("finding.leave_out", reading=PANADOL))
    assert readings(one) == ([DKA], [PANADOL])
    assert "max dose of panadol in DKA" in one
    none = press(one, said("finding.leave_out", reading=DKA))
    assert readings(none) == ([], [PANADOL, DKA])
    assert readings(press(none, said("finding.all_readings"))) == ([PANADOL, DKA], [])
    assert readings(press(page, said("finding.as_written"))) == ([], [PANADOL, DKA])


def test_what_a_question_was_asked_with_holds_for_all_that_is_asked_from_its_page(client: Clients) -> None:
    reader, both = client("reader"), "and panadol in children with DKA?"

    def asked(question: str = both, **fields: str) -> str:
        return reader.form("/ask", question=question, **fields).url.path

    def chosen(path: str) -> tuple[list[str], bool]:
        """What the box above an answer is set to."""
        box = re.search(
            '<form method="post" action="/ask" data-ask class="screen ask">(.*?)</form>',
            reader.get(path).text,
            re.DOTALL,
        )
        assert box
        return re.findall(r"<option(?: [^>]*)? selected>([^<]*)", box[1]), " checked" in box[1]

    first = asked("max dose of panadol in DKA", left_out="Panadol", collection="ward", check="true")
    without = asked("and in children?", after=Path(first).name)
    second = asked(after=Path(without).name)
    again = asked(again=Path(second).name, collection="ward", check="true")
    for path, shown in ((first, ([DKA], [PANADOL])), (second, ([DKA], [PANADOL])), (again, ([PANADOL, DKA], []))):
        assert readings(reader.get(path).text) == shown
        assert phrase("finding.read_as") in re.sub(
            "(?s)<form.*?</form>|<textarea.*?</textarea>", "", reader.get(f"{path}/sheet").text
        )
    assert {str(chosen(path)) for path in (first, without, second, again)} == {"(['Ward documents'], True)"}
    assert 'name="left_out" value="Panadol"' in reader.get(without).text, "though nothing there is read so"
    assert said("finding.following", question="max dose of panadol in DKA") in reader.get(again).text
    other = asked("what is sepsis?", again=Path(second).name)
    assert phrase("finding.following") not in reader.get(other).text, "another question in the box follows none"
    assert chosen(other) == ([], False)


def test_while_the_models_are_away_sections_are_found_by_words_and_that_is_told(copied_clients: Clients) -> None:
    with Site(copied_clients.settings, Silent()) as site:
        reader = Clients(copied_clients.settings, site)("reader")
        for path in ("/ask", "/search"):
            page = reader.form(path, question=PDF_QUESTION).text
            assert "25 mg/kg" in page
            assert phrase("search.words_only") in page


@pytest.mark.slow
def test_an_answer_checked_by_further_studies_shows_claims_and_studies_as_a_table(copied_clients: Clients) -> None:
    add_literature(copied_clients)
    with with_model(copied_clients.settings, DOSE_MODEL) as clients:
        page = clients("reader").form("/ask", question=QUESTION, check="true").text
        table = page[page.index("Claims and studies") :].partition("</table>")[0]
        assert re.search(
            r'<th scope="col" class="wraps">[^<]*paracetamol[^<]*<br><span class="faint">[^<]+</span></th>', table
        )
        assert re.search(r'<th scope="row">[^<]*Paracetamol trial[^<]*</th><td>\d+\.\d</td><td>[^<]+</td>', table)
        assert "Claims and studies" not in clients("reader").form("/ask", question=QUESTION).text


def test_sections_that_differ_stand_side_by_side_in_one_folded_line_newer_first(copied_clients: Clients) -> None:
    texts = {
        f"{year}.md": f"# Gentamicin guideline\n\nPublished: {year}\n\n## Dose\n\nGive gentamicin {dose} once a day.\n"
        for year, dose in ((2019, "3 mg/kg"), (2024, "5 mg/kg"))
    }
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    folder = write(copied_clients.settings.data.parent / "doses", texts)
    importing.import_paths(session, [folder], Manifest(Collection("doses", "Doses")))
    reader = copied_clients("librarian")
    page = reader.form("/ask", question="gentamicin dose once a day").text
    table = page[page.index('<details class="conflicts">') :].partition("</table>")[0]
    assert table.count("<summary>") == 1, "one folded line, which pushes no section down"
    ours, theirs = re.findall(r"<td[^>]*>(.*?)</td>", table, re.DOTALL)[1:]
    assert ("Give gentamicin 5 mg/kg" in ours, "Give gentamicin 3 mg/kg" in theirs) == (True, True)
    assert ("2024" in ours, "2019" in theirs) == (True, True), "what the source is, with its edition"
    links = [match[1].replace("&amp;", "&") for match in re.finditer(r'href="([^"]+)"', table)]
    for link, dose in zip(links, ("5 mg/kg", "3 mg/kg"), strict=True):
        assert f"<mark>Give gentamicin {dose} once a day.</mark>" in reader.get(link).text
    (text,) = re.findall(r'<textarea id="copied"[^>]*>(.*?)</textarea>', page, re.DOTALL)
    assert text.index(said("conflict.edition", ours="2024", theirs="2019")) < text.index("Nearest sections")


def test_what_is_copied_names_the_owner_and_what_the_collection_states(copied_clients: Clients) -> None:
    session, notice = Session(copied_clients.site, local_caller(copied_clients.settings)), "For demonstration only"
    folder = write(
        copied_clients.settings.data.parent / "renal", {"dialysis.md": "# Dialysis\n\nWeigh before dialysis.\n"}
    )
    importing.import_paths(session, [folder], Manifest(Collection("renal", "Renal", source=notice)))
    stored = next(one for one in lookups.documents(session) if one.title == "Dialysis")
    changes.govern(session, [Change((stored,), {"owner": "Renal unit"})])
    reader = copied_clients("reader")
    page = html.unescape(reader.form("/ask", question="Weigh before dialysis?").text)
    card, pane = (re.search(rf'<{it} class="[^"]*"[^>]* data-cited="([^"]+)"', page) for it in ("article", "div"))
    copied = page.partition('<textarea id="copied"')[2].partition("</textarea>")[0]
    for text in (card and card[1], pane and pane[1], copied):
        assert text
        assert said("answer.owner", owner="Renal unit") in text
        assert notice in text


def add_literature(clients: Clients) -> None:
    """A study on what the guideline says."""
    text = "The maximum dose of paracetamol in adults was 4 g in 24 hours in this randomised controlled trial."
    folder = write(clients.settings.data.parent / "studies", {"trial.txt": f"Paracetamol trial\n\n{text}"})
    session = Session(clients.site, local_caller(clients.settings))
    importing.import_paths(session, [folder], Manifest(Collection("studies", "Studies", kind=Kind.LITERATURE)))


def test_a_section_without_marks_is_looked_for_by_its_heading(client: Clients) -> None:
    reader = client("reader")
    links = source_links(reader.form("/ask", question="dose of paracetamol").text)
    opened = [("<mark>" in page, "data-begins" in page) for page in (reader.get(link).text for link in links)]
    assert (True, False) in opened
    assert (False, True) in opened
    assert (True, True) not in opened


def test_a_section_opens_its_page_as_an_image(client: Clients) -> None:
    reader = client("reader")
    page = reader.form("/ask", question=PDF_QUESTION)
    link = source_links(page.text)[0]
    assert link.startswith(f"{page.url.path}/sources/"), "as it was when it was asked"
    assert source_links(reader.form("/search", question=PDF_QUESTION).text)[0].startswith("/passages/")
    source = reader.get(link)
    assert "<mark>The loading dose of vancomycin is 25 mg/kg by slow infusion.</mark>" in source.text
    image = re.search(r'<img src="([^"]+)"', source.text)
    assert image
    reply = reader.get(image[1].replace("&amp;", "&"))
    assert (reply.status_code, reply.content[:4]) == (200, b"\x89PNG")
    assert "sandbox" in reply.headers["content-security-policy"]
    before = re.search(r'href="([^"]+page=1&[^"]*)"', source.text.replace("&amp;", "&"))
    assert before
    assert said("web.source.before") not in reader.get(before[1]).text


def test_the_page_of_the_first_section_is_drawn_before_it_is_opened(
    client: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[str] = []

    def draw(*_: object) -> bytes:
        drawn.append(threading.current_thread().name)
        return b"a page"

    monkeypatch.setattr(page_images, "_drawn", draw)
    monkeypatch.setattr(page_images, "_KEPT", OrderedDict())
    reader = client("reader")
    page = reader.form("/ask", question=PDF_QUESTION).text
    for thread in threading.enumerate():
        if thread.name == "pages":
            thread.join(10)
    path, _, query = source_links(page)[0].partition("?")
    assert reader.get(f"{path}/image?{query}").content == b"a page"
    assert drawn == ["pages"], "drawn ahead, and only once"


def test_a_page_that_was_drawn_of_another_text_is_drawn_anew(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """A corrected heading may become text of the same passage."""
    monkeypatch.setattr(page_images, "_drawn", lambda _, evidence, *__: evidence.passage.text.encode())
    monkeypatch.setattr(page_images, "_KEPT", OrderedDict())
    session = Session(client.site, local_caller(client.settings))
    found = session.ask(QUESTION, SearchFilter()).evidence[0]
    corrected = replace(found, passage=replace(found.passage, text=f"Doses\n{found.passage.text}"))
    images = [page_images.page_image(session, one, 0, (0, 5)) for one in (found, corrected)]
    assert images == [found.passage.text.encode(), corrected.passage.text.encode()]


@pytest.mark.slow
def test_the_pages_of_a_source_end_with_its_last_one(client: Clients) -> None:
    reader = client("reader")
    path, turned = source_links(reader.form("/ask", question=PDF_QUESTION).text)[0] + "&page=1", 0
    while turned < 20:
        source = reader.get(path).text
        image = re.search(r'<img src="([^"]+)"', source)
        assert image
        assert reader.get(image[1].replace("&amp;", "&")).status_code == 200, f"after {turned} pages"
        following = re.search(r'href="([^"]+)" aria-label="Next page"', source)
        if not following:
            break
        path, turned = following[1].replace("&amp;", "&"), turned + 1
    assert 0 < turned < 20


def test_markup_in_a_question_is_shown_as_it_was_typed(client: Clients) -> None:
    page = client("reader").form("/ask", question="<script>alert(1)</script> paracetamol dose")
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


def test_a_question_without_words_stays_in_the_form_and_is_told_once(client: Clients) -> None:
    reader = client("reader")
    page = reader.form("/ask", question="???")
    assert (page.status_code, page.text.count(phrase("workflow.no_words"))) == (400, 1)
    assert re.search(r"<textarea[^>]*>\?\?\?</textarea>", page.text)
    headers = {"accept": "text/event-stream"}
    reply = reader.http.post("/ask", data={"form": reader.token(), "question": " "}, headers=headers)
    assert reply.json()["error"]["code"] == "workflow.no_words", "the script shows it below the form"
    assert reader.form("/ask", question="x" * 30_000).status_code == 413


@pytest.mark.slow
def test_history_is_ones_own_and_sealed(copied_clients: Clients) -> None:
    reader, other = copied_clients("reader"), copied_clients("admin")
    path = reader.form("/ask", question=QUESTION).url.path
    assert QUESTION in reader.get("/history").text
    assert QUESTION not in other.get("/history").text
    assert other.get(path).status_code == 404
    data = copied_clients.settings.data
    stored = b"".join(file.read_bytes() for file in data.glob("site.sqlite*"))
    assert b"paracetamol" not in stored
    assert stat.S_IMODE((data / "history.key").stat().st_mode) == 0o600
    reader.form(f"/history/{path.rpartition('/')[2]}/forget")
    assert reader.get(path).status_code == 404


@pytest.mark.slow
def test_with_no_days_answers_go_with_the_login(web_data: Settings, copied_clients: Clients) -> None:
    del web_data
    settings = copied_clients.settings
    none = replace(settings, web=replace(settings.web, history_days=0))
    with Site(none, HashedWords()) as site:
        clients = Clients(none, site)
        reader = clients("reader")
        path = reader.form("/ask", question=QUESTION).url.path
        assert reader.get(path).status_code == 200
        reader.form("/logout")
        assert clients("reader").get(path).status_code == 404


def test_what_was_superseded_since_carries_the_mark_wherever_it_is_shown(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    path = reader.form("/ask", question=PDF_QUESTION).url.path
    asks = re.search(r'data-holds="([^"]+)"', reader.get(path).text)
    assert asks
    assert reader.get(asks[1]).status_code == 204
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(one for one in lookups.documents(session) if "ancomycin" in one.title)
    changes.mark(session, document, Status.SUPERSEDED)
    changes.govern(session, [Change((document,), {"review_by": "2020-01-01"})])
    assert reader.get(asks[1]).status_code == 410, "an open page comes anew"
    page = reader.get(path).text
    cards = re.findall(r'data-cited="([^"]+)"', page)
    card = next(one for one in cards if document.title in one)
    marks = [said("answer.superseded"), said("answer.overdue", date="2020-01-01")]
    copied = page.partition('<textarea id="copied"')[2].partition("</textarea>")[0]
    for text in (card, copied, reader.get(f"{path}/sheet").text):
        assert all(mark in text for mark in marks)
    told = said("answer.superseded_since", title=document.title)
    assert f'<p class="notice warning"><strong>{told}</strong></p>' in page
    assert told in copied
    after = next(one for one in lookups.documents(session) if one.id != document.id and one.status is Status.CURRENT)
    changes.mark(session, document, Status.SUPERSEDED, after.id)
    opened = html.unescape(reader.get(html.unescape(source_links(reader.get(path).text)[0])).text)
    assert said("web.source.newer", title=after.title, edition=after.edition or "–") in opened, (
        "a way to the edition in use"
    )


def test_a_reader_sees_what_the_library_has_and_nothing_out_of_use(copied_clients: Clients) -> None:
    reader, session = copied_clients("reader"), Session(copied_clients.site, local_caller(copied_clients.settings))
    assert 'href="/documents"' in reader.get("/").text
    document = next(one for one in lookups.documents(session) if "ancomycin" in one.title)
    link = f'href="/documents/{document.id}"'
    assert link in reader.get("/documents").text
    assert reader.get(f"/documents/{document.id}").status_code == 200
    changes.withdraw(session, document, True, "the dose is wrong")
    page = reader.get("/documents").text
    assert link not in page
    assert "the dose is wrong" in page


def test_what_was_removed_since_is_said_in_the_answer_that_cites_it(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    path = reader.form("/ask", question=PDF_QUESTION).url.path
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(one for one in lookups.documents(session) if "ancomycin" in one.title)
    changes.remove(session, [document])
    page = reader.get(path).text
    assert said("answer.superseded_since", title=document.title) in page
    assert said("answer.superseded") in page


def test_that_a_document_on_this_was_withdrawn_is_a_notice(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(one for one in lookups.documents(session) if "ancomycin" in one.title)
    changes.withdraw(session, document, True, "by the manufacturer")
    asked = reader.form("/ask", question=PDF_QUESTION)
    today = datetime.now(UTC).date().isoformat()
    told = said("workflow.withdrawn_because", title=document.title, date=today, reason="by the manufacturer")
    assert f'<p class="notice warning"><strong>{told}</strong></p>' in asked.text
    assert f"<li>{told}" not in asked.text
    changes.withdraw(session, document, False, "the manufacturer was wrong")
    again = reader.get(asked.url.path).text
    assert told not in again
    assert said("workflow.reinstated", title=document.title, date=today) in again


@pytest.mark.slow
def test_an_answer_disappears_once_its_document_is_withdrawn(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    path = reader.form("/ask", question=PDF_QUESTION).url.path
    assert reader.get(f"{path}/holds").status_code == 204
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(one for one in lookups.documents(session) if "ancomycin" in one.title)
    changes.withdraw(session, document, True, "by the manufacturer")
    assert reader.get(f"{path}/holds").status_code == 410
    page = reader.get(path).text
    assert "25 mg/kg" not in page
    today = datetime.now(UTC).date().isoformat()
    named = f"{document.title} was withdrawn on {today}: by the manufacturer"
    assert named in page
    assert named in reader.get("/history").text
    leaflet = reader.form(f"{path}/leaflet", released_by="Dr Wu")
    assert named in leaflet.text
    changes.set_access(session, document.collection, ["elsewhere"])
    for address in (path, "/history"):
        assert "by the manufacturer" not in reader.get(address).text, "of what is hidden nothing is named"


def test_a_report_reaches_the_safety_officer_and_outlives_the_history(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    path = reader.form("/ask", question=QUESTION).url.path
    assert 'href="#report"' in reader.get(path).text
    page = reader.form(f"{path}/report", opinion="harm", comment="the dose is for tablets")
    assert said("web.notice.reported") in page.text
    reader.form("/history/all/forget")
    safety, (id_, shown) = (
        copied_clients("safety"),
        (path.rpartition("/")[2], path.replace("/answers", "/safety/reports")),
    )
    assert said("web.safety.new_reports", count=1) in safety.get("/").text
    overview, sheet = safety.get("/safety").text, safety.get(shown).text
    assert overview.index("the dose is for tablets") < overview.index(said("web.safety.stop_now"))
    assert f'href="{shown}"' in overview
    assert "4 g in 24 hours" in sheet
    (image, *_) = re.findall(r'<img[^>]* src="([^"]+)"', sheet)
    assert safety.get(html.unescape(image)).headers["content-type"] == "image/png"
    assert (safety.get(path).status_code, reader.get(shown).status_code) == (404, 403), "to look at, not to go on from"
    assert safety.form("/safety/reports/seen", answer_id=id_, user="reader").status_code == 200
    assert safety.form("/safety/reports/seen", answer_id=id_, user="reader").status_code == 404, (
        "who saw it first stays"
    )
    assert said("web.safety.new_reports", count=1) not in safety.get("/").text
    assert f"{said('web.safety.seen')}: safety" in safety.get("/safety").text
    site = copied_clients.site
    (found_report,) = feedback.reports(Session(site, Caller("safety", None, SessionRole.SAFETY)))
    assert (found_report.user, found_report.opinion, found_report.comment) == (
        "reader",
        Opinion.HARM,
        "the dose is for tablets",
    )
    assert found_report.asked_text == QUESTION
    assert history.listing(Session(site, Caller("reader", frozenset({"ward"}), SessionRole.READER))) == ([], 0)


def test_what_was_asked_is_audited_as_the_user_without_its_text(copied_clients: Clients) -> None:
    copied_clients("reader").form("/ask", question=QUESTION)
    with Audit(copied_clients.settings.data) as log:
        entry = log.entries()[-1]
    assert (entry.actor, entry.action) == ("reader", "ask")
    assert "paracetamol" not in str(entry)


@pytest.mark.slow
def test_an_empty_library_is_filled_by_the_admin(empty_clients: Clients, tmp_path: Path) -> None:
    make_accounts(empty_clients.settings)
    admin = empty_clients("admin")
    assert "Ask a librarian" in empty_clients("reader").get("/").text
    assert "/start/library" in admin.get("/").text
    assert admin.form("/start/library", source="folder", folder="/nowhere").status_code == 400
    folder = write(tmp_path / "documents", {"sepsis.txt": "Sepsis\n\nGive antibiotics within one hour.\n"})
    page = admin.form("/start/library", source="folder", folder=str(folder))
    for _ in range(100):
        if "Documents read: 1," in page.text:
            break
        time.sleep(0.1)
        page = admin.get(page.url.path)
    assert "Documents read: 1," in page.text
    assert "within one hour" in admin.form("/ask", question="When to give antibiotics in sepsis?").text


def test_a_patients_name_neither_hinders_the_answer_nor_is_sent_unwarned(client: Clients) -> None:
    """Before, its words were looked for in the documents and the question was refused, since no document has them."""
    reader = client("reader")
    named = "Mrs Quixworth Zebedee, MRN 4482910, is in pain: "
    warning = reader.form("/ask/identifiers", question=named + QUESTION).text
    assert "looks like a patient's name, number or date of birth: 4482910, Quixworth Zebedee" in warning
    assert reader.form("/ask/identifiers", question=QUESTION).text == ""
    page = reader.form("/ask", question=named + QUESTION)
    assert "The maximum dose of paracetamol in adults is 4 g in 24 hours" in page.text
    assert "4 g in 24 hours" in reader.form("/search", question=named + QUESTION).text


def test_who_a_patient_is_is_masked_before_anything_is_kept(copied_clients: Clients) -> None:
    """In the history, in a report, in an exported incident and in an order that is printed back."""
    name, number = "Zebedee Quixworth", "88341234"
    reader = copied_clients("reader")
    order = f"Mr {name}, MRN {number}\nParacetamol 1 g orally every 8 hours"
    ids = []
    for path, fields in (("/ask", {"question": f"{QUESTION} Mr {name}, MRN {number}"}), ("/orders", {"order": order})):
        page = reader.form(path, **fields)
        assert html.escape(phrase("web.answer.masked"), quote=True).replace("&#x27;", "&#39;") in page.text
        assert name not in page.text
        assert number not in page.text
        assert page.url.path.startswith("/answers/")
        reader.form(f"{page.url.path}/report", opinion="bad", comment="")
        ids.append(page.url.path.rpartition("/")[2])
    session = Session(copied_clients.site, Caller("reader", frozenset({"ward"}), SessionRole.READER))
    for kept in (history.kept(session, id_) for id_ in ids):
        values = json.dumps(answer_json(kept.answer), ensure_ascii=False) + kept.asked_text
        assert "Quixworth" not in values
        assert number not in values
        assert MASK * len(name) in values
    officer = Session(copied_clients.site, Caller("safety", None, SessionRole.SAFETY))
    assert all("Quixworth" not in report.asked_text for report in feedback.reports(officer))


def test_a_reply_that_has_begun_ends_with_what_went_wrong(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError("/a/path/of/the/server")

    monkeypatch.setattr(web_ask, "keep_answer", fail)
    events = streamed(client("reader"), question=QUESTION)
    assert events[0]["kind"] == "step"
    assert events[-1]["kind"] == "error"
    assert events[-1]["code"] == "web.error.unexpected"
    assert "/a/path" not in json.dumps(events)


def test_what_is_copied_says_what_was_asked_when_and_that_nobody_checked_it(client: Clients) -> None:
    page = unescape(client("reader").form("/ask", question="What is the blood pressure target in hypertension?").text)
    copied = page[page.index('<textarea id="copied"') :].partition("</textarea>")[0]
    assert "What is the blood pressure target in hypertension?" in copied
    assert datetime.now().astimezone().date().isoformat() in copied
    assert "Found by a search" in copied
    assert re.search(r"\[1\] Hypertension guideline · no date\n.*blood pressure target", copied)
