"""Sections before a model's answer: while they are in force, never without a login, always audited; then below it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from localmed.domain import Answer, SearchFilter, TraceStep
from localmed.domain.accounts import SessionRole
from localmed.domain.errors import Cancelled
from localmed.people import logins
from localmed.process.hooks import Cancel, Hooks
from localmed.site import changes, lookups
from localmed.site.audit import Audit
from localmed.site.session import Caller, Session, local_caller
from tests.web.conftest import Clients, OpenWindow, Window, with_model
from tests.web.test_ask import PDF_QUESTION, streamed
from tests.workflows.test_ask import Model, wrote

SENTENCE = "The loading dose of vancomycin is 25 mg/kg by slow infusion."
WRITES = wrote(("The loading dose is 25 mg/kg of vancomycin.", "The loading dose"))


@pytest.fixture
def go_on() -> Iterator[threading.Event]:
    """The model waits until it is set; a test that fails does not hold its thread."""
    event = threading.Event()
    yield event
    event.set()


@pytest.fixture
def clients(copied_clients: Clients, go_on: threading.Event) -> Iterator[Clients]:
    """Clients over a library where a chat model writes, once it may go on."""

    def reply(numbers: Mapping[str, int]) -> Any:
        assert go_on.wait(60)
        return WRITES(numbers)

    with with_model(copied_clients.settings, Model(reply)) as made:
        yield made


def session_of(clients: Clients) -> Session:
    return Session(clients.site, Caller("reader", frozenset({"ward"}), SessionRole.READER))


def titles(answer: Answer) -> list[str]:
    """The documents of the sections that somebody sees."""
    known = {piece.marker: piece.document_title for piece in answer.evidence}
    return [known[section.best] for section in answer.receipts.sections] if answer.receipts else []


def withdraw(clients: Clients) -> None:
    librarian = Session(clients.site, local_caller(clients.settings))
    document = next(row for row in lookups.documents(librarian) if "ancomycin" in row.title)
    changes.withdraw(librarian, document, True, "by the manufacturer")


def entries(clients: Clients) -> list[tuple[str, str, str]]:
    with Audit(clients.settings.data) as log:
        return [(entry.action, entry.outcome, entry.subject) for entry in log.entries()]


def test_the_sections_come_first_then_the_answer_above_them(clients: Clients, go_on: threading.Event) -> None:
    go_on.set()
    reader = clients("reader")
    events = streamed(reader, question=PDF_QUESTION)
    kinds = [event["kind"] for event in events]
    assert (kinds.count("sections"), kinds[-1]) == (1, "answer")
    early, answer = events[kinds.index("sections")]["value"], events[-1]["value"]
    assert f"<mark>{SENTENCE}</mark>" in early
    assert 'href="/passages/' in early
    assert "The loading dose is 25 mg/kg of vancomycin." not in str(events[:-1])
    html = answer["html"]
    in_order = ("Written by a language model", "The loading dose is 25 mg/kg of vancomycin.", 'class="badge green"',
                "Nearest sections", f"<mark>{SENTENCE}</mark>")  # fmt: skip
    places = [html.index(one) for one in in_order]
    assert places == sorted(places)
    assert answer["said"].startswith("Written by a language model")
    assert "/passages/" not in html, "an answer that is kept opens what it was made from"


def test_what_is_withdrawn_before_it_is_shown_is_not_shown(clients: Clients, go_on: threading.Event) -> None:
    go_on.set()
    seen: list[list[str]] = []
    withdrawn: list[bool] = []

    def finished(step: TraceStep) -> None:
        if step.name == "cite" and not withdrawn:
            withdrawn.append(True)
            withdraw(clients)

    hooks = Hooks(finished=finished, sections=lambda answer: seen.append(titles(answer)))
    answer = session_of(clients).ask(PDF_QUESTION, SearchFilter(), hooks=hooks)
    assert withdrawn
    assert len(seen) == 1
    assert not [title for title in (*seen[0], *titles(answer)) if "ancomycin" in title]


def test_what_is_withdrawn_after_it_was_shown_is_taken_back(clients: Clients, go_on: threading.Event) -> None:
    go_on.set()
    seen: list[list[str]] = []

    def sections(answer: Answer) -> None:
        seen.append(titles(answer))
        if len(seen) == 1:
            withdraw(clients)

    answer = session_of(clients).ask(PDF_QUESTION, SearchFilter(), hooks=Hooks(sections=sections))
    assert "Vancomycin leaflet" in seen[0]
    assert seen[1] == [], "nothing of it stands"
    assert not [title for title in (*seen[2], *titles(answer)) if "ancomycin" in title]


def test_what_was_seen_of_an_answer_that_was_cut_off_is_audited(clients: Clients, go_on: threading.Event) -> None:
    go_on.set()
    cancel = Cancel()
    hooks = Hooks(sections=lambda _: cancel.cancel(), cancel=cancel, answer_id="seen")
    count = len(entries(clients))
    with pytest.raises(Cancelled):
        session_of(clients).ask(PDF_QUESTION, SearchFilter(), hooks=hooks)
    ((action, outcome, subject),) = entries(clients)[count:]
    assert (action, outcome) == ("ask", "cut off")
    assert "answer seen; documents " in subject
    with pytest.raises(Cancelled):
        session_of(clients).ask(PDF_QUESTION, SearchFilter(), hooks=Hooks(cancel=cancel))
    assert len(entries(clients)) == count + 1, "of what nobody saw nothing is said"


def test_whose_login_ends_is_shown_nothing(
    clients: Clients, go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on.set()
    reader, ask = clients("reader"), Session.ask

    def late(*arguments: Any) -> Answer:
        monkeypatch.setattr(logins, "current", lambda *_, **__: None)
        return ask(*arguments)

    monkeypatch.setattr(Session, "ask", late)
    kinds = [event["kind"] for event in streamed(reader, question=PDF_QUESTION)]
    assert kinds[-1] == "error"
    assert not {"sections", "answer"} & {*kinds}


def until_sections(window: Window) -> None:
    """A reader's window that shows the sections, while the model reads them."""
    window.sign_in("reader")
    window.page.fill("#question", PDF_QUESTION)
    window.page.click("form[data-ask] button:not([type=button])")
    window.page.wait_for_selector(f"[data-passages] mark >> text={SENTENCE}")


