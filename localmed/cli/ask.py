"""``localmed ask QUESTION``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from localmed.cli.common import (
    echo_wrapped,
    filter_options,
    json_option,
    opened,
    print_json,
    question_argument,
    wanted,
)
from localmed.cli.texts import texts, translated
from localmed.domain import Answer, AnswerStatus, Citation, Conflict, Evidence, Statement, Status


@click.command("ask")
@question_argument
@click.option(
    "--preset",
    metavar="NAME",
    help="Search in tiers: ebm, patient or one of the settings (default: ask.preset, else by priority).",
)
@click.option("--trace", is_flag=True, help="Show the steps and how long each took (on standard error).")
@filter_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, question: str, preset: str | None, trace: bool, as_json: bool, **filters: Any
) -> None:
    """Answer QUESTION from the library, or say that it cannot be answered and what was searched.

    Every sentence is a quotation with the number of its source. The first tier of collections that holds something
    helpful answers. QUESTION - reads the question from standard input, which keeps it out of the shell's history.
    """
    with opened(ctx) as app:
        answer = app.ask(question, wanted(**filters), preset=preset)
    if as_json:
        print_json(answer)
    else:
        show(answer)
    if trace:
        for step in answer.trace:
            detail = ", ".join(f"{name} {value}" for name, value in step.detail)
            click.echo(f"  {step.seconds * 1000:7.1f} ms  {step.name}: {detail}", err=True)


def show(answer: Answer) -> None:
    """Print an answer: label, sentences with their markers, possible conflicts, notes, sources."""
    labels = texts(answer.language)
    if answer.status is AnswerStatus.ABSTAINED:
        echo_wrapped(labels["abstained"], bold=True)
        echo_wrapped(labels["searched"].format(names=", ".join(answer.searched) or labels["nothing_searched"]))
    else:
        echo_wrapped(labels["extractive"], bold=True)
        for statement in answer.statements:
            echo_wrapped(_line(statement, answer.language), "  - ", "    ")
    for conflict in answer.conflicts:
        _show_conflict(conflict, answer.language)
    for note in answer.notes:
        echo_wrapped(translated(note, answer.language), "* ", "  ")
    if answer.evidence:
        click.secho(f"\n{labels['sources']}", bold=True)
        for each in answer.evidence:
            _show_source(each, _cited(answer, each), labels)
        click.echo(labels["show"])


def _show_conflict(conflict: Conflict, language: str) -> None:
    """The possible conflict, and under it what the other source says."""
    reason = translated(conflict.reason, language)
    echo_wrapped(texts(language)[f"conflict_{conflict.kind.value}"].format(reason=reason), "! ", "  ", bold=True)
    echo_wrapped(f"{conflict.theirs.quote} [{conflict.against}]", "    ", "    ")


def _line(statement: Statement, language: str) -> str:
    if statement.withheld:
        reason = statement.verdict.reason if statement.verdict else ""
        return texts(language)["withheld"].format(reason=translated(reason, language))
    return f"{statement.text} {''.join(f'[{citation.marker}]' for citation in statement.citations)}"


def _cited(answer: Answer, evidence: Evidence) -> list[Citation]:
    """The answer's citations of one source, in its order; then those of possible conflicts."""
    found = [each for statement in answer.statements for each in statement.citations]
    found += [conflict.theirs for conflict in answer.conflicts]
    return [each for each in found if each.marker == evidence.marker]


def _show_source(evidence: Evidence, citations: list[Citation], labels: dict[str, str]) -> None:
    passage = evidence.passage
    parts = [evidence.document_title]
    parts.append(labels["edition"].format(edition=evidence.edition) if evidence.edition else labels["no_date"])
    parts += [labels["page"].format(page=page) for page in sorted({each.page for each in citations if each.page})]
    parts.append(" > ".join(heading for heading in passage.headings if heading != evidence.document_title))
    if evidence.status is not Status.CURRENT:
        parts.append(labels[evidence.status.value])
    echo_wrapped(", ".join(part for part in parts if part), f"  [{evidence.marker}] ", "      ")
    spans = " ".join(dict.fromkeys(f"--span {each.start}-{each.end}" for each in citations[:1]))
    echo_wrapped(f"{passage.id[:12]} {spans}  {Path(evidence.source).name}", "      ", "      ")
