"""What is measured in a town in three worlds."""

from __future__ import annotations

import math
import re
import statistics
from typing import Any

from mesa_llm import Bridge
from mesa_llm.worlds.economy import Economy
from mesa_llm.worlds.market import PredictionMarkets, score_forecasts
from mesa_llm.worlds.social import SocialWorld
from models.three_worlds.claims import Claim
from models.three_worlds.crossings import Crossings

TALK_WORDS = re.compile(r"\b(?:market|price|odds|bet|yes rose|yes fell|economy|employment|tax|polic\w+|wage)s?\b", re.I)
"""By which a post is taken to be about the market or the economy."""


REPORTED = {
    name: name
    for name in (
        *("employment_rate", "average_price", "work_price", "goods_price", "opinion_price", "lag"),
        *("mean_position", "disagreement", "posts", "talk", "trades", "viral", "heard"),
        *("betting_money", "makers_money", "accounts_money", "households_money"),
    )
}
"""What is collected in every step."""


class Measures:
    """The measures of the model, as they are now."""

    social: SocialWorld
    economy: Economy
    market: PredictionMarkets
    claims: dict[str, Claim]
    crossings: Crossings
    bridge: Bridge
    agents: Any

    def measured(self, claim: Claim) -> float:
        """Give what a question of the market is about, as it is now."""
        return self.mean_position if claim.measure == "opinion" else self.economy.state.metrics[claim.measure]

    def price_of(self, measure: str) -> float:
        """Give the price of YES of the question about a measure; after its answer, the last one."""
        market_id = next(key for key, claim in self.claims.items() if claim.measure == measure)
        market = self.market.ledger.markets[market_id]
        return market.prices_yes[-1] if market.answer else market.maker.price("yes")

    @property
    def work_price(self) -> float:
        """Price of YES on whether enough people will have work."""
        return self.price_of("employment_rate")

    @property
    def goods_price(self) -> float:
        """Price of YES on whether goods will cost more."""
        return self.price_of("avg_price")

    @property
    def opinion_price(self) -> float:
        """Price of YES on whether people will lean towards yes."""
        return self.price_of("opinion")

    @property
    def lag(self) -> float:
        """Mean distance of the market's prices from what the other worlds suggest at this moment, 0 to 1."""
        asked = self.claims.values()
        gaps = [abs(self.price_of(claim.measure) - claim.chance(self.measured(claim))) for claim in asked]
        return math.fsum(gaps) / len(gaps)

    @property
    def employment_rate(self) -> float:
        """Share of the labour force at work, as last measured."""
        return self.economy.state.metrics["employment_rate"]

    @property
    def average_price(self) -> float:
        """Dollars a good cost on average in the last step."""
        return self.economy.state.metrics["avg_price"]

    @property
    def positions(self) -> list[float]:
        """What each citizen thinks about the town's question, -1 (against) to 1 (for)."""
        return [citizen.position for citizen in self.agents]

    @property
    def mean_position(self) -> float:
        """What citizens think on average."""
        return statistics.fmean(self.positions)

    @property
    def disagreement(self) -> float:
        """Standard deviation of what citizens think."""
        return statistics.pstdev(self.positions)

    @property
    def posts(self) -> int:
        """Posts and replies of citizens so far."""
        totals = self.social.totals()
        return totals["original"] + totals["reply"] - self.crossings.n_reports

    @property
    def talk(self) -> int:
        """Posts and replies of citizens so far that are about the market or the economy."""
        paper = self.crossings.paper
        rows = self.social.posts_table()
        return sum(row["user_id"] != paper and bool(TALK_WORDS.search(row["content"] or "")) for row in rows)

    @property
    def trades(self) -> int:
        """Trades of citizens so far."""
        return sum(trade.actor != self.crossings.crowd for trade in self.market.ledger.trades)

    @property
    def viral(self) -> int:
        """Posts that went viral so far and were told."""
        return sum(event.kind == "viral_post" for _, event in self.bridge.log)

    @property
    def heard(self) -> int:
        """Pieces of news that reached a citizen so far, scheduled ones included."""
        return len(self.bridge.deliveries)

    @property
    def brier(self) -> float | None:
        """Brier score of the market; None before its questions are answered."""
        forecasts = self.market.forecasts()
        return score_forecasts(forecasts).brier if forecasts else None

    @property
    def betting_money(self) -> float:
        """Cash of all who bet, the crowd included, in dollars."""
        accounts = [*(citizen.unique_id for citizen in self.agents), self.crossings.paper, self.crossings.crowd]
        return math.fsum(self.market.ledger.portfolio(account).cash for account in accounts)

    @property
    def makers_money(self) -> float:
        """What the makers have, and the fees, in dollars."""
        return math.fsum(market.maker_cash + market.fees for market in self.market.ledger.markets.values())

    @property
    def accounts_money(self) -> float:
        """Balances of all citizens in the economy, in dollars."""
        return math.fsum(one.balance for one in self.economy.state.participants.values())

    @property
    def households_money(self) -> float:
        """What all households together have, in dollars."""
        return self.economy.state.purse

    @property
    def money(self) -> tuple[float, float]:
        """All dollars of the market, and all of the economy; neither ever changes."""
        return self.betting_money + self.makers_money, self.accounts_money + self.households_money
