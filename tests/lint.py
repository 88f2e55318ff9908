"""Checks of the source that no linter knows: ``python -m tests.lint`` (``make lint``) prints each fault and fails.

Import arrows between rooms are contracts of import-linter in ``pyproject.toml``. Here: import cycles between modules,
heavy libraries in one room only, message codes in both languages, branches on a message's code, generations that are
read without a lease, files read without a bound, the README's tree, and tests named by other files.
"""

from __future__ import annotations

import ast
import errno
import re
import string
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

# Libraries that are slow to load or must not be loaded everywhere, by the rooms that may import them.
ROOMS = {
    "models lab": "torch transformers tokenizers safetensors gguf",
    "lab": "peft trl datasets scipy ir_measures matplotlib krippendorff",
    "models": "sentence_transformers FlagEmbedding llama_cpp spacy scispacy",
    "models ingest": "onnxruntime",
    "library": "lancedb pyarrow tantivy",
    "ingest": "docx pptx openpyxl lxml ray rapidocr cv2 pymupdf",
    "presentation web": "jinja2",
    "web": "fastapi starlette uvicorn",
    "desktop": "webview",
    "people": "argon2 ldap3 joserfc authlib",
    "people upkeep library": "cryptography",
}
HEAVY = {name: rooms for rooms, names in ROOMS.items() for name in names.split()}
AT_START = {"tantivy", "fastapi", "starlette", "pymupdf"}  # imported at the top of a module; all others in functions
VALUES = ("domain",)  # these need the standard library only
MAKERS = {"message": 0, "say": 0, "text": 0, "confirm": 0, "ok": 1, "warning": 1, "problem": 1}  # where the code stands
NOT_PARAMETERS = {"err", "colour", "bold"}
UNLEASED = {"current", "path_of"}  # of ``library.generations``: a folder that a prune may remove while it is read
HOLDERS = {"library/generations.py", "library/pruning.py"}  # they make the leases, or hold the writer lock
# What is decided is a class or an enumeration. Still decided by the code of a note: what a replay leaves out, and pages
# that OCR failed on. A review's entries have codes of their own.
BY_CODE = {"workflows/recording.py", "ingest/reading.py", "lab/review_sheets.py"}
TYPES = {"bool", "int", "float", "str"}  # named in a message about a setting
NOT_USED_BY_NAME = {"literal"}  # words of an older version, shown as they are
ENDS = ("", ".what", ".command")  # an error that names a command does so in ``.command``: pages show another text
COMMAND = re.compile(r"(?:[:：] ?|`|[Rr]un )localmed (?!serve\b)[a-z]|pip install|[Ii]nstall localmed")


class Source:
    """The files of a project: its package ``localmed``, its README and its tests."""

    def __init__(self, root: Path) -> None:
        self.root, self.package = root, root / "localmed"

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        """Every module by its path within the package."""
        paths = sorted(self.package.rglob("*.py"))
        return {path.relative_to(self.package).as_posix(): ast.parse(path.read_text("utf-8")) for path in paths}

    @cached_property
    def templates(self) -> str:
        return "".join(path.read_text("utf-8") for path in sorted(self.package.rglob("templates/*.html")))

    @cached_property
    def data_words(self) -> set[str]:
        """The words of the package's tables, which are keys of messages too."""
        paths = (path for path in self.package.rglob("*.toml") if path.parent.name != "messages")
        return set(chain.from_iterable(re.findall(r"(?m)^[\w-]+|\w+", path.read_text("utf-8")) for path in paths))

    def words(self, language: str) -> dict[str, str]:
        """Every template of ``language`` by its code."""
        path = self.package / "messages" / f"{language}.toml"
        return dict(_flat("", tomllib.loads(path.read_text("utf-8"))))


