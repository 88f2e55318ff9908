"""For every test: no network, and small fixtures. Sockets are refused by an audit hook, which no code can take back."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import pytest
from argon2 import PasswordHasher

from localmed.config import NONE, PROFILES, LibrarySettings, Settings
from localmed.models import choice
from localmed.models.e5 import E5
from localmed.people import accounts
from tests.fakes import HashedWords
from tests.strict import CI, needs

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EVENTS = ("socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg")
_LOOKUPS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _EVENTS:
        address = arguments[1]
        anywhere = event == "socket.bind" and address == ("", 0)  # as ldap3 does before it connects
        if isinstance(address, tuple) and address[0] not in _LOOPBACK and not anywhere:
            raise RuntimeError(f"a test tried to reach {address[0]!r}")
    elif event in _LOOKUPS and arguments[0] not in (*_LOOPBACK, None):
        raise RuntimeError(f"a test tried to look up {arguments[0]!r}")


sys.addaudithook(_refuse)
os.environ["LOCALMED_LANGUAGE"] = "en"  # whatever the locale of whoever runs the tests


# Every encoder of this process shares its weights: each command that a test runs makes one anew.
_load = cache(partial(E5._load, E5()))
E5._load = lambda self: _load()  # type: ignore[method-assign]

# Passwords are hashed with a thousandth of the work: every account and sign-in of a test makes or checks one.
accounts._hasher = cache(partial(PasswordHasher, time_cost=1, memory_cost=64, parallelism=1))


EXTRAS = {
    "llama": ("llama_cpp",),
    "workstation": ("FlagEmbedding",),
    "eval": ("ir_measures", "scipy", "matplotlib", "krippendorff"),
    "nlp": ("scispacy",),
    "ocr": ("rapidocr", "cv2"),
    "ray": ("ray",),
    "train": ("trl", "peft", "datasets", "gguf"),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of the pages in a browser are slow; so are those marked ``extra("llama", ...)``, skipped without it.

    The slow tests of the CI run have every extra: a test module that is skipped for want of one would go unnoticed.
    """
    missing = {name for name, modules in EXTRAS.items() if not all(map(importlib.util.find_spec, modules))}
    if CI and config.option.markexpr == "slow" and missing:
        raise pytest.UsageError(f"the slow tests need the extras {', '.join(sorted(missing))}: make install-all")
    for item in items:
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
        for name in (name for mark in item.iter_markers("extra") for name in mark.args):
            item.add_marker(pytest.mark.slow)
            item.add_marker(needs(name not in missing, f"the extra {name}"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a data folder of the test's own."""
    return Settings(tmp_path / "data", library=LibrarySettings(writer_memory_bytes=15_000_000))


@pytest.fixture
def encoder() -> HashedWords:
    """An encoder that needs no model."""
    return HashedWords()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """An empty folder to import from."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    return folder


class _Lengths:
    """A ``Reranker`` that prefers short passages."""

    name = "lengths 1"

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        return [1.0 / (1 + len(passage)) for passage in passages]


@pytest.fixture
def reranked(monkeypatch: pytest.MonkeyPatch) -> None:
    """The starter has a reranker unless none was chosen."""
    monkeypatch.setitem(cast(dict[str, str], PROFILES["starter"]), "reranker", "lengths")
    monkeypatch.setattr(choice, "reranker", lambda chosen, *_: None if chosen["reranker"] == NONE else _Lengths())
