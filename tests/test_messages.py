"""Every code has words in both languages, is used, and takes the parameters that it is given."""

from __future__ import annotations

import ast
import json
import re
import string
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localmed import errors
from localmed.domain import Message, Parameter, message
from localmed.errors import InputError, LocalmedError, UnknownName, UsageError
from localmed.messages import (
    ASIDE,
    COMMAND,
    LANGUAGES,
    REFERENCE,
    REMEDY,
    WHAT,
    Template,
    as_json,
    catalogue,
    from_json,
    joined,
    render,
)

PACKAGE = Path(__file__).parent.parent / "localmed"
MAKERS = {"message", "say", "text", "confirm"}  # functions whose first argument is a code
CHECKS = {"ok", "warning", "problem"}  # ... whose second is
NOT_PARAMETERS = {"err", "colour", "bold"}
NOT_CODES = {"literal"}  # words as they came, see en.toml


def forms(template: Template) -> list[str]:
    return [template] if isinstance(template, str) else list(template.values())


def placeholders(template: Template) -> set[str]:
    fields = (field for form in forms(template) for _, field, _, _ in string.Formatter().parse(form))
    return {field.split(".")[0].split("[")[0] for field in fields if field}


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def templates() -> str:
    """The text of all templates, in which ``text("web.save")`` names a code and ``"web.role." ~ role`` several."""
    return "".join(path.read_text("utf-8") for path in sorted(PACKAGE.rglob("templates/*.html")))


def constants() -> Iterator[str]:
    yield from re.findall(r'"([a-z_.]+)"', templates())
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def prefixes() -> set[str]:
    """What f-strings begin with that end in a dot: ``f"badge.{value}"`` uses every code under ``badge.``."""
    return set(re.findall(r'"([a-z_.]+\.)" ~', templates())) | {
        str(first.value)
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) and node.values
        for first in node.values[:1]
        if isinstance(first, ast.Constant) and "." in str(first.value)
    }


def entry(code: str) -> str:
    """The code as it is used: an error names its entry, not the what and the remedy in it."""
    return code.removesuffix(".what").removesuffix(".remedy").removesuffix(".command")


def calls() -> Iterator[tuple[str, str, set[str] | None]]:
    """Messages and errors made from a written code: (place, code, parameters, None if not all are written)."""
    classes = {name for name, value in vars(errors).items()
              if isinstance(value, type) and issubclass(value, LocalmedError)}  # fmt: skip
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            function = node.func.id
            place = 0 if function in classes | MAKERS else 1 if function in CHECKS else len(node.args)
            names = {keyword.arg for keyword in node.keywords if keyword.arg} - NOT_PARAMETERS
            whole = all(keyword.arg for keyword in node.keywords)
            for code in codes_of(node.args[place]) if place < len(node.args) else ():
                yield f"{path.name}:{node.lineno}", code, names if whole else None


