"""``localmed search QUESTION``, and how a section is printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import echo, echo_wrapped, in_session, print_json
from localmed.cli.options import filter_options, json_option, question_argument, reading_options, search_filter
from localmed.domain import Answer, AnswerStatus, message
from localmed.messages import ASIDE, joined
from localmed.presentation.answer import headline, searched
from localmed.presentation.finding import FindingView, Piece, SectionView, finding_value, view
from localmed.presentation.neutral import words

if TYPE_CHECKING:
    from localmed.site.session import Session

FOLDED = "[...]"
MARK = "»{}«"


@click.command("search")
@question_argument
@click.option("--limit", "-n", type=click.IntRange(1, 200), metavar="N",
              help="Sections to show, 1 to 200 (default: 10, or search.results of the settings).")  # fmt: skip
@reading_options
@filter_options
@json_option
@in_session
def command(
    session: Session, /, question: str, limit: int | None, left_out: Sequence[str], as_json: bool, **filters: Any
) -> None:
    """Find the sections about QUESTION, by words and by meaning, with the closest sentences marked.

    The id in brackets opens a passage: localmed show ID. QUESTION - reads the question from standard input.
    """
    most = limit or session.settings.search.results
    answer = session.search(question, search_filter(**filters), most, left_out)
    if as_json:
        print_json(finding_value(answer))
        return
    if answer.status is AnswerStatus.ABSTAINED:
        echo_wrapped(headline(answer, answer.language))
        echo_wrapped(searched(answer, answer.language))
    for note in answer.notes:
        echo_wrapped(words(note, answer.language), "* ", "  ")
    show_finding(answer)


def show_finding(answer: Answer) -> None:
    """Print the sections of ``answer``."""
    seen = view(answer, answer.language)
    if seen is None:
        return
    if seen.flagged:
        echo_wrapped(seen.flagged, "! ", "  ")
    for line in filter(None, (seen.follows, *seen.read_as, *seen.absent, seen.closeness)):
        echo_wrapped(line, "", "    ")
    if seen.far:
        _others(seen, answer.language)
    if seen.far and seen.others and seen.sections:
        echo("\n" + words(message("finding.below"), answer.language), bold=True)
    for number, section in enumerate(seen.sections, 1):
        _show(f"{number:>2}. ", section, answer.language, seen.far)
    if not seen.far:
        _others(seen, answer.language)
    if seen.note:
        echo(seen.note, err=True)


def _others(seen: FindingView, language: str) -> None:
    if seen.others:
        echo(f"\n{seen.others_title}", bold=True)
    for section in seen.others:
        _show("  - ", section, language, seen.far)


def _show(number: str, section: SectionView, language: str, far: bool) -> None:
    title = f"[{section.passage_id[:12]}] {section.title}"
    said = filter(None, (title, *section.details, section.lacks, *section.warnings))
    echo_wrapped(joined(said, language, ASIDE), number, "    ", bold=True)
    if section.place:
        echo_wrapped(section.place, "    ", "    ")
    if far:
        return
    marked = [piece for piece in section.pieces if piece.marked]
    lines = _lines(marked or section.pieces[:1])
    if section.whole:
        lines = [line for run in section.runs for line in (_lines(run.pieces) if run.open else (FOLDED,))]
        lines += [FOLDED] * (bool(section.cut) and section.runs[-1].open)
    for line in lines:
        echo_wrapped(line, "    ", "    ")


def _lines(pieces: Sequence[Piece]) -> list[str]:
    lines: list[str] = []
    for piece in pieces:
        text = MARK.format(piece.text) if piece.marked else piece.text
        if piece.breaks or not lines:
            lines.append(text)
        else:
            lines[-1] += f" {text}"
    return lines
