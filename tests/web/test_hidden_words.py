"""What a reader of groups gets from every address of the window, of a library with a hidden collection.

The addresses come from the application's own routes and the fields of their forms from its description, so that a new
page is walked at once (for the commands: ``tests/cli/test_hidden.py``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import Response
from starlette.routing import Route

from localmed.config import Settings
from localmed.domain.accounts import Account, SessionRole
from localmed.people import accounts, tokens
from localmed.site.site import Site
from localmed.web.application import ROUTERS
from tests.cli.test_hidden import HIDDEN, MARKERS, QUESTION, SECRET, Hospital, built
from tests.fakes import opened
from tests.web.conftest import PASSWORD, Client, Clients

ENDING = (
    "/logout",
    "/login",
    "/account/password",
    "/start",
    "/start/library",
)  # end the login, or are for the first start
FOR_PROGRAMS = ("/api/", "/v1/", "/health/")
SAFE = ("GET", "HEAD")
TYPED = "What should be given in sepsis?"  # in each field that takes a text, but for those of VALUES
VALUES = {
    "collection": HIDDEN,
    "preset": "",
    "name": HIDDEN,
    "after": "",
    "language": "en",
    "theme": "auto",
    "check": "true",
}


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Hospital:
    root, ward = tmp_path_factory.mktemp("hospital"), tmp_path_factory.mktemp("ward")
    hospital = built(root, ward, {"quebec.md": SECRET})
    with opened(Settings(hospital.localmed.data)) as session:
        for user, group in (("nurse", "nurses"), ("doctor", "doctors")):
            accounts.create(session, Account(user, SessionRole.READER, (group,)), PASSWORD)
    return hospital


@pytest.fixture
def window(hospital: Hospital) -> Iterator[Clients]:
    settings = Settings(hospital.localmed.data)
    with Site(settings) as site:
        yield Clients(settings, site)


def answer_of(client: Client) -> str:
    """The id of an answer that ``client`` is given."""
    reply = client.form("/ask", question="What should be given in sepsis with whiskeymycin and xrayitis?")
    match = re.search(r"/answers/([\w-]+)", reply.text)
    assert match, reply.text
    return match[1]


def filled(application: dict[str, Any], name: str, schema: dict[str, Any]) -> Any:
    """A value for the field ``name`` of a form or of JSON."""
    if "$ref" in schema:
        schema = application["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "properties" in schema:
        return {part: filled(application, part, below) for part, below in schema["properties"].items()}
    if "anyOf" in schema:
        return filled(application, name, schema["anyOf"][0])
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [filled(application, name, schema["items"])]
    return {"integer": 3, "number": 0, "boolean": True, "null": None}.get(schema["type"], VALUES.get(name, TYPED))


def fields(application: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    """The fields of an operation's form or JSON, filled."""
    form: dict[str, Any] = {}
    for kind in operation.get("requestBody", {}).get("content", {}).values():
        form |= filled(application, "", kind["schema"])
    return form


def routes(window: Clients) -> tuple[FastAPI, list[Route]]:
    """Every route that answers, those that the description leaves out too."""
    application = window().http.app
    assert isinstance(application, FastAPI)
    below = [route for router in ROUTERS for route in router.routes]
    return application, [route for route in (*below, *application.routes) if isinstance(route, Route)]


def requests(window: Clients, named: dict[str, str]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Each method, address and filled form of the application; the braces of the address by ``named``."""
    application, there = routes(window)
    described = application.openapi()["paths"]
    for path, method in sorted({(route.path, method) for route in there for method in route.methods or ()}):
        address = re.sub(r"{(\w+)(:\w+)?}", lambda match: named.get(match[1], "1"), path)
        form = fields(application.openapi(), described.get(path, {}).get(method.lower(), {}))
        if path not in ENDING:
            yield method, address, form
            if "collection" in form:
                yield method, address, form | {"collection": ""}


def sent(window: Clients, token: str) -> Callable[[str, str, dict[str, Any]], Response]:
    """How the nurse sends each request: pages as a browser with its login, what is for programs with ``token``."""
    nurse, program = window("nurse"), window().http
    form_token = {"x-form-token": nurse.token()}

    def send(method: str, address: str, form: dict[str, Any]) -> Response:
        if address.startswith(FOR_PROGRAMS):
            headers = {"authorization": f"Bearer {token}"}
            return program.request(method, address, headers=headers, json=form if form else None)
        return nurse.http.request(method, address, headers=form_token, data=form if method not in SAFE else None)

    return send


@pytest.mark.slow
def test_no_page_shows_a_word_of_a_hidden_collection(hospital: Hospital, window: Clients) -> None:
    doctor, nurse = window("doctor"), window("nurse")
    foreign = answer_of(doctor)
    assert "whiskeymycin" in doctor.get(f"/answers/{foreign}").text, "who may read it finds it"
    assert nurse.form("/ask", question=QUESTION).status_code == 200
    with opened(window.settings) as session:
        send = sent(window, tokens.make(session, "nurse", "walk", 1))
    named = {"answer_id": foreign, "passage_id": hospital.passage, "document_id": hospital.document, "marker": "1"}
    walked, done, seen = set[str](), Counter[str](), []
    for method, address, form in requests(window, named | {"name": HIDDEN, "collection": HIDDEN}):
        reply = send(method, address, form)
        shown = reply.text.lower()
        for word in (HIDDEN, hospital.passage, hospital.document, foreign):  # what the reader has named
            shown = shown.replace(word.lower(), "")
        seen += [(method, address, word) for word in MARKERS if word in shown]
        walked.add(address)
        done["program" if address.startswith(FOR_PROGRAMS) else "window"] += reply.status_code == 200
        assert reply.status_code < 500 or address.startswith("/health/"), (method, address, reply.text)
    assert seen == []
    assert {"/api/v1/openapi.json", "/v1/chat/completions", "/health/ready"} <= walked
    assert min(done["program"], done["window"]) > 8, "a walk that is refused everywhere shows nothing"


def test_a_hidden_thing_is_as_unknown_as_one_that_is_not_there(hospital: Hospital, window: Clients) -> None:
    nurse, unknown = window("nurse"), "f" * 32
    for path, hidden in (
        ("/passages/{}", hospital.passage),
        ("/passages/{}/image", hospital.passage),
        ("/answers/{}", answer_of(window("doctor"))),
    ):
        replies = [nurse.get(path.format(id_)) for id_ in (hidden, unknown)]
        texts = [reply.text.replace(id_, "ID") for reply, id_ in zip(replies, (hidden, unknown), strict=True)]
        assert [reply.status_code for reply in replies] == [404, 404], path
        assert blind(texts[0]) == blind(texts[1]), path
    searched = [nurse.form("/search", question="sepsis", collection=name) for name in (HIDDEN, "nowhere")]
    assert searched[0].status_code == searched[1].status_code
    assert blind(searched[0].text).replace(HIDDEN, "NAME") == blind(searched[1].text).replace("nowhere", "NAME")


def blind(page: str) -> str:
    """``page`` without what differs from request to request."""
    return re.sub(r'nonce="[^"]*"|value="[\w-]{20,}"', "", page)
