"""The folder that an evaluation writes its report into: tried before the work, filled after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from localmed.errors import InputError


def writable(out: Path, rows: str) -> None:
    """Make ``out`` and its file of finished ``rows``; raise ``InputError`` before anything is evaluated if it cannot "
    "be."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / rows).touch()
    except OSError as error:
        raise _refused(out, error) from None


def write(out: Path, texts: Mapping[str, str], draw: Callable[[Path], object]) -> None:
    """Write ``texts`` (file name -> content) and what ``draw`` draws; raise ``InputError`` where that cannot be."""
    try:
        for name, text in texts.items():
            (out / name).write_text(text, "utf-8")
        draw(out)
    except OSError as error:
        raise _refused(out, error) from None


def _refused(out: Path, error: OSError) -> InputError:
    return InputError(f"{out} cannot be written ({error.strerror})", "Give another --out")
