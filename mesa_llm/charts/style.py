"""Style of Matplotlib figures: frames, legends, files."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import matplotlib.figure
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from mesa_llm.charts.palette import GREY, LIGHT

DOLLARS = FuncFormatter(lambda amount, _: f"${amount:,.2f}".removesuffix(".00").replace("$-", "−$"))
"""Formatter of an axis: with cents only where there are any."""

MAX_LINE = 48
"""Maximum number of characters in a one-line legend."""

LABELS_HEIGHT = 0.42
"""Height of the axis labels between plot and legend, in inches."""


class Figure(matplotlib.figure.Figure):
    """A Matplotlib figure that any notebook shows, even without Matplotlib's inline backend."""

    def _repr_png_(self) -> bytes:
        return picture_of(self)


def picture_of(figure: matplotlib.figure.Figure, kind: str = "png") -> bytes:
    """Return a figure as a file.

    Args:
        figure: The figure.
        kind: `png` or `svg`.
    """
    file = BytesIO()
    if figure.get_layout_engine() is None:
        figure.savefig(file, format=kind, bbox_inches="tight")
    elif kind == "png":
        FigureCanvasAgg(figure).print_png(file)  # savefig would draw it twice
    else:
        figure.savefig(file, format=kind)
    return file.getvalue()


def sheet(title: str, *, width: float = 7.0, height: float = 3.9) -> tuple[Figure, Any]:
    """Return an empty plot over steps.

    Args:
        title: Title of the plot.
        width: Width in inches.
        height: Height in inches.

    Returns:
        The figure and its axes.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Any = figure.subplots()
    frame(axes, title)
    axes.set_xlabel("step", color=GREY)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure, axes


def frame(axes: Any, title: str, *, legend: bool = False, fontsize: float | None = None) -> None:
    """Set a title, and remove needless parts of the frame.

    Args:
        axes: Matplotlib axes.
        title: Title of the plot.
        legend: Whether to put a legend between title and plot, where it covers nothing.
        fontsize: Size of its text; None: Matplotlib's own.
    """
    axes.set_title(title, loc="left", fontsize=13, color=GREY, pad=30 if legend else 10)
    tidy(axes)
    if legend:
        legend_above(axes, fontsize)


def tidy(axes: Any) -> None:
    """Remove needless parts of the frame: keep light horizontal lines, and no ticks.

    Args:
        axes: Matplotlib axes.
    """
    axes.grid(axis="y", color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=GREY, length=0)


def headline(figure: Figure, title: str) -> None:
    """Set a title over the whole figure, so that long axis labels cannot push it off the edge.

    Args:
        figure: The figure.
        title: Title of the plot.
    """
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, color=GREY)


def legend_above(axes: Any, fontsize: float | None = None) -> None:
    """Put the legend above the plot, in four columns.

    Args:
        axes: Matplotlib axes.
        fontsize: Size of its text; None: Matplotlib's own.
    """
    axes.legend(
        frameon=False,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=4,
        borderaxespad=0.2,
        fontsize=fontsize,
        handlelength=1.3,
        columnspacing=1.2,
    )


def legend_below(axes: Any, columns: int) -> None:
    """Put the legend below the plot, where it covers nothing.

    Args:
        axes: Matplotlib axes.
        columns: Maximum number of columns.
    """
    is_wide = sum(len(label) for label in axes.get_legend_handles_labels()[1]) > MAX_LINE
    axes.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=axes.transAxes + ScaledTranslation(0, -LABELS_HEIGHT, axes.figure.dpi_scale_trans),
        ncols=min(columns, 2) if is_wide else columns,
        fontsize=9,
        handlelength=1.3,
        columnspacing=1.2,
    )
