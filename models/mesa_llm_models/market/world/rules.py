"""Rules of the prediction markets: which trades are allowed, and their effects on cash and shares."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.text import one_line
from mesa_llm_models.market.world.makers import OUTCOMES, Maker, MakerName, Outcome, check_opening, open_maker
from mesa_llm_models.market.world.state import (
    Comment,
    Market,
    MarketQuestion,
    Portfolio,
    Trade,
    TradeLimits,
    unused_slug,
)
from mesa_llm_models.market.world.text import reason_text


class Ledger:
    """Markets, portfolios, trades and comments. Each change is one method.

    The cash of traders and makers plus the fees is constant, except that a trader's first trade adds its starting cash.
    `rules_original.OriginalLedger` implements SimSwarm's rules.
    """

    def __init__(self, cash: float, fee: float, limits: TradeLimits) -> None:
        """Create an empty ledger; see `PredictionMarkets` for the arguments.

        Raises:
            ConfigError: If a number is out of range.
        """
        self.starting_cash = cash
        self.fee = fee
        self.limits = limits
        self.markets: dict[str, Market] = {}
        self.portfolios: dict[int, Portfolio] = {}
        self.trades: list[Trade] = []
        self.comments: dict[str, list[Comment]] = {}
        self.check_settings()

    def open(self, question: MarketQuestion, maker_name: MakerName, liquidity: float) -> None:
        """Open the market of a question.

        Raises:
            ConfigError: If the maker is unknown, or a number is out of range.
        """
        check_opening(question.price_yes, liquidity)
        self.add_market(unused_slug(question.text, self.markets), question, maker_name, liquidity)

    def add_market(self, market_id: str, question: MarketQuestion, maker_name: MakerName, liquidity: float) -> None:
        """Add the market of a question, with its maker.

        Raises:
            ConfigError: If the maker is unknown.
        """
        maker = open_maker(maker_name, question.price_yes, liquidity)
        self.markets[market_id] = Market(market_id, question, maker, maker.subsidy, [maker.price("yes")])

    def portfolio(self, agent_id: int) -> Portfolio:
        """Return a trader's portfolio; before its first action, the starting cash."""
        return self.portfolios.get(agent_id) or Portfolio(self.starting_cash)

    def buy(self, agent_id: int, market_id: str, outcome: str, amount: float, step: int) -> Trade:
        """Spend cash on shares of an answer.

        Raises:
            ToolError: If the trade is refused.
        """
        market, side = self.tradable(market_id, outcome, amount, "amount")
        portfolio = self._enter(agent_id)
        if portfolio.cash < amount:
            raise ToolError(reason_text("cash", amount=amount, cash=portfolio.cash))
        fee = amount * self.fee
        maker, shares = market.maker.buy(side, amount - fee)
        self._check_limits(market, maker, amount)
        market.maker = maker
        portfolio.add(market_id, side, shares)
        portfolio.cash -= amount
        market.maker_cash += amount - fee
        return self._record(agent_id, "buy", market, side, (shares, amount, fee), step)

    def sell(self, agent_id: int, market_id: str, outcome: str, shares: float, step: int) -> Trade:
        """Sell shares of an answer for cash.

        Raises:
            ToolError: If the trade is refused.
        """
        market, side = self.tradable(market_id, outcome, shares, "shares")
        portfolio = self._enter(agent_id)
        owned = portfolio.shares_of(market_id, side)
        if owned < shares:
            raise ToolError(reason_text("shares", owned=owned, side=side.upper(), market_id=market_id, shares=shares))
        maker, gross = market.maker.sell(side, shares)
        fee = gross * self.fee
        self._check_limits(market, maker, gross)
        market.maker = maker
        market.maker_cash -= gross
        portfolio.cash += gross - fee
        portfolio.shares[market_id][side] = owned - shares
        return self._record(agent_id, "sell", market, side, (shares, gross - fee, fee), step)

    def is_within_limits(self, side: Literal["buy", "sell"], market_id: str, outcome: Outcome, size: float) -> bool:
        """Check whether a trade of some dollars (`buy`) or shares (`sell`) is within the limits."""
        if self.limits == TradeLimits():
            return True
        market = self.market(market_id)
        if side == "buy":
            maker, dollars = market.maker.buy(outcome, size * (1 - self.fee))[0], size
        else:
            maker, dollars = market.maker.sell(outcome, size)
        try:
            self._check_limits(market, maker, dollars)
        except ToolError:
            return False
        return True

    def comment(self, agent_id: int, market_id: str, text: str, step: int) -> Comment:
        """Record a comment.

        Raises:
            ToolError: If the market is unknown, or the comment is empty.
        """
        self.find(market_id)
        text = one_line(text)
        if not text:
            raise ToolError(reason_text("empty"))
        return self.add_comment(agent_id, market_id, text, step)

    def add_comment(self, agent_id: int, market_id: str, text: str, step: int) -> Comment:
        """Add a comment to a market."""
        comment = Comment(agent_id, market_id, text, step)
        self.comments.setdefault(market_id, []).append(comment)
        return comment

    def settle(self, market_id: str, outcome: Outcome) -> float:
        """Pay a dollar for each share of the right answer, void all shares, and close the market.

        Returns:
            Dollars paid out.

        Raises:
            ConfigError: If the market is unknown or already resolved, or the answer is not yes or no.
        """
        market = self.market(market_id)
        if market.answer is not None:
            raise ConfigError(f"market {market_id!r} is already resolved: {market.answer}")
        if outcome not in OUTCOMES:
            raise ConfigError(f"a market's answer must be yes or no, not {outcome!r}")
        market.prices_yes.append(market.maker.price("yes"))
        market.answer, market.is_open = outcome, False
        payout = 0.0
        for _, portfolio in sorted(self.portfolios.items()):
            shares = portfolio.shares_of(market_id, outcome)
            portfolio.cash += shares
            portfolio.shares.pop(market_id, None)
            payout += shares
        market.maker_cash -= payout
        return payout

    def find(self, market_id: str) -> Market:
        """Return the market a trader named.

        Raises:
            ToolError: If there is none.
        """
        market = self.markets.get(market_id)
        if market is None:
            raise ToolError(reason_text("no_market", market_id=str(market_id)[:80], markets=_names(self.markets)))
        return market

    def market(self, market_id: str) -> Market:
        """Return the market named in a model's code.

        Raises:
            ConfigError: If there is none.
        """
        if market_id not in self.markets:
            raise ConfigError(f"there is no market {market_id!r}; choose one of: {_names(self.markets)}")
        return self.markets[market_id]

    def _enter(self, agent_id: int) -> Portfolio:
        return self.portfolios.setdefault(agent_id, self.portfolio(agent_id))

    def tradable(self, market_id: str, outcome: str, size: float, size_name: str) -> tuple[Market, Outcome]:
        """Check the conditions shared by purchases and sales. Return the market and the answer.

        Raises:
            ToolError: If the market or answer is unknown, the market is closed, or the size is not a positive number.
        """
        side = answer_of(str(outcome).strip())
        market = self.find(market_id)
        if isinstance(size, bool) or not math.isfinite(size):
            raise ToolError(reason_text("not_finite", name=size_name, size=size))
        if not market.is_open:
            raise ToolError(reason_text("closed", market_id=market_id))
        require_positive(size, size_name)
        return market, side

    def _check_limits(self, market: Market, maker_after: Maker, dollars: float) -> None:
        max_dollars, max_move = self.limits.dollars, self.limits.price_move
        if max_dollars is not None and dollars > max_dollars:
            raise ToolError(reason_text("too_large", dollars=dollars, maximum=max_dollars))
        if max_move is None:
            return
        move = abs(maker_after.price("yes") - market.maker.price("yes"))
        if move > max_move:
            raise ToolError(reason_text("too_far", move=move, maximum=max_move))

    def _record(
        self,
        agent_id: int,
        side: Literal["buy", "sell"],
        market: Market,
        outcome: Outcome,
        shares_dollars_fee: tuple[float, float, float],
        step: int,
    ) -> Trade:
        market.fees += shares_dollars_fee[2]
        prices = market.maker.price(outcome), market.maker.price("yes")
        trade = Trade(agent_id, side, market.market_id, outcome, *shares_dollars_fee, *prices, step)
        self.trades.append(trade)
        return trade

    def check_settings(self) -> None:
        """Check cash, fee and limits.

        Raises:
            ConfigError: If any is out of range.
        """
        _require(0 <= self.starting_cash < math.inf, "cash", self.starting_cash, "a finite number of 0 or more")
        _require(0 <= self.fee < 1, "fee", self.fee, "a share from 0 on and below 1")
        for limit in (self.limits.dollars, self.limits.price_move):
            _require(limit is None or limit > 0, "limits", limit, "a positive number or None")


def answer_of(outcome: str) -> Outcome:
    """Return the answer a trader named, ignoring case.

    Raises:
        ToolError: If there is none.
    """
    name = outcome.lower()
    side: Outcome | None = next((answer for answer in OUTCOMES if answer == name), None)
    if side is None:
        raise ToolError(reason_text("no_outcome", outcome=outcome[:80]))
    return side


def require_positive(size: float, name: str) -> None:
    """Check that the size of a trade is positive.

    Raises:
        ToolError: If it is not.
    """
    if size <= 0:
        raise ToolError(reason_text("not_positive", name=name, size=size))


def _require(is_met: bool, name: str, value: float | None, expected: str) -> None:
    if not is_met:
        raise ConfigError(f"{name} of the prediction markets must be {expected}, got {value!r}")


def _names(markets: Iterable[str]) -> str:
    return ", ".join(markets) or "none, as no question was asked"
