"""What is kept no longer than the settings say, and what is deleted when somebody asks for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localmed.domain.accounts import SessionRole
from localmed.library.state import rows
from localmed.people import feedback, history
from localmed.site.session import Caller, Session
from localmed.site.site import Site
from tests.fakes import HashedWords
from tests.web.conftest import Client, Clients
from tests.web.test_ask import QUESTION
from tests.words import phrase, said


def officer(clients: Clients) -> Session:
    return Session(clients.site, Caller("safety", None, SessionRole.SAFETY))


def reported(reader: Client, opinion: str = "bad") -> str:
    path = reader.form("/ask", question=QUESTION).url.path
    assert reader.form(f"{path}/report", opinion=opinion, comment="for tablets").status_code == 200
    return path.rpartition("/")[2]


def count(clients: Clients, table: str) -> int:
    with rows(clients.settings.data) as state:
        return int(state.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])


def test_reports_are_kept_as_long_as_the_setting_says(copied_clients: Clients) -> None:
    reported(copied_clients("reader"))
    assert len(feedback.reports(officer(copied_clients))) == 1
    with rows(copied_clients.settings.data) as state:
        state.execute("UPDATE feedback SET time = time - ?", (366 * history.DAY,))
    assert feedback.reports(officer(copied_clients)) == []
    assert count(copied_clients, "feedback") == 0, "not only hidden"


def test_what_could_harm_is_told_first_and_what_was_seen_last(copied_clients: Clients) -> None:
    reader, session = copied_clients("reader"), officer(copied_clients)
    ids = [reported(reader, opinion) for opinion in ("harm", "useless", "bad")]
    assert [report.opinion for report in feedback.reports(session)] == ["harm", "bad", "useless"]
    feedback.see(session, ids[0], "reader")
    assert [report.opinion for report in feedback.reports(session)] == ["bad", "useless", "harm"]
    assert feedback.new_reports(session) == {"bad": 1, "useless": 1}


def test_a_site_may_take_none(copied_clients: Clients) -> None:
    settings = copied_clients.settings
    none = replace(settings, web=replace(settings.web, report_days=0))
    with Site(none, HashedWords()) as site:
        reader = Clients(none, site)("reader")
        page = reader.form("/ask", question=QUESTION)
        assert "/report" not in page.text
        reply = reader.form(f"{page.url.path}/report", opinion="bad", comment="")
        assert phrase("feedback.none_taken") in reply.text
    assert count(copied_clients, "feedback") == 0


@pytest.mark.slow
def test_a_safety_officer_deletes_a_report(copied_clients: Clients) -> None:
    id_ = reported(copied_clients("reader"))
    safety = copied_clients("safety")
    assert copied_clients("librarian").form("/safety/reports/delete", answer_id=id_, user="reader").status_code == 403
    safety.form("/safety/reports/delete", answer_id=id_, user="reader")
    assert count(copied_clients, "feedback") == 0
    assert safety.form("/safety/reports/delete", answer_id=id_, user="reader").status_code == 404


def test_an_order_and_a_record_are_in_no_list_and_in_no_table_and_go_after_a_shift(copied_clients: Clients) -> None:
    reader, safety, librarian = (copied_clients(name) for name in ("reader", "safety", "librarian"))
    order = reader.form("/orders", order="Paracetamol 1 g p.o. zzz-order", questions="May I eat zzz-asked?").url.path
    values = {"form": reader.token(), "question": QUESTION, "record": "Allergies: zzz-record"}
    record = reader.http.post("/practice", data=values).url.path
    plain = reader.form("/practice", question="Is warfarin for adults?").url.path
    for path in (order, record):
        assert "zzz" in reader.get(path).text, "it can be reopened"
        reader.form(f"{path}/report", opinion="bad", comment="")
    shown = [reader.get("/"), reader.get("/history"), safety.get("/safety"), librarian.get("/library/questions")]
    assert {page.status_code for page in shown} == {200}
    lists = [page.text for page in shown]
    assert not [page for page in lists if "zzz" in page or QUESTION in page]
    assert said("web.history.patient_of", workflow=said("workflow_name.explain")) in lists[1]
    assert "Is warfarin for adults?" in lists[1]
    with rows(copied_clients.settings.data) as state:
        tables = [name for (name,) in state.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        stored = repr([state.execute(f"SELECT * FROM {name}").fetchall() for name in tables])
        assert "zzz" not in stored
        state.execute("UPDATE answers SET time = time - ?", (13 * history.HOUR,))
    assert [reader.get(path).status_code for path in (order, record, plain)] == [404, 404, 200]
    assert plain in (listed := reader.get("/history").text)
    assert order not in listed
    reader.form("/ask", question=QUESTION)
    assert count(copied_clients, "answers") == 2, "not only hidden"


def test_what_is_too_old_goes_when_anybody_signs_out(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    reader.form("/ask", question=QUESTION)
    with rows(copied_clients.settings.data) as state:
        state.execute("UPDATE answers SET time = time - ?", (8 * history.DAY,))
    other = copied_clients("safety")
    other.form("/logout")
    assert (count(copied_clients, "answers"), count(copied_clients, "cited")) == (0, 0)


@pytest.mark.slow
def test_a_person_is_erased_with_all_that_they_asked(copied_clients: Clients) -> None:
    reported(copied_clients("reader"))
    reported(copied_clients("librarian"))
    history.erase(officer(copied_clients), "reader")
    with rows(copied_clients.settings.data) as state:
        users = [state.execute(f"SELECT user FROM {table}").fetchall() for table in ("answers", "feedback")]
    assert users == [[("librarian",)], [("librarian",)]]
