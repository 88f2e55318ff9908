"""Which generations are kept: the newest few whose documents differ, and the targets of a rollback.

Consecutive generations with the same documents, encoder and concept graph are one *state*, of which the newest is kept:
a week of small changes (titles, marks, dates) does not push out the last imports. The served generation, its parent,
``generations.settled_number`` and leased generations are kept too. An unreadable generation counts for no state; it is
kept while an older one is. Not covered: a state whose documents return after another state counts again.
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
from localmed.library.reading import open_immutable
from localmed.process import files

State = tuple[str, ...]  # equal where a rollback from one to the other would change no document's text


def prune(data: Path, keep: int) -> list[int]:
    """Remove all generations but the newest ``keep`` states; return the numbers of the removed ones.

    The served one, its parent, leased ones and, unless ``keep`` is 1, ``generations.settled_number`` are never removed.
    """
    path = generations.current(data)
    folder = generations.folder(data)
    before = {generations.read_manifest(path).parent, generations.settled_number(data)} if keep > 1 else set()
    for left in folder.glob(f"*{generations.GOING}"):  # remains of an interrupted removal
        shutil.rmtree(left, ignore_errors=True)
    numbers = generations.numbers(data)
    kept = {int(path.name), *before, *newest(data, numbers, keep)}
    return [number for number in numbers if number not in kept and _remove(generations.path_of(data, number))]


def newest(data: Path, numbers: Sequence[int], keep: int) -> set[int]:
    """Return the newest generation of each of the ``keep`` newest states, and unreadable ones beside them."""
    if len(numbers) <= keep:
        return set(numbers)
    states = {number: _state(generations.path_of(data, number)) for number in numbers}
    readable = [number for number in numbers if states[number]]
    last = [max(state) for _, state in groupby(readable, key=lambda number: states[number])][-keep:]
    return {*last, *(number for number in numbers if not states[number] and number > min(last, default=0))}


def _state(generation: Path) -> State:
    """Return the state of ``generation``, empty if it cannot be read."""
    with suppress(Damaged, OSError, sqlite3.Error):
        manifest = generations.read_manifest(generation)
        graph, texts = manifest.files.get("graph.sqlite"), hashlib.sha256()
        with closing(open_immutable(generation / CATALOGUE)) as database:
            for rows in iter(database.execute("SELECT id, content FROM documents ORDER BY id").fetchmany, []):
                texts.update("".join([f"{document} {content}\n" for document, content in rows]).encode())
        return (manifest.encoder, graph.sha256 if graph else "", texts.hexdigest())
    return ()


def _remove(generation: Path) -> bool:
    """Remove a generation unless it is leased; its lease is held meanwhile, so that nobody takes one.

    It is renamed first: a generation without a lease or without some files would count as damaged.
    """
    going = generation.with_name(f"{generation.name}{generations.GOING}")
    try:
        stream = files.open_own(generation / LEASE)
    except FileNotFoundError:  # an older version's removal was interrupted
        shutil.rmtree(generation, ignore_errors=True)
        return True
    with stream:
        if not files.lock(stream) or going.exists():  # an earlier removal failed
            return False
        generation.rename(going)
        (going / LEASE).unlink()  # a reader that waits for it sees that it is gone
        shutil.rmtree(going, ignore_errors=True)
    return True
