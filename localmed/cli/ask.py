"""Workflows as commands: ``localmed ask, plan, ebm, explain, departments, verify, replay``."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import echo, echo_wrapped, in_session, open_session, print_json, settings_of, show_steps
from localmed.cli.later import history, lookups, orders
from localmed.cli.options import (
    FILE,
    STDIN,
    bytes_of,
    filter_options,
    json_option,
    question_argument,
    reading_options,
    search_filter,
    standard_input,
    stdin_lines,
    text_callback,
    texts_callback,
)
from localmed.cli.speaking import say
from localmed.domain import Answer, SearchFilter, message
from localmed.domain.answers import answer_json
from localmed.domain.errors import InputError, UsageError
from localmed.messages import ASIDE, COLON, joined
from localmed.presentation.answer import view
from localmed.presentation.neutral import one_line, words
from localmed.presentation.views import PartView, SourceView, StatementView
from localmed.process import files
from localmed.process.files import contents
from localmed.process.hooks import Hooks
from localmed.text.language import clean

if TYPE_CHECKING:
    from localmed.domain.patient import PatientRecord
    from localmed.site.session import Session


def print_text(answer: Answer) -> None:
    """Print an answer from its view: headline, conflicts, statements with markers, parts, notes, sources, purpose."""
    shown = view(answer)
    for line in filter(None, (shown.banner, shown.headline)):
        echo_wrapped(line, bold=True)
    if shown.searched:
        echo_wrapped(shown.searched)
    for conflict in shown.conflicts:
        echo_wrapped(conflict.text, "! ", "  ", bold=True)
        for title, side in ((conflict.our_title, conflict.ours), (conflict.their_title, conflict.theirs)):
            echo_wrapped(joined((title, one_line(side.quote)), shown.language, COLON), "    ", "    ")
    _show_statements(shown.statements)
    if badge := shown.badge:
        echo_wrapped(badge.reason, bold=True)
        for line in filter(None, (badge.before, badge.alone, badge.judged)):
            echo_wrapped(line, "  ", "  ")
    section = ""
    for part in shown.parts:
        if part.section != section:
            section = part.section
            if section:
                echo_wrapped(f"== {section} ==", "\n", "", bold=True)
        _show_part(part, shown.language)
    for note in (*shown.notices, *shown.notes):
        echo_wrapped(note, "* ", "  ")
    if answer.receipts is not None:
        from localmed.cli.search import show_finding

        echo()
        show_finding(answer)
    if shown.sources:
        echo(f"\n{shown.sources_title}", bold=True)
        for source in shown.sources:
            _show_source(source, shown.language)
        echo(shown.opening)
    echo_wrapped(shown.purpose, "\n", "")


def _show_part(part: PartView, language: str) -> None:
    echo()
    echo_wrapped(part.title, bold=True)
    if part.pieces:
        echo(
            "".join(click.style(piece.text, underline=True) if piece.searched else piece.text for piece in part.pieces)
        )
    for row in part.rows:
        echo_wrapped(joined(filter(None, (row.label, row.text)), language, COLON), "  ", "  ")
        if row.detail:
            echo_wrapped(row.detail, "      ", "      ")
    _show_statements(part.statements)


def _show_statements(statements: Sequence[StatementView]) -> None:
    for statement in statements:
        if statement.heading:
            echo_wrapped(statement.heading, bold=True)
        echo_wrapped(_line(statement), "  - ", "    ")
        for line in filter(None, (statement.detail, statement.verdict)):
            echo_wrapped(line, "      ", "      ")


def _line(statement: StatementView) -> str:
    if statement.withheld:
        return statement.withheld
    cited = "".join(f"[{citation.marker}]" for citation in statement.citations)
    return " ".join(text for text in (statement.text, cited, statement.warning, statement.checked) if text)


def _show_source(source: SourceView, language: str) -> None:
    line = joined((source.title, *source.details, *source.warnings), language, ASIDE)
    echo_wrapped(line, f"  [{source.marker}] ", "      ")
    span = f"--span {source.start}-{source.end}" if source.end else ""
    echo_wrapped(f"{source.passage_id[:12]} {span}  {source.file}", "      ", "      ")


@dataclass(frozen=True, slots=True)
class Options:
    """The values of ``workflow_options``."""

    trace: bool = False
    record: Path | None = None
    profile: str | None = None
    as_json: bool = False


def workflow_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of every workflow; the command receives ``options``."""

    @click.option("--profile", type=click.Choice(["starter", "workstation"]), help="Overrides the settings.")
    @click.option("--record", type=FILE, metavar="FILE", help="Write a recording for `localmed replay`; it contains "
                  "the question and all results.")  # fmt: skip
    @click.option("--trace", is_flag=True, help="Show the steps and how long each took (on standard error).")
    @json_option
    @wraps(command)
    def gathered(
        *positional: Any, trace: bool, record: Path | None, profile: str | None, as_json: bool, **own: Any
    ) -> None:
        command(*positional, options=Options(trace, record, profile, as_json), **own)

    return gathered


