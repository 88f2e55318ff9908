"""``localmed eval``: search, badges, claims, citations and stances on questions with known answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from localmed.cli.common import (
    filter_options,
    json_option,
    opened,
    plain,
    print_json,
    print_table,
    progress,
    search_filter,
)
from localmed.cli.speaking import columns, language, text
from localmed.domain.errors import UnknownName, UsageError
from localmed.lab import evaluate_mcq, reporting

if TYPE_CHECKING:
    from localmed.domain import Badge, SearchFilter
    from localmed.domain.ports import Entailment
    from localmed.lab.badges import BadgeReport
    from localmed.lab.link_files import LinkQuestion, LinkRow
    from localmed.lab.links import LinkReport
    from localmed.lab.report import Report
    from localmed.lab.sets import QuestionSet
    from localmed.lab.stance import JudgeScores, StanceReport
    from localmed.site.session import Session
    from localmed.site.workspace import Workspace


SETS = ("medquad", "pubmedqa", "liveqa", "trec")
WORDINGS = ("summary", "paraphrase", "original")
DEEPEST = 1000  # passages a question; what TREC runs hold
ROWS = "rows.jsonl"
Counts = dict[tuple[str, str], int]  # pairs by (what they are, what they were judged as)

_path = click.Path(path_type=Path)


@click.group("eval")
def command() -> None:
    """Measure search and answers on questions with known answers."""


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
    help="Wording of the liveqa questions (default: summary).",
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
    help="The reranker to measure: a registered model or none, which leaves the variants with +rerank out "
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
    """Compare search variants: dense, lexical, both, each with and without the reranker.

    Reports MRR@10, MAP, nDCG@10 and recall with 95 % intervals, and tests every variant against the last. Writes no
    question and no text, only ids. Needs the extra "eval".
    """
    from localmed.lab import measures, plot, report

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
    from localmed.lab import ablation, report, sets

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
        from localmed.lab import trec

        queries, qrels = _needed("trec", queries=choices["queries"], qrels=choices["qrels"])
        searched = workspace.within(choices["collections"])
        return trec.load(queries, qrels, workspace.library, searched, choices["relevant_from"])
    if name == "liveqa":
        from localmed.lab import medquad

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
    from localmed.lab import medquad, pubmedqa, sets

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


# --- stance -----------------------------------------------------------------------------------------------------------


@command.command("stance")
@click.option(
    "--pairs",
    type=reporting.FILE,
    required=True,
    metavar="FILE",
    help="Labelled pairs: PREMISE<TAB>HYPOTHESIS<TAB>LABEL lines (entailment, neutral, contradiction or "
    "not_entailment), HealthVer's CSV, or COVID-Fact's labelled TSV or JSON lines.",
)
@click.option(
    "--tune",
    type=reporting.FILE,
    metavar="FILE",
    help="Other labelled pairs, three-way, on which the cuts of the word overlap baseline are chosen; it is left "
    "out without them.",
)
@reporting.seed_option
@reporting.out_option(help="Write report.json, confusion.png and confusion.svg there.")
@json_option
@click.pass_context
def stance(ctx: click.Context, /, pairs: Path, tune: Path | None, seed: int, out: Path | None, as_json: bool) -> None:
    """Judge labelled pairs of a text and a statement: supported, contradicted, or neither.

    Reports accuracy, macro-F1 and the confusion of the entailment model in use (the built-in rules know only what is
    said word for word), of word overlap and of the majority class. Writes no text. The plot needs the extra "eval".
    """
    from localmed.lab import plot

    if out:
        plot.require()  # before minutes of judging, not after
        reporting.writable(out)
    result = _measured_stance(ctx, pairs, tune, seed, show=not as_json)
    if out:
        reporting.write(out, result, {}, lambda folder: plot.draw_confusion(result, folder, language()))
    if as_json:
        print_json(result)
    else:
        _tell(result, out)


def _measured_stance(ctx: click.Context, pairs: Path, tune: Path | None, seed: int, show: bool) -> StanceReport:
    from localmed.lab import stance

    pair_set = stance.load(pairs)
    judges: list[Entailment] = [stance.Majority(pair_set.pairs)]
    judges += [stance.tuned(stance.load(tune).pairs)] if tune else []
    judges.append(stance.Verbatim())
    with opened(ctx) as session:
        judge = session.site.entailment
        judges += [judge] if judge.languages else []
        with progress(show) as (started, advance):
            started(len(pair_set.pairs) * len(judges))
            result = stance.report(pair_set, judges, seed, advance)
        session.note("evaluate", f"stance, {result.pairs} pairs", "finished")
    return result


def _tell(result: StanceReport, out: Path | None) -> None:
    from localmed.lab import stance

    names = columns("judge", "accuracy", "interval", "macro_f1", "interval", "not_judged")
    print_table(text("evaluation.title.judges", set=result.set), names, [_row(judge) for judge in result.judges])
    last = result.judges[-1]
    names = [*columns("is"), *result.labels, *columns("precision", "recall", "f1")]
    print_table(text("evaluation.title.confusion", judge=last.judge), names, _classes(last))
    reporting.tell(stance.facts(result), out, "report.json", "confusion.png", "confusion.svg")


def _row(scores: JudgeScores) -> tuple[str, ...]:
    return (
        scores.judge,
        f"{scores.accuracy:.3f}",
        "{:.2f}-{:.2f}".format(*scores.accuracy_interval),
        f"{scores.macro_f1:.3f}",
        "{:.2f}-{:.2f}".format(*scores.macro_f1_interval),
        f"{scores.unjudged / sum(map(sum, scores.confusion)):.0%}",
    )


def _classes(scores: JudgeScores) -> list[tuple[object, ...]]:
    """A row a label: how its pairs were judged, and how well that is."""
    return [
        (label, *counts, f"{class_scores.precision:.3f}", f"{class_scores.recall:.3f}", f"{class_scores.f1:.3f}")
        for (label, class_scores), counts in zip(scores.classes.items(), scores.confusion, strict=True)
    ]


# --- badges -----------------------------------------------------------------------------------------------------------


@command.command("badges")
@click.option(
    "--questions",
    type=reporting.FILE,
    required=True,
    metavar="FILE",
    help="ID<TAB>QUESTION lines, .jsonl, or .toml with [[question]] tables.",
)
@click.option(
    "--source",
    "-s",
    "named",
    multiple=True,
    metavar="NAME",
    help="A source to compare: a kind (guideline, literature, ...) or a collection; may be given several times "
    "(default: every kind of which the library holds a passage).",
)
@reporting.out_option(help="Write report.json, table.csv, plot.png, plot.svg and rows.jsonl there.", required=True)
@reporting.resume_option
@json_option
@click.pass_context
def badges(
    ctx: click.Context, /, questions: Path, named: tuple[str, ...], out: Path, resume: bool, as_json: bool
) -> None:
    """Answer questions from each source alone and from all, and compare the badges (Answered with Evidence).

    Reports the badges by source, how sources agree, all combinations, what each source alone answers, and how often at
    least one is green. Unanswered questions count as red. Writes no question and no text. The plot needs the extra
    "eval".
    """
    from localmed.lab import badges, plot

    plot.require()  # before minutes of asking, not after
    reporting.writable(out, ROWS)
    with reporting.resumable(out):
        result = _measured_badges(ctx, questions, named, out, resume, show=not as_json)
    texts = {"table.csv": badges.as_csv(result)}
    reporting.write(out, result, texts, lambda folder: plot.draw_badges(result, folder, language()))
    if as_json:
        print_json(result)
        return
    for title, names, rows in badges.tables(result):
        reporting.table(title, names, rows)
    reporting.tell(badges.facts(result), out, "report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl")


def _measured_badges(
    ctx: click.Context, questions: Path, named: tuple[str, ...], out: Path, resume: bool, show: bool
) -> BadgeReport:
    from localmed.lab import badges, link_files, rows

    items = link_files.questions(questions)
    with opened(ctx) as session:
        sources = _sources(session, named)
        made_with = {
            "questions": link_files.digest_of(questions),
            "sources": ", ".join(sources),
            **_badges_made_with(session),
        }
        done = rows.begin_badges(out / ROWS, made_with, resume)
        with progress(show) as (started, advance):
            started(len(items) * len(sources))
            by_question: dict[str, dict[str, Badge]] = {question.id: {} for question in items}
            for question in items:
                for source, collections in sources.items():
                    row = (question.id, source)
                    if row not in done:
                        done[row] = _badge(session, question, collections)
                        rows.keep_badge(out / ROWS, row, done[row])
                    by_question[question.id][source] = done[row]
                    advance(1, source)
        session.note("evaluate", f"badges, {len(items)} questions", "finished", int(made_with["generation"]))
    return badges.report(by_question, [source for source in sources if source != badges.COMBINED], made_with)


def _badge(session: Session, question: LinkQuestion, collections: Sequence[str]) -> Badge:
    from localmed.domain import SearchFilter

    return session.ask(question.text, SearchFilter(tuple(collections)), preset="").verification.badge


def _sources(session: Session, named: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """The collections of each source, then of all of them; raise ``UnknownName`` for one that holds nothing."""
    from localmed.lab.badges import COMBINED
    from localmed.site import lookups

    filled = [row.collection for row in lookups.collections(session) if row.passages]
    kinds: dict[str, tuple[str, ...]] = {}
    for collection in filled:
        if collection.kind.value:
            kinds[collection.kind.value] = (*kinds.get(collection.kind.value, ()), collection.name)
    known = {**{name: (name,) for name in sorted(collection.name for collection in filled)}, **kinds}
    for name in named:
        if name not in known:
            raise UnknownName("evaluation.no_source", known=tuple(known), name=name)
    chosen = {name: known[name] for name in dict.fromkeys(named)} or kinds or known
    together = tuple(dict.fromkeys(name for collections in chosen.values() for name in collections))
    return {**chosen, COMBINED: together} if len(chosen) > 1 else chosen


def _badges_made_with(session: Session) -> dict[str, str]:
    """What the figures were made with."""
    from localmed import __version__

    with session.workspace() as workspace:
        made = workspace.provenance()
    judge = dict(made.prompts).get("badge", "")
    models = ", ".join(f"{name} {value}" for name, value in made.models)
    return {"generation": made.generation, "profile": made.profile, "models": models, "judge": judge,
            "version": __version__}  # fmt: skip


# --- claims -----------------------------------------------------------------------------------------------------------


@command.command("claims")
@click.option(
    "--questions",
    type=reporting.FILE,
    metavar="FILE",
    help='Answers to verify: JSON lines or a JSON list of {"id", "question", "answer", "sources", "label"}; a label '
    "(correct or mistaken) is what a person found.",
)
@click.option(
    "--pairs",
    type=reporting.FILE,
    metavar="FILE",
    help="Labelled pairs of a text and a statement, as of `eval stance`: how stances inside M-Eval agree with them.",
)
@reporting.seed_option
@reporting.out_option(help="Write report.json, a plot and, of answers, table.csv and results.jsonl there.")
@reporting.resume_option
@json_option
@click.pass_context
def claims(
    ctx: click.Context,
    /,
    questions: Path | None,
    pairs: Path | None,
    seed: int,
    out: Path | None,
    resume: bool,
    as_json: bool,
) -> None:
    """Verify many answers by M-Eval, or measure its stances on labelled pairs.

    Reports labels of responses, claims and given evidence; where answers are labelled, accuracy, recall and
    specificity. Writes no text, only ids and counts. The plot needs the extra "eval".
    """
    from localmed.lab import plot

    if (questions is None) == (pairs is None):
        raise UsageError("evaluation.questions_or_pairs")
    if resume and not (out and questions):
        raise UsageError("evaluation.resume_questions")
    if out:
        plot.require()  # before minutes of judging, not after
        reporting.writable(out)
    if questions:
        _answers(ctx, questions, out, resume, as_json)
    elif pairs:
        _pairs(ctx, pairs, seed, out, as_json)


def _answers(ctx: click.Context, file: Path, out: Path | None, resume: bool, as_json: bool) -> None:
    from localmed.lab import claims, plot

    items = claims.load(file)
    with reporting.resumable(out), opened(ctx) as session, progress(not as_json) as (started, advance):
        started(len(items))
        results = claims.run(items, session.verify, advance, out, resume)
        result = claims.report(file.name, session.site.entailment.name, results)
    if out:
        texts = {"table.csv": claims.as_csv(result)}
        reporting.write(out, result, texts, lambda folder: plot.draw_claims(result, folder, language()))
    if as_json:
        print_json(result)
        return
    for title, counts in (("responses", result.responses), ("claims", result.claims)):
        rows = [(text(f"verify.label_of.{label}"), number) for label, number in counts.items()]
        print_table(text(f"evaluation.title.{title}", set=result.set), columns("label", "number"), rows)
    reporting.tell(claims.facts(result), out, "report.json", "table.csv", "results.jsonl", "plot.png", "plot.svg")


def _pairs(ctx: click.Context, file: Path, seed: int, out: Path | None, as_json: bool) -> None:
    from localmed.lab import claims, plot, stance

    pair_set = stance.load(file)
    with opened(ctx) as session:
        judges = [claims.Inside(session.site.entailment), session.site.entailment]
        with progress(not as_json) as (started, advance):
            started(len(pair_set.pairs) * len(judges))
            result = stance.report(pair_set, judges, seed, advance)
        counts = claims.by_claim(
            pair_set, judges[0].judge([(pair.premise, pair.hypothesis) for pair in pair_set.pairs])
        )
        session.note("evaluate", f"claims, {result.pairs} pairs", "finished")
    values = {**plain(result), "claims": [{"is": is_so, "judged": judged, "claims": n} for (is_so, judged), n in
                                            sorted(counts.items())]}  # fmt: skip
    if out:
        reporting.write(out, values, {}, lambda folder: plot.draw_confusion(result, folder, language()))
    if as_json:
        print_json(values)
        return
    _tell_pairs(result, counts)
    reporting.tell((), out, "report.json", "confusion.png", "confusion.svg")


def _tell_pairs(result: StanceReport, counts: Counts) -> None:
    """The judge inside M-Eval and alone, each class, and what the votes made of the claims."""
    rows = [(judge.judge, f"{judge.accuracy:.3f}", f"{judge.macro_f1:.3f}") for judge in result.judges]
    print_table(text("evaluation.title.stances", set=result.set), columns("judge", "accuracy", "macro_f1"), rows)
    classes = result.judges[0].classes.items()
    by_class = [(label, f"{scores.precision:.3f}", f"{scores.recall:.3f}", scores.pairs) for label, scores in classes]
    print_table(text("evaluation.title.by_class"), columns("class", "precision", "recall", "pairs"), by_class)
    claims = [
        (text(f"verify.label_of.{is_so}"), text(f"verify.label_of.{judged}"), number)
        for (is_so, judged), number in sorted(counts.items())
    ]
    print_table(text("evaluation.title.votes"), columns("labels_say", "m_eval_says", "claims"), claims)


# --- links ------------------------------------------------------------------------------------------------------------


@command.command("links")
@click.option(
    "--questions",
    type=reporting.FILE,
    required=True,
    metavar="FILE",
    help="ID<TAB>QUESTION lines (a third column: the gold answer), .jsonl, or .toml with [[question]] tables.",
)
@click.option(
    "--answers",
    type=reporting.FILE,
    metavar="FILE",
    help="Evaluate these answers (JSON lines: id, answer with citations, sources) instead of asking the library.",
)
@click.option("--preset", metavar="NAME", help="Search in the tiers of this preset (default: as `localmed ask`).")
@reporting.seed_option
@reporting.out_option(help="Write report.json, table.csv, plot.png, plot.svg and rows.jsonl there.", required=True)
@reporting.resume_option
@filter_options
@json_option
@click.pass_context
def links(ctx: click.Context, /, out: Path, seed: int, as_json: bool, **choices: Any) -> None:
    """Measure how well sources support the sentences of answers (Link-Eval).

    Reports citation set precision, citation precision, citation recall, consistency, statement correctness (where a
    gold answer is given) and fluency (with a chat model), with 95 % intervals. A metric without data is
    undefined, never 1. Writes no question and no text. Needs the extra "eval".
    """
    from localmed.lab import links, measures, plot

    for library in (measures, plot):
        library.require()  # before minutes of asking, not after
    reporting.writable(out, ROWS)
    with reporting.resumable(out):
        result = _measured_links(ctx, out, seed, not as_json, **choices)
    texts = {"table.csv": links.as_csv(result)}
    reporting.write(out, result.as_dict(), texts, lambda folder: plot.draw_links(result, folder, language()))
    if as_json:
        print_json(result.as_dict())
        return
    reporting.table("Link-Eval", *links.table(result))
    reporting.tell(links.facts(result), out, "report.json", "table.csv", "plot.png", "plot.svg", "rows.jsonl")


def _measured_links(
    ctx: click.Context,
    out: Path,
    seed: int,
    show: bool,
    questions: Path,
    answers: Path | None,
    preset: str | None,
    resume: bool,
    **filters: Any,
) -> LinkReport:
    from localmed.lab import link_files, links

    items = link_files.questions(questions)
    items = link_files.with_answers(items, answers) if answers else items
    limited = search_filter(**filters)
    with opened(ctx) as session:
        made_with = {
            "questions": link_files.digest_of(questions),
            "answers": link_files.digest_of(answers) if answers else "",
            "asked": repr((preset, limited)),
            **_links_made_with(session),
        }
        done = link_files.begin(out / ROWS, made_with, resume)
        evaluate = _evaluator(session, limited, preset, bool(answers))
        with progress(show) as (started, advance):
            started(len(items))
            rows = list(_rows(items, done, evaluate, out / ROWS, advance))
        session.note("evaluate", f"links, {len(rows)} questions", "finished", int(made_with["generation"]))
    return links.report(rows, made_with, seed)


def _links_made_with(session: Session) -> dict[str, str]:
    """What the figures were made with."""
    from localmed import __version__
    from localmed.answering.link_eval import VALID_FROM

    site, encoder = session.site, session.site.encoder.identity
    with session.workspace() as workspace:
        provenance = workspace.provenance()
    return {
        "generation": provenance.generation,
        "profile": site.settings.profile,
        "encoder": encoder.slug,
        "reranker": site.reranker.name if site.reranker else "none",
        "judge": site.entailment.name,
        "answers by": dict(provenance.models).get("chat", "rules"),
        "valid_from": f"{VALID_FROM:.2f}",
        "version": __version__,
    }


def _evaluator(
    session: Session, limited: SearchFilter, preset: str | None, given_only: bool
) -> Callable[[LinkQuestion], LinkRow]:
    """What evaluates one question: its given answer, else the library's."""
    from localmed.answering import link_eval
    from localmed.domain import AnswerStatus
    from localmed.lab.link_files import LinkRow
    from localmed.text.language import detect
    from localmed.workflows.links import counts_of

    def evaluate(question: LinkQuestion) -> LinkRow:
        link_input, spoken = question.answer, detect(question.text)
        if link_input is None and given_only:
            return LinkRow(question.id, spoken, "no answer given")
        if link_input is None:
            answer = session.ask(question.text, limited, preset)
            if answer.status not in (AnswerStatus.ANSWERED, AnswerStatus.UNVERIFIED):
                return LinkRow(question.id, spoken, answer.status.value)
            link_input = link_eval.of_answer(answer, question.gold)
        return LinkRow(question.id, spoken, "answered", counts_of(session.links(link_input, limited, preset)))

    return evaluate


def _rows(
    items: Sequence[LinkQuestion],
    done: dict[str, LinkRow],
    evaluate: Callable[[LinkQuestion], LinkRow],
    file: Path,
    advance: Callable[[float, str], None],
) -> Any:
    """The row of each question, finished ones as they are."""
    from localmed.lab import link_files

    for question in items:
        row = done.get(question.id)
        if row is None:
            row = evaluate(question)
            link_files.keep(file, row)
        advance(1, question.id)
        yield row
