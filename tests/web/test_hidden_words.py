"""What a reader of groups gets from every address of the window, of a library with a hidden collection.

The addresses and the fields of their forms come from the application's own description, so that a new page is walked
at once (for the commands: ``tests/cli/test_hidden.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from localmed.config import Settings
from localmed.domain.accounts import Account, SessionRole
from localmed.operations import accounts
from localmed.site import Site
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


def fields(application: dict[str, Any], operation: dict[str, Any]) -> dict[str, str]:
    """The fields of an operation's form or JSON, filled."""
    content = operation.get("requestBody", {}).get("content", {})
    names: set[str] = set()
    for kind in content.values():
        schema = kind["schema"]
        if "$ref" in schema:
            schema = application["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        names |= schema.get("properties", {}).keys()
    return {name: VALUES.get(name, TYPED) for name in names}


def requests(window: Clients, named: dict[str, str]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Each method, address and filled form of the application; the braces of the address by ``named``."""
    application = window().http.app
    assert isinstance(application, FastAPI)
    description = application.openapi()
    for path, operations in description["paths"].items():
        address = re.sub(r"{(\w+)}", lambda match: named.get(match[1], "1"), path)
        for method, operation in operations.items():
            if path not in ENDING:
                form = fields(description, operation)
                yield method, address, form
                if "collection" in form:
                    yield method, address, form | {"collection": ""}


def test_no_page_shows_a_word_of_a_hidden_collection(hospital: Hospital, window: Clients) -> None:
    doctor, nurse = window("doctor"), window("nurse")
    foreign = answer_of(doctor)
    assert "whiskeymycin" in doctor.get(f"/answers/{foreign}").text, "who may read it finds it"
    assert nurse.form("/ask", question=QUESTION).status_code == 200
    named = {"answer_id": foreign, "passage_id": hospital.passage, "document_id": hospital.document, "marker": "1"}
    walked, done, seen = 0, 0, []
    token = {"x-form-token": nurse.token()}
    for method, address, form in requests(window, named | {"name": HIDDEN, "collection": HIDDEN}):
        reply = nurse.http.request(method, address, headers=token, data=form if method != "get" else None)
        shown = reply.text.lower()
        for word in (HIDDEN, hospital.passage, hospital.document, foreign):  # what the reader has named
            shown = shown.replace(word.lower(), "")
        seen += [(method, address, word) for word in MARKERS if word in shown]
        walked, done = walked + 1, done + (reply.status_code == 200)
        assert reply.status_code < 500, (method, address, reply.text)
    assert seen == []
    assert walked > 40
    assert done > 8, "a walk that is refused everywhere shows nothing"


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
