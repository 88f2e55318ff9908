"""What a reader sees without scrolling: a question typed in Chromium, and where the section that answers stands.

The newest author's plain questions (``ward8_held``, typed as on a ward) over that author's documents and the starter
corpus. The first screen is the window after Enter. The section that answers is the first that holds the words of the
answer; it is whole where its card ends above the lower edge, begun where its heading stands there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, ViewportSize, sync_playwright

from localmed.config import Settings
from localmed.domain.accounts import Account
from localmed.people import accounts
from localmed.web.visits import LOGIN_COOKIE
from tests.benchmarks.common import Place, Row
from tests.benchmarks.sections import imported, questions
from tests.benchmarks.window import server, signed_in
from tests.fakes import opened
from tests.web.conftest import CHROMIUM

DOCUMENTS = Path(__file__).parent / "ward8_held"
SCREENS: dict[str, ViewportSize] = {
    "1280x800": {"width": 1280, "height": 800},
    "390x844": {"width": 390, "height": 844},
}
CARDS = """must => [...document.querySelectorAll('[data-answer] article.card')].map(card => {
    const bare = text => text.toLowerCase().replace(/[\\s|]+/g, '');
    const text = bare(card.textContent), box = card.getBoundingClientRect();
    const seen = [...card.querySelectorAll('mark')].some(mark => {
        const at = mark.getBoundingClientRect();
        return at.height > 0 && at.top >= 0 && at.bottom <= innerHeight;
    });
    return {right: must.every(words => text.includes(bare(words))), top: box.top, bottom: box.bottom, seen};
})"""


@dataclass(frozen=True)
class Seen:
    """Where the section that answers stands: its place (0: not shown), and what of it the first screen shows."""

    place: int
    whole: bool
    begun: bool
    mark: bool


def seen(cards: Sequence[dict[str, Any]], height: int) -> Seen:
    """The first of ``cards`` that holds the answer, on a screen of ``height`` pixels."""
    for place, card in enumerate(cards, 1):
        if card["right"]:
            begun = card["top"] < height
            return Seen(place, card["bottom"] <= height, begun, begun and card["seen"])
    return Seen(0, False, False, False)


def measured(page: Page, url: str, height: int) -> Iterator[Seen]:
    """Ask every question in ``page``."""
    for one in questions("plain", DOCUMENTS):
        page.goto(url)
        page.fill("#question", one["text"])
        page.keyboard.press("Enter")
        page.wait_for_selector("[data-answer] article, [data-answer] h2", timeout=60_000)
        page.wait_for_load_state("networkidle")
        yield seen(page.evaluate(CARDS, one["must"]), height)


def run(place: Place) -> list[Row]:
    """A row a screen."""
    rows = []
    with tempfile.TemporaryDirectory(dir=place.work) as folder:
        data = Path(folder, "data")
        settings = Settings(data)
        with opened(settings) as session:
            imported(session, DOCUMENTS)
            accounts.create(session, Account("reader"), "a password of some length")
        reader = signed_in(data, accounts.account(data, "reader"))
        with server(data) as (port, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            url = f"http://127.0.0.1:{port}/"
            for name, size in SCREENS.items():
                context = browser.new_context(viewport=size)
                context.add_cookies([{"name": LOGIN_COOKIE, "value": reader.cookie.partition("=")[2], "url": url}])
                found = list(measured(context.new_page(), url, size["height"]))
                rows.append(_row(name, found))
                context.close()
            browser.close()
    return rows


def _row(name: str, found: Sequence[Seen]) -> Row:
    total = len(found)
    counts = {what: sum(getattr(one, what) for one in found) for what in ("whole", "begun", "mark")}
    first = sum(one.place == 1 for one in found)
    value = f"whole {counts['whole']}, begun {counts['begun']}, with a mark in sight {counts['mark']}; of {total}"
    how = f"Chromium {name}, questions of ward8_held; the first section for {first}"
    return Row(f"section that answers on the first screen, {name}", "", value, "-", how)
