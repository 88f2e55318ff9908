"""The library's pages: collections, documents, governance, quarantine, generations; what a librarian changes there."""

from __future__ import annotations

import html
import json
import re
import threading
import time
from typing import Any

import pytest

from localmed.domain import Collection, Message
from localmed.domain.accounts import SessionRole
from localmed.ingest.manifest import Manifest, load
from localmed.library.governed import heading_field
from localmed.process.hooks import Hooks
from localmed.site import changes, importing, jobs, lookups
from localmed.site.governing import Change
from localmed.site.session import Session, local_caller
from localmed.upkeep import doctor
from tests.fakes import write
from tests.web.conftest import Client, Clients
from tests.words import phrase, said


def session_of(clients: Clients) -> Session:
    return Session(clients.site, local_caller(clients.settings))


def document_id(clients: Clients, title: str) -> str:
    documents = lookups.documents(session_of(clients))
    return next(document.id for document in documents if document.title.startswith(title))


def test_the_library_of_an_empty_machine_can_be_opened(empty_clients: Clients) -> None:
    from localmed.domain.accounts import Account
    from localmed.people import accounts
    from tests.web.conftest import PASSWORD

    accounts.create(session_of(empty_clients), Account("librarian", SessionRole.LIBRARIAN), PASSWORD)
    librarian = empty_clients("librarian")
    assert librarian.get("/library/collections").status_code == 200
    assert librarian.get("/library/generations").status_code == 200
    reply = librarian.form("/library/collections", name="ward", title="Ward", priority="7", kind="guideline")
    assert said("job.changed") in reply.text
    assert 'href="/library/collections/ward"' in reply.text
    assert lookups.collection(session_of(empty_clients), "ward").priority == 7


