"""Plots on a page: a component for any figure, and a finish for Mesa's `make_plot_component`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import numpy as np
import solara
from matplotlib.figure import Figure
from mesa.visualization.utils import update_counter
from reacton import use_memo
from solara.core import component

from mesa_llm.model import LLMModel
from mesa_llm.viz.gate import steady

GREY = "#475569"

LEGIBLE = 1.3
"""How much larger text is than Matplotlib's, in relation to its plot: it has to be read from the last row."""

FEW = 12
"""Up to so many points, each is marked: a line of one point is invisible."""


def drawn_by(draw: Callable[[Any], Figure]) -> Callable[[Any], Any]:
    """Make a component that shows a model as a figure, drawn once after each step however often the page is.

    Args:
        draw: Draws the model, while it stands still.
    """

    @component
    def Drawing(model: Any) -> None:
        moment = update_counter.get()
        solara.Image(use_memo(lambda: _picture(draw, model), [model, moment]))

    return Drawing


def _picture(draw: Callable[[Any], Figure], model: LLMModel) -> bytes:
    with steady(model):
        figure = draw(model)
    enlarge(figure)
    file = BytesIO()
    figure.savefig(file, format="png", bbox_inches=None if figure.get_layout_engine() else "tight")
    return file.getvalue()


def enlarge(figure: Any) -> None:
    """Make all text larger in relation to its plot, which keeps its size on the screen.

    Args:
        figure: A Matplotlib figure.
    """
    figure.set_size_inches(figure.get_size_inches() / LEGIBLE)
    figure.set_dpi(LEGIBLE * figure.get_dpi())


def finish(title: str, *, labels: Mapping[str, str] | None = None, per_step: bool = False) -> Callable[[Any], None]:
    """Make a `post_process` for Mesa's `make_plot_component`.

    Args:
        title: What the plot shows.
        labels: Name of a measure → what the legend calls it.
        per_step: Show how much each measure rose in each step, instead of its value.
    """

    def finished(axes: Any) -> None:
        for line in axes.lines:
            if per_step:
                line.set_data(line.get_xdata()[1:], np.diff(line.get_ydata()))
            line.set_linewidth(2.2)
            line.set_marker("o" if len(line.get_xdata()) <= FEW else "")
            line.set_label((labels or {}).get(line.get_label(), line.get_label()))
        axes.relim()
        axes.autoscale()
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), high if high >= 1 else 1)
        if max((len(line.get_xdata()) for line in axes.lines), default=0) < 2:
            axes.set_xlim(-0.05, 1.05)
        is_crowded = axes.get_legend() is not None
        axes.set_title(title, loc="left", fontsize=13, color=GREY, pad=30 if is_crowded else 10)
        axes.set_ylabel("")
        axes.grid(axis="y", color="#e2e8f0")
        axes.set_axisbelow(True)
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(colors=GREY, length=0)
        if is_crowded:
            axes.legend(
                frameon=False,
                loc="lower left",
                bbox_to_anchor=(-0.02, 1.0),
                ncols=4,
                borderaxespad=0.2,
                handlelength=1.3,
                columnspacing=1.2,
            )
        axes.get_figure().set_size_inches(7, 3.6)
        enlarge(axes.get_figure())

    return finished