def _flat(prefix: str, table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, entry in table.items():
        if isinstance(entry, str):
            yield prefix + name, entry
        else:
            yield from _flat(f"{prefix}{name}.", entry)


def imports(body: list[ast.stmt], lazy: bool = True) -> Iterator[str]:
    """What statements import, with those inside functions if ``lazy``; imports for types only are left out."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            yield from imports(node.orelse, lazy)
        elif lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                yield from imports(getattr(node, part, []), lazy)


def cycles(source: Source) -> Iterator[str]:
    """Modules that import each other, over whatever way."""
    names = {f"localmed.{path[:-3].replace('/', '.')}".removesuffix(".__init__"): path for path in source.modules}
    graph = {
        name: {part for one in imports(source.modules[path].body)
               for part in ([one] if one in names else [one.rpartition(".")[0]]) if part in names} - {name}
        for name, path in names.items()
    }  # fmt: skip
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> Iterator[str]:
        if name in trail:
            yield "import cycle: " + " -> ".join((*trail[trail.index(name) :], name))
        elif name not in done:
            for other in sorted(graph[name]):
                yield from visit(other, (*trail, name))
            done.add(name)

    return chain.from_iterable(visit(name, ()) for name in graph)


def libraries(source: Source) -> Iterator[str]:
    """Heavy libraries outside their room or at the top of a module, and others than Python's own under the values."""
    for path, tree in source.modules.items():
        room = path.split("/")[0].removesuffix(".py")
        early = {name.split(".")[0] for name in imports(tree.body, lazy=False)}
        for name in sorted({name.split(".")[0] for name in imports(tree.body)}):
            if name in HEAVY and room not in HEAVY[name].split():
                yield f"localmed/{path}: imports {name}, which belongs in {HEAVY[name]}"
            if name in HEAVY.keys() - AT_START and name in early:
                yield f"localmed/{path}: imports {name} at the top; import it in the function that needs it"
            if path.startswith(VALUES) and name not in sys.stdlib_module_names | {"localmed"}:
                yield f"localmed/{path}: imports {name}; values need the standard library only"


def messages(source: Source) -> Iterator[str]:
    """Codes in one language only, with different parameters, never used, unknown, or given other parameters."""
    english, chinese = source.words("en"), source.words("zh")
    yield from (f"message {code}: in one language only" for code in sorted(english.keys() ^ chinese.keys()))
    fields = {code: _fields(english, code) for code in english}
    for code in sorted(english.keys() & chinese.keys()):
        if fields[code] != _fields(chinese, code):
            yield f"message {code}: the languages have different parameters"
    used = set(re.findall(r'"([a-z_.]+)"', source.templates))
    used |= {one.removeprefix("@") for one in english.values() if one.startswith("@")}
    begun = set(re.findall(r'"([a-z_.]+\.)" ~', source.templates))
    open_ends: set[str] = set()  # f"record.{kind}_{entry}" uses every code under "record."
    for node in chain.from_iterable(map(ast.walk, source.modules.values())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            used.add(node.value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            used.add(node.target.id)  # f"badge.wrong_{field}"
        elif isinstance(node, ast.JoinedStr) and isinstance(node.values[0], ast.Constant):
            whole = sum(isinstance(part, ast.FormattedValue) for part in node.values) > 1
            (open_ends if whole else begun).add(str(node.values[0].value))
    # f"badge.{value}" uses "badge.green" only if "green" stands somewhere.
    prefixes = sorted((one for one in begun if "." in one), key=len, reverse=True)
    rests = {re.sub(r"\W", "_", one) for one in used | source.data_words | set(errno.errorcode.values()) | TYPES}
    for code in sorted(english.keys() - NOT_USED_BY_NAME):
        plain = re.sub(r"\.(what|command)$", "", code)
        rest = next((plain.removeprefix(one) for one in prefixes if plain.startswith(one)), "")
        rest = re.sub(r"\W", "_", re.sub(r"_\d$", "", rest))
        sayable = rest in rests or plain.startswith(tuple(one for one in open_ends if "." in one))
        if not {code, plain} & used and not sayable:
            yield f"message {code}: used nowhere"
    shown = set(re.findall(r'text\("([a-z_.]+)"[,)]', source.templates))
    yield from (f"a template: {code} has no words" for code in sorted(shown) if code not in english)
    for place, code, given, raised in _made(source):
        known = [f"{code}{end}" for end in ENDS if f"{code}{end}" in english]
        if not known:
            yield f"{place}: {code} has no words"
        elif raised and any(COMMAND.search(words[known[0]]) for words in (english, chinese)):
            yield f"message {known[0]}: names a command; do so in {code}.command"
        elif given is not None and given != set().union(*(fields[one] for one in known)):
            yield f"{place}: {code} is given {sorted(given)}, which is not what its words take"


def _fields(words: Mapping[str, str], code: str) -> set[str]:
    entry = words[code]
    entry = words.get(entry.removeprefix("@"), "") if entry.startswith("@") else entry
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in string.Formatter().parse(entry) if name} - NOT_PARAMETERS


def _made(source: Source) -> Iterator[tuple[str, str, set[str] | None, bool]]:
    """Messages made from a written code: (place, code, parameters, error); no parameters if not all are written."""
    errors = {node.name for node in source.modules["domain/errors.py"].body if isinstance(node, ast.ClassDef)}
    for path, tree in source.modules.items():
        for node in ast.walk(tree):
            function = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if isinstance(node, ast.Call) and function in errors | MAKERS.keys():
                written = node.args[MAKERS.get(function, 0) :][:1]
                either = [[one.body, one.orelse] if isinstance(one, ast.IfExp) else [one] for one in written]
                given = {keyword.arg for keyword in node.keywords if keyword.arg} - NOT_PARAMETERS
                for one in chain.from_iterable(either):
                    if not isinstance(one, ast.Constant) or not isinstance(one.value, str):
                        continue
                    if function in errors or re.fullmatch(r"[a-z_]+(\.\w+)+", one.value):
                        whole = all(keyword.arg for keyword in node.keywords)
                        yield f"localmed/{path}:{node.lineno}", one.value, given if whole else None, function in errors


def outcomes(source: Source) -> Iterator[str]:
    """Branches on a message's code."""
    for path, tree in source.modules.items():
        for node in ast.walk(tree) if path not in BY_CODE else ():
            compared = isinstance(node, ast.Compare) and ast.unparse(node.left).endswith(".code")
            begins = isinstance(node, ast.Call) and ast.unparse(node.func).endswith(".code.startswith")
            if isinstance(node, ast.expr) and (compared or begins):
                yield f"localmed/{path}:{node.lineno}: branches on a message's code; raise or return a class of its own"


def leases(source: Source) -> Iterator[str]:
    """Paths of a generation that come without a lease."""
    for path, tree in source.modules.items():
        for node in ast.walk(tree) if path not in HOLDERS else ():
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "generations":
                taken = {node.attr}
            elif isinstance(node, ast.ImportFrom) and node.module == "localmed.library.generations":
                taken = {alias.name for alias in node.names}
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and ":04d}" in ast.unparse(node.right):
                taken = {"path_of"}  # the same by hand
            else:
                continue
            for one in sorted(taken & UNLEASED):
                yield f"localmed/{path}:{node.lineno}: generations.{one} gives a folder without a lease"


def unbounded(source: Source) -> Iterator[str]:
    """Files that a command reads without a bound; the steps of the proof of egress read their own."""
    for path, tree in source.modules.items():
        for node in ast.walk(tree) if path.startswith("cli/") and path != "cli/egress_steps.py" else ():
            if isinstance(node, ast.Attribute) and node.attr in ("read_text", "read_bytes"):
                yield f"localmed/{path}:{node.lineno}: reads a file without a bound; use process/files.py"


def readme(source: Source) -> Iterator[str]:
    """Paths in the README's tree that do not exist, and rooms of the package that it does not show."""
    block = (source.root / "README.md").read_text("utf-8").split("## Where things are", 1)[1].split("```")[1]
    shown: set[str] = set()
    trail: list[str] = []
    for indent, names in re.findall(r"^( *)([\w./-]+(?:, [\w./-]+)*)", block, re.MULTILINE):
        trail = trail[: len(indent) // 2]
        shown |= {"".join([*trail, name]) for name in names.split(", ")}
        trail.append(names)
    yield from (f"README.md: {path} does not exist" for path in sorted(shown) if not (source.root / path).exists())
    rooms = {f"localmed/{path.split('/')[0]}/" for path in source.modules if "/" in path}
    yield from (f"README.md: the tree lacks {room}" for room in sorted(rooms - shown))


def named_tests(source: Source) -> Iterator[str]:
    """Tests that the hazard log or a benchmark names, and that are not there."""
    for file, prefix in (("localmed/upkeep/hazards.toml", ""), ("tests/benchmarks/reproductions.py", "tests/")):
        text = (source.root / file).read_text("utf-8")
        for path, name in re.findall(r'"([\w/]+\.py)(?:::(\w+))?"', text):
            test = source.root / prefix / path
            if not test.exists() or (name and f"def {name}(" not in test.read_text("utf-8")):
                yield f"{file}: names {path}::{name}, which is not there"


def main(root: Path) -> int:
    """Print every fault; 1 if there is one."""
    source = Source(root)
    faults = [
        fault
        for check in (cycles, libraries, messages, outcomes, leases, unbounded, readme, named_tests)
        for fault in check(source)
    ]
    print(*faults, *([] if faults else ["lint: no faults"]), sep="\n")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1]))
