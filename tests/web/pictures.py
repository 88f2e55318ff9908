"""Pictures of every page for docs/pages, over the library that `make demo` built, one picture a page: above English,
below Chinese, each on a light and on a dark screen.

Pages are found by their links as the test of accessibility finds them. Look at each picture before it
is committed.

    python -m tests.web.pictures demo/data            writes docs/pages and its README.md
"""

from __future__ import annotations

import html
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from localmed.config import Settings
from localmed.site.site import Site
from tests.web.conftest import ARGUMENTS, CHROMIUM, Client, Clients, Window, make_accounts, served
from tests.web.test_every_page import pages
from tests.web.test_reviews import CASES, made, rate_all
from tests.web.test_uploads import HAND, send, waited, waiting

PAGES = Path(__file__).parents[2] / "docs" / "pages"
QUESTIONS = {
    "en": "What is the blood pressure target for most adults with hypertension?",
    "zh": "2级高血压的收缩压范围是多少？",
}
COLLECTION = {"en": "Notes of the night nurses", "zh": "夜班护理记录"}
ORDER = "Metformin 500 mg PO BID with meals.\nChest X-ray tomorrow."
COMPLAINT = "crushing chest pain going to my left arm"
RECORD = {
    "en": "68-year-old woman. Diagnoses: hypertension, type 2 diabetes. Medication: metformin 500 mg twice daily.",
    "zh": "女，68岁。\n既往史：高血压，2型糖尿病。\n用药：二甲双胍 500 mg 每日两次。",
}
SIZE: ViewportSize = {"width": 1280, "height": 800}
TALLEST = 2000  # pixels of a page that are shown
WIDTH = 600  # pixels of one of the four screens of a picture
QUALITY = 50  # of WebP: text can be read, a picture has some 50 kB
GAP = 8  # pixels between two screens
THEMES = ("light", "dark")
BY_HAND = ("login", "practice_answer", "answer_with_its_source", "job")  # no link leads there
ELSEWHERE = ("login", "start")  # taken before signing in; leads elsewhere once there are accounts
HEADER = """# The pages

The pages of `localmed serve` over the starter corpus, in English and Chinese, each on a light and on a dark screen, as
an administrator sees them ({day}). Others see fewer entries above. Made by `tests/web/pictures.py`.
"""


