"""Which files of a generation are unchanged since they were hashed: ``checked.json`` beside them.

It has every file's inode, size and time of change at the last hash, and a CRC-32 of each block and of its end. Opening
a generation compares the former by one ``stat`` a file and hashes only files that differ, so an altered file is found
before it is used.

Disk decay changes none of these. Therefore quoted text has digests that are checked when it is read, and every opening
reads the ends of all files and a sample of the blocks again (all blocks of a small library). In a larger library, decay
of ranking data (vectors, postings) may last until ``localmed doctor --full`` or the nightly refresh reads everything.
"""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from localmed.domain import Message, message
from localmed.process import files

FILE = "checked.json"
BLOCK = 2 * 2**20  # bytes read again at every opening: 1 ms on one core
# Bytes at the end of every file, read again at every opening: Tantivy and Lance store there how to read the rest. A bit
# flipped there made Tantivy request 190 GB, which kills the process without a catchable error.
END = 4_096
LOOK = 3  # numbers of ``stat_look``; the sums of the blocks and of the end follow
_SAMPLING = random.Random()  # noqa: S311  its own, so that a seeded global generator is not disturbed
_UNKNOWN: Sequence[int] = ()

# By file: inode, bytes, nanoseconds of its last change, the CRC-32 of each block, and that of its end.
Looks = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of a generation, as in its manifest."""

    bytes: int
    sha256: str


def find_faults(generation: Path, entries: Mapping[str, FileEntry], known: bool, whole: bool) -> list[Message]:
    """Return the faults of the files of ``generation``: missing, or of another size or hash.

    With ``whole`` all files are hashed. Otherwise those that were touched, or decayed in the sample, since the last
    hash; none if the earlier looks are not ``known``.
    """
    looks, now = read_looks(generation), {name: stat_look(generation / name) for name in entries}
    problems = {name: problem for name, entry in entries.items() if (problem := _misfit(name, now[name], entry))}
    fitting = [name for name in entries if name not in problems]
    still = [name for name in fitting if known and now[name] == _known(looks, name)]
    suspects = [name for name in fitting if known and name not in still]
    fresh: dict[str, Sequence[int]] = {}
    for name in fitting if whole else [*suspects, *find_decayed(generation, looks, still)]:
        sha256, fresh[name] = hash_file(generation / name)
        if sha256 != entries[name].sha256:
            problems[name] = message("file.changed", file=name)
    trusted = {name: look for name, look in {**looks, **fresh}.items() if name not in problems}
    if known and trusted != looks:  # damaged files are forgotten, so that they are read again
        write_looks(generation, trusted)
    return list(problems.values())


def _misfit(name: str, seen: Sequence[int], entry: FileEntry) -> Message | None:
    """Return a fault that shows without reading the file."""
    if not seen:
        return message("file.missing", file=name)
    size = seen[1]
    return None if size == entry.bytes else message("file.other_size", file=name, size=size, listed=entry.bytes)


def stat_look(path: Path) -> list[int]:
    """Return inode, size and time of change of a file; empty if it does not exist."""
    with suppress(OSError):
        state = path.stat()
        return [state.st_ino, state.st_size, state.st_mtime_ns]
    return []


def hash_file(path: Path) -> tuple[str, list[int]]:
    """Return the sha256 of a file ("" if unreadable), and its look with the sums of its blocks and its end."""
    state, sha256, end = stat_look(path), hashlib.sha256(), b""
    try:
        with files.open_own(path) as stream:
            while block := stream.read(BLOCK):
                sha256.update(block)
                state.append(zlib.crc32(block))
                end = (end + block)[-END:]
    except OSError:
        return "", state
    return sha256.hexdigest(), [*state, zlib.crc32(end)]


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file, "" if it cannot be read."""
    with suppress(OSError), files.open_own(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
    return ""


def read_looks(generation: Path) -> Looks:
    """Return the looks of the files when they were hashed; empty if unknown."""
    with suppress(OSError, ValueError):
        looks = json.loads(files.own_bytes(generation / FILE))
        if isinstance(looks, dict) and all(
            isinstance(look, list) and len(look) >= LOOK and all(type(number) is int for number in look)
            for look in looks.values()
        ):
            return looks
    return {}


def write_looks(generation: Path, looks: Looks) -> None:
    """Store the looks of the hashed files; without write permission they are hashed again next time."""
    with suppress(OSError):
        files.replace(generation / FILE, json.dumps(dict(looks)).encode())


def is_untouched(path: Path, looks: Looks, name: str) -> bool:
    """Whether the file looks as it did when it was hashed."""
    return _known(looks, name) == stat_look(path)


def _known(looks: Looks, name: str) -> list[int]:
    return list(looks.get(name, _UNKNOWN)[:LOOK])


def find_decayed(generation: Path, looks: Looks, names: Sequence[str]) -> list[str]:
    """Return the files among ``names`` whose end, or a sampled block, has changed or is unknown."""
    ends = {name: _sum(generation / name, max(0, _size(looks, name) - END), END) for name in names}
    changed = [name for name, end in ends.items() if end not in looks[name][LOOK:][-1:]]
    return list(dict.fromkeys((*changed, *find_decayed_sample(generation, looks, names))))


def find_decayed_sample(generation: Path, looks: Looks, names: Sequence[str]) -> list[str]:
    """Return the files among ``names`` with a changed or unknown block in a sample of ``BLOCK`` bytes from a random
    start.
    """
    blocks = [(name, place) for name in names for place in range(0, _size(looks, name), BLOCK)]
    first = _SAMPLING.randrange(len(blocks)) if blocks else 0
    left, different = BLOCK, dict[str, bool]()
    for name, place in (*blocks[first:], *blocks[:first]):
        left -= min(BLOCK, _size(looks, name) - place)
        if left < 0:
            break
        if _sum(generation / name, place, BLOCK) not in looks[name][LOOK + place // BLOCK :][:1]:
            different[name] = True
    return list(different)


def _size(looks: Looks, name: str) -> int:
    return looks[name][1]


def _sum(path: Path, place: int, length: int) -> int:
    with suppress(OSError):
        return zlib.crc32(files.read_part(path, place, length))
    return -1
