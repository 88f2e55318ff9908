"""The ablation as a picture: one panel a measure, a point with its interval for each variant. Drawn without a window.

Readable without colour: with the reranker a filled square, without it a hollow circle; every row is labelled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localmed.errors import ModelError
from localmed.evaluation.measures import INSTALL, MEASURES
from localmed.evaluation.report import Report, alternative

INCHES = (11.0, 3.4)
DOTS = 150  # an inch, of the PNG: 1650 x 510 pixels


def require() -> Any:
    """The library; raise ``ModelError`` if it is not installed."""
    try:
        import matplotlib as mpl
        import matplotlib.backends.backend_agg
        import matplotlib.backends.backend_svg
        import matplotlib.figure
    except ImportError:
        raise ModelError("the plot needs the package matplotlib, which is not installed", INSTALL) from None
    return mpl


def draw(found: Report, folder: Path) -> tuple[Path, ...]:
    """Write ``plot.png`` and ``plot.svg`` into ``folder``; equal reports give equal files."""
    library = require()
    figure = library.figure.Figure(figsize=INCHES, layout="constrained")
    library.backends.backend_agg.FigureCanvasAgg(figure)
    for number, (measure, axes) in enumerate(
        zip(MEASURES, figure.subplots(1, len(MEASURES), sharey=True), strict=True)
    ):
        _panel(axes, found, measure, labelled=number == 0)
    figure.suptitle(f"{found.set}, {found.questions} questions: means and 95 % bootstrap intervals", fontsize=11)
    png, svg = folder / "plot.png", folder / "plot.svg"
    figure.savefig(png, dpi=DOTS, metadata={"Description": alternative(found), "Software": None})
    with library.rc_context({"svg.hashsalt": "localmed", "svg.fonttype": "none"}):
        figure.savefig(svg, metadata={"Description": alternative(found), "Date": None})
    return png, svg


def _panel(axes: Any, found: Report, measure: str, labelled: bool) -> None:
    for place, row in enumerate(found.rows):
        each = row.measures[measure]
        reranked = row.variant.endswith("+rerank")
        spread = [[max(0.0, each.value - each.low)], [max(0.0, each.high - each.value)]]
        axes.errorbar(
            each.value, place, xerr=spread, fmt="s" if reranked else "o", color="black", capsize=3, markersize=6,
            markerfacecolor="black" if reranked else "white",
        )  # fmt: skip
    axes.set_title(measure, fontsize=10)
    axes.set_yticks(range(len(found.rows)), [row.variant for row in found.rows])
    axes.set_ylim(len(found.rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=3 if labelled else 0)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="x", color="0.85", linewidth=0.6)
    axes.set_axisbelow(True)
