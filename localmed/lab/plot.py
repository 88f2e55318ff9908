"""Results as pictures, drawn without a window: the ablation of retrieval, and what stances were judged as.

The ablation has one panel a measure, a point with its interval for each variant; confusion has one panel a judge.
Readable without colour: with the reranker a filled square, without it a hollow circle; every row and cell is labelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from localmed.domain import Message, Parameter, message
from localmed.domain.errors import ModelError
from localmed.lab import badges, claims, links, mcq_report
from localmed.lab.agreement import ReviewReport
from localmed.lab.badges import BadgeReport
from localmed.lab.claims import ClaimsReport
from localmed.lab.links import LinkReport
from localmed.lab.mcq_report import McqReport
from localmed.lab.measures import MEASURES
from localmed.lab.report import Report, alternative
from localmed.lab.stance import JudgeScores, StanceReport
from localmed.messages import FALLBACK, render

INCHES = (11.0, 3.4)
DOTS = 150  # an inch, of the PNG: 1650 x 510 pixels
FONTS = {  # with Chinese, which the library's own font has not; the first that the machine has
    "zh": ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Microsoft YaHei",
           "SimHei", "Droid Sans Fallback"),
}  # fmt: skip
MARKERS = "osD^v"  # a system each
PANEL_INCHES = 3.4  # of one judge's confusion, either way


def require() -> Any:
    """The library; raise ``ModelError`` if it is not installed."""
    try:
        import matplotlib as mpl
        import matplotlib.backends.backend_agg
        import matplotlib.backends.backend_svg
        import matplotlib.figure
    except ImportError:
        raise ModelError("evaluation.no_plot", package="matplotlib") from None
    return mpl


def draw(report: Report, folder: Path, language: str = FALLBACK) -> tuple[Path, ...]:
    """Write ``plot.png`` and ``plot.svg`` into ``folder``; equal reports give equal files."""
    figure = _figure(*INCHES)
    for number, (measure, axes) in enumerate(
        zip(MEASURES, figure.subplots(1, len(MEASURES), sharey=True), strict=True)
    ):
        _panel(axes, report, measure, labelled=number == 0)
    figure.suptitle(_say(language, "evaluation.plot.intervals", set=report.set, count=report.questions), fontsize=11)
    return _saved(figure, alternative(report), folder, "plot", language)


def draw_confusion(report: StanceReport, folder: Path, language: str = FALLBACK) -> tuple[Path, ...]:
    """Write ``confusion.png`` and ``confusion.svg`` into ``folder``; equal reports give equal files."""
    figure = _figure(PANEL_INCHES * len(report.judges), PANEL_INCHES)
    panels = figure.subplots(1, len(report.judges), sharey=True, squeeze=False)[0]
    for axes, scores in zip(panels, report.judges, strict=True):
        _confusion(axes, scores, report.labels, _say(language, "evaluation.plot.judged_as"))
    panels[0].set_ylabel(_say(language, "column.is"))
    figure.suptitle(_say(language, "evaluation.plot.pairs", set=report.set, count=report.pairs), fontsize=11)
    judges = tuple(
        message("evaluation.plot.judge", judge=scores.judge, accuracy=scores.accuracy, macro_f1=scores.macro_f1)
        for scores in report.judges
    )
    return _saved(figure, message("evaluation.plot.confusion", judges=judges), folder, "confusion", language)


def draw_links(report: LinkReport, folder: Path, language: str = FALLBACK) -> tuple[Path, ...]:
    """Write ``plot.png`` and ``plot.svg`` into ``folder``: a point a metric, those undefined said in words."""
    figure = _figure(INCHES[0] * 0.7, INCHES[1])
    axes = figure.subplots()
    for place, metric in enumerate(report.metrics):
        if metric.mean is None:
            axes.text(0.02, place, _words(language, links.shown(metric)), va="center", fontsize=9)
            continue
        low, high = metric.interval or (metric.mean, metric.mean)
        spread = [[max(0.0, metric.mean - low)], [max(0.0, high - metric.mean)]]
        axes.errorbar(metric.mean, place, xerr=spread, fmt="s", color="black", capsize=3, markersize=6)
    names = [f"{_words(language, links.metric_name(scores))} (n = {scores.defined})" for scores in report.metrics]
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    figure.suptitle(_say(language, "evaluation.plot.intervals", set="Link-Eval", count=report.questions), fontsize=11)
    return _saved(figure, links.alternative(report), folder, "plot", language)


def draw_claims(report: ClaimsReport, folder: Path, language: str = FALLBACK) -> tuple[Path, ...]:
    """Write ``plot.png`` and ``plot.svg`` into ``folder``: a bar of labels of the responses, one of the claims."""
    figure = _figure(INCHES[0] * 0.7, INCHES[1] * 0.7)
    bars = {
        _say(language, "evaluation.plot.responses", count=report.answers): report.responses,
        _say(language, "evaluation.plot.claims", count=sum(report.claims.values())): report.claims,
    }
    styles = [{"color": shade} for shade in ("0.9", "0.45", "white", "0.75")]
    _bars(figure.subplots(), bars, styles, lambda label: f"{_words(language, claims.label_of(label))}\n")
    figure.suptitle(_say(language, "evaluation.plot.judged", set=report.set, judge=report.judge), fontsize=10)
    return _saved(figure, claims.alternative(report), folder, "plot", language)


def draw_badges(report: BadgeReport, folder: Path, language: str = FALLBACK) -> tuple[Path, ...]:
    """Write ``plot.png`` and ``plot.svg`` into ``folder``: a bar a source, its colours told apart by hatching."""
    figure = _figure(INCHES[0] * 0.7, 1.2 + 0.5 * len(report.summaries))
    bars = {
        _words(language, badges.source(row.source)): {"green": row.green, "yellow": row.yellow, "red": row.red}
        for row in report.summaries
    }
    faces = (("#8fce8f", ""), ("#f2d974", "//"), ("#e09090", "xx"))
    styles = [{"color": face, "hatch": hatch} for face, hatch in faces]
    _bars(figure.subplots(), bars, styles, lambda name: f"{_say(language, f'column.{name}')} ", backgroundcolor="white")
    figure.suptitle(_say(language, "evaluation.plot.badges", count=report.questions), fontsize=11)
    return _saved(figure, badges.alternative(report), folder, "plot", language)


def draw_mcq(report: McqReport, folder: Path, language: str = FALLBACK) -> tuple[Path, ...]:
    """Write ``plot.png`` and ``plot.svg`` into ``folder``: a panel a set, in it a row an arm."""
    figure = _figure(INCHES[0], 1.6 + 0.3 * len(report.arms))
    panels = figure.subplots(1, len(report.sets), sharey=True, squeeze=False)[0]
    for name, axes in zip(report.sets, panels, strict=True):
        for score in (score for score in report.scores if score.set == name):
            row = report.arms.index(score.arm)
            reach = spread(score.accuracy, score.low, score.high)
            axes.errorbar(score.accuracy, row, xerr=reach, fmt="s", color="black", capsize=3, markersize=5)
        axes.set_title(f"{name} (n = {report.sets[name]})", fontsize=10)
        axes.set_xlim(-0.02, 1.02)
        axes.grid(axis="x", color="0.85", linewidth=0.6)
    panels[0].set_yticks(range(len(report.arms)), report.arms, fontsize=9)
    panels[0].set_ylim(len(report.arms) - 0.5, -0.5)
    figure.suptitle(_say(language, "evaluation.plot.mcq_title"), fontsize=11)
    return _saved(figure, mcq_report.alternative(report), folder, "plot", language)


def draw_review(report: ReviewReport, folder: Path, language: str = FALLBACK) -> tuple[Path, ...]:
    """Write ``plot.png`` and ``plot.svg`` into ``folder``: a row a dimension, a marker a system."""
    names = [row.dimension for row in report.agreements]
    figure = _figure(INCHES[0] * 0.7, 1.4 + 0.4 * len(names))
    axes = figure.subplots()
    for place, system in enumerate(report.systems):
        for score in (score for score in report.scores if score.system == system):
            row = names.index(score.dimension) + 0.6 * (place + 1) / (len(report.systems) + 1) - 0.3
            marker = MARKERS[place % len(MARKERS)]
            axes.errorbar(
                score.mean, row, xerr=spread(score.mean, score.low, score.high), fmt=marker, color="black", capsize=2,
                markersize=5, markerfacecolor="white" if place % 2 else "black",
                label=system if score.dimension == names[0] else None,
            )  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.legend(fontsize=8)
    figure.suptitle(_say(language, "review.plot_title", form=report.form), fontsize=11)
    values = tuple(f"{score.dimension}, {score.system}: {score.mean:.3f}" for score in report.scores)
    return _saved(figure, message("review.plot", values=values), folder, "plot", language)


def spread(value: float, low: float | None, high: float | None) -> list[list[float]]:
    """How far an interval reaches below and above ``value``; nothing where there is none."""
    below, above = (value if bound is None else bound for bound in (low, high))
    return [[max(0.0, value - below)], [max(0.0, above - value)]]


def _figure(width: float, height: float) -> Any:
    library = require()
    figure = library.figure.Figure(figsize=(width, height), layout="constrained")
    library.backends.backend_agg.FigureCanvasAgg(figure)
    return figure


def _bars(
    axes: Any,
    bars: Mapping[str, Mapping[str, int]],
    styles: Sequence[Mapping[str, str]],
    label: Callable[[str], str],
    **text: str,
) -> None:
    """A bar for each of ``bars``, in parts as long as their shares; ``label`` stands before the count of a part."""
    for place, counts in enumerate(bars.values()):
        total, start = max(1, sum(counts.values())), 0.0
        for (name, count), style in zip(counts.items(), styles, strict=True):
            if count:
                axes.barh(place, count / total, left=start, edgecolor="black", height=0.6, **style)
                middle = start + count / total / 2
                axes.text(middle, place, f"{label(name)}{count}", ha="center", va="center", fontsize=8, **text)
                start += count / total
    axes.set_yticks(range(len(bars)), list(bars), fontsize=9)
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, 1)


def _say(language: str, code: str, /, **parameters: Parameter) -> str:
    return render(message(code, **parameters), _drawn_in(language))


def _words(language: str, label: Message | str) -> str:
    return render(label, _drawn_in(language)) if isinstance(label, Message) else label


def _saved(figure: Any, description: Message, folder: Path, name: str, language: str) -> tuple[Path, Path]:
    library, png, svg = require(), folder / f"{name}.png", folder / f"{name}.svg"
    text = render(description, language)
    fonts = [*library.rcParams["font.family"], *filter(None, (_font(language),))]
    with library.rc_context({"svg.hashsalt": "localmed", "svg.fonttype": "none", "font.family": fonts}):
        figure.savefig(png, dpi=DOTS, metadata={"Description": text, "Software": None})
        figure.savefig(svg, metadata={"Description": text, "Date": None})
    return png, svg


@cache
def _font(language: str) -> str:
    """A font of this machine that has what the library's own lacks for ``language``; "" where there is none."""
    from matplotlib.font_manager import fontManager

    installed = {entry.name for entry in fontManager.ttflist}
    return next((name for name in FONTS.get(language, ()) if name in installed), "")


