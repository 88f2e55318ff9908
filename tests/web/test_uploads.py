"""Uploads: a good, a bad and a huge file, names that lead elsewhere, publishing by another person."""

from __future__ import annotations

import io
import re
import threading
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from localmed.domain import Status, message
from localmed.domain.errors import Cancelled, UnknownName, UsageError
from localmed.process.hooks import Cancel, Hooks
from localmed.site import importing, jobs, lookups, uploads
from localmed.site.session import Session
from localmed.site.uploads import Upload, safe_name
from tests.web.conftest import Client, Clients
from tests.web.test_library import session_of
from tests.words import phrase, said

HAND = b"# Hand rub\n\nRub your hands with alcohol gel for 20 seconds before each patient.\n<script>alert(1)</script>\n"

FALLS = b"<h2>Falls on the ward</h2><p>Ask about falls at every admission.</p>"


def send(client: Client, content: bytes, name: str = "hand.md", **fields: Any) -> Response:
    values = {"form": client.token(), "collection": "ward", **fields}
    return client.http.post("/library/upload", data=values, files={"files": (name, content)})


def waited(clients: Clients) -> None:
    """Until no job runs."""
    session, end = session_of(clients), time.monotonic() + 600
    while any(job.outcome is None for job in jobs.jobs(session)):
        assert time.monotonic() < end
        time.sleep(0.1)


def waiting(clients: Clients) -> list[Upload]:
    waited(clients)
    return uploads.listing(session_of(clients))


@pytest.mark.slow
def test_a_file_answers_only_after_somebody_published_what_was_read(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    job = send(librarian, HAND).url.path
    assert job.startswith("/jobs/")
    (upload,) = waiting(copied_clients)
    assert librarian.get(job).url.path == f"/library/upload/{upload.id}"
    page = librarian.get(f"/library/upload/{upload.id}").text
    assert "Ready to publish: documents 1" in page
    assert "Publish" in page
    preview = librarian.get(f"/library/upload/{upload.id}/preview")
    assert "alcohol gel" in preview.text
    assert "<script" not in preview.text
    assert str(copied_clients.settings.data) not in preview.text
    policy = preview.headers["content-security-policy"]
    assert "sandbox" in policy
    assert "script-src" not in policy
    titles = [document.title for document in lookups.documents(session_of(copied_clients))]
    assert "Hand rub" not in titles
    published = librarian.ended(librarian.form(f"/library/upload/{upload.id}/publish", title="Hand rub"))
    assert published.url.path == "/library/documents"
    assert published.url.params["collection"] == "ward"
    assert phrase("upload.published") in published.text
    assert waiting(copied_clients) == []
    titles = [document.title for document in lookups.documents(session_of(copied_clients))]
    assert "Hand rub" in titles
    assert not list((copied_clients.settings.data / "uploads" / "waiting").iterdir())
    (hand,) = (it for it in lookups.documents(session_of(copied_clients)) if it.title == "Hand rub")
    send(librarian, HAND)
    (again,) = waiting(copied_clients)
    page = librarian.get(f"/library/upload/{again.id}").text
    assert said("upload.copy", title="Hand rub") in page
    assert f'href="/library/documents/{hand.id}"' in page
    assert "/publish" not in page
    assert hand.id[:12] not in librarian.get(f"/library/upload/{again.id}/preview").text


@pytest.mark.slow
def test_a_bad_file_says_why_and_cannot_be_published(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    send(librarian, b"%PDF-1.7\nthis is not a PDF", "broken.pdf")
    (upload,) = waiting(copied_clients)
    page = librarian.get(f"/library/upload/{upload.id}").text
    assert phrase("upload.refused") in page
    assert "/publish" not in page
    librarian.form(f"/library/upload/{upload.id}/publish", title="Hand rub")
    assert [one.id for one in waiting(copied_clients)] == [upload.id]
    librarian.form(f"/library/upload/{upload.id}/discard")
    assert waiting(copied_clients) == []


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"), ("..\\..\\x.pdf", "x.pdf"), ("<script>alert(1)</script>.md", "script>.md"),
        (".hidden.md", "hidden.md")
    ],
)  # fmt: skip
def test_a_name_is_a_name_alone(name: str, safe: str) -> None:
    assert safe_name(name) == safe


