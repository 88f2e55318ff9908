"""Asking without a browser: events, the kept answer, its sources as images, follow-ups, history and reports."""

from __future__ import annotations

import json
import re
import stat
import threading
import time
from collections import OrderedDict
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from localmed.clinical.identifiers import MASK
from localmed.config import Settings
from localmed.domain import Answer, Collection, Kind
from localmed.domain.accounts import SessionRole
from localmed.domain.codec import answer_json
from localmed.ingest.manifest import Manifest
from localmed.operations import changes, feedback, history, importing, lookups, page_images
from localmed.operations.audit import Audit
from localmed.operations.feedback import Opinion
from localmed.presentation.answer import view
from localmed.presentation.views import AnswerView, ConflictView
from localmed.session import Caller, Session, local_caller
from localmed.site import Site
from localmed.web import ask as web_ask
from tests.fakes import HashedWords, write
from tests.web.conftest import Client, Clients, make_accounts

QUESTION = "What is the maximum dose of paracetamol in adults?"
PDF_QUESTION = "What is the loading dose of vancomycin?"
NEAREST_QUESTION = "How is a burn of the hand treated in children with renal impairment and sepsis?"


def streamed(client: Client, **fields: str) -> list[dict[str, Any]]:
    """The events of a question."""
    values = {"form": client.token(), **fields}
    reply = client.http.post("/ask", data=values, headers={"accept": "text/event-stream"})
    assert reply.headers["content-type"].startswith("text/event-stream"), reply.text
    return [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]


def source_links(page: str) -> list[str]:
    return [link.replace("&amp;", "&") for link in re.findall(r'class="cite" data-source href="([^"]+)"', page)]


def test_passages_come_first_and_the_answer_last(client: Clients) -> None:
    events = streamed(client("reader"), question=QUESTION)
    kinds = [event["kind"] for event in events]
    assert kinds[0] == "passages"
    assert "4 g in 24 hours" in events[0]["value"]
    assert "step" in kinds
    assert kinds[-1] == "answer"
    html = events[-1]["value"]["html"]
    assert "word for word" in html
    assert "Bottom line" not in html, "which quoted sentence answers no rule can tell"
    between = [event for event in events[1:-1] if event["kind"] != "sentences"]
    assert not any("4 g" in str(event["value"]) for event in between)


def test_without_the_script_the_answer_is_a_page_of_its_own(client: Clients) -> None:
    page = client("reader").form("/ask", question=QUESTION)
    assert re.fullmatch(r"/answers/[\w-]+", page.url.path)
    assert "The maximum dose of paracetamol in adults is 4 g in 24 hours" in page.text
    assert "aracetamol" not in str(page.url)


def test_an_answer_checked_by_further_studies_shows_claims_and_studies_as_a_table(copied_clients: Clients) -> None:
    add_literature(copied_clients)
    page = copied_clients("reader").form("/ask", question=QUESTION, check="true").text
    table = page[page.index("Claims and studies") :].partition("</table>")[0]
    assert re.search(
        r'<th scope="col" class="wraps">[^<]*paracetamol[^<]*<br><span class="faint">[^<]+</span></th>', table
    )
    assert re.search(r'<th scope="row">[^<]*Paracetamol trial[^<]*</th><td>\d+\.\d</td><td>–</td>', table)
    assert "Claims and studies" not in copied_clients("reader").form("/ask", question=QUESTION).text


