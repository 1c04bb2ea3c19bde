"""Figures of a town in three worlds: the market, the news that crossed, opinions, and money."""

from __future__ import annotations

from collections import Counter
from typing import Any

from matplotlib.ticker import MaxNLocator

from mesa_llm.charts import (
    COLOURS,
    GREY,
    LIGHT,
    Chart,
    ChartSeries,
    Figure,
    frame,
    legend_below,
    marker,
    sheet,
    stacked,
)
from mesa_llm.text import clip
from mesa_llm_models.three_worlds.agents import Claim
from mesa_llm_models.three_worlds.model import ThreeWorldsModel

MEASURED = {
    "employment_rate": ("employment_rate", "work_price", "Will more than {:.0%} have work?"),
    "avg_price": ("average_price", "goods_price", "Will goods cost more than ${:g}?"),
    "opinion": ("mean_position", "opinion_price", "Will opinion be above {:g}?"),
}
"""Measure of a question → its column, the column of its price, and a short form of the question."""

KINDS = {
    "viral_post": COLOURS[3],
    "price_move": COLOURS[0],
    "metric_change": COLOURS[2],
    "policy_change": COLOURS[4],
    "market_resolved": COLOURS[5],
    "news": COLOURS[1],
}
"""Kind of news → its colour."""

MAX_NEWS = 90
"""Maximum number of characters of a piece of news in a chart."""


def market_figure(model: ThreeWorldsModel) -> Figure:
    """Draw the price of each question, and the chance that its measure suggests at the same time."""
    table = model.datacollector.get_model_vars_dataframe()
    figure = Figure(figsize=(7, 5.6), layout="constrained")
    plots: Any = figure.subplots(len(model.claims), 1, sharex=True)
    for axes, claim in zip(plots, model.claims.values(), strict=True):
        _draw_claim(axes, claim, table)
        for time in dict.fromkeys(time for time, event in model.bridge.log if event.source == "schedule"):
            axes.axvline(time, color=KINDS["policy_change"], lw=1.2, ls=":")
    plots[-1].set_xlabel("step (red: a shock from outside)", color=GREY)
    plots[-1].set_xlim(0, max(len(table) - 1, 1))
    plots[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(plots[-1], 2)
    plots[-1].get_legend().set_bbox_to_anchor((0.5, -0.4))
    return figure


def _draw_claim(axes: Any, claim: Claim, table: Any) -> None:
    column, price, question = MEASURED[claim.measure]
    suggested = [claim.chance(value) for value in table[column]]
    axes.plot(range(len(table)), suggested, color=GREY, lw=1.8, ls="--", label="suggested by what is measured now")
    axes.plot(
        range(len(table)), table[price], color=COLOURS[0], lw=2.6, ms=4, marker=marker(table), label="price of YES"
    )
    frame(axes, question.format(claim.threshold))
    axes.set_ylim(0, 1)


def news_chart(model: ThreeWorldsModel) -> Chart:
    """Return the news that crossed: its step, kind, and number of citizens who heard of it from another world."""
    readers = Counter((delivery.time, delivery.event.kind, delivery.event.text) for delivery in model.bridge.deliveries)
    series: list[ChartSeries] = []
    for kind, colour in KINDS.items():
        events = [(time, event) for time, event in model.bridge.log if event.kind == kind]
        news = [(time, event, n) for time, event in events if (n := readers[time, kind, event.text])]
        if news:
            series.append(
                ChartSeries(
                    name=kind.replace("_", " "),
                    values=[float(n) for _, _, n in news],
                    at=[float(time) for time, _, _ in news],
                    kind="point",
                    colour=colour,
                    labels=[f"Step {time:g}, {event.source}: {clip(event.text, MAX_NEWS)}" for time, event, _ in news],
                )
            )
    return Chart(
        title="News from another world",
        series=series,
        y="citizens who heard of it",
        start=0,
        end=float(max(model.now, 2)),
        note="" if series else "Nothing has crossed yet.",
    )


def opinion_figure(model: ThreeWorldsModel) -> Figure:
    """Draw the position of each citizen and the mean, step by step."""
    figure, axes = sheet("What people think: against (-1) to for (1)")
    table = model.datacollector.get_agent_vars_dataframe()["position"].unstack()
    axes.plot(range(len(table)), table.to_numpy(), color=COLOURS[3], lw=0.9, ms=3, marker=marker(table), alpha=0.45)
    axes.plot(range(len(table)), table.mean(axis=1), color=COLOURS[3], lw=3, marker=marker(table))
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_ylim(-1, 1)
    axes.set_xlim(0, max(len(table) - 1, 1))
    axes.grid(axis="x", color=LIGHT)
    return figure


def money_figure(model: ThreeWorldsModel) -> Figure:
    """Draw the money of the economy and of the market; none flows between them."""
    to_bet, earned = model.money
    table = model.datacollector.get_model_vars_dataframe()
    parts = {
        "households": table["households_money"],
        "citizens, firms and town": table["accounts_money"],
        "citizens, to bet": table["betting_money"],
        "makers": table["makers_money"],
    }
    title = f"Dollars: {earned:,.0f} in the economy, {to_bet:,.0f} to bet"
    return stacked(title, parts, COLOURS[2:3] + COLOURS[:2] + COLOURS[3:4])
