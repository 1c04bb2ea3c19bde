"""Prediction markets: a world of questions whose answers are traded against automated makers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

from pydantic import BeforeValidator, Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import Event, Observation
from mesa_llm.tools import action, tool
from mesa_llm.world import DoNothing
from mesa_llm.worlds.amounts import NO_FLAG
from mesa_llm.worlds.market.accounts import Market, Portfolio, Question, TradeLimits
from mesa_llm.worlds.market.ledger import Ledger, Rules
from mesa_llm.worlds.market.makers import OUTCOMES, MakerName, Outcome
from mesa_llm.worlds.market.scores import Forecast
from mesa_llm.worlds.market.views import (
    ORIGINAL_RULES_TEXT,
    REMARK_CHARACTERS,
    MarketFacts,
    MarketView,
    floor_shares,
    instructions,
    write_corrected,
    write_original,
)


def _lowered(given: object) -> object:
    return given.strip().lower() if isinstance(given, str) else given


MarketId = Annotated[str, Field(max_length=80)]
Answer = Annotated[Outcome, BeforeValidator(_lowered)]
Positive = Annotated[float, Field(gt=0), NO_FLAG]
Remark = Annotated[str, Field(max_length=REMARK_CHARACTERS)]

NO_LIMITS = TradeLimits()
PAST_STEPS_SHOWN = 5
COMMENTS_SHOWN = 3


class PredictionMarkets(DoNothing):
    """Markets on questions that are answered yes or no.

    Under the corrected rules (default) a price is the price of a one-dollar claim, questions can be answered
    and pay out, and traders see their cash, quotes, remarks and what came of their last actions.
    `rules="original"` is SimSwarm's environment with its faults: called directly, its actions let NaN pass,
    and raise Python's own errors for arguments of the wrong type.

    Source:
        SimSwarm's market environment; see `makers` for the market makers.
    """

    def __init__(
        self,
        questions: Sequence[Question | str],
        *,
        maker: MakerName | None = None,
        cash: float = 1000.0,
        liquidity: float = 500.0,
        fee: float = 0.0,
        limits: TradeLimits = NO_LIMITS,
        price_move_threshold: float = 0.1,
        quote_dollars: float = 10.0,
        rules: Rules = "corrected",
        names: Mapping[int, str] | None = None,
        name: str = "market",
    ) -> None:
        """Open the markets.

        Args:
            questions: What is asked; a plain string opens at one half.
            maker: Who trades with everyone; None: `fixed_product`, or SimSwarm's under its rules.
            cash: Dollars each trader starts with.
            liquidity: Depth of the makers; see `open_maker`.
            fee: Share of the dollars of every trade that is kept as a fee, from 0 on and below 1.
            limits: How large one trade may be.
            price_move_threshold: By how much a price has to move in a step to be told as an event.
            quote_dollars: Size of the small buy that observations quote.
            rules: `corrected` or `original`.
            names: What traders call each other, by id.
            name: Name of the world.

        Raises:
            ConfigError: If there are no such rules, the questions are one text instead of a list, or a number is out
                of range, under the corrected rules.
            ZeroDivisionError: If the liquidity is 0, under the original rules.
        """
        if isinstance(questions, str):
            raise ConfigError(f"questions are a list of texts, got one text: {questions[:80]!r}")
        self.name = name
        self.names = dict(names or {})
        self.is_original = rules == "original"
        self.ledger = Ledger(cash, fee, limits, rules)
        self.price_move_threshold = price_move_threshold
        self.quote_dollars = quote_dollars
        self.step = 1
        self._instructions = ORIGINAL_RULES_TEXT if self.is_original else instructions(fee, limits)
        self._events: list[Event] = []
        self._results: dict[int, list[str]] = {}
        self._shown_results: dict[int, tuple[str, ...]] = {}
        if not (self.is_original or (0 < quote_dollars < math.inf and price_move_threshold >= 0)):
            raise ConfigError(f"quote ({quote_dollars!r}) and threshold ({price_move_threshold!r}) must be positive")
        kind = maker or ("constant_product_legacy" if self.is_original else "fixed_product")
        for question in questions:
            self.ledger.open(Question(question) if isinstance(question, str) else question, kind, liquidity)

    def observe(self, agent: int) -> Observation:
        """Show a trader the markets, and under the corrected rules also its cash, quotes and last results."""
        facts = self.facts(agent)
        return Observation(
            text=write_original(facts) if self.is_original else write_corrected(facts, self.names),
            rules=self._instructions,
            options={
                "buy_shares.market_id": tuple(view.market_id for view in facts.markets if view.is_open),
                "sell_shares.market_id": tuple(
                    view.market_id for view in facts.markets if view.is_open and max(view.yes_held, view.no_held) > 0
                ),
                "comment_on_market.market_id": tuple(view.market_id for view in facts.markets),
            },
            facts=facts,
        )

    def facts(self, agent: int) -> MarketFacts:
        """Give what a trader sees, as values.

        Raises:
            ValueError: If NaN got into a holding, under the original rules.
        """
        portfolio = self.ledger.portfolio(agent)
        views = tuple(self._view(market, portfolio) for market in self.ledger.markets.values())
        if self.is_original:
            return MarketFacts(self.step, None, views, self.quote_dollars)
        return MarketFacts(self.step, portfolio.cash, views, self.quote_dollars, self._shown_results.get(agent, ()))

    @tool
    def browse_markets(self, actor: int) -> str:
        """List all markets with their ids, questions and prices."""
        return "\n".join(
            f"[{market.market_id}] {market.question.text} YES ${market.maker.price('yes'):.3f}, "
            f"NO ${market.maker.price('no'):.3f}" + ("" if market.is_open else " (closed)")
            for market in self.ledger.markets.values()
        )

    @action
    def buy_shares(self, actor: int, market_id: MarketId, outcome: Answer, amount: Positive) -> str:
        """Buy shares of an answer with cash.

        Args:
            market_id: Id of the market, as shown in brackets.
            outcome: The answer to buy, yes or no.
            amount: Dollars to spend; at most the cash you have.
        """

        def buy() -> str:
            trade = self.ledger.buy(actor, market_id, outcome, amount, self.step)
            bought = f"{trade.shares:.2f} {trade.outcome.upper()} shares of [{market_id}]"
            return f"you bought {bought} for ${trade.dollars:.2f}."

        return self._noting(actor, buy)

    @action
    def sell_shares(self, actor: int, market_id: MarketId, outcome: Answer, shares: Positive) -> str:
        """Sell shares of an answer that you hold.

        Args:
            market_id: Id of the market, as shown in brackets.
            outcome: The answer to sell, yes or no.
            shares: How many shares to sell; at most those you hold.
        """

        def sell() -> str:
            trade = self.ledger.sell(actor, market_id, outcome, shares, self.step)
            sold = f"{trade.shares:.2f} {trade.outcome.upper()} shares of [{market_id}]"
            return f"you sold {sold} for ${trade.dollars:.2f}."

        return self._noting(actor, sell)

    @action
    def comment_on_market(self, actor: int, market_id: MarketId, text: Remark) -> str:
        """Write a short public remark on a market.

        Args:
            market_id: Id of the market, as shown in brackets.
            text: What to say.
        """

        def comment() -> str:
            self.ledger.comment(actor, market_id, text, self.step)
            return f"you wrote about [{market_id}]."

        return self._noting(actor, comment)

    def resolve(self, market_id: str, outcome: Outcome) -> float:
        """Answer a question: pay a dollar for each share of the right answer, and close its market.

        Args:
            market_id: The market.
            outcome: The right answer.

        Returns:
            Dollars paid out.

        Raises:
            ConfigError: If there is no such market, it was answered before, or the answer is not yes or no.
        """
        paid = self.ledger.settle(market_id, outcome)
        market = self.ledger.markets[market_id]
        facts = {
            "market_id": market_id,
            "question": market.question.text,
            "outcome": outcome,
            "price_yes": market.prices_yes[-1],
            "paid": paid,
        }
        text = f"{market.question.text} The answer is {outcome}; YES last stood at ${market.prices_yes[-1]:.2f}."
        self._events.append(Event(self.name, "market_resolved", facts, text, self.step))
        return paid

    def close(self, market_id: str) -> None:
        """End the trade on a question that is not answered yet.

        Raises:
            ConfigError: If there is no such market.
        """
        self.ledger.known(market_id).is_open = False

    def forecasts(self) -> tuple[Forecast, ...]:
        """Give what the markets said about the questions answered so far, for `score_forecasts`."""
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
        """Tell of prices that moved and questions that were answered, and go on to the next step."""
        for market in self.ledger.markets.values():
            if market.answer is None:
                self._note_price(market)
        self._shown_results |= {actor: tuple(results) for actor, results in self._results.items()}
        self._results = {}
        self.step += 1
        events, self._events = self._events, []
        return events

    def _note_price(self, market: Market) -> None:
        """Write the price down, and tell of it if it moved far enough."""
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

    def _noting(self, actor: int, act: Callable[[], str]) -> str:
        """Run an action, and remember for the next observation what came of it."""
        results = self._results.setdefault(actor, [])
        try:
            results.append(act())
        except ToolError as refusal:
            results.append(f"refused: {refusal}")
            raise
        return results[-1]

    def _view(self, market: Market, portfolio: Portfolio) -> MarketView:
        yes_held, no_held = (portfolio.held(market.market_id, outcome) for outcome in OUTCOMES)
        comments = self.ledger.comments.get(market.market_id, [])
        return MarketView(
            market_id=market.market_id,
            question=market.question.text,
            price_yes=market.maker.price("yes"),
            price_no=market.maker.price("no"),
            yes_held=floor_shares(yes_held) if self.is_original else yes_held,
            no_held=floor_shares(no_held) if self.is_original else no_held,
            yes_quote=self._quote(market, "yes"),
            no_quote=self._quote(market, "no"),
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
