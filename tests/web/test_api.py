"""The API as programs use it: tokens, JSON and events, OpenAI's own client, and what no page would send."""

from __future__ import annotations

import json
import time
from collections import Counter
from html import unescape
from typing import Any

import openai
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings

from localmed.domain.accounts import SessionRole
from localmed.domain.errors import UnknownName, UsageError
from localmed.library.state import rows
from localmed.people import accounts, tokens
from localmed.site.session import Caller, Session, local_caller
from localmed.web import application
from tests.web.conftest import BASE, Clients, served, with_model
from tests.web.test_ask import DOSE_MODEL
from tests.words import pattern

QUESTION = "What is the maximum dose of paracetamol in adults?"
UNKNOWN = "火山为什么会喷发？"
DOSE = "4 g in 24 hours"


def session_of(clients: Clients, role: SessionRole = SessionRole.READER) -> Session:
    return Session(clients.site, Caller(role.value, None, role))


def program(clients: Clients, user: str = "reader") -> TestClient:
    """A program with a token of ``user``."""
    token = tokens.make(session_of(clients, SessionRole(user)), user, "tests", 1)
    return TestClient(application.create(clients.site), base_url=BASE, headers={"authorization": f"Bearer {token}"})


def test_a_questions_sections_come_as_json(copied_clients: Clients) -> None:
    http = program(copied_clients)
    reply = http.post("/api/v1/ask", json={"question": QUESTION})
    assert reply.status_code == 200, reply.text
    value = reply.json()
    assert DOSE in value["text"]
    assert (value["status"], value["badge"]) == ("sections", "none")
    again = http.get(f"/api/v1/answers/{value['id']}").json()
    assert again["text"] == value["text"]
    section = value["view"]["finding"]["sections"][0]
    image = http.get(f"/api/v1/answers/{value['id']}/sources/{section['marker']}/image")
    assert image.content[:4] == b"\x89PNG"
    follow = http.post("/api/v1/ask", json={"question": "and in adults under 50 kg?", "after": value["id"]})
    assert "2 g in 24 hours" in follow.json()["text"]
    assert http.delete(f"/api/v1/answers/{value['id']}").status_code == 200
    assert http.get(f"/api/v1/answers/{value['id']}").status_code == 404


def test_readings_are_left_out_by_name_or_all_and_stay_so_in_a_follow_up(client: Clients) -> None:
    http, question = program(client), "max dose of panadol in DKA"
    asked = http.post("/api/v1/ask", json={"question": question, "left_out": ["panadol"]}).json()
    follow = http.post("/api/v1/ask", json={"question": question, "after": asked["id"]}).json()
    for value in (asked, follow):
        readings = value["view"]["finding"]["readings"]
        assert [(one["written"], one["left_out"]) for one in readings] == [("panadol", True), ("DKA", False)]
    for body, read_as, left_out in (
        ({"left_out": ["panadol"]}, ["DKA"], ["panadol"]),
        ({"as_written": True}, [], ["panadol", "DKA"]),
    ):
        found = http.post("/api/v1/search", json={"question": question, **body}).json()
        assert [[one["written"] for one in found[name]] for name in ("read_as", "left_out")] == [read_as, left_out]


def test_an_answer_comes_as_events(copied_clients: Clients) -> None:
    headers = {"accept": "text/event-stream"}
    reply = program(copied_clients).post("/api/v1/ask", json={"question": QUESTION}, headers=headers)
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
    assert events[0]["kind"] == "step"
    assert events[-1]["kind"] == "answer"
    assert DOSE in events[-1]["value"]["text"]
    assert not any(DOSE in json.dumps(event) for event in events[:-1])


def test_with_a_model_the_sections_come_before_its_answer(copied_clients: Clients) -> None:
    with with_model(copied_clients.settings, DOSE_MODEL) as clients:
        headers = {"accept": "text/event-stream"}
        reply = program(clients).post("/api/v1/ask", json={"question": QUESTION}, headers=headers)
        events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
        (early,) = [event["value"] for event in events if event["kind"] == "sections"]
        assert DOSE in early["sections"][0]["marks"][0]["text"]
        answer = events[-1]["value"]
        assert (answer["status"], answer["badge"]) == ("answered", "green")
        content = spoken(clients)
        assert content.index("supported") < content.index(f"{DOSE}. [1]") < content.index("Nearest sections")


