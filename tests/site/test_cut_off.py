"""kill -9 between any two steps of a withdrawal: in force and noted, or neither, once the next change was made."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from localmed.config import Settings
from localmed.library.in_force import in_force as now
from localmed.site import changes
from localmed.site.audit import Audit
from tests.fakes import HashedWords, documents, import_into, opened, write

MOST = 40  # steps; a withdrawal has fewer


@pytest.fixture
def filled(settings: Settings, corpus: Path) -> Settings:
    import_into(settings, write(corpus, {"a.txt": "Sepsis\n\nGive antibiotics.\n", "b.txt": "Fever\n\nWait.\n"}))
    with opened(settings, HashedWords()) as session:
        changes.withdraw(session, documents(settings)["b.txt"], True, "before")
    return settings


def writes(event: str, arguments: tuple[Any, ...]) -> bool:
    """Whether an audit event of Python's is a step to another state of the disk.

    Reads are none: what was looked at a moment ago is not read again, so that their number varies with the load.
    """
    if event == "open":
        return bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
    if event == "sqlite3.connect":
        return "mode=ro" not in str(arguments[0])
    return event in ("os.rename", "fcntl.flock")


def killed_before(step: int, call: Callable[[], object]) -> bool:
    """Run ``call`` in a fork that is killed before its ``step``-th step; whether it came to that."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child uses none of them
        child = os.fork()
    if not child:
        left = [step]

        def kill(event: str, arguments: tuple[Any, ...]) -> None:
            if writes(event, arguments):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(kill)
        try:
            call()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def withdraw(settings: Settings, withdrawn: bool) -> None:
    with opened(settings, HashedWords()) as session:
        changes.withdraw(session, documents(settings)["a.txt"], withdrawn, "test")


@pytest.mark.parametrize("withdrawn", [True, False])
@pytest.mark.slow
def test_a_withdrawal_that_is_killed(filled: Settings, tmp_path: Path, withdrawn: bool) -> None:
    if not withdrawn:
        withdraw(filled, True)
    document = documents(filled)["a.txt"]
    in_force: list[bool] = []
    for step in range(1, MOST):
        copy = Settings(tmp_path / f"copy{step}", library=filled.library)
        shutil.copytree(filled.data, copy.data, symlinks=True)
        with opened(copy, HashedWords()) as session:
            if not killed_before(step, lambda session=session: changes.withdraw(session, document, withdrawn, "test")):  # type: ignore[misc]
                break
            changes.set_access(session, "ward", ["staff"])
        lines = [line for line in now(copy.data).withdrawals.values() if line.reason == "test"]
        in_force.append(bool(lines) and lines[-1].withdrawn is withdrawn)
        with closing(Audit(copy.data)) as log:
            noted = [
                entry
                for entry in log.entries()
                if entry.subject == document.id and entry.action == ("withdraw" if withdrawn else "reinstate")
            ]
        assert log_says(noted, withdrawn) is in_force[-1], step
        shutil.rmtree(copy.data)
    assert step < MOST - 1
    assert in_force == sorted(in_force)
    assert {*in_force} == {False, True}


def log_says(noted: list[Any], withdrawn: bool) -> bool:
    return any(entry.outcome.startswith("in force") for entry in noted)