def run_workflow(ctx: click.Context, workflow: Callable[[Session, Hooks], Answer], options: Options) -> Answer:
    """Run ``workflow``; its recording is written before anything is shown."""
    from localmed.workflows.recording import Recording

    record = options.record
    if record:
        files.new_name(record)
    recording = Recording() if record else None
    with open_session(ctx, options.profile) as session, show_steps(session.caller.language, options.as_json) as hooks:
        answer = workflow(session, replace(hooks, recorder=recording))
    if record and recording:
        files.write_new(record, recording.finish(answer).encode())
    if options.trace:
        show_trace(answer)
    return answer


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print ``answer`` as text or JSON."""
    if as_json:
        print_json(answer_json(answer, answer.language))
    else:
        print_text(answer)


def show_trace(answer: Answer) -> None:
    """Print the steps on standard error: names, counts and ids."""
    for step in answer.trace:
        detail = joined((f"{name} {value}" for name, value in step.detail), answer.language)
        echo(f"  {step.seconds * 1000:7.1f} ms  {step.name}: {detail}", err=True)


@click.command("ask")
@question_argument
@click.option("--preset", metavar="NAME", help="Search the collections of a preset: ebm, patient or one of the "
              "settings (default: ask.preset, else all).")  # fmt: skip
@click.option("--after", "earlier", multiple=True, metavar="QUESTION",
              help="A question asked before this one, which it refers to (may be given several times); - reads such "
              "questions from standard input, one a line, of which the last is QUESTION where that is - "
              "too.")  # fmt: skip
@click.option("--check", is_flag=True, help="Also check the answer's claims against further studies (M-Eval).")
@click.option("--thorough", is_flag=True, help="With a chat model: every role of MAIRAG takes part; some 20 calls.")
@reading_options
@workflow_options
@filter_options
@click.pass_context
def ask(
    ctx: click.Context, /, question: str, preset: str | None, earlier: tuple[str, ...], check: bool, thorough: bool,
    left_out: Sequence[str], options: Options, **filters: Any,
) -> None:  # fmt: skip
    """Show the sections of the library about QUESTION; with a chat model, an answer above them.

    The sentences closest to the question are marked. Every sentence of an answer has the number of its source and is
    checked against it. QUESTION - reads standard input, which keeps the question out of the shell history.
    """
    question, earlier = _conversation(ctx, question, earlier)
    limits = search_filter(**filters)

    def work(session: Session, hooks: Hooks) -> Answer:
        return session.ask(question, limits, preset, earlier, hooks, check, thorough, left_out)

    print_answer(run_workflow(ctx, work, options), options.as_json)


def _conversation(ctx: click.Context, question: str, earlier: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """QUESTION and the questions before it; standard input may hold several."""
    if "-" not in earlier:
        return question, earlier
    both = STDIN in ctx.meta  # QUESTION was read from it
    lines = stdin_lines(ctx.meta[STDIN] if both else standard_input())
    if both:
        question = clean(lines.pop()) if lines else ""
    at = earlier.index("-")
    return question, (*earlier[:at], *lines, *earlier[at + 1 :])


@click.command("plan")
@question_argument
@click.option("--strategy", metavar="NAME", default="prompting", show_default=True, help="Planning method: prompting, "
              "or a baseline (none, original, query2doc, reflexion, serts).")  # fmt: skip
@workflow_options
@filter_options
@click.pass_context
def plan(ctx: click.Context, /, question: str, strategy: str, options: Options, **filters: Any) -> None:
    """Plan the search of each source (books, guidelines, research, wiki, graph), then answer QUESTION from all.

    Without a language model the question goes to every source as it is. QUESTION - reads standard input.
    """
    limits = search_filter(**filters)
    answer = run_workflow(ctx, lambda session, hooks: session.plan_sources(question, limits, strategy, hooks), options)
    print_answer(answer, options.as_json)


@click.command("ebm")
@question_argument
@click.option("--patient", metavar="FILE",
              help="Patient record: text, C-CDA or FHIR JSON; - reads standard input. It is not stored.")  # fmt: skip
@click.option("--pico", is_flag=True, help="QUESTION is already a PICO question (P:, I:, C:, O:).")
@click.option("--keep", is_flag=True, help="Include the patient record in the recording of --record.")
@workflow_options
@filter_options
@click.pass_context
def ebm(
    ctx: click.Context, /, question: str, patient: str | None, pico: bool, keep: bool, options: Options, **filters: Any
) -> None:
    """Find the evidence for a clinical QUESTION about one patient and check it against the patient record.

    The question becomes a PICO question; guidelines are searched first, then literature, then books. Names, numbers and
    addresses in the record are not read. QUESTION - reads standard input.
    """
    if patient and options.record and not keep:
        raise UsageError("record.recording")
    known = read_record(patient) if patient else None
    limits = search_filter(**filters)
    answer = run_workflow(ctx, lambda session, hooks: session.ebm(question, limits, known, pico, hooks), options)
    print_answer(answer, options.as_json)


def read_record(name: str | Path) -> PatientRecord:
    """The record in the file ``name``, or on standard input ("-"); raise ``InputError`` if it is invalid."""
    from localmed.ingest import records

    return records.read(bytes_of(name, records.RECORD_BYTES))


@click.command("explain")
@click.argument("order", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), metavar="ORDER")
@click.option("--patient", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path), metavar="FILE",
              help="Patient record (text, C-CDA or FHIR), used to understand the questions. Never stored.")  # fmt: skip
@click.option("--question", "questions", multiple=True, metavar="TEXT", callback=texts_callback,
              help="A question about the order (repeatable); - reads one a line from standard input.")  # fmt: skip
@click.option("--released-by", default="", metavar="NAME", help="Person who gives the explanation to the patient.")
@click.option("--leaflet", type=FILE, metavar="FILE",
              help="Write a page (HTML) for the patient to read and print; needs --released-by.")  # fmt: skip
@click.option("--lines-checked", is_flag=True, help="Somebody checked allergies and lines with several medicines.")
@click.option("--keep", is_flag=True, help="Store the answer in the data folder (kept/), readable only by its owner.")
@workflow_options
@click.pass_context
def explain(
    ctx: click.Context, /, order: Path, patient: Path | None, questions: tuple[str, ...], released_by: str,
    leaflet: Path | None, lines_checked: bool, keep: bool, options: Options,
) -> None:  # fmt: skip
    """Explain the medical order in the file ORDER: lines, abbreviations, and terms with citations.

    Plain words need a chat model; without one the order is quoted. ORDER - reads standard input. Nothing is stored
    unless --keep or --record is given.
    """
    from localmed.presentation.pages import leaflet as leaflet_page
    from localmed.workflows.explain import ExplainInput

    known, released_by = read_record(patient) if patient else None, " ".join(released_by.split())
    text = orders.text_of(bytes_of(order, orders.LARGEST))
    if leaflet and not released_by:
        raise UsageError("explain.released_by")
    if leaflet:
        files.new_name(leaflet)
    task = ExplainInput(text, known, questions, released_by)
    answer = run_workflow(ctx, lambda session, hooks: session.explain(task, SearchFilter(), hooks), options)
    if keep:  # the file name has the date and nothing of the patient
        name = f"explain-{datetime.now(UTC):%Y%m%d}-{secrets.token_hex(4)}.json"
        file = lookups.kept_folder(settings_of(ctx).data) / name
        files.write_new(file, json.dumps(answer_json(answer), ensure_ascii=False, indent=2).encode())
        say("explain.kept", file=str(file), err=True)
    if leaflet:
        orders.require_clear(answer, lines_checked)
        files.write_new(leaflet, leaflet_page(answer, date.today().isoformat()).encode())
        say("explain.leaflet_written", file=str(leaflet), err=True)
    print_answer(answer, options.as_json)


@click.command("departments")
@question_argument
@workflow_options
@click.pass_context
def departments(ctx: click.Context, /, question: str, options: Options) -> None:
    """Find the department for a complaint, from the department guide: department, floor and reason.

    Warning signs lead to the Emergency Department first. This is not a diagnosis. Give the complaint in the patient's
    own words; - reads standard input, which keeps it out of the shell history.
    """
    print_answer(
        run_workflow(ctx, lambda session, hooks: session.departments(question, hooks), options), options.as_json
    )


@click.command("verify")
@click.argument("file", metavar="FILE")
@click.option("--question", default="", metavar="TEXT", callback=text_callback,
              help="The question, if it is not in the file; - reads standard input.")  # fmt: skip
@workflow_options
@click.pass_context
def verify(ctx: click.Context, /, file: str, question: str, options: Options) -> None:
    """Check an answer written elsewhere: its citations, and its claims against studies (M-Eval).

    FILE is text or Markdown with citations, JSON ({"question", "answer", "sources"}), or what `ask --json` printed; -
    reads standard input. Citations count only if they are in the library. The text is not stored.
    """
    from localmed.answering import answer_file

    data = bytes_of(file, answer_file.TEXT_BYTES)
    submitted = answer_file.read(data, question)
    print_answer(run_workflow(ctx, lambda session, hooks: session.verify(submitted, hooks), options), options.as_json)


@click.command("replay")
@click.argument("file", type=FILE)
@click.option("--trace", is_flag=True, help="Show the recorded steps (on standard error).")
@json_option
@in_session
def replay(session: Session, file: Path, trace: bool, as_json: bool) -> None:
    """Run the workflow recorded in FILE again, without library or models.

    Shows the answer if it is the same; exit code 3 if it is not.
    """
    from localmed.workflows.recording import LARGEST

    try:
        text = contents(file, LARGEST).decode()
    except UnicodeDecodeError:
        raise InputError("recording.none") from None
    answer, same = session.replay(text)
    if not same:  # not shown: the recorded texts may have been altered
        raise InputError("replay.differs")
    answer = history.note_withdrawals(session, answer)
    print_answer(answer, as_json)
    if trace:
        show_trace(answer)
    echo(words(message("recording.same"), answer.language), err=True)
