"""The traders, and their rule twin: a careful bettor."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from random import Random
from typing import Any

from mesa_llm import LLMAgent, Mind, Observation, ToolCall
from mesa_llm.worlds.market import MarketFacts, MarketView, Outcome, PredictionMarkets
from mesa_llm.worlds.market.ledger import Ledger
from mesa_llm.worlds.market.views import floor_shares

KELLY_PART = 0.25
"""Part of the Kelly stake that the rule twin bets: it knows that it may be wrong."""

MARGIN = 0.03
"""Difference of price and belief from which on a bet is worth its trouble."""

BLIND_DOLLARS = 100.0
"""What the rule twin bets under the original rules, where traders do not see their cash."""

STAKES = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0)
"""Dollars that the random baseline, and whoever is held to a choice, can bet; as far as there is cash."""

SHARES = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0)
"""Shares that they can sell; as far as they hold so many of something."""

REMARKS = (
    "I would put {side} at {percent} percent.",
    "From what I know, {percent} percent for {side} is nearer the mark.",
    "Who is betting against {side} here? My number is {percent} percent.",
)
"""What the rule twin writes about a question."""


class Trader(LLMAgent):
    """Somebody who bets on the answers of questions.

    Attributes:
        hints: What its own research says: market → probability of yes.
        activity: Probability that the rule twin does anything when it is its turn.
    """

    def __init__(self, model: Any, hints: Mapping[str, float], activity: float = 0.8, **components: Any) -> None:
        """Give a trader what it knows.

        Args:
            model: The model.
            hints: Market → probability of yes, as its own research says.
            activity: Probability that the rule twin does anything when it is its turn.
            **components: `config`, `memory`, `llm`, `tools`.
        """
        super().__init__(model, **components)
        self.hints = dict(hints)
        self.activity = activity

    def observe(self) -> Observation:
        """Look at the markets, and at what one's own research says."""
        seen = super().observe()
        facts: MarketFacts = seen.facts
        known = [
            f"[{view.market_id}] {self.hints[view.market_id]:.0%} for yes"
            for view in facts.markets
            if view.is_open and view.market_id in self.hints
        ]
        text = "\n".join([seen.text, "", "Your own research says:", *known]) if known else seen.text
        seen = replace(seen, text=text, rules=f"{self.model.rules}\n\n{seen.rules}")
        return with_choices(self, seen, self.model.world)

    @property
    def cash(self) -> float:
        """Dollars the trader has."""
        return self.model.world.ledger.portfolio(self.unique_id).cash

    @property
    def wealth(self) -> float:
        """Its cash, and its shares at the shown prices, in dollars."""
        return self.model.wealth_of(self.unique_id)

    def rule(self, seen: Observation) -> ToolCall:
        """Bet on the question where price and research are farthest apart."""
        if self.random.random() >= self.activity:
            return ToolCall("do_nothing")
        return best_bet(seen.facts, self.hints, self.random) or ToolCall("do_nothing")


def best_bet(facts: MarketFacts, beliefs: Mapping[str, float], rng: Random, reach: float = 0.5) -> ToolCall | None:
    """Bet on a market whose price is off by more than `MARGIN`, drawn by how far it is off.

    Shares of the other answer are sold first. Where no price is off, now and then a remark is made instead.

    Args:
        facts: What the trader sees.
        beliefs: Market → probability of yes.
        rng: Source of draws.
        reach: Part of the way to what it believes that one bet may move a price.
    """
    views = [view for view in facts.markets if view.is_open and view.market_id in beliefs]
    off = [view for view in views if abs(beliefs[view.market_id] - view.price_yes) > MARGIN]
    if not off:
        return _remark(rng.choice(views), beliefs, rng) if views and rng.random() < 0.1 else None
    view = rng.choices(off, [abs(beliefs[view.market_id] - view.price_yes) for view in off])[0]
    belief = beliefs[view.market_id]
    side: Outcome = "yes" if belief > view.price_yes else "no"
    other: Outcome = "no" if side == "yes" else "yes"
    held = floor_shares(view.no_held if side == "yes" else view.yes_held)
    if held > 0:
        return ToolCall("sell_shares", {"market_id": view.market_id, "outcome": other, "shares": held})
    dollars = stake(view, side, belief if side == "yes" else 1 - belief, facts, reach)
    if dollars < 1:
        return None
    return ToolCall("buy_shares", {"market_id": view.market_id, "outcome": side, "amount": dollars})