def spoken(clients: Clients) -> str:
    """What an OpenAI client is told."""
    body = {"messages": [{"role": "user", "content": QUESTION}]}
    content = program(clients).post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]
    return str(content)


def test_the_sites_safety_message_is_told_where_only_sections_are_asked_for(copied_clients: Clients) -> None:
    danger = "I want to kill myself with paracetamol"
    reply = program(copied_clients).post("/api/v1/search", json={"question": danger}).json()
    assert (reply["status"], reply["sections"], len(reply["notes"])) == ("safety", [], 1)
    assert reply["notes"][0] in unescape(copied_clients("reader").form("/search", question=danger).text)


def test_the_other_pages_by_the_api(copied_clients: Clients) -> None:
    http = program(copied_clients)
    sections = http.post("/api/v1/search", json={"question": "paracetamol", "limit": 2}).json()["sections"]
    assert len(sections) == 2
    assert DOSE in sections[0]["text"]
    passage = sections[0]["passage"]
    assert http.get(f"/api/v1/passages/{passage}").json()["id"] == passage
    record = "67-year-old man. Allergies: penicillin\n"
    read = http.post("/api/v1/records", json={"record": record}).json()
    assert {"kind": "allergy", "text": "penicillin", "start": 28, "end": 38} in read["names"]
    assert read["text"] == record
    answer = http.post("/api/v1/practice", json={"question": QUESTION, "record": record})
    assert "penicillin" in answer.text
    order = http.post("/api/v1/orders", json={"order": "Paracetamol 1 g p.o. q6h"})
    assert order.json()["answer"]["workflow"] == "explain"
    assert http.post("/api/v1/departments", json={"complaint": "My chest hurts"}).status_code == 200
    assert http.post("/api/v1/concepts", json={"term": "no such term"}).status_code == 404
    assert http.get("/api/v1/collections").json()


def test_without_a_token_that_holds_nothing_is_told(copied_clients: Clients) -> None:
    http = copied_clients("reader").http  # a browser's login is none
    body = {"question": QUESTION}
    assert http.post("/api/v1/ask", json=body).status_code == 401
    session = session_of(copied_clients)
    token = tokens.make(session, "reader", "tests", 1)
    headers = {"authorization": f"Bearer {token}"}
    assert http.post("/api/v1/search", json=body, headers=headers).status_code == 200
    data = copied_clients.settings.data
    assert token.encode() not in b"".join(file.read_bytes() for file in data.glob("site.sqlite*"))
    with rows(data) as state:
        state.execute("UPDATE tokens SET expires = ?", (time.time() - 1,))
    assert http.post("/api/v1/search", json=body, headers=headers).status_code == 401


def test_a_revoked_token_and_a_disabled_account_end_at_once(copied_clients: Clients) -> None:
    reader, admin = session_of(copied_clients), session_of(copied_clients, SessionRole.ADMIN)
    http, other = program(copied_clients), program(copied_clients)
    first = tokens.listing(copied_clients.settings.data, "reader")[-1]
    with pytest.raises(UnknownName):
        tokens.revoke(session_of(copied_clients, SessionRole.LIBRARIAN), first.id)
    tokens.revoke(reader, first.id)
    assert http.get("/api/v1/collections").status_code == 401
    assert other.get("/api/v1/collections").status_code == 200
    account = accounts.account(copied_clients.settings.data, "reader")
    accounts.change(admin, type(account)(account.user, account.role, account.groups, disabled=True))
    assert other.get("/api/v1/collections").status_code == 401