def main(demo: Path) -> None:
    """Make all pictures anew."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data")
        shutil.copytree(demo, data, symlinks=True, ignore=shutil.ignore_patterns("host"))
        settings = Settings(data)
        make_accounts(settings)
        with Site(settings) as site, chromium() as browser:
            clients = Clients(settings, site)
            addresses = pages(clients("admin"), seeds(clients))
            names = {_name(template): path for template, path in addresses.items()}
            shots = Path(folder, "shots")
            shots.mkdir()
            for language in QUESTIONS:
                with served(clients) as url:
                    _all(browser, url, language, names, shots)
        _index(names, shots)


def seeds(clients: Clients) -> list[str]:
    """Something on every page, and where those are that no link leads to."""
    admin = clients("admin")
    admin.form("/account/tokens", name="laboratory", days="30")
    for name in ("ward.md", "hand.md"):  # the first is published: a generation to go back to
        send(admin, HAND, name, collection="starter-local")
        waited(clients)
        if name == "ward.md":
            (upload,) = waiting(clients)
            admin.form(f"/library/upload/{upload.id}/publish", title=upload.proposed["title"])
            waited(clients)
    answers = [
        _answer_path(admin, "/ask", question=QUESTIONS["en"], check="true"),
        _answer_path(admin, "/orders", order=ORDER),
    ]
    answers += [_answer_path(admin, "/departments", question=COMPLAINT)]
    admin.form(f"{answers[0]}/report", opinion="bad", comment="The older adults are missing.")
    passage = re.search(r'href="(/passages/[^"]+)"', admin.form("/search", question=QUESTIONS["en"]).text)
    closed = made(admin, title="Spring", cases=CASES, reviewers="admin")
    rate_all(admin, closed)
    admin.form(f"{closed}/close")
    admin.form("/safety/reviews", title="Autumn", form_of="lay", cases=CASES, reviewers="admin")
    waited(clients)
    reviews = re.findall(r'href="(/safety/reviews/[\w-]+)"', admin.get("/safety/reviews").text)
    begun = next(link for link in reviews if link != closed)
    return [*answers, html.unescape(passage[1]) if passage else "", closed, begun.replace("/safety", "")]


def _answer_path(client: Client, path: str, **fields: str) -> str:
    return client.form(path, **fields).url.path


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


def _all(browser: Browser, url: str, language: str, names: dict[str, str], shots: Path) -> None:
    context = browser.new_context(viewport=SIZE, locale={"en": "en-GB", "zh": "zh-CN"}[language])
    page = context.new_page()
    page.goto(f"{url}/login")
    _take(page, shots, "login", language)
    Window(page, url).sign_in("admin")
    for name, path in names.items():
        if name not in ELSEWHERE:
            page.goto(url + path)
            _take(page, shots, name, language)
    _practice(page, url, shots, language)
    _job(page, url, shots, language)
    _beside(page, url, shots, language)
    context.close()


def _practice(page: Page, url: str, shots: Path, language: str) -> None:
    """What the library says on what a record names."""
    page.goto(f"{url}/practice")
    page.fill("#question", QUESTIONS[language])
    page.click("main details summary")
    page.fill("#record", RECORD[language])
    page.click("main form button")
    page.wait_for_selector("table.paired")
    page.reload()
    _take(page, shots, "practice_answer", language)


def _ask(page: Page, url: str, question: str) -> None:
    page.goto(f"{url}/")
    page.fill("#question", question)
    page.click("form[data-ask] button:not([type=button])")
    page.wait_for_selector("[data-answer] h2", timeout=120_000)


def _job(page: Page, url: str, shots: Path, language: str) -> None:
    """A change as it has ended: an empty collection is made."""
    page.goto(f"{url}/library/collections")
    page.click("main details summary")
    page.fill("#name", f"night-{language}")
    page.fill("#title", COLLECTION[language])
    page.click("form[action='/library/collections'] button")
    page.wait_for_selector("main > .notice[role=status]", timeout=120_000)
    _take(page, shots, "job", language)


def _beside(page: Page, url: str, shots: Path, language: str) -> None:
    """Sections, the page of the first beside them."""
    _ask(page, url, QUESTIONS[language])
    while not page.evaluate("[...document.querySelectorAll('[data-answer] img')].every((one) => one.naturalWidth)"):
        page.wait_for_timeout(50)
    page.wait_for_timeout(500)  # it is scrolled to the mark
    page.evaluate("window.scrollTo(0, 0)")
    _take(page, shots, "answer_with_its_source", language, full_page=False)


def _take(page: Page, shots: Path, name: str, language: str, full_page: bool = True) -> None:
    """The page on a light and on a dark screen."""
    page.wait_for_load_state("networkidle")
    for theme in reversed(THEMES):  # it goes on light
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        page.screenshot(path=shots / f"{name}_{language}_{theme}.png", full_page=full_page)


def _together(shots: Path, name: str) -> None:
    """One picture of the screens of a page: a row a language, a column a theme."""
    rows = [[_smaller(shots / f"{name}_{language}_{theme}.png") for theme in THEMES] for language in QUESTIONS]
    heights = [max(tile.height for tile in row) + GAP for row in rows]
    whole = Image.new("RGB", (len(THEMES) * (WIDTH + GAP) - GAP, sum(heights) - GAP), "#888")
    for row, top in zip(rows, accumulate(heights, initial=0), strict=False):
        for column, tile in enumerate(row):
            whole.paste(tile, (column * (WIDTH + GAP), top))
    whole.save(PAGES / f"{name}.webp", quality=QUALITY, method=6)


def _smaller(path: Path) -> Image.Image:
    """The screen as wide as a picture shows it, without what is far below."""
    with Image.open(path) as whole:
        part = whole.convert("RGB").crop((0, 0, whole.width, min(whole.height, TALLEST)))
        return part.resize((WIDTH, round(part.height * WIDTH / part.width)), Image.Resampling.LANCZOS)


def _name(template: str) -> str:
    return "_".join(re.findall(r"\w+", template)) or "ask"


def _index(names: dict[str, str], shots: Path) -> None:
    """The pictures and docs/pages/README.md; pictures of pages that are no more are removed."""
    shown = sorted({*names, *BY_HAND} - {"start"})
    for picture in [*PAGES.glob("*.png"), *PAGES.glob("*.webp")]:
        picture.unlink()
    parts = [HEADER.format(day=datetime.now(UTC).date().isoformat())]
    for name in shown:
        _together(shots, name)
        title = name.replace("_", " ").capitalize()
        parts.append(f"## {title}\n\n![{title}]({name}.webp)\n")
    PAGES.joinpath("README.md").write_text("\n".join(parts), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
