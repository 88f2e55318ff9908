"""``localmed eval retrieval``: ablations of search (Dual-RAG, Table 4).

Dense, lexical or both, each with and without the reranker. All variants search the same library with the settings in
force. Passages are collapsed to documents at the rank of their best passage.

Finished questions are stored (``rows``) and reused only if questions, library, withdrawals, encoder, reranker,
settings, depth and version are unchanged. Each run is also written in TREC's format. No question or document text is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from localmed import __version__
from localmed.cli.common import open_session, progress
from localmed.cli.options import json_option
from localmed.config import SearchSettings
from localmed.domain import digest, message
from localmed.domain.errors import BadSettings, UsageError
from localmed.domain.ports import Embedder, Reranker
from localmed.lab import measures, plot, reporting, sets
from localmed.lab.measures import JUDGED, MEASURES, Estimate, Run, scores
from localmed.lab.reporting import ROWS, Report, Rows, Table
from localmed.lab.sets import Question, QuestionSet
from localmed.library.in_force import in_force
from localmed.library.library import Library
from localmed.retrieval.search import HybridSearch
from localmed.text.language import detect

Advance = Callable[[float, str], object]
DEEPEST = 1000  # passages for each question, as in TREC runs
RERANKED = "+rerank"
PARTS = {"dense": (True, False), "lexical": (False, True), "both": (True, True)}  # dense search, search by words
VARIANTS = tuple(name + rerank for rerank in ("", RERANKED) for name in PARTS)


@dataclass(frozen=True, slots=True)
class Bench:
    """The library, its encoder, the reranker if any, and the number of passages read for each question."""

    library: Library
    encoder: Embedder
    settings: SearchSettings
    reranker: Reranker | None
    depth: int

    def variants(self, names: Sequence[str] = ()) -> tuple[str, ...]:
        """The variants ``names``; default: all that this bench can run, the fullest last."""
        if unknown := [name for name in names if name not in VARIANTS]:
            raise UsageError("evaluation.variant", known=VARIANTS, name=unknown[0])
        chosen = [name for name in VARIANTS if name in names or not names]
        if names and not self.reranker and any(RERANKED in name for name in chosen):
            raise BadSettings("evaluation.no_reranker")
        return tuple(name for name in chosen if self.reranker or RERANKED not in name)

    def searcher(self, variant: str, question_set: QuestionSet) -> Callable[[Question], tuple[str, ...]]:
        """A function from a question to the ids of the documents found, best first."""
        dense, lexical = PARTS[variant.removesuffix(RERANKED)]
        settings = replace(
            self.settings,
            dense_weight=self.settings.dense_weight if dense else 0.0,
            lexical_weight=self.settings.lexical_weight if lexical else 0.0,
            sparse_weight=self.settings.sparse_weight if lexical else 0.0,  # words, however they were weighed
        )
        hybrid = HybridSearch(
            self.library, self.encoder, settings, self.reranker if variant.endswith(RERANKED) else None
        )

        def search(question: Question) -> tuple[str, ...]:
            hits = hybrid.search(question.text, question_set.search_filter, self.depth).hits
            return tuple(dict.fromkeys(hit.passage.document_id for hit in hits))

        return search

    def made_with(self, question_set: QuestionSet) -> dict[str, str]:
        """Everything that determines a run."""
        manifest = self.library.manifest
        ids, contents = in_force(self.library.data).withdrawn()
        return {
            "questions": digest(*(f"{question.id}\t{question.text}" for question in question_set.questions))[:16],
            "asked": repr(question_set.search_filter),
            "generation": f"{manifest.number} {manifest.created} {manifest.encoder} {manifest.passages}",
            "withdrawn": digest(*sorted(ids), *sorted(contents))[:16],
            "encoder": self.encoder.identity.slug,
            "reranker": self.reranker.name if self.reranker else "",
            "settings": repr(sorted(asdict(self.settings).items())),
            "depth": str(self.depth),
            "version": __version__,
        }


@dataclass(frozen=True, slots=True)
class Ranked:
    """The documents that a variant found for a question, best first."""

    variant: str
    question: str
    documents: tuple[str, ...]


def run_all(
    bench: Bench, variants: Sequence[str], question_set: QuestionSet, advance: Advance, kept: Rows[Ranked]
) -> Mapping[str, Run]:
    """The run of each variant, reusing ``kept`` questions."""
    runs: dict[str, dict[str, Sequence[str]]] = {}
    for variant in variants:
        search, runs[variant] = bench.searcher(variant, question_set), {}
        for question in question_set.questions:
            make = partial(lambda one, search, name: Ranked(name, one.id, search(one)), question, search, variant)
            runs[variant][question.id] = kept.get((variant, question.id), make).documents
            advance(1, variant)
    return runs


def trec(name: str, run: Run) -> str:
    """A run in TREC's format."""
    lines = (
        f"{question} Q0 {document} {rank} {len(documents) - rank + 1} {name}\n"
        for question, documents in run.items()
        for rank, document in enumerate(documents, 1)
    )
    return "".join(lines)