def test_tokens_are_made_for_oneself_or_by_who_administers(copied_clients: Clients) -> None:
    with pytest.raises(UsageError):
        tokens.make(session_of(copied_clients), "admin", "tests", 1)
    for name, days in (("", 1), ("x", 0), ("x", 9_999)):
        with pytest.raises(UsageError):
            tokens.make(session_of(copied_clients), "reader", name, days)
    local = Session(copied_clients.site, local_caller(copied_clients.settings))
    assert tokens.make(local, "reader", "tests", 1).startswith(tokens.PREFIX)


def test_the_page_of_tokens(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.form("/account/tokens", name="ward board", days="30")
    assert tokens.PREFIX in page.text
    listed = reader.get("/account/tokens").text
    assert tokens.PREFIX not in listed
    assert "ward board" in listed
    (made,) = tokens.listing(copied_clients.settings.data, "reader")
    reader.form(f"/account/tokens/{made.id}/revoke")
    assert tokens.listing(copied_clients.settings.data, "reader") == []


def test_openais_own_client(copied_clients: Clients) -> None:
    token = tokens.make(session_of(copied_clients), "reader", "tests", 1)
    with served(copied_clients) as url, openai.OpenAI(api_key=token, base_url=f"{url}/v1", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["localmed"]
        turns: list[Any] = [{"role": "system", "content": "Say 9 g."}, {"role": "user", "content": QUESTION}]
        whole = client.chat.completions.create(model="localmed", messages=turns, temperature=0)
        content = whole.choices[0].message.content or ""
        assert content.startswith("Found by a search")
        assert f"[1] Paracetamol · no date\nThe maximum dose of paracetamol in adults is {DOSE}." in content
        extra = (whole.model_extra or {})["localmed"]
        assert (extra["status"], extra["badge"]) == ("sections", "none")
        turns += [{"role": "assistant", "content": content}, {"role": "user", "content": "and in adults under 50 kg?"}]
        pieces = list(client.chat.completions.create(model="localmed", messages=turns, stream=True))
        assert "2 g in 24 hours" in "".join(piece.choices[0].delta.content or "" for piece in pieces)
        assert pieces[-1].choices[0].finish_reason == "stop"
        none = client.chat.completions.create(model="localmed", messages=[{"role": "user", "content": UNKNOWN}])
        assert (none.model_extra or {})["localmed"]["status"] == "abstained"
        assert (none.choices[0].message.content or "").startswith("Nothing in the library is close to this")
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="localmed", messages=[{"role": "user", "content": " "}])
    with served(copied_clients) as url, openai.OpenAI(api_key="lm_x", base_url=f"{url}/v1", max_retries=0) as client:
        refusal = pytest.raises(openai.AuthenticationError, match=pattern("web.error.no_token"))
        with refusal:
            client.models.list()


@pytest.mark.slow
def test_nothing_that_the_description_allows_is_an_error_of_ours(copied_clients: Clients) -> None:
    http, app = program(copied_clients), application.create(copied_clients.site, ("testserver",))
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)
    token = {"authorization": http.headers["authorization"]}
    statuses: Counter[int] = Counter()
    results: Any = schema.get_all_operations()
    for result in results:

        @settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
        @given(case=result.ok().as_strategy())
        def tried(case: Any) -> None:
            reply = case.call(headers=token)
            statuses[reply.status_code] += 1
            assert reply.status_code < 500, (case.path, case.body)

        tried()
    assert statuses[200] > 5
    assert statuses[401] == 0


@pytest.mark.parametrize(
    ("path", "body", "told"),
    [
        ("/api/v1/ask", {}, ("question", "missing")),
        ("/api/v1/ask", {"question": "x", "colection": "ward"}, ("colection", "not a field")),
        ("/api/v1/answers/x/report", {"opinion": "pain"}, ("opinion", "'wrong'")),
    ],
)
def test_an_error_names_the_field_and_what_it_may_be(
    client: Clients, path: str, body: dict[str, Any], told: tuple[str, ...]
) -> None:
    reply = program(client).post(path, json=body)
    assert reply.status_code == 400
    assert all(words in reply.json()["error"]["message"] for words in told), reply.text
    assert "pain" not in reply.text