def codes_of(node: ast.expr) -> list[str]:
    """The codes that an argument may be: one, or one of two."""
    if isinstance(node, ast.IfExp):
        return codes_of(node.body) + codes_of(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def is_code(text: str) -> bool:
    return " " not in text and "." in text


def referred() -> set[str]:
    """The codes that other entries take their words from."""
    text = (PACKAGE / "messages" / "en.toml").read_text("utf-8")
    return set(re.findall(rf'"{REFERENCE}([\w.]+)"', text))


def test_both_languages_have_the_same_codes() -> None:
    english, chinese = (set(catalogue(language)) for language in LANGUAGES)
    assert english - chinese == set(), "no Chinese words"
    assert chinese - english == set(), "no English words"


@pytest.mark.parametrize("language", LANGUAGES)
def test_sections_are_the_whole_file(language: str) -> None:
    """They are cut at the lines that begin a table, before anything is parsed."""
    whole = tomllib.loads((PACKAGE / "messages" / f"{language}.toml").read_text("utf-8"))
    assert {code.partition(".")[0] for code in catalogue(language)} == set(whole)
    assert sum(map(leaves, whole.values())) == len(catalogue(language))


def leaves(entry: object) -> int:
    return 1 if not isinstance(entry, dict) or "other" in entry else sum(map(leaves, entry.values()))


@pytest.mark.parametrize("code", sorted(catalogue("en")))
def test_both_languages_use_the_same_parameters(code: str) -> None:
    english, chinese = (placeholders(catalogue(language)[code]) for language in LANGUAGES)
    assert english - {"count"} == chinese - {"count"}, code


def test_every_code_is_used() -> None:
    used, begun = set(constants()) | referred(), tuple(prefixes())
    codes = set(catalogue("en")) - NOT_CODES
    unused = {code for code in codes if not {code, entry(code)} & used and not code.startswith(begun)}
    assert unused == set()


def test_every_code_that_is_made_has_words_and_its_parameters() -> None:
    known = catalogue("en")
    wrong = []
    for place, code, names in calls():
        if not is_code(code):
            continue
        entries = [part for part in (code, *(f"{code}{end}" for end in (WHAT, REMEDY, COMMAND))) if part in known]
        expected = set().union(*(placeholders(known[part]) for part in entries))
        if not entries:
            wrong.append(f"{place}: {code} has no words")
        elif names is not None and names - {"count"} != expected - ({"count"} & names):
            wrong.append(f"{place}: {code} takes {sorted(expected)}, is given {sorted(names)}")
    assert wrong == []


def test_plurals_lists_and_messages_in_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    entries: dict[str, Template] = {
        "x.count": {"one": "{count} page of {names}", "other": "{count} pages of {names}"},
        "x.within": "see {inner}",
    }
    monkeypatch.setattr("localmed.messages._template", lambda _, code: entries.get(code))
    pages = message("x.count", count=1, names=("a", "b"))
    assert render(pages, "en") == "1 page of a, b"
    assert (
        render(message("x.within", inner=message("x.count", count=2, names=("a", "b"))), "zh") == "see 2 pages of a、b"
    )
    assert render(message("x.lost", number=3), "en") == "x.lost {'number': 3}"


def test_texts_are_joined_as_the_language_joins_them() -> None:
    assert joined(("甲", "乙"), "zh") == "甲、乙"
    assert joined(("题目", "2023年版"), "zh", ASIDE) == "题目，2023年版"
    assert joined(("title", "2023"), "fr", ASIDE) == "title, 2023"


def test_an_error_says_what_happened_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"pdf.locked.what": "{name} is locked", "pdf.locked.remedy": "Unlock it"}
    monkeypatch.setattr("localmed.messages._template", lambda _, code: entries.get(code))
    error = InputError("pdf.locked", name="a.pdf")
    assert str(error) == "a.pdf is locked. Unlock it"
    assert [part.code for part in error.messages] == ["pdf.locked.what", "pdf.locked.remedy"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_remedy_that_names_a_command_is_called_so(language: str) -> None:
    """The window tells something else in the place of a ``command``, and a ``remedy`` as it is."""
    names = re.compile(r"(?<![a-z])localmed (?!serve\b)[a-z]|(?<![a-z-])--[a-z]|pip install|[Ii]nstall localmed")
    codes = set(catalogue(language))
    remedies = [code for code, words in catalogue(language).items() if any(map(names.search, forms(words)))]
    assert len(remedies) > 180
    assert [code for code in remedies if code.endswith(REMEDY)] == []
    assert not [code for code in codes if code.endswith(COMMAND) and code.removesuffix(COMMAND) + REMEDY in codes]


def test_a_message_within_a_message_may_have_a_remedy() -> None:
    fault = message("governance.no_date", field="review_by")
    assert render(message("documents.row", row=3, fault=fault), "en").startswith("row 3: review_by is not a date")


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


def test_a_process_raises_only_the_errors_that_are_its_own() -> None:
    sent = errors.as_json(errors.BadSettings("settings.maxsim"))
    assert type(errors.from_json(sent, errors.ModelError)) is errors.ModelError
    assert type(errors.from_json({**sent, "class": "SystemExit"}, InputError)) is InputError


def test_a_message_that_lacks_parameters_is_shown_as_it_is() -> None:
    """Another version, or a damaged process, may send one."""
    assert render(message("chat.slow.what", other=1), "zh") == "chat.slow.what {'other': 1}"
    assert render(message("chat.slow.what", bound="soon"), "en") == "chat.slow.what {'bound': 'soon'}"


def test_what_another_process_says_is_bounded() -> None:
    long = message("x.y", text="a" * 10_000, more=(message("x.z", text="b" * 10_000),))
    again = errors.from_json(errors.as_json(InputError(long)), InputError)
    assert len(render(again.messages[0], "en")) < 3 * errors.LONGEST_WORD


def test_no_error_is_raised_with_words() -> None:
    """A blank in an argument makes it a sentence."""
    classes = {name for name, value in vars(errors).items()
               if isinstance(value, type) and issubclass(value, LocalmedError)}  # fmt: skip
    wrong = []
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(node) in classes:
                words = [part.value for argument in node.args for part in ast.walk(argument)
                        if isinstance(part, ast.Constant) and isinstance(part.value, str)]  # fmt: skip
                wrong += [f"{path.relative_to(PACKAGE)}:{node.lineno}" for text in words if " " in text]
    assert wrong == []


def called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
