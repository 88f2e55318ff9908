"""``localmed review``: blinded forms for human reviewers, and what the filled ones come to."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from localmed.cli.common import json_option, plain, print_json
from localmed.cli.speaking import language, say, text
from localmed.domain import message
from localmed.domain.errors import InputError, UsageError, reason
from localmed.lab import reporting

if TYPE_CHECKING:
    from localmed.lab.agreement import ReviewReport
    from localmed.lab.review_sheets import Sheet

FORMS = ("clinician", "lay", "assistance", "evidence", "orders", "orders-lay", "dual-rag")
KEY = "key.json"
_NAME = re.compile(r"[\w-]{1,40}")


@click.group("review")
def command() -> None:
    """Blinded rating of answers by people, and its results."""


@command.command("export")
@click.argument("file", metavar="FILE")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="FOLDER",
              help="Write a form (HTML and CSV) for each reviewer there, and the key.")  # fmt: skip
@click.option("--form", type=click.Choice(FORMS), default="clinician",
              help="Rating form (default: clinician, the nine dimensions of LINS).")  # fmt: skip
@click.option("--reviewer", "reviewers", multiple=True, metavar="NAME",
              help="Reviewer (repeatable; default: reviewer-1 and reviewer-2).")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**31), default=1, metavar="N",
              help="Draws the orders of cases and answers (default: 1).")  # fmt: skip
@click.option(
    "--keep-citations",
    is_flag=True,
    help="Keep citation markers in the answers (default: removed, because they show which system wrote it).",
)
@json_option
def export(
    file: str, out: Path, form: str, reviewers: tuple[str, ...], seed: int, keep_citations: bool, as_json: bool
) -> None:
    """Write blinded forms for reviewers: cases shuffled, and the answers of each case shuffled.

    FILE is JSON lines: {"id", "question", "answers": {"SYSTEM": "text", ...}}, or a line for each system with "system"
    and "answer". A quality-control case also has "control": {"SYSTEM": {"DIMENSION": value}}: reviewers who fail it are
    excluded. key.json shows which system wrote which answer: do not give it to reviewers.
    """
    from localmed.lab import review_sheets as review

    names = reviewers or ("reviewer-1", "reviewer-2")
    if not all(_NAME.fullmatch(name) for name in names):
        raise UsageError("review.name")
    every_case = review.cases(_text(file), Path(file).name, form)
    sheets, key = review.blinded(every_case, names, form, seed, keep_citations)
    written = {f"{sheet.reviewer}{ending}": made for sheet in sheets for ending, made in _forms(sheet, form)}
    _write(out, {**written, KEY: json.dumps(plain(key), ensure_ascii=False, indent=1) + "\n"})
    if as_json:
        print_json({"cases": len(every_case), "reviewers": names, "form": form, "files": sorted({*written, KEY})})
        return
    say("review.exported", count=len(every_case), reviewers=names, out=str(out))
    say("review.keep_key", file=str(out / KEY))


def _forms(sheet: Sheet, form: str) -> tuple[tuple[str, str], ...]:
    from localmed.lab import review_sheets as review
    from localmed.presentation.review_form import Asked, review_form

    dimensions = [Asked(row.name, row.question, row.options) for row in review.FORMS[form]]
    blocks = [(block.number, block.question, block.answers) for block in sheet.blocks]
    return (
        (".csv", "\ufeff" + review.sheet_csv(sheet, form)),  # the mark by which spreadsheets know UTF-8
        (".html", review_form(sheet.reviewer, blocks, dimensions, language())),
    )


def _write(out: Path, contents: dict[str, str]) -> None:
    from localmed.process import files

    try:
        out.mkdir(parents=True, exist_ok=True)
        if (out / KEY).exists():
            raise UsageError("review.exists", file=str(out / KEY))
        for name, content in contents.items():
            files.replace(out / name, content.encode())
    except OSError as error:
        raise InputError("file.unwritable", file=str(out), reason=reason(error)) from None


def _text(file: str) -> str:
    from localmed.lab.sets import read_text

    return read_text(Path(file))


@command.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--key", type=reporting.FILE, required=True, metavar="FILE", help="The key that `review export` wrote.")
@reporting.seed_option
@reporting.out_option(help="Write report.json, table.csv, plot.png and plot.svg there.")
@json_option
def import_forms(files: tuple[str, ...], key: Path, seed: int, out: Path | None, as_json: bool) -> None:
    """Read filled forms (CSV): scores by system, tests between systems, agreement of the reviewers.

    Reports means with 95 % intervals over cases, Kruskal-Wallis, Wilcoxon's test on cases (Holm), Krippendorff's alpha
    and Cohen's kappa. Reviewers who failed a quality-control case are excluded and listed. Needs the extra "eval".
    """
    from localmed.lab import agreement, plot
    from localmed.lab import review_sheets as review
    from localmed.lab.sets import read_bytes

    if out:
        plot.require()
        reporting.writable(out)
    known = review.key_of(_text(str(key)), key.name)
    filled = [review.ratings(review.decoded(read_bytes(Path(file))), Path(file).name, known) for file in files]
    ratings, left_out = review.merged(filled, known)
    if not ratings:
        raise InputError("review.no_ratings", left_out=left_out or ("-",))
    result = agreement.report(ratings, known.form, left_out, seed)
    if out:
        texts = {"table.csv": agreement.as_csv(result)}
        reporting.write(out, result, texts, lambda folder: plot.draw_review(result, folder, language()))
    if as_json:
        print_json(result)
        return
    _tell(result, out)


def _tell(result: ReviewReport, out: Path | None) -> None:
    from localmed.lab.agreement import shown

    scores = [
        (row.dimension, row.system, row.ratings, shown(row.mean), f"{shown(row.low)} - {shown(row.high)}",
         f"{row.best:.1%}")
        for row in result.scores
    ]  # fmt: skip
    names = [text(f"column.{name}") for name in ("dimension", "system", "ratings", "mean", "interval", "best")]
    reporting.table(message("review.scores", form=result.form), names, scores)
    tests = [
        (row.dimension, f"{row.first} - {row.second}", row.cases, f"{row.difference:+.3f}", shown(row.p),
         shown(row.p_holm))
        for row in result.contrasts
    ]  # fmt: skip
    names = [text(f"column.{name}") for name in ("dimension", "systems", "cases", "difference")]
    reporting.table(message("review.tests"), [*names, "p", "p (Holm)"], tests)
    agreed = [
        (row.dimension, shown(row.h), shown(row.p), shown(row.alpha), shown(row.kappa), shown(row.lowest_kappa))
        for row in result.agreements
    ]
    names = [text(f"column.{name}") for name in ("dimension", "kruskal", "p", "alpha", "kappa", "lowest")]
    reporting.table(message("review.agreements"), names, agreed)
    facts = [message("review.facts", cases=result.cases, reviewers=result.reviewers, seed=result.seed)]
    facts += [message("review.left_out", reviewers=result.left_out)] if result.left_out else []
    reporting.tell(facts, out, "report.json", "table.csv", "plot.png", "plot.svg")
