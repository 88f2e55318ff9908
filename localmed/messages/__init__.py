"""What localmed itself says, by code, in the reader's language: ``en.toml`` and ``zh.toml`` beside this file.

A code is ``section.name``. Its words are one template of ``str.format``, or a table ``{one, other}`` chosen by the
parameter ``count`` (Chinese has only ``other``), or for errors and checks a table of ``what`` and ``remedy``, each of
which is a template or such a table; they are codes of their own, ``section.name.what`` and ``section.name.remedy``.
Parameters that are messages are rendered in the same language; several are joined as that language lists things.

Flows, checks and errors make messages; only the edge (presentation, command line, pages) renders them, and nothing
rendered is parsed again. A code that no catalogue knows, as in an answer kept by another version, is shown as it is
with its parameters rather than refused.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from localmed.domain import Message, Parameter

LANGUAGES = ("en", "zh")
FALLBACK = "en"  # for a reader of another language
COUNT = "count"  # the parameter that chooses between one and other
LISTING = {"en": ", ", "zh": "、"}

Template = str | Mapping[str, str]


def render(message: Message, language: str) -> str:
    """The words of ``message`` in ``language`` (English for a language that there is none of)."""
    language = language if language in LANGUAGES else FALLBACK
    template = catalogue(language).get(message.code)
    values = {name: _value(parameter, language) for name, parameter in message.parameters}
    if template is None:
        return f"{message.code} {values}" if values else message.code
    return _chosen(template, dict(message.parameters).get(COUNT)).format(**values)


def known(code: str) -> bool:
    """Whether there are words for ``code``."""
    return code in catalogue(FALLBACK)


@cache
def catalogue(language: str) -> Mapping[str, Template]:
    """Every template of ``language`` by its code."""
    text = files(__package__).joinpath(f"{language}.toml").read_text("utf-8")
    return dict(_flat("", tomllib.loads(text)))


def _flat(prefix: str, table: Mapping[str, Any]) -> list[tuple[str, Template]]:
    rows: list[tuple[str, Template]] = []
    for name, entry in table.items():
        code = f"{prefix}{name}"
        if isinstance(entry, str) or "other" in entry:
            rows.append((code, entry))
        else:
            rows.extend(_flat(f"{code}.", entry))
    return rows


def _chosen(template: Template, count: Parameter | None) -> str:
    if isinstance(template, str):
        return template
    return template.get("one", template["other"]) if count == 1 else template["other"]


def _value(parameter: Parameter, language: str) -> Any:
    if isinstance(parameter, Message):
        return render(parameter, language)
    if isinstance(parameter, tuple):
        return LISTING[language].join(str(_value(item, language)) for item in parameter)
    return parameter
