"""The window in several tabs, and its Back button: signing out in one tab, pages that a form led to."""

from __future__ import annotations

import pytest

from tests.web.conftest import PASSWORD, Clients, OpenWindow
from tests.web.test_browser import QUESTION, SENTENCE


@pytest.mark.slow
def test_signing_out_in_one_tab_clears_the_others(client: Clients, browser: OpenWindow) -> None:
    client("reader").form("/ask", question=QUESTION)
    window = browser(client)
    window.sign_in("reader")
    history, results = window.page.context.new_page(), window.page.context.new_page()
    history.goto(window.url + "/history")
    history.wait_for_selector(f"text={QUESTION}")
    results.goto(window.url + "/search")
    results.fill("#question", QUESTION)
    results.click("main form button")
    results.wait_for_selector(f"text={SENTENCE}")
    window.page.click("header form[action='/logout'] button")
    for page in (window.page, history, results):
        page.wait_for_selector("#password")
        assert QUESTION not in page.content()
    window.was_quiet()


@pytest.mark.slow
def test_another_users_tab_is_left_when_somebody_else_signs_in(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.page.goto(window.url + "/login")
    other = window.page.context.new_page()
    other.goto(window.url + "/login")  # a form that was open before
    window.sign_in("reader", "/history")
    other.goto(window.url + "/nowhere")  # an error's page clears nothing
    assert window.page.url.endswith("/history")
    other.go_back()
    other.context.clear_cookies()
    other.goto(window.url + "/login")
    window.page.wait_for_selector("#password")
    window.sign_in("reader", "/history")
    other.fill("#user", "librarian")
    other.fill("#password", PASSWORD)
    other.click("main button")
    window.page.wait_for_url(window.url + "/")
    assert window.page.inner_text(".who a[href='/account']") == "librarian"


def test_back_and_loading_again_never_ask_to_send_a_form_again(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.sign_in("librarian", "/search")
    page = window.page
    page.fill("#question", QUESTION)
    page.click("main form button")
    page.wait_for_selector(f"text={SENTENCE}")
    page.goto(window.url + "/account")
    page.go_back()
    assert page.inner_text("h1") == "Search the documents"
    page.goto(window.url + "/practice")
    page.fill("#question", QUESTION)
    page.click("main form button")
    page.wait_for_selector("[data-answer] article")
    assert page.reload() is not None
    assert page.locator("main article").first.is_visible(), "the answer, by its address"
    page.goto(window.url + "/library/documents?collection=ward")
    page.fill("#title", "sepsis")
    page.click("main form button")
    page.click("main table a")
    page.go_back()
    assert page.url.endswith("/library/documents?collection=ward")
    window.was_quiet()


def test_another_language_after_a_form_leads_to_a_page_that_there_is(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.sign_in("reader", "/practice")
    window.page.fill("#question", QUESTION)
    window.page.click("main form button")
    window.page.wait_for_selector("[data-answer] article")
    window.page.click(".menu summary")
    window.page.click(".menu button[value=zh]")
    window.page.wait_for_selector("html[lang=zh]")
    assert window.page.url.endswith("/practice")
    assert window.page.locator("#question").is_visible()
