"""A full disk, told in one line. Python, SQLite, Tantivy and Lance each say it their own way."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from localmed.errors import LibraryError, LocalmedError

LEAST_FREE = 2**20  # bytes; Tantivy's threads die of a full disk without saying so, and with less than this it is one
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WORDS = re.compile(r"No space left|disk is full|quota exceeded|File too large|disk I/O error", re.IGNORECASE)


@contextmanager
def told_if_full(data: Path) -> Iterator[None]:
    """Raise ``LibraryError`` in place of any exception that a full disk under ``data`` explains."""
    try:
        yield
    except LocalmedError:
        raise
    except Exception as error:
        if not _explained(error, data):
            raise
        raise LibraryError("library.full", data=str(data)) from error


def _explained(error: Exception, data: Path) -> bool:
    if isinstance(error, OSError) and error.errno in _FULL:
        return True
    return bool(_WORDS.search(str(error))) or (data.exists() and shutil.disk_usage(data).free < LEAST_FREE)