@dataclass(frozen=True, slots=True)
class Assessed:
    """A variant's measures by name, and the judged share of its first ten documents."""

    variant: str
    measures: Mapping[str, Estimate]
    judged: float


def assess(question_set: QuestionSet, runs: Mapping[str, Run], seed: int) -> tuple[Assessed, ...]:
    """The measures of ``runs``; the last run is the reference of the tests."""
    ids = [question.id for question in question_set.questions]
    values = {name: scores(run, question_set.judgements, question_set.relevant_from) for name, run in runs.items()}
    arrays = {
        measure: {name: np.array([by[measure][one] for one in ids], np.float64) for name, by in values.items()}
        for measure in (*MEASURES, JUDGED)
    }
    found = {measure: measures.estimates(arrays[measure], list(runs)[-1], seed) for measure in MEASURES}
    return tuple(
        Assessed(name, {measure: by[name] for measure, by in found.items()}, float(arrays[JUDGED][name].mean()))
        for name in runs
    )


def report(bench: Bench, question_set: QuestionSet, runs: Mapping[str, Run], seed: int) -> Report:
    """The report on ``runs``."""
    assessed, leading, count = assess(question_set, runs, seed), question_set.measure, len(question_set.questions)
    manifest, reference = bench.library.manifest, list(runs)[-1]
    unknown = sum(detect(question.text) not in bench.encoder.identity.languages for question in question_set.questions)
    notes = [*question_set.notes, *([message("evaluation.note.unknown_language", count=unknown)] if unknown else ())]
    made = {
        "generation": f"{manifest.number:04d} of {manifest.created}, {manifest.documents} documents",
        "encoder": bench.encoder.identity.slug,
        "reranker": bench.reranker.name if bench.reranker else "none",
        "version": __version__,
        "date": datetime.now(UTC).date().isoformat(),
        "seed": seed,
    }
    tests = {"resamples": measures.RESAMPLES, "permutations": measures.PERMUTATIONS}
    facts = (
        message("evaluation.facts.searched", count=count, set=question_set.name, depth=bench.depth),
        message("evaluation.facts.searched_with", **{name: str(value) for name, value in made.items()}),
        message("evaluation.facts.tests", reference=reference, **tests),
        message("evaluation.facts.judged", reference=reference, share=assessed[-1].judged),
        *(() if bench.reranker else (message("evaluation.facts.no_reranker"),)),
        *notes,
    )
    points = [
        plot.Point(measure, row.variant, *list(asdict(row.measures[measure]).values())[:3])
        for measure in MEASURES
        for row in assessed
    ]
    drawn = message("evaluation.plot.intervals", set=question_set.name, count=count)
    return Report(
        {"set": question_set.name, "questions": count, "measure": leading, "reference": reference, "rows": assessed,
         "settings": asdict(bench.settings), "depth": bench.depth, "notes": notes, **tests, **made},
        [overview(question_set.name, assessed, leading)],
        facts,
        _records(question_set.name, count, assessed, reference),
        partial(plot.points, drawn, points),
        {f"{name}.run": trec(name, run) for name, run in runs.items()},
    )  # fmt: skip


