"""The page of the beer game: `mesa-llm app models/mesa_llm_models/beer/app.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from mesa_llm.viz import LLMPage, Measures, drawn_by
from mesa_llm.viz.render import COLOURS, Figure, legend_below, marker, sheet
from mesa_llm_models.beer.model import BeerGame, Echelon


def weekly(title: str, cases_of: Callable[[Echelon], Sequence[int]]) -> Any:
    """Return a component that draws cases by week, a line for each position."""

    def draw(model: BeerGame) -> Figure:
        figure, axes = sheet(title)
        for position, colour in zip(model.chain, COLOURS, strict=False):
            cases = cases_of(position)
            weeks = range(1, len(cases) + 1)
            axes.plot(weeks, cases, color=colour, lw=2, marker=marker(weeks), label=position.config.name)
        axes.set(xlabel="week", xlim=(0.9, max(len(model.demands), 2) + 0.1))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        legend_below(axes, len(model.chain))
        return figure

    return drawn_by(draw)


FIGURES = [weekly("Cases ordered", lambda one: one.orders), weekly("Stock less backlog, cases", lambda one: one.stocks)]

page = LLMPage(BeerGame, components=[*FIGURES, Measures], name="Beer game")
