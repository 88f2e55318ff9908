"""The first page of the ward: one box, what the library has on what is typed, keys, and a bar of four words."""

from __future__ import annotations

import re

import pytest

from tests.web.conftest import Clients, OpenWindow


def words_of_bar(page: str) -> list[str]:
    bar = re.search(r"<nav.*?</nav>", page, re.DOTALL)
    return re.findall(r"<a [^>]*>([^<]+)</a>", bar[0]) if bar else []


def test_the_ward_sees_four_words_and_everybody_else_what_they_may_do(client: Clients) -> None:
    ward = ["Ask", "Orders", "Departments", "History"]
    assert words_of_bar(client("reader").get("/").text) == ward
    assert words_of_bar(client("librarian").get("/").text) == [*ward, "Library"]
    assert {*ward} < {*words_of_bar(client("admin").get("/").text)}


def test_other_ways_to_ask_stand_under_the_box_and_what_was_asked_last(copied_clients: Clients) -> None:
    reader = copied_clients("reader")
    page = reader.get("/").text
    assert 'href="/practice"' in page
    assert 'href="/search"' in page
    assert "Asked last" not in page
    asked = "dose of paracetamol?"
    reader.form("/ask", question=asked)
    assert asked in reader.get("/").text
    assert asked not in copied_clients("librarian").get("/").text


def test_suggestions_need_a_login_and_its_form(client: Clients) -> None:
    reader = client("reader")
    assert reader.form("/ask/suggestions", question="sep").json()
    assert reader.form("/ask/suggestions", question="").json() == []
    assert reader.http.post("/ask/suggestions", data={"question": "sep"}).status_code >= 400, "no form's token"
    assert client().http.post("/ask/suggestions", data={"question": "sep"}).url.path == "/login"


@pytest.mark.slow
def test_by_keyboard_from_the_box_to_the_page(copied_clients: Clients, browser: OpenWindow) -> None:
    window = browser(copied_clients)
    window.sign_in("reader")
    page = window.page
    assert page.evaluate("document.activeElement.id") == "question"
    page.keyboard.type("seps")
    page.wait_for_selector("#question-list [role=option]")
    page.keyboard.press("ArrowDown")
    chosen = page.inner_text("#question-list [aria-selected=true]")
    page.keyboard.press("Enter")
    assert page.input_value("#question") == chosen
    assert page.is_hidden("#question-list")
    page.keyboard.type(" and more")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-answer] .card")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.matches('.card h3 a')")
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-answer] [data-pane]:not([hidden]) [data-focus]")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.matches('.card h3 a')")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "follow-up"
    window.was_quiet()
