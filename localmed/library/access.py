"""Access: which groups may read which collection, read from the journal (``in_force.py``).

Outside the generations, as the withdrawals are: a restriction holds from the next question on, and neither a rollback
nor a restored generation lifts it. A collection that is not named may be read by everybody.

Who sees everything is the librarian (``None`` in place of groups): whoever may write to the data folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from pathlib import Path

from localmed.domain.errors import UsageError
from localmed.library.in_force import Changing, in_force
from localmed.library.journal import Entry

NAME = re.compile(r"\w[\w-]{0,59}")  # of a group, as of a collection
Groups = frozenset[str] | None  # of whoever reads; None: everything may be read


def hidden_from(groups: Groups, data: Path) -> frozenset[str]:
    """The collections that a reader of ``groups`` may not read; raise ``Damaged`` where that cannot be told."""
    if groups is None:
        return frozenset()
    return frozenset(name for name, allowed in in_force(data).access.items() if not allowed & groups)


def put(change: Changing, entry: Entry, collection: str, groups: Collection[str]) -> None:
    """Let only ``groups`` read ``collection`` (none: everybody); raise ``UsageError`` for a bad name of a group."""
    checked(groups)
    change.note(entry, kind="access", collection=collection, groups=sorted(set(groups)))


def checked(groups: Iterable[str]) -> None:
    """Raise ``UsageError`` unless all of ``groups`` are names."""
    for group in groups:
        if not NAME.fullmatch(group):
            raise UsageError("access.group", name=group)


def groups_of(groups: Collection[str], data: Path) -> Groups:
    """The groups of whoever runs a command: ``groups``, else by the right to write to the data folder."""
    if groups:
        return frozenset(groups)
    return None if not data.exists() or os.access(data, os.W_OK) else frozenset()


def narrowed(groups: Groups, *choices: Collection[str]) -> Groups:
    """``groups`` as each of ``choices`` that names any narrows them; raise ``UsageError`` for one that would widen."""
    for choice in filter(None, choices):
        if groups is not None and not groups.issuperset(choice):
            raise UsageError("cli.other_group")
        groups = frozenset(choice)
    return groups
