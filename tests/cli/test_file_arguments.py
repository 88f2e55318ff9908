"""Every file that a command reads is bounded by what is read of it: an endless one ends in one line within seconds.

The arguments come from the commands' own tree, so that a new one cannot be forgotten here.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from _pytest.mark.structures import ParameterSet

from localmed.cli.main import main
from localmed.domain.errors import InputError, LimitExceeded
from localmed.process.files import SMALL, contents
from localmed.upkeep import signing
from tests.cli.conftest import Localmed, Ran

WRITTEN = frozenset(
    {"record", "report", "leaflet", "image", "out", "data", "egress"}
)  # places for what a command writes
OUTPUTS = {
    ("documents sheet", "sheet"),
    ("pack key", "file"),
    ("pack root", "file"),
    ("refresh show", "page"),
}  # written
# What else a command must be given so that it comes to its file.
BESIDE = {
    ("import", "manifest"): ("{ends}", "-c", "ward"),
    ("ebm", "patient"): ("what dose of paracetamol?",),
    ("explain", "patient"): ("{ends}",),
    ("show", "answer"): ("1",),
    ("eval badges", "questions"): ("--source", "ward", "--out", "{out}"),
    ("eval claims", "questions"): ("--out", "{out}"),
    ("eval links", "questions"): ("--out", "{out}"),
    ("eval links", "answers"): ("--questions", "{questions}", "--out", "{out}"),
    ("eval retrieval", "source"): ("--set", "pubmedqa", "-c", "ward"),
    ("review export", "file"): ("--out", "{out}"),
    ("review import", "files"): ("--key", "{ends}"),
    ("review import", "key"): ("{ends}",),
    ("eval stance", "tune"): ("--pairs", "{ends}", "--out", "{out}"),
    ("documents govern", "sheet"): ("-c", "ward"),
    ("pack build", "source"): ("{out}", "--root", "{root}", "--key", "{key}", "--version", "1"),
    ("pack build", "root_file"): ("{folder}", "{out}", "--key", "{key}", "--version", "1"),
    ("pack build", "keys"): ("{folder}", "{out}", "--root", "{root}", "--version", "1"),
    ("pack root", "keys"): ("{out}",),
    ("pack root", "replaces"): ("{out}", "--key", "{key}", "--key", "{other}", "--before-key", "{key}"),
    ("pack root", "before_keys"): ("{out}", "--key", "{key}", "--key", "{other}", "--replaces", "{root}"),
    ("pack sign", "keys"): ("{folder}",),
    ("evidence", "attached"): ("{out}",),
    ("evidence", "key"): ("{out}",),
    ("restore", "folder"): ("--yes",),
    ("serve", "tls_key"): ("--tls-cert", "{ends}"),
    ("eval retrieval", "queries"): ("--qrels", "{ends}"),
    ("eval retrieval", "qrels"): ("--queries", "{queries}"),
    ("train explore", "queries"): ("--qrels", "{ends}", "--out", "{out}"),
    ("train explore", "qrels"): ("--queries", "{queries}", "--out", "{out}"),
    ("train compare", "queries"): ("--qrels", "{ends}", "--out", "{out}", "--planner", "small"),
    ("train compare", "qrels"): ("--queries", "{queries}", "--out", "{out}", "--planner", "small"),
}
SECONDS = 30  # for a machine that others use too; alone it takes less than one
FILE_OR_FOLDER = {"import": ("-c", "ward")}


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command of the tree with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


def reads_file(parameter: click.Parameter) -> bool:
    """Whether it names a file that is read."""
    named = isinstance(parameter.type, click.Path) or "FILE" in (parameter.metavar or "")
    return named and parameter.name not in WRITTEN


READ = [
    (" ".join(path), parameter)
    for path, command in commands(main)
    for parameter in command.params
    if reads_file(parameter) and (" ".join(path), parameter.name) not in OUTPUTS
]


def test_the_tree_is_walked() -> None:
    names = {(command, parameter.name) for command, parameter in READ}
    assert {("replay", "file"), ("show", "answer"), ("documents govern", "sheet"), ("import", "manifest")} <= names
    assert {("verify", "file"), ("explain", "order"), ("ebm", "patient"), ("models add", "source")} <= names
    assert len(names) > 18


@pytest.fixture(scope="module")
def ward(imported: tuple[Localmed, Ran], tmp_path_factory: pytest.TempPathFactory) -> Localmed:
    """A library of its own, since import and govern may change it."""
    data = tmp_path_factory.mktemp("ward") / "data"
    shutil.copytree(imported[0].data, data, symlinks=True)
    return Localmed(data)


def run_with(ward: Localmed, folder: Path, command: str, parameter: click.Parameter, file: Path) -> Ran:
    """The command with ``file`` for the parameter, and whatever else it must be given."""
    (ends := folder / "ends.txt").write_text("Paracetamol 500 mg\n")
    (queries := folder / "queries.tsv").write_text("1\tparacetamol\n2\tsepsis\n")
    (questions := folder / "questions.jsonl").write_text('{"id": "1", "question": "What dose?"}\n')
    (empty := folder / "empty").mkdir()
    places = {"ends": ends, "out": folder / "out", "queries": queries, "questions": questions, "folder": empty}
    if command.startswith("pack"):
        places |= {name: folder / f"{name}.pem" for name in ("key", "other")} | {"root": folder / "root.json"}
        for name in ("key", "other"):
            signing.make_key(places[name])
        signing.make_root(places["root"], [signing.load_key(places[name]) for name in ("key", "other")], None, [])
    beside = [word.format(**places) for word in BESIDE.get((command, str(parameter.name)), ())]
    more = FILE_OR_FOLDER.get(command, ()) if parameter.name == "paths" else ()
    words = (str(file),) if isinstance(parameter, click.Argument) else (parameter.opts[0], str(file))
    return ward(*command.split(), *words, *beside, *more)


# Commands that ask for their extra before they look for a file.
MEASURING = ("eval badges", "eval claims", "eval links", "eval retrieval", "eval stance", "train compare")


def of_command(command: str, parameter: click.Parameter) -> ParameterSet:
    marks = [pytest.mark.extra("eval")] if command in MEASURING else []
    return pytest.param(command, parameter, id=f"{command} {parameter.name}", marks=marks)


@pytest.mark.parametrize(("command", "parameter"), [of_command(*pair) for pair in READ])
def test_a_missing_file_is_refused_by_every_command_alike(
    ward: Localmed, tmp_path: Path, command: str, parameter: click.Parameter
) -> None:
    assert run_with(ward, tmp_path, command, parameter, tmp_path / "missing.toml").code == InputError.exit_code


@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "large"])
@pytest.mark.parametrize(("command", "parameter"), READ, ids=[f"{c} {p.name}" for c, p in READ])
@pytest.mark.slow
def test_an_endless_file_ends_in_one_line(
    ward: Localmed, tmp_path: Path, command: str, parameter: click.Parameter, kind: str
) -> None:
    endless = tmp_path / "endless.toml"
    if kind == "device":
        endless.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(endless)
    elif kind == "folder":
        endless.mkdir()
    else:
        with endless.open("wb") as file:
            file.truncate(2**40)  # of which nothing is on the disk
    signal.alarm(SECONDS)
    done = run_with(ward, tmp_path, command, parameter, endless)
    signal.alarm(0)
    if (command, kind) == ("backup list", "folder"):  # an empty folder, in which there are none
        assert done.code == 0, done
    elif command == "import" and parameter.name == "paths":  # refused files are reported, and the rest is read
        assert done.code in (0, 2, 3), done
    else:
        assert done.code in (2, 3), done
        assert "nexpected" not in done.failed(done.code)


@pytest.mark.parametrize("place", ["/dev/zero", "pipe", "large"])
def test_the_settings_are_bounded_too(
    localmed: Localmed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"#" * (SMALL + 1))
    monkeypatch.setenv("LOCALMED_CONFIG", str(tmp_path / place))
    localmed("search", "sepsis").failed(2)


def test_no_more_is_read_than_allowed(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_bytes(b"12345")
    assert contents(file, 5) == b"12345"
    with pytest.raises(LimitExceeded):
        contents(file, 4)
    with pytest.raises(InputError):
        contents(tmp_path, 4)
