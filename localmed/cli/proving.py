"""``localmed doctor --egress FILE``: the proof that nothing leaves, as lines, JSON and a page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from localmed import files
from localmed.cli.common import echo, print_json, work_shown
from localmed.cli.common import plain as as_plain
from localmed.cli.speaking import language, say, text
from localmed.errors import LibraryError

if TYPE_CHECKING:
    from localmed.operations.egress import Proof


def run(file: Path, as_json: bool) -> None:
    """Prove, write the page to ``file`` and its values beside it (``.json``); exit code 5 unless the proof holds."""
    import json

    from localmed.operations import egress

    values_file = file.with_suffix(".json")
    for path in (file, values_file):
        files.new_name(path)
    with work_shown(not as_json) as hooks:
        proof = egress.prove(hooks)
    values = as_plain(proof) | {"holds": proof.holds, "beyond": proof.beyond}
    files.write_new(file, page(proof).encode(), 0o644)
    files.write_new(values_file, json.dumps(values, ensure_ascii=False, indent=1).encode(), 0o644)
    if as_json:
        print_json(values)
    else:
        _tell(proof, file)
    if not proof.holds:
        sys.exit(LibraryError.exit_code)


def _tell(proof: Proof, file: Path) -> None:
    for step in proof.steps:
        calls = sum(count for _, count in step.calls)
        say("egress.step", step=text(f"egress.name_{step.name}"), calls=calls, beyond=step.beyond, code=step.exit_code)
    echo(_outcome(proof), bold=True)
    say("egress.written", file=str(file))


def _outcome(proof: Proof) -> str:
    if proof.holds:
        return text("egress.holds")
    return text("egress.broken", count=proof.beyond) if proof.beyond else text("egress.not_run")


def page(proof: Proof) -> str:
    """The report that the security office keeps."""
    from localmed.presentation.report import Table, report

    names = [text(f"egress.column_{name}") for name in ("step", "exit", "seconds", "processes", "calls", "beyond")]
    steps = [
        (text(f"egress.name_{step.name}"), step.exit_code, step.seconds, step.processes,
         sum(count for _, count in step.calls), step.beyond)
        for step in proof.steps
    ]  # fmt: skip
    columns = [text(f"egress.column_{name}") for name in ("call", "family", "address", "port", "times", "beyond")]
    tables = [Table(text("egress.steps"), names, steps)]
    for step in proof.steps:
        rows = [
            (call.name, call.family or "-", call.address or "-", call.port or "-", count,
             text("egress.yes") if call.beyond else text("egress.no"))
            for call, count in step.calls
        ]  # fmt: skip
        tables.append(Table(text("egress.calls_of", step=text(f"egress.name_{step.name}")), columns, rows))
    paragraphs = [
        text("egress.how"),
        text("egress.limits"),
        text("egress.made", created=proof.created, version=proof.version, kernel=proof.kernel, strace=proof.strace),
    ]
    return report(language(), text("egress.title"), _outcome(proof), paragraphs, tables)
