"""Who is taken for a model host that hangs, and who is not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from localmed.config import HostSettings
from localmed.domain.errors import Busy, LocalmedError, ModelError, Unresponsive
from localmed.web import serving

LOOKS = 5


class Running:
    """A process of ours that has not ended."""

    def poll(self) -> None:
        return None


@pytest.mark.parametrize(
    ("says", "replaced"),
    [
        (lambda: Unresponsive("host.silent", seconds=3), True),
        (lambda: Busy("host.connections", count=64), False),
        (lambda: ModelError("host.version"), False),
    ],
)
def test_only_a_host_that_says_nothing_is_replaced(
    monkeypatch: pytest.MonkeyPatch, says: Callable[[], LocalmedError], replaced: bool
) -> None:
    over, looked, started = threading.Event(), list[int](), list[int]()

    class Site:
        class settings:  # noqa: N801
            host = HostSettings(silent_seconds=0.0)

        def host_status(self) -> None:
            looked.append(1)
            if len(looked) >= LOOKS:
                over.set()
            raise says()

    site: Any = Site()
    keeper = serving._Keeper(site, process=Running())  # type: ignore[arg-type]
    monkeypatch.setattr(serving, "LOOK", 0.01)
    monkeypatch.setattr(serving, "GPU_LOOK", -1e9)
    monkeypatch.setattr("localmed.web.serving.fit.watch", lambda *_: None)
    monkeypatch.setattr("localmed.web.serving.fit.inspect_machine", lambda: None)
    monkeypatch.setattr(keeper, "start", lambda: started.append(1))
    keeper.keep(over)
    assert bool(started) is replaced
