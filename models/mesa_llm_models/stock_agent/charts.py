"""Figures of an exchange: price paths, order books, trading, and profits."""

from __future__ import annotations

from typing import Any

from matplotlib.ticker import FuncFormatter, MaxNLocator, StrMethodFormatter

from mesa_llm.viz import Figure
from mesa_llm.worlds.exchange import STOCKS, STYLES, Exchange, Side, Stock

STOCK_COLOURS: dict[Stock, str] = {"A": "#2563eb", "B": "#f97316"}

BUY, SELL = "#16a34a", "#dc2626"
"""Colours of bids and offers."""

STYLE_COLOURS = dict(zip(STYLES, ("#0ea5e9", "#dc2626", "#64748b", "#16a34a"), strict=True))

GREY, LIGHT = "#475569", "#e2e8f0"

THOUSANDS = StrMethodFormatter("{x:,.0f}")

BOOK_REACH = 0.12
"""Maximum distance of displayed orders from the latest price, as a share of it."""

MAX_NAMED = 30
"""Maximum number of traders for which each bar has its trader's name."""


def price_figure(world: Exchange) -> Figure:
    """Draw the session prices of both stocks over the days."""
    figure, axes = _sheet("Price per share", "day", world)
    sessions = world.calendar.sessions
    for stock in STOCKS:
        path = world.market.paths[stock]
        days = [index / sessions for index in range(len(path))]
        axes.plot(days, path, color=STOCK_COLOURS[stock], lw=2.4, marker="o" if len(path) <= 40 else "", ms=4)
        label = f"  {stock} {path[-1]:.4g}"
        axes.annotate(label, (days[-1], path[-1]), color=STOCK_COLOURS[stock], va="center", fontsize=13, weight="bold")
    first_day = max(1, -(-(len(world.market.paths["A"]) - 1) // sessions))
    axes.set_xlim(0, first_day * 1.12)
    axes.set_xticks(range(0, first_day + 1, max(1, first_day // 10)))
    return figure


def book_figure(world: Exchange) -> Figure:
    """Draw the order books: shares bid for and offered at each price near the latest."""
    figure = Figure(figsize=(7, 4.4), layout="constrained")
    for axes, stock in zip(figure.subplots(1, len(STOCKS)), STOCKS, strict=True):
        _draw_book(axes, world, stock)
    return figure


def _draw_book(axes: Any, world: Exchange, stock: Stock) -> None:
    """Draw one book: bids to the left, offers to the right, each at its price."""
    latest, depth = world.market.prices[stock], world.market.depth(stock)
    reach = BOOK_REACH * latest
    widest = 1.0
    sides: tuple[tuple[Side, int, str], ...] = (("buy", -1, BUY), ("sell", 1, SELL))
    for side, direction, colour in sides:
        quotes = [quote for quote in depth[side] if quote.quantity and abs(quote.price - latest) <= reach]
        shares = [quote.quantity for quote in quotes]
        axes.barh(
            [quote.price for quote in quotes],
            [direction * quantity for quantity in shares],
            height=reach / 40,
            color=colour,
        )
        widest = max(widest, *shares) if shares else widest
    axes.set_xlim(-1.1 * widest, 1.1 * widest)
    axes.set_ylim(latest - reach, latest + reach)
    axes.axvline(0, color=GREY, lw=1)
    axes.axhline(latest, color=GREY, lw=1, ls="--")
    axes.set_title(f"Book of {stock}, latest price {latest:g}", loc="left", fontsize=13, color=GREY)
    axes.text(0.02, 0.02, "bids", color=BUY, transform=axes.transAxes, fontsize=13, weight="bold")
    axes.text(0.98, 0.02, "offers", color=SELL, transform=axes.transAxes, fontsize=13, weight="bold", ha="right")
    axes.set_xlabel("shares", color=GREY)
    _plain(axes, grid="y")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda shares, _: f"{abs(shares):,.0f}"))
    if not any(depth.values()):
        note = "no orders\n(the book is emptied\nevery morning)"
        axes.text(0.5, 0.6, note, ha="center", transform=axes.transAxes, backgroundcolor="white", color=GREY)
        axes.set_xticks([])


def trading_figure(world: Exchange) -> Figure:
    """Draw the shares traded in each session."""
    figure, axes = _sheet("Shares traded in each session", "day", world)
    sessions = world.calendar.sessions
    for index, stock in enumerate(STOCKS):
        closes = [close for close in world.history.closes if close.stock == stock]
        days = [(session + (0.3 if index == 0 else 0.7)) / sessions for session in range(len(closes))]
        volumes = [close.volume for close in closes]
        axes.bar(days, volumes, width=0.36 / sessions, color=STOCK_COLOURS[stock], label=stock if days else None)
    first_day = max(1, -(-len(world.history.closes) // len(STOCKS) // sessions))
    axes.set_xlim(0, first_day)
    axes.set_ylim(0, 1.2 * max((close.volume for close in world.history.closes), default=0) or 1000)
    axes.yaxis.set_major_formatter(THOUSANDS)
    axes.set_xticks(range(0, first_day + 1, max(1, first_day // 10)))
    if world.history.closes:
        axes.legend(frameon=False, loc="upper right", ncols=2)
    return figure


def profit_figure(world: Exchange) -> Figure:
    """Draw the profit of every remaining trader, best first, coloured by style."""
    figure, axes = _sheet("Profit, debts deducted", "", world)
    ranked = sorted(world.market.portfolios(), key=lambda holding: -holding.profit)
    for style, colour in STYLE_COLOURS.items():
        bars = [(index, account.profit) for index, account in enumerate(ranked) if account.style == style]
        if bars:
            axes.bar(*zip(*bars, strict=True), color=colour, label=style, width=0.8)
    axes.axhline(0, color=GREY, lw=1)
    if len(ranked) <= MAX_NAMED:
        axes.set_xticks(range(len(ranked)), [str(account.trader) for account in ranked])
    else:
        axes.set_xticks([])
    axes.set_xlabel("trader", color=GREY)
    figure.legend(frameon=False, loc="outside lower center", ncols=4, fontsize=9)
    axes.margins(y=0.1)
    if not any(account.profit for account in ranked):
        axes.set_ylim(-1000, 1000)
    axes.yaxis.set_major_formatter(THOUSANDS)
    return figure


def _sheet(title: str, xlabel: str, world: Exchange) -> tuple[Figure, Any]:
    """Return an empty plot with the current day and stage in its title."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes: Any = figure.subplots()
    axes.set_title(title, loc="left", fontsize=13, color=GREY)
    axes.set_title(moment_text(world), loc="right", fontsize=11, color=GREY)
    axes.set_xlabel(xlabel, color=GREY)
    _plain(axes, grid="y")
    return figure, axes


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


def _plain(axes: Any, grid: str) -> None:
    axes.grid(axis=grid, color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(colors=GREY, length=0)
    axes.ticklabel_format(style="plain", useOffset=False)
