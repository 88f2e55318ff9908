"""Opening files that others may write to: only regular ones, never waiting, never led elsewhere."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from localmed.errors import InputError

Opener = Callable[[Path], BinaryIO]


def open_regular(path: Path, root: str = "", follow: bool = True) -> BinaryIO:
    """``path`` opened for reading, if it is a regular file; nothing that it was swapped for is waited for or followed.

    Whoever may write into a watched folder may swap a file after it was listed. ``follow`` says that it was a link
    then; whatever was opened must lie within ``root`` ("" for a file that was named itself). Raise ``InputError``.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    try:
        handle = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP and not follow:
            raise InputError("source.became_link", name=path.name) from None
        raise
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise InputError("source.not_regular", name=path.name)
        if root and not Path(f"/proc/self/fd/{handle}").readlink().is_relative_to(Path(root).resolve()):
            raise InputError("source.outside", name=path.name)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise
