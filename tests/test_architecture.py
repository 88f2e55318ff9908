"""The house rules that can be read from the source: import arrows, one adapter a heavy library, sizes, drawn trees."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from localmed import errors
from localmed.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "localmed"
README = ROOT / "README.md"

# From the top down: a part may import from its own level's same part and from any level below, never sideways or up.
LEVELS = (
    ("__main__",),
    ("cli", "web", "desktop"),
    ("presentation", "session"),
    ("site", "workspace"),
    ("workflows", "operations", "evaluation", "training"),
    ("agents", "verification"),
    ("retrieval", "ingest", "models"),
    ("library",),
    ("ports", "config", "language", "confined", "children", "environment", "files", "web_settings", "night_settings"),
    ("hooks", "messages", "clinical", "domain", "errors", "bounds", "once", "interrupts", "__init__"),
)
RANK = {part: rank for rank, level in enumerate(LEVELS) for part in level}

# Imports within a level, and what may not be imported although it lies below.
ALLOWED = {
    ("language", "config"),
    ("ports", "config"),
    ("children", "confined"),  # what a child is asked of itself
    ("children", "environment"),
    ("config", "language"),
    ("config", "files"),  # the settings are a file, bounded as every other
    ("bounds", "errors"),
    ("errors", "domain"),  # an error is a message
    ("errors", "messages"),  # its text for developers, rendered when asked for
    ("messages", "domain"),
    ("domain", "messages"),  # the codec of values, which no other value imports
    ("clinical", "domain"),
    ("clinical", "language"),
    ("clinical", "errors"),
    ("site", "workspace"),
    ("hooks", "domain"),
    ("hooks", "interrupts"),
    ("hooks", "errors"),
    ("agents", "verification"),
    ("training", "evaluation"),  # rows that outlive the process, question sets, tests
    ("operations", "evaluation"),  # a review in the window is drawn and counted as one without it
    ("cli", "web"),  # `localmed serve` starts it
    ("cli", "desktop"),
    ("config", "web_settings"),
    ("config", "night_settings"),
}
FORBIDDEN = {
    ("agents", "ingest"), ("verification", "ingest"), ("workflows", "ingest"), ("evaluation", "ingest"),
    ("models", "library"),
    *((part, "models") for part in RANK if part not in ("site", "models")),
}  # fmt: skip

# What a command reads of its own arguments, which is no part of the library: an order, a patient's record.
READ_BY_COMMANDS = {"ingest.readers.encoding", "ingest.records"}
READS = {"presentation": {"presentation", "domain", "messages", "clinical"}}  # all that a part may import

HEAVY = {
    # library: (where it may be imported, whether only inside functions)
    "torch": (("models/*", "training/learning.py"), True),
    "safetensors": (("models/*", "training/exporting.py"), True),
    "tokenizers": (("models/*", "training/learning.py"), True),
    "transformers": (("models/*", "training/learning.py"), True),
    "trl": (("training/learning.py",), True),
    "peft": (("training/learning.py",), True),
    "datasets": (("training/learning.py",), True),
    "gguf": (("training/exporting.py",), True),
    "lancedb": (("library/dense.py",), True),
    "pyarrow": (("library/dense.py",), True),
    "spacy": (("models/abbreviations.py",), True),
    "scispacy": (("models/abbreviations.py",), True),
    "tantivy": (("library/tantivy_index.py", "library/lexical.py", "library/sparse.py"), False),
    "FlagEmbedding": (("models/flag_embedding.py",), True),
    "sentence_transformers": (("models/sentence_encoder.py",), True),
    "llama_cpp": (("models/llama/engine.py", "models/llama/child.py"), True),  # in the child, which the parent names
    "ir_measures": (("evaluation/measures.py",), True),
    "fhir": (("ingest/records/fhir.py",), True),
    "docx": (("ingest/readers/docx.py",), True),
    "pptx": (("ingest/readers/pptx.py",), True),
    "openpyxl": (("ingest/readers/xlsx.py",), True),
    "jinja2": (("presentation/pages.py",), True),
    "fastapi": (("web/*.py",), False),
    "starlette": (("web/*.py",), False),
    "uvicorn": (("web/serving.py",), True),
    "webview": (("desktop.py",), True),
    "argon2": (("operations/accounts.py",), True),
    "ldap3": (("operations/directory.py",), True),
    "joserfc": (("operations/oidc.py",), True),
    "cryptography": (("operations/sealing.py", "operations/signing.py"), True),
    "tuf": (("operations/signing.py", "operations/trust.py"), True),
    "securesystemslib": (("operations/signing.py",), True),
    "lxml": (("ingest/readers/docx.py", "ingest/readers/pptx.py", "ingest/readers/html.py"), True),
    "ray": (("ingest/cluster.py",), True),
    "scipy": (("evaluation/measures.py",), True),
    "krippendorff": (("evaluation/agreement.py",), True),
    "rapidocr": (("ingest/ocr/child.py",), True),
    "cv2": (("ingest/ocr/child.py",), True),
    "onnxruntime": ((), True),  # rapidocr imports it
    "matplotlib": (("evaluation/plot.py",), True),
    # Run in child processes only (see CHILDREN), which is what keeps it out of everything else.
    "pymupdf": (("ingest/readers/pdf/*.py", "ingest/render.py"), False),
}
# Modules that only a child process imports at its start; everybody else names them in a command line or imports lazily.
CHILDREN = ("ingest.render", "ingest.readers.pdf", "models.llama.child")


def files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def module(path: Path) -> str:
    """``localmed/ingest/readers/__init__.py`` -> ``ingest.readers``."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def part(name: str) -> str:
    return name.split(".")[0]


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def imports(path: Path, lazy: bool = True) -> Iterator[str]:
    """The full names that ``path`` imports, types only excluded; without those inside functions unless ``lazy``."""
    for node in _statements(tree(path).body, lazy):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in {path}"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _statements(body: list[ast.stmt], lazy: bool) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from _statements(node.orelse, lazy)
        elif lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
            for name in ("body", "orelse", "finalbody"):
                yield from _statements(getattr(node, name, []), lazy)
            for handler in getattr(node, "handlers", []):
                yield from _statements(handler.body, lazy)


NAMES = frozenset(module(path) for path in files())


def own(path: Path, lazy: bool = True) -> set[str]:
    """The modules of localmed that ``path`` imports."""
    modules = set()
    for name in imports(path, lazy):
        if name.split(".")[0] == "localmed":
            inner = name.removeprefix("localmed").removeprefix(".")
            modules.add(inner if inner in NAMES else inner.rpartition(".")[0] or "__init__")
    return modules


def test_every_part_has_a_level() -> None:
    assert {part(module(path)) or "__init__" for path in files()} <= set(RANK)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_arrows_run_one_way(path: Path) -> None:
    importer = part(module(path)) or "__init__"
    for name in own(path):
        imported = part(name) or "__init__"
        if importer == imported or (importer, imported) in ALLOWED:
            continue
        assert imported in READS.get(importer, {imported}), f"{importer} imports {imported}"
        assert RANK[importer] < RANK[imported], f"{importer} imports {imported}"
        assert (importer, imported) not in FORBIDDEN, f"{importer} imports {imported}"


def test_no_import_cycles() -> None:
    graph = {module(path): own(path) - {module(path)} for path in files()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail, name))
        if name not in done:
            for other in sorted(graph.get(name, ())):
                visit(other, (*trail, name))
            done.add(name)

    for name in sorted(graph):
        visit(name, ())


@pytest.mark.parametrize("library", HEAVY)
def test_a_heavy_library_has_one_home(library: str) -> None:
    homes, lazily = HEAVY[library]
    for path in files():
        at_home = any(path.relative_to(PACKAGE).match(home) for home in homes)
        if library in {name.split(".")[0] for name in imports(path)}:
            assert at_home, f"{path.relative_to(ROOT)} imports {library}"
        if lazily:
            assert library not in {name.split(".")[0] for name in imports(path, lazy=False)}, path


def test_what_runs_in_children_is_imported_by_nobody_at_start() -> None:
    for path in files():
        if not module(path).startswith(CHILDREN):
            loaded = {name for name in own(path, lazy=False) if name.startswith(CHILDREN)}
            assert not loaded, f"{module(path)} imports {loaded}"


