"""Shared by the evaluations: the report folder, checked in advance and filled at the end; tables, files and rows."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import click

from localmed import __version__
from localmed.cli.common import echo_wrapped, plain, print_json, print_table
from localmed.cli.speaking import language, say, words
from localmed.domain import Message
from localmed.domain.codec import field_types
from localmed.domain.errors import Busy, InputError, UsageError, reason
from localmed.lab.sets import read_bytes
from localmed.messages import known
from localmed.process import files
from localmed.site.session import Session

FILE = click.Path(path_type=Path, dir_okay=False)
ROWS = "rows.jsonl"
resume_option = click.option("--resume", is_flag=True, help="Continue an interrupted run with the same --out.")
seed_option = click.option(
    "--seed", type=click.IntRange(0, 2**31), default=1, metavar="N", help="Draws the resamples (default: 1)."
)


def out_option(help: str, required: bool = False) -> Callable[..., Any]:
    """The option ``--out FOLDER``."""
    folder = click.Path(path_type=Path, file_okay=False)
    return click.option("--out", type=folder, required=required, metavar="FOLDER", help=help)


def rows_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options ``--out`` and ``--resume`` of a command that stores its rows beside the report."""
    written = "Write report.json, table.csv, plot.png, plot.svg and rows.jsonl there."
    made: Callable[..., Any] = out_option(help=written, required=True)(resume_option(command))
    return made


def made_with(session: Session) -> dict[str, str]:
    """The identity of a run's configuration; rows of another one are not resumed."""
    site = session.site
    with session.workspace() as workspace:
        made = workspace.provenance()
    models = ", ".join(f"{name} {value}" for name, value in made.models)
    return {"generation": made.generation, "profile": made.profile, "models": models, "judge": site.entailment.name,
            "badge": dict(made.prompts).get("badge", ""),
            "encoder": site.encoder.identity.slug, "reranker": site.reranker.name if site.reranker else "none",
            "version": __version__}  # fmt: skip


def need(*adapters: Any) -> None:
    """Raise ``ModelError`` for a library that is not installed, before the work begins."""
    for adapter in adapters:
        adapter.require()


Draw = Callable[[Path, str], tuple[Path, ...]]  # (folder, language): writes the plot there
FORMATS = {  # of a number in a column; others have three places
    **dict.fromkeys(("abstained", "flips", "overhead", "best", "usable", "share", "not_judged"), ".1%"),
    **dict.fromkeys(("calls", "seconds", "passages", "queries", "sources"), ".1f"),
    **dict.fromkeys(("tokens_in", "tokens_out"), ".0f"),
    **dict.fromkeys(("p", "p_holm", "own_p"), ".4f"),
    "difference": "+.3f",
}


@dataclass(frozen=True, slots=True)
class Table:
    """Records (column -> text, number, message; ``None``: undefined) and the columns to show.

    The column ``interval`` shows ``low`` and ``high``. A column without a message is headed by its name.
    """

    title: Message | str
    columns: tuple[str, ...]
    records: Sequence[Mapping[str, Any]]

    @property
    def names(self) -> list[Message | str]:
        """The headings."""
        return [Message(f"column.{name}") if known(f"column.{name}") else name for name in self.columns]

    @property
    def cells(self) -> list[list[Message | str]]:
        """The cells to show, a row for each record."""
        return [[_cell(record, name) for name in self.columns] for record in self.records]


def _cell(record: Mapping[str, Any], name: str) -> Any:
    if name == "interval":
        return f"{figure(record['low'])} - {figure(record['high'])}"
    return figure(record.get(name), FORMATS.get(name, ".3f"))


def figure(value: Any, form: str = ".3f") -> Any:
    """A number in ``form``, "-" for None; messages unchanged."""
    if isinstance(value, Message):
        return value
    return "-" if value is None else f"{value:{form}}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an evaluation: ``values`` for JSON, tables, facts that they omit, and a plot. Contains no text."""

    values: Mapping[str, Any]
    tables: Sequence[Table]
    facts: Sequence[Message] = ()
    records: Sequence[Mapping[str, Any]] = ()  # of table.csv
    draw: Draw | None = None
    texts: Mapping[str, str] | None = None  # further files

    @property
    def csv(self) -> str:
        """All fields of all records."""
        names = list(dict.fromkeys(name for record in self.records for name in record))
        return files.csv_text([names, *([record.get(name) for name in names] for record in self.records)])

    def finish(self, out: Path | None, as_json: bool, *further: str) -> None:
        """Write the report's files to ``out`` and print it; ``further`` files already exist there."""
        texts = {"report.json": json.dumps(plain(self.values), ensure_ascii=False, indent=2) + "\n"}
        texts |= ({"table.csv": self.csv} if self.records else {}) | dict(self.texts or {})
        if out:
            with writable(out):
                for name, content in texts.items():
                    (out / name).write_text(content, "utf-8")
                drawn = self.draw(out, language()) if self.draw else ()
        if as_json:
            print_json(self.values)
            return
        for table in self.tables:
            cells = [list(map(_worded, row)) for row in table.cells]
            print_table(_worded(table.title), list(map(_worded, table.names)), cells)
        for fact in self.facts:
            echo_wrapped(words(fact), "- ", "  ")
        if out:
            say("cli.written_to", out=str(out), files=(*texts, *(path.name for path in drawn), *further))


