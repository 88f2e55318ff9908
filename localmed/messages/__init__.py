"""All texts of localmed by code, in the reader's language: ``en.toml`` and ``zh.toml`` beside this file.

A code is ``section.name``; its text is a ``str.format`` template that needs no plural. An error says what happened and
what to do. If the remedy is a command or an option, which the pages phrase otherwise, the entry is a table of ``what``
and ``command`` with the codes ``section.name.what`` and ``.command``. A template ``@section.name`` refers to another
code. Parameters that are messages are rendered in the same language; several are joined as a list.

Flows, checks and errors make messages; only the edge (presentation, command line, pages) renders them, and rendered
text is never parsed. An unknown code or a missing parameter, as in an answer of another version, shows the code with
its parameters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from localmed.domain import Message, Parameter

LANGUAGES = ("en", "zh")
FALLBACK = "en"  # for a reader of another language
LISTING = {"en": ", ", "zh": "、"}  # items of a list
ASIDE = {"en": ", ", "zh": "，"}  # a name and its details
CLAUSES = {"en": "; ", "zh": "；"}  # items that may contain commas
COLON = {"en": ": ", "zh": "："}  # a label and its value
NOTHING = {"en": "none", "zh": "无"}  # an empty list
BETWEEN = {"en": ". ", "zh": "。"}  # sentences
REFERENCE = "@"
WHAT, COMMAND = ".what", ".command"  # ends of codes: what happened, and the command that helps
_TABLE = re.compile(r"^(?=\[)", re.MULTILINE)  # the beginning of a table; no entry begins like this


def render(message: Message, language: str) -> str:
    """The text of ``message`` in ``language`` (English for an unknown language)."""
    language = language if language in LANGUAGES else FALLBACK
    codes = (
        message.code,
        f"{message.code}{WHAT}",
        message.code.removesuffix(WHAT),
    )  # the last: stored in older versions
    template = next(filter(None, (_template(language, code) for code in codes)), None)
    values = {name: _value(parameter, language) for name, parameter in message.parameters}
    with suppress(LookupError, ValueError, TypeError):  # a message of another version is shown as it is
        if template is not None:
            return template.format(**values)
    if message.code.endswith(".remedy"):  # an older version stored the remedy separately
        return ""
    return f"{message.code} {values}" if values else message.code


def parts(message: Message) -> tuple[Message, ...]:
    """What happened and what to do, of an error or check; ``message`` alone if it is one text."""
    if not known(f"{message.code}{WHAT}"):
        return (message,)
    return tuple(Message(f"{message.code}{part}", message.parameters) for part in (WHAT, COMMAND))


def joined(parts: Iterable[str], language: str, separator: Mapping[str, str] = LISTING) -> str:
    """Join ``parts`` by the ``separator`` of ``language``; the only place that joins texts for readers."""
    return separator.get(language, separator[FALLBACK]).join(parts)


def sentences(parts: Iterable[Message], language: str) -> str:
    """Several messages as consecutive sentences."""
    return joined((render(part, language) for part in parts), language, BETWEEN)


def known(code: str) -> bool:
    """Whether the catalogue has ``code``."""
    return _template(FALLBACK, code) is not None


def catalogue(language: str) -> Mapping[str, str]:
    """All templates of ``language`` by code."""
    templates = {code: template for name in _sections(language) for code, template in _section(language, name).items()}
    return {code: _words(language, template) for code, template in templates.items()}


def _template(language: str, code: str) -> str | None:
    """The template of ``code``; parses only its section, since the whole file takes 30 ms at each command."""
    section, dot, _ = code.partition(".")
    template = _section(language, section if dot else "").get(code)
    return None if template is None else _words(language, template)


def _words(language: str, template: str) -> str:
    if not template.startswith(REFERENCE):
        return template
    code = template.removeprefix(REFERENCE)
    return _section(language, code.partition(".")[0])[code]


@cache
def _section(language: str, name: str) -> Mapping[str, str]:
    import tomllib

    return dict(_flat("", tomllib.loads(_sections(language).get(name, ""))))


@cache
def _sections(language: str) -> Mapping[str, str]:
    """The TOML text of each top-level table of a language, by name; "" is the part before the first."""
    text = files(__package__).joinpath(f"{language}.toml").read_text("utf-8")
    sections: dict[str, str] = {}
    for part in _TABLE.split(text):
        name = part[1:].partition("]")[0].partition(".")[0] if part.startswith("[") else ""
        sections[name] = sections.get(name, "") + part
    return sections


def _flat(prefix: str, table: Mapping[str, Any]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for name, entry in table.items():
        code = f"{prefix}{name}"
        if isinstance(entry, str):
            rows.append((code, entry))
        else:
            rows.extend(_flat(f"{code}.", entry))
    return rows


def _value(parameter: Parameter, language: str) -> Any:
    if isinstance(parameter, Message):
        return render(parameter, language)
    if isinstance(parameter, tuple):
        return joined((str(_value(item, language)) for item in parameter), language) if parameter else NOTHING[language]
    return parameter


def as_json(message: Message, language: str = "") -> dict[str, Any]:
    """``message`` as JSON: code, parameters, and its text if a ``language`` is given."""
    parameters = {name: _parameter_json(parameter) for name, parameter in message.parameters}
    words = {"text": render(message, language)} if language else {}
    return {"code": message.code, "parameters": parameters, **words}


def from_json(entry: Mapping[str, Any]) -> Message:
    """The message that ``as_json`` wrote; raise ``ValueError`` for anything else."""
    code, parameters = entry.get("code"), entry.get("parameters", {})
    if not isinstance(code, str) or not isinstance(parameters, Mapping):
        raise ValueError("a message has a code and parameters")
    return Message(code, tuple((str(name), _parameter(value)) for name, value in parameters.items()))


def to_text(message: Message) -> str:
    """``message`` for storage: JSON, the same for equal messages."""
    return json.dumps(as_json(message), ensure_ascii=False)


def from_text(text: str) -> Message:
    """The message that ``to_text`` wrote; a text stored by an older version becomes a literal."""
    with suppress(ValueError, AttributeError, RecursionError):
        return from_json(json.loads(text))
    return Message("literal", (("text", text),))


def _parameter_json(parameter: Parameter) -> Any:
    if isinstance(parameter, Message):
        return as_json(parameter)
    if isinstance(parameter, tuple):
        return [_parameter_json(item) for item in parameter]
    return parameter


def _parameter(value: Any) -> Parameter:
    if isinstance(value, Mapping):
        return from_json(value)
    if isinstance(value, list):
        return tuple(_parameter(item) for item in value)
    if isinstance(value, str | int | float):
        return value
    raise ValueError("a parameter is text, a number, a message, or a list of them")