def test_the_values_need_the_standard_library_only() -> None:
    for path in (PACKAGE / "errors.py", *(PACKAGE / "domain").glob("*.py")):
        for imported in imports(path):
            ours = imported.startswith(("localmed.domain.", "localmed.messages."))
            assert ours or imported.split(".")[0] in sys.stdlib_module_names, imported


@pytest.mark.parametrize("window", ["cli", "web"])
def test_a_window_touches_no_library(window: str) -> None:
    """It reaches indexes, catalogues, ledgers and imports through a session alone."""
    for path in (PACKAGE / window).glob("*.py"):
        reached = {name for name in own(path) if part(name) in ("library", "ingest")} - READ_BY_COMMANDS
        assert not reached, f"{path.name} imports {reached}"


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_sizes_and_names(path: Path) -> None:
    assert path.stem not in ("utils", "util", "helpers", "misc")
    assert ast.get_docstring(tree(path)) or not path.read_text().strip(), "no docstring"
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno <= 60, node.name


def test_there_is_one_way_to_print() -> None:
    """Through ``echo``, which takes out what a terminal would obey; the others neutralise what they print."""
    for path in sorted((PACKAGE / "cli").glob("*.py")):
        if path.name not in ("common.py", "main.py", "speaking.py"):
            names = {ast.unparse(node.func) for node in ast.walk(tree(path)) if isinstance(node, ast.Call)}
            assert not names & {"click.echo", "click.secho", "print"}, path.name


# --- what is drawn agrees with what is -----------------------------------------------------------------------


def drawn_errors() -> dict[str, str]:
    """The error tree of the docstring: name -> parent."""
    parents, trail = {}, [(-1, "LocalmedError")]
    for line in (errors.__doc__ or "").splitlines():
        entry = re.match(r"    ([|`\- ]*)([A-Z]\w+)", line)
        if entry:
            depth = len(entry[1])
            trail = [level for level in trail if level[0] < depth]
            parents[entry[2]] = trail[-1][1]
            trail.append((depth, entry[2]))
    return parents


def test_the_error_tree_is_drawn_as_it_is() -> None:
    classes = {
        name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)
    }
    actual = {name: kind.__bases__[0].__name__ for name, kind in classes.items()}
    assert drawn_errors() | {"LocalmedError": "Exception"} == actual


def test_the_exit_codes_are_drawn_as_they_are() -> None:
    for line in (errors.__doc__ or "").splitlines():
        if entry := re.match(r"    \S*\s*(?:-- )?([A-Z]\w+) +(\d)\b", line):
            assert getattr(errors, entry[1]).exit_code == int(entry[2]), entry[1]


def readme_tree() -> dict[str, str]:
    """The README's tree: path -> its line."""
    text = README.read_text("utf-8")
    block = text.split("## Where things are", 1)[1].split("```")[1]
    lines: dict[str, str] = {}
    trail: list[tuple[int, str]] = []
    for line in block.splitlines()[1:]:
        entry = re.match(r"([\s│├└─|`-]*)(\.?[\w.][\w./-]*)", line)
        if not entry:
            continue
        depth = len(entry[1])
        trail = [level for level in trail if level[0] < depth]
        path = "/".join([*(name.rstrip("/") for _, name in trail), entry[2].rstrip("/")])
        lines[path] = line
        if entry[2].endswith("/"):
            trail.append((depth, entry[2]))
    return lines


def test_the_readme_tree_names_what_there_is() -> None:
    listed = readme_tree()
    assert listed
    missing = [path for path in listed if not (ROOT / path).exists()]
    assert not missing


def test_the_readme_tree_lists_every_room() -> None:
    listed = set(readme_tree())
    folders = {str(path.parent.relative_to(ROOT)) for path in files() if path.parent != PACKAGE}
    modules = {str(path.relative_to(ROOT)) for path in PACKAGE.glob("*.py") if not path.name.startswith("__")}
    assert not (folders | modules) - listed


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_in_the_readme(name: str) -> None:
    assert f"localmed {name}" in README.read_text("utf-8")
