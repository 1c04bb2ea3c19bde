"""Charts of a prediction market: prices, dollars, gains, and the accuracy of prices."""

from __future__ import annotations

from typing import Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm.viz.render import option_label, steps_of
from mesa_llm.viz.session.session import human_queues
from mesa_llm_models.market.model import MarketModel


def price_chart(model: MarketModel) -> Chart:
    """Return the price of YES of every question, and (dashed) the chance that no trader sees.

    Where a person plays, chances are left out, as a trader must not know them.
    """
    is_played = bool(human_queues(model))
    prices: list[ChartSeries] = []
    chances: list[ChartSeries] = []
    for index, (market, fate) in enumerate(zip(model.world.ledger.markets.values(), model.fates, strict=True)):
        colour, path = COLOURS[index % len(COLOURS)], market.prices_yes
        answer = f" ({market.answer})" if market.answer is not None else ""
        prices.append(ChartSeries(name=f"{fate.text}{answer}", colour=colour, values=list(path)))
        if not is_played:
            last = float(max(1, len(path) - 1))
            chances.append(ChartSeries(values=[fate.chance] * 2, at=[0.0, last], colour=colour, is_dashed=True))
    note = "" if is_played else "Dashed: the true chance of yes, which no trader sees."
    return Chart(title="Price of YES", series=[*prices, *chances], y="dollars", low=0, high=1, note=note)


def money_chart(model: MarketModel) -> Chart:
    """Return the dollars of traders, of the makers (which back the shares) and of fees, stacked over steps."""
    parts = {"traders": COLOURS[0], "makers": COLOURS[1], "fees": COLOURS[4]}
    names = {"makers": "makers, for shares"}
    series = [
        ChartSeries(name=names.get(part, part), kind="area", colour=colour, **steps_of(model, part))
        for part, colour in parts.items()
    ]
    return Chart(title=f"Where the ${model.money:,.0f} are", series=series, is_stacked=True, unit="dollars")


def gains_chart(model: MarketModel) -> Chart:
    """Return the gain or loss of each trader, its shares counted at the current prices, the best first."""
    start = model.world.ledger.starting_cash
    ranked = sorted(model.agents, key=lambda trader: -trader.wealth)
    gains = [trader.wealth - start for trader in ranked]
    bars = ChartSeries(
        values=gains,
        kind="bar",
        colours=[COLOURS[0] if gain >= 0 else COLOURS[1] for gain in gains],
        agents=[trader.unique_id for trader in ranked],
    )
    names = [trader.config.name or option_label(trader) for trader in ranked]
    look: dict[str, Any] = {"names": names, "is_horizontal": True, "x": ""}
    reach: dict[str, Any] = {} if any(gains) else {"low": -100.0, "high": 100.0}
    return Chart(title="Gained or lost since the start", series=[bars], unit="dollars", **look, **reach)


def truth_chart(model: MarketModel) -> Chart:
    """Return the prices against the true chances, with the Brier score of the answered questions.

    Where a person plays, only the answered questions are in it.
    """
    is_played = bool(human_queues(model))
    score = f"; Brier score {model.brier:.3f}" if model.brier is not None else ""
    drawn: list[tuple[float, float, str, str]] = []
    for index, (market, fate) in enumerate(zip(model.world.ledger.markets.values(), model.fates, strict=True)):
        if market.answer is None and is_played:
            continue
        price = market.prices_yes[-1] if market.answer else market.maker.price("yes")
        drawn.append((fate.chance, price, fate.text, COLOURS[index % len(COLOURS)]))
    chances, prices, texts, colours = zip(*drawn, strict=True) if drawn else ((),) * 4
    points = ChartSeries(values=prices, at=chances, kind="point", labels=texts, colours=colours)
    even = ChartSeries(values=[0.0, 1.0], at=[0.0, 1.0], colour=GREY, is_dashed=True)
    look: dict[str, Any] = {
        "x": "True chance of yes, which no trader sees",
        "y": "price of YES, dollars",
        "low": 0,
        "high": 1,
    }
    note = "Chances of questions that are still open are not shown while a person plays." if is_played else ""
    return Chart(
        title=f"Last price against the true chance{score}", series=[even, points], start=0, end=1, note=note, **look
    )
