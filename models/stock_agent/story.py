"""Says in words what happened on the exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesa_llm.text import counted, quoted
from mesa_llm.worlds.exchange import STOCKS, Exchange

if TYPE_CHECKING:
    from models.stock_agent.model import StockAgentModel

MOST_LINES = 12
"""Most sessions, and most other happenings, that are told."""


def tell(model: StockAgentModel) -> str:
    """Tell how each session went, who borrowed, who failed, who won and lost, and what is on the forum.

    Args:
        model: The model, after a run.
    """
    world = model.world
    lines = [*_sessions(world)[-MOST_LINES:], *_money(world)[-MOST_LINES:]]
    ranked = sorted(world.market.portfolios(), key=lambda holding: holding.profit)
    if ranked and world.history.closes:
        best, worst = ranked[-1], ranked[0]
        lines.append(
            f"Best of all stands trader {best.trader} ({best.style}) with a profit of {round(best.profit):,}, worst "
            f"trader {worst.trader} ({worst.style}) with {round(worst.profit):,}."
        )
    talk = [post for post in world.facts(min(world.market.accounts)).posts if post.author > 0]
    lines += [f"On the forum, trader {post.author}: {quoted(post.text, 110)}" for post in talk[:3]]
    return "\n".join(["What happened:", *(lines or ["Nobody has traded yet."])])


def _sessions(world: Exchange) -> list[str]:
    """Write a line for each session."""
    closes = world.history.closes
    lines: list[str] = []
    for place in range(0, len(closes), len(STOCKS)):
        both = closes[place : place + len(STOCKS)]
        told = ", ".join(
            f"{c.stock} {c.before:g} → {c.price:g} ({counted(c.fills, 'trade')}, {c.volume:,.0f} shares)" for c in both
        )
        lines.append(f"Day {both[0].day}, session {both[0].session}: {told}")
    return lines


def _money(world: Exchange) -> list[str]:
    """Write a line for each day's loans, and for each forced sale and leaving."""
    lent: dict[int, list[float]] = {}
    for loan in world.history.loans:
        lent.setdefault(loan.day, []).append(loan.principal)
    told = [(day, f"Day {day}: {len(sums)} loans of {sum(sums):,.0f} in all") for day, sums in lent.items()]
    told += [
        (one.day, f"Day {one.day}: trader {one.trader} {'is insolvent and leaves' if one.has_left else 'has to sell'}")
        for one in world.history.liquidations
    ]
    return [line for _, line in sorted(told, key=lambda pair: pair[0])]