def test_a_collection_is_made_changed_restricted_and_deleted(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    assert librarian.form("/library/collections", name="../x", priority="1").status_code == 400
    assert librarian.form("/library/collections", name="ward", priority="1").status_code == 400, "there is one"
    assert librarian.form("/library/collections", name="notes", priority="many").status_code == 400
    librarian.form("/library/collections", name="notes", title="<b>Notes</b>", priority="3", groups="ward, icu")
    row = next(row for row in lookups.collections(session_of(copied_clients)) if row.collection.name == "notes")
    assert (row.collection.priority, row.groups) == (3, ("icu", "ward"))
    page = librarian.get("/library/collections").text
    assert "&lt;b&gt;Notes&lt;/b&gt;" in page
    assert "<b>Notes" not in page
    librarian.form("/library/collections/notes", title="Notes", priority="4", groups="")
    row = next(row for row in lookups.collections(session_of(copied_clients)) if row.collection.name == "notes")
    assert (row.collection.title, row.collection.priority, row.groups) == ("Notes", 4, ())
    librarian.form("/library/collections/notes/delete")
    assert "notes" not in lookups.collection_names(session_of(copied_clients))


def test_documents_are_listed_by_collection_status_and_title(client: Clients) -> None:
    librarian = client("librarian")
    assert "Sepsis: the first hour" in librarian.get("/library/documents?collection=ward").text
    assert "Sepsis" in librarian.get("/library/documents?status=current").text
    assert "Sepsis" not in librarian.get("/library/documents?status=withdrawn").text
    page = librarian.form("/library/documents", title="hypertension guideline").text
    assert "Hypertension guideline" in page
    assert "Sepsis" not in page
    assert librarian.get("/library/documents?collection=nowhere").status_code == 404


@pytest.mark.parametrize("path", ["..%2f..%2fetc%2fpasswd", "' OR 1=1 --", "%00"])
@pytest.mark.slow
def test_ids_that_are_none_are_no_page(client: Clients, path: str) -> None:
    librarian = client("librarian")
    for base in ("/library/documents", "/library/collections", "/library/governance", "/library/generations"):
        assert librarian.get(f"{base}/{path}").status_code in (400, 404)


def test_a_withdrawal_holds_at_once_and_asks_why(copied_clients: Clients) -> None:
    librarian, sepsis = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    assert librarian.form(f"/library/documents/{sepsis}/withdraw", reason=" ").status_code == 400
    copied_clients("reader").form("/ask", question="Antibiotics within one hour in septic shock?")
    page = librarian.form(f"/library/documents/{sepsis}/withdraw", reason="recalled").text
    assert " · librarian · recalled</p>" in page
    assert f"<dt>{said('web.documents.answers')}</dt><dd>1</dd>" in page
    assert "reader" not in page, "who asked is for the safety officer"
    assert said("web.notice.withdrawn") in page
    assert "Reinstate" in page
    assert lookups.document(session_of(copied_clients), sepsis).status == "withdrawn"
    librarian.form(f"/library/documents/{sepsis}/reinstate", reason="a mistake")
    assert lookups.document(session_of(copied_clients), sepsis).status == "current"


@pytest.mark.slow
def test_a_document_is_superseded_made_current_governed_and_removed(copied_clients: Clients) -> None:
    librarian, sepsis = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    base = f"/library/documents/{sepsis}"
    assert librarian.form(f"{base}/supersede", successor="ffffffffff").status_code == 404
    librarian.form(f"{base}/supersede", successor=document_id(copied_clients, "Paracetamol"))
    assert lookups.document(session_of(copied_clients), sepsis).status == "superseded"
    librarian.form(f"{base}/current")
    assert lookups.document(session_of(copied_clients), sepsis).status == "current"
    wrong = librarian.form(f"{base}/govern", owner="Dr Lin", review_by="31/12/2026")
    assert wrong.status_code == 400
    assert "is not a date" in wrong.text
    assert 'value="Dr Lin"' in wrong.text, "what was typed is there to be corrected"
    librarian.form(f"{base}/govern", owner="Dr Lin", review_by="2020-01-01")
    stored = lookups.document(session_of(copied_clients), sepsis)
    assert (stored.governance.owner, stored.governance.review_by) == ("Dr Lin", "2020-01-01")
    assert said("answer.overdue", date="2020-01-01") in librarian.get(base).text
    assert "Sepsis" in librarian.get("/library/review").text
    librarian.form(f"{base}/remove")
    assert librarian.get(base).status_code == 404


def test_what_is_withdrawn_is_not_overdue_for_review(copied_clients: Clients) -> None:
    session = session_of(copied_clients)
    sepsis = lookups.document(session, document_id(copied_clients, "Sepsis"))
    changes.govern(session, [Change((sepsis,), {"review_by": "2020-01-01"})])
    assert _overdue(copied_clients) == 1
    changes.withdraw(session, sepsis, True, "recalled")
    assert _overdue(copied_clients) == 0
    librarian = copied_clients("librarian")
    assert sepsis.title not in librarian.get("/library/review").text
    assert phrase("answer.overdue") not in librarian.get(f"/library/documents/{sepsis.id}").text


def test_a_missed_review_is_work_of_the_librarian_and_no_fault_of_the_machine(copied_clients: Clients) -> None:
    session = session_of(copied_clients)
    changes.govern(session, [Change((lookups.document(session, document_id(copied_clients, "Sepsis")),),
                                    {"review_by": "2020-01-01"})])  # fmt: skip
    (check,) = checks = tuple(doctor.governance(doctor.Site.of(copied_clients.site)))
    assert (check.level, doctor.worst(checks)) == (doctor.Level.NOTICE, doctor.Level.OK)
    page = copied_clients("admin").get("/admin/health").text
    assert f'<td>{said("doctor.level_notice")}</td><th scope="row">{said("doctor.name_governance")}</th>' in page
    told = said("doctor.governance.what", overdue=1, waiting=0, unowned=6, undated=5)
    assert page.count(told) == 1, "not among the faults"


def _overdue(clients: Clients) -> object:
    """What Health says is overdue for review."""
    (check,) = doctor.governance(doctor.Site.of(clients.site))
    return dict(check.messages[0].parameters)["overdue"]


def test_what_is_superseded_by_nothing_named_says_what_holds(copied_clients: Clients) -> None:
    librarian, sepsis = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    title = lookups.document(session_of(copied_clients), sepsis).title
    page = librarian.form(f"/library/documents/{sepsis}/supersede", successor="").text
    assert said("documents.marked", title=title, status=Message("documents.status_superseded")) in page
    assert said("job.changed") not in page
    assert said("web.documents.superseded_holds") in page
    assert said("web.documents.superseded_unnamed") in page
    page = librarian.form(f"/library/documents/{sepsis}/supersede", successor=document_id(copied_clients, "Para")).text
    assert said("web.documents.superseded_holds") in page
    assert said("web.documents.superseded_unnamed") not in page
    page = librarian.form(f"/library/documents/{sepsis}/current").text
    assert said("documents.marked", title=title, status=Message("documents.status_current")) in page


def sheet_of(client: Client) -> dict[str, str]:
    """The fields of the table as a browser would send them back."""
    page = client.get("/library/governance/ward").text
    inputs = re.findall(r'<input[^>]*name="((?:row|cell)-[^"]+)"[^>]*value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in inputs}


def test_the_governance_table_sets_what_was_changed(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    fields = sheet_of(librarian)
    number = next(name[4:] for name, row in fields.items() if name.startswith("row-") and "sepsis" in row)
    before = len(lookups.generations_kept(session_of(copied_clients)))
    assert librarian.form("/library/governance/ward", **fields).status_code == 200
    assert len(lookups.generations_kept(session_of(copied_clients))) == before, "nothing was changed"
    reply = librarian.form(
        "/library/governance/ward", **{**fields, f"cell-{number}-3": "Dr Wu", f"cell-{number}-6": "x"}
    )
    assert reply.status_code == 400
    assert "is not a date" in reply.text
    assert 'value="Dr Wu"' in reply.text, "what was typed is there to be corrected"
    librarian.form("/library/governance/ward", **{**fields, f"cell-{number}-3": "Dr Wu"})
    sepsis = document_id(copied_clients, "Sepsis")
    assert lookups.document(session_of(copied_clients), sepsis).governance.owner == "Dr Wu"
    stale = librarian.form("/library/governance/ward", **{**fields, f"cell-{number}-3": "Dr Lin"})
    assert stale.status_code == 400, "another tab has set it meanwhile"
    assert lookups.document(session_of(copied_clients), sepsis).governance.owner == "Dr Wu"


@pytest.mark.parametrize("row", ["", "[1, 2]", "[" * 5000])
def test_a_table_that_no_page_sent_is_refused(client: Clients, row: str) -> None:
    reply = client("librarian").form("/library/governance/ward", **{"row-1": row, "cell-1-1": "x"})
    assert reply.status_code in (200, 400)


def test_the_quarantine_says_why(client: Clients) -> None:
    page = client("librarian").get("/library/quarantine").text
    assert "broken.pdf" in page
    assert client("librarian").get("/library/quarantine?collection=ward").status_code == 200


@pytest.mark.slow
def test_a_collection_is_brought_up_to_date_and_the_library_verified(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    for change in ("update", "retry"):
        assert librarian.form(f"/library/collections/ward/{change}").status_code == 200
    assert said("web.generations.confirm_what") in librarian.get("/library/generations").text
    assert phrase("web.generations.whole") in librarian.form("/library/generations/verify").text
    damaged = next(copied_clients.settings.data.glob("files/*"))
    damaged.chmod(0o600)
    damaged.write_bytes(b"other")
    assert damaged.name[:12] in librarian.form("/library/generations/verify").text


def test_going_back_says_what_it_undoes(copied_clients: Clients) -> None:
    librarian, sepsis = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    librarian.form(f"/library/documents/{sepsis}/govern", owner="Dr Lin")
    first, second = [row.number for row in lookups.generations_kept(session_of(copied_clients))][-2:]
    page = librarian.get(f"/library/generations/{first}").text
    assert f"Go back to generation {first}?" in page
    assert "owner" in page
    assert librarian.get("/library/generations/999").status_code == 404
    reply = librarian.form(f"/library/generations/{first}/rollback")
    assert said("job.rolled_back") in reply.text
    assert lookups.document(session_of(copied_clients), sepsis).governance.owner == ""
    assert second


def test_librarians_see_the_questions_that_found_nothing_or_were_marked_bad(copied_clients: Clients) -> None:
    """Neither who asked nor who the patient is; nothing of answers that nobody complained about."""
    reader, librarian = copied_clients("reader"), copied_clients("librarian")
    assert phrase("web.questions.none") in librarian.get("/library/questions").text
    reader.form("/ask", question="患者张建国，男：火山为什么会喷发？")
    good = reader.form("/ask", question="What is the loading dose of vancomycin?").url.path
    reader.form(f"{good}/report", opinion="good", comment="")
    bad = reader.form("/ask", question="What is the maximum dose of paracetamol in adults?").url.path
    reader.form(f"{bad}/report", opinion="bad", comment="a secret remark")
    page = librarian.get("/library/questions").text
    assert "火山为什么会喷发" in page
    assert "maximum dose of paracetamol" in page
    assert not [word for word in ("张建国", "vancomycin", "secret remark", ">reader<") if word in page]
    assert reader.get("/library/questions").status_code == 403


def test_a_change_is_a_job_that_is_begun_once(copied_clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    """The click is answered while the change still goes on; a second one, also without a script, begins no other."""
    librarian, go_on = copied_clients("librarian"), threading.Event()
    marked, mark = list[str](), changes.mark

    def slow(*arguments: Any) -> int:
        assert go_on.wait(600)
        marked.append(arguments[1].id)
        return mark(*arguments)

    monkeypatch.setattr(changes, "mark", slow)
    path = f"/library/documents/{document_id(copied_clients, 'Sepsis')}/supersede"
    fields = {"form": librarian.token(), "successor": ""}
    first, second = (librarian.http.post(path, data=fields) for _ in range(2))
    assert first.url.path.startswith("/jobs/")
    assert '<meta http-equiv="refresh" content="2;url=/jobs/' in first.text, "it goes on without a script"
    assert first.url == second.url
    go_on.set()
    ended = librarian.ended(first)
    outcome = Message("documents.status_superseded")
    assert said("documents.marked", title="Sepsis: the first hour", status=outcome) in ended.text
    assert ended.url.path == path.removesuffix("/supersede")
    assert len(marked) == 1
    assert librarian.form(path.replace("supersede", "current")).url != first.url, "what has ended can be done again"


def test_a_job_shows_how_far_it_is_and_can_be_ended(copied_clients: Clients) -> None:
    def work(hooks: Hooks) -> Message:
        hooks.progress(1, 4, "sepsis.md")
        for _ in range(6000):
            hooks.cancel.check()
            time.sleep(0.1)
        raise AssertionError("nobody ended it")

    librarian, session = copied_clients("librarian"), session_of(copied_clients)
    path, end = f"/jobs/{jobs.start(session, 'import', work)}", time.monotonic() + 600
    while "25%" not in (page := librarian.get(path).text):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "sepsis.md" in page
    assert 'max="4.0" value="1.0"' in page
    assert copied_clients("reader").get(path).status_code == 404, "it is another's"
    ended = librarian.form(f"{path}/cancel")
    assert phrase("job.failed") in ended.text
    assert phrase("job.failed") not in copied_clients("reader").get(str(ended.url)).text, "it is another's"


@pytest.mark.slow
def test_a_change_that_fails_says_why_in_a_line(copied_clients: Clients) -> None:
    librarian, sepsis = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    for language in ("en", "zh"):
        librarian.http.cookies.set("localmed_language", language)
        page = librarian.form(f"/library/documents/{sepsis}/supersede", successor=sepsis).text
        assert phrase("job.failed", language) in page
    assert lookups.document(session_of(copied_clients), sepsis).status == "current"


def test_a_passage_is_switched_off_noted_and_on_again_at_its_document(copied_clients: Clients) -> None:
    librarian, session = copied_clients("librarian"), session_of(copied_clients)
    document = document_id(copied_clients, "Sepsis")
    passage = lookups.document_details(session, document).passages[0]
    path = f"/library/documents/{document}/passages/{passage.id}"
    assert "Passages with remarks" not in librarian.get("/library/review").text
    page = librarian.form(path, act="note", note="Antibiotics: ask the duty microbiologist").text
    assert said("answer.remark", note="Antibiotics: ask the duty microbiologist") in page
    assert phrase("answer.remark") in librarian.get(f"/passages/{passage.id}").text
    assert "switched off" in librarian.form(path, act="off").text
    assert "switched off" in librarian.get("/library/review").text
    assert "Sepsis" not in librarian.form("/ask", question="septic shock antibiotics").text
    assert "Antibiotics: ask" in librarian.form(path, act="on").text
    assert librarian.form(path, act="else").status_code == 400
    assert copied_clients("reader").form(path, act="off").status_code == 403


def test_many_documents_are_set_in_the_list_and_one_on_its_page(copied_clients: Clients) -> None:
    librarian, session = copied_clients("librarian"), session_of(copied_clients)
    chosen = [document_id(copied_clients, title) for title in ("Sepsis", "Paracetamol")]
    token = librarian.token()
    sent = {"form": token, "document": chosen, "owner": "Dr Lin", "tags": "icu", "review_by": "soon"}
    reply = librarian.http.post("/library/documents/set", data=sent)
    assert reply.status_code == 400
    assert 'value="soon"' in reply.text
    assert reply.text.count(" checked") == 2
    librarian.ended(librarian.http.post("/library/documents/set", data=sent | {"review_by": ""}))
    assert {lookups.document(session, one).governance.owner for one in chosen} == {"Dr Lin"}
    assert "documents: 2" in librarian.form("/library/documents", title="icu").text
    assert librarian.form("/library/documents/set", owner="Dr Wu").status_code == 400, "none was chosen"
    librarian.form(f"/library/documents/{chosen[0]}/govern", title="Septic shock", tags="icu, night")
    document = lookups.document(session, chosen[0])
    assert (document.title, document.tags) == ("Septic shock", ("icu", "night"))


def test_what_nobody_answers_for_or_reviews_is_counted_and_listed(copied_clients: Clients) -> None:
    librarian, sepsis = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    count = len(lookups.documents(session_of(copied_clients)))
    librarian.form(f"/library/documents/{sepsis}/govern", owner="Dr Lin")
    page = librarian.get("/library/review").text
    assert said("web.review.unowned", count=count - 1) in page
    assert said("web.review.undated", count=count) in page
    listed = librarian.get("/library/documents?only=unowned").text
    assert f"/library/documents/{sepsis}" not in listed
    assert f"/library/documents/{sepsis}" in librarian.get("/library/documents?only=undated").text


def test_a_form_that_is_older_than_a_save_does_not_undo_it(copied_clients: Clients) -> None:
    librarian, sepsis = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    base = f"/library/documents/{sepsis}"
    shown = dict(re.findall(r'name="(was-[^"]+)" value="([^"]*)"', librarian.get(base).text))
    librarian.form(f"{base}/govern", **shown, title="Septic shock", owner="")
    librarian.form(f"{base}/govern", **shown, title=shown["was-title"], owner="Dr Lin")
    stored = lookups.document(session_of(copied_clients), sepsis)
    assert (stored.title, stored.governance.owner) == ("Septic shock", "Dr Lin")


def test_a_form_that_cannot_be_taken_keeps_what_was_typed(copied_clients: Clients) -> None:
    librarian, admin = copied_clients("librarian"), copied_clients("admin")
    wrong = librarian.form("/library/collections", name="notes", title="Night notes", priority="many", groups="icu")
    assert wrong.status_code == 400
    assert all(f'value="{typed}"' in wrong.text for typed in ("notes", "Night notes", "many", "icu"))
    assert phrase("web.collections.priority_wrong") in wrong.text
    wrong = librarian.form("/library/collections", name="notes", priority="1", groups="a/b")
    assert (wrong.status_code, 'value="a/b"' in wrong.text) == (400, True)
    wrong = librarian.form("/library/collections/ward", title="Wards 1 to 4", priority="-1")
    assert (wrong.status_code, 'value="Wards 1 to 4"' in wrong.text) == (400, True)
    sepsis = document_id(copied_clients, "Sepsis")
    wrong = librarian.form(f"/library/documents/{sepsis}/withdraw", reason="x" * 501)
    assert (wrong.status_code, "x" * 501 in wrong.text) == (400, True)
    wrong = admin.form("/admin/accounts", user="dr lin", password="kurz1", role="librarian", groups="icu")
    assert wrong.status_code == 400
    assert 'value="dr lin"' in wrong.text
    assert "kurz1" not in wrong.text


def test_what_supersedes_is_picked_from_the_documents(client: Clients) -> None:
    page = client("librarian").get(f"/library/documents/{document_id(client, 'Sepsis')}").text
    picker = page[page.index('<select id="successor"') :].partition("</select>")[0]
    assert document_id(client, "Paracetamol") in picker
    assert document_id(client, "Sepsis") not in picker
    assert document_id(client, "探视指南") not in picker, "another language"


MISREAD = """# Potassium guideline

## Dose

Give 20 mmol of potassium chloride in one hour.

## Never give it undiluted.

It can stop the heart.

### Mintoring

Watch the rhythm on a monitor.
"""


def test_headings_that_were_read_wrongly_are_corrected_and_undone(copied_clients: Clients) -> None:
    session, reader = session_of(copied_clients), copied_clients("reader")
    folder = copied_clients.settings.data.parent / "heart"
    manifest = Manifest(Collection("heart", "Heart"))
    importing.import_paths(session, [write(folder, {"potassium.md": MISREAD})], manifest)
    librarian, id_ = copied_clients("librarian"), document_id(copied_clients, "Potassium")
    path = f"/library/documents/{id_}"

    def form() -> dict[str, str]:
        """What the page's form says before anything is typed."""
        rows = re.findall(r'<input name="(heading [^"]*)" value="([^"]*)"', librarian.get(path).text)
        return {html.unescape(name): html.unescape(value) for name, value in rows}

    def stored() -> list[tuple[tuple[str, ...], str]]:
        return [(it.headings[1:], it.text) for it in lookups.document_details(session, id_).passages]

    def found() -> list[str]:
        page = reader.form("/search", question="how much potassium chloride in one hour", collection="heart").text
        return re.findall(r"<h3><a [^>]*>([^<]*)", page)

    as_read = stored()
    wrong, spelt = (
        next(name for name in form() if json.loads(name[8:])[-1] == it)
        for it in ("Never give it undiluted.", "Mintoring")
    )
    librarian.form(f"{path}/headings", **form() | {f"no {wrong}": "1", spelt: "Monitoring"})
    corrected = stored()
    assert corrected == [
        (("Dose",), "Give 20 mmol of potassium chloride in one hour."),
        (("Dose",), "Never give it undiluted.\nIt can stop the heart."),
        (("Dose", "Monitoring"), "Watch the rhythm on a monitor."),
    ]
    assert found()[0] == "Dose"
    assert not {"Mintoring", "Never give it undiluted."} & {*found()}
    changes.reindex(session, again=True)
    assert stored() == corrected
    write(folder, {"potassium.md": MISREAD + "\n## Later\n\nMore.\n"})
    importing.import_paths(session, [folder], manifest)
    assert stored() == [*corrected, (("Later",), "More.")]
    for name in (wrong, spelt):
        librarian.form(f"{path}/headings", undo=name, **form())
    assert stored() == [*as_read, (("Later",), "More.")]


def test_the_page_of_what_is_no_heading_is_shown(copied_clients: Clients) -> None:
    librarian, id_ = copied_clients("librarian"), document_id(copied_clients, "Vancomycin")
    field = heading_field(("Vancomycin",))
    librarian.form(f"/library/documents/{id_}/headings", **{field: "Vancomycin", f"no {field}": "1"})
    passage = lookups.document_details(session_of(copied_clients), id_).passages[-1]
    assert (passage.text[: passage.lead], passage.headings) == ("Vancomycin\n", ("Introduction",))
    assert librarian.get(f"/passages/{passage.id}/image?start=0&end=10").content[:4] == b"\x89PNG"


def test_no_hash_and_no_path_of_the_server_is_shown_but_under_details(copied_clients: Clients) -> None:
    librarian, old = copied_clients("librarian"), document_id(copied_clients, "Sepsis")
    librarian.form(f"/library/documents/{old}/supersede", successor=document_id(copied_clients, "Paracetamol"))
    librarian.form("/library/refreshes/begin")
    for path in (
        f"/library/documents/{old}",
        "/library/generations",
        "/library/quarantine",
        "/library/refreshes/1/report",
    ):
        page = librarian.get(path).text
        seen = re.sub(r"<[^>]*>", " ", re.sub(r"(?s)<details>.*?</details>|<style>.*?</style>", "", page))
        assert re.findall(r"\b[0-9a-f]{12,}\b|\s/\w+/\S+", seen) == [], path
    assert old in librarian.get(f"/library/documents/{old}").text


LISTED = """name = "listed"
title = "Listed"
kind = "guideline"

[documents."cough.md"]
title = "Cough"
owner = "Dr Wu"
"""


def test_what_a_list_of_sources_sets_is_told_before_anything_is_typed(copied_clients: Clients) -> None:
    session, folder = session_of(copied_clients), copied_clients.settings.data.parent / "listed"
    file = folder / "listed.toml"
    written = write(folder, {"cough.md": "# Cough\n\nGive honey.\n"})
    file.write_text(LISTED)
    importing.import_paths(session, [written / "cough.md"], load(file), file)
    librarian, id_ = copied_clients("librarian"), document_id(copied_clients, "Cough")
    page = librarian.get(f"/library/documents/{id_}").text
    assert said("web.documents.fixed") in page
    assert not re.search(r'<input[^>]* name="owner"', page)
    assert "Dr Wu" in page
    librarian.form(f"/library/documents/{id_}/govern", review_by="2030-01-01")
    assert lookups.document(session, id_).governance.review_by == "2030-01-01", "the other fields are saved"
    assert librarian.form(f"/library/documents/{id_}/govern", owner="Dr Li").status_code == 400
    librarian.form(f"/library/documents/{id_}/govern", title="Coughing")
    write(folder, {"cough.md": "# Cough\n\nGive honey and rest.\n"})
    importing.import_paths(session, [written / "cough.md"], load(file), file)
    assert document_id(copied_clients, "Coughing"), "a librarian's title outlives the list's"
