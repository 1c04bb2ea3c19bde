"""The traders, and their rule twin: a careful bettor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from mesa_llm import LLMAgent, Mind, Observation, ToolCall
from mesa_llm_models.market.text import REMARKS, research_text
from mesa_llm_models.market.world import Ledger, MarketFacts, MarketView, Outcome, PredictionMarkets, floor_shares

KELLY_SHARE = 0.25
"""Share of the Kelly stake that the rule twin bets: it knows that it may be wrong."""

MARGIN = 0.03
"""Minimum difference of price and belief at which the rule twin bets."""

BLIND_DOLLARS = 100.0
"""Dollars that the rule twin bets under the original rules, where traders do not see their cash."""

STAKES = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0)
"""Dollars that the random baseline, and models that cannot count, choose from, as far as they have cash."""

SHARES = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0)
"""Shares that they choose from when they sell, as far as they have as many."""


class MarketTrader(LLMAgent):
    """A trader that bets on the answers of questions.

    Attributes:
        hints: Its own research: market → probability of yes.
        activity: Probability that the rule twin does anything when it is its turn.
    """

    def __init__(self, model: Any, hints: Mapping[str, float], activity: float = 0.8, **components: Any) -> None:
        """Create a trader.

        Args:
            model: The model.
            hints: Its own research: market → probability of yes.
            activity: Probability that the rule twin does anything when it is its turn.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.hints = dict(hints)
        self.activity = activity

    def observe(self) -> Observation:
        """Look at the markets, and at its own research."""
        seen = super().observe()
        facts: MarketFacts = seen.facts
        known = [view for view in facts.markets if view.is_open and view.market_id in self.hints]
        if known:
            seen = replace(seen, text=f"{seen.text}\n\n{research_text(known, self.hints)}")
        return with_choices(self, seen, self.model.world)

    @property
    def cash(self) -> float:
        """Cash of the trader, in dollars."""
        return self.model.world.ledger.portfolio(self.unique_id).cash

    @property
    def wealth(self) -> float:
        """Its cash, and its shares at the current prices, in dollars."""
        return self.model.wealth_of(self.unique_id)

    def rule(self, seen: Observation) -> ToolCall:
        """Bet on the question where price and research are farthest apart."""
        if self.random.random() >= self.activity:
            return ToolCall("do_nothing")
        return best_bet(seen.facts, self.hints, self.random) or ToolCall("do_nothing")


def best_bet(facts: MarketFacts, beliefs: Mapping[str, float], rng: Random, reach: float = 0.5) -> ToolCall | None:
    """Choose a bet on a market whose price is off by more than `MARGIN`, drawn in proportion to the difference.

    Shares of the other answer are sold first. If no price is off, the action is now and then a remark.

    Args:
        facts: The trader's observation.
        beliefs: Market → probability of yes.
        rng: Source of random draws.
        reach: Share of the way to the belief by which one bet may move a price.

    Returns:
        The action; None for no bet.
    """
    views = [view for view in facts.markets if view.is_open and view.market_id in beliefs]
    off = [view for view in views if abs(beliefs[view.market_id] - view.price_yes) > MARGIN]
    if not off:
        return _remark(rng.choice(views), beliefs, rng) if views and rng.random() < 0.1 else None
    view = rng.choices(off, [abs(beliefs[view.market_id] - view.price_yes) for view in off])[0]
    belief = beliefs[view.market_id]
    side: Outcome = "yes" if belief > view.price_yes else "no"
    other: Outcome = "no" if side == "yes" else "yes"
    owned = floor_shares(view.no_shares if side == "yes" else view.yes_shares)
    if owned > 0:
        return ToolCall("sell_shares", {"market_id": view.market_id, "outcome": other, "shares": owned})
    dollars = stake(view, side, belief if side == "yes" else 1 - belief, facts, reach)
    if dollars < 1:
        return None
    return ToolCall("buy_shares", {"market_id": view.market_id, "outcome": side, "amount": dollars})


def stake(view: MarketView, side: Outcome, belief: float, facts: MarketFacts, reach: float = 0.5) -> float:
    """Compute the size of a bet in dollars, to the cent: a share of the Kelly stake, less the value of shares owned.

    It moves the price by at most `reach` of the way to the belief. If neither cash nor quotes are shown, it is a fixed
    sum.

    Args:
        view: The market.
        side: The answer to bet on.
        belief: Probability that it is right.
        facts: The trader's observation.
        reach: Share of the way to the belief by which it may move the price.

    Source:
        Kelly (1956), A New Interpretation of Information Rate, Bell System Technical Journal 35(4).
    """
    price, quote, owned = (
        (view.price_yes, view.yes_quote, view.yes_shares)
        if side == "yes"
        else (view.price_no, view.no_quote, view.no_shares)
    )
    if facts.cash is None or not quote:
        return BLIND_DOLLARS
    kelly = (belief - price) / (1 - price) * KELLY_SHARE * facts.cash - owned * price if price < 1 else 0.0
    rise = 2 * (facts.quote_dollars / quote - price)  # roughly the move of the price by the quoted purchase
    all_the_way = facts.quote_dollars * (belief - price) / rise if rise > 0 else kelly
    return math.floor(max(min(kelly, all_the_way * reach), 0.0) * 100) / 100


