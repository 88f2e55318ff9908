"""Archives (.zip, .tar, .tar.gz, .tar.xz, .tar.bz2): their members, each unpacked under a number.

The importer then reads each member as a file of its own (``opening.py``). Rules: an archive is refused as a whole if
it needs a password, if a member's name leads out of it (``..``, a path from the root), if a member is a device or pipe,
if it holds too many members or unpacks to too much. A link is a fault and is not followed; what is hidden (``.x``,
``__MACOSX``, ``~$x``) is passed over, as in folders. No member's name ever becomes a name on this disk. Names of
zip archives that do not say they are UTF-8 are read as UTF-8 or GB18030 where they are.

Not covered: other kinds of archive (7z, rar), and parts of one archive in several files.
"""

from __future__ import annotations

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from localmed.config import ReadBounds
from localmed.domain import message
from localmed.domain.errors import InputError, LimitExceeded, reason
from localmed.ingest.parsed import Fault, FieldMapping, Member, named, once
from localmed.ingest.readers import bounds_of
from localmed.ingest.readers.encoding import clean

_ENCRYPTED = 0x1  # a zip member's flag
FREE_BYTES = 16 * 2**20  # what any archive may unpack to, however small it is: a sheet of zeros packs a thousandfold
COPIED = 2**20  # bytes at a time
_UTF8_NAME = 0x800  # a zip member's flag
_DAMAGED = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError,
            ValueError, RuntimeError)  # fmt: skip


def read(path: Path, mapping: FieldMapping) -> Iterator[Member | Fault]:
    """Unpack ``path`` into the folder that the option ``into`` names; a member for each file there."""
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
            name = _checked(path, _name(member), mode)
            if member.is_dir() or _hidden(name):
                continue
            if stat.S_ISLNK(mode):
                yield Fault(named(name), message("reader.link"))
                continue
            _check_member(path, name, member.file_size, bounds)
            with archive.open(member) as file:
                _copy(file, into / str(number))
            yield Member(name, str(number))


def _tar(path: Path, into: Path, bounds: ReadBounds) -> Iterator[Member | Fault]:
    """A tar archive, read once from its beginning: what it unpacks to is counted before it is unpacked."""
    unpacked = 0
    with tarfile.open(path, "r|*") as archive:
        for number, member in enumerate(archive):
            if number >= bounds.archive_members:
                raise too_many(path, bounds)
            name = _checked(path, clean(member.name), stat.S_IFBLK if member.isdev() else stat.S_IFREG)
            unpacked += max(member.size, 0)
            check_size(path, unpacked, bounds)
            if member.issym() or member.islnk():
                yield Fault(named(name), message("reader.link"))
            elif member.isfile() and not _hidden(name):
                _check_member(path, name, member.size, bounds)
                file = archive.extractfile(member)
                if file is not None:
                    _copy(file, into / str(number))
                    yield Member(name, str(number))


def _checked(path: Path, name: str, mode: int) -> str:
    """``name`` as it is shown; raise ``InputError`` where no honest archive has such a member."""
    plain = name.replace("\\", "/")
    parts = PurePosixPath(plain).parts
    if plain.startswith("/") or ".." in parts or (parts and parts[0][1:2] == ":"):
        raise InputError("reader.leads_out", name=path.name)
    if stat.S_ISBLK(mode) or stat.S_ISCHR(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        raise InputError("reader.device", name=path.name)
    return "/".join(parts)


def _check_member(path: Path, name: str, size: int, bounds: ReadBounds) -> None:
    if size > bounds.file_bytes:
        raise LimitExceeded("reader.member_bytes", name=path.name, member=name, most=bounds.file_bytes)


def _hidden(name: str) -> bool:
    return not name or any(part.startswith((".", "~$", "__MACOSX")) for part in name.split("/"))


def _name(member: zipfile.ZipInfo) -> str:
    """A member's name: Windows in Chinese writes GBK and says nothing of it."""
    if member.flag_bits & _UTF8_NAME:
        return clean(member.filename)
    raw = member.filename.encode("cp437", "replace")
    for encoding in ("utf-8", "gb18030"):
        try:
            return clean(raw.decode(encoding))
        except UnicodeDecodeError:
            continue
    return clean(member.filename)


def _copy(file: IO[bytes], to: Path) -> None:
    with to.open("wb") as target:
        while piece := file.read(COPIED):
            target.write(piece)


# --- before anything is taken out of a zip, by the sizes that it states; zipfile never gives more of a member -------


def check_zip(path: Path, package: zipfile.ZipFile, bounds: ReadBounds) -> None:
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
