"""The ward's desk in Debian's Chromium: keys and clicks of ten tasks, layout shift, axe.

Each task begins at the first page, signed in. Letters that are typed into a field are not counted; a key is a press of
Enter, Esc, an arrow, Tab or "/". A task's steps are done here: one that does not lead to what it waits for fails the
benchmark.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from localmed.config import Settings
from localmed.people import accounts
from localmed.site.site import Site
from tests.benchmarks.common import Place, Row, met
from tests.benchmarks.window import library
from tests.web.conftest import ARGUMENTS, CHROMIUM, Clients, Window, make_accounts, served

QUESTION = "What is the blood pressure target for most adults with hypertension?"
SHIFT = """() => new Promise((done) => {
    let shift = 0;
    const note = (one) => { if (!one.hadRecentInput) shift += one.value; };
    const watch = new PerformanceObserver((list) => list.getEntries().forEach(note));
    watch.observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(shift), 1500);
})"""


@dataclass
class Hand:
    """Whoever does a task, and what it took."""

    page: Page
    keys: int = 0
    clicks: int = 0

    def key(self, name: str) -> None:
        """Press a key that is no letter of a text."""
        self.keys += 1
        self.page.keyboard.press(name)

    def click(self, selector: str) -> None:
        """Click."""
        self.clicks += 1
        self.page.click(selector)

    def ask(self) -> None:
        """A question, and the sections that it leads to."""
        self.page.keyboard.type(QUESTION)
        self.key("Enter")
        self.page.wait_for_selector("[data-answer] .card")


def _marked_page(hand: Hand) -> None:
    hand.ask()
    while not hand.page.evaluate("document.querySelector('[data-answer] [data-pane] img').naturalWidth"):
        hand.page.wait_for_timeout(20)


def _second_section(hand: Hand) -> None:
    hand.ask()
    hand.key("ArrowDown")
    hand.key("ArrowDown")
    hand.key("Enter")
    hand.page.wait_for_selector("[data-pane]:not(.first) img")


def _edition(hand: Hand) -> None:
    hand.ask()
    assert "edition" in hand.page.inner_text(".card .about")


def _larger(hand: Hand) -> None:
    hand.ask()
    hand.click("[data-pane] [data-key=larger]")
    hand.page.wait_for_selector("[data-pane] .zoom2")


def _find(hand: Hand) -> None:
    hand.ask()
    hand.click("[data-pane] [name=words]")
    hand.page.keyboard.type("diuretic")
    hand.key("Enter")
    hand.page.wait_for_selector(".places a")


def _copy(hand: Hand) -> None:
    hand.ask()
    hand.click(".card [data-copy-section]")


def _sheet(hand: Hand) -> None:
    hand.ask()
    with hand.page.context.expect_page() as opened:
        hand.click("a[href$='/sheet']")
    opened.value.wait_for_selector("figure.sheet img")
    opened.value.close()


def _again(hand: Hand) -> None:
    hand.ask()
    hand.key("/")
    hand.ask()


def _reload(hand: Hand) -> None:
    hand.ask()
    hand.keys += 1  # F5, which a browser without a screen does not obey
    hand.page.reload()
    hand.page.wait_for_selector("[data-answer] .card")


def _newest(hand: Hand) -> None:
    hand.click("[data-before] a[href^='/documents/']")
    hand.page.wait_for_selector(".whole .source img")


TASKS: dict[str, Callable[[Hand], None]] = {
    "ask and see the marked page": _marked_page,
    "the page of the second section, by keys": _second_section,
    "edition of what was found": _edition,
    "the page larger": _larger,
    "find a word in the document": _find,
    "copy one section with its source": _copy,
    "a sheet with the pages' images": _sheet,
    "ask something else": _again,
    "load the answer again": _reload,
    "open a new guideline": _newest,
}


def run(place: Place) -> list[Row]:
    """All figures of the desk."""
    data = place.work / "window-data"
    library(data)
    settings = Settings(data)
    if "reader" not in {account.user for account in accounts.accounts(data)}:
        make_accounts(settings)
    with Site(settings) as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        with served(Clients(settings, site)) as url:
            return [_tasks(browser, url), *_page(browser, url)]


def _window(browser: Browser, url: str) -> Window:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(60_000)
    window = Window(context.new_page(), url)
    window.sign_in("reader")
    return window


def _tasks(browser: Browser, url: str) -> Row:
    counts = {}
    for name, task in TASKS.items():
        hand = Hand(_window(browser, url).page)
        task(hand)
        counts[name] = hand.keys + hand.clicks
        hand.page.context.close()
    how = "; ".join(f"{name}: {count}" for name, count in counts.items())
    total = str(sum(counts.values()))
    return Row("desk, keys and clicks of ten tasks", "", total, "-", f"letters typed are not counted; {how}")


def _page(browser: Browser, url: str) -> list[Row]:
    page = _window(browser, url).page
    first = page.evaluate(SHIFT)
    _marked_page(Hand(page))
    shift = max(first, page.evaluate(SHIFT))
    faults = [fault["id"] for fault in Axe().run(page).response["violations"]]
    page.goto(url)
    faults += [fault["id"] for fault in Axe().run(page).response["violations"]]
    return [
        Row("desk, axe findings on first page and sections", "0", str(len(faults)), met(not faults),
            f"every impact; {', '.join(faults) or 'none'}"),
        Row("desk, layout shift", "0", f"{shift:.3f}", met(shift < 0.001), "without shifts within 0.5 s of a key"),
    ]  # fmt: skip
