"""Figures of a prediction market: prices, dollars, gains, and the accuracy of prices."""

from __future__ import annotations

from matplotlib.ticker import MaxNLocator

from mesa_llm.text import one_line
from mesa_llm.viz.render import COLOURS, GREY, LIGHT, Figure, legend_below, literal, sheet, stacked
from mesa_llm_models.market.model import MarketModel

MAX_QUESTIONS = 8
"""Maximum number of questions that a legend names."""

MAX_TRADERS = 30
"""Maximum number of traders that are named."""

NAME_CHARACTERS = 34
"""Maximum number of characters of a question in a legend."""


def price_figure(model: MarketModel) -> Figure:
    """Draw the price of YES of every question, its answer, and (dotted) the chance that nobody sees."""
    figure, axes = sheet("Price of YES", height=4.6)
    axes.set_xlabel("step (dotted: the true chance; ●/○: answered yes/no)", color=GREY)
    last = 1
    for index, (market, fate) in enumerate(zip(model.world.ledger.markets.values(), model.fates, strict=True)):
        colour, path = COLOURS[index % len(COLOURS)], market.prices_yes
        last = max(last, len(path) - 1)
        name = literal(one_line(fate.text, NAME_CHARACTERS)) if len(model.fates) <= MAX_QUESTIONS else None
        axes.plot(range(len(path)), path, color=colour, lw=2.4, marker="." if len(path) < 12 else "", label=name)
        axes.axhline(fate.chance, color=colour, lw=1, ls=":")
        if market.answer is not None:
            face = colour if market.answer == "yes" else "white"
            axes.plot(len(path) - 1, path[-1], "o", ms=11, color=colour, mfc=face, mew=2, zorder=4)
    axes.set_xlim(0, last * 1.03)
    axes.set_ylim(0, 1)
    if len(model.fates) <= MAX_QUESTIONS:
        legend_below(axes, 2)
    return figure


def money_figure(model: MarketModel) -> Figure:
    """Draw the dollars of traders, of the makers (which back the shares) and of fees."""
    table = model.datacollector.get_model_vars_dataframe()
    parts = {"traders": table["traders"], "makers, for shares": table["makers"], "fees": table["fees"]}
    return stacked(f"Where the dollars are: ${model.money:,.0f} in all", parts, (COLOURS[0], COLOURS[1], COLOURS[4]))


def gains_figure(model: MarketModel) -> Figure:
    """Draw the gain or loss of each trader, its shares counted at the current prices."""
    figure, axes = sheet("Gained or lost since the start, in dollars", height=4.6)
    start = model.world.ledger.starting_cash
    ranked = sorted(model.agents, key=lambda trader: trader.wealth)
    gains = [trader.wealth - start for trader in ranked]
    colours = [COLOURS[2] if gain >= 0 else COLOURS[4] for gain in gains]
    axes.barh(range(len(ranked)), gains, color=colours)
    if len(ranked) <= MAX_TRADERS:
        axes.set_yticks(range(len(ranked)), [literal(trader.config.name) for trader in ranked])
    else:
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
    score = f"; Brier score {model.brier:.3f}" if model.brier is not None else ""
    figure, axes = sheet(f"Last price against the true chance{score}")
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--")
    for index, (market, fate) in enumerate(zip(model.world.ledger.markets.values(), model.fates, strict=True)):
        price = market.prices_yes[-1] if market.answer else market.maker.price("yes")
        axes.plot(fate.chance, price, "o", ms=11, color=COLOURS[index % len(COLOURS)])
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("true chance of yes, which nobody sees", color=GREY)
    axes.set_ylabel("price of YES", color=GREY)
    return figure
