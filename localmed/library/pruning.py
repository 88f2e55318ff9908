"""Which generations are kept: the newest few whose documents differ, and what a rollback would go to.

A change of a title, a priority, a mark or a date makes a generation as an import does, but nobody goes back to it for
its documents. So generations one after another with the same documents, encoder and concept graph are one *state*, of
which the newest is kept: a week of small changes does not push the last imports out. Beside these the generation that
is served, its parent (where a rollback goes to), the one that is ``generations.settled`` and whatever somebody reads
stay.

Not covered: a state between two others whose documents come back is a state again; one that cannot be read counts for
none, and stays as long as an older one does.
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from itertools import groupby
from pathlib import Path

from localmed.domain.errors import Damaged
from localmed.library import generations
from localmed.library.catalogue import FILE as CATALOGUE
from localmed.library.generations import LEASE
from localmed.library.reading import unchanging
from localmed.process import files

State = tuple[str, ...]  # equal where a rollback from one to the other would change no document's text


def prune(data: Path, keep: int) -> list[int]:
    """Remove all generations but those of the newest ``keep`` states; never the one served or its parent, nor a leased.

    Nor what was served before the changes of the last day (``generations.settled``), unless only one is to be kept.
    """
    path = generations.current(data)
    folder = generations.folder(data)
    before = {generations.read_manifest(path).parent, generations.settled(data)} if keep > 1 else set()
    for left in folder.glob(f"*{generations.GOING}"):  # by a removal that was interrupted
        shutil.rmtree(left, ignore_errors=True)
    numbers = generations.numbers(data)
    kept = {int(path.name), *before, *newest(data, numbers, keep)}
    return [number for number in numbers if number not in kept and _remove(generations.path_of(data, number))]


def newest(data: Path, numbers: Sequence[int], keep: int) -> set[int]:
    """The newest generation of each of the ``keep`` newest states, and what cannot be read beside them."""
    if len(numbers) <= keep:
        return set(numbers)
    states = {number: _state(generations.path_of(data, number)) for number in numbers}
    readable = [number for number in numbers if states[number]]
    last = [max(state) for _, state in groupby(readable, key=lambda number: states[number])][-keep:]
    return {*last, *(number for number in numbers if not states[number] and number > min(last, default=0))}


def _state(generation: Path) -> State:
    """Of what ``generation`` is a state; nothing where that cannot be read."""
    with suppress(Damaged, OSError, sqlite3.Error):
        manifest = generations.read_manifest(generation)
        graph = manifest.files.get("graph.sqlite")
        return (manifest.encoder, graph.sha256 if graph else "", _texts(generation))
    return ()


def _texts(generation: Path) -> str:
    """A digest of the documents and what was extracted of each, whatever the schema."""
    digest = hashlib.sha256()
    with closing(unchanging(generation / CATALOGUE)) as database:
        for rows in iter(database.execute("SELECT id, content FROM documents ORDER BY id").fetchmany, []):
            digest.update("".join([f"{document} {content}\n" for document, content in rows]).encode())
    return digest.hexdigest()


def _remove(generation: Path) -> bool:
    """Remove a generation unless it is leased; its lease is held meanwhile, so that nobody takes one.

    It has another name first: one without a lease, or with a part of its files, would be damage to whoever looks then.
    """
    going = generation.with_name(f"{generation.name}{generations.GOING}")
    try:
        stream = files.open_own(generation / LEASE)
    except FileNotFoundError:  # a removal by an older version that was interrupted
        shutil.rmtree(generation, ignore_errors=True)
        return True
    with stream:
        if not files.lock(stream) or going.exists():  # what is left of an earlier one cannot be removed
            return False
        generation.rename(going)
        (going / LEASE).unlink()  # whoever waits for it sees that it is gone
        shutil.rmtree(going, ignore_errors=True)
    return True