def _worded(value: Message | str) -> str:
    return words(value) if isinstance(value, Message) else value


@contextmanager
def report_folder(out: Path | None, resume: bool = False, file: str = "report.json") -> Iterator[None]:
    """An evaluation whose finished rows remain in the folder ``out`` after Ctrl-C; the user is told.

    Raise ``InputError`` in advance where ``file`` cannot be written there, ``Busy`` where another process writes there.
    """
    if not out:
        if resume:
            raise UsageError("evaluation.resume")
        yield
        return
    with writable(out):
        out.mkdir(parents=True, exist_ok=True)
        (out / file).touch()
        handle = os.open(out, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # locks the folder, without a lock file
    try:
        if not files.lock(handle):
            raise Busy("cli.out_busy", out=str(out))
        yield
    except KeyboardInterrupt:
        say("cli.kept_in_out", err=True)
        raise
    finally:
        os.close(handle)


# --- rows -------------------------------------------------------------------------------------------------------------

# Finished results of a batch as JSON lines, so that an interrupted batch can be resumed. The first line identifies the
# configuration; rows of another one are refused. A last line that an interruption has cut off is skipped. Resuming
# replaces the file atomically.


Row = TypeVar("Row")
Kind = type[Row] | tuple[type[Row], ...]


class Rows(Generic[Row]):
    """The rows of a batch, identified by their ``key`` fields. Without a file they are not stored."""

    def __init__(
        self, file: Path | None, made_with: Mapping[str, str], resume: bool, kind: Kind[Row], *key: str
    ) -> None:
        """Start anew, or with the rows of ``file`` if ``resume``.

        Raise ``UsageError`` if they have another configuration, ``InputError`` where the file cannot be read or
        written.
        """
        self._file = file
        kept: list[Any] = []
        if file and resume and file.exists() and file.stat().st_size:
            head, kept = _parse(file)
            if head != dict(made_with):
                raise UsageError("evaluation.other_run", file=str(file))
        self.done = {tuple(getattr(row, name, "") for name in key): row for row in _make_rows(kept, kind)}
        if file:
            with writable(file):
                files.replace(file, "".join(map(line, (dict(made_with), *kept))).encode())

    def get(self, key: tuple[str, ...], make: Callable[[], Row]) -> Row:
        """The finished row ``key``, else a new one, stored before it is returned."""
        if key not in self.done:
            row: Any = make()
            self.done[key] = row
            if self._file:
                with writable(self._file), self._file.open("a", encoding="utf-8") as opened:
                    opened.write(line(asdict(row)))
                    opened.flush()
                    os.fsync(opened.fileno())
        return self.done[key]


def stored(file: Path, kind: Kind[Row]) -> tuple[Mapping[str, Any], list[Row]]:
    """The configuration and the rows of ``file``; raise ``InputError`` where it cannot be read."""
    made_with, pieces = _parse(file)
    if not isinstance(made_with, dict):
        raise InputError("evaluation.rows", file=str(file))
    return made_with, list(_make_rows(pieces, kind))


def _make_rows(pieces: list[Any], kind: Kind[Row]) -> Iterator[Row]:
    for piece in pieces:
        for one in kind if isinstance(kind, tuple) else (kind,):
            with suppress(TypeError, AttributeError):  # of another class, or version
                yield _revive(one, piece)


def _revive(kind: Any, piece: Any) -> Any:
    if is_dataclass(kind):
        return kind(**{name: _revive(field_types(kind).get(name), value) for name, value in piece.items()})  # type: ignore[arg-type,operator]
    return tuple(piece) if isinstance(piece, list) else piece


def _parse(file: Path) -> tuple[Any, list[Any]]:
    """The values of the first line and of the others, without incomplete ones."""
    values: list[Any] = []
    try:
        lines = read_bytes(file).decode().split("\n")
    except UnicodeDecodeError:
        raise InputError("evaluation.rows", file=str(file)) from None
    for text in lines:
        try:
            values.append(json.loads(text))
        except ValueError:
            values.append(None)
    return values[0], [value for value in values[1:] if value is not None]


def line(value: Any) -> str:
    """``value`` as a line of JSON."""
    return json.dumps(value, ensure_ascii=False) + "\n"


@contextmanager
def writable(path: Path) -> Iterator[None]:
    """Raise ``InputError`` where ``path`` cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError("file.unwritable", reason=reason(error), file=str(path)) from None
