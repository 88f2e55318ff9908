"""A folder of copies among the system's temporary files that does not outlive its process, however that ends.

Rules: a folder in use is locked, and the kernel unlocks it when its process has ended, also by kill -9; those that
nobody has locked any more are removed before another is made. Folders of other users are left alone.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from localmed import files

FRESH = 60.0  # seconds; a folder as young as this may have been made and not locked yet


@contextmanager
def folder(prefix: str) -> Iterator[Path]:
    """A new folder, for this user only, whose name begins with ``prefix``; it is removed at the end."""
    _sweep(prefix)
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        handle = os.open(name, os.O_RDONLY)
        try:
            _lock(handle)
            yield Path(name)
        finally:
            os.close(handle)


def _sweep(prefix: str) -> None:
    """Remove what processes that have ended left."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):  # another process removes it too, or it cannot be opened
            status = left.lstat()
            fresh = time.time() - status.st_mtime < FRESH
            if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or fresh:
                continue
            handle = os.open(left, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if _lock(handle):
                    shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(handle)


def _lock(handle: int) -> bool:
    """Lock the folder; False where another process has, or where the file system knows no locks."""
    with suppress(OSError):
        return files.lock(handle)
    return False
