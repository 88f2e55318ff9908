"""``localmed review``: blinded forms for human reviewers, and the evaluation of the filled ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

from localmed.cli.common import plain, print_json
from localmed.cli.options import json_option
from localmed.cli.speaking import language, say
from localmed.domain.errors import InputError, UsageError
from localmed.lab import agreement, measures, plot, reporting
from localmed.lab import review_sheets as review
from localmed.lab.reporting import writable
from localmed.lab.sets import read_bytes, read_text
from localmed.presentation.review_form import Asked, review_form
from localmed.process import files

KEY = "key.json"
_NAME = re.compile(r"[\w-]{1,40}")


@click.command("export")
@click.argument("file", metavar="FILE")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="FOLDER",
              help="Write a form (HTML and CSV) for each reviewer there, and the key.")  # fmt: skip
@click.option("--form", type=click.Choice(list(review.FORMS)), default="clinician",
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
    names = reviewers or ("reviewer-1", "reviewer-2")
    if not all(_NAME.fullmatch(name) for name in names):
        raise UsageError("review.name")
    every_case = review.cases(read_text(Path(file)), Path(file).name, form)
    sheets, key = review.make_sheets(every_case, names, form, seed, keep_citations)
    dimensions = [Asked(row.name, row.question, row.options) for row in review.FORMS[form]]
    written = {KEY: json.dumps(plain(key), ensure_ascii=False, indent=1) + "\n"}
    for name, sheet in sheets.items():
        blocks = [(block.number, block.question, block.answers) for block in sheet]
        written[f"{name}.csv"] = "\ufeff" + review.sheet_csv(sheet, form)  # the mark by which spreadsheets know UTF-8
        written[f"{name}.html"] = review_form(name, blocks, dimensions, language())
    with writable(out):
        out.mkdir(parents=True, exist_ok=True)
        if (out / KEY).exists():
            raise UsageError("review.exists", file=str(out / KEY))
        for name, content in written.items():
            files.replace(out / name, content.encode())
    if as_json:
        print_json({"cases": len(every_case), "reviewers": names, "form": form, "files": sorted(written)})
        return
    say("review.exported", count=len(every_case), reviewers=names, out=str(out))
    say("review.keep_key", file=str(out / KEY))


@click.command("import")
@click.argument("forms", nargs=-1, required=True, metavar="FILE...")
@click.option("--key", type=reporting.FILE, required=True, metavar="FILE", help="The key that `review export` wrote.")
@reporting.seed_option
@reporting.out_option(help="Write report.json, table.csv, plot.png and plot.svg there.")
@json_option
def import_forms(forms: tuple[str, ...], key: Path, seed: int, out: Path | None, as_json: bool) -> None:
    """Read filled forms (CSV): scores by system, tests between systems, agreement of the reviewers.

    Reports means with 95 % intervals over cases, Kruskal-Wallis, Wilcoxon's test on cases (Holm), Krippendorff's alpha
    and Cohen's kappa. Reviewers who failed a quality-control case are excluded and listed. Needs the extra "eval".
    """
    with reporting.report_folder(out):
        known = review.key_of(read_text(key), key.name)
        filled = [review.ratings(review.decode(read_bytes(Path(file))), Path(file).name, known) for file in forms]
        ratings, left_out = review.merge_ratings(filled, known)
        if not ratings:
            raise InputError("review.no_ratings", left_out=left_out or ("-",))
        reporting.need(measures, *((plot,) if out else ()))
        agreement.report(ratings, known.form, left_out, seed).finish(out, as_json)
