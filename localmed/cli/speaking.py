"""The language of commands, and how they print messages: errors, checks, reports, tables, confirmations.

It is ``LOCALMED_LANGUAGE``, else the setting ``reader.language``, else Chinese where the locale begins with "zh", else
English. An answer stays in the language of its question.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import click

from localmed import messages
from localmed.domain import Message, Parameter, message
from localmed.domain.errors import LocalmedError
from localmed.presentation.neutral import neutral

VARIABLE = "LOCALMED_LANGUAGE"
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set counts, as it does for the C library

_setting: ContextVar[str] = ContextVar("reader.language", default="")


def choose(setting: str) -> None:
    """Use the setting ``reader.language`` ("": none) from now on."""
    _setting.set(setting)


def language(environment: Mapping[str, str] = os.environ) -> str:
    """The language of commands: "en" or "zh"."""
    named = environment.get(VARIABLE, "")
    if named in messages.LANGUAGES:
        return named
    locale = next((environment[name] for name in LOCALE if environment.get(name)), "")
    return _setting.get() or ("zh" if locale.startswith("zh") else "en")


def words(line: Message) -> str:
    """``line`` in the language of commands."""
    return messages.render(line, language())


def text(code: str, /, **parameters: Parameter) -> str:
    """The words of ``code`` in the language of commands."""
    return words(message(code, **parameters))


def joined(parts: Iterable[str], separator: Mapping[str, str] = messages.LISTING) -> str:
    """``parts`` joined as in the language of commands."""
    return messages.joined(parts, language(), separator)


def say(code: str, /, *, err: bool = False, **parameters: Parameter) -> None:
    """Print the words of ``code``, with ``err`` on standard error."""
    click.echo(neutral(text(code, **parameters)), err=err)


def confirm(code: str, yes: bool, /, **parameters: Parameter) -> None:
    """Ask for confirmation unless ``yes``; end the command if the answer is no."""
    if not yes:
        click.confirm(neutral(text(code, **parameters)), abort=True)


def columns(*names: str) -> list[str]:
    """The headings of a table."""
    return [text(f"column.{name}") for name in names]


def status_message(status: str) -> Message:
    """The status of a document, or the outcome of one that another names."""
    return message(f"documents.status_{status}")


def status_word(status: str) -> str:
    """``status_message`` in the language of the commands."""
    return words(status_message(status))


def error_line(error: LocalmedError) -> str:
    """The error and its remedy as one line."""
    return messages.sentences(error.messages, language())


def error_json(error: LocalmedError) -> dict[str, Any]:
    """``error`` as JSON data: code, parameters, words and remedy."""
    what, *remedy = error.messages
    return {**as_json(what), "code": error.message.code, "remedy": "".join(map(words, remedy))}


def as_json(line: Message) -> dict[str, Any]:
    """``line`` as JSON data: code, parameters and words."""
    return messages.as_json(line, language())


def tell_problems(name: str, problems: Sequence[Message]) -> None:
    """Print the problems of ``name``, or that there are none."""
    say("cli.state", name=name, state=tuple(problems) or message("doctor.level_ok"))


def tell_generation(number: int) -> None:
    """Print the generation in use after a change, or that nothing changed (0)."""
    say("generation.served", number=number) if number else say("generation.unchanged")
