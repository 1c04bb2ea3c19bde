"""Charts of an exchange: price paths, order books, trading, and profits."""

from __future__ import annotations

from typing import Any

from mesa_llm.charts import COLOURS, Chart, ChartSeries
from mesa_llm_models.stock_agent.world import STOCKS, STYLES, Exchange, Side, Stock

STOCK_COLOURS: dict[Stock, str] = {"A": COLOURS[0], "B": COLOURS[1]}

BID, OFFER = COLOURS[5], COLOURS[6]
"""Colours of bids and offers: neither is better than the other."""

STYLE_COLOURS = dict(zip(STYLES, (COLOURS[0], COLOURS[1], COLOURS[7], COLOURS[2]), strict=True))

BOOK_REACH = 0.12
"""Maximum distance of displayed orders from the latest price, as a share of it."""

MAX_LEVELS = 12
"""Maximum number of prices on each side of a displayed book."""


def price_chart(world: Exchange) -> Chart:
    """Return the session prices of both stocks over the days."""
    sessions = world.calendar.sessions
    series = [
        ChartSeries(
            name=f"{stock}, now {path[-1]:.4g}",
            values=list(path),
            at=[index / sessions for index in range(len(path))],
            colour=STOCK_COLOURS[stock],
        )
        for stock in STOCKS
        for path in (world.market.paths[stock],)
    ]
    return Chart(title="Price per share", series=series, x="Day", y="price", note=_now(world))


def book_chart(world: Exchange, stock: Stock) -> Chart:
    """Return an order book: shares bid for and offered at each price near the latest, the highest at the top.

    Args:
        world: The exchange.
        stock: The stock.
    """
    latest, depth = world.market.prices[stock], world.market.depth(stock)
    sides: dict[str, dict[float, float]] = {}
    order: tuple[tuple[Side, bool], ...] = (("sell", False), ("buy", True))
    for side, highest_first in order:
        quotes = [quote for quote in depth[side] if quote.quantity and abs(quote.price - latest) <= BOOK_REACH * latest]
        ranked = sorted(quotes, key=lambda quote: quote.price, reverse=highest_first)[:MAX_LEVELS]
        sides[side] = {quote.price: quote.quantity for quote in ranked}
    prices = sorted({*sides["sell"], *sides["buy"]}, reverse=True)
    series = [
        ChartSeries(
            name=name,
            values=list(sides[side].values()),
            at=[prices.index(price) for price in sides[side]],
            kind="bar",
            colour=colour,
        )
        for side, name, colour in (("sell", "offered", OFFER), ("buy", "bid for", BID))
    ]
    note = "" if prices else "No orders: the book is emptied every morning."
    look: dict[str, Any] = {"names": [f"{price:g}" for price in prices], "is_horizontal": True, "x": ""}
    title = f"Order book of {stock}, latest price {latest:g}"
    return Chart(title=title, series=series, y="shares", note=note, is_stacked=True, **look)


def trading_chart(world: Exchange) -> Chart:
    """Return the shares traded in each session."""
    sessions = world.calendar.sessions
    volumes = {stock: [close.volume for close in world.history.closes if close.stock == stock] for stock in STOCKS}
    series = [
        ChartSeries(name=stock, values=volumes[stock], kind="bar", colour=STOCK_COLOURS[stock]) for stock in STOCKS
    ]
    places = [divmod(index, sessions) for index in range(len(volumes["A"]))]
    names = [f"day {day + 1}" + (f", {session + 1}" if sessions > 1 else "") for day, session in places]
    return Chart(title="Shares traded in each session", series=series, names=names, x="Session", y="shares")


def profit_chart(world: Exchange) -> Chart:
    """Return the profit of every remaining trader, best first, coloured by style."""
    ranked = sorted(world.market.portfolios(), key=lambda holding: -holding.profit)
    series = [
        ChartSeries(
            name=style,
            values=[each.profit for _, each in own],
            at=[float(index) for index, _ in own],
            kind="bar",
            colour=colour,
            agents=[each.trader for _, each in own],
        )
        for style, colour in STYLE_COLOURS.items()
        if (own := [(index, each) for index, each in enumerate(ranked) if each.style == style])
    ]
    names = [f"Trader {each.trader}" for each in ranked]
    reach: dict[str, Any] = {} if any(each.profit for each in ranked) else {"low": -1000.0, "high": 1000.0}
    look: dict[str, Any] = {"names": names, "is_horizontal": True, "is_stacked": True, "x": "", "y": "profit"}
    return Chart(title="Profit of each trader, debts deducted", series=series, **look, **reach)


def _now(world: Exchange) -> str:
    return f"Now: {moment_text(world)}."


def moment_text(world: Exchange) -> str:
    """Describe the next stage."""
    day, stage, session = world.now
    match stage:
        case "closed":
            return "closed"
        case "loan":
            return f"day {day}: loans are next"
        case "trade":
            return f"day {day}: session {session} is next"
        case "estimate":
            return f"day {day}: forecasts are next"
        case "post":
            return f"day {day}: posts are next"
