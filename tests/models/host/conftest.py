"""Hosts in threads of the test, and what one serves as a command sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localmed.models.host.client import Hosted
from tests.models.host.house import House

Start = Callable[..., House]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a host, which ends with the test."""
    started: list[House] = []

    def begin(data: Path = tmp_path / "data", **settings: Any) -> House:
        started.append(House(data, **settings).start())
        return started[-1]

    yield begin
    for house_ in started:
        house_.stop()


@pytest.fixture
def house(start: Start) -> House:
    return start()


@pytest.fixture
def hosted(house: House) -> Hosted:
    return house.hosted()
