"""Which files of a generation are as they were hashed, told without reading them again: ``checked.json`` beside them.

For every file its inode, size and time of change when its hash was last compared, and a CRC-32 of each of its blocks
and of its end.
Opening a generation compares the former with one ``stat`` a file and hashes again only what differs (it was written to,
or restored from a backup), so an altered file is found before anything is answered from it. Decay of the disk beneath
changes none of them: against that, what is quoted carries digests that are checked when it is read, and at every
opening the ends of all files and a sample of the blocks are read again, all of them in a small library. In a larger one
decay of what only ranks
(vectors, postings) may stand until ``localmed doctor --full`` has read everything, which the nightly refresh does.
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
BLOCK = 2 * 2**20  # bytes; so many are read again at every opening: 1 ms on one core
# Bytes at the end of every file, read again at every opening: Tantivy and Lance keep there how the rest is read. A bit
# flipped there made Tantivy ask for 190 GB, which ends the process: no error of it can be caught.
END = 4_096
LOOK = 3  # numbers of ``look``; the sums of the blocks follow, and that of the end
_SAMPLING = random.Random()  # noqa: S311  of its own: whoever seeds Python's gets what they seeded, beside our threads
_UNKNOWN: Sequence[int] = ()

# By file: inode, bytes and nanoseconds of its last change, then the CRC-32 of its blocks and of its end.
Looks = Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file of a generation, as its manifest has it."""

    bytes: int
    sha256: str


def faults(generation: Path, entries: Mapping[str, FileEntry], known: bool, whole: bool) -> list[Message]:
    """What is wrong with the files of ``generation``: missing, of another size or another hash.

    Hashed are those that were touched, or of which a sample has decayed, since they last were, and nothing of them
    where it is not ``known`` how files looked then; all of them with ``whole``.
    """
    looks, now = remembered(generation), {name: look(generation / name) for name in entries}
    problems = {name: problem for name, entry in entries.items() if (problem := _misfit(name, now[name], entry))}
    fitting = [name for name in entries if name not in problems]
    still = [name for name in fitting if known and now[name] == _known(looks, name)]
    suspects = [name for name in fitting if known and name not in still]
    fresh: dict[str, Sequence[int]] = {}
    for name in fitting if whole else [*suspects, *decayed(generation, looks, still)]:
        sha256, fresh[name] = hashed(generation / name)
        if sha256 != entries[name].sha256:
            problems[name] = message("file.changed", file=name)
    trusted = {name: look for name, look in {**looks, **fresh}.items() if name not in problems}
    if known and trusted != looks:  # what is damaged is not taken for whole again without being read
        remember(generation, trusted)
    return list(problems.values())


def _misfit(name: str, seen: Sequence[int], entry: FileEntry) -> Message | None:
    """What can be said against a file without reading it."""
    if not seen:
        return message("file.missing", file=name)
    size = seen[1]
    return None if size == entry.bytes else message("file.other_size", file=name, size=size, listed=entry.bytes)


def look(path: Path) -> list[int]:
    """What tells that a file was not touched since; nothing of one that is not there."""
    with suppress(OSError):
        state = path.stat()
        return [state.st_ino, state.st_size, state.st_mtime_ns]
    return []


def hashed(path: Path) -> tuple[str, list[int]]:
    """The sha256 of a file ("" of one that the disk does not give), and its looks with the sums of its blocks."""
    state, sha256, end = look(path), hashlib.sha256(), b""
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
    """The sha256 of a file; "" of one that cannot be read."""
    with suppress(OSError), files.open_own(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
    return ""


def remembered(generation: Path) -> Looks:
    """What the files looked like when they were hashed; nothing where that is not known."""
    with suppress(OSError, ValueError):
        looks = json.loads(files.own_bytes(generation / FILE))
        if isinstance(looks, dict) and all(map(_is_look, looks.values())):
            return looks
    return {}


def remember(generation: Path, looks: Looks) -> None:
    """The files were hashed, and looked so before; whoever may not write there hashes them again next time."""
    with suppress(OSError):
        files.replace(generation / FILE, json.dumps(dict(looks)).encode())


def untouched(path: Path, looks: Looks, name: str) -> bool:
    """Whether the file is as it was when it was hashed."""
    return _known(looks, name) == look(path)


def _known(looks: Looks, name: str) -> list[int]:
    return list(looks.get(name, _UNKNOWN)[:LOOK])


def decayed(generation: Path, looks: Looks, names: Sequence[str]) -> list[str]:
    """Those of the files ``names`` of which the end, or a block of a sample, is not what it was, or not known."""
    ends = [name for name in names if _end(generation / name, _size(looks, name)) not in looks[name][LOOK:][-1:]]
    return list(dict.fromkeys((*ends, *sampled(generation, looks, names))))


def sampled(generation: Path, looks: Looks, names: Sequence[str]) -> list[str]:
    """Those of the files ``names`` of which a block is not what it was, or not known, in a sample of ``BLOCK`` bytes.

    The sample begins at any block and goes on from there.
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


def _is_look(numbers: object) -> bool:
    return isinstance(numbers, list) and len(numbers) >= LOOK and all(type(number) is int for number in numbers)


def _size(looks: Looks, name: str) -> int:
    return looks[name][1]


def _end(path: Path, size: int) -> int:
    return _sum(path, max(0, size - END), END)


def _sum(path: Path, place: int, length: int) -> int:
    with suppress(OSError):
        return zlib.crc32(files.read_part(path, place, length))
    return -1
