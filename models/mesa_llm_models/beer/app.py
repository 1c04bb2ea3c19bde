"""The page of the beer game: `mesa-llm app models/mesa_llm_models/beer/app.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mesa_llm.charts import Chart, ChartSeries
from mesa_llm.viz import LLMPage, Measures, drawn_by
from mesa_llm_models.beer.model import BeerGame, Echelon


def weekly(title: str, cases_of: Callable[[Echelon], Sequence[int]]) -> Any:
    """Return a component that draws cases by week, a line for each position."""

    def draw(model: BeerGame) -> Chart:
        series: list[ChartSeries] = []
        for position in model.chain:
            cases = cases_of(position)
            weeks = list(map(float, range(1, len(cases) + 1)))
            series.append(ChartSeries(name=position.position, values=cases, at=weeks))
        return Chart(title=title, series=series, x="Week", y="cases", start=1, end=float(max(len(model.demands), 2)))

    return drawn_by(draw)


CHARTS = [weekly("Cases ordered", lambda one: one.orders), weekly("Stock less backlog", lambda one: one.stocks)]

page = LLMPage(BeerGame, components=[*CHARTS, Measures], name="Beer game")
