"""Prediction markets: questions whose answers are traded against automated market makers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, get_args

from pydantic import BeforeValidator, Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.tools.tool import action, tool
from mesa_llm.tools.validation import NO_FLAG, is_number
from mesa_llm.world import DoNothing, Rules
from mesa_llm_models.market.world import text as wording
from mesa_llm_models.market.world.facts import MarketFacts, MarketView, Purchase, floor_shares
from mesa_llm_models.market.world.makers import OUTCOMES, MakerName, Outcome
from mesa_llm_models.market.world.rules import Ledger
from mesa_llm_models.market.world.rules_original import OriginalLedger
from mesa_llm_models.market.world.scores import Forecast
from mesa_llm_models.market.world.state import Market, MarketQuestion, Portfolio, Trade, TradeLimits
from mesa_llm_models.market.world.text import REMARK_CHARACTERS


def _in_lower_case(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _bare_id(value: object) -> object:
    """Read an id as language models write it, with the brackets in which it is shown or without."""
    return value.strip().removeprefix("[").removesuffix("]").strip() if isinstance(value, str) else value


MarketId = Annotated[str, Field(max_length=80), BeforeValidator(_bare_id)]
Answer = Annotated[Outcome, BeforeValidator(_in_lower_case)]
Positive = Annotated[float, Field(gt=0), NO_FLAG]
Remark = Annotated[str, Field(max_length=REMARK_CHARACTERS)]

LIMITS = {"max_trade_dollars": "dollars", "max_trade_move": "price_move"}
"""Limits that can be changed during a run → their fields in `TradeLimits`."""

SMALLEST_PURCHASE, SHARE_STEP = 1.0, 0.01
"""Smallest purchase that is offered, in dollars, and smallest sale, in shares."""

NO_LIMITS = TradeLimits()
PAST_STEPS_SHOWN = 5
COMMENTS_SHOWN = 3


class PredictionMarkets(DoNothing):
    """Markets on yes-or-no questions.

    Under the corrected rules, the default, a price is that of a one-dollar claim, questions are resolved and pay out,
    and traders see their cash, quotes, comments and the results of their last actions. `rules="original"` is SimSwarm's
    environment with its defects: its actions, called directly, accept NaN, and raise Python's own errors for arguments
    of the wrong type.

    Source:
        SimSwarm's market environment; see `makers` for the market makers.
    """

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    def __init__(
        self,
        questions: Sequence[MarketQuestion | str],
        *,
        maker: MakerName | None = None,
        cash: float = 1000.0,
        liquidity: float = 500.0,
        fee: float = 0.0,
        limits: TradeLimits = NO_LIMITS,
        price_move_threshold: float = 0.1,
        quote_dollars: float = 10.0,
        shows_results: bool = True,
        rules: Rules = "corrected",
        names: Mapping[int, str] | None = None,
        name: str = "market",
    ) -> None:
        """Open the markets.

        Args:
            questions: The questions. A plain string opens at a price of one half.
            maker: Market maker; None for `fixed_product`, or SimSwarm's under its rules.
            cash: Dollars each trader starts with.
            liquidity: Depth of the makers; see `open_maker`.
            fee: Share of a trade's dollars taken as a fee, at least 0 and below 1.
            limits: Limits of one trade.
            price_move_threshold: Minimum price change in a step for an event.
            quote_dollars: Dollar amount of the quotes in observations.
            shows_results: Whether observations repeat the results of a trader's last actions; False where the traders
                remember them.
            rules: `original` for SimSwarm's rules, or `corrected`.
            names: Trader id → name that others read.
            name: Name of the world.

        Raises:
            ConfigError: If the rules are unknown, the questions are a single text instead of a list, or, under the
                corrected rules, a number is out of range.
            ZeroDivisionError: If, under the original rules, the liquidity is 0.
        """
        if isinstance(questions, str):
            raise ConfigError(f"questions must be a list of texts, got one text: {questions[:80]!r}")
        if rules not in get_args(Rules):
            raise ConfigError(f"rules must be one of {get_args(Rules)}, got {rules!r}")
        self.name = name
        self.names = dict(names or {})
        self.is_original = rules == "original"
        ledger = OriginalLedger if self.is_original else Ledger
        self.ledger = ledger(cash, fee, limits)
        self.price_move_threshold = price_move_threshold
        self.quote_dollars = quote_dollars
        self.shows_results = shows_results
        self.step = 1
        self._instructions = (
            self.wording.ORIGINAL_INSTRUCTIONS if self.is_original else self.wording.instructions(fee, limits)
        )
        self._events: list[Event] = []
        self._results: dict[int, list[str]] = {}
        self._last_results: dict[int, tuple[str, ...]] = {}
        if not (self.is_original or (0 < quote_dollars < math.inf and price_move_threshold >= 0)):
            raise ConfigError(f"quote ({quote_dollars!r}) and threshold ({price_move_threshold!r}) must be positive")
        kind = maker or ("constant_product_legacy" if self.is_original else "fixed_product")
        for question in questions:
            self.ledger.open(MarketQuestion(question) if isinstance(question, str) else question, kind, liquidity)

    def observe(self, agent_id: int) -> Observation:
        """Return a trader's view of the markets and, under the corrected rules, its cash, quotes and last results."""
        facts = self.facts(agent_id)
        tradable = [view for view in facts.markets if view.is_open]
        return Observation(
            text=self.wording.write_original(facts)
            if self.is_original
            else self.wording.write_corrected(facts, self.names),
            instructions=self._instructions,
            options={
                "buy_shares.market_id": tuple(view.market_id for view in tradable),
                "sell_shares.market_id": tuple(
                    view.market_id for view in tradable if max(view.yes_shares, view.no_shares) > 0
                ),
                **_owned_sides(tradable),
                "comment_on_market.market_id": tuple(view.market_id for view in facts.markets if view.answer is None),
            },
            limits={} if facts.cash is None else _limits_of(facts.cash, self.ledger.limits.dollars, tradable),
            facts=facts,
            persona_place="system" if self.is_original else "last",
        )

    def facts(self, agent_id: int) -> MarketFacts:
        """Return what a trader sees, as values.

        Raises:
            ValueError: If, under the original rules, a number of shares is NaN.
        """
        portfolio = self.ledger.portfolio(agent_id)
        views = tuple(self._view(market, portfolio) for market in self.ledger.markets.values())
        if self.is_original:
            return MarketFacts(self.step, None, views, self.quote_dollars)
        results = self._last_results.get(agent_id, ()) if self.shows_results else ()
        return MarketFacts(self.step, portfolio.cash, views, self.quote_dollars, results)

    @tool
    def browse_markets(self, agent_id: int) -> str:
        """List all markets with their ids, questions and prices."""
        return "\n".join(self.wording.market_line(market) for market in self.ledger.markets.values())

    @action(did="{result}")
    def buy_shares(self, agent_id: int, market_id: MarketId, outcome: Answer, amount: Positive) -> ActionResult:
        """Buy shares of an answer with cash.

        Args:
            market_id: Id of the market, as shown in brackets.
            outcome: The answer to buy, yes or no.
            amount: Dollars to spend; at most the cash you have.
        """

        def buy() -> ActionResult:
            trade = self.ledger.buy(agent_id, market_id, outcome, amount, self.step)
            return _traded(self.wording.trade_text(trade), trade)

        return self._noting(agent_id, buy)

    @action(did="{result}")
    def sell_shares(self, agent_id: int, market_id: MarketId, outcome: Answer, shares: Positive) -> ActionResult:
        """Sell shares of an answer that you hold.

        Args:
            market_id: Id of the market, as shown in brackets.
            outcome: The answer to sell, yes or no.
            shares: How many shares to sell; at most those you hold.
        """

        def sell() -> ActionResult:
            trade = self.ledger.sell(agent_id, market_id, outcome, shares, self.step)
            return _traded(self.wording.trade_text(trade, has_sold=True), trade)

        return self._noting(agent_id, sell)

    @action(did="You wrote about [{market_id}]: {text!r}")
    def comment_on_market(self, agent_id: int, market_id: MarketId, text: Remark) -> ActionResult:
        """Write a short public remark on a market.

        Args:
            market_id: Id of the market, as shown in brackets.
            text: What to say.
        """

        def comment() -> ActionResult:
            self.ledger.comment(agent_id, market_id, text, self.step)
            return ActionResult(self.wording.comment_text(market_id), market_id=market_id)

        return self._noting(agent_id, comment)

    def resolve(self, market_id: str, outcome: Outcome) -> float:
        """Resolve a question: pay a dollar for each share of the right answer, and close its market.

        Args:
            market_id: The market.
            outcome: The right answer.

        Returns:
            Dollars paid out.

        Raises:
            ConfigError: If the market is unknown or already resolved, or the answer is not yes or no.
        """
        payouts = self.ledger.settle(market_id, outcome)
        market = self.ledger.markets[market_id]
        facts = {
            "market_id": market_id,
            "question": market.question.text,
            "outcome": outcome,
            "price_yes": market.prices_yes[-1],
            "paid": payouts,
        }
        text = f"{market.question.text} The answer is {outcome}; YES last stood at ${market.prices_yes[-1]:.2f}."
        self._events.append(Event(self.name, "market_resolved", facts, text, self.step))
        return payouts

    def close(self, market_id: str) -> None:
        """Stop trading on a question that is not resolved yet.

        Raises:
            ConfigError: If the market is unknown.
        """
        self.ledger.market(market_id).is_open = False

    def forecasts(self) -> tuple[Forecast, ...]:
        """Return the prices of the questions resolved so far, for `score_forecasts`."""
        return tuple(
            Forecast(
                market.market_id,
                market.prices_yes[-1],
                math.fsum(market.prices_yes[:-1]) / (len(market.prices_yes) - 1),
                market.answer == "yes",
            )
            for market in self.ledger.markets.values()
            if market.answer is not None
        )

    def end_step(self) -> list[Event]:
        """End the step: report price changes and resolved questions."""
        for market in self.ledger.markets.values():
            if market.answer is None:
                self._record_price(market)
        self._last_results |= {agent_id: tuple(results) for agent_id, results in self._results.items()}
        self._results = {}
        self.step += 1
        events, self._events = self._events, []
        return events

    def _record_price(self, market: Market) -> None:
        """Record the price, and report a sufficient change."""
        before, now = market.prices_yes[-1], market.maker.price("yes")
        market.prices_yes.append(now)
        is_move = abs(now - before) >= self.price_move_threshold
        if not is_move or (now == before and not self.is_original):
            return
        facts = {
            "market_id": market.market_id,
            "question": market.question.text,
            "from": before,
            "to": now,
            "price_yes": now,
            "delta": now - before,
        }
        verb = "rose" if now > before else "fell"
        text = f"{market.question.text} YES {verb} from ${before:.2f} to ${now:.2f}."
        self._events.append(Event(self.name, "price_move", facts, text, self.step))

    def _noting(self, agent_id: int, act: Callable[[], ActionResult]) -> ActionResult:
        """Run an action, and store its result for the next observation."""
        results = self._results.setdefault(agent_id, [])
        try:
            result = act()
        except ToolError as refusal:
            results.append(f"refused: {refusal}")
            raise
        results.append(result.text)
        return result

    def _view(self, market: Market, portfolio: Portfolio) -> MarketView:
        yes_shares, no_shares = (portfolio.shares_of(market.market_id, outcome) for outcome in OUTCOMES)
        comments = self.ledger.comments.get(market.market_id, [])
        return MarketView(
            market_id=market.market_id,
            question=market.question.text,
            price_yes=market.maker.price("yes"),
            price_no=market.maker.price("no"),
            yes_shares=floor_shares(yes_shares) if self.is_original else yes_shares,
            no_shares=floor_shares(no_shares) if self.is_original else no_shares,
            yes_quote=self._quote(market, "yes"),
            no_quote=self._quote(market, "no"),
            yes_for_all=self._for_all(market, "yes", portfolio.cash),
            no_for_all=self._for_all(market, "no", portfolio.cash),
            is_open=market.is_open,
            due=market.question.due,
            answer=market.answer,
            past_prices=tuple(market.prices_yes[-PAST_STEPS_SHOWN:]),
            comments=tuple(comments[-COMMENTS_SHOWN:]),
        )

    def _quote(self, market: Market, outcome: Outcome) -> float | None:
        if self.is_original or not market.is_open:
            return None
        return market.maker.buy(outcome, self.quote_dollars * (1 - self.ledger.fee))[1]

    def _for_all(self, market: Market, outcome: Outcome, cash: float) -> Purchase | None:
        """Return what all cash, as far as one trade may cost, would buy of an answer."""
        dollars = min(math.floor(cash * 100) / 100, self.ledger.limits.dollars or math.inf)
        if self.is_original or not market.is_open or dollars <= 0:
            return None
        maker, shares = market.maker.buy(outcome, dollars * (1 - self.ledger.fee))
        return Purchase(dollars, shares, maker.price(outcome))

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return trades, and each market's YES price after each step, for exports and reports."""
        trades = [
            {
                "step": trade.step,
                "agent": trade.agent_id,
                "name": self.names.get(trade.agent_id, ""),
                "side": trade.side,
                "market": trade.market_id,
                "outcome": trade.outcome,
                "shares": trade.shares,
                "dollars": trade.dollars,
                "fee": trade.fee,
                "price": trade.price,
                "price_yes": trade.price_yes,
            }
            for trade in self.ledger.trades
        ]
        prices = [
            {"step": step, "market": market_id, "question": market.question.text, "price_yes": price}
            for market_id, market in self.ledger.markets.items()
            for step, price in enumerate(market.prices_yes)
        ]
        return {"trades": trades, "prices": prices}

    # from outside the run

    meanings = MappingProxyType(
        {
            "fee": "Share of each trade that is taken as a fee, from 0 on and below 1.",
            "max_trade_dollars": "Maximum number of dollars of one trade, above 0; null: no limit.",
            "max_trade_move": "Maximum change of a price by one trade, in dollars, above 0; null: no limit.",
        }
    )
    """Variable that can be changed during a run → its meaning."""

    def changeable(self) -> Mapping[str, Any]:
        """Return the variables that can be changed during a run: the fee, and the limits of a trade."""
        limits = self.ledger.limits
        return {"fee": self.ledger.fee, "max_trade_dollars": limits.dollars, "max_trade_move": limits.price_move}

    def change(self, variable: str, value: Any) -> None:
        """Change the fee, or a limit of a trade. Traders read it in their instructions.

        Raises:
            ToolError: If the variable is unknown, or the value is invalid.
        """
        if variable == "fee" and is_number(value) and 0 <= value < 1:
            self.ledger.fee = float(value)
        elif variable in LIMITS and (value is None or (is_number(value) and value > 0)):
            self.ledger.limits = replace(self.ledger.limits, **{LIMITS[variable]: value and float(value)})
        else:
            raise ToolError(self.wording.reason_text("no_variable", variable=variable, value=value))
        if not self.is_original:
            self._instructions = self.wording.instructions(self.ledger.fee, self.ledger.limits)


