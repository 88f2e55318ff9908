"""Plots without a display: means with intervals, bars of shares, confusion matrices.

Readable without colour: series differ in marker, parts of a bar in shade or hatching, and all rows and cells are
labelled. The file's metadata describe the content. Equal data give equal files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from localmed.domain import Message
from localmed.domain.errors import ModelError
from localmed.messages import FALLBACK, render

DOTS = 150  # an inch, of the PNG
FONTS = {  # with Chinese, which the library's own font has not; the first that the machine has
    "zh": ("Noto Sans CJK SC", "Source Han Sans SC", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei", "Microsoft YaHei",
           "SimHei", "Droid Sans Fallback"),
}  # fmt: skip
MARKERS = "osD^v"  # a series each
PARTS = ({"color": "0.9"}, {"color": "0.75", "hatch": "//"}, {"color": "0.5"}, {"color": "white", "hatch": "xx"})
PANEL_INCHES = 3.4  # of one judge's confusion, either way


class Point(NamedTuple):
    """A mean with its interval, in a row of a panel; None is plotted as "undefined"."""

    panel: str
    row: Message | str
    value: float | None
    low: float | None = None
    high: float | None = None
    series: str = ""


def require() -> Any:
    """matplotlib; raise ``ModelError`` if it is not installed."""
    try:
        import matplotlib as mpl
        import matplotlib.backends.backend_agg
        import matplotlib.backends.backend_svg
        import matplotlib.figure
    except ImportError:
        raise ModelError("evaluation.not_installed", package="matplotlib") from None
    return mpl


def points(
    title: Message, drawn: Sequence[Point], folder: Path, language: str, shares: bool = True
) -> tuple[Path, ...]:
    """Panels side by side, with a point and interval for every row and series. ``shares`` range from 0 to 1."""
    panels, rows = (
        list(dict.fromkeys(point.panel for point in drawn)),
        list(dict.fromkeys(point.row for point in drawn)),
    )
    series = list(dict.fromkeys(point.series for point in drawn))
    figure = _figure(7.7 if len(panels) == 1 else 11.0, 1.6 + 0.3 * len(rows) * len(series))
    every = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for panel, axes in zip(panels, every, strict=True):
        for point in (point for point in drawn if point.panel == panel):
            place = series.index(point.series)
            row = rows.index(point.row) + 0.6 * (place + 1) / (len(series) + 1) - 0.3
            if point.value is None:
                axes.text(0.02, row, _label(language, Message("column.undefined")), va="center", fontsize=9)
                continue
            bounds = (point.value if bound is None else bound for bound in (point.low, point.high))
            axes.errorbar(
                point.value, row, xerr=[[abs(point.value - bound)] for bound in bounds], fmt=MARKERS[place % 5],
                color="black", capsize=3, markersize=5, markerfacecolor="white" if place % 2 else "black",
                label=point.series if row < 0.5 else None,
            )  # fmt: skip
        axes.set(title=panel, ylim=(len(rows) - 0.5, -0.5))
        axes.grid(axis="x", color="0.85", linewidth=0.6)
        if shares:
            axes.set_xlim(-0.02, 1.02)
    every[0].set_yticks(range(len(rows)), [_label(language, row) for row in rows], fontsize=9)
    if len(series) > 1:
        every[0].legend(fontsize=8)
    parts = [f"{_point_name(language, point)}: {_point_value(point)}" for point in drawn]
    return _save(figure, title, parts, folder, "plot", language)


def _point_name(language: str, point: Point) -> str:
    return ", ".join(filter(None, (point.panel, _label(language, point.row), point.series)))


def _point_value(point: Point) -> str:
    if point.value is None or point.low is None or point.high is None:
        return "-" if point.value is None else f"{point.value:.3f}"
    return f"{point.value:.3f} [{point.low:.3f}, {point.high:.3f}]"


def bars(
    title: Message, drawn: Mapping[Any, Mapping[Message, int]], folder: Path, language: str, styles: Any = PARTS
) -> tuple[Path, ...]:
    """A stacked bar of shares for each of ``drawn``, with labels and counts."""
    figure = _figure(7.7, 1.2 + 0.5 * len(drawn))
    axes, texts = figure.subplots(), []
    for place, (name, counts) in enumerate(drawn.items()):
        total, start = max(1, sum(counts.values())), 0.0
        labels = [f"{_label(language, part)} {count}" for part, count in counts.items()]
        texts.append(f"{_label(language, name)}: {', '.join(labels)}")
        for label, count, style in zip(labels, counts.values(), styles, strict=False):
            if count:
                axes.barh(place, count / total, left=start, edgecolor="black", height=0.6, **style)
                middle, box = start + count / total / 2, {"facecolor": "white", "pad": 1, "linewidth": 0}
                axes.text(middle, place, label, ha="center", va="center", fontsize=8, bbox=box)
                start += count / total
    axes.set_yticks(range(len(drawn)), [_label(language, name) for name in drawn], fontsize=9)
    axes.set(ylim=(len(drawn) - 0.5, -0.5), xlim=(0, 1))
    return _save(figure, title, texts, folder, "plot", language)


def confusions(
    title: Message, drawn: Mapping[str, Sequence[Sequence[int]]], labels: Sequence[str], folder: Path, language: str
) -> tuple[Path, ...]:
    """A confusion matrix for each judge: row shares as shades, counts as text."""
    figure = _figure(PANEL_INCHES * len(drawn), PANEL_INCHES)
    panels = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    for axes, (name, table) in zip(panels, drawn.items(), strict=True):
        shares = [[count / max(1, sum(row)) for count in row] for row in table]
        axes.imshow(shares, cmap="Greys", vmin=0, vmax=1)
        for row, counts in enumerate(table):
            for column, count in enumerate(counts):
                shade = "white" if shares[row][column] > 0.5 else "black"
                axes.text(column, row, str(count), ha="center", va="center", color=shade, fontsize=10)
        axes.set_title(name, fontsize=9)
        axes.set_xticks(range(len(labels)), labels, fontsize=8)
        axes.set_yticks(range(len(labels)), labels, fontsize=8)
        axes.set_xlabel(_label(language, Message("evaluation.plot.judged_as")))
    panels[0].set_ylabel(_label(language, Message("column.is")))
    return _save(figure, title, [f"{name}: {table}" for name, table in drawn.items()], folder, "confusion", language)


def _figure(width: float, height: float) -> Any:
    library = require()
    figure = library.figure.Figure(figsize=(width, height), layout="constrained")
    library.backends.backend_agg.FigureCanvasAgg(figure)
    return figure


def _save(
    figure: Any, title: Message, parts: Sequence[str], folder: Path, name: str, language: str
) -> tuple[Path, Path]:
    """Write ``name``.png and ``name``.svg; title and ``parts`` are the description for screen readers."""
    library, png, svg = require(), folder / f"{name}.png", folder / f"{name}.svg"
    figure.suptitle(_label(language, title), fontsize=11)
    text = f"{render(title, language)}. {'; '.join(parts)}"
    fonts = [*library.rcParams["font.family"], *filter(None, (_font(language),))]
    with library.rc_context({"svg.hashsalt": "localmed", "svg.fonttype": "none", "font.family": fonts}):
        figure.savefig(png, dpi=DOTS, metadata={"Description": text, "Software": None})
        figure.savefig(svg, metadata={"Description": text, "Date": None})
    return png, svg


def _label(language: str, label: Message | str) -> str:
    """A label in ``language``, or in English where this machine has no font for it."""
    spoken = language if language not in FONTS or _font(language) else FALLBACK
    return render(label, spoken) if isinstance(label, Message) else label


@cache
def _font(language: str) -> str:
    """An installed font for ``language``; "" where there is none or matplotlib's own suffices."""
    from matplotlib.font_manager import fontManager

    installed = {entry.name for entry in fontManager.ttflist}
    return next((name for name in FONTS.get(language, ()) if name in installed), "")
