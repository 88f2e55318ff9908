"""The report of a refresh as a page to print or keep: it loads nothing and contains no script."""

from __future__ import annotations

from collections.abc import Iterator

from localmed.domain import Message, message
from localmed.domain.nights import CHANGES, CanaryLine, Night
from localmed.messages import joined
from localmed.presentation.neutral import words
from localmed.presentation.pages import moment
from localmed.presentation.pages import page as filled

GIB = 2**30


def page(night: Night, language: str) -> str:
    """The page in ``language``."""

    def text(code: str, /, **parameters: str | int | float) -> str:
        return words(message(code, **parameters), language)

    by_change = ((change, [line for line in night.files if line.change == change]) for change in CHANGES)
    return filled(
        "night.html",
        night=night,
        language=language,
        text=text,
        moment=moment,
        words=lambda line: words(line, language),
        listed=lambda names: joined(names, language),
        groups=[(change, files) for change, files in by_change if files],
        lines=[words(line, language) for line in summary(night)],
    )


def summary(night: Night) -> Iterator[Message]:
    """The lines below the files: counts, withdrawals, scans, canaries, checks, times, disk, backup."""
    yield message("refresh.files", counts=counts(night))
    if night.withdrawn:
        yield message("refresh.withdrawn", count=len(night.withdrawn), titles=night.withdrawn)
    if night.recalled:
        yield message("refresh.recalled", count=night.recalled)
    if night.scans:
        yield message("refresh.scans", count=night.scans)
    yield message("refresh.canaries", count=night.canaries, moved=len(night.moved))
    yield from map(canary, night.moved)
    yield from (message("refresh.fault", what=fault) for fault in night.faults)
    yield from night.mended
    times = tuple(message("refresh.seconds", stage=message(f"refresh.stage_{name}"), seconds=seconds)
                  for name, seconds in night.seconds)  # fmt: skip
    yield message("refresh.times", times=times)
    yield message("refresh.disk", free=night.free_bytes / GIB, used=night.data_bytes / GIB)
    if night.backup:
        yield message("refresh.backup", name=night.backup)


def counts(night: Night) -> tuple[Message, ...]:
    """How many files were added, changed and so on."""
    return tuple(message("refresh.count", change=message(f"file.outcome_{name}"), number=number)
                 for name, number in night.counts if number)  # fmt: skip


def canary(line: CanaryLine) -> Message:
    """How a canary moved."""
    if line.passed:
        code = "regained" if line.passed_before is False else "moved"
    else:
        code = "lost" if line.passed_before else "failing"
    return message(f"refresh.canary_{code}", id=line.id, before=line.cited_before, now=line.cited)
