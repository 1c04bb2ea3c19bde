"""Workloads of worlds without agents or a language model: every inhabitant due observes and does one simple thing."""

from __future__ import annotations

import random
from typing import Any

from mesa_llm_models.auction_arena.policies import RuleBidder
from mesa_llm_models.auction_arena.world import PAPER_LOTS, Auction, Bidder, ordered_lots
from mesa_llm_models.econ_agent.world import Macroeconomy
from mesa_llm_models.economy.world import Economy
from mesa_llm_models.market.world import PredictionMarkets
from mesa_llm_models.social.world import Account, SocialWorld
from mesa_llm_models.stock_agent.world import STOCKS, Calendar, Exchange, draw_endowments

SEED = 1

QUESTIONS = ("Will it rain?", "Will the bridge open?", "Will the price fall?", "Will she run?")


class WorldWorkload:
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
        self.agent_ids = range(1, n + 1)
        self.world: Any = self.make(n)

    def make(self, n: int) -> Any:
        """Return the world."""
        raise NotImplementedError

    def act(self, agent_id: int, observation: Any) -> object:
        """Act once for one inhabitant."""
        raise NotImplementedError

    def step(self) -> None:
        """Let everybody observe, then everybody act, and end the step."""
        observations = [self.world.observe(agent_id) for agent_id in self.agent_ids]
        for agent_id, observation in zip(self.agent_ids, observations, strict=True):
            self.act(agent_id, observation)
        self.world.end_step()


class SocialWorkload(WorldWorkload):
    """Some users post, and the others like something."""

    def make(self, n: int) -> SocialWorld:
        """Sign up users who follow three others each."""
        world = SocialWorld("simswarm", rng=self.rng)
        world.sign_up_many(Account(agent_id, f"User {agent_id}") for agent_id in self.agent_ids)
        drawn = [(agent_id, self.rng.randint(1, n)) for agent_id in self.agent_ids for _ in range(3)]
        world.follow_many([(one, other) for one, other in drawn if one != other])
        for agent_id in self.agent_ids[: -(-n // 4)]:
            world.create_post(agent_id, f"Good morning from number {agent_id}.")
        world.end_step()
        return world

    def act(self, agent_id: int, observation: Any) -> object:
        """Post, or like a post that the user has not voted on."""
        fresh = [item.post.source_id for item in observation.facts.feed if item.vote == 0 and not item.is_own]
        if not fresh or self.rng.random() < 0.15:
            return self.world.create_post(agent_id, "Has anybody else been thinking about the weather?")
        return self.world.vote(agent_id, self.rng.choice(fresh), 1)


class MarketWorkload(WorldWorkload):
    """Everyone bets a dollar in each step."""

    def make(self, n: int) -> PredictionMarkets:
        """Open four markets."""
        return PredictionMarkets(QUESTIONS)

    def act(self, agent_id: int, observation: Any) -> object:
        """Bet."""
        market = self.rng.choice(observation.facts.markets)
        return self.world.buy_shares(agent_id, market.market_id, self.rng.choice(("yes", "no")), 1.0)


class EconomyWorkload(WorldWorkload):
    """Every firm sets its price."""

    def make(self, n: int) -> Economy:
        """Add firms, a few of which employ everybody."""
        world = Economy()
        for agent_id in self.agent_ids:
            world.enter(agent_id)
        for agent_id in self.agent_ids[:20]:
            world.hire(agent_id, 10)
        return world

    def act(self, agent_id: int, observation: Any) -> object:
        """Set a price."""
        return self.world.set_price(agent_id, self.rng.randint(8, 16))


class ExchangeWorkload(WorldWorkload):
    """Everyone trades a share at a time, and forecasts and posts at the end of the day."""

    cycle = 6

    def make(self, n: int) -> Exchange:
        """Endow the traders."""
        return Exchange(draw_endowments(self.agent_ids, self.rng), self.rng, calendar=Calendar(days=100_000))

    def act(self, agent_id: int, observation: Any) -> object:
        """Act as the stage requires; nobody borrows."""
        facts, rng = observation.facts, self.rng
        match facts.now.stage:
            case "trade":
                stock = rng.choice(STOCKS)
                price = round(facts.prices[stock] * rng.choice((0.99, 1.0, 1.01)), 1)
                if rng.random() < 0.5 and facts.shares[stock] >= 1:
                    return self.world.sell(agent_id, stock, 1, price)
                return self.world.buy(agent_id, stock, 1, price) if facts.cash >= price else None
            case "estimate":
                return self.world.estimate(agent_id, True, False, False, True, False)
            case "post":
                return self.world.post_message(agent_id, "I expect little.")
            case _:
                return None

    def step(self) -> None:
        """Run a stage of the day; in a session everyone observes the actions of those before."""
        self.agent_ids = self.world.turn_order
        if not self.world.takes_turns:
            super().step()
            return
        for agent_id in self.agent_ids:
            self.act(agent_id, self.world.observe(agent_id))
        self.world.end_step()


class MacroWorkload(WorldWorkload):
    """Every household plans its month."""

    def make(self, n: int) -> Macroeconomy:
        """Draw households."""
        return Macroeconomy(self.agent_ids, self.rng)

    def act(self, agent_id: int, observation: Any) -> object:
        """Plan to work nearly always, and to spend about half."""
        return self.world.plan_month(agent_id, 0.94, round(self.rng.uniform(0.3, 0.7), 2))


class AuctionWorkload(WorldWorkload):
    """Bidders who raise by the minimum, up to four times a lot; a step is a round of bidding."""

    def make(self, n: int) -> Auction:
        """Seat the bidders."""
        bidders = [
            Bidder(agent_id, f"Bidder {agent_id}", planning="none", keeps_beliefs=False) for agent_id in self.agent_ids
        ]
        return Auction(ordered_lots(PAPER_LOTS, "random", self.rng), bidders, rng=self.rng)

    def act(self, agent_id: int, observation: Any) -> object:
        """Bid, or withdraw."""
        amount = RuleBidder().bid(observation.facts, self.rng)
        return self.world.withdraw(agent_id) if amount is None else self.world.bid(agent_id, amount)

    def step(self) -> None:
        """Let every bidder who is asked act; after the last lot, start again with all lots."""
        if self.world.is_over:
            kind, self.world = type(self.world), self.make(len(self.world.accounts))
            self.world.__class__ = kind
        self.agent_ids = self.world.due
        super().step()


WORLDS: dict[str, type[WorldWorkload]] = {
    "auction": AuctionWorkload,
    "economy": EconomyWorkload,
    "exchange": ExchangeWorkload,
    "macro": MacroWorkload,
    "market": MarketWorkload,
    "social": SocialWorkload,
}
"""Name of a world → class that runs it."""