def _limits_of(
    cash: float, max_dollars: float | None, views: Sequence[MarketView]
) -> Mapping[str, tuple[float | None, float | None]]:
    """Return the smallest and the largest purchase, in dollars, and sale, in shares, that a trader is offered."""
    spendable = min(math.floor(cash * 100) / 100, math.inf if max_dollars is None else max_dollars)
    owned = [floor_shares(max(view.yes_shares, view.no_shares)) for view in views]
    return {
        "buy_shares.amount": (min(SMALLEST_PURCHASE, spendable), spendable),
        "sell_shares.shares": (SHARE_STEP, max(owned, default=0.0)),
    }


def _owned_sides(views: Sequence[MarketView]) -> Mapping[str, tuple[Outcome, ...]]:
    """Return the answer that can be sold, as an option, if the trader owns shares of one answer only."""
    has_yes, has_no = any(view.yes_shares > 0 for view in views), any(view.no_shares > 0 for view in views)
    if has_yes == has_no:
        return {}
    return {"sell_shares.outcome": ("yes" if has_yes else "no",)}


def _traded(text: str, trade: Trade) -> ActionResult:
    """Return the result of a trade, with its price change as facts."""
    return ActionResult(
        text,
        market_id=trade.market_id,
        outcome=trade.outcome,
        shares=trade.shares,
        dollars=trade.dollars,
        fee=trade.fee,
        price=trade.price,
    )
