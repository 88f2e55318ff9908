"""Prose is made in ``messages``, ``presentation`` and prompts only: no sentence of ours elsewhere, in no language.

Looked for are strings with several words in a row, or several Chinese characters, that are neither docstrings, regular
expressions nor SQL, nor for developers (what a ``ValueError`` says, a name of a format). What remains stands in
``ALLOWED`` with its reason.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "localmed"

# Where prose may be made.
HOMES = ("messages", "presentation", "clinical", "training")
PROMPTS = (
    "agents/appraisal.py", "agents/asking.py", "agents/chat.py", "agents/chat_entailment.py", "agents/decomposing.py",
    "agents/evidence.py",  "agents/guidance.py", "agents/judging.py", "agents/linking.py",
    "agents/multiple_choice.py", "agents/orders.py",
    "agents/planning.py", "agents/practice.py", "agents/safety.py",
)  # fmt: skip
ALLOWED = {
    # file: why its strings are no prose of ours; a whole file only where it is data of one kind
    "cli/evaluate_links.py": "a status, which files of results hold",
    "cli/egress_steps.py": "a document and a question of the proof's own",
    "confined.py": "a line for the process that a child of a child tells",
    "evaluation/medquad.py": "the name of a set and the form of a line, as files of results hold them",
    "evaluation/plot.py": "names of fonts",
    "evaluation/stance.py": "the name of a judge, which files of results hold",
    "ingest/readers/pdf/text.py": "characters that fonts show for others",
    "language.py": "characters that most sentences hold",
    "library/catalogue.py": "SQL",
    "library/graph.py": "SQL",
    "library/state_migrations.py": "SQL",
    "models/fact_checker.py": "templates that networks were trained to read, word for word",
    "models/host/server.py": "a line of the host's log",
    "operations/accounts.py": "SQL",
    "operations/audit.py": "the outcome of a log's first entry, stored and compared with",
    "web/protection.py": "policies for browsers",
}
WORDS, HAN = 3, 4  # in a row: from that many on it is a phrase
_RUN = re.compile(r"(?:(?:^|(?<=[\s\"'(]))[A-Za-z][A-Za-z'’-]*[,;:.]?(?:\s+|$)|\{\w*[^}]*\}\s*|\d+\s+)+")
_WORD = re.compile(r"(?<!\{)\b[A-Za-z][A-Za-z'’-]*\b(?![^{]*\})")
_HAN = re.compile(rf"[\u4e00-\u9fff]{{{HAN},}}")
_SQL = re.compile(r"^\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|PRAGMA|BEGIN|ALTER|DROP|WITH|ATTACH|VACUUM|REPLACE)\b")
_PATTERN = re.compile(r"\\[bswdSWD.+*?]|\(\?|\[\^|\|\w+\||\.\*|\]\*|\]\+|\)\?|\{\d,")
# The help of commands is English, as click's own words in it are, and is read before settings could choose a language:
# exempt are docstrings and what is passed under these names.
_HELP = ("help", "short_help", "epilog", "metavar")
_PRINTING = ("echo", "echo_wrapped", "print_table", "click.echo", "click.secho", "TextColumn", "bar.add_task")
# A word that is no name, unit, option or field of a format.
_PRINTED = re.compile(r"(?!localmed\b|ms\b|Link-Eval\b)(?<![\w{.-])[A-Za-z]{2,}|[\u4e00-\u9fff]")
_FOR_DEVELOPERS = ("ValueError", "TypeError", "AssertionError", "KeyError", "RuntimeError", "AttributeError")


def modules() -> list[Path]:
    return sorted(
        path for path in PACKAGE.rglob("*.py") if not str(path.relative_to(PACKAGE)).startswith((*HOMES, *PROMPTS))
    )


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings of a module that are no docstrings, with their lines; of f-strings the parts that are written."""
    passed = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        call = node.exc if isinstance(node, ast.Raise) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in _FOR_DEVELOPERS:
            passed |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("re.compile", "re.search", "re.findall"):
            passed |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.keyword) and node.arg in _HELP:
            passed |= {id(inner) for inner in ast.walk(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node.lineno, node.value


def prose(text: str) -> bool:
    """Whether ``text`` is for people to read, as far as its form tells."""
    if _SQL.match(text) or _PATTERN.search(text):
        return False
    return any(len(_WORD.findall(run)) >= WORDS for run in _RUN.findall(text)) or bool(_HAN.search(text))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_prose_is_made(path: Path) -> None:
    phrases = [f"{line}: {text}" for line, text in literals(ast.parse(path.read_text("utf-8"))) if prose(text)]
    name = str(path.relative_to(PACKAGE))
    if name in ALLOWED:
        assert phrases, f"{name} is free of prose: take it from the list"
    else:
        assert not phrases


def printed(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The words of titles, columns and lines that a command prints without looking them up, with their lines."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in _PRINTING:
            for part in (part for argument in call.args for part in _written(argument)):
                if _PRINTED.search(str(part.value)):
                    yield part.lineno, str(part.value)


def _written(argument: ast.expr) -> Iterator[ast.Constant]:
    """The strings that are printed themselves: of an argument and its f-strings and tuples, not of calls in it."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument
    elif isinstance(argument, ast.JoinedStr | ast.Tuple | ast.List):
        for inner in argument.values if isinstance(argument, ast.JoinedStr) else argument.elts:
            yield from _written(inner)


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("cli/*.py")), ids=lambda path: path.name)
def test_commands_look_up_what_they_print(path: Path) -> None:
    assert not list(printed(ast.parse(path.read_text("utf-8"))))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('print_table("Claims by vote", ("class", text("column.of")), rows)', ["Claims by vote", "class"]),
        ('echo(f"{seconds} seconds")', [" seconds"]),
        ('echo("已完成")', ["已完成"]),
        ('echo(f"localmed: {words} --span {start}-{end} {took} ms", err=True)', []),
    ],
)
def test_what_is_printed_is_recognised(code: str, expected: list[str]) -> None:
    assert [part for _, part in printed(ast.parse(code))] == expected


def joins(tree: ast.Module) -> Iterator[int]:
    """The lines where texts are joined by a comma or a semicolon of one language."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "join":
            separator = call.func.value
            if isinstance(separator, ast.Constant) and str(separator.value).strip() in (",", ";", "、", "，", "；"):
                yield call.lineno


@pytest.mark.parametrize(
    "path",
    [path for top in ("cli", "presentation") for path in sorted(PACKAGE.glob(f"{top}/*.py"))],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_texts_are_joined_as_the_language_joins_them(path: Path) -> None:
    """By ``messages.joined``, but for rows of tables as they were read and for what files of results hold."""
    lines = list(joins(ast.parse(path.read_text("utf-8"))))
    assert bool(lines) is (path.name in ("tables.py", "evaluate_badges.py")), lines


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The order has no words", True),
        ("Source {marker} was to be reviewed by {date}", True),
        (" was to be ", True),
        ("资料库中没有", True),
        ("localmed answer 2", False),
        ("SELECT id FROM documents WHERE id = ?", False),
        ("workflow.no_words", False),
        ("not enough", False),
        (r"(?:not|never) \w+ given", False),
    ],
)
def test_prose_is_recognised(text: str, expected: bool) -> None:
    assert prose(text) is expected