@pytest.mark.parametrize("name", ["", "..", "a\x00b.md", "x" * 300, "\u202egpj.md"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        safe_name(name)


def test_names_and_ids_lead_nowhere_else(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    send(librarian, HAND, "../../../<img src=x onerror=alert(1)>.md")
    (upload,) = waiting(copied_clients)
    page = librarian.get("/library/upload").text
    assert "<img" not in page
    assert not list(copied_clients.settings.data.parent.glob("*.md"))
    for path in ("../collections", "..%2f..%2faudit.key", "%2e%2e", "0" * 16):
        assert librarian.get(f"/library/upload/{path}/preview").status_code in (404, 400)
    assert send(librarian, HAND, collection="../x").status_code == 404
    assert upload.name == "<img src=x onerror=alert(1)>.md"


def test_who_may_not_change_the_library_uploads_nothing(copied_clients: Clients) -> None:
    for user in ("reader", "safety"):
        assert send(copied_clients(user), HAND).status_code == 403
    librarian = copied_clients("librarian")
    assert send(librarian, HAND, form="wrong").status_code == 403
    assert send(librarian, b"").status_code == 422
    assert waiting(copied_clients) == []


@pytest.mark.slow
def test_a_second_person_publishes_and_approves(copied_clients: Clients) -> None:
    settings = copied_clients.site.settings
    copied_clients.site.settings = replace(settings, web=replace(settings.web, second_person=True))
    librarian = copied_clients("librarian")
    send(librarian, HAND)
    (upload,) = waiting(copied_clients)
    assert librarian.form(f"/library/upload/{upload.id}/publish", title="Hand rub").status_code == 403
    assert "/publish" not in librarian.get(f"/library/upload/{upload.id}").text
    copied_clients("admin").form(f"/library/upload/{upload.id}/publish", title="Hand rub")
    assert waiting(copied_clients) == []
    documents = lookups.documents(session_of(copied_clients))
    approved = next(document for document in documents if document.title == "Hand rub")
    assert approved.governance.approver == "admin"
    assert Path(approved.source).name == "hand.md"


def publish_in_vain(session: Session, upload: Upload, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish ``upload`` while every import fails."""
    with monkeypatch.context() as patched:
        patched.setattr(importing, "import_paths", refuse)
        with pytest.raises(Cancelled):
            uploads.publish(session, [upload])


@pytest.mark.slow
def test_a_publication_that_fails_leaves_what_lay_there_before(
    copied_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    librarian, session = copied_clients("librarian"), session_of(copied_clients)
    place = copied_clients.settings.data / "uploads" / "ward" / "hand.md"
    send(librarian, HAND)
    (upload,) = waiting(copied_clients)
    publish_in_vain(session, upload, monkeypatch)
    assert not place.exists(), "an update of the collection would import it"
    librarian.form(f"/library/upload/{upload.id}/publish", title="Hand rub")
    assert waiting(copied_clients) == []
    send(librarian, HAND.replace(b"20", b"200"))
    (upload,) = waiting(copied_clients)
    publish_in_vain(session, upload, monkeypatch)
    assert place.read_bytes() == HAND
    assert uploads.file_of(session, upload).exists(), "it still waits"


def test_before_publishing_a_title_is_asked_for(copied_clients: Clients) -> None:
    """A file called falls_v2_final went to the ward under that name."""
    librarian = copied_clients("librarian")
    send(librarian, FALLS, "falls_v2_final.html")
    (upload,) = waiting(copied_clients)
    page, base = librarian.get(f"/library/upload/{upload.id}").text, f"/library/upload/{upload.id}/publish"
    assert page.index("<iframe") < page.index(base) < page.index('value="Falls on the ward"')
    wrong = librarian.form(base, title="Falls", review_by="soon")
    assert (wrong.status_code, 'value="Falls"' in wrong.text) == (400, True)
    assert librarian.form(base, title=" ").status_code == 400
    assert len(waiting(copied_clients)) == 1


@pytest.mark.slow
def test_documents_that_came_in_one_file_keep_their_titles(copied_clients: Clients) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("hand.md", HAND)
        archive.writestr("falls.html", FALLS)
    librarian = copied_clients("librarian")
    send(librarian, packed.getvalue(), "both.zip")
    (upload,) = waiting(copied_clients)
    assert 'name="title"' not in librarian.get(f"/library/upload/{upload.id}").text
    librarian.form(f"/library/upload/{upload.id}/publish", owner="Dr Wu")
    stored = lookups.documents(session_of(copied_clients))
    assert sorted(one.title for one in stored if one.governance.owner == "Dr Wu") == ["Falls on the ward", "Hand rub"]


@pytest.mark.slow
def test_what_was_typed_before_publishing_is_set_and_there_for_the_next_edition(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    send(librarian, FALLS, "falls_v2_final.html")
    (upload,) = waiting(copied_clients)
    base = f"/library/upload/{upload.id}/publish"
    told = librarian.form(base, title="Falls", edition="2026", owner="Dr Wu", review_by="2027-01-31").text
    assert phrase("upload.review_passed") not in told
    assert waiting(copied_clients) == []
    (falls,) = (one for one in lookups.documents(session_of(copied_clients)) if "falls" in one.source)
    governed = falls.governance
    assert (falls.title, falls.edition, governed.owner, governed.review_by) == ("Falls", "2026", "Dr Wu", "2027-01-31")
    stated = b'<head><meta name="date" content="2026-11-20"></head>'
    send(librarian, stated + FALLS + b"<p>Ask again.</p>", "falls_v2_final.html")
    (upload,) = waiting(copied_clients)
    page = librarian.get(f"/library/upload/{upload.id}").text
    assert 'value="Dr Wu"' in page
    assert upload.proposed["edition"] == "2026-11-20"
    assert 'value="2026-11-20"' in page, "the edition that the file itself states"
    base = f"/library/upload/{upload.id}/publish"
    told = librarian.form(base, title="Falls", edition="2026-11-20", owner="Dr Wu", review_by="2025-01-31").text
    assert "2025-01-31" in told
    assert phrase("upload.review_passed") in told


@pytest.mark.slow
def test_all_that_were_read_are_published_as_one_change(copied_clients: Clients) -> None:
    librarian, session = copied_clients("librarian"), session_of(copied_clients)
    send(librarian, HAND)
    assert "/library/upload/publish" not in librarian.get("/library/upload").text, "one file has its own page"
    send(librarian, FALLS, "falls.html")
    waited(copied_clients)
    assert "/library/upload/publish" in librarian.get("/library/upload").text
    before, end = lookups.generation_numbers(session)[-1], threading.Event()
    job = jobs.start(session, "import", lambda _: message("job.changed") if end.wait(60) else message("job.unknown"))
    page = librarian.get("/library/upload").text
    assert f"/jobs/{job}" in page, "what is being published is told"
    assert "/library/upload/publish" not in page
    end.set()
    waited(copied_clients)
    librarian.form("/library/upload/publish", collection="ward")
    assert waiting(copied_clients) == []
    names = {Path(one.source).name for one in lookups.documents(session)}
    assert {"hand.md", "falls.html"} <= names
    assert lookups.generation_numbers(session)[-1] - before <= 2, "the files, then their titles"


@pytest.mark.slow
def test_two_who_publish_the_same_upload_do_not_take_its_file_from_each_other(
    copied_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    librarian, session = copied_clients("librarian"), session_of(copied_clients)
    place = copied_clients.settings.data / "uploads" / "ward" / "hand.md"
    send(librarian, HAND)
    (upload,) = waiting(copied_clients)
    importing_now, told = importing.import_paths, list[str]()

    def meanwhile(*values: Any, **named: Any) -> Any:
        leaves = Cancel()
        leaves.cancel()
        with pytest.raises(Cancelled):  # else it would wait its turn
            uploads.publish(session_of(copied_clients), [upload], hooks=Hooks(cancel=leaves))
        told.append("waited")
        assert place.read_bytes() == HAND
        return importing_now(*values, **named)

    monkeypatch.setattr(importing, "import_paths", meanwhile)
    uploads.publish(session, [upload])
    assert told == ["waited"]
    with pytest.raises(UnknownName):
        uploads.publish(session, [upload])
    assert place.read_bytes() == HAND, "what was published lies where it is imported from"


def refuse(*_: Any, **__: Any) -> None:
    raise Cancelled("workflow.cancelled")


def test_what_was_read_takes_no_files_place_and_is_shown_in_each_language(copied_clients: Clients) -> None:
    """A file may be called as what was read of it was; another person reads it in another language."""
    librarian, content = copied_clients("librarian"), b"<h1>Hand rub</h1><p>Rub for 20 seconds.</p>"
    send(librarian, content, "preview.html")
    (upload,) = waiting(copied_clients)
    assert uploads.file_of(session_of(copied_clients), upload).read_bytes() == content
    for language, words in (("en", "Preview of an import"), ("zh", "导入预览")):
        librarian.http.cookies.set("localmed_language", language)
        assert words in librarian.get(f"/library/upload/{upload.id}/preview").text


def published(clients: Clients, content: bytes, name: str, **fields: str) -> Response:
    """Send a file and publish it; what came of it."""
    librarian = clients("librarian")
    send(librarian, content, name)
    (upload,) = waiting(clients)
    return librarian.form(f"/library/upload/{upload.id}/publish", **fields)


def box(page: str, document: str) -> str:
    """The box that lets a document be replaced; "" where none is offered."""
    match = re.search(rf'<(?:input type="checkbox" name="replaces"|option) value="{document}"[^>]*>', page)
    return match[0] if match else ""


def test_a_new_edition_of_a_title_replaces_the_old_one(copied_clients: Clients) -> None:
    session, librarian = session_of(copied_clients), copied_clients("librarian")
    published(copied_clients, HAND, "hand.md", title="Hand rub (2023)", edition="2023-05")
    old = next(one for one in lookups.documents(session) if one.title == "Hand rub (2023)")
    send(librarian, b"# Hand rub\n\nWash for 40 seconds with soap when hands are dirty.\n", "hand-2.md")
    (upload,) = waiting(copied_clients)
    path = f"/library/upload/{upload.id}"
    page = librarian.get(path).text
    assert said("web.upload.same_title", title=old.title, edition=old.edition) in page
    assert "checked" in box(page, old.id)
    refused = librarian.form(f"{path}/publish", title="Hand rub", edition="2022", replaces=old.id)
    assert refused.status_code == 400
    assert said("upload.newer", title=old.title, edition=old.edition) in refused.text
    assert "checked" in box(refused.text, old.id)
    done = librarian.form(f"{path}/publish", title="Hand rub", edition="2026-11", replaces=old.id).text
    new = next(one for one in lookups.documents(session) if one.title == "Hand rub")
    assert (lookups.document(session, old.id).status, new.status) == (Status.SUPERSEDED, Status.CURRENT)
    assert lookups.document(session, old.id).replaced_by == new.id
    parts = {"old": uploads.dated(old), "new": uploads.dated(new)}
    assert said("upload.replaced", published=message("upload.published", documents=1, refused=0), **parts) in done
    page = librarian.get(f"/library/documents/{new.id}").text
    (link,) = re.findall(r'href="(/library/documents/[^"]+/changes/[^"]+)"', page)
    changed = librarian.get(link).text
    assert "Rub your hands with alcohol gel for 20 seconds before each patient." in changed
    assert "Wash for 40 seconds with soap when hands are dirty." in changed
    assert copied_clients("reader").get(link).status_code == 403


def test_an_edition_that_was_published_meanwhile_is_offered_before_the_next_one(copied_clients: Clients) -> None:
    session, librarian = session_of(copied_clients), copied_clients("librarian")
    send(librarian, b"# Hand rub\n\nWash for 40 seconds with soap when hands are dirty.\n", "hand-2.md")
    (second,) = waiting(copied_clients)
    path = f"/library/upload/{second.id}"
    assert "replaces" not in librarian.get(path).text
    send(librarian, HAND, "hand.md")
    (first,) = (one for one in waiting(copied_clients) if one.id != second.id)
    governed = {"owner": "Dr Wu", "review_by": "2099-01"}
    librarian.form(f"/library/upload/{first.id}/publish", title="Hand rub", edition="2023", **governed)
    old = next(one for one in lookups.documents(session) if one.title == "Hand rub")
    page = librarian.form(f"{path}/publish", title="Hand rub", edition="2026")
    assert page.status_code == 400
    assert "checked" in box(page.text, old.id)
    assert len(waiting(copied_clients)) == 1
    reopened = librarian.get(path).text
    assert [f'value="{value}"' in reopened for value in governed.values()] == [True, True], "of the edition before"
    librarian.form(f"{path}/publish", title="Hand rub", edition="2026", replaces=old.id)
    assert lookups.document(session, old.id).status is Status.SUPERSEDED


def test_a_near_copy_of_another_title_is_offered_the_owner_and_not_ticked(copied_clients: Clients) -> None:
    session, librarian = session_of(copied_clients), copied_clients("librarian")
    published(copied_clients, HAND, "hand.md", title="Hand rub", edition="2023", owner="Dr Wu")
    old = next(one for one in lookups.documents(session) if one.title == "Hand rub")
    send(librarian, HAND.replace(b"# Hand rub", b"# Hand hygiene"), "hygiene.md")
    (second,) = waiting(copied_clients)
    page = librarian.get(f"/library/upload/{second.id}").text
    assert "selected" not in box(page, old.id)
    assert 'value="Dr Wu"' in page
    path, fields = f"/library/upload/{second.id}/publish", {"title": "Hand hygiene", "edition": "2026"}
    undecided = librarian.form(path, **fields, offered=old.id)
    assert (undecided.status_code, phrase("upload.undecided") in undecided.text) == (400, True)
    kept = f"keep {old.id}"
    assert f'value="{kept}" selected' in librarian.form(path, edition="2026", title="", replaces=kept).text
    librarian.ended(librarian.form(path, **fields, replaces=kept, offered=old.id))
    assert lookups.document(session, old.id).status is Status.CURRENT


def test_what_is_left_current_beside_a_new_edition_is_named(copied_clients: Clients) -> None:
    session = session_of(copied_clients)
    published(copied_clients, HAND, "hand.md", title="Hand rub", edition="2023-05")
    old = next(one for one in lookups.documents(session) if one.title == "Hand rub")
    text = (
        HAND.replace(b"20 seconds", b"30 seconds")
        + b"Let your hands dry in the air, and put gloves on after that.\n" * 3
    )
    done = published(copied_clients, text, "hand-2.md", title="Hand rub", edition="2026-11", offered=old.id).text
    assert phrase("upload.also_current") in done
    assert uploads.dated(old) in done
    assert lookups.document(session, old.id).status is Status.CURRENT


def test_what_holds_nearly_the_text_is_offered_but_not_chosen(copied_clients: Clients) -> None:
    session, librarian = session_of(copied_clients), copied_clients("librarian")
    lines = b"".join(b"Step %d: rub palm against palm for %d seconds.\n" % (n, 10 + n) for n in range(12))
    published(copied_clients, b"# Hand rub\n\n" + lines, "hand.md", title="Hand rub")
    old = next(one for one in lookups.documents(session) if one.title == "Hand rub")
    send(librarian, b"# Hygiene\n\n" + lines.replace(b"21 seconds", b"25 seconds"), "hygiene.md")
    (upload,) = waiting(copied_clients)
    page = librarian.get(f"/library/upload/{upload.id}").text
    assert said("web.upload.near_text", title="Hand rub", edition=old.edition or "–") in page
    assert box(page, old.id)
    assert "selected" not in box(page, old.id)
    assert f'<option value="">{said("web.upload.near_choice")}</option>' in page, "one of both must be chosen"


@pytest.mark.parametrize(
    ("one", "other", "older"),
    [("2023", "2024-05", True), ("2024", "2024-05", False), ("", "2024", False), ("2025-01", "2024-12-31", False)],
)
def test_an_edition_is_older_only_where_both_are_known(one: str, other: str, older: bool) -> None:
    assert uploads.is_older(one, other) is older


def test_what_the_typed_title_offers_is_replaced_as_long_as_nobody_else_has(copied_clients: Clients) -> None:
    session, librarian = session_of(copied_clients), copied_clients("librarian")
    published(copied_clients, HAND, "hand.md", title="Hand care")
    old = next(one for one in lookups.documents(session) if one.title == "Hand care")
    for name, dose in (("wash.md", b"40"), ("wash-2.md", b"50")):
        send(librarian, b"# Washing\n\nWash for %b seconds with soap when hands are dirty.\n" % dose, name)
        (upload,) = waiting(copied_clients)
        path = f"/library/upload/{upload.id}/publish"
        faulty = librarian.form(path, title="Hand care", review_by="soon")
        if name == "wash.md":
            assert box(faulty.text, old.id)
        else:  # it was superseded while this page stood open
            assert not box(faulty.text, old.id)
        current = [one.id for one in lookups.documents(session) if one.status is Status.CURRENT]
        librarian.form(path, title="Hand care", edition="2026", replaces=old.id, offered=current)
    first = next(one for one in lookups.documents(session) if one.source.endswith("wash.md"))
    assert lookups.document(session, old.id).replaced_by == first.id


def test_a_file_of_a_stored_files_name_and_another_title_is_told_and_published_by_itself(
    copied_clients: Clients,
) -> None:
    published(copied_clients, HAND, "protocol.md", title="Hand rub", edition="2023-05")
    librarian = copied_clients("librarian")
    send(librarian, b"# Falls\n\nRaise the bed rails at night and note each fall.\n", "protocol.md")
    send(librarian, b"# Masks\n\nWear a mask within one metre of a patient who coughs.\n", "protocol.md")
    waited(copied_clients)
    for upload in waiting(copied_clients):
        page = librarian.get(f"/library/upload/{upload.id}").text
        assert said("web.upload.same_name", title="Hand rub", edition="2023-05") in page
    refused = librarian.form("/library/upload/publish", collection="ward")
    assert said("upload.one_by_one", names=("protocol.md",)) in refused.text
    assert "Hand rub" in [one.title for one in lookups.documents(session_of(copied_clients))]


@pytest.mark.slow
def test_of_all_that_were_read_one_with_the_title_of_a_document_in_use_waits_for_a_choice(
    copied_clients: Clients,
) -> None:
    published(copied_clients, HAND, "hand.md", title="Hand rub", edition="2023-05")
    librarian = copied_clients("librarian")
    send(librarian, b"# Hand rub\n\nRub for ninety seconds before each operation, and note the time.\n", "new.md")
    send(librarian, FALLS, "falls.html")
    send(librarian, b"# Masks\n\nWear a mask within one metre of a patient who coughs.\n", "masks.md")
    waited(copied_clients)
    assert librarian.get("/library/upload").text.count(said("web.upload.to_choose")) == 1
    librarian.form("/library/upload/publish", collection="ward")
    assert [one.name for one in waiting(copied_clients)] == ["new.md"]
    titles = [one.title for one in lookups.documents(session_of(copied_clients))]
    assert titles.count("Hand rub") == 1


def test_two_uploads_of_one_name_and_two_titles_are_not_published_together(copied_clients: Clients) -> None:
    librarian = copied_clients("librarian")
    send(librarian, b"# Falls\n\nRaise the bed rails at night and note each fall.\n", "protocol.md")
    send(librarian, b"# Masks\n\nWear a mask within one metre of a patient who coughs.\n", "protocol.md")
    waited(copied_clients)
    refused = librarian.form("/library/upload/publish", collection="ward")
    assert said("upload.one_by_one", names=("protocol.md",)) in refused.text
    assert len(waiting(copied_clients)) == 2


def test_a_corrected_title_is_kept_by_the_next_edition_and_changes_are_shown_before_it(copied_clients: Clients) -> None:
    session, librarian = session_of(copied_clients), copied_clients("librarian")
    lines = b"".join(b"Step %d: rub palm against palm for %d seconds.\n" % (n, 10 + n) for n in range(12))
    published(copied_clients, b"# Final draft\n\n" + lines, "hand.md", title="Hand rub", edition="2023")
    old = next(one for one in lookups.documents(session) if one.title == "Hand rub")
    send(librarian, b"# Final draft\n\n" + lines.replace(b"21 seconds", b"25.5 seconds"), "hand-2.md")
    (upload,) = waiting(copied_clients)
    page = librarian.get(f"/library/upload/{upload.id}").text
    assert 'name="title" type="text" value="Hand rub"' in page
    assert said("web.upload.same_title", title="Hand rub", edition="2023") in page
    assert "checked" in box(page, old.id)
    changed = librarian.get(f"/library/upload/{upload.id}/changes/{old.id}").text
    assert "for <mark>21</mark> seconds" in changed
    assert "for <mark>25.5</mark> seconds" in changed
    assert "Step 1:" not in changed
    assert '<th scope="row">Final draft</th>' in changed


def test_an_upload_whose_collection_was_deleted_leaves_the_page_working(copied_clients: Clients) -> None:
    librarian, session = copied_clients("librarian"), session_of(copied_clients)
    librarian.form("/library/collections", name="notes", title="Notes", priority="3")
    send(librarian, HAND, collection="notes")
    waited(copied_clients)
    librarian.form("/library/collections/notes/delete")
    assert "notes" not in lookups.collection_names(session)
    assert librarian.get("/library/upload").status_code == 200
