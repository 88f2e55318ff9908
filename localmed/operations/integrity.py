"""The nightly look at every byte that is stored, and mending what it finds from a backup.

A damaged file of a generation is written anew from the newest backup that holds its bytes (a file of its own: hard
links of other generations keep the damaged ones until it is their turn). What has no whole copy there stays damaged
(``rebuild.py`` makes what is served anew), and nothing is answered from it: what was found to be damaged is no longer
taken for whole without being read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from localmed.domain import Message, message
from localmed.errors import Damaged, LocalmedError, UnknownName
from localmed.hooks import Hooks
from localmed.library import generations, layout
from localmed.library.intact import sha256_of
from localmed.operations import stored

if TYPE_CHECKING:
    from localmed.session import Session

Mended = tuple[tuple[Message, ...], tuple[Message, ...], tuple[Message, ...]]


def verify_and_mend(session: Session, hooks: Hooks) -> Mended:
    """Read everything, mend what can be; return what was found, what was mended, and what is still damaged."""
    data = session.data
    numbers = generations.numbers(data)
    mended: list[Message] = []
    faults: list[Message] = []
    left: list[Message] = []
    for place, number in enumerate(reversed(numbers)):
        hooks.cancel.check()
        hooks.progress(place, len(numbers) + 1, f"{number:04d}")
        with suppress(UnknownName):  # pruned meanwhile
            if problems := stored.of_generation(data, number):
                faults += problems
                mended += _mended(session, number)
                left += stored.of_generation(data, number)
    hooks.progress(len(numbers), len(numbers) + 1, "")
    beside = stored.beside(data)
    faults += [fault.full_message for fault in beside]
    if mended_originals := list(_mended_originals(session, beside)):
        mended += mended_originals
        beside = stored.beside(data)
    models = [
        message("model.not_loaded", name=name, problem=problem)
        for name in session.site.registry.registrations.models
        for problem in session.site.registry.problems(name, full=True)
    ]
    faults += models
    left += [*(fault.full_message for fault in beside), *models]
    stored.note_whole_check(data, len(left))
    return tuple(faults), tuple(mended), tuple(left)


def _mended(session: Session, number: int) -> Iterator[Message]:
    """Write what is damaged of a generation anew from a backup."""
    with suppress(Damaged), generations.lease(session.data, number) as generation:
        for name, entry in generations.read_manifest(generation).files.items():
            path = generation / name
            if sha256_of(path) != entry.sha256 and _from_backup(session, entry.sha256, path):
                yield message("integrity.mended", file=f"{generation.name}/{name}")


def _mended_originals(session: Session, faults: Iterable[LocalmedError]) -> Iterator[Message]:
    for fault in faults:
        name = Path(str(dict(fault.message.parameters).get("file", ""))).name
        if fault.message.code == "library.original_changed" and _from_backup(
            session, name, session.data / layout.FILES / name
        ):
            yield message("integrity.mended", file=name[:12])


def _from_backup(session: Session, sha256: str, path: Path) -> bool:
    """Whether the file could be written anew."""
    from localmed.operations import backup

    folder = session.settings.backup.folder
    if not folder:
        return False
    try:
        with session.change("mend", path.name):
            backup.fetch(Path(folder), sha256, path)
    except (LocalmedError, OSError):
        return False
    return True
