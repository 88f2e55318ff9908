"""Unpacks archives (.zip, .tar, .tar.gz, .tar.xz, .tar.bz2), each member under a number.

The importer reads each member as a file (``opening.py``). Rules: an archive is refused if it needs a password, if a
member's name leads out of it (``..``, a path from the root), if a member is a device or pipe, or if it has too many
members or unpacks to too much. A link is a fault and is not followed. Hidden members (``.x``, ``__MACOSX``, ``~$x``)
are skipped, as in folders. No member's name becomes a name on this disk. Zip names without a UTF-8 mark are read as
UTF-8 or GB18030 if possible.

Not covered: other kinds of archive (7z, rar), archives in several files.
"""

from __future__ import annotations

import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import IO

from localmed.config import ReadBounds
from localmed.domain import message
from localmed.domain.errors import InputError, LimitExceeded, reason
from localmed.ingest.parsed import Fault, FieldMapping, Member, named, once
from localmed.ingest.readers import bounds_of
from localmed.ingest.readers.encoding import clean

_ENCRYPTED = 0x1  # a zip member's flag
FREE_BYTES = 16 * 2**20  # any archive may unpack to so much: a sheet of zeros packs a thousandfold
_UTF8_NAME = 0x800  # a zip member's flag
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError,
            ValueError, RuntimeError)  # fmt: skip


def read(path: Path, mapping: FieldMapping) -> Iterator[Member | Fault]:
    """Unpack ``path`` into the folder of the option ``into``; yield a member for each file, and faults."""
    into = Path(str(mapping.options["into"]))
    bounds = bounds_of(mapping)
    try:
        members = _zip(path, into, bounds) if zipfile.is_zipfile(path) else _tar(path, into, bounds)
        yield from once(members)
    except _DAMAGED as error:
        raise InputError("reader.no_archive", name=path.name, reason=reason(error)) from None


def _zip(path: Path, into: Path, bounds: ReadBounds) -> Iterator[Member | Fault]:
    with zipfile.ZipFile(path) as archive:
        check_zip(path, archive, bounds)
        for number, member in enumerate(archive.infolist()):
            mode = member.external_attr >> 16
            name = _check_name(path, _name(member), mode)
            if member.is_dir() or _is_hidden(name):
                continue
            if stat.S_ISLNK(mode):
                yield Fault(named(name), message("reader.link"))
                continue
            with archive.open(member) as file:
                yield _unpack(path, name, member.file_size, file, into / str(number), bounds)


def _tar(path: Path, into: Path, bounds: ReadBounds) -> Iterator[Member | Fault]:
    unpacked = 0
    with tarfile.open(path, "r|*") as archive:
        for number, member in enumerate(archive):
            if number >= bounds.archive_members:
                raise _too_many(path, bounds)
            name = _check_name(path, clean(member.name), stat.S_IFBLK if member.isdev() else stat.S_IFREG)
            unpacked += max(member.size, 0)
            _check_size(path, unpacked, bounds)
            if member.issym() or member.islnk():
                yield Fault(named(name), message("reader.link"))
            elif member.isfile() and not _is_hidden(name) and (file := archive.extractfile(member)):
                yield _unpack(path, name, member.size, file, into / str(number), bounds)


def _check_name(path: Path, name: str, mode: int) -> str:
    """``name`` with plain separators; raise ``InputError`` for a member that no honest archive has."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if plain.startswith("/") or ".." in parts or (parts and parts[0][1:2] == ":"):
        raise InputError("reader.leads_out", name=path.name)
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        raise InputError("reader.device", name=path.name)
    return "/".join(parts)


def _unpack(path: Path, name: str, size: int, file: IO[bytes], to: Path, bounds: ReadBounds) -> Member:
    if size > bounds.file_bytes:
        raise LimitExceeded("reader.member_bytes", name=path.name, member=name, most=bounds.file_bytes)
    with to.open("wb") as target:
        shutil.copyfileobj(file, target)
    return Member(name, to.name)


def _is_hidden(name: str) -> bool:
    return not name or any(part.startswith((".", "~$", "__MACOSX")) for part in name.split("/"))


def _name(member: zipfile.ZipInfo) -> str:
    """A member's name: Chinese Windows writes GBK without saying so."""
    if member.flag_bits & _UTF8_NAME:
        return clean(member.filename)
    raw = member.filename.encode("cp437", "replace")
    for encoding in ("utf-8", "gb18030"):
        with suppress(UnicodeDecodeError):
            return clean(raw.decode(encoding))
    return clean(member.filename)


def check_zip(path: Path, package: zipfile.ZipFile, bounds: ReadBounds) -> None:
    """Raise ``InputError`` if ``package`` must not be unpacked, by its stated sizes, which zipfile enforces."""
    members = package.infolist()
    if len(members) > bounds.archive_members:
        raise _too_many(path, bounds)
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise InputError("reader.password", name=path.name)
    _check_size(path, sum(member.file_size for member in members), bounds)


def _check_size(path: Path, unpacked: int, bounds: ReadBounds) -> None:
    if unpacked > bounds.archive_bytes:
        raise LimitExceeded("reader.archive_bytes", name=path.name, most=bounds.archive_bytes)
    if unpacked > FREE_BYTES and unpacked > bounds.archive_ratio * path.stat().st_size:
        raise LimitExceeded("reader.archive_ratio", name=path.name, most=bounds.archive_ratio)


def _too_many(path: Path, bounds: ReadBounds) -> LimitExceeded:
    return LimitExceeded("reader.archive_members", name=path.name, most=bounds.archive_members)
