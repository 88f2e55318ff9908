"""The report of a nightly refresh, by file and canary question."""

from __future__ import annotations

from dataclasses import dataclass

from localmed.domain.messages import Message

SERVED, UNCHANGED, KEPT_BACK, FAILED, INTERRUPTED = "served", "unchanged", "kept_back", "failed", "interrupted"
CHANGES = ("added", "changed", "removed", "quarantined", "left", "note")  # of files, in the report's order


@dataclass(frozen=True, slots=True)
class FileLine:
    """A file that has changed; ``change`` is one of ``CHANGES``."""

    collection: str
    path: str
    change: str
    detail: Message | None = None
    documents: int = 0


@dataclass(frozen=True, slots=True)
class CanaryLine:
    """A canary question whose result changed or that fails; None: not asked before."""

    id: str
    passed_before: bool | None
    passed: bool
    cited_before: tuple[str, ...]
    cited: tuple[str, ...]
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Night:
    """The result of a refresh. Times are ISO 8601; ``seconds`` is by stage; ``files`` are those that changed.

    ``withdrawn`` are titles withdrawn since the last refresh, ``recalled`` the number of kept answers that cite them,
    ``scans`` the number of files read by OCR, ``faults`` what the check of stored data found, ``mended`` what was
    repaired.
    """

    started: str
    finished: str = ""
    outcome: str = INTERRUPTED
    number: int = 0
    before: int = 0
    generation: int = 0
    files: tuple[FileLine, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    errors: tuple[Message, ...] = ()
    withdrawn: tuple[str, ...] = ()
    recalled: int = 0
    scans: int = 0
    canaries: int = 0
    moved: tuple[CanaryLine, ...] = ()
    faults: tuple[Message, ...] = ()
    mended: tuple[Message, ...] = ()
    seconds: tuple[tuple[str, float], ...] = ()
    free_bytes: int = 0
    data_bytes: int = 0
    backup: str = ""  # its name
    by_hand: bool = False  # started in the window or typed, so no sign that the nightly timer runs
