"""The table of the data folder: every name once, known names and others, and no name written anywhere else."""

from __future__ import annotations

import ast
import threading
from pathlib import Path

import pytest

import localmed
from localmed.library import layout
from localmed.models.host import protocol
from localmed.process import files

PACKAGE = Path(localmed.__file__).parent


def test_every_name_is_there_once() -> None:
    assert len(layout.BY_NAME) == len(layout.PLACES)
    for place in layout.PLACES:
        if place.writer:
            assert (PACKAGE / f"{place.writer.replace('.', '/')}.py").is_file() or (
                PACKAGE / place.writer.replace(".", "/")
            ).is_dir(), place
    assert protocol.FOLDER == layout.HOST, "what serves models imports nothing of the library"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("site.sqlite", "site.sqlite"),
        ("site.sqlite-wal", "site.sqlite"),
        ("in_force.json", "in_force.json"),
        ("in_force.json.0123abcd.new", "in_force.json"),
        ("in_force.json-wal", None),
        ("vectors", "vectors"),
        ("vectors-wal", None),
        ("notes.txt", None),
        ("notes.txt.0123abcd.new", None),
        ("withdrawals.old", None),
        ("lost+found", None),
    ],
)
def test_a_name_is_of_its_place(name: str, place: str | None) -> None:
    known = layout.place_of(name)
    assert (known.name if known else None) == place


def test_what_is_unknown_is_listed(tmp_path: Path) -> None:
    for name in ("lost+found", "files", ".Trash-1000", "notes"):
        (tmp_path / name).mkdir()
    for name in (".DS_Store", "site.sqlite-shm", "letter.docx"):
        (tmp_path / name).write_bytes(b"x")
    assert [path.name for path in layout.unknown(tmp_path)] == ["letter.docx", "notes"]


def test_what_is_half_written_is_not_copied(tmp_path: Path) -> None:
    for name in ("whole", "1.part", "a.0123abcd.new", "registry.lock", "lost+found/x", "deep/whole"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "link").symlink_to("whole")
    assert [str(path.relative_to(tmp_path)) for path in layout.contents(tmp_path)] == ["deep/whole", "whole"]


@pytest.mark.slow
def test_no_name_of_the_data_folder_is_written_elsewhere() -> None:
    """``data / "files"`` is written ``data / layout.FILES``: who renames or adds one finds every place."""
    names = {*layout.BY_NAME}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path == PACKAGE / "library/layout.py":
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and _of_data(node.left):
                right = node.right
                assert not (isinstance(right, ast.Constant) and right.value in names), f"{path}: {right.lineno}"


def _of_data(node: ast.expr) -> bool:
    """Whether an expression ends in ``data``: ``data``, ``self._data``, ``settings.data``."""
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.strip("_") == "data"


# --- files replaced in one step ---------------------------------------------------------------------------------------


def test_of_several_who_replace_one_file_each_writes_its_own(tmp_path: Path) -> None:
    """They shared one name beside it: one moved what another was writing, or found nothing to move."""
    path, failed = tmp_path / "kept.json", list[BaseException]()
    contents = [bytes([65 + number]) * 200_000 for number in range(6)]

    def write(content: bytes) -> None:
        try:
            for _ in range(20):
                files.replace(path, content)
                assert path.read_bytes() in contents, "whole, whoever's it is"
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [one.name for one in tmp_path.iterdir()] == ["kept.json"]
