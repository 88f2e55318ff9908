"""``localmed evidence``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from localmed.cli.common import json_option, opened, print_json
from localmed.cli.speaking import language, say, text


@click.command("evidence")
@click.argument("out", type=click.Path(path_type=Path))
@click.option("--attach", "attached", multiple=True, type=click.Path(path_type=Path, dir_okay=False),
              help="A file of your own: tests.*, egress.*, wcag.*, benchmarks.*, sbom.*")  # fmt: skip
@click.option("--key", type=click.Path(path_type=Path, dir_okay=False), help="An Ed25519 key that signs the folder.")
@json_option
@click.pass_context
def command(ctx: click.Context, out: Path, attached: tuple[Path, ...], key: Path | None, as_json: bool) -> None:
    """Write the documents for buyers, auditors and safety officers into the folder OUT; missing parts are listed.

    Model and corpus cards, the hazard log, the bill of materials, the last changes, the canary questions (asked now),
    and attached files.
    """
    from localmed.upkeep import evidence

    with opened(ctx) as session:
        session.may_change()
        there = evidence.write(session, out, attached, key, page)
    if as_json:
        print_json(there)
        return
    say("evidence.written", folder=str(out), count=sum(there.values()), parts=len(there))
    for source in evidence.missing(there):
        say("evidence.missing", source=source)
    say("evidence.signed" if key else "evidence.unsigned")


def page(name: str, values: Mapping[str, Any]) -> str:
    """A part of the evidence as a page, its headings in the reader's language and its text as it was written."""
    from localmed.presentation.report import Table, report

    title = text(f"evidence.title_{name}")
    made = {"index": _index, "hazards": _hazards, "attributes": _attributes, "card": _card}[name](values)
    outcome, paragraphs, tables = made
    return report(language(), title, outcome, paragraphs, [Table(*table) for table in tables])


Made = tuple[str, list[str], list[tuple[str, list[str], list[tuple[object, ...]]]]]


def _index(values: Mapping[str, Any]) -> Made:
    rows: list[tuple[object, ...]] = [
        (text(f"evidence.part_{name}"), text("evidence.here") if there else text(f"evidence.from_{name}"))
        for name, there in values.items()
    ]
    columns = [text("column.part"), text("column.state")]
    outcome = text("evidence.outcome", count=sum(values.values()), parts=len(values))
    return outcome, [text("evidence.verify")], [(text("evidence.title_index"), columns, rows)]


def _hazards(values: Mapping[str, Any]) -> Made:
    columns = [text(f"column.{name}") for name in ("hazard", "cause", "control", "risk", "remains", "tests")]
    rows: list[tuple[object, ...]] = [
        (f"{row['id']} {row['hazard']}", row["cause"], row["control"], f"{row['severity']} x {row['likelihood']}",
         row["remains"], "\n".join(row["tests"]))
        for row in values["hazards"]
    ]  # fmt: skip
    claims: list[tuple[object, ...]] = [(claim,) for claim in values["not_claimed"]]
    tables = [(text("evidence.title_hazards"), columns, rows),
              (text("evidence.not_claimed"), [text("evidence.not_claimed")], claims)]  # fmt: skip
    return text("evidence.reviewed", day=values["reviewed"], count=len(rows)), [text("evidence.scales")], tables


def _attributes(values: Mapping[str, Any]) -> Made:
    columns = [text(f"column.{name}") for name in ("place", "attribute", "value")]
    rows: list[tuple[object, ...]] = [(row["place"], row["name"], row["value"]) for row in values["attributes"]]
    outcome = text("evidence.reviewed", day=values["date"], count=len(rows))
    return outcome, [], [(text("evidence.title_attributes"), columns, rows)]


def _card(values: Mapping[str, Any]) -> Made:
    columns = [text(f"column.{name}") for name in ("part", "value")]
    rows: list[tuple[object, ...]] = [(row["part"], row["value"]) for row in values["card"]]
    outcome = text("evidence.reviewed", day=values["date"], count=len(rows))
    return outcome, [], [(text("evidence.title_card"), columns, rows)]