def test_sources_that_disagree_stand_side_by_side_and_open(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    def disagreeing(answer: Answer, language: str) -> AnswerView:
        return replace(view(answer, language), conflicts=(ConflictView("dose", "3 g a day", "1", "4 g a day", "1"),))

    monkeypatch.setattr(web_ask, "view", disagreeing)
    reader = client("reader")
    page = reader.form("/ask", question=QUESTION).text
    table = page[page.index("Sources may differ") :].partition("</table>")[0]
    ours, theirs = re.findall(r"<td>(.*?)</td>", table, re.DOTALL)[1:]
    assert ("4 g a day" in ours, "3 g a day" in theirs) == (True, True)
    assert 'class="faint"' in theirs, "what the source is, with its edition"
    links = [match[1] for match in re.finditer(r'href="([^"]+)"', table)]
    assert [reader.get(link).status_code for link in links] == [200, 200]


def add_literature(clients: Clients) -> None:
    """A study on what the guideline says."""
    text = "The maximum dose of paracetamol in adults was 4 g in 24 hours in this randomised controlled trial."
    folder = write(clients.settings.data.parent / "studies", {"trial.txt": f"Paracetamol trial\n\n{text}"})
    session = Session(clients.site, local_caller(clients.settings))
    importing.import_paths(session, [folder], Manifest(Collection("studies", "Studies", kind=Kind.LITERATURE)))


def test_a_citation_opens_its_page_as_an_image(client: Clients) -> None:
    reader = client("reader")
    page = reader.form("/ask", question=PDF_QUESTION)
    link = source_links(page.text)[0]
    source = reader.get(link)
    assert "<mark>The loading dose of vancomycin is 25 mg/kg by slow infusion.</mark>" in source.text
    image = re.search(r'<img src="([^"]+)"', source.text)
    assert image
    reply = reader.get(image[1].replace("&amp;", "&"))
    assert (reply.status_code, reply.content[:4]) == (200, b"\x89PNG")
    assert "sandbox" in reply.headers["content-security-policy"]
    before = re.search(r'href="([^"]+page=1&[^"]*)"', source.text.replace("&amp;", "&"))
    assert before
    assert "Page before" not in reader.get(before[1]).text


@pytest.mark.parametrize("question", [PDF_QUESTION, NEAREST_QUESTION])
def test_the_page_cited_first_is_drawn_before_it_is_opened(
    client: Clients, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    drawn: list[str] = []

    def draw(*_: object) -> bytes:
        drawn.append(threading.current_thread().name)
        return b"a page"

    monkeypatch.setattr(page_images, "_drawn", draw)
    monkeypatch.setattr(page_images, "_KEPT", OrderedDict())
    reader = client("reader")
    page = reader.form("/ask", question=question).text
    assert ("they do not answer the question" in page) == (question == NEAREST_QUESTION)
    for thread in threading.enumerate():
        if thread.name == "pages":
            thread.join(10)
    path, _, query = source_links(page)[0].partition("?")
    assert reader.get(f"{path}/image?{query}").content == b"a page"
    assert drawn == ["pages"], "drawn ahead, and only once"


def test_the_pages_of_a_source_end_with_its_last_one(client: Clients) -> None:
    reader = client("reader")
    path, turned = source_links(reader.form("/ask", question=PDF_QUESTION).text)[0] + "&page=1", 0
    while turned < 20:
        source = reader.get(path).text
        image = re.search(r'<img src="([^"]+)"', source)
        assert image
        assert reader.get(image[1].replace("&amp;", "&")).status_code == 200, f"after {turned} pages"
        following = re.search(r'href="([^"]+)">Next page<', source)
        if not following:
            break
        path, turned = following[1].replace("&amp;", "&"), turned + 1
    assert 0 < turned < 20


@pytest.mark.parametrize(
    "path", ["/answers/../admin", "/answers/%2e%2e/x", "/passages/..%2f..%2fetc", "/passages/zz/image"]
)
def test_ids_lead_nowhere_else(client: Clients, path: str) -> None:
    assert client("reader").get(path).status_code in (400, 404)


def test_markup_in_a_question_is_shown_as_it_was_typed(client: Clients) -> None:
    page = client("reader").form("/ask", question="<script>alert(1)</script> paracetamol dose")
    assert "<script>alert" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


@pytest.mark.parametrize(("question", "status"), [("", 400), ("   ", 400), ("x" * 30_000, 413)])
def test_what_is_no_question_is_refused(client: Clients, question: str, status: int) -> None:
    assert client("reader").form("/ask", question=question).status_code == status


def test_a_follow_up_knows_the_question_before(client: Clients) -> None:
    reader = client("reader")
    first = reader.form("/ask", question=QUESTION).url.path.rpartition("/")[2]
    page = reader.form("/ask", question="and in adults under 50 kg?", after=first)
    assert "2 g in 24 hours" in page.text


def test_history_is_ones_own_and_sealed(copied_clients: Clients) -> None:
    reader, other = copied_clients("reader"), copied_clients("admin")
    path = reader.form("/ask", question=QUESTION).url.path
    assert QUESTION in reader.get("/history").text
    assert QUESTION not in other.get("/history").text
    assert other.get(path).status_code == 404
    data = copied_clients.settings.data
    stored = b"".join(file.read_bytes() for file in data.glob("state.sqlite*"))
    assert b"paracetamol" not in stored
    assert stat.S_IMODE((data / "history.key").stat().st_mode) == 0o600
    reader.form(f"/history/{path.rpartition('/')[2]}/forget")
    assert reader.get(path).status_code == 404


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
    named = f"{document.title} ({document.id[:12]}) was withdrawn on {today}: by the manufacturer"
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
    page = reader.form(f"{path}/report", opinion="bad", comment="the dose is for tablets")
    assert "your report went to" in page.text
    reader.form("/history/all/forget")
    site = copied_clients.site
    (found_report,) = feedback.reports(Session(site, Caller("safety", None, SessionRole.SAFETY)))
    assert (found_report.user, found_report.opinion, found_report.comment) == (
        "reader",
        Opinion.BAD,
        "the dose is for tablets",
    )
    assert found_report.asked_text == QUESTION
    assert history.listing(Session(site, Caller("reader", frozenset({"ward"}), SessionRole.READER))) == ([], 0)


def test_what_was_asked_is_audited_as_the_user_without_its_text(copied_clients: Clients) -> None:
    copied_clients("reader").form("/ask", question=QUESTION)
    with closing(Audit(copied_clients.settings.data)) as log:
        entry = log.entries()[-1]
    assert (entry.actor, entry.action) == ("reader", "ask")
    assert "paracetamol" not in str(entry)


def test_search_and_concepts(client: Clients) -> None:
    reader = client("reader")
    assert "4 g in 24 hours" in reader.form("/search", question="paracetamol").text
    assert reader.form("/concepts", term="nothing known").status_code == 404
    for path in ("/search", "/concepts", "/history"):
        assert reader.get(path).status_code == 200


def test_an_empty_library_is_filled_by_the_admin(empty_clients: Clients, tmp_path: Path) -> None:
    make_accounts(empty_clients.settings)
    admin = empty_clients("admin")
    assert "Ask a librarian" in empty_clients("reader").get("/").text
    assert "/start/library" in admin.get("/").text
    assert admin.form("/start/library", source="folder", folder="/nowhere").status_code == 400
    folder = write(tmp_path / "documents", {"sepsis.txt": "Sepsis\n\nGive antibiotics within one hour.\n"})
    page = admin.form("/start/library", source="folder", folder=str(folder))
    for _ in range(100):
        if "Done: 1 document was read" in page.text:
            break
        time.sleep(0.1)
        page = admin.get(page.url.path)
    assert "Done: 1 document was read" in page.text
    assert "within one hour" in admin.form("/ask", question="When to give antibiotics in sepsis?").text


def test_a_patients_name_neither_hinders_the_answer_nor_is_sent_unwarned(client: Clients) -> None:
    """Before, its words were looked for in the documents and the question was refused, since no document has them."""
    reader = client("reader")
    named = "Mrs Quixworth Zebedee, MRN 4482910, is in pain: "
    warning = reader.form("/ask/identifiers", question=named + QUESTION).text
    assert "looks like a patient's name or number: 4482910, Quixworth Zebedee" in warning
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
        assert "was masked before the documents were searched and the question was kept" in page.text
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


GENTAMICIN = """# Gentamicin in adults

## Dose

Give gentamicin 5 mg/kg once daily in sepsis in adults. Do not give it in myasthenia gravis. The maximum dose is 400 mg.
Do not give this dose to children.
"""


def test_cautions_that_are_quoted_stand_under_their_own_heading(copied_clients: Clients, tmp_path: Path) -> None:
    file = tmp_path / "gentamicin.md"
    file.write_text(GENTAMICIN, "utf-8")
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    importing.import_paths(session, [file], Manifest(Collection("doses", "Doses", priority=1)))
    reader = copied_clients("librarian")
    page = reader.form("/ask", question="What is the dose of gentamicin in adults with sepsis?")
    for language, heading in (("en", "<h3>Cautions</h3>"), ("zh", "<h3>注意事项</h3>")):
        reader.http.cookies.set("localmed_language", language)
        shown = reader.get(page.url.path).text
        places = [shown.index(words) for words in ("5 mg/kg", "400 mg", heading, "myasthenia gravis", "to children")]
        assert places == sorted(places)
        assert "The section goes on" not in shown, "a caution for another case is not folded away"


def test_a_reply_that_has_begun_ends_with_what_went_wrong(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError("/a/path/of/the/server")

    monkeypatch.setattr(web_ask, "kept_answer", fail)
    events = streamed(client("reader"), question=QUESTION)
    assert events[0]["kind"] == "passages"
    assert events[-1]["kind"] == "error"
    assert events[-1]["code"] == "web.error.unexpected"
    assert "/a/path" not in json.dumps(events)
