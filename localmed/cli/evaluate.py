"""``localmed eval``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli import evaluate_badges, evaluate_claims, evaluate_links, evaluate_mcq, evaluate_stance, reporting
from localmed.cli.common import json_option, opened, print_json, print_table, progress
from localmed.cli.speaking import language
from localmed.errors import UsageError

if TYPE_CHECKING:
    from localmed.evaluation.report import Report
    from localmed.evaluation.sets import QuestionSet
    from localmed.workspace import Workspace

SETS = ("medquad", "pubmedqa", "liveqa", "trec")
WORDINGS = ("summary", "paraphrase", "original")
DEEPEST = 1000  # passages a question; what TREC runs hold

_path = click.Path(path_type=Path)


@click.group("eval")
def command() -> None:
    """Measure how good this library's answers to known questions are."""


command.add_command(evaluate_stance.command)
command.add_command(evaluate_badges.command)
command.add_command(evaluate_claims.command)
command.add_command(evaluate_links.command)
command.add_command(evaluate_mcq.command)


@command.command("retrieval")
@click.option(
    "--set",
    "name",
    type=click.Choice(SETS),
    default="trec",
    help="medquad, pubmedqa: each record's own question looks for it (--source). liveqa: judged answers of "
    "MedQuAD (--source, --queries, --qrels). trec, the default: any set (--queries, --qrels).",
)
@click.option(
    "--source",
    type=_path,
    metavar="PATH",
    help="Where the set comes from: MedQuAD's folder of XML, or PubMedQA's ori_pqal.json.",
)
@click.option(
    "--queries", type=_path, metavar="FILE", help="Questions: ID<TAB>TEXT lines; for liveqa its XML of test questions."
)
@click.option(
    "--qrels",
    type=_path,
    metavar="FILE",
    help="Judgements: QUESTION ITERATION DOCUMENT GRADE lines; for liveqa MedQuAD's ZIP of judged answers. A "
    "document is named by its id, key, an identifier, its file's name without ending, or a passage id.",
)
@click.option(
    "--collection",
    "-c",
    "collections",
    multiple=True,
    metavar="NAME",
    help="Search this collection only (may be given several times; default: the set's own, for trec all).",
)
@click.option(
    "--wording",
    type=click.Choice(WORDINGS),
    default="summary",
    help="Which wording of liveqa's questions is asked (default: summary).",
)
@click.option(
    "--relevant-from",
    type=click.IntRange(1, 100),
    default=1,
    metavar="GRADE",
    help="Grade from which a document of a trec set is relevant (default: 1).",
)
@click.option(
    "--questions",
    "size",
    type=click.IntRange(2),
    default=1000,
    metavar="N",
    help="Size of the sample of a known-item set (default: 1000).",
)
@click.option(
    "--tuning",
    is_flag=True,
    help="Draw from the questions that the reported sample (1,000, seed 1) leaves: to choose settings on.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31),
    metavar="N",
    help="Draws the sample, the resamples and the permutations (default: 1, with --tuning 7).",
)
@click.option(
    "--variants",
    metavar="NAMES",
    help="Which to run, separated by commas (default: all): dense, lexical, both, dense+rerank, "
    "lexical+rerank, both+rerank. The last of them is what the others are tested against.",
)
@click.option(
    "--reranker",
    metavar="NAME",
    help="The reranker to measure: a registered model, maxsim, or none, which leaves the variants with +rerank out "
    "(default: the one in use).",
)
@click.option(
    "--limit",
    type=click.IntRange(10, DEEPEST),
    metavar="N",
    help="Passages read a question (default: search.candidates of the settings, as is served; more also "
    "takes more candidates).",
)
@reporting.out_option(help="Write report.json, table.md, table.csv, plot.png, plot.svg and the runs there.")
@reporting.resume_option
@json_option
@click.pass_context
def retrieval(ctx: click.Context, /, as_json: bool, out: Path | None, resume: bool, **choices: Any) -> None:
    """Search with parts taken away: dense, lexical, both, each with and without the reranker.

    Reports MRR@10, MAP, nDCG@10 and recall with 95 % intervals, and tests every variant against the last. Writes no
    question and no text, only ids. Needs the extra "eval".
    """
    from localmed.evaluation import measures, plot, report

    for library in (measures, *((plot,) if out else ())):
        library.require()  # before minutes of searching, not after
    if resume and not out:
        raise UsageError("evaluation.resume")
    if out:
        reporting.writable(out)
    with reporting.resumable(out):
        result = _measured(ctx, out, resume, not as_json, **choices)
    if out:
        texts = {"table.md": report.as_markdown(result, language()), "table.csv": report.as_csv(result)}
        reporting.write(out, result, texts, lambda folder: plot.draw(result, folder, language()))
    if as_json:
        print_json(result)
        return
    print_table(result.set, *report.overview(result))
    reporting.tell(report.facts(result), out, "table.md", "table.csv", "report.json", "plot.png", "plot.svg", "runs/")


