"""``localmed evidence``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import in_session, print_json
from localmed.cli.later import evidence
from localmed.cli.options import FILE, json_option
from localmed.cli.speaking import columns, language, say, text

if TYPE_CHECKING:
    from localmed.site.session import Session


@click.command("evidence")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--attach", "attached", multiple=True, type=FILE,
              help="A file of your own: tests.*, egress.*, wcag.*, benchmarks.*, sbom.*")  # fmt: skip
@click.option("--key", type=FILE, help="An Ed25519 key that signs the folder.")
@json_option
@in_session
def command(session: Session, out: Path, attached: tuple[Path, ...], key: Path | None, as_json: bool) -> None:
    """Write the documents for buyers, auditors and safety officers into the folder OUT; missing parts are listed.

    Model and corpus cards, the hazard log, the bill of materials, the last changes, the canary questions (asked now),
    and attached files.
    """
    session.may_change()
    there = evidence.write(session, out, attached, key, page)
    if as_json:
        print_json(there)
        return
    say("evidence.written", folder=str(out), count=sum(there.values()), parts=len(there))
    for source in evidence.missing_parts(there):
        say("evidence.missing", source=source)
    say("evidence.signed" if key else "evidence.unsigned")


def page(name: str, values: Mapping[str, Any]) -> str:
    """A part of the evidence as a page; headings are in the reader's language, the text is unchanged."""
    from localmed.presentation.report import Table, report

    title, paragraphs, more = text(f"evidence.title_{name}"), list[str](), list[Table]()
    rows: list[tuple[object, ...]]
    if name == "index":
        names = ["part", "state"]
        rows = [(text(f"evidence.part_{part}"), text("cli.yes" if there else "cli.no"))
                for part, there in values.items()]  # fmt: skip
        outcome = text("evidence.outcome", count=sum(values.values()), parts=len(values))
        paragraphs = [text("evidence.verify")]
    elif name == "hazards":
        names = ["hazard", "cause", "control", "risk", "remains", "tests"]
        rows = [(f"{row['id']} {row['hazard']}", row["cause"], row["control"],
                 f"{row['severity']} x {row['likelihood']}", row["remains"], "\n".join(row["tests"]))
                for row in values["hazards"]]  # fmt: skip
        outcome = text("evidence.reviewed", day=values["reviewed"], count=len(rows))
        paragraphs, not_claimed = [text("evidence.scales")], text("evidence.not_claimed")
        more = [Table(not_claimed, [not_claimed], [(claim,) for claim in values["not_claimed"]])]
    else:
        key, names = ("attributes", ["place", "name", "value"]) if name == "attributes" else ("card", ["part", "value"])
        rows = [tuple(row[column] for column in names) for row in values[key]]
        names = ["attribute" if column == "name" else column for column in names]
        outcome = text("evidence.reviewed", day=values["date"], count=len(rows))
    return report(language(), title, outcome, paragraphs, [Table(title, columns(*names), rows), *more])
