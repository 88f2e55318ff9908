"""The window in a real browser: first start to first answer, a section to its page, keyboard, uploads, tabs."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pytest

from localmed.domain import Status
from localmed.people import accounts
from localmed.process.hooks import Hooks
from localmed.site import changes, lookups
from localmed.site.session import Session, local_caller
from tests.cli.conftest import write_files
from tests.web.conftest import PASSWORD, Clients, OpenWindow, Window
from tests.web.test_uploads import waiting
from tests.words import phrase, said

QUESTION = "What is the loading dose of vancomycin?"
SENTENCE = "The loading dose of vancomycin is 25 mg/kg by slow infusion."
WIDE = {"width": 1400, "height": 900}


def ask(window: Window, question: str = QUESTION) -> None:
    window.page.fill("#question", question)
    window.page.keyboard.press("Tab")
    window.page.click("form[data-ask] button:not([type=button])")
    window.page.wait_for_selector("[data-answer] h2", timeout=60_000)  # the first loads the models


def tab_in(window: Window, selector: str) -> None:
    """Press Tab until the focus is on ``selector``."""
    page = window.page
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"the keyboard does not reach {selector}")


@pytest.mark.slow
def test_from_the_first_start_to_the_first_answer(
    empty_clients: Clients, browser: OpenWindow, tmp_path_factory: pytest.TempPathFactory
) -> None:
    code = accounts.first_code(empty_clients.settings.data)
    folder = write_files(tmp_path_factory.mktemp("first") / "documents")
    window = browser(empty_clients)
    page = window.page
    page.goto(window.url)
    for name, value in (("code", code), ("user", "wu"), ("password", PASSWORD), ("again", PASSWORD)):
        page.fill(f"#{name}", value)
    page.click("main button")
    page.click("main a.button")
    page.fill("#folder", str(folder))
    page.click("button[value=folder]")
    page.wait_for_selector(f"text={phrase('job.imported')}", timeout=30_000)
    ask(window)
    assert SENTENCE in page.inner_text("[data-answer] mark")
    window.was_quiet()


@pytest.mark.parametrize("width", [1400, 390])
def test_what_a_document_is_stays_in_sight_beside_its_mark(
    copied_clients: Clients, browser: OpenWindow, width: int
) -> None:
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(one for one in lookups.documents(session) if "ancomycin" in one.title)
    changes.mark(session, document, Status.SUPERSEDED)
    passage = next(it for it in lookups.document_details(session, document.id).passages if SENTENCE in it.text)
    start = passage.text.index(SENTENCE)
    window = browser(copied_clients, viewport={"width": width, "height": 450})
    window.sign_in("reader", f"/passages/{passage.id}?start={start}&end={start + len(SENTENCE)}")
    page = window.page
    page.evaluate(  # it is scrolled to the mark
        "new Promise((done) => { const look = () => scrollY > 50 ? done() : setTimeout(look, 50); look(); })"
    )
    head = page.locator(".source .top")
    box = head.bounding_box()
    assert box
    assert (box["y"], box["height"] < 200) == (0, True), "under a third of a phone, which is 640 tall or more"
    for text in (document.title, said("answer.superseded")):
        assert text in head.inner_text()
    window.was_quiet()


def test_a_section_opens_the_marked_page_beside_it(client: Clients, browser: OpenWindow) -> None:
    window = browser(client, viewport={"width": 1400, "height": 450})
    window.sign_in("reader")
    page = window.page
    ask(window)
    assert "/answers/" in page.url
    page.click("[data-answer] h3 a")
    page.wait_for_selector("[data-pane]:not(.first) mark", state="attached")
    assert page.locator("[data-pane] mark").text_content() == SENTENCE
    while not page.evaluate("document.querySelector('[data-pane] img').naturalWidth"):
        page.wait_for_timeout(50)
    assert page.evaluate("document.activeElement.closest('[data-pane]') !== null")
    page.locator("[data-pane] img").evaluate(  # the pane is scrolled to the mark
        "(image) => new Promise((done) => { const look = () => image.closest('[data-pane]').scrollTop > 50"
        " ? done() : setTimeout(look, 50); look(); })"
    )
    page.click("[data-pane] >> [data-key=before]")
    page.wait_for_selector(f"[data-pane] >> text={said('web.source.marked_on', page=2)}")
    page.click("[data-pane] >> [data-key=larger]")
    page.wait_for_selector("[data-pane] .zoom2")
    assert page.evaluate("document.activeElement.dataset.key") == "larger", "the same button once more"
    page.keyboard.press("Escape")
    assert page.is_hidden("[data-pane]")
    assert page.evaluate("document.activeElement.matches('[data-answer] h3 a')")
    page.goto(f"{page.url}/sheet")
    cards = page.locator("[data-sections] .card")
    before = cards.count()
    page.click("[data-leave-out]")
    assert cards.count() == before - 1, "what is not wanted on paper is left out"
    window.was_quiet()


def test_on_a_narrow_screen_and_without_the_script(client: Clients, browser: OpenWindow) -> None:
    window = browser(client, viewport={"width": 420, "height": 800}, java_script_enabled=False)
    window.sign_in("reader")
    page = window.page
    page.fill("#question", QUESTION)
    page.click("form[data-ask] button")
    page.click("[data-answer] h3 a")
    assert page.inner_text("mark") == SENTENCE
    assert page.locator("main").bounding_box()["width"] <= 420  # type: ignore[index]
    window.was_quiet()


def test_with_the_keyboard_alone(client: Clients, browser: OpenWindow) -> None:
    window = browser(client, viewport=WIDE)
    page, keys = window.page, window.page.keyboard
    page.goto(window.url + "/login")

    tab_to = partial(tab_in, window)
    tab_to("#user")
    keys.type("reader")
    tab_to("#password")
    keys.type(PASSWORD)
    keys.press("Enter")
    page.wait_for_selector("#question")
    tab_to("#question")
    keys.type(QUESTION)
    tab_to("form[data-ask] button")
    keys.press("Enter")
    page.wait_for_selector("[data-answer] h2")
    page.wait_for_selector("[data-focus]:focus")
    tab_to("[data-answer] h3 a")
    keys.press("Enter")
    page.wait_for_selector("[data-pane]:not(.first) mark", state="attached")
    window.was_quiet()


@pytest.mark.slow
def test_the_focus_is_never_lost(client: Clients, browser: OpenWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    window = browser(client, viewport=WIDE, locale="en-GB")
    window.sign_in("reader")
    page, keys = window.page, window.page.keyboard

    def at(selector: str) -> bool:
        return bool(page.evaluate("(selector) => document.activeElement.matches(selector)", selector))

    page.wait_for_selector("#question:focus")
    keys.type(QUESTION)
    keys.press("Enter")
    page.wait_for_selector("[data-answer] .card", timeout=60_000)
    answer = page.url
    keys.press("ArrowDown")
    assert at("article:nth-of-type(1) h3 a")
    keys.press("Tab")
    assert at("article:nth-of-type(1) [data-copy-section]"), "what is copied is the section whose heading had the focus"
    keys.press("ArrowDown")
    assert at("article:nth-of-type(2) h3 a")
    tab_in(window, "[data-pane] [name=words]")
    keys.press("Escape")
    assert page.is_hidden("[data-pane]")
    assert at("article:nth-of-type(1) h3 a"), "the page beside, which nobody opened, is that of the first section"

    for opener, pressed, then in (("", ".who [name=language]", ".who [name=language]"),
                                  (".menu summary", ".menu [value=dark]", ".menu summary")):  # fmt: skip
        if opener:
            tab_in(window, opener)
            keys.press("Enter")
        tab_in(window, pressed)
        page.evaluate("document.querySelector('main').dataset.old = ''")
        keys.press("Enter")
        page.wait_for_selector("main:not([data-old])")
        page.wait_for_selector(f"{then}:focus")

    page.set_viewport_size({"width": 420, "height": 800})
    page.goto(answer)
    page.wait_for_selector("[data-focus]:focus")
    keys.press("ArrowDown")
    keys.press("Enter")
    page.wait_for_selector(".whole [data-focus]:focus")
    tab_in(window, "[data-key=larger]")
    keys.press("Enter")
    page.wait_for_selector(".whole .zoom2")
    assert at("[data-key=larger]"), "the same button once more"
    tab_in(window, ".whole [name=words]")
    keys.type("dose")
    keys.press("Enter")
    page.wait_for_selector(".whole .places")
    assert at(".whole [name=words]")
    page.click(".whole .places a")
    page.wait_for_url("**/passages/*")
    page.wait_for_selector(".whole .places")
    assert page.input_value(".whole [name=words]") == "dose", "what was found stays when one goes there"
    keys.press("Escape")
    page.wait_for_url(answer)

    monkeypatch.setattr(Session, "ask", lambda *_, **__: time.sleep(2))
    page.goto(window.url)
    keys.type(QUESTION)
    tab_in(window, "form[data-ask] button")
    keys.press("Enter")
    page.wait_for_selector("[data-cancel]:visible")
    keys.press("Escape")
    page.wait_for_selector("[data-failure]:visible")
    assert at("#question"), "a question that is stopped can be asked anew"
    page.goto(window.url + "/guide")
    keys.press("Escape")
    page.wait_for_url(window.url + "/")


@pytest.mark.slow
@pytest.mark.parametrize("script", [True, False])
def test_a_reading_is_left_out_and_brought_back_by_keyboard(client: Clients, browser: OpenWindow, script: bool) -> None:
    window = browser(client, locale="zh-CN", java_script_enabled=script)
    window.sign_in("reader")
    page = window.page
    page.fill("#question", "泰诺林和房颤")
    tab_in(window, "form[data-ask] button")
    page.keyboard.press("Enter")
    control = f'button[aria-label="{said("finding.leave_out", "zh", reading="心房颤动（房颤）")}"]'
    back = "form.readings[action='/ask'] button:not([name])"
    for pressed, then in ((control, back), (back, control)):
        page.wait_for_selector(pressed)
        tab_in(window, pressed)
        page.keyboard.press("Enter")
        page.wait_for_selector(then)
        assert page.locator(pressed).count() == 0
        assert page.locator("button[name=left_out][aria-label]").count() == (1 if then == back else 2)
        assert "房颤" not in unquote(page.url)
    if script:  # the box is as the page of the last answer shows it, and Back leads to the one before
        box = "form.ask [name=left_out]"
        assert page.locator(box).count() == 0
        page.go_back()
        page.wait_for_selector(box, state="attached")
        assert page.locator(back).count() == 1
    window.was_quiet()


@pytest.mark.slow
def test_in_chinese(client: Clients, browser: OpenWindow) -> None:
    window = browser(client, locale="zh-CN")
    window.sign_in("reader")
    page = window.page
    assert page.evaluate("document.documentElement.lang") == "zh"
    page.fill("#question", "患者张建国，男，发热")
    page.wait_for_selector("#question-names:visible")
    assert "张建国" in page.inner_text("#question-names"), "told before it is sent"
    ask(window, "重症医学科的探视时间是几点？")
    assert "16:00至18:00" in page.inner_text("[data-answer]")
    assert "科室" in page.inner_text("nav")
    window.was_quiet()


def test_an_open_answer_disappears_when_its_document_is_withdrawn(copied_clients: Clients, browser: OpenWindow) -> None:
    window = browser(copied_clients)
    window.sign_in("reader")
    ask(window)
    session = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(row for row in lookups.documents(session) if "ancomycin" in row.title)
    changes.withdraw(session, document, True, "by the manufacturer")
    window.page.wait_for_selector("text=was withdrawn", timeout=15_000)
    assert SENTENCE not in window.page.content()


def test_a_question_can_be_cancelled(client: Clients, browser: OpenWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = []

    def slow(_session: Session, *arguments: object, **_: object) -> None:
        hooks = next(argument for argument in arguments if isinstance(argument, Hooks))
        while not hooks.cancel.cancelled():
            time.sleep(0.05)
        ended.append(True)
        hooks.cancel.check()

    monkeypatch.setattr(Session, "ask", slow)
    window = browser(client)
    window.sign_in("reader")
    page = window.page
    page.fill("#question", QUESTION)
    page.click("form[data-ask] button:not([type=button])")
    page.click("[data-cancel]")
    page.wait_for_selector("[data-failure] >> text=Cancelled")
    page.wait_for_timeout(1000)
    assert ended == [True]


def test_signing_out_clears_the_screen_and_the_back_button_shows_nothing(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.sign_in("reader")
    ask(window)
    window.page.click("header form[action='/logout'] button")
    window.page.wait_for_selector("#password")
    window.page.go_back()
    window.page.wait_for_selector("#password")
    assert SENTENCE not in window.page.content()


def test_where_the_server_is_away_the_page_says_so_and_stays(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.sign_in("reader")
    page = window.page
    page.route("**/health/live", lambda route: route.abort())
    page.wait_for_selector("[data-away]:visible")
    page.click("nav a[href='/history']")
    assert page.url == window.url + "/"
    page.unroute("**/health/live")
    page.wait_for_selector("[data-away]", state="hidden")
    page.click("nav a[href='/history']")
    page.wait_for_url(window.url + "/history")


def test_no_word_of_a_table_is_broken(client: Clients, browser: OpenWindow) -> None:
    window = browser(client, viewport={"width": 1280, "height": 900})
    window.sign_in("reader")
    ask(window)
    broken = window.page.evaluate(
        """() => {
            const place = document.querySelector(".card .section"), table = document.createElement("table");
            const row = table.insertRow(), words = ["Nitrofurantoin", "Modified-release", "Spironolactone"];
            for (const word of [...words, ...words, ...words]) row.insertCell().textContent = word;
            const frame = document.createElement("div");
            frame.className = "scroll";
            frame.append(table);
            place.append(frame);
            const range = document.createRange();
            return [...row.cells].filter((cell) => {
                range.selectNodeContents(cell);
                return range.getClientRects().length > (cell.textContent.includes("-") ? 2 : 1);
            }).map((cell) => cell.textContent);
        }"""
    )
    assert broken == []


def test_enter_looks_for_the_department(client: Clients, browser: OpenWindow) -> None:
    window = browser(client, viewport={"width": 1280, "height": 500})
    window.sign_in("reader", "/departments")
    window.page.wait_for_selector("#question:focus")
    window.page.fill("#question", "crushing chest pain and sweating since this morning. " * 8)
    window.page.keyboard.press("Enter")
    window.page.wait_for_selector("[data-focus]:focus")
    for shown in (".asked.screen", ".notice"):
        place = window.page.locator(f"[data-answer] {shown}").bounding_box()
        assert place
        assert 0 < place["y"] < place["y"] + place["height"] < 500, shown
    first = window.page.url
    window.page.keyboard.press("Escape")
    window.page.keyboard.press("/")
    window.page.wait_for_selector("#question:focus")
    window.page.fill("#question", "itchy rash on my arm")
    window.page.keyboard.press("Enter")
    window.page.wait_for_function("address => location.href !== address", arg=first)
    window.was_quiet()


def test_evidence_shows_the_record_with_its_names_and_orders_take_a_file(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.sign_in("reader", "/practice")
    page = window.page
    page.fill("#question", QUESTION)
    page.click("main details summary")
    page.fill("#record", "67-year-old man. Allergies: penicillin\nParacetamol 1 g prn")
    page.click("form[data-ask] button")
    page.wait_for_selector("[data-answer] article")
    page.click(f"summary:has-text('{said('ebm.record', count=2)}')")
    page.click(".written button:text('Paracetamol')")
    page.wait_for_selector("[data-sections] .card")
    page.go_back()
    page.click(f"text={said('web.practice.change')}")
    assert "Paracetamol 1 g prn" in page.input_value("#record")
    page.goto(window.url + "/orders")
    page.set_input_files("#file", {"name": "order.txt", "mimeType": "text/plain", "buffer": b"Metformin 500 mg PO BID"})
    page.click("form[data-ask] button:not([type=button])")
    page.wait_for_selector("table.order >> text=twice a day")
    page.fill("#released_by", "Ada")
    page.select_option("#leaflet-language", "both")
    page.click(f"text={said('web.orders.release')}")
    page.wait_for_selector("article[lang=zh]")
    page.evaluate("window.print = () => { document.title = 'printed'; }")
    page.click("[data-print]")
    assert page.title() == "printed"
    page.click(f"text={said('web.answer.back')}")
    page.wait_for_selector(f"text={said('web.orders.open')}")
    page.click(f"text={said('web.orders.edit')}")
    assert page.input_value("#order") == "Metformin 500 mg PO BID"
    window.was_quiet()


# --- the library ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_good_a_bad_and_a_huge_file_are_uploaded(
    copied_clients: Clients, browser: OpenWindow, tmp_path: Path
) -> None:
    window = browser(copied_clients)
    window.sign_in("librarian")
    good, bad, huge = tmp_path / "<img src=x onerror=alert(1)>.md", tmp_path / "bad.pdf", tmp_path / "huge.pdf"
    good.write_text("# Hand rub\n\nRub for 20 seconds. <script>document.title = 'ran'</script>\n")
    bad.write_bytes(b"%PDF-1.7\nthis is not a PDF")
    with huge.open("wb") as stream:
        stream.truncate(2 * 2**30)  # sparse
    for file in (good, bad):
        window.page.goto(window.url + "/library/upload?collection=ward")
        window.page.set_input_files("#files", file)
        window.page.click("form[data-upload] button")
        window.page.wait_for_url("**/library/upload/*job=*")
    uploads = {upload.name: upload for upload in waiting(copied_clients)}
    assert uploads[good.name].reads
    assert not uploads[bad.name].reads
    window.page.goto(f"{window.url}/library/upload/{uploads[good.name].id}")
    window.page.frame_locator("iframe").get_by_text("Rub for 20 seconds").first.wait_for()
    assert "ran" not in [frame.title() for frame in window.page.frames]
    window.page.goto(window.url + "/library/documents")
    window.page.check("[data-all]")
    assert not window.page.locator("tbody [type=checkbox]:not(:checked)").count(), "all are chosen with one click"
    window.page.goto(window.url + "/library/upload")
    window.page.set_input_files("#files", huge)
    window.page.click("form[data-upload] button")
    window.page.locator("form[data-upload] [role=alert]").wait_for()
    assert window.page.url.endswith("/library/upload")
    window.was_quiet()


# --- several tabs, and the Back button --------------------------------------------------------------------------------


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


def test_another_language_after_a_form_shows_its_answer_in_it(client: Clients, browser: OpenWindow) -> None:
    window = browser(client)
    window.sign_in("reader", "/practice")
    window.page.fill("#question", QUESTION)
    window.page.click("main form button")
    window.page.wait_for_selector("[data-answer] article")
    window.page.click(".who button[value=zh]")
    window.page.wait_for_selector("html[lang=zh]")
    assert "/answers/" in window.page.url
    assert window.page.locator("[data-answer] article").is_visible()