def _remark(view: MarketView, beliefs: Mapping[str, float], rng: Random) -> ToolCall:
    belief = beliefs[view.market_id]
    side, probability = ("yes", belief) if belief >= 0.5 else ("no", 1 - belief)
    text = rng.choice(REMARKS).format(side=side, percent=round(probability * 100))
    return ToolCall("comment_on_market", {"market_id": view.market_id, "text": text})


def with_choices(trader: Mind, seen: Observation, world: PredictionMarkets) -> Observation:
    """Restrict an observation to the actions that are possible now, with a menu of sums for models that cannot count.

    Args:
        trader: The trader.
        seen: Its observation of the markets.
        world: The markets.
    """
    facts: MarketFacts = seen.facts
    seen = replace(seen, tools=possible_actions(facts))
    if not trader.opened.capabilities.needs_options:
        return seen
    rng = Random(f"{trader.model.run_seed} {trader.unique_id} {facts.step}")
    menu = with_menu(seen, world.ledger, rng)
    return with_all_purchases(menu, seen, world.ledger) if trader.opened.is_language_model else menu


def with_all_purchases(menu: Observation, seen: Observation, ledger: Ledger) -> Observation:
    """Extend a menu to purchases of both answers in all open markets, as the text names them all.

    The answer that can be sold stays the one of the menu.

    Args:
        menu: The observation with its menu.
        seen: The observation without it.
        ledger: The ledger, which knows the limits of a trade.
    """
    facts: MarketFacts = seen.facts
    sides = [side for view in facts.markets if view.is_open for side in _sides(view)]
    sums = tuple(
        dollars
        for dollars in STAKES
        if (facts.cash is None or dollars <= facts.cash)
        and all(ledger.is_within_limits("buy", market_id, outcome, dollars) for market_id, outcome, _ in sides)
    )
    if not sums or "buy_shares" not in (seen.tools or ()):
        return menu
    options = {name: values for name, values in menu.options.items() if name not in ("outcome", "amount")}
    options |= {name: values for name, values in seen.options.items() if name != "sell_shares.outcome"} | {
        "amount": sums
    }
    sold = {
        name: menu.options[name] for name in ("sell_shares.market_id", "sell_shares.outcome") if name in menu.options
    }
    readers = [name for name in seen.tools or () if name in (*(menu.tools or ()), "buy_shares")]
    return replace(menu, tools=tuple(readers), options=options | sold)


def with_menu(seen: Observation, ledger: Ledger, rng: Random) -> Observation:
    """Restrict the options to one answer of one market, and to sums that can be bought and sold of it.

    The answer is drawn: half of the time from those that the trader owns shares of, if any, else from all open ones.

    Args:
        seen: A trader's observation of the markets.
        ledger: The ledger, which knows the limits of a trade.
        rng: Source of the random draw.
    """
    facts: MarketFacts = seen.facts
    sides = [side for view in facts.markets if view.is_open for side in _sides(view)]
    if not sides:
        return seen
    owned = [side for side in sides if side[2] > 0]
    market_id, outcome, maximum = rng.choice(owned if owned and rng.random() < 0.5 else sides)
    sums = [dollars for dollars in STAKES if facts.cash is None or dollars <= facts.cash]
    parts = [*(shares for shares in SHARES if shares < maximum), *([maximum] if maximum > 0 else [])]
    choices = {
        "amount": tuple(option for option in sums if ledger.is_within_limits("buy", market_id, outcome, option)),
        "shares": tuple(option for option in parts if ledger.is_within_limits("sell", market_id, outcome, option)),
    }
    spare = {name for name, size in (("buy_shares", "amount"), ("sell_shares", "shares")) if not choices[size]}
    trades = dict.fromkeys((name for name in seen.options if name.endswith(".market_id")), (market_id,))
    return replace(
        seen,
        tools=tuple(name for name in seen.tools or () if name not in spare),
        options={
            **trades,
            "outcome": (outcome,),
            "sell_shares.outcome": (outcome,),
            **{name: values for name, values in choices.items() if values},
        },
    )


def _sides(view: MarketView) -> list[tuple[str, Outcome, float]]:
    """Return both answers of a market, with the shares owned of them, in whole hundredths."""
    return [
        (view.market_id, "yes", floor_shares(view.yes_shares)),
        (view.market_id, "no", floor_shares(view.no_shares)),
    ]


def possible_actions(facts: MarketFacts) -> tuple[str, ...]:
    """Return the names of the tools that can be used now: buying needs cash, selling shares, both an open market."""
    views = [view for view in facts.markets if view.is_open]
    names = ["browse_markets", "do_nothing"]
    if views:
        names.append("comment_on_market")
    if views and (facts.cash is None or facts.cash >= STAKES[0]):
        names.append("buy_shares")
    if any(max(view.yes_shares, view.no_shares) >= 0.01 for view in views):
        names.append("sell_shares")
    return tuple(names)
