"""Whom a site trusts to send it content, and the check of what they send: TUF's client over a folder on a stick.

``<data>/trust/root.json`` is the root whose keys are trusted, taken over once by somebody who compared its fingerprint.
``<data>/trust/packs/<name>/`` is what is known of each pack (python-tuf's own files): an older version, or parts of two
versions, are refused from then on. Nothing of a folder is used where it lies: files are copied while they are hashed,
so that a stick that changes, or is pulled out, after the check changes nothing.

The clock decides what has expired, so it is held against what is known of the time (``earliest``): set back, it would
let in what has expired.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING

from localmed.domain.errors import InputError, LocalmedError, UsageError
from localmed.library import layout
from localmed.process import files
from localmed.upkeep.signing import FILES_MOST, METADATA, TARGETS, read_root, safe_path

if TYPE_CHECKING:
    from tuf.ngclient import FetcherInterface

FOLDER, ROOT, PACKS = layout.TRUST, "root.json", "packs"
PIECE = 2**20  # bytes copied at a time
SKEW = timedelta(days=1)  # by which clocks of two machines may differ: time zones set wrongly
TOTAL_MOST = 200 * 2**30  # bytes of one folder: the models of a workstation


@dataclass(frozen=True, slots=True)
class Described:
    """A file as the signed metadata describes it."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Verified:
    """A folder whose metadata is signed, in date and not older than what is known; its files, not read yet."""

    folder: Path
    version: int
    expires: datetime
    described: Mapping[str, Described]

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return sum(file.bytes for file in self.described.values())

    def copy(self, name: str, target: Path) -> None:
        """Copy the file ``name`` to ``target``; raise ``InputError`` if it is not what was signed."""
        copy_described(self.folder / TARGETS, name, self.described[name], target)

    def read(self, name: str, most: int = files.SMALL) -> bytes:
        """The content of the small file ``name``, as it was signed."""
        described = self.described.get(name)
        if described is None or described.bytes > most:
            raise InputError("pack.lacks", name=name)
        with tempfile.TemporaryDirectory() as folder:
            self.copy(name, Path(folder) / "file")
            return (Path(folder) / "file").read_bytes()


def root_of(data: Path) -> Path:
    """The root that the site trusts; raise ``UsageError`` where there is none."""
    path = data / FOLDER / ROOT
    if not path.exists():
        raise UsageError("pack.no_root")
    return path


def set_root(data: Path, root: Path) -> None:
    """Trust the keys of ``root`` from now on; what was known of packs of other keys is forgotten."""
    content = files.contents(root)
    read_root(root)
    folder = data / FOLDER
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    trusted = folder / ROOT
    if trusted.exists() and trusted.read_bytes() != content:
        shutil.rmtree(folder / PACKS, ignore_errors=True)
    files.replace(trusted, content)


@contextmanager
def known_of(data: Path, name: str, keep: bool) -> Iterator[Path]:
    """The folder of what is known of the pack ``name``; what is learned is kept if ``keep``, and nothing is raised."""
    kept = data / FOLDER / PACKS / name
    with tempfile.TemporaryDirectory() as scratch:
        known = Path(scratch) / "known"
        if kept.exists():
            shutil.copytree(kept, known, symlinks=True)
        known.mkdir(exist_ok=True)
        yield known
        if keep:
            _replace_folder(known, kept)


def _replace_folder(fresh: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = target.with_name(f".{target.name}.new")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(fresh, beside, symlinks=True)
    for path in beside.rglob("*"):
        if path.is_file():
            files.sync(path)
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)
    files.sync(target.parent)


