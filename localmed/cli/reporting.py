"""The folder that an evaluation writes its report into: asked for, tried before the work, filled after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from localmed.errors import InputError, reason

FILE = click.Path(path_type=Path, dir_okay=False)
resume_option = click.option(
    "--resume", is_flag=True, help="Go on where an interrupted call with the same --out has stopped."
)


def out_option(written: str, required: bool = False) -> Callable[..., Any]:
    """``--out FOLDER``, of a command that writes what ``written`` says there."""
    folder = click.Path(path_type=Path, file_okay=False)
    return click.option("--out", type=folder, required=required, metavar="FOLDER", help=f"Write {written} there.")


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
    return InputError("cli.out", out=str(out), reason=reason(error))
