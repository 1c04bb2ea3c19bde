"""Each world alone, without agents or language model: every inhabitant due observes and does one simple thing."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from mesa_llm.worlds.auction import PAPER_LOTS, Auction, Bidder, ordered_lots
from mesa_llm.worlds.economy import Economy
from mesa_llm.worlds.exchange import STOCKS, Calendar, Exchange, draw_endowments
from mesa_llm.worlds.macro import Macroeconomy
from mesa_llm.worlds.market import PredictionMarkets
from mesa_llm.worlds.social import Account, SocialWorld
from mesa_llm_models.auction_arena.twins import RuleBidder

SEED = 1

QUESTIONS = ("Will it rain?", "Will the bridge open?", "Will the price fall?", "Will she run?")

Act = Callable[[Any, int, Any, random.Random], object]
"""Function that acts once, given the world, the inhabitant's number, its observation and a random generator."""


class Alone:
    """A world with a given number of inhabitants.

    Attributes:
        world: The world.
    """

    cycle = 1
    """Number of steps after which the kinds of steps repeat."""

    def __init__(self, n: int) -> None:
        """Build the world.

        Args:
            n: Number of inhabitants.
        """
        self.rng = random.Random(SEED)
        self.actors = range(1, n + 1)
        self.world: Any = self.make(n)

    def make(self, n: int) -> Any:
        """Return the world."""
        raise NotImplementedError

    def act(self, actor: int, seen: Any) -> object:
        """Act once for one inhabitant."""
        raise NotImplementedError

    def step(self) -> None:
        """Let everybody observe, then everybody act, and end the step."""
        seen = [self.world.observe(actor) for actor in self.actors]
        for actor, sight in zip(self.actors, seen, strict=True):
            self.act(actor, sight)
        self.world.end_step()


class SocialAlone(Alone):
    """Some users post, and the others like something."""

    def make(self, n: int) -> SocialWorld:
        """Sign up users who follow three others each."""
        world = SocialWorld("simswarm", rng=self.rng)
        world.sign_up_many(Account(actor, f"User {actor}") for actor in self.actors)
        drawn = [(actor, self.rng.randint(1, n)) for actor in self.actors for _ in range(3)]
        world.follow_many([(one, other) for one, other in drawn if one != other])
        for actor in self.actors[: -(-n // 4)]:
            world.create_post(actor, f"Good morning from number {actor}.")
        world.end_step()
        return world

    def act(self, actor: int, seen: Any) -> object:
        """Post, or like a post that the user has not voted on."""
        fresh = [item.post.source_id for item in seen.facts.feed if item.vote == 0 and not item.is_own]
        if not fresh or self.rng.random() < 0.15:
            return self.world.create_post(actor, "Has anybody else been thinking about the weather?")
        return self.world.vote(actor, self.rng.choice(fresh), 1)


class MarketAlone(Alone):
    """Everyone bets a dollar in each step."""

    def make(self, n: int) -> PredictionMarkets:
        """Open four markets."""
        return PredictionMarkets(QUESTIONS)

    def act(self, actor: int, seen: Any) -> object:
        """Bet."""
        market = self.rng.choice(seen.facts.markets)
        return self.world.buy_shares(actor, market.market_id, self.rng.choice(("yes", "no")), 1.0)


class EconomyAlone(Alone):
    """Every firm sets its price."""

    def make(self, n: int) -> Economy:
        """Add firms, a few of which employ everybody."""
        world = Economy()
        for actor in self.actors:
            world.enter(actor)
        for actor in self.actors[:20]:
            world.hire(actor, 10)
        return world

    def act(self, actor: int, seen: Any) -> object:
        """Set a price."""
        return self.world.set_price(actor, self.rng.randint(8, 16))


class ExchangeAlone(Alone):
    """Everyone trades a share at a time, and forecasts and posts at the end of the day."""

    cycle = 6

    def make(self, n: int) -> Exchange:
        """Endow the traders."""
        return Exchange(draw_endowments(self.actors, self.rng), self.rng, calendar=Calendar(days=100_000))

    def act(self, actor: int, seen: Any) -> object:
        """Act as the stage requires; nobody borrows."""
        facts, chance = seen.facts, self.rng
        match facts.now.stage:
            case "trade":
                stock = chance.choice(STOCKS)
                price = round(facts.prices[stock] * chance.choice((0.99, 1.0, 1.01)), 1)
                if chance.random() < 0.5 and facts.shares[stock] >= 1:
                    return self.world.sell(actor, stock, 1, price)
                return self.world.buy(actor, stock, 1, price) if facts.cash >= price else None
            case "estimate":
                return self.world.estimate(actor, True, False, False, True, False)
            case "post":
                return self.world.post_message(actor, "I expect little.")
            case _:
                return None

    def step(self) -> None:
        """Run a stage of the day; in a session everyone observes the actions of those before."""
        self.actors = self.world.turn_order
        if not self.world.takes_turns:
            super().step()
            return
        for actor in self.actors:
            self.act(actor, self.world.observe(actor))
        self.world.end_step()


class MacroAlone(Alone):
    """Every household plans its month."""

    def make(self, n: int) -> Macroeconomy:
        """Draw households."""
        return Macroeconomy(self.actors, self.rng)

    def act(self, actor: int, seen: Any) -> object:
        """Plan to work nearly always, and to spend about half."""
        return self.world.plan_month(actor, 0.94, round(self.rng.uniform(0.3, 0.7), 2))


class AuctionAlone(Alone):
    """Bidders who raise by the least amount, up to four times a lot; a step is a round of bidding."""

    def make(self, n: int) -> Auction:
        """Seat the bidders."""
        bidders = [Bidder(actor, f"Bidder {actor}", planning="none", keeps_beliefs=False) for actor in self.actors]
        return Auction(ordered_lots(PAPER_LOTS, "random", self.rng), bidders, rng=self.rng)

    def act(self, actor: int, seen: Any) -> object:
        """Bid, or withdraw."""
        amount = RuleBidder().bid(seen.facts, self.rng)
        return self.world.withdraw(actor) if amount is None else self.world.bid(actor, amount)

    def step(self) -> None:
        """Let every bidder who is asked act; after the last lot, start again with all lots."""
        if self.world.is_over:
            kind, self.world = type(self.world), self.make(len(self.world.accounts))
            self.world.__class__ = kind
        self.actors = self.world.due
        super().step()


WORLDS: dict[str, type[Alone]] = {
    "auction": AuctionAlone,
    "economy": EconomyAlone,
    "exchange": ExchangeAlone,
    "macro": MacroAlone,
    "market": MarketAlone,
    "social": SocialAlone,
}
"""Name of a world → class that runs it."""
