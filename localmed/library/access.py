"""Access: which groups may read which collection, read from the journal (``in_force.py``).

A restriction applies from the next question on; no rollback or restored generation lifts it. Everybody may read a
collection without one. A librarian (groups ``None``: may write to the data folder) reads everything.
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
Groups = frozenset[str] | None  # of a reader; None: everything may be read


def hidden_from(groups: Groups, data: Path) -> frozenset[str]:
    """Return the collections that a reader of ``groups`` may not read; raise ``Damaged`` if that cannot be told."""
    if groups is None:
        return frozenset()
    return frozenset(name for name, allowed in in_force(data).access.items() if not allowed & groups)


def put(change: Changing, entry: Entry, collection: str, groups: Collection[str]) -> None:
    """Allow only ``groups`` to read ``collection`` (none: everybody); raise ``UsageError`` for a bad group name."""
    checked(groups)
    change.note(entry, kind="access", collection=collection, groups=sorted(set(groups)))


def checked(groups: Iterable[str]) -> None:
    """Raise ``UsageError`` unless all of ``groups`` are valid names."""
    for group in groups:
        if not NAME.fullmatch(group):
            raise UsageError("access.group", name=group)


def groups_of(groups: Collection[str], data: Path) -> Groups:
    """Return the groups of a command's caller: ``groups``, else by the right to write to the data folder."""
    if groups:
        return frozenset(groups)
    return None if not data.exists() or os.access(data, os.W_OK) else frozenset()


def narrowed(groups: Groups, *choices: Collection[str]) -> Groups:
    """Narrow ``groups`` by each non-empty one of ``choices``; raise ``UsageError`` for one that would widen them."""
    for choice in filter(None, choices):
        if groups is not None and not groups.issuperset(choice):
            raise UsageError("cli.other_group")
        groups = frozenset(choice)
    return groups