def overview(name: str, rows: Sequence[Assessed], leading: str) -> Table:
    """A table for 80 columns: the leading measure first, with its interval and p."""
    others = {measure: measure.replace("recall", "R") for measure in MEASURES if measure != leading}
    records = [
        {"variant": row.variant, leading: row.measures[leading].value, **asdict(row.measures[leading]),
         **{short: row.measures[measure].value for measure, short in others.items()}}
        for row in rows
    ]  # fmt: skip
    return Table(name, ("variant", leading, "interval", *others.values(), "p", "p_holm"), records)


def _records(name: str, count: int, rows: Sequence[Assessed], reference: str) -> list[dict[str, Any]]:
    return [
        {"set": name, "questions": count, "variant": row.variant, "measure": measure, **asdict(estimate),
         "reference": reference}
        for row in rows
        for measure, estimate in (*row.measures.items(), (JUDGED, Estimate(row.judged)))
    ]  # fmt: skip


@click.command("retrieval")
@click.option("--queries", type=reporting.FILE, required=True, metavar="FILE",
              help="Questions: ID<TAB>QUESTION lines, .jsonl, or .toml with [[question]] tables.")  # fmt: skip
@click.option("--qrels", type=reporting.FILE, required=True, metavar="FILE",
              help="Judgements: QUESTION ITERATION DOCUMENT GRADE lines. A document is named by its id, key, an "
              "identifier, its file's name without ending, or a passage id.")  # fmt: skip
@click.option("--collection", "-c", "collections", multiple=True, metavar="NAME",
              help="Search this collection only (may be given several times; default: all).")  # fmt: skip
@click.option("--relevant-from", type=click.IntRange(1, 100), default=1, metavar="GRADE",
              help="Grade from which a document is relevant (default: 1).")  # fmt: skip
@reporting.seed_option
@click.option("--variants", default="", metavar="NAMES",
              help="Which to run, separated by commas (default: all): dense, lexical, both, dense+rerank, "
              "lexical+rerank, both+rerank. The last of them is what the others are tested against.")  # fmt: skip
@click.option("--reranker", metavar="NAME",
              help="The reranker to measure: a registered model or none, which leaves the variants with +rerank out "
              "(default: the one in use).")  # fmt: skip
@click.option("--limit", type=click.IntRange(10, DEEPEST), metavar="N",
              help="Passages read a question (default: search.candidates of the settings, as is served; more also "
              "takes more candidates).")  # fmt: skip
@reporting.out_option(help="Write report.json, table.csv, plot.png, plot.svg, rows.jsonl and a run file a variant.")
@reporting.resume_option
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, queries: Path, qrels: Path, collections: tuple[str, ...], relevant_from: int, seed: int,
    variants: str, reranker: str | None, limit: int | None, out: Path | None, resume: bool, as_json: bool,
) -> None:  # fmt: skip
    """Compare search variants: dense, lexical, both, each with and without the reranker.

    Reports MRR@10, MAP, nDCG@10 and recall with 95 % intervals, and tests every variant against the last. Writes no
    question and no text, only ids. Needs the extra "eval".
    """
    reporting.need(measures, *((plot,) if out else ()))
    with (
        reporting.report_folder(out, resume, ROWS),
        open_session(ctx, reranker=reranker) as session,
        session.workspace() as workspace,
        progress(not as_json) as (started, advance),
    ):
        site, library = session.site, workspace.library
        depth = limit or site.settings.search.candidates
        bench = Bench(library, site.encoder, site.settings.search, site.reranker, depth)
        chosen = bench.variants([variant.strip() for variant in variants.split(",")] if variants else ())
        searched = workspace.within(collections)
        question_set = sets.read_judged(queries, qrels, library, searched, relevant_from).answerable()
        started(len(chosen) * len(question_set.questions))
        file = out / ROWS if out else None
        kept = Rows(file, bench.made_with(question_set), resume, Ranked, "variant", "question")
        runs = run_all(bench, chosen, question_set, advance, kept)
        made = report(bench, question_set, runs, seed)
        session.note("evaluate", f"retrieval, {len(question_set.questions)} questions", "finished",
                     library.manifest.number)  # fmt: skip
    made.finish(out, as_json, *((ROWS,) if out else ()))
