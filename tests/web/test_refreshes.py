"""Refreshes in the window: reports, what is on hold, the banner, and recalled answers in the history."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import localmed
from localmed.domain import Collection, SearchFilter, message
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.nights import FAILED, SERVED
from localmed.ingest.manifest import Manifest
from localmed.library import generations
from localmed.library.catalogue import ImportedFile
from localmed.messages import LANGUAGES, render
from localmed.nightly import nights, refresh
from localmed.people import history
from localmed.presentation.pages import moment
from localmed.site import alerts, changes, holds, importing
from localmed.site.session import Session, caller_of
from tests.web.conftest import Clients
from tests.web.test_library import session_of
from tests.words import phrase, said

REASON = message("hold.rolled_back", number=3)


def test_what_is_on_hold_is_shown_and_released(copied_clients: Clients) -> None:
    data = copied_clients.settings.data
    holds.hold(data, [ImportedFile("ward", "/srv/<b>.txt", "0" * 64, "")], REASON, "it")
    librarian = copied_clients("librarian")
    page = librarian.get("/library/refreshes").text
    assert "/srv/&lt;b&gt;.txt" in page
    assert said("hold.rolled_back", number=3) in page
    librarian.form("/library/refreshes/release", path="/srv/<b>.txt")
    assert not holds.holds(data)


def test_a_library_without_a_refresh_says_so_to_librarians(copied_clients: Clients) -> None:
    librarian, told = copied_clients("librarian"), said("web.health.no_night")
    assert all(told in librarian.get(path).text for path in ("/", "/library/refreshes"))
    assert told not in copied_clients("reader").get("/").text
    data = copied_clients.settings.data
    nights.end(data, replace(nights.begin(data, 10), outcome=SERVED, by_hand=True))
    assert all(told in librarian.get(path).text for path in ("/", "/library/refreshes")), "that was no night"
    nights.end(data, replace(nights.begin(data, 10), outcome=SERVED))
    assert not any(told in librarian.get(path).text for path in ("/", "/library/refreshes"))


def test_watched_folders_are_named_with_what_of_them_is_in_quarantine(copied_clients: Clients, tmp_path: Path) -> None:
    folder, alone, gone = tmp_path / "<wards>", tmp_path / "alone", str(tmp_path / "not mounted")
    for name in (folder, alone):
        name.mkdir()
        (name / "falls.md").write_text("# Falls\n\nOnce.")
        (name / "torn.pdf").write_text("no PDF")
    session = session_of(copied_clients)
    importing.import_paths(session, [folder], Manifest(Collection("ward", "Ward documents")))
    importing.import_paths(session, [alone / "falls.md"], Manifest(Collection("single", "One file")))
    settings = session.settings
    session.settings = replace(settings, refresh=replace(settings.refresh, folders={"ward": (gone,), "new": (gone,)}))
    shown = {(one.collection, one.folder): one for one in refresh.watched(session)}
    assert (shown["ward", str(folder)].files, shown["ward", str(folder)].refused) == (0, 1)
    assert (shown["single", str(alone)].files, shown["single", str(alone)].refused) == (1, 0)
    assert shown["ward", gone].fault == message("source.missing", path=gone)
    assert shown["new", gone].fault, "no such collection"
    page = copied_clients("librarian").get("/library/refreshes").text
    assert "/&lt;wards&gt;</td>" in page
    assert '<a href="/library/quarantine?collection=ward">1</a>' in page


def test_a_library_without_a_refresh_says_when_one_runs(copied_clients: Clients) -> None:
    page = copied_clients("librarian").get("/library/refreshes").text
    assert said("web.refreshes.none_yet") in page
    timer = (Path(localmed.__file__).parents[1] / "installers/systemd/localmed-refresh.timer").read_text()
    [time] = re.findall(r"OnCalendar=.* (\d\d:\d\d):00", timer)
    assert all(time in render(message("web.refreshes.what"), language) for language in LANGUAGES)


def test_an_empty_library_watches_nothing(empty_clients: Clients) -> None:
    assert refresh.watched(session_of(empty_clients)) == []


def test_a_report_is_a_page_of_its_own(copied_clients: Clients) -> None:
    data = copied_clients.settings.data
    night = nights.end(data, replace(nights.begin(data, 10), outcome=FAILED, errors=(REASON,)))
    address = f"/library/refreshes/{night.number}"
    assert f'src="{address}/report"' in copied_clients("librarian").get(address).text
    reply = copied_clients("librarian").get(f"{address}/report")
    assert "style-src 'unsafe-inline'" in reply.headers["content-security-policy"], "else it is bare"
    page = reply.text
    assert said("hold.rolled_back", number=3) in page
    assert moment(night.started) in page
    assert night.started not in page
    assert "<script" not in page
    assert copied_clients("librarian").get("/library/refreshes/999").status_code == 404


def test_what_a_refresh_changed_is_listed_as_it_was_and_as_it_is(copied_clients: Clients, tmp_path: Path) -> None:
    data, session = copied_clients.settings.data, session_of(copied_clients)
    folder, manifest = tmp_path / "ward", Manifest(Collection("ward", "Ward documents"))
    numbers = []
    for name, text in (
        ("fall.md", "# Falls\n\nOnce."),
        ("fall.md", "# Falls after surgery\n\nTwice."),
        ("new.md", "# New\n\nOne."),
    ):
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(text)
        importing.import_paths(session, [folder], manifest)
        numbers.append(generations.served_number(data))
    night = replace(nights.begin(data, 10), outcome=SERVED, before=numbers[0], generation=numbers[2], errors=(REASON,))
    nights.end(data, night)
    librarian = copied_clients("librarian")
    first = librarian.get("/").text
    assert f'href="/library/refreshes/{night.number}"' in first
    assert said("hold.rolled_back", number=3) in first, "what failed is told on the first page"
    assert f"/library/refreshes/{night.number}" not in copied_clients("reader").get("/").text
    page = librarian.get(f"/library/refreshes/{night.number}").text
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)[1:]]
    shown = {re.sub("<[^>]+>", "", title): (was.split("<br>")[0], now.split("<br>")[0]) for title, was, now in rows}
    assert shown["Falls after surgery"] == ("Falls", "Falls after surgery")
    assert shown["New"][0] == "–"
    assert len(shown) == 2, "what is as it was is not listed"
    pruned = nights.end(data, replace(nights.begin(data, 10), outcome=SERVED, before=999, generation=numbers[2]))
    assert said("web.refreshes.not_kept") in librarian.get(f"/library/refreshes/{pruned.number}").text


def test_the_banner_says_to_each_what_they_can_use(copied_clients: Clients) -> None:
    alerts.tell(copied_clients.settings, "canaries", message("canary.lost.what", count=1, ids=("sepsis-hour",)))
    assert "sepsis-hour" in copied_clients("librarian").get("/").text
    page = copied_clients(SessionRole.READER).get("/").text
    assert "sepsis-hour" not in page
    assert phrase("alert.for_readers") in page
    alerts.clear(copied_clients.settings.data, "canaries")
    assert phrase("alert.for_readers") not in copied_clients(SessionRole.READER).get("/").text


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
