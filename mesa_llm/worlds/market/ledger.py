"""The books of the prediction markets: who may trade what, and whose cash and shares change by it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, get_args

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.text import one_line
from mesa_llm.worlds.market.accounts import (
    Comment,
    Market,
    Portfolio,
    Question,
    Trade,
    TradeLimits,
    unused_slug,
)
from mesa_llm.worlds.market.makers import OUTCOMES, Maker, MakerName, Outcome, check_opening, open_maker

Rules = Literal["corrected", "original"]
"""`original`: SimSwarm's checks, in its order, and its arithmetic, faults included."""


class Ledger:
    """Markets, portfolios, trades and remarks; every change of them goes through one method here.

    All cash of traders and makers and all fees together never change, except that a trader's first trade
    brings its starting cash in.
    """

    def __init__(self, cash: float, fee: float, limits: TradeLimits, rules: Rules) -> None:
        """Open empty books; `PredictionMarkets` says what the arguments are.

        Raises:
            ConfigError: If there are no such rules, or a number is out of range, under the corrected ones.
        """
        if rules not in get_args(Rules):
            raise ConfigError(f"rules must be one of {get_args(Rules)}, got {rules!r}")
        self.starting_cash = cash
        self.fee = fee
        self.limits = limits
        self.is_original = rules == "original"
        self.markets: dict[str, Market] = {}
        self.portfolios: dict[int, Portfolio] = {}
        self.trades: list[Trade] = []
        self.comments: dict[str, list[Comment]] = {}
        if not self.is_original:
            self._check_settings()

    def open(self, question: Question, maker_name: MakerName, liquidity: float) -> None:
        """Open the market of a question.

        Raises:
            ConfigError: If there is no such maker, or a number is out of range, under the corrected rules.
        """
        if not self.is_original:
            check_opening(question.price_yes, liquidity)
        market_id = unused_slug(question.text, self.markets, keep_readable=not self.is_original)
        maker = open_maker(maker_name, question.price_yes, liquidity)
        self.markets[market_id] = Market(market_id, question, maker, maker.subsidy, [maker.price("yes")])

    def portfolio(self, actor: int) -> Portfolio:
        """Give what a trader owns; who has not acted yet owns the starting cash."""
        return self.portfolios.get(actor) or Portfolio(self.starting_cash)

    def buy(self, actor: int, market_id: str, outcome: str, amount: float, step: int) -> Trade:
        """Spend cash on an answer.

        Raises:
            ToolError: If the trader may not, or cannot.
        """
        market, side = self._checked(market_id, outcome, amount, "amount")
        portfolio = self._joined(actor)
        if portfolio.cash < amount:
            raise ToolError(f"${amount:.10g} is more than the ${portfolio.cash:.2f} of cash you have.")
        fee = amount * self.fee
        maker, shares = market.maker.buy(side, amount - fee)
        self._check_limits(market, maker, amount)
        market.maker = maker
        portfolio.add(market_id, side, shares)
        portfolio.cash -= amount
        market.maker_cash += amount - fee
        return self._recorded(actor, "buy", market, side, (shares, amount, fee), step)

    def sell(self, actor: int, market_id: str, outcome: str, shares: float, step: int) -> Trade:
        """Turn shares back into cash.

        Raises:
            ToolError: If the trader may not, or cannot.
        """
        market, side = self._checked(market_id, outcome, shares, "shares")
        portfolio = self._joined(actor)
        held = portfolio.held(market_id, side)
        if held < shares:
            raise ToolError(f"you hold {held:.2f} {side.upper()} shares of [{market_id}], not {shares:.10g}.")
        maker, gross = market.maker.sell(side, shares)
        fee = gross * self.fee
        self._check_limits(market, maker, gross)
        market.maker = maker
        market.maker_cash -= gross
        portfolio.cash += gross - fee
        portfolio.shares[market_id][side] = held - shares
        return self._recorded(actor, "sell", market, side, (shares, gross - fee, fee), step)

    def is_within_limits(self, side: Literal["buy", "sell"], market_id: str, outcome: Outcome, size: float) -> bool:
        """Tell whether a trade of so many dollars (`buy`) or shares (`sell`) is not too large for the limits."""
        if self.limits == TradeLimits():
            return True
        market = self.known(market_id)
        if side == "buy":
            maker, dollars = market.maker.buy(outcome, size * (1 - self.fee))[0], size
        else:
            maker, dollars = market.maker.sell(outcome, size)
        try:
            self._check_limits(market, maker, dollars)
        except ToolError:
            return False
        return True

    def comment(self, actor: int, market_id: str, text: str, step: int) -> Comment:
        """Put a remark down.

        Raises:
            ToolError: If there is no such market or the remark is empty, under the corrected rules.
        """
        if not self.is_original:
            self.listed(market_id)
            text = one_line(text)
            if not text:
                raise ToolError("the remark is empty; write what you want to say.")
        comment = Comment(actor, market_id, text, step)
        self.comments.setdefault(market_id, []).append(comment)
        return comment

    def settle(self, market_id: str, outcome: Outcome) -> float:
        """Pay a dollar for each share of the right answer, take all shares back, and close the market.

        Returns:
            Dollars paid out.

        Raises:
            ConfigError: If there is no such market, it was answered before, or the answer is not yes or no.
        """
        market = self.known(market_id)
        if market.answer is not None:
            raise ConfigError(f"market {market_id!r} was answered before: {market.answer}")
        if outcome not in OUTCOMES:
            raise ConfigError(f"a market is answered yes or no, not {outcome!r}")
        market.prices_yes.append(market.maker.price("yes"))
        market.answer, market.is_open = outcome, False
        paid = 0.0
        for actor in sorted(self.portfolios):
            portfolio = self.portfolios[actor]
            due = portfolio.held(market_id, outcome)
            portfolio.cash += due
            portfolio.shares.pop(market_id, None)
            paid += due
        market.maker_cash -= paid
        return paid

    def listed(self, market_id: str) -> Market:
        """Find a market by the id that a trader gave.

        Raises:
            ToolError: If there is none.
        """
        market = self.markets.get(market_id)
        if market is None:
            raise ToolError(f"there is no market {str(market_id)[:80]!r}; choose one of: {_names(self.markets)}.")
        return market

    def known(self, market_id: str) -> Market:
        """Find a market by the id that the model's author gave.

        Raises:
            ConfigError: If there is none.
        """
        if market_id not in self.markets:
            raise ConfigError(f"there is no market {market_id!r}; choose one of: {_names(self.markets)}")
        return self.markets[market_id]

    def _joined(self, actor: int) -> Portfolio:
        return self.portfolios.setdefault(actor, self.portfolio(actor))

    def _checked(self, market_id: str, outcome: str, size: float, what: str) -> tuple[Market, Outcome]:
        """Check what a buy and a sale have in common, in SimSwarm's order."""
        said = str(outcome).lower() if self.is_original else str(outcome).strip().lower()
        side: Outcome | None = next((known for known in OUTCOMES if known == said), None)
        if side is None:
            raise ToolError(f"there is no answer {str(outcome)[:80]!r}; say yes or no.")
        market = self.listed(market_id)
        if not self.is_original:
            if isinstance(size, bool) or not math.isfinite(size):
                raise ToolError(f"the {what} must be a finite number, got {size}.")
            if not market.is_open:
                raise ToolError(f"market [{market_id}] is closed and takes no trades.")
        if size <= 0:
            raise ToolError(f"the {what} must be positive, got {size:.10g}.")
        return market, side

    def _check_limits(self, market: Market, after: Maker, dollars: float) -> None:
        most, most_move = self.limits.dollars, self.limits.price_move
        if most is not None and dollars > most:
            raise ToolError(f"this trade is worth ${dollars:.2f}; one trade may be worth ${most:.2f} at most.")
        if most_move is None:
            return
        move = abs(after.price("yes") - market.maker.price("yes"))
        if move > most_move:
            raise ToolError(f"this trade would move the price by {move:.3f}; one may move it by {most_move:g} at most.")

    def _recorded(
        self,
        actor: int,
        side: Literal["buy", "sell"],
        market: Market,
        outcome: Outcome,
        shares_dollars_fee: tuple[float, float, float],
        step: int,
    ) -> Trade:
        market.fees += shares_dollars_fee[2]
        prices = market.maker.price(outcome), market.maker.price("yes")
        trade = Trade(actor, side, market.market_id, outcome, *shares_dollars_fee, *prices, step)
        self.trades.append(trade)
        return trade

    def _check_settings(self) -> None:
        _demand(0 <= self.starting_cash < math.inf, "cash", self.starting_cash, "a finite number from 0 on")
        _demand(0 <= self.fee < 1, "fee", self.fee, "a share from 0 on and below 1")
        for limit in (self.limits.dollars, self.limits.price_move):
            _demand(limit is None or limit > 0, "limits", limit, "a positive number or None")


def _demand(is_met: bool, what: str, found: float | None, wanted: str) -> None:
    if not is_met:
        raise ConfigError(f"{what} of the prediction markets must be {wanted}, got {found!r}")


def _names(markets: Iterable[str]) -> str:
    return ", ".join(markets) or "none, as no question was asked"
