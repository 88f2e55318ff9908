"""Stops, rates, the audit page, health, and that roles cannot reach each other's pages."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from fastapi.routing import APIRoute

from localmed.domain import Collection, Kind
from localmed.domain.accounts import RIGHTS, Right, SessionRole
from localmed.ingest.manifest import Manifest
from localmed.library.journal import ERASED
from localmed.messages import LANGUAGES
from localmed.people import accounts
from localmed.people.sign_on import SIGN_ON
from localmed.site import changes, importing, lookups, stops
from localmed.site.governing import Change
from localmed.site.uploads import dated
from localmed.web import application, pages
from tests.fakes import write
from tests.web.conftest import Client, Clients
from tests.web.test_library import session_of
from tests.words import phrase, said

PREFIXES = {
    "/library": Right.LIBRARY,
    "/safety": Right.SAFETY,
    "/admin/health": Right.MODELS,
    "/admin/backup": Right.MODELS,
}


def stop(client: Client, what: str, reason: str = "doses under review") -> int:
    return client.form("/safety/stop", what=what, reason=reason).status_code


def test_a_stopped_workflow_answers_nobody_and_every_page_says_so(copied_clients: Clients) -> None:
    safety, reader = copied_clients("safety"), copied_clients("reader")
    before = reader.form("/ask", question="dose of paracetamol?").url.path
    assert stop(safety, "workflow ask") == 200
    told = said("web.answer.stopped", reason="doses under review")
    copied = reader.get(before).text.partition('<textarea id="copied"')[2].partition("</textarea>")[0]
    assert told in copied, "what is copied from an old answer says so too"
    for page in (reader.get("/account"), safety.get("/safety"), reader.get("/history")):
        assert "Stopped: Ask · doses under review" in re.sub(r"\s+", " ", page.text)
    reply = reader.http.post("/ask", data={"form": reader.token(), "question": "dose of paracetamol?"})
    assert reply.status_code == 403
    assert "doses under review" in reply.text
    safety.form("/safety/lift", what="workflow ask")
    assert "Stopped:" not in reader.get("/account").text


@pytest.mark.slow
def test_a_stop_of_departments_takes_no_emergency_warning_away(copied_clients: Clients) -> None:
    reader, safety = copied_clients("reader"), copied_clients("safety")
    safety.form("/safety/stop", what="workflow departments", reason="the guide is wrong")
    page = reader.form("/departments", question="crushing chest pain going to my left arm")
    assert page.status_code == 403
    assert said("departments.flag.chest_pain") in page.text
    assert "the guide is wrong" in page.text
    assert said("departments.flag.chest_pain") not in reader.form("/departments", question="itchy toe").text


def test_a_stopped_collection_is_found_by_nobody(copied_clients: Clients) -> None:
    from localmed.domain import SearchFilter

    session = session_of(copied_clients)
    assert session.find("antibiotics in septic shock", SearchFilter(), 5, 5).found.hits
    stop(copied_clients("safety"), "collection ward")
    assert not session.find("antibiotics in septic shock", SearchFilter(), 5, 5).found.hits
    assert copied_clients("librarian").get("/library/collections/ward").status_code == 200
    copied_clients("safety").form("/safety/lift", what="collection ward")
    assert session.find("antibiotics in septic shock", SearchFilter(), 5, 5).found.hits


def test_a_safety_officer_takes_one_document_out_and_readers_open_it_nowhere(copied_clients: Clients) -> None:
    reader, safety = copied_clients("reader"), copied_clients("safety")
    path = reader.form("/ask", question="When are antibiotics given in sepsis?").url.path
    one = next(it for it in lookups.documents(session_of(copied_clients)) if it.title.startswith("Sepsis"))
    passage = lookups.first_passage(session_of(copied_clients), one.id).id
    places = [f"{base}{rest}" for base in (f"/passages/{passage}", f"{path}/sources/1") for rest in ("", "/image")]
    assert [reader.get(place).status_code for place in places] == [200] * len(places)
    assert said("web.safety.take_out") in safety.get(f"/passages/{passage}").text
    assert said("web.safety.take_out") in safety.form("/ask", question="When are antibiotics given in sepsis?").text
    assert said("web.safety.take_out") not in reader.get(f"/passages/{passage}").text
    out = f"/safety/documents/{one.id}"
    for other in (reader, copied_clients("librarian")):
        assert other.form(out, reason="doses").status_code == 403
    assert safety.form(out, reason=" ").status_code == 400
    assert said("web.safety.done_withdrawn", name=dated(one)) in safety.form(out, reason="wrong doses").text
    for place in (*places, f"/documents/{one.id}"):
        closed = reader.get(place)
        assert (closed.status_code, "wrong doses" in closed.text) == (403, True), place
    assert safety.get(f"/passages/{passage}").status_code == 200, "whoever decides must read it"
    page = safety.get("/safety").text
    assert "wrong doses" in page
    assert f'data-confirm="{said("web.safety.lift_sure", name=one.title)}"' in page, "asked before it is back in use"
    assert said("web.safety.done_reinstated", name=dated(one)) in safety.form(out, reason="corrected", back="true").text
    assert [reader.get(place).status_code for place in places] == [200] * len(places)
    assert all(reason in safety.get("/safety").text for reason in ("wrong doses", "corrected")), "the log keeps both"
    log = safety.get(f"/safety?document={one.title[:12]}").text
    assert "wrong doses" in log
    assert "wrong doses" not in safety.get("/safety?document=vancomycin&action=withdraw").text


@pytest.mark.usefixtures("reranked")
def test_a_stopped_model_serves_nothing(copied_clients: Clients) -> None:
    safety = copied_clients("safety")
    assert copied_clients.site.reranker is not None
    stop(safety, "model reranker")
    assert copied_clients.site.reranker is None
    safety.form("/safety/lift", what="model reranker")
    assert copied_clients.site.reranker is not None


@pytest.mark.parametrize("what", ["", "workflow", "workflow x", "model encoder", "collection ../x", "disk all"])
@pytest.mark.slow
def test_what_cannot_be_stopped_is_refused(copied_clients: Clients, what: str) -> None:
    assert stop(copied_clients("safety"), what) == 404
    assert stop(copied_clients("safety"), "workflow ask", "") == 400
    assert stops.stops(copied_clients.settings.data) == ()


def test_the_log_is_shown_filtered_and_names_documents_by_their_titles(copied_clients: Clients) -> None:
    copied_clients("reader").form("/ask", question="When are antibiotics given in sepsis?")
    safety = copied_clients("safety")
    stop(safety, "workflow plan")
    page = safety.get("/safety").text
    for shown in ("<td>Stopped</td>", "localmed-audit-head", phrase("web.safety.newest_whole")):
        assert shown in page
    created = re.findall(r'class="wraps">safety</td>.*?</tr>', safety.get("/safety?action=login").text, re.DOTALL)
    assert created
    assert all(said("web.role.safety") in row for row in created), created
    asked = safety.get("/safety?action=ask").text
    assert said("web.safety.outcome_sections") in asked
    assert "Sepsis: the first hour" in asked
    assert "Statements: 0" not in asked
    assert "<td>Stopped</td>" not in asked
    assert "<td>Stopped</td>" not in safety.get("/safety?day=2001-01-01").text


def test_health_of_an_empty_machine(empty_clients: Clients) -> None:
    monitor = empty_clients()
    assert monitor.get("/health/ready").status_code == 200
    assert monitor.get("/health/answer").json()["faults"] == ["library"]


def test_health_is_told_without_signing_in_and_apart(copied_clients: Clients) -> None:
    monitor = copied_clients()
    for name in ("live", "ready", "answer"):
        assert monitor.get(f"/health/{name}").status_code == 200, name
    stop(copied_clients("safety"), "workflow ask")
    reply = monitor.get("/health/answer")
    assert (reply.status_code, reply.json()) == (503, {"answer": False, "faults": ["stopped"]})
    assert monitor.get("/health/ready").status_code == 200
    (copied_clients.settings.data / "site.sqlite").write_bytes(b"not a database")
    assert monitor.get("/health/ready").json()["faults"] == ["state"]
    assert monitor.get("/health/live").status_code == 200


def test_an_administrator_sees_the_machine(client: Clients) -> None:
    page = client("admin").get("/admin/health").text
    assert "encoder" in page
    wrong = page.count('<td class="warns">') + 1  # no night
    assert len(re.findall("<li>", page.partition('role="status"')[2].partition("</div>")[0])) == wrong
    assert said("web.health.attention", count=wrong) in page
    assert re.search(r'<th scope="row">quarantine</th><td><span>', page), "each line says what was looked at"
    admin = client("admin")
    admin.http.cookies.set("localmed_language", "zh")
    names = re.findall(r'<th scope="row">([^<]+)</th>', admin.get("/admin/health").text)
    assert len(names) > 10
    assert [name for name in names if name.isascii()] == ["Python"]


@pytest.mark.parametrize("role", list(SessionRole))
@pytest.mark.slow
def test_roles_cannot_reach_each_others_pages(client: Clients, role: SessionRole) -> None:
    """Every route of librarians, safety officers and administrators, by every role; and by nobody."""
    created, nobody = client(role), client()
    count = 0
    for route in (route for router in application.ROUTERS for route in router.routes):
        right = next(
            (right for prefix, right in PREFIXES.items() if getattr(route, "path", "").startswith(prefix)), None
        )
        if not isinstance(route, APIRoute) or right is None:
            continue
        path = re.sub(r"{[^}]*}", "1", route.path)
        for method in route.methods or ():
            allowed = right in RIGHTS[role]
            reply = created.http.request(method, path, follow_redirects=False)  # a POST has no token: refused as well
            refused = reply.status_code == 403 or (allowed and method == "GET")
            assert refused, (method, path, reply.status_code)
            assert (reply.status_code == 403) == (not allowed or method != "GET"), (method, path, reply.status_code)
            other = nobody.http.request(method, path, follow_redirects=False)
            assert (other.status_code, other.headers["location"][:6]) == (303, "/login"), (method, path)
            count += 1
    assert count > 25


def audited_actions() -> set[str]:
    """Every action that the code enters in the audit log by a written name."""
    calls = (
        node
        for path in Path(application.__file__).parent.parent.rglob("*.py")
        if path.name not in {"collections.py", "documents.py", "governance.py"}  # begin jobs by names of their own
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
    )
    actions = {accounts.CREATE, accounts.CHANGE, accounts.PASSWORD, SIGN_ON, ERASED[0], stops.STOP, stops.LIFT}
    for call in calls:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in {"change", "note", "note_before", "_building", "entry_of"}:
            literals = [one.value for one in call.args[:2] if isinstance(one, ast.Constant)]
            actions |= {literal for literal in literals[:1] if isinstance(literal, str)}
    return actions | {"withdraw", "reinstate", "update", "refresh"}


@pytest.mark.slow
def test_the_audit_log_is_read_in_both_languages(copied_clients: Clients) -> None:
    assert len(audited_actions()) > 40
    unnamed = [action for action in audited_actions() if pages.named("action", action, "zh") == action]
    assert unnamed == []
    safety = copied_clients("safety")
    stop(safety, "collection ward")
    safety.http.cookies.set("localmed_language", "zh")
    page = safety.get("/safety").text
    assert "<td>停用</td>" in page


def test_where_nothing_is_near_a_stopped_collection_is_named_by_its_title(copied_clients: Clients) -> None:
    reader, asked = copied_clients("reader"), "zzyzx qwxv"
    told = said("workflow.not_searched", name="Ward documents")
    assert told not in reader.form("/ask", question=asked).text
    stop(copied_clients("safety"), "collection ward")
    assert told in reader.form("/ask", question=asked).text


def test_what_was_not_searched_is_named_above_sections_that_were_found(copied_clients: Clients, tmp_path: Path) -> None:
    folder = write(tmp_path / "other", {"falls.md": "# Falls\n\nAsk about falls at every admission.\n"})
    other = Manifest(Collection("other", "Other documents", kind=Kind.GUIDELINE))
    importing.import_paths(session_of(copied_clients), [folder], other)
    stop(copied_clients("safety"), "collection ward")
    reader, told = copied_clients("reader"), said("workflow.not_searched", name="Ward documents")
    for path in ("/ask", "/practice"):
        page = reader.form(path, question="falls at admission").text
        assert "<mark>" in page
        assert told in page
    assert told not in reader.form("/ask", question="falls at admission", collection="other").text


def test_stops_are_listed_by_kind(copied_clients: Clients) -> None:
    safety = copied_clients("safety")
    for what in ("workflow ask", "collection ward", "workflow plan"):
        stop(safety, what)
    page = safety.get("/safety").text
    listed = re.findall(r'<h3>([^<]+)</h3>|name="what" value="(\w+) ', page.partition(' id="what"')[0])
    kinds = [said("web.library.collections"), "collection", said("web.safety.workflow"), "workflow", "workflow"]
    assert [title or kind for title, kind in listed] == kinds


def test_a_stopped_collection_is_shown_to_no_reader(copied_clients: Clients) -> None:
    reader, librarian, safety = (copied_clients(name) for name in ("reader", "librarian", "safety"))
    session = session_of(copied_clients)
    document = next(one for one in lookups.documents(session) if one.title.startswith("Sepsis"))
    changes.govern(session, [Change((document,), {"tags": "favourite"})])
    passage = lookups.first_passage(session, document.id).id
    path = reader.form("/ask", question="When are antibiotics given in sepsis?").url.path
    paths = (f"/documents/{document.id}", f"/passages/{passage}", f"{path}/sources/1", f"/passages/{passage}/image")
    assert f"/documents/{document.id}" in reader.get("/").text
    stop(safety, "collection ward")
    for address in paths:
        reply = reader.get(address)
        assert reply.status_code == 403, address
        assert "doses under review" in reply.text
    assert f"/documents/{document.id}" not in reader.get("/").text
    assert said("web.no_library.title") not in reader.get("/").text + reader.get("/search").text
    told = said("answer.collection_stopped", name="Ward documents", reason="doses under review")
    for address in (path, "/history"):
        page = reader.get(address)
        assert page.status_code == 200
        assert page.text.count(told) == 1
        assert said("web.answer.withdrawn") not in page.text
    for officer in (librarian, safety):
        page = officer.get(paths[1])
        assert f'<strong class="tag">{said("web.stop.collection", name="Ward documents")}</strong>' in page.text
    assert said("web.stop.collection", name="Ward documents") + "</span>" in librarian.get("/library/documents").text
    safety.form("/safety/lift", what="collection ward")
    assert reader.get(paths[0]).status_code == 200


def test_what_a_stopped_collection_may_hold_is_not_called_absent(copied_clients: Clients, tmp_path: Path) -> None:
    session, reader = session_of(copied_clients), copied_clients("reader")
    folder = write(tmp_path / "other", {f"f{n}.md": f"# Falls {n}\n\nAsk about the dose of {n}.\n" for n in range(4)})
    importing.import_paths(session, [folder], Manifest(Collection("other", "Other documents")))
    stop(copied_clients("safety"), "collection ward")
    page = reader.form("/ask", question="paracetamol dose").text
    assert phrase("finding.absent") not in page
    assert said("workflow.not_searched", name="Ward documents") in page
    copied_clients("safety").form("/safety/lift", what="collection ward")
    stop(copied_clients("safety"), "collection other")
    changes.set_access(session, "other", ["icu"])
    page = reader.form("/ask", question="azithromycin dose").text
    assert said("finding.absent", name="azithromycin") in page
    assert "Other documents" not in page, "what one may not read is not even stopped"
    assert "doses under review" not in page


def test_a_stop_is_asked_about_first_and_told_by_its_name(copied_clients: Clients) -> None:
    safety = copied_clients("safety")
    assert (
        f'action="/safety/stop" class="card" data-confirm="{said("web.safety.stop_sure")}"'
        in safety.get("/safety").text
    )
    page = safety.form("/safety/stop", what="collection ward", reason="doses under review").text
    assert said("web.safety.done_stopped", name="Ward documents") in page
    assert f'data-confirm="{said("web.safety.lift_sure", name="Ward documents")}"' in page
    page = safety.form("/safety/lift", what="collection ward").text
    assert said("web.safety.done_lifted", name="Ward documents") in page
    lying = safety.get("/safety", params={"done": "stopped", "what": "collection ward"}).text
    assert phrase("web.safety.done_stopped") not in lying


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_thing_to_stop_has_a_name_of_its_own(client: Clients, language: str) -> None:
    safety = client("safety")
    safety.http.cookies.set("localmed_language", language)
    names = re.findall(r'<option value="(?:workflow|model) [^"]+">([^<]+)<', safety.get("/safety").text)
    assert len(names) == len(set(names)) == len(stops.WORKFLOWS) + len(stops.MODELS)


def test_the_machine_page_says_what_never_ran_and_what_was_changed(copied_clients: Clients) -> None:
    admin = copied_clients("admin")
    assert said("web.health.no_night") in admin.get("/").text
    page = admin.get("/admin/health").text
    assert said("web.health.no_night") in page
    assert said("web.health.changed") not in page
    (copied_clients.settings.data / "localmed.toml").write_text("[ask]\npassages = 3\n", "utf-8")
    assert said("web.health.changed") in admin.get("/admin/health").text


def test_a_stopped_collection_is_not_called_empty_by_a_search(copied_clients: Clients) -> None:
    copied_clients("safety").form("/safety/stop", what="collection ward", reason="doses under review")
    page = copied_clients("reader").form("/search", question="sepsis antibiotics").text
    assert phrase("workflow.not_searched") in page
    assert said("workflow.no_tier") not in page
