"""Sentences before their answer: only once no check takes them back, never without a login, and always audited."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from localmed.domain import SearchFilter
from localmed.domain.accounts import SessionRole
from localmed.errors import Cancelled
from localmed.hooks import Cancel, Hooks
from localmed.operations import changes, logins, lookups
from localmed.operations.audit import Audit
from localmed.session import Caller, Session, local_caller
from localmed.workflows import ask as flow_module
from localmed.workflows.answering import badged
from tests.web.conftest import Clients, OpenWindow
from tests.web.test_ask import PDF_QUESTION, streamed

SENTENCE = "The loading dose of vancomycin is 25 mg/kg by slow infusion."


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """An answer's badge waits until the event is set; a test that fails does not hold the thread."""
    go_on = threading.Event()

    def waiting(*arguments: Any) -> Any:
        go_on.wait(60)
        return (yield from badged(*arguments))

    monkeypatch.setattr(flow_module, "badged", waiting)
    yield go_on
    go_on.set()


def session_of(clients: Clients) -> Session:
    return Session(clients.site, Caller("reader", frozenset({"ward"}), SessionRole.READER))


def entries(clients: Clients) -> list[tuple[str, str, str]]:
    with closing(Audit(clients.settings.data)) as log:
        return [(entry.action, entry.outcome, entry.subject) for entry in log.entries()]


def test_each_sentence_comes_with_its_source_and_label_before_the_answer(client: Clients) -> None:
    events = streamed(client("reader"), question=PDF_QUESTION)
    kinds = [event["kind"] for event in events]
    place = kinds.index("sentences")
    assert set(kinds[place + 1 :]) == {"step", "answer"}, "what judges the badge"
    (first, *_), answer = events[place]["value"], events[-1]["value"]
    assert SENTENCE in first
    assert 'href="/passages/' in first
    assert "quoted from the source" in first
    assert SENTENCE in answer["html"]
    assert answer["said"].startswith("Quoted")
    assert ":." not in answer["said"]


def test_what_was_withdrawn_meanwhile_is_not_told(copied_clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    session = session_of(copied_clients)
    librarian = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(row for row in lookups.documents(librarian) if "ancomycin" in row.title)
    settled = flow_module._settled

    def withdrawn(*arguments: Any) -> Any:
        if not changed:
            changes.withdraw(librarian, document, True, "by the manufacturer")
            changed.append(document)
        return (yield from settled(*arguments))

    changed: list[Any] = []
    monkeypatch.setattr(flow_module, "_settled", withdrawn)
    answer = session.ask(PDF_QUESTION, SearchFilter(), hooks=Hooks(settled=lambda one, _: counts.append(len(one))))
    assert changed
    assert counts == [len(answer.statements)] * bool(answer.statements)
    assert SENTENCE not in str(answer.statements)


def test_what_is_withdrawn_after_it_was_told_is_taken_back(
    copied_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: list[int] = []
    session = session_of(copied_clients)
    librarian = Session(copied_clients.site, local_caller(copied_clients.settings))
    document = next(row for row in lookups.documents(librarian) if "ancomycin" in row.title)

    def withdrawn(*arguments: Any) -> Any:
        if len(counts) == 1:
            changes.withdraw(librarian, document, True, "by the manufacturer")
        return (yield from badged(*arguments))

    monkeypatch.setattr(flow_module, "badged", withdrawn)
    session.ask(PDF_QUESTION, SearchFilter(), hooks=Hooks(settled=lambda one, _: counts.append(len(one))))
    assert counts[0] > 0
    assert counts[1] == 0, "nothing of it stands"


def test_what_was_seen_of_an_answer_that_was_cut_off_is_audited(copied_clients: Clients) -> None:
    cancel = Cancel()
    hooks = Hooks(settled=lambda *_: cancel.cancel(), cancel=cancel, answer_id="seen")
    count = len(entries(copied_clients))
    with pytest.raises(Cancelled):
        # the further studies come after the sentences, and look whether they are still wanted
        session_of(copied_clients).ask(PDF_QUESTION, SearchFilter(), hooks=hooks, check=True)
    ((action, outcome, subject),) = entries(copied_clients)[count:]
    assert (action, outcome) == ("ask_and_verify", "cut off")
    assert "answer seen; documents " in subject
    unseen = Hooks(cancel=cancel)
    with pytest.raises(Cancelled):
        session_of(copied_clients).ask(PDF_QUESTION, SearchFilter(), hooks=unseen, check=True)
    assert len(entries(copied_clients)) == count + 1, "of what nobody saw nothing is said"


def test_whose_login_ends_is_told_no_sentence(client: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = client("reader")
    settled = flow_module._settled

    def late(*arguments: Any) -> Any:
        monkeypatch.setattr(logins, "current", lambda *_: None)
        return (yield from settled(*arguments))

    monkeypatch.setattr(flow_module, "_settled", late)
    events = streamed(reader, question=PDF_QUESTION)
    assert [event["kind"] for event in events][-1] == "error"
    assert "sentences" not in [event["kind"] for event in events]


def test_sentences_are_shown_announced_and_then_in_the_answer(
    client: Clients, browser: OpenWindow, held: threading.Event
) -> None:
    window = browser(client, viewport={"width": 1400, "height": 900})
    window.sign_in("reader")
    page = window.page
    page.fill("#question", PDF_QUESTION)
    page.click("form[data-ask] button:not([type=button])")
    page.wait_for_selector(f"[data-sentences][aria-live=polite] li >> text={SENTENCE}")
    assert page.inner_text("[data-answer]").strip() == ""
    page.click("[data-sentences] .cite")
    page.wait_for_selector(f"[data-pane] mark >> text={SENTENCE}")
    held.set()
    page.wait_for_selector("[data-answer] .bottom")
    assert page.get_attribute("[data-answer]", "aria-live") == "off", "its sentences were announced"
    assert "Quoted" in page.inner_text("[data-ended]")
    assert page.locator("[data-sentences] li").count() == 0
    page.click(".bottom .cite")
    page.wait_for_selector(f".answer + [data-pane] mark >> text={SENTENCE}")
    window.was_quiet()


def test_cancelled_between_sentences_and_answer(client: Clients, browser: OpenWindow, held: threading.Event) -> None:
    window = browser(client)
    window.sign_in("reader")
    page = window.page
    page.fill("#question", PDF_QUESTION)
    page.click("form[data-ask] button:not([type=button])")
    page.wait_for_selector("[data-sentences] li")
    page.click("[data-cancel]")
    page.wait_for_selector("text=Nothing was answered")
    held.set()
    assert page.locator("[data-sentences] li").count() == 0
    assert page.is_hidden("[data-early]")
    window.was_quiet()
