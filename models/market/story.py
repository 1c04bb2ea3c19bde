"""Says in words what happened in the prediction market."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mesa_llm.text import quoted

if TYPE_CHECKING:
    from models.market.model import MarketModel

MOST_LINES = 8
"""Most trades and remarks that are told."""


def tell(model: MarketModel) -> str:
    """Tell what was bet and said, how prices moved, who gained, and what the prices were worth.

    Args:
        model: The model, after a run.
    """
    ledger, names = model.world.ledger, model.world.names
    lines = [
        f"Step {trade.step}: {names[trade.actor]} {'buys' if trade.side == 'buy' else 'sells'} {trade.shares:.1f} "
        f"{trade.outcome.upper()} of [{trade.market_id}] for ${trade.dollars:.2f}; YES is at ${trade.price_yes:.2f}."
        for trade in ledger.trades[-MOST_LINES:]
    ]
    said = [comment for comments in ledger.comments.values() for comment in comments]
    lines += [f"Step {c.step}: {names[c.actor]} on [{c.market_id}]: {quoted(c.text, 110)}" for c in said[-MOST_LINES:]]
    for market, fate in zip(ledger.markets.values(), model.fates, strict=True):
        path = market.prices_yes
        answer = f"Answer: {market.answer}." if market.answer else "Not answered yet."
        lines.append(f"{market.question.text} YES went from ${path[0]:.2f} to ${path[-1]:.2f}. {answer}")
        lines[-1] += f" (Its chance was {fate.chance:.0%}.)" if market.answer else ""
    ranked = sorted(model.agents, key=lambda trader: -trader.wealth)
    if ranked:
        best, worst = ranked[0], ranked[-1]
        lines.append(
            f"{best.config.name} stands best with ${best.wealth:.2f}, "
            f"{worst.config.name} worst with ${worst.wealth:.2f}."
        )
    if forecasts := model.forecasts():
        lines.append(
            f"Brier score of the prices on {len(forecasts)} questions: {model.scores().brier:.3f}; of single traders' "
            f"own research: {model.hint_scores().brier:.3f} (0 is best, 0.25 is a coin)."
        )
    return "\n".join(["What happened:", *lines])