def stake(view: MarketView, side: Outcome, belief: float, facts: MarketFacts, reach: float = 0.5) -> float:
    """Size a bet, in whole cents: a part of the Kelly stake, less what is held of the answer already.

    It moves the price by `reach` of the way to the belief at most. Where neither cash nor quotes are shown, it is a
    fixed sum.

    Args:
        view: The market.
        side: The answer to bet on.
        belief: Probability that it is right.
        facts: What the trader sees.
        reach: Part of the way to the belief.

    Source:
        Kelly (1956), A New Interpretation of Information Rate, Bell System Technical Journal 35(4).
    """
    price, quote, held = (
        (view.price_yes, view.yes_quote, view.yes_held)
        if side == "yes"
        else (view.price_no, view.no_quote, view.no_held)
    )
    if facts.cash is None or not quote:
        return BLIND_DOLLARS
    kelly = (belief - price) / (1 - price) * KELLY_PART * facts.cash - held * price if price < 1 else 0.0
    rise = 2 * (facts.quote_dollars / quote - price)  # about what the quoted purchase moves the price by
    all_the_way = facts.quote_dollars * (belief - price) / rise if rise > 0 else kelly
    return math.floor(max(min(kelly, all_the_way * reach), 0.0) * 100) / 100


def _remark(view: MarketView, beliefs: Mapping[str, float], rng: Random) -> ToolCall:
    belief = beliefs[view.market_id]
    side, chance = ("yes", belief) if belief >= 0.5 else ("no", 1 - belief)
    text = rng.choice(REMARKS).format(side=side, percent=round(chance * 100))
    return ToolCall("comment_on_market", {"market_id": view.market_id, "text": text})


def with_choices(trader: Mind, seen: Observation, world: PredictionMarkets) -> Observation:
    """Offer what a trader can do now; hold those who cannot count to a menu of sums.

    Args:
        trader: Who looks.
        seen: What it sees of the markets.
        world: The markets.
    """
    facts: MarketFacts = seen.facts
    seen = replace(seen, tools=possible(facts))
    if not trader.opened.capabilities.needs_options:
        return seen
    return with_menu(seen, world.ledger, Random(f"{trader.model.run_seed} {trader.unique_id} {facts.step}"))


def with_menu(seen: Observation, ledger: Ledger, rng: Random) -> Observation:
    """Hold a choice to one answer of one market, and to what can be bought and sold of it.

    It is drawn for each step: every other time from what is held, if anything is, else from all that is open.

    Args:
        seen: What a trader sees of the markets.
        ledger: The books, which know the limits of a trade.
        rng: Source of the draw.
    """
    facts: MarketFacts = seen.facts
    sides = [side for view in facts.markets if view.is_open for side in _sides(view)]
    if not sides:
        return seen
    held = [side for side in sides if side[2] > 0]
    market_id, outcome, most = rng.choice(held if held and rng.random() < 0.5 else sides)
    sums = sizes(facts).get("amount", ())
    parts = [*(shares for shares in SHARES if shares < most), *([most] if most > 0 else [])]
    offered = {
        "amount": tuple(one for one in sums if ledger.is_within_limits("buy", market_id, outcome, one)),
        "shares": tuple(one for one in parts if ledger.is_within_limits("sell", market_id, outcome, one)),
    }
    spare = {name for name, size in (("buy_shares", "amount"), ("sell_shares", "shares")) if not offered[size]}
    trades = dict.fromkeys((name for name in seen.options if name.endswith(".market_id")), (market_id,))
    return replace(
        seen,
        tools=tuple(name for name in seen.tools or () if name not in spare),
        options={
            **trades,
            "outcome": (outcome,),
            **{name: values for name, values in offered.items() if values},
        },
    )


def _sides(view: MarketView) -> list[tuple[str, Outcome, float]]:
    """Give both answers of a market, with the shares held of them, in hundredths."""
    return [
        (view.market_id, "yes", floor_shares(view.yes_held)),
        (view.market_id, "no", floor_shares(view.no_held)),
    ]


def possible(facts: MarketFacts) -> tuple[str, ...]:
    """Name what a trader can do now: nothing in closed markets, no sale without shares, no purchase without cash."""
    views = [view for view in facts.markets if view.is_open]
    names = ["browse_markets", "do_nothing"]
    if views:
        names.append("comment_on_market")
    if views and (facts.cash is None or facts.cash >= STAKES[0]):
        names.append("buy_shares")
    if any(max(view.yes_held, view.no_held) >= 0.01 for view in views):
        names.append("sell_shares")
    return tuple(names)


def sizes(facts: MarketFacts) -> dict[str, tuple[float, ...]]:
    """Give round sums and numbers of shares to choose from, for those who draw or pick from what is offered."""
    views = [view for view in facts.markets if view.is_open]
    cash = math.inf if facts.cash is None else facts.cash
    most = max((floor_shares(held) for view in views for held in (view.yes_held, view.no_held)), default=0.0)
    offered = {
        "amount": tuple(dollars for dollars in STAKES if dollars <= cash),
        "shares": tuple(dict.fromkeys([*(shares for shares in SHARES if shares <= most), most])),
    }
    return {name: sums for name, sums in offered.items() if sums and max(sums) > 0}
