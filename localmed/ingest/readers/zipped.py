"""Zip archives before anything is taken out of them: passwords, numbers and sizes.

The sizes are those that the archive states; Python's ``zipfile`` never gives more of a member than its stated size.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from localmed.config import ReadBounds
from localmed.errors import InputError, LimitExceeded

_ENCRYPTED = 0x1  # a member's flag
FREE_BYTES = 16 * 2**20  # what any archive may unpack to, however small it is: a sheet of zeros packs a thousandfold


def check(path: Path, package: zipfile.ZipFile, bounds: ReadBounds) -> None:
    """Raise ``InputError`` where ``package`` must not be unpacked."""
    members = package.infolist()
    if len(members) > bounds.archive_members:
        raise too_many(path, bounds)
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise InputError("reader.password", name=path.name)
    check_size(path, sum(member.file_size for member in members), bounds)


def check_size(path: Path, unpacked: int, bounds: ReadBounds) -> None:
    """Raise ``LimitExceeded`` where ``path`` unpacks to more than it may."""
    if unpacked > bounds.archive_bytes:
        raise LimitExceeded("reader.archive_bytes", name=path.name, most=bounds.archive_bytes)
    if unpacked > FREE_BYTES and unpacked > bounds.archive_ratio * path.stat().st_size:
        raise LimitExceeded("reader.archive_ratio", name=path.name, most=bounds.archive_ratio)


def too_many(path: Path, bounds: ReadBounds) -> LimitExceeded:
    """The refusal of an archive with too many members."""
    return LimitExceeded("reader.archive_members", name=path.name, most=bounds.archive_members)
