"""``localmed audit`` and ``incident``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, in_session, print_json
from localmed.cli.later import history, incident
from localmed.cli.options import FILE, json_option, yes_option
from localmed.cli.speaking import confirm, say, words
from localmed.domain.accounts import Right
from localmed.domain.errors import Damaged, UsageError
from localmed.messages import as_json as message_json
from localmed.process import files
from localmed.process.files import contents

if TYPE_CHECKING:
    from localmed.library.journal import Entry
    from localmed.site.session import Session

HEAD_BYTES = 1_000  # a head has some 130


@click.group("audit")
def command() -> None:
    """Check and export the audit log, print its head, erase a person from it.

    The key is in audit.key of the data folder, or in the file that $LOCALMED_AUDIT_KEY names, which can belong to a
    separate account. Keep the head on another machine: it shows whether the end of the log was cut off.
    """


@command.command("verify")
@click.option("--head", "head_file", type=FILE, metavar="FILE", help="A head that was saved earlier.")
@json_option
@in_session
def verify(session: Session, head_file: Path | None, as_json: bool) -> int:
    """Check that no entry was altered, removed, moved or inserted; exit code 5 if one was."""
    from localmed.site.audit import Audit, head_of

    session.require(Right.SAFETY)
    head = head_of(contents(head_file, HEAD_BYTES).decode(errors="replace")) if head_file else None
    with Audit(session.data) as log:
        faults, newest = log.verify(head), log.head()
        faults += filter(None, (log.began_anew() or log.cut_off(),))
    entries = newest.number if newest else 0
    if as_json:
        print_json({"entries": entries, "faults": [message_json(fault, "en") for fault in faults]})
    for fault in [] if as_json else faults:
        echo(words(fault), colour="red")
    if not faults and not as_json:
        say("audit.whole", count=entries)
    return Damaged.exit_code if faults else 0


@command.command("head")
@in_session
def head(session: Session) -> None:
    """Print number, digest and mac of the newest entry. Keep them on another machine or on paper."""
    from localmed.site.audit import Audit

    with Audit(session.data) as log:
        session.require(Right.SAFETY)
        newest = log.head()
    if newest is None:
        raise UsageError("audit.empty")
    echo(str(newest))


@command.command("export")
@click.option("--as", "form", type=click.Choice(["fhir", "syslog", "json"]), default="json", show_default=True,
              help="AuditEvent of FHIR R4, lines of RFC 5424, or the entries as they are.")  # fmt: skip
@click.option("--after", type=click.IntRange(0), default=0, metavar="NUMBER", help="Only entries after this one.")
@in_session
def export(session: Session, form: str, after: int) -> None:
    """Print the entries, one a line, oldest first."""
    from localmed.site.audit import Audit

    with Audit(session.data) as log:
        session.require(Right.SAFETY)
        for line in _lines(log.numbered(after), form):
            echo(line)


def _lines(entries: Iterator[tuple[int, Entry]], form: str) -> Iterator[str]:
    from localmed.upkeep import audit_export

    for number, entry in entries:
        if form == "syslog":
            yield audit_export.as_syslog(number, entry)
        else:
            values = audit_export.as_fhir(number, entry) if form == "fhir" else audit_export.as_values(number, entry)
            yield json.dumps(values, ensure_ascii=False)


@command.command("erase")
@click.argument("user")
@yes_option
@in_session
def erase(session: Session, user: str, yes: bool) -> None:
    """Erase USER from every entry, and delete the questions and reports of USER.

    Times, outcomes and the chain are kept. The erasure is an entry of its own.
    """
    from localmed.site.audit import Audit

    with Audit(session.data) as log:
        session.require(Right.SAFETY)
        confirm("audit.erase", yes)
        count = log.erase(user, session.caller.user)
        history.erase(session, user)
    say("audit.erased", count=count)


@click.command("incident")
@click.argument("answer")
@click.option("--out", type=FILE, metavar="FILE", help="The archive (default: incident-ANSWER.zip here).")
@in_session
def incident_command(session: Session, answer: str, out: Path | None) -> None:
    """Export the answer with the id ANSWER: sources, page images, trace, versions and audit log entries.

    The id is in the address of the answer's page and in the audit log. The archive contains the question if the person
    who asked reported the answer, or if the setting web.incident_question allows it.
    """
    from localmed.presentation.answer import view
    from localmed.presentation.plain import plain

    archive = out or Path(f"incident-{answer}.zip")
    files.new_name(archive)
    made = incident.export(session, answer, lambda one: plain(view(one, session.caller.language)))
    files.write_new(archive, made.archive)
    say("cli.written", file=str(archive))
    say("incident.with_question" if made.has_question else "incident.without_question")
    if made.undrawn:
        say("incident.undrawn", count=len(made.undrawn))
