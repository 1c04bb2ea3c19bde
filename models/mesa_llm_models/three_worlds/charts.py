"""Charts of a town in three worlds: the market, the news that crossed, opinions, and money."""

from __future__ import annotations

from collections import Counter

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries, Panels
from mesa_llm.text import clip
from mesa_llm.viz.render import steps_of
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


def market_chart(model: ThreeWorldsModel) -> Panels:
    """Return the price of each question, and the chance that its measure suggests at the same time."""
    shocks = dict.fromkeys(time for time, event in model.bridge.log if event.source == "schedule")
    charts = [_claim_chart(model, claim, list(shocks)) for claim in model.claims.values()]
    return Panels(title="", charts=charts, columns=1)


def _claim_chart(model: ThreeWorldsModel, claim: Claim, shocks: list[float]) -> Chart:
    column, price, question = MEASURED[claim.measure]
    suggested = steps_of(model, column)
    suggested["values"] = [None if value is None else claim.chance(value) for value in suggested["values"]]
    series = [
        ChartSeries(name="suggested by what is measured now", colour=GREY, is_dashed=True, **suggested),
        ChartSeries(name="price of YES", colour=COLOURS[0], **steps_of(model, price)),
        ChartSeries(values=[None] * len(shocks), at=shocks, kind="moment", colour=KINDS["policy_change"]),
    ]
    note = "Dotted: a shock from outside." if shocks else ""
    return Chart(title=question.format(claim.threshold), series=series, high=1, note=note)


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


def opinion_chart(model: ThreeWorldsModel) -> Chart:
    """Return the position of each citizen and the mean, step by step."""
    table = model.datacollector.get_agent_vars_dataframe()["position"].unstack()
    series = [
        ChartSeries(
            values=path.tolist(),
            colour=COLOURS[3],
            is_faint=True,
            labels=[f"Citizen {agent_id}"] * len(path),
            agents=[agent_id],
        )
        for agent_id, path in table.items()
    ]
    series.append(ChartSeries(name="mean", values=table.mean(axis=1).tolist(), colour=COLOURS[3]))
    return Chart(title="What people think: against (-1) to for (1)", series=series, low=-1, high=1)


def money_chart(model: ThreeWorldsModel) -> Chart:
    """Return the money of the economy and of the market; none flows between them."""
    to_bet, earned = model.money
    owners = {
        "households": ("households_money", COLOURS[2]),
        "citizens, firms and town": ("accounts_money", COLOURS[0]),
        "citizens, to bet": ("betting_money", COLOURS[1]),
        "makers": ("makers_money", COLOURS[3]),
    }
    series = [
        ChartSeries(name=name, colour=colour, kind="area", **steps_of(model, measure))
        for name, (measure, colour) in owners.items()
    ]
    title = f"Dollars: {earned:,.0f} in the economy, {to_bet:,.0f} to bet"
    return Chart(title=title, series=series, is_stacked=True, unit="dollars")
