"""Draws a prediction market: prices, dollars, gains, and what prices were worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from mesa_llm.text import one_line

if TYPE_CHECKING:
    from models.market.model import MarketModel

COLOURS = ("#2563eb", "#f97316", "#16a34a", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#db2777")

GREY, LIGHT = "#475569", "#e2e8f0"

DOLLARS = StrMethodFormatter("${x:,.0f}")

MOST_NAMED = 8
"""Up to so many questions, each path says whose it is."""

NAME_CHARACTERS = 34
"""Characters of a question that a legend shows."""


LINE_CHARACTERS = 48
"""Characters of all its names up to which a legend stands on one line."""


def sheet(title: str, *, width: float = 7.0, height: float = 3.9) -> tuple[Figure, Any]:
    """Give an empty plot over steps, in the manner of all plots here.

    Args:
        title: What it will show.
        width: In inches.
        height: In inches.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    axes: Any = figure.subplots()
    framed(axes, title)
    axes.set_xlabel("step", color=GREY)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure, axes


def framed(axes: Any, title: str) -> None:
    """Give axes a title, a light grid and no box."""
    axes.set_title(title, loc="left", fontsize=13, color=GREY)
    axes.grid(axis="y", color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=GREY, length=0)


def stacked(title: str, parts: Mapping[str, Sequence[float]], colours: Sequence[str] = COLOURS) -> Figure:
    """Draw how a sum of dollars is divided, step by step.

    Args:
        title: What is divided.
        parts: Name → dollars by step, from step 0.
        colours: Colours of the parts.
    """
    figure, axes = sheet(title)
    steps = len(next(iter(parts.values())))
    if steps == 1:  # an area needs two points
        parts = {name: [*dollars, *dollars] for name, dollars in parts.items()}
    across = range(max(steps, 2))
    axes.stackplot(across, *parts.values(), labels=list(parts), colors=list(colours), alpha=0.85)
    axes.set_xlim(0, max(steps - 1, 1))
    axes.yaxis.set_major_formatter(DOLLARS)
    legend_below(axes, len(parts))
    return figure


def legend_below(axes: Any, columns: int) -> None:
    """Put the legend under the plot, where it hides nothing."""
    is_wide = sum(len(label) for label in axes.get_legend_handles_labels()[1]) > LINE_CHARACTERS
    axes.legend(
        frameon=False,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.18),
        ncols=min(columns, 2) if is_wide else columns,
        fontsize=9,
        handlelength=1.3,
        columnspacing=1.2,
    )


def price_figure(model: MarketModel) -> Figure:
    """Draw the price of YES of every question, its answer, and (dotted) the chance that nobody sees."""
    figure, axes = sheet("Price of YES", height=4.6)
    axes.set_xlabel("step (dotted: the true chance; ●/○: answered yes/no)", color=GREY)
    last = 1
    for place, (market, fate) in enumerate(zip(model.world.ledger.markets.values(), model.fates, strict=True)):
        colour, path = COLOURS[place % len(COLOURS)], market.prices_yes
        last = max(last, len(path) - 1)
        name = one_line(fate.text, NAME_CHARACTERS) if len(model.fates) <= MOST_NAMED else None
        axes.plot(range(len(path)), path, color=colour, lw=2.4, marker="." if len(path) < 12 else "", label=name)
        axes.axhline(fate.chance, color=colour, lw=1, ls=":")
        if market.answer is not None:
            face = colour if market.answer == "yes" else "white"
            axes.plot(len(path) - 1, path[-1], "o", ms=11, color=colour, mfc=face, mew=2, zorder=4)
    axes.set_xlim(0, last * 1.03)
    axes.set_ylim(0, 1)
    if len(model.fates) <= MOST_NAMED:
        legend_below(axes, 2)
    return figure


def money_figure(model: MarketModel) -> Figure:
    """Draw where the dollars are: with traders, with the makers (who owe it for shares), and in fees."""
    table = model.datacollector.get_model_vars_dataframe()
    parts = {"traders": table["traders"], "makers, for shares": table["makers"], "fees": table["fees"]}
    return stacked(f"Where the dollars are: ${model.money:,.0f} in all", parts, (COLOURS[0], COLOURS[1], COLOURS[4]))


def gains_figure(model: MarketModel) -> Figure:
    """Draw what each trader has gained or lost, its shares counted at the shown prices."""
    figure, axes = sheet("Gained or lost since the start, in dollars", height=4.6)
    start = model.world.ledger.starting_cash
    ranked = sorted(model.agents, key=lambda trader: trader.wealth)
    gains = [trader.wealth - start for trader in ranked]
    colours = [COLOURS[2] if gain >= 0 else COLOURS[4] for gain in gains]
    axes.barh(range(len(ranked)), gains, color=colours)
    axes.set_yticks(range(len(ranked)), [trader.config.name for trader in ranked] if len(ranked) <= 30 else [])
    if len(ranked) > 30:
        axes.set_yticks([])
    axes.axvline(0, color=GREY, lw=1)
    axes.set_xlabel("")
    if not any(gains):
        axes.set_xlim(-100, 100)
    axes.grid(axis="x", color=LIGHT)
    axes.grid(visible=False, axis="y")
    return figure


def truth_figure(model: MarketModel) -> Figure:
    """Draw prices against true chances, with the Brier score of the answered questions."""
    told = f"; Brier score {model.brier:.3f}" if model.brier is not None else ""
    figure, axes = sheet(f"Last price against the true chance{told}")
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--")
    for place, (market, fate) in enumerate(zip(model.world.ledger.markets.values(), model.fates, strict=True)):
        price = market.prices_yes[-1] if market.answer else market.maker.price("yes")
        axes.plot(fate.chance, price, "o", ms=11, color=COLOURS[place % len(COLOURS)])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("true chance of yes, which nobody sees", color=GREY)
    axes.set_ylabel("price of YES", color=GREY)
    return figure
