"""Safe file handling: replacement in one step that survives a power cut, syncing, opening without surprises.

A CSV is written so that spreadsheets run no formula: such a cell begins with an apostrophe, which ``csv_cell``
removes.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import CDLL, get_errno
from pathlib import Path
from typing import IO, BinaryIO

from localmed.domain.errors import Damaged, DiskFull, InputError, LimitExceeded, LocalmedError, UsageError, reason

Opener = Callable[[Path], BinaryIO]
_FORMULA = re.compile(r"\s*['=+\-@＝＋－＠]")  # what spreadsheets run, and the apostrophe that stops them
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?(e[+-]?\d+)?|-", re.IGNORECASE)
SMALL = 2**20  # bytes of a file of settings or a manifest, which people write by hand; ours have up to 20,000
OWN = 2**28  # bytes of a file that localmed keeps and reads whole
LEAST_FREE = 2**20  # bytes; Tantivy's threads die of a full disk without saying so, and with less than this it is one
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of renameat2(2)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS = re.compile(r"No space left|disk is full|quota exceeded|File too large|disk I/O error", re.IGNORECASE)


def replace(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace ``path`` with ``content`` in one step: after a power cut it is the old or the new file, whole."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}.new")  # of two who write at once each has its own
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(handle)
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    sync(path.parent)


def new_name(path: Path) -> None:
    """Raise ``UsageError`` if ``path`` exists: a command's output replaces nothing."""
    if path.is_symlink() or path.exists():
        raise UsageError("file.exists", file=str(path))


def write_new(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write the file ``path``, which must not exist; raise ``UsageError`` if that fails."""
    new_name(path)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
        except OSError:
            path.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError("file.unwritable", file=str(path), reason=reason(error)) from None


def sync(path: Path) -> None:
    """Force a file's content, or a folder's entries, to disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> None:
    """Swap two folders in one step, or in three (by way of ``exchanged``) where the file system cannot."""
    function = getattr(CDLL(None, use_errno=True), "renameat2", None)
    if function and not function(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        return
    if function and get_errno() not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        raise OSError(get_errno(), os.strerror(get_errno()), str(one))
    one.rename(exchanged(one))
    other.rename(one)
    exchanged(one).rename(other)


def exchanged(folder: Path) -> Path:
    """Where ``folder`` lies in the middle of an exchange in three steps."""
    return folder.with_name(f".{folder.name}.exchanged")


def lock(file: int | IO[str] | IO[bytes], *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file or folder until it is closed, alone or ``shared`` with other shared locks.

    False if another opening of it, in this process or another, has the lock and not ``wait``.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def open_regular(path: Path, root: str = "", follow: bool = True) -> io.BufferedReader:
    """Open ``path`` for reading if it is a regular file; never wait for or follow a replacement.

    Whoever may write to a watched folder may swap a file after it was listed. ``follow`` means that it was a link
    then. The opened file must lie within ``root`` ("" for a file named itself). Raise ``InputError``.
    """
    try:
        handle = os.open(path, _FLAGS | (0 if follow else os.O_NOFOLLOW))
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise InputError("source.became_link", name=path.name) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError("source.not_regular", name=path.name)
        if root and not _within(os.readlink(f"/proc/self/fd/{handle}"), os.path.realpath(root)):  # noqa: PTH115
            raise InputError("source.outside", name=path.name)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")  # which closes it if it fails: to do that twice hides why, and may close another's


def _within(path: str, folder: str) -> bool:
    """Whether ``path`` lies below ``folder``, both without links; strings, because a night opens every file."""
    return path.startswith(folder.rstrip("/") + "/")


def contents(path: Path, most: int = SMALL) -> bytes:
    """The bytes of ``path``; raise ``InputError`` if it cannot be read, ``LimitExceeded`` if it has more than
    ``most``.
    """
    try:
        data = first_bytes(path, most + 1)
    except OSError as error:
        raise InputError("file.unreadable", file=str(path), reason=reason(error)) from None
    if len(data) > most:
        raise LimitExceeded("file.bytes", name=path.name, most=most)
    return data


def first_bytes(path: Path, count: int) -> bytes:
    """The first ``count`` bytes of ``path``; raise ``OSError`` as ``open_own`` does."""
    with open_own(path) as file:
        return file.read(count)


def open_own(path: Path) -> io.BufferedReader:
    """Open ``path`` for reading; raise ``OSError``, also for a device or a pipe."""
    try:
        return open_regular(path)
    except InputError:
        number = errno.EISDIR if path.is_dir() else errno.ENODEV
        raise OSError(number, os.strerror(number), str(path)) from None


def read_part(path: Path, start: int, count: int) -> bytes:
    """``count`` bytes of a file from ``start`` on, fewer at its end; raise ``OSError`` if it cannot be read.

    Three system calls: a thread that reads many small files waits for the interpreter after each.
    """
    handle = os.open(path, _FLAGS)
    try:
        return os.pread(handle, count, start)
    finally:
        os.close(handle)


def own_bytes(path: Path) -> bytes:
    """The bytes of one of localmed's own files; raise ``OSError`` if it has more than ``OWN`` or cannot be read."""
    content = first_bytes(path, OWN + 1)
    if len(content) > OWN:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), str(path))
    return content


def csv_text(rows: Iterable[Sequence[object]], line_end: str = "\n") -> str:
    """``rows`` as CSV without formulas for spreadsheets; numbers stay numbers."""
    text = io.StringIO()
    csv.writer(text, lineterminator=line_end).writerows([_inert(cell) for cell in row] for row in rows)
    return text.getvalue()


def _inert(cell: object) -> object:
    if isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell):
        return f"'{cell}"
    return cell


def csv_cell(text: str) -> str:
    """The cell that ``csv_text`` wrote as ``text``."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text, 1) else text


@contextmanager
def told_if_full(data: Path) -> Iterator[None]:
    """Raise ``DiskFull`` in place of an exception that a full disk under ``data`` explains."""
    try:
        yield
    except LocalmedError:
        raise
    except Exception as error:
        full = (isinstance(error, OSError) and error.errno in _FULL) or _WORDS.search(str(error))
        if not full and not (data.exists() and shutil.disk_usage(data).free < LEAST_FREE):
            raise
        raise DiskFull("library.full", data=str(data)) from error


@contextmanager
def told_if_damaged(data: Path) -> Iterator[None]:
    """Raise ``Damaged`` in place of an ``OSError`` at a file under ``data``: missing, a folder, no permission."""
    try:
        yield
    except OSError as error:
        named = error.filename if isinstance(error.filename, str) else ""
        if not Path(named).is_relative_to(data):
            raise
        raise Damaged("library.stored", file=named, reason=reason(error)) from error
