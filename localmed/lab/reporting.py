"""What the evaluations share: the folder of the report, tried before the work and filled after it, and what is told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click

from localmed.cli.common import echo_wrapped, plain, print_table
from localmed.cli.speaking import say, words
from localmed.domain import Message
from localmed.domain.errors import Busy, InputError, reason
from localmed.process import files

FILE = click.Path(path_type=Path, dir_okay=False)
resume_option = click.option("--resume", is_flag=True, help="Continue an interrupted run with the same --out.")
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**31), default=1, metavar="N", help="Draws the resamples (default: 1)."
)


def out_option(help: str, required: bool = False) -> Callable[..., Any]:
    """``--out FOLDER``, of a command that writes there what ``help`` says."""
    folder = click.Path(path_type=Path, file_okay=False)
    return click.option("--out", type=folder, required=required, metavar="FOLDER", help=help)


def writable(out: Path, file: str = "report.json") -> None:
    """Make ``out`` and ``file`` in it; raise ``InputError`` before anything is evaluated if it cannot be."""
    with _refused(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / file).touch()


def write(out: Path, result: Any, texts: Mapping[str, str], draw: Callable[[Path], object]) -> None:
    """Write ``result`` as report.json, ``texts`` (file name -> content) and what ``draw`` draws.

    Raise ``InputError`` where that cannot be.
    """
    report = json.dumps(plain(result), ensure_ascii=False, indent=2) + "\n"
    with _refused(out):
        for name, content in {"report.json": report, **texts}.items():
            (out / name).write_text(content, "utf-8")
        draw(out)


@contextmanager
def _refused(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError("file.unwritable", file=str(out), reason=reason(error)) from None


@contextmanager
def resumable(out: Path | None) -> Iterator[None]:
    """An evaluation whose finished rows stay in ``out`` when Ctrl-C ends it, which is said.

    Raise ``Busy`` where another call writes there: two would mix their rows.
    """
    with _locked(out) if out else nullcontext():
        try:
            yield
        except KeyboardInterrupt:
            if out:
                say("cli.kept_in_out", err=True)
            raise


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """The folder ``out``, itself locked, so that no file is left beside the report."""
    with _refused(out):
        handle = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not files.lock(handle):
            raise Busy("cli.out_busy", out=str(out))
        yield
    finally:
        os.close(handle)


def table(title: Message | str, columns: Iterable[object], rows: Iterable[Iterable[object]]) -> None:
    """Print a table whose title, headings and cells may be messages."""
    print_table(_shown(title), [_shown(name) for name in columns], [[_shown(cell) for cell in row] for row in rows])


def _shown(value: object) -> str:
    return words(value) if isinstance(value, Message) else str(value)


def tell(facts: Iterable[Message], out: Path | None, *files: str) -> None:
    """Print what the tables do not say, and the ``files`` that were written to ``out``."""
    for fact in facts:
        echo_wrapped(words(fact), "- ", "  ")
    if out:
        say("cli.written_to", out=str(out), files=files)
