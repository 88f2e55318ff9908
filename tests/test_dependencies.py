"""What pyproject.toml pins is what is installed, and it imports."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest

PYPROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
MODULES = {  # where the module is not called as the distribution
    "argon2-cffi": "argon2",
    "axe-playwright-python": "axe_playwright_python",
    "charset-normalizer": "charset_normalizer",
    "cyclonedx-python-lib": "cyclonedx",
    "markdown-it-py": "markdown_it",
    "opencv-python-headless": "cv2",
    "pyspellchecker": "spellchecker",
    "python-docx": "docx",
    "python-pptx": "pptx",
    "pywebview": "webview",
    "pytest-xdist": "xdist",
    "llama-cpp-python": "llama_cpp",
    "sentence-transformers": "sentence_transformers",
    "import-linter": "importlinter",
    "pymupdf-layout": "pymupdf.layout",
    "pytest-timeout": "pytest_timeout",
}
INSTALLED_BY_TESTS = ("", "dev", "torch")  # what `make test` installs; the CI run installs every extra but desktop


def pins() -> dict[str, tuple[str, str]]:
    """``(version or "", extra)`` of every distribution that is asked for."""
    pinned: dict[str, tuple[str, str]] = {}
    for extra, requirements in (*PROJECT["optional-dependencies"].items(), ("", PROJECT["dependencies"])):
        for requirement in requirements:
            name, version = re.match(r"([\w.-]+)(?:\[[\w,]+\])?(?:==([\w.+!]+))?", requirement).groups()  # type: ignore[union-attr]
            if name not in pinned or extra in INSTALLED_BY_TESTS:
                pinned[name] = version or "", extra
    return pinned


def installed() -> dict[str, str]:
    """The version of every distribution of ``pins`` that is installed."""
    versions = {}
    for name in pins():
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name).split("+")[0]
    return versions


def test_installed_as_pinned() -> None:
    versions = installed()
    missing = {name for name, (_, extra) in pins().items() if extra in INSTALLED_BY_TESTS} - versions.keys()
    assert not missing
    pinned = {name: pins()[name][0] or version for name, version in versions.items()}
    assert versions == pinned


IMPORTS = """
import importlib, sys, traceback, warnings
warnings.simplefilter("ignore")  # theirs
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception:
        print(name, traceback.format_exc())
"""


@pytest.mark.slow
def test_they_import() -> None:
    """In a process of their own: some change others on import (PyMuPDF Layout the table search), all keep memory."""
    modules = [MODULES.get(name, name.replace("-", "_")) for name in installed() if not name.startswith("types-")]
    child = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTS, *modules], capture_output=True, text=True, check=False, timeout=590
    )
    assert (child.returncode, child.stdout) == (0, ""), child.stderr


def test_main_dependencies_are_pinned() -> None:
    assert not [name for name in PROJECT["dependencies"] if "==" not in name]
