"""Every page there is, found by its links: axe-core in both languages and themes, reflow, print, no other origin.

A page that somebody adds is checked by itself: each route without a parameter is one, and what it links to leads to
the others (one of each route). Contrast is what a theme changes, so the dark theme is checked for that.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

import pymupdf
import pytest
from axe_playwright_python.sync_playwright import Axe
from starlette.routing import Match, Route

from localmed.web.application import ROUTERS
from tests.web.conftest import Client, Clients, OpenWindow, Window, with_model
from tests.web.test_practice import ORDER
from tests.web.test_sections import WRITES
from tests.web.test_uploads import HAND, send, waiting
from tests.words import phrase
from tests.workflows.test_ask import Model

QUESTION = "What is the loading dose of vancomycin?"
ROUTES = [route for router in ROUTERS for route in router.routes if isinstance(route, Route)]
FOR_PROGRAMS = ("/api/", "/v1/", "/health/")
SERIOUS = ("serious", "critical")
AXE: dict[str, object] = {
    "resultTypes": ["violations"],
    "rules": {"target-size": {"enabled": True}},
}  # 24 px: WCAG 2.2, 2.5.8
CONTRAST: dict[str, object] = {"resultTypes": ["violations"], "runOnly": ["color-contrast"]}
NARROW = 320  # pixels: 1280 at 400 % (WCAG 2.2, 1.4.10); 640 is 200 %
WIDE_ON_PURPOSE = ".scroll, .sheet, iframe, pre"  # what scrolls by itself
TOO_WIDE = """(allowed) => document.scrollingElement.scrollWidth > document.scrollingElement.clientWidth
    ? [...document.querySelectorAll("body *")].filter((one) => !one.closest(allowed)
        && one.getBoundingClientRect().right > document.scrollingElement.clientWidth + 1)
        .map((one) => one.outerHTML.slice(0, 100)).slice(-2)
    : []"""


def route_of(path: str) -> str:
    """The template of the route that answers ``path``; "" where none does."""
    scope = {"type": "http", "method": "GET", "path": path.partition("?")[0], "root_path": "", "headers": []}
    return next((route.path for route in ROUTES if route.matches(scope)[0] is Match.FULL), "")


def pages(client: Client, seeds: Iterable[str]) -> dict[str, str]:
    """One address for each route that answers with a page, by following links."""
    without_parameter = [r.path for r in ROUTES if "{" not in r.path and "GET" in (r.methods or ())]
    waiting_paths = [*seeds, *without_parameter]
    seen: dict[str, str] = {}
    known: set[str] = set()
    while waiting_paths:
        path = waiting_paths.pop(0)
        template = route_of(path)
        if not template or template in known or template.startswith(FOR_PROGRAMS):
            continue
        known.add(template)
        reply = client.get(path)
        if reply.status_code == 200 and reply.headers.get("content-type", "").startswith("text/html"):
            seen[template] = path
            waiting_paths += map(html.unescape, re.findall(r'<a [^>]*href="(/[^"#]*)"', reply.text))
    return seen


def prepared(clients: Clients) -> tuple[Client, list[str]]:
    """Something on every page: answers, an upload that waits, a token; and where pages are that no link leads to."""
    admin = clients("admin")
    admin.form("/account/tokens", name="laboratory", days="30")
    send(admin, HAND)
    waiting(clients)
    answer = admin.form("/ask", question=QUESTION).url.path
    order = admin.form("/orders", order=ORDER).url.path
    assert (answer.startswith("/answers/"), order.startswith("/answers/")) == (True, True)
    passage = re.search(r'href="(/passages/[^"]+)"', admin.form("/search", question=QUESTION).text)
    assert passage
    return admin, [answer, html.unescape(passage[1])]


EXPECTED = {"/answers/{answer_id}/sources/{marker}", "/library/documents/{document_id}",
            "/library/upload/{upload_id}", "/library/governance/{name}", "/account/tokens"}  # fmt: skip


@pytest.mark.slow
def test_axe_finds_nothing_serious_on_any_page(copied_clients: Clients, browser: OpenWindow) -> None:
    admin, seeds = prepared(copied_clients)
    found_pages = pages(admin, seeds)
    assert set(found_pages) >= EXPECTED
    of_patients = (("/orders", {"order": ORDER}), ("/departments", {"question": "My chest hurts and I cannot breathe"}))
    answers = [admin.form(path, **fields).url.path for path, fields in of_patients]  # one route, other parts
    places = [*found_pages.values(), *answers, "/nowhere"]
    faults: list[str] = []
    window = browser(copied_clients, locale="en-GB", color_scheme="light", viewport={"width": 1280, "height": 800})
    faults += _faults(window, "/login", AXE, "en")
    window.sign_in("admin")
    for language in ("en", "zh"):
        window.page.context.add_cookies([{"name": "localmed_language", "value": language, "url": window.url}])
        for path in places:
            faults += _faults(window, path, AXE, language)
            window.page.emulate_media(color_scheme="dark")
            faults += _faults(window, "", CONTRAST, f"{language} {path} dark")
            faults += _too_wide(window, f"{language} {path}")
            window.page.emulate_media(color_scheme="light")
    window.page.goto(window.url + found_pages["/answers/{answer_id}"])
    window.page.click("[data-answer] h3 a")
    window.page.wait_for_selector("[data-pane]:not(.first) mark", state="attached")
    faults += _faults(window, "", AXE, "zh with a source open")
    assert faults == []
    window.was_quiet()


def _faults(window: Window, path: str, options: dict[str, object], where: str) -> list[str]:
    """The serious faults that axe-core finds, run past the policy, which forbids foreign scripts."""
    if path:
        window.page.goto(window.url + path)
    assert window.page.locator("html").get_attribute("lang") == where[:2]
    violations = Axe().run(window.page, options=options).response["violations"]
    return [
        f"{where} {path}: {fault['id']}: {fault['nodes'][0]['html'][:200]}"
        for fault in violations
        if fault["impact"] in SERIOUS
    ]


def _too_wide(window: Window, where: str) -> list[str]:
    """What a reader would have to scroll sideways for, at 200 % and 400 %."""
    faults = []
    for width in (640, NARROW):
        window.page.set_viewport_size({"width": width, "height": 800})
        faults += [f"{where} at {width}: {one}" for one in window.page.evaluate(TOO_WIDE, WIDE_ON_PURPOSE)]
    window.page.set_viewport_size({"width": 1280, "height": 800})
    return faults


@pytest.mark.slow
def test_an_answer_and_its_sections_are_printed_without_the_window_around_them(
    copied_clients: Clients, browser: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localmed.presentation.finding.SHORT", 0)  # all sections of this library are short
    with with_model(copied_clients.settings, Model(WRITES)) as clients:
        window = browser(clients)
        window.sign_in("reader", clients("reader").form("/ask", question=QUESTION).url.path)
        window.page.emulate_media(media="print")
        names = (".bottom", ".sources", "[data-sections]", "header", "form")
        assert [window.page.locator(name).first.is_visible() for name in names] == [True, True, True, False, False]
        folded = window.page.locator(".card.folded").first
        name, sentence = (
            " ".join((folded.locator(part).text_content() or "").split()) for part in ("h3", "details > summary")
        )
        with pymupdf.open("pdf", window.page.pdf()) as printed:
            words = " ".join("".join(page.get_text() for page in printed).split())
        assert "25 mg/kg" in words
        assert phrase("badge.judged") in words, "what is folded up on the screen"
        assert name in words
        assert sentence
        assert sentence not in words, "of a folded section its name alone"
