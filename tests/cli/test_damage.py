"""Damage of every kind of file is told in one line with the repair and the exit code of its kind, by every command."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import cycle, product
from pathlib import Path

import pytest

from tests.cli.conftest import Localmed, Ran

ROOT = Path(__file__).parents[2]
TERMS = ROOT / "tests" / "ingest" / "fixtures" / "graphs" / "small.obo"
QUESTION = "When are antibiotics given in septic shock?"
COMMANDS = (
    ("ask", QUESTION),
    ("generations", "list"),
    ("documents", "quarantine"),
    ("generations", "rollback", "--yes"),
)
IN_GENERATION = ("manifest.json", "library.sqlite", "graph.sqlite", "lexical/*.store", "lexical/meta.json",
                 "passages.lance/data/*", "passages.lance/_versions/*")  # fmt: skip
BESIDE = ("in_force.json", "site.sqlite", "files/*",
          "vectors/*", "corpora/*", "models/registry.json")  # fmt: skip


def _overwritten(path: Path) -> None:
    path.write_bytes(b"\x00\xffnot what was written\n" * 40)


def _lost(path: Path) -> None:
    path.unlink()


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES = (_overwritten, _lost, _a_folder)
# Each kind of file once, the damages in turn; a file of a generation and one beside it with every damage.
SAMPLE = dict.fromkeys(
    [*zip(IN_GENERATION + BESIDE, cycle(DAMAGES), strict=False), *product(("library.sqlite", "site.sqlite"), DAMAGES)]
)


@pytest.fixture(scope="module")
def used(imported: tuple[Localmed, Ran], tmp_path_factory: pytest.TempPathFactory) -> Localmed:
    """A library of which every kind of file exists: changed once more, withdrawn from, restricted, a model chosen."""
    data = tmp_path_factory.mktemp("damage") / "data"
    shutil.copytree(imported[0].data, data, symlinks=True)
    localmed = Localmed(data)
    localmed.ok("import", str(TERMS), "-c", "doid", "--manifest", str(ROOT / "corpora" / "doid.toml"))
    localmed.ok("models", "use", "reranker", "none")
    localmed.ok("collections", "access", "ward", "--group", "staff")
    localmed.ok("documents", "withdraw", localmed.id_of("Paracetamol"), "--reason", "recalled")
    localmed.ok("collections", "create", "more", "--kind", "guideline")
    return localmed


def _stored(data: Path, pattern: str) -> Path:
    folder = data if pattern in BESIDE else (data / "current").resolve()
    return next(path for path in sorted(folder.glob(pattern)) if path.is_file() and path.stat().st_size)


@pytest.mark.slow
@pytest.mark.parametrize(("pattern", "damage"), SAMPLE)
def test_damage_is_told_in_one_line(
    used: Localmed, tmp_path: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    shutil.copytree(used.data, tmp_path / "data", symlinks=True)
    damage(_stored(tmp_path / "data", pattern))
    for arguments in COMMANDS:
        ran = Localmed(tmp_path / "data")(*arguments)
        assert ran.code in {0, 5, 6}, (arguments, ran)
        assert "unexpected" not in ran.out + ran.err, (arguments, ran)
        if ran.code:
            line = ran.err.removesuffix("\n")
            assert "\n" not in line, arguments
            assert line.startswith("localmed: "), arguments
