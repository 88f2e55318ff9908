"""What a refresh did, file by file and canary by canary: the report of a night."""

from __future__ import annotations

from dataclasses import dataclass

from localmed.domain.messages import Message

SERVED, UNCHANGED, KEPT_BACK, FAILED, INTERRUPTED = "served", "unchanged", "kept_back", "failed", "interrupted"
CHANGES = ("added", "changed", "removed", "quarantined", "left", "note")  # of files, as the report orders them


@dataclass(frozen=True, slots=True)
class FileLine:
    """A file that was not as before: ``change`` is one of ``CHANGES``."""

    collection: str
    path: str
    change: str
    detail: Message | None = None
    documents: int = 0


@dataclass(frozen=True, slots=True)
class CanaryLine:
    """A canary that ended otherwise than before, or fails; None: it was not asked."""

    id: str
    passed_before: bool | None
    passed: bool
    cited_before: tuple[str, ...]
    cited: tuple[str, ...]
    accepted: bool = False


@dataclass(frozen=True, slots=True)
class Night:
    """What a refresh did. Times are ISO 8601, ``seconds`` by stage; ``files`` are those that are not as before.

    ``withdrawn`` are titles that were withdrawn since the refresh before, ``recalled`` the kept answers
    that cite them; ``scans`` the files read by OCR; ``faults`` what the check of everything stored found, ``mended``
    what of it was put right.
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
