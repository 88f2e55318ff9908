"""What a chat model is told in each role (``prompts.toml``), and who asks and when, as a line.

Instructions are the same for every question, so that a model reads them once; what differs stands in the message after
them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("en", "zh")


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    table = tomllib.loads(Path(__file__).with_name("prompts.toml").read_text("utf-8"))
    return {name: texts for name, texts in table.items() if isinstance(texts, dict)}


QUOTED = {language: _table()[language]["quoted"] for language in LANGUAGES}


@cache
def instructions(role: str) -> Mapping[str, str]:
    """Language -> what the model is told in ``role``."""
    return {language: _table()[role][language].replace("{quoted}", QUOTED[language]).strip() for language in LANGUAGES}


def words(group: str, language: str) -> Mapping[str, str]:
    """What is written beside quoted material in ``language``: the ``group`` "quoted_names", "kinds" or "record"."""
    called: Mapping[str, str] = _table()[language][group]
    return called


def asked_by(language: str, audience: str, day: str) -> str:
    """Who asks, and the date where it is known: by it a model may tell which edition is the newer one."""
    line: str = _table()[language]["dated" if day else "undated"]
    return line.format(asker=_table()[language][audience], day=day)
