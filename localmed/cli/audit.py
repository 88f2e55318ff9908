"""``localmed audit``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import echo, json_option, opened, print_json
from localmed.cli.speaking import confirm, say, words
from localmed.domain.accounts import Right
from localmed.errors import Damaged, UsageError
from localmed.files import contents
from localmed.messages import as_json as message_json

if TYPE_CHECKING:
    from localmed.operations.audit import AuditEntry

HEAD_BYTES = 1_000  # a head has some 130


@click.group("audit")
def command() -> None:
    """Check the audit log against its key, take its head off the machine, export it, erase a person from it.

    The key lies in audit.key of the data folder, or in the file that $LOCALMED_AUDIT_KEY names, which can belong to an
    account of its own. A head that is kept elsewhere shows that the end of the log was cut off.
    """


@command.command("verify")
@click.option("--head", "head_file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="A head that was taken off the machine.")  # fmt: skip
@json_option
@click.pass_context
def verify(ctx: click.Context, head_file: Path | None, as_json: bool) -> None:
    """Check every entry: altered, removed, moved, put in without the key, the log begun anew; exit code 5 if so."""
    from localmed.operations.audit import Audit
    from localmed.operations.audit_key import head_of

    with opened(ctx) as session:
        session.require(Right.SAFETY)
        head = head_of(contents(head_file, HEAD_BYTES).decode(errors="replace")) if head_file else None
        with closing(Audit(session.data)) as log:
            faults, newest, lost = log.verify(head), log.head(), log.lost()
        faults += [lost] if lost else []
    if as_json:
        entries = newest.number if newest else 0
        print_json({"entries": entries, "faults": [message_json(fault, "en") for fault in faults]})
    else:
        for fault in faults:
            echo(words(fault), colour="red")
        if not faults:
            say("audit.whole", count=newest.number if newest else 0)
    if faults:
        sys.exit(Damaged.exit_code)


@command.command("head")
@click.pass_context
def head(ctx: click.Context) -> None:
    """Print the newest entry's number, digest and mac, to be kept on another machine (or on paper)."""
    from localmed.operations.audit import Audit

    with opened(ctx) as session, closing(Audit(session.data)) as log:
        session.require(Right.SAFETY)
        newest = log.head()
    if newest is None:
        raise UsageError("audit.empty")
    echo(str(newest))


@command.command("export")
@click.option("--as", "form", type=click.Choice(["fhir", "syslog", "json"]), default="json", show_default=True,
              help="AuditEvent of FHIR R4, lines of RFC 5424, or the entries as they are.")  # fmt: skip
@click.option("--after", type=click.IntRange(0), default=0, metavar="NUMBER", help="Only entries after this one.")
@click.pass_context
def export(ctx: click.Context, form: str, after: int) -> None:
    """Print the entries, one a line, oldest first."""
    from localmed.operations.audit import Audit

    with opened(ctx) as session, closing(Audit(session.data)) as log:
        session.require(Right.SAFETY)
        for line in _lines(log.numbered(after), form):
            echo(line)


def _lines(entries: Iterator[tuple[int, AuditEntry]], form: str) -> Iterator[str]:
    from localmed.operations import audit_export

    for number, entry in entries:
        if form == "syslog":
            yield audit_export.as_syslog(number, entry)
        else:
            values = audit_export.as_fhir(number, entry) if form == "fhir" else audit_export.as_values(number, entry)
            yield json.dumps(values, ensure_ascii=False)


@command.command("erase")
@click.argument("user")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def erase(ctx: click.Context, user: str, yes: bool) -> None:
    """Take out who USER was in every entry, and delete what USER asked and reported.

    Times, outcomes and the chain stay, and the erasure is an entry itself.
    """
    from localmed.operations import history
    from localmed.operations.audit import Audit

    with opened(ctx) as session, closing(Audit(session.data)) as log:
        session.require(Right.SAFETY)
        if not yes:
            confirm("audit.erase")
        count = log.erase(user, session.caller.user)
        history.erase(session, user)
    say("audit.erased", count=count)