def test_sections_open_while_the_model_reads_and_below_its_answer(
    clients: Clients, browser: OpenWindow, go_on: threading.Event
) -> None:
    window = browser(clients, viewport={"width": 1400, "height": 900})
    until_sections(window)
    page = window.page
    assert page.inner_text("[data-answer]").strip() == ""
    page.click("[data-passages] h3 a")
    page.wait_for_selector(f"[data-progress] [data-pane]:not(.first) mark >> text={SENTENCE}", state="attached")
    go_on.set()
    page.wait_for_selector("[data-answer] .bottom")
    assert "Written by a language model" in page.inner_text("[data-ended]")
    assert page.locator("[data-passages] article").count() == 0
    page.click("[data-answer] h3 a")
    page.wait_for_selector(f".answer + [data-pane]:not(.first) mark >> text={SENTENCE}", state="attached")
    window.was_quiet()


def test_cancelled_while_the_model_reads(clients: Clients, browser: OpenWindow) -> None:
    window = browser(clients)
    until_sections(window)
    window.page.click("[data-cancel]")
    window.page.wait_for_selector("[data-failure] >> text=Cancelled")
    assert window.page.locator("[data-passages] article").count() == 0
    window.was_quiet()


def test_a_login_that_ends_while_the_model_reads_leaves_nothing_on_the_screen(
    clients: Clients, browser: OpenWindow, go_on: threading.Event
) -> None:
    window = browser(clients)
    until_sections(window)
    page = window.page
    token = page.locator("header form[action='/logout'] [name=form]").get_attribute("value")
    page.context.request.post(window.url + "/logout", form={"form": str(token)})  # no tab tells this one
    go_on.set()
    page.wait_for_url("**/login*")
    assert SENTENCE not in page.content()
