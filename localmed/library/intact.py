"""Which files of a generation are as they were hashed, told without reading them again: ``checked.json`` beside them.

For every file its inode, size and time of change when its hash was last compared. Opening a generation compares these
and hashes again only what differs (it was written to, or restored from a backup), so an altered file is found before
anything is answered from it, at the cost of one ``stat`` each. Decay of the disk beneath changes none of them: against
that, what is stored carries digests that are checked when it is read, one file is hashed at each opening, and
``localmed generations verify`` hashes all.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from localmed import files

FILE = "checked.json"
SAMPLE = 256 * 2**10  # bytes; of the files up to this size one is hashed at every opening, in under a millisecond
_UNKNOWN: Sequence[int] = ()

Looks = Mapping[str, Sequence[int]]  # by file: inode, bytes and nanoseconds of its last change


def look(path: Path) -> list[int]:
    """What tells that a file was not touched since."""
    state = path.stat()
    return [state.st_ino, state.st_size, state.st_mtime_ns]


def remembered(generation: Path) -> Looks:
    """What the files looked like when they were hashed; nothing where that is not known."""
    with suppress(OSError, ValueError):
        looks = json.loads((generation / FILE).read_bytes())
        if isinstance(looks, dict):
            return looks
    return {}


def remember(generation: Path, looks: Looks) -> None:
    """The files were hashed, and looked so before; whoever may not write there hashes them again next time."""
    with suppress(OSError):
        files.replace(generation / FILE, json.dumps(dict(looks)).encode())


def untouched(path: Path, looks: Looks, name: str) -> bool:
    """Whether the file is as it was when it was hashed."""
    return list(looks.get(name, _UNKNOWN)) == look(path)


def sample(sizes: Mapping[str, int]) -> str:
    """The name of one of the smaller files, another each time; "" if there is none."""
    small = [name for name, size in sizes.items() if 0 < size <= SAMPLE]
    return random.choice(small) if small else ""  # noqa: S311
