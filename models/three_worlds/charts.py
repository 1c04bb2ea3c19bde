"""Draws a town in three worlds: the market against what it bets on, the news that crossed, and what people think."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from models.market.charts import COLOURS, GREY, LIGHT, framed, legend_below, sheet, stacked
from models.three_worlds.claims import Claim

if TYPE_CHECKING:
    from models.three_worlds.model import ThreeWorldsModel

MEASURED = {
    "employment_rate": ("employment_rate", "work_price", "Will more than {:.0%} have work?"),
    "avg_price": ("average_price", "goods_price", "Will goods cost more than ${:g}?"),
    "opinion": ("mean_position", "opinion_price", "Will opinion be above {:g}?"),
}
"""Measure of a question → its column, that of its price, and the question in short."""

KINDS = {
    "viral_post": COLOURS[3],
    "price_move": COLOURS[0],
    "metric_change": COLOURS[2],
    "policy_change": COLOURS[4],
    "market_resolved": COLOURS[5],
    "news": COLOURS[1],
}
"""Colours of news by kind."""

ROWS = ("schedule", "economy", "market", "social")
"""Where news comes from, from below."""


def market_figure(model: ThreeWorldsModel) -> Figure:
    """Draw the price of each question, and the chance that the measured world suggests at that moment."""
    table = model.datacollector.get_model_vars_dataframe()
    figure = Figure(figsize=(7, 5.6), layout="constrained")
    shown: Any = figure.subplots(len(model.claims), 1, sharex=True)
    for axes, claim in zip(shown, model.claims.values(), strict=True):
        _draw_claim(axes, claim, table)
        for time in dict.fromkeys(time for time, event in model.bridge.log if event.source == "schedule"):
            axes.axvline(time, color=KINDS["policy_change"], lw=1.2, ls=":")
    shown[-1].set_xlabel("step (red: a shock from outside)", color=GREY)
    shown[-1].set_xlim(0, max(len(table) - 1, 1))
    shown[-1].xaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(shown[-1], 2)
    shown[-1].get_legend().set_bbox_to_anchor((0.5, -0.4))
    return figure


def _draw_claim(axes: Any, claim: Claim, table: Any) -> None:
    column, price, asked = MEASURED[claim.measure]
    suggested = [claim.chance(value) for value in table[column]]
    marker = "o" if len(table) < 12 else ""
    axes.plot(range(len(table)), suggested, color=GREY, lw=1.8, ls="--", label="suggested by what is measured now")
    axes.plot(range(len(table)), table[price], color=COLOURS[0], lw=2.6, ms=4, marker=marker, label="price of YES")
    framed(axes, asked.format(claim.threshold))
    axes.set_ylim(0, 1)


def news_figure(model: ThreeWorldsModel) -> Figure:
    """Draw the news that crossed: when, from which world, and how many heard of it while they looked elsewhere."""
    figure, axes = sheet("News over the bridge (larger: heard by more)", height=3.6)
    reached = Counter((one.time, one.event.kind, one.event.text) for one in model.bridge.deliveries)
    for kind, colour in KINDS.items():
        told = [(time, event) for time, event in model.bridge.log if event.kind == kind]
        news = [(time, event) for time, event in told if reached[time, kind, event.text]]
        if not news:
            continue
        heard = [reached[time, kind, event.text] for time, event in news]
        rows = [ROWS.index(event.source) if event.source in ROWS else 0 for _, event in news]
        sizes = [30 + 22 * number for number in heard]
        axes.scatter([time for time, _ in news], rows, s=sizes, color=colour, alpha=0.65, label=kind.replace("_", " "))
    axes.set_yticks(range(len(ROWS)), ROWS)
    axes.set_ylim(-0.6, len(ROWS) - 0.4)
    axes.set_xlim(0.5, max(model.now, 2) + 0.5)
    if reached:
        legend_below(axes, 4)
        for handle in axes.get_legend().legend_handles:
            handle.set_sizes([60])
    return figure


def opinion_figure(model: ThreeWorldsModel) -> Figure:
    """Draw what each citizen thinks, step by step, and the mean."""
    figure, axes = sheet("What people think: against (-1) to for (1)")
    table = model.datacollector.get_agent_vars_dataframe()["position"].unstack()
    marker = "o" if len(table) < 12 else ""
    axes.plot(range(len(table)), table.to_numpy(), color=COLOURS[3], lw=0.9, ms=3, marker=marker, alpha=0.45)
    axes.plot(range(len(table)), table.mean(axis=1), color=COLOURS[3], lw=3, marker=marker)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set_ylim(-1, 1)
    axes.set_xlim(0, max(len(table) - 1, 1))
    axes.grid(axis="x", color=LIGHT)
    return figure


def money_figure(model: ThreeWorldsModel) -> Figure:
    """Draw where the dollars of the economy and those to bet with are; none flow from one to the other."""
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
