"""``tests/lint.py`` finds what it looks for: each fault is put into a small project of two modules."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import lint

FILES = {
    "README.md": "## Where things are\n\n```\nlocalmed/   package\n"
    "  domain/   values\n  cli/  commands\n  site/     a room\n```\n",
    "localmed/upkeep/hazards.toml": 'tests = ["tests/test_one.py::test_it"]\n',
    "tests/benchmarks/reproductions.py": 'TESTS = ("test_one.py::test_it",)\n',
    "tests/test_one.py": "def test_it(): ...\n",
    "localmed/domain/errors.py": "class Broken(Exception): ...\n",
    "localmed/messages/en.toml": '[a]\nb = "of {name}"\nc = { what = "no", command = "@a.d" }\nd = "mend"\n',
    "localmed/messages/zh.toml": '[a]\nb = "{name}"\nc = { what = "坏了", command = "@a.d" }\nd = "修好"\n',
    "localmed/site/site.py": 'def say():\n    message("a.b", name="x")\n    raise Broken("a.c")\n',
    "localmed/cli/one.py": "def go(): ...\n",
    "localmed/site/other.py": "from localmed.site.site import say\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def test_a_project_without_a_fault(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint.main(project) == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "old", "new", "fault"),
    [
        ("localmed/site/site.py", "def say", "from localmed.site.other import x\ndef say", "import cycle"),
        ("localmed/site/site.py", "def say", "import numpy, torch\ndef say", "imports torch, which belongs in models"),
        ("localmed/domain/errors.py", "class", "import numpy\nclass", "values need the standard library only"),
        ("localmed/site/site.py", '"a.b"', '"a.none"', "a.none has no words"),
        ("localmed/site/site.py", 'name="x"', 'named="x"', "a.b is given"),
        ("localmed/site/site.py", '    raise Broken("a.c")\n', "", "a.c.what: used nowhere"),
        ("localmed/site/site.py", '"a.c"', 'f"a.{name}"', "a.c.what: used nowhere"),
        ("localmed/messages/zh.toml", "{name}", "{named}", "a.b: the languages have different parameters"),
        ("localmed/messages/zh.toml", 'd = "修好"\n', "", "a.d: in one language only"),
        ("localmed/site/site.py", '"a.c"', '"it broke"', "it broke has no words"),
        ("localmed/messages/en.toml", '"no"', '"no: run localmed repair"', "a.c.what: names a command"),
        ("localmed/site/site.py", "def say", "WAS = note.code == 'a.b'\ndef say", "branches on a message's code"),
        (
            "localmed/site/site.py",
            "def say",
            "WAS = note.code.startswith('a')\ndef say",
            "branches on a message's code",
        ),
        ("localmed/site/site.py", "def say", "PATH = generations.current\ndef say", "gives a folder without a lease"),
        ("localmed/site/site.py", "def say", "PATH = FOLDER / f'{7:04d}'\ndef say", "gives a folder without a lease"),
        (
            "localmed/site/site.py",
            "def say",
            "from localmed.library.generations import lease, path_of\ndef say",
            "generations.path_of gives a folder without a lease",
        ),
        ("localmed/cli/one.py", "...", "return FILE.read_text()", "reads a file without a bound"),
        ("README.md", "  site/ ", "  sight/", "the tree lacks localmed/site/"),
        ("README.md", "  site/ ", "  sight/", "localmed/sight/ does not exist"),
        ("tests/test_one.py", "test_it", "test_other", "names test_one.py::test_it"),
    ],
)
def test_a_fault_is_found(
    project: Path, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, fault: str
) -> None:
    text = (project / file).read_text("utf-8")
    assert old in text
    (project / file).write_text(text.replace(old, new), "utf-8")
    assert lint.main(project) == 1
    assert fault in capsys.readouterr().out


def test_a_heavy_library_is_imported_where_it_is_needed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    models = project / "localmed" / "models"
    models.mkdir()
    (models / "one.py").write_text("def load():\n    import torch\n")
    (models / "two.py").write_text("import torch\n")
    lint.main(project)
    printed = capsys.readouterr().out
    assert "models/two.py: imports torch at the top" in printed
    assert "models/one.py" not in printed
