"""Refreshes in the window: reports, what is on hold, the banner, and recalled answers in the history."""

from __future__ import annotations

from dataclasses import replace

from localmed.domain import SearchFilter, message
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.nights import FAILED
from localmed.library.candidate import Difference
from localmed.operations import alerts, changes, history, holds, nights
from localmed.session import Session, caller_of
from tests.web.conftest import Clients
from tests.web.test_library import session_of

REASON = message("hold.rolled_back", number=3)


def test_what_is_on_hold_is_shown_and_released(copied_clients: Clients) -> None:
    data = copied_clients.settings.data
    holds.hold(data, [Difference("ward", "/srv/<b>.txt", "0" * 64)], REASON, "it")
    librarian = copied_clients("librarian")
    page = librarian.get("/library/refreshes").text
    assert "/srv/&lt;b&gt;.txt" in page
    assert "generation 3 was rolled back from" in page
    librarian.form("/library/refreshes/release", path="/srv/<b>.txt")
    assert not holds.holds(data)


def test_a_report_is_a_page_of_its_own(copied_clients: Clients) -> None:
    data = copied_clients.settings.data
    night = nights.end(data, replace(nights.begin(data, 10), outcome=FAILED, errors=(REASON,)))
    address = f"/library/refreshes/{night.number}"
    assert f'src="{address}/report"' in copied_clients("librarian").get(address).text
    reply = copied_clients("librarian").get(f"{address}/report")
    assert "style-src 'unsafe-inline'" in reply.headers["content-security-policy"], "else it is bare"
    page = reply.text
    assert "generation 3 was rolled back from" in page
    assert "<script" not in page
    assert copied_clients("librarian").get("/library/refreshes/999").status_code == 404


def test_the_banner_says_to_each_what_they_can_use(copied_clients: Clients) -> None:
    alerts.tell(copied_clients.settings, "canaries", message("canary.lost.what", count=1, ids=("sepsis-hour",)))
    assert "sepsis-hour" in copied_clients("librarian").get("/").text
    page = copied_clients(SessionRole.READER).get("/").text
    assert "sepsis-hour" not in page
    assert "The library could not be renewed" in page
    alerts.clear(copied_clients.settings.data, "canaries")
    assert "could not be renewed" not in copied_clients(SessionRole.READER).get("/").text


def test_an_answer_that_cites_a_withdrawn_document_is_recalled(copied_clients: Clients) -> None:
    reader = Session(copied_clients.site, caller_of(Account("reader", SessionRole.READER), "en"))
    answer = reader.ask("Should antibiotics be given within one hour in septic shock?", SearchFilter())
    assert answer.evidence
    history.keep(reader, "", answer.question, answer)
    assert 'class="warns"' not in copied_clients("reader").get("/history").text
    librarian = session_of(copied_clients)
    with librarian.workspace() as workspace:
        document = workspace.library.catalogue.document(answer.evidence[0].passage.document_id)
    changes.withdraw(librarian, document, True, "wrong")
    assert 'class="warns"' in copied_clients("reader").get("/history").text