def verify(folder: Path, root: Path, known: Path, earliest: datetime) -> Verified:
    """Check the metadata of ``folder`` after TUF's rules; raise ``InputError`` with the rule that it breaks.

    ``known`` is where python-tuf keeps what it has seen; ``earliest`` a time that has passed for certain.
    """
    from tuf.api.metadata import Metadata, Targets
    from tuf.ngclient import Updater

    check_clock(earliest)
    with _translated(folder):
        updater = Updater(str(known), f"{METADATA}/", fetcher=_fetcher(folder), bootstrap=files.contents(root))
        updater.refresh()
        targets = Metadata[Targets].from_file(str(known / "targets.json")).signed
    described = {}
    for name, target in targets.targets.items():
        described[safe_path(name)] = Described(target.length, target.hashes.get("sha256", ""))
    if len(described) > FILES_MOST or sum(file.bytes for file in described.values()) > TOTAL_MOST:
        raise InputError("pack.files", most=FILES_MOST)
    return Verified(folder, targets.version, targets.expires, described)


def check_clock(earliest: datetime) -> None:
    """Raise ``UsageError`` where this machine's clock is behind ``earliest``, a time that has passed."""
    if datetime.now(UTC) < earliest - SKEW:
        raise UsageError("pack.clock", day=earliest.date().isoformat())


@contextmanager
def _translated(folder: Path) -> Iterator[None]:
    """Errors of python-tuf as errors of localmed."""
    from tuf.api import exceptions as tuf

    try:
        yield
    except LocalmedError:
        raise
    except tuf.ExpiredMetadataError:
        raise InputError("pack.expired", day=datetime.now(UTC).date().isoformat()) from None
    except tuf.BadVersionNumberError:
        raise InputError("pack.older") from None
    except tuf.UnsignedMetadataError:
        raise InputError("pack.signatures") from None
    except tuf.LengthOrHashMismatchError:
        raise InputError("pack.altered", name=METADATA) from None
    except tuf.DownloadError as error:
        if isinstance(error.__cause__, LocalmedError):
            raise error.__cause__ from None
        raise InputError("pack.incomplete", folder=str(folder)) from None
    except (tuf.RepositoryError, ValueError, TypeError, LookupError, RecursionError):
        raise InputError("pack.metadata", name=METADATA) from None


def _fetcher(folder: Path) -> FetcherInterface:
    """What python-tuf reads ``folder`` by: regular files in it, no links, no network."""
    from tuf.api.exceptions import DownloadHTTPError
    from tuf.ngclient import FetcherInterface

    class Folder(FetcherInterface):  # type: ignore[misc]
        def _fetch(self, url: str) -> Iterator[bytes]:
            try:
                stream = _opened(folder, safe_path(url))
            except FileNotFoundError as error:
                raise DownloadHTTPError(str(error), 404) from None
            with stream:
                while piece := stream.read(PIECE):
                    yield piece

    return Folder()


def copy_described(folder: Path, name: str, described: Described, target: Path) -> None:
    """Copy ``folder``/``name`` to ``target``, synced, if it has the size and hash of ``described``.

    Raise ``InputError`` otherwise, and leave nothing.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), described.bytes
    try:
        with _opened(folder, name) as stream, target.open("xb") as copy:
            while piece := stream.read(min(PIECE, left + 1)):
                left -= len(piece)
                if left < 0:
                    raise InputError("pack.altered", name=name)
                digest.update(piece)
                copy.write(piece)
            copy.flush()
            os.fsync(copy.fileno())
        if left or digest.hexdigest() != described.sha256:
            raise InputError("pack.altered", name=name)
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError) and not isinstance(error, FileExistsError) and not _ours_is_full(error):
            raise InputError("pack.incomplete", folder=name) from None
        raise


def first_bytes_of(folder: Path, name: str, most: int = files.SMALL) -> bytes:
    """The first bytes of a file of ``folder`` that was not verified yet."""
    with _opened(folder, name) as stream:
        return stream.read(most)


def _ours_is_full(error: OSError) -> bool:
    import errno

    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG)


def _opened(folder: Path, name: str) -> IO[bytes]:
    """The regular file ``folder``/``name``; no link on the way to it is followed."""
    path = folder
    for part in name.split("/"):
        path = path / part
        if stat.S_ISLNK(path.lstat().st_mode):
            raise InputError("pack.not_regular", name=name)
    try:
        return files.open_regular(path, str(folder), follow=False)
    except InputError:
        raise InputError("pack.not_regular", name=name) from None
