"""Says in words what crossed between the worlds of the town."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mesa_llm.bridge import wording
from models.three_worlds.crossings import is_worth_telling

if TYPE_CHECKING:
    from models.three_worlds.model import ThreeWorldsModel

MOST_LINES = 14
"""Most pieces of news that are told."""


def tell(model: ThreeWorldsModel) -> str:
    """Tell the news and how many heard it, the market's questions, and what people think.

    Args:
        model: The model, after a run.
    """
    reached = Counter((delivery.time, delivery.event.text) for delivery in model.bridge.deliveries)
    lines = [
        f"Step {time}, {event.source}: {event.text or wording(event)} (heard by {reached[time, event.text]})"
        for time, event in [one for one in model.bridge.log if is_worth_telling(one[1])][-MOST_LINES:]
    ]
    for market_id in model.claims:
        market = model.market.ledger.markets[market_id]
        answer = f"Answer: {market.answer}." if market.answer else "Not answered yet."
        path = market.prices_yes
        lines.append(f"{market.question.text} YES went from ${path[0]:.2f} to ${path[-1]:.2f}. {answer}")
    lines += [
        f"{model.employment_rate:.0%} of people have work, and goods cost ${model.average_price:.2f}.",
        f"On “{model.topic}” people stand at {model.mean_position:+.2f} on average (-1 against, 1 for).",
        f"{model.posts} posts, {model.talk} of them about the market or the economy; {model.trades} trades; "
        f"{model.crossings.n_reports} reports of the paper, {model.crossings.n_bets} bets of the crowd; "
        f"{model.heard} times somebody heard news of a world they were not looking at.",
    ]
    return "\n".join(["What happened:", *lines])
