"""The catalogue of messages: plurals, lists, messages within messages, errors that cross processes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed.domain import Message, Parameter, errors, message
from localmed.domain.errors import InputError, UnknownName, UsageError
from localmed.messages import ASIDE, LANGUAGES, as_json, catalogue, from_json, joined, render

PACKAGE = Path(__file__).parent.parent / "localmed"


@pytest.mark.parametrize("language", LANGUAGES)
def test_sections_are_the_whole_file(language: str) -> None:
    """They are cut at the lines that begin a table, before anything is parsed."""
    whole = tomllib.loads((PACKAGE / "messages" / f"{language}.toml").read_text("utf-8"))
    assert {code.partition(".")[0] for code in catalogue(language)} == set(whole)
    assert sum(map(leaves, whole.values())) == len(catalogue(language))


def leaves(entry: object) -> int:
    return sum(map(leaves, entry.values())) if isinstance(entry, dict) else 1


def test_lists_and_messages_in_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"x.count": "pages of {names}: {count}", "x.within": "see {inner}"}
    monkeypatch.setattr("localmed.messages._template", lambda _, code: entries.get(code))
    pages = message("x.count", count=1, names=("a", "b"))
    assert render(pages, "en") == "pages of a, b: 1"
    assert render(message("x.within", inner=pages), "zh") == "see pages of a、b: 1"
    assert render(message("x.lost", number=3), "en") == "x.lost {'number': 3}"
    assert render(message("x.within.what", inner=1), "en") == "see 1", "as an older version stored it"


def test_texts_are_joined_as_the_language_joins_them() -> None:
    assert joined(("甲", "乙"), "zh") == "甲、乙"
    assert joined(("题目", "2023年版"), "zh", ASIDE) == "题目，2023年版"
    assert joined(("title", "2023"), "fr", ASIDE) == "title, 2023"


def test_an_error_says_what_happened_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"pdf.locked.what": "{name} is locked", "pdf.locked.command": "Unlock it"}
    monkeypatch.setattr("localmed.messages._template", lambda _, code: entries.get(code))
    error = InputError("pdf.locked", name="a.pdf")
    assert str(error) == "a.pdf is locked. Unlock it"
    assert [part.code for part in error.messages] == ["pdf.locked.what", "pdf.locked.command"]


def parameters() -> st.SearchStrategy[Parameter]:
    simple = st.one_of(st.text(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(st.text(min_size=1), inner, max_size=3).map(
                lambda named: Message("a.b", tuple(named.items()))
            ),
        ),
        max_leaves=6,
    )


@given(st.dictionaries(st.text(min_size=1), parameters(), max_size=4))
def test_a_message_comes_back_from_json(named: dict[str, Parameter]) -> None:
    made = Message("section.name", tuple(named.items()))
    assert from_json(as_json(made)) == made


def test_an_error_crosses_processes_as_codes() -> None:
    error = UnknownName("search.passage_none").within("a.pdf")
    again = errors.from_json(json.loads(json.dumps(errors.as_json(error))), UsageError)
    assert type(again) is UnknownName
    assert again.messages == error.messages
    sent = errors.as_json(errors.BadSettings("settings.server_model"))
    assert type(errors.from_json(sent, errors.ModelError)) is errors.ModelError, "only the errors that are its own"
    assert type(errors.from_json({**sent, "class": "SystemExit"}, InputError)) is InputError
    long = message("x.y", text="a" * 10_000, more=(message("x.z", text="b" * 10_000),))
    bounded = errors.from_json(errors.as_json(InputError(long)), InputError)
    assert len(render(bounded.messages[0], "en")) < 3 * errors.LONGEST_WORD


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"class": "Busy", "messages": []},
        {"class": "Busy", "messages": [1]},
        {"class": [], "messages": [{"code": "x"}]},
    ],
)
def test_what_is_no_error_is_refused(entry: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="no error"):
        errors.from_json(entry, UsageError)


def test_a_message_that_lacks_parameters_is_shown_as_it_is() -> None:
    """Another version, or a damaged process, may send one."""
    assert render(message("chat.slow", other=1), "zh") == "chat.slow {'other': 1}"
    assert render(message("chat.slow", bound="soon"), "en") == "chat.slow {'bound': 'soon'}"