def _drawn_in(language: str) -> str:
    """``language``, or English where this machine has no font for it."""
    return language if language not in FONTS or _font(language) else FALLBACK


def _confusion(axes: Any, scores: JudgeScores, labels: tuple[str, ...], below: str) -> None:
    """Shares of each row as shades, counts as text."""
    shares = [[count / max(1, sum(row)) for count in row] for row in scores.confusion]
    axes.imshow(shares, cmap="Greys", vmin=0, vmax=1)
    for row, counts in enumerate(scores.confusion):
        for column, count in enumerate(counts):
            shade = "white" if shares[row][column] > 0.5 else "black"
            axes.text(column, row, str(count), ha="center", va="center", color=shade, fontsize=10)
    axes.set_title(f"{scores.judge}\nmacro-F1 {scores.macro_f1:.2f}", fontsize=9)
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.set_yticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel(below)


def _panel(axes: Any, report: Report, measure: str, labelled: bool) -> None:
    for place, row in enumerate(report.rows):
        estimate = row.measures[measure]
        reranked = row.variant.endswith("+rerank")
        spread = [[max(0.0, estimate.value - estimate.low)], [max(0.0, estimate.high - estimate.value)]]
        axes.errorbar(
            estimate.value, place, xerr=spread, fmt="s" if reranked else "o", color="black", capsize=3, markersize=6,
            markerfacecolor="black" if reranked else "white",
        )  # fmt: skip
    axes.set_title(measure, fontsize=10)
    axes.set_yticks(range(len(report.rows)), [row.variant for row in report.rows])
    axes.set_ylim(len(report.rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=3 if labelled else 0)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.set_axisbelow(True)
