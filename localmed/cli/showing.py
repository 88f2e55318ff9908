"""Answers as they are printed, of whatever workflow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from localmed.cli.common import echo_wrapped
from localmed.cli.showing_badge import marked, show_badge
from localmed.cli.showing_explain import readable
from localmed.cli.texts import texts, translated
from localmed.cli.texts_verify import VERDICTS
from localmed.domain import Answer, AnswerStatus, Citation, Conflict, Evidence, Origin, Part, Statement, Status
from localmed.workflows.purposes import purpose


def show(answer: Answer) -> None:
    """Print an answer: label, sentences with their markers, parts, possible conflicts, notes, sources, purpose."""
    if answer.workflow == "explain":
        answer = readable(answer)
    labels = texts(answer.language)
    if answer.status is AnswerStatus.ABSTAINED and answer.workflow != "verify":  # whose parts say what was not found
        echo_wrapped(labels["abstained"], bold=True)
        echo_wrapped(labels["searched"].format(names=", ".join(answer.searched) or labels["nothing_searched"]))
    elif answer.statements:
        echo_wrapped(labels[label_of(answer)], bold=True)
        _show_statements(answer.statements, answer.language)
    show_badge(answer.verification, answer.language)
    for part in answer.parts:
        _show_part(part, answer.language)
    for conflict in answer.conflicts:
        _show_conflict(conflict, answer.language)
    for note in answer.notes:
        echo_wrapped(translated(note, answer.language), "* ", "  ")
    if answer.evidence:
        click.secho(f"\n{labels['sources']}", bold=True)
        for each in answer.evidence:
            _show_source(each, _cited(answer, each), labels)
        click.echo(labels["show"])
    echo_wrapped(purpose(answer.workflow, answer.language), "\n", "")


def _show_part(part: Part, language: str) -> None:
    """A part under its title: its facts, then its sentences."""
    click.echo()
    echo_wrapped(part.title, bold=True)
    for name, value in part.facts:
        echo_wrapped(f"{name}: {value}" if name else value, "  ", "  ")
    if part.statements:
        _show_statements(part.statements, language, verdicts=part.kind == "support")


def _show_statements(statements: Sequence[Statement], language: str, verdicts: bool = False) -> None:
    """One a line; with ``verdicts``, under each what its check came to."""
    for statement in statements:
        echo_wrapped(_line(statement, language), "  - ", "    ")
        if verdicts and statement.verdict:
            verdict = VERDICTS[language][statement.verdict.support]
            reason = translated(statement.verdict.reason, language)
            echo_wrapped(f"{verdict}: {reason}" if reason else verdict, "      ", "      ")


def label_of(answer: Answer) -> str:
    """The label of an answer by who wrote it; of several the least sure: unverified, by a model, quoted."""
    origins = {each.origin for each in answer.statements}
    least = next(each for each in (Origin.UNVERIFIED, Origin.GENERATED, Origin.EXTRACTIVE) if each in origins)
    took_part = any(by.startswith("chat-") for _, by in answer.provenance.prompts)
    return "quoted" if least is Origin.EXTRACTIVE and took_part else least.value


def _show_conflict(conflict: Conflict, language: str) -> None:
    """The possible conflict, and under it what the other source says."""
    reason = translated(conflict.reason, language)
    echo_wrapped(texts(language)[f"conflict_{conflict.kind.value}"].format(reason=reason), "! ", "  ", bold=True)
    echo_wrapped(f"{conflict.theirs.quote} [{conflict.against}]", "    ", "    ")


def _line(statement: Statement, language: str) -> str:
    if statement.withheld:
        reason = statement.verdict.reason if statement.verdict else ""
        return texts(language)["withheld"].format(reason=translated(reason, language))
    cited = "".join(f"[{citation.marker}]" for citation in statement.citations)
    return f"{statement.text} {cited}{marked(statement, language)}"


def _cited(answer: Answer, evidence: Evidence) -> list[Citation]:
    """The answer's citations of one source, in its order; then those of its parts and of possible conflicts."""
    statements = (*answer.statements, *(each for part in answer.parts for each in part.statements))
    found = [each for statement in statements for each in statement.citations]
    found += [conflict.theirs for conflict in answer.conflicts]
    return [each for each in found if each.marker == evidence.marker]


def _show_source(evidence: Evidence, citations: list[Citation], labels: dict[str, str]) -> None:
    passage = evidence.passage
    parts = [evidence.document_title]
    parts.append(labels["edition"].format(edition=evidence.edition) if evidence.edition else labels["no_date"])
    parts += [labels["page"].format(page=page) for page in sorted({each.page for each in citations if each.page})]
    if passage.ocr is not None:
        parts.append(labels["ocr"].format(sure=passage.ocr))
    parts.append(" > ".join(heading for heading in passage.headings if heading != evidence.document_title))
    if evidence.status is not Status.CURRENT:
        parts.append(labels[evidence.status.value])
    if evidence.overdue:
        parts.append(labels["overdue"].format(date=evidence.overdue))
    echo_wrapped(", ".join(part for part in parts if part), f"  [{evidence.marker}] ", "      ")
    spans = " ".join(dict.fromkeys(f"--span {each.start}-{each.end}" for each in citations[:1]))
    echo_wrapped(f"{passage.id[:12]} {spans}  {Path(evidence.source).name}", "      ", "      ")
