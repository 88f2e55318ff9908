"""``--help`` must be there at once: it loads none of the heavy libraries."""

from __future__ import annotations

import subprocess
import sys
import time

from localmed.cli.main import COMMANDS, main

HEAVY = ("torch", "lancedb", "tantivy", "pymupdf", "pyarrow", "numpy", "transformers", "tokenizers", "onnxruntime",
         "sentencex", "rich")  # fmt: skip
SECONDS = 1.5  # generous; the real figure is in tests/benchmarks/RESULTS.md

SCRIPT = f"""
import sys
from localmed.cli.main import main
for arguments in {[["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)]!r}:
    main.main(arguments, standalone_mode=False)
    loaded = sorted(set(sys.modules) & set({HEAVY!r}))
    assert not loaded, (arguments, loaded)
"""


def test_help_loads_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_overview_imports_nothing_but_itself() -> None:
    """Values, errors and words are as long to import as all else that ``--help`` does."""
    script = "import sys; from localmed.cli.main import main; main.main(['--help'], standalone_mode=False); "
    script += "print(*(name for name in sys.modules if name.startswith('localmed.')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert loaded == {"localmed.cli", "localmed.cli.main"}


def test_help_is_quick() -> None:
    took = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "localmed", "--help"], check=True, capture_output=True, timeout=60)
        took.append(time.perf_counter() - began)
    assert min(took) < SECONDS, took


def test_every_command_has_help() -> None:
    for name in COMMANDS:
        command = main.get_command(main.make_context("localmed", [name, "--help"], resilient_parsing=True), name)
        assert command is not None, name
        for subcommand in [command, *getattr(command, "commands", {}).values()]:
            assert subcommand.help, (name, subcommand.name)
            for option in subcommand.params:
                if option.param_type_name == "option":
                    assert getattr(option, "help", ""), (subcommand.name, option.name)
