"""What loads the libraries that train: they find themselves without a network before their first line runs."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from localmed.domain.errors import ModelError
from localmed.lab import learning
from localmed.process.environment import OFFLINE


class Watching:
    """Says of the libraries that train that they are not there, noting in what environment they were looked for."""

    def __init__(self) -> None:
        self.environments: list[dict[str, str]] = []

    def find_spec(self, name: str, *_: Any) -> None:
        if name in ("peft", "trl"):
            self.environments.append(dict(os.environ))
            raise ImportError(name)


def test_what_trains_is_loaded_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """trl tells its maker that it is used, by a thread that asks the hub, unless it was told not to when it loaded."""
    watching = Watching()
    for name in (*OFFLINE, "TQDM_DISABLE"):
        monkeypatch.setenv(name, "0")
    for name in ("peft", "trl"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(sys, "meta_path", [watching, *sys.meta_path])
    with pytest.raises(ModelError, match="train"):
        learning.require()
    assert {name: watching.environments[0][name] for name in OFFLINE} == OFFLINE
    assert watching.environments[0]["TQDM_DISABLE"] == "1", "no bars of the libraries beside localmed's"