def _measured(
    ctx: click.Context,
    out: Path | None,
    resume: bool,
    show: bool,
    variants: str | None,
    reranker: str | None,
    limit: int | None,
    seed: int | None,
    **choices: Any,
) -> Report:
    from localmed.evaluation import ablation, report, sets

    seed = seed if seed is not None else (sets.TUNING_SEED if choices["tuning"] else sets.REPORTED_SEED)
    with opened(ctx, reranker=reranker) as session, session.workspace() as workspace:
        site, library = session.site, workspace.library
        depth = limit or site.settings.search.candidates
        bench = ablation.Bench(library, site.encoder, site.settings.search, site.reranker, depth)
        chosen = bench.variants([variant.strip() for variant in variants.split(",")] if variants else ())
        question_set = _question_set(workspace, seed, **choices).answerable()
        with progress(show) as (started, advance):
            started(len(chosen) * len(question_set.questions))
            runs = ablation.run_all(bench, chosen, question_set, advance, out / "runs" if out else None, resume)
        result = report.report(bench, question_set, runs, seed)
        session.note("evaluate", f"retrieval, {result.questions} questions", "finished", library.manifest.number)
    return result


def _question_set(workspace: Workspace, seed: int, name: str, **choices: Any) -> QuestionSet:
    """The set that the options describe."""
    if name == "trec":
        from localmed.evaluation import trec

        queries, qrels = _needed("trec", queries=choices["queries"], qrels=choices["qrels"])
        searched = workspace.within(choices["collections"])
        return trec.load(queries, qrels, workspace.library, searched, choices["relevant_from"])
    if name == "liveqa":
        from localmed.evaluation import medquad

        source, queries, qrels = _needed(
            "liveqa", **{option: choices[option] for option in ("source", "queries", "qrels")}
        )
        searched = workspace.within(choices["collections"] or (medquad.COLLECTION,))
        return medquad.liveqa(source, queries, qrels, workspace.documents(searched), searched, choices["wording"])
    return _known_item(workspace, seed, name, **choices)


def _known_item(
    workspace: Workspace,
    seed: int,
    name: str,
    source: Path | None,
    collections: tuple[str, ...],
    size: int,
    tuning: bool,
    **_: Any,
) -> QuestionSet:
    from localmed.evaluation import medquad, pubmedqa, sets

    kind, title = (medquad, "MedQuAD") if name == "medquad" else (pubmedqa, "PubMedQA")
    (where,) = _needed(name, source=source)
    searched = workspace.within(collections or (kind.COLLECTION,))
    pairs = kind.questions(where)
    drawn = (sets.tuning_sample if tuning else sets.sample)(pairs, size, seed)
    which = "tuning sample" if tuning else "sample"
    question_set = sets.known_item(
        f"{title} known item ({which} of {len(pairs)})", drawn, kind.records(workspace.documents(searched)), searched
    )
    sets.refuse_indexed_questions(workspace.library, question_set)
    return question_set


def _needed(name: str, **paths: Path | None) -> list[Path]:
    """The paths, all of which the set ``name`` needs."""
    missing = [f"--{option}" for option, path in paths.items() if path is None]
    if missing:
        raise UsageError("evaluation.needs", name=name, options=tuple(missing))
    return [path for path in paths.values() if path is not None]
