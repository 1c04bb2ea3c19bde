"""A stock exchange: an order book for each of two stocks, a bank, company reports and a forum."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, Event, Observation
from mesa_llm.text import counted
from mesa_llm.tools.tool import action, tool
from mesa_llm.tools.validation import NO_FLAG, is_whole
from mesa_llm.world import RNG, DoNothing, Rules
from mesa_llm_models.stock_agent.world import text as wording
from mesa_llm_models.stock_agent.world.book import Side
from mesa_llm_models.stock_agent.world.facts import TraderFacts
from mesa_llm_models.stock_agent.world.lending import Lending, borrow
from mesa_llm_models.stock_agent.world.matching import TradingRules
from mesa_llm_models.stock_agent.world.rules import Floor, StockMarket
from mesa_llm_models.stock_agent.world.state import (
    STOCKS,
    ActionForecast,
    Calendar,
    Endowment,
    History,
    LoanTaken,
    Moment,
    Stock,
    TradingAccount,
)
from mesa_llm_models.stock_agent.world.text import Board, Screen, money_text, shares_text, spendable_text

MAX_SHARES = 10**12
MAX_MONEY = 1e12
"""Maximum shares and money of an order or a loan. Larger numbers are rejected as mistakes."""

PRICE_RANGE = 2.0
"""Multiple, and part, of the latest prices within which prices are offered under strict settlement."""

RECENT_SESSIONS = 10
"""Maximum number of recent session prices in a trader's facts."""

MAX_CHARACTERS = 2000
"""Maximum number of characters of a post."""

Shares = Annotated[int, Field(gt=0, le=MAX_SHARES), NO_FLAG]
Money = Annotated[float, Field(gt=0, le=MAX_MONEY), NO_FLAG]
LoanType = Annotated[Literal[0, 1, 2], NO_FLAG]
PostText = Annotated[str, Field(min_length=1, max_length=MAX_CHARACTERS)]


class Exchange(DoNothing):
    """Traders borrow, trade two stocks through order books, forecast and post, day by day.

    Each `end_step()` ends one stage: the loans, one trading session, the forecasts, or the posts. `turn_order` lists
    the traders who decide in the current stage: in a session one after another, each seeing the previous trader's
    actions (`takes_turns`); in the other stages all at once.

    Source:
        Zhang et al. (2024), When AI Meets Finance (StockAgent), arXiv 2407.18957; its program, whose defects
        `rules="original"` reproduces.
    """

    wording: ClassVar[Any] = wording
    """Module with the texts agents read. A subclass may set its own."""

    def __init__(
        self,
        endowments: Iterable[Endowment],
        rng: RNG,
        rules: Rules = "corrected",
        trading: TradingRules | None = None,
        calendar: Calendar | None = None,
        lending: Lending | None = None,
        screen: Screen | None = None,
        name: str = "exchange",
    ) -> None:
        """Open the exchange on the morning of day 1.

        Args:
            endowments: Endowment of each trader (see `draw_endowments`).
            rng: Random generator for the acting order, drawn anew for every session.
            rules: `original` reproduces the original's defects; `corrected` settles fills strictly, at whole cents, and
                lets bids above offers trade.
            trading: Detailed trading rules; None for those of `rules`.
            calendar: Days and sessions.
            lending: The bank's terms.
            screen: Contents of an observation.
            name: Name of the world, unique in a model.

        Raises:
            ConfigError: If the settings contradict each other, or an endowment is invalid.
        """
        self.name = name
        self.trading = TradingRules.of(rules, trading)
        self.calendar = calendar or Calendar()
        self.lending = lending or Lending()
        self.screen = screen or Screen()
        self.market = StockMarket(endowments, self.trading, self.lending)
        # reading the forum must not change anything, including `rng`, so the initial draws seed its excerpts
        self._forum_seed = sum(account.cash for account in self.market.accounts.values())
        self._floor = Floor(self.market, self.calendar, rng)
        self._board = Board(self.market.books, self.screen.max_orders)
        self._instructions = self.wording.instructions(self.calendar, self.trading, self.lending)

    def set_days(self, days: int) -> None:
        """Change the last day of the exchange. If that day is past, the current day is the last.

        Args:
            days: Number of the last day.
        """
        self.calendar = self._floor.calendar = replace(self.calendar, days=days)

    @property
    def now(self) -> Moment:
        """Day, stage and session."""
        return self._floor.now

    @property
    def turn_order(self) -> tuple[int, ...]:
        """Ids of the traders who decide in the current stage, in order; drawn at random in a session."""
        return self._floor.turn_order

    @property
    def takes_turns(self) -> bool:
        """Whether traders decide one after another now."""
        return self.now.stage == "trade"

    @property
    def is_over(self) -> bool:
        """Whether the last day has ended."""
        return self.now.stage == "closed"

    def tables(self) -> Mapping[str, list[dict[str, Any]]]:
        """Return trades and orders, for exports and reports."""
        history = self.history
        return {
            "trades": [trade._asdict() for trade in history.trades],
            "orders": [order._asdict() for order in history.orders],
        }

    @property
    def history(self) -> History:
        """The history, as rows for tables and plots."""
        return self.market.history

    def observe(self, agent_id: int) -> Observation:
        """Return what a trader sees now. Reads only.

        Raises:
            ConfigError: If the trader is unknown.
        """
        facts = self.facts(agent_id)
        if self.market.accounts[agent_id].has_left:
            return Observation(text=self.wording.INSOLVENT, tools=(), facts=facts)
        text = self.wording.situation(facts, self._board, shows_posts=self.screen.shows_posts)
        instructions = self._instructions
        if (self.now.stage, self.now.session) == ("trade", 1):
            instructions = f"{instructions}\n{self.wording.company_news(self.now.day)}"
        owned = tuple(stock for stock in STOCKS if facts.shares[stock] > 0)
        options = {"sell.stock": owned} if self.takes_turns else {}
        tools = () if self.is_over else None
        limits = self._limits(facts)
        return Observation(text, instructions, tools=tools, options=options, limits=limits, facts=facts)

    def _limits(self, facts: TraderFacts) -> dict[str, tuple[float | None, float | None]]:
        """Return the largest loan, and the smallest and largest orders, that a trader is offered."""
        limits: dict[str, tuple[float | None, float | None]] = {
            "take_loan.amount": (None, math.floor(facts.loan_limit * 100) / 100),
            "sell.quantity": (1, max(facts.shares.values())),
        }
        if self.trading.settlement != "strict":
            return limits
        lowest, highest = min(facts.prices.values()), max(facts.prices.values())
        prices = (max(self.trading.tick, round(lowest / PRICE_RANGE, 2)), round(highest * PRICE_RANGE, 2))
        affordable = max(1, math.floor(facts.cash / lowest))
        return limits | {"buy.price": prices, "sell.price": prices, "buy.quantity": (1, affordable)}

    def facts(self, agent_id: int) -> TraderFacts:
        """Return what a trader sees now, as values.

        Raises:
            ConfigError: If the trader is unknown.
        """
        account = self.market.accounts.get(agent_id)
        if account is None:
            raise ConfigError(f"there is no trader {agent_id} on {self.name!r}; use an id from its accounts")
        holding, closes = self.market.holding(account), self.history.closes[-len(STOCKS) :]
        return TraderFacts(
            trader=agent_id,
            now=self.now,
            style=account.style,
            cash=account.cash,
            shares=dict(account.shares),
            loans=tuple(account.loans),
            loan_limit=account.loan_limit,
            rates=self.market.rates,
            term_days=self.lending.term_days,
            prices=dict(self.market.prices),
            recent_prices={stock: tuple(self.market.paths[stock][-RECENT_SESSIONS:]) for stock in STOCKS},
            volumes={stock: sum(close.volume for close in closes if close.stock == stock) for stock in STOCKS},
            worth=holding.property - holding.debt,
            profit=holding.profit,
            bids={stock: self.market.books[stock].quote("buy") for stock in STOCKS},
            asks={stock: self.market.books[stock].quote("sell") for stock in STOCKS},
            posts=self._floor.forum.posts,
            cancellations=self.market.cancellations_of(agent_id),
        )

    @tool(when="has_posts")
    def read_forum(self, agent_id: int) -> str:
        """Read what the other traders wrote on the forum yesterday, and today's announcements."""
        rng = random.Random(f"{self._forum_seed} {self.now.day} {agent_id}")
        return self.wording.forum_excerpt(self._floor.forum.posts, rng)

    @action(when="may_borrow")
    def take_loan(self, agent_id: int, loan_type: LoanType, amount: Money) -> ActionResult:
        """Take a loan; the money is paid out at once.

        Args:
            loan_type: 0, 1 or 2; the observation says for how many days and at what rate.
            amount: Money to borrow, at most what you may still borrow.
        """
        account = self._floor.account_in_turn(agent_id, "loan")
        self.trading.refuse_flags(loan_type, amount)
        if loan_type not in (0, 1, 2):
            raise ToolError(self.wording.reason_text("no_loan_type", loan_type=loan_type))
        due = self.now.day + self.lending.term_days[int(loan_type)]
        loan = borrow(account, amount, int(loan_type), due)
        self._floor.end_turn(agent_id)
        self.history.loans.append(LoanTaken(self.now.day, agent_id, loan.loan_type, loan.principal))
        text = self.wording.result_text("take_loan", principal=loan.principal, due_day=due)
        return ActionResult(text, loan_type=loan.loan_type, principal=loan.principal, due_day=due)

    @property
    def moment(self) -> str:
        """Day and session, as they begin a sentence."""
        match self.now.stage:
            case "loan":
                return f"Before trading on day {self.now.day}"
            case "trade":
                return f"In session {self.now.session} of day {self.now.day}"
            case _:
                return f"After trading on day {self.now.day}"

    @action(when="may_trade", did=wording.order_sentence)
    def buy(self, agent_id: int, stock: Stock, quantity: Shares, price: Money) -> ActionResult:
        """Place an order to buy shares.

        Args:
            stock: A or B.
            quantity: Whole number of shares; quantity times price, with any fee, must not exceed your cash.
            price: Money you bid per share.
        """
        account = self._check_order(agent_id, stock, quantity, price)
        price = self.trading.price_of(price)
        fee = self.trading.fee_of(quantity)
        if quantity * price + fee > account.cash:
            raise ToolError(
                self.wording.reason_text(
                    "cash_with_fee" if fee else "cash",
                    shares=counted(quantity, "share"),
                    price=money_text(price),
                    cost=money_text(quantity * price + fee),
                    fee=money_text(fee),
                    cash=spendable_text(account.cash),
                )
            )
        return self._place(agent_id, stock, "buy", quantity, price)

    @action(when="may_trade", did=wording.order_sentence)
    def sell(self, agent_id: int, stock: Stock, quantity: Shares, price: Money) -> ActionResult:
        """Place an order to sell shares that you have.

        Args:
            stock: A or B.
            quantity: Whole number of shares, at most those you have.
            price: Money you ask per share.
        """
        account = self._check_order(agent_id, stock, quantity, price)
        price = self.trading.price_of(price)
        if quantity > account.shares[stock]:
            owned = shares_text(account.shares[stock])
            raise ToolError(
                self.wording.reason_text("shares", shares=counted(quantity, "share"), stock=stock, owned=owned)
            )
        fee = self.trading.fee_of(quantity)
        if account.cash + quantity * price < fee:
            raise ToolError(self.wording.reason_text("fee", fee=money_text(fee)))
        return self._place(agent_id, stock, "sell", quantity, price)

    @action(when="may_estimate", did=wording.forecast_sentence)
    def estimate(self, agent_id: int, buy_a: bool, buy_b: bool, sell_a: bool, sell_b: bool, take_loan: bool) -> str:
        """Say what you expect to do tomorrow; it binds you to nothing.

        Args:
            buy_a: Whether you will buy A.
            buy_b: Whether you will buy B.
            sell_a: Whether you will sell A.
            sell_b: Whether you will sell B.
            take_loan: Whether you will take a loan.
        """
        self._floor.account_in_turn(agent_id, "estimate")
        self._floor.end_turn(agent_id)
        forecast = ActionForecast(self.now.day, agent_id, buy_a, buy_b, sell_a, sell_b, take_loan)
        self.history.forecasts.append(forecast)
        return self.wording.result_text("estimate")

    @action(when="may_post", did="You wrote on the forum: {text!r}")
    def post_message(self, agent_id: int, text: PostText) -> str:
        """Post on the forum; all traders can read it tomorrow.

        Args:
            text: What you write.
        """
        self._floor.account_in_turn(agent_id, "post")
        if not text.strip() or len(text) > MAX_CHARACTERS:
            raise ToolError(self.wording.reason_text("post", characters=len(text), maximum=MAX_CHARACTERS))
        self._floor.end_turn(agent_id)
        self._floor.forum.write(self.now.day, agent_id, text.strip())
        return self.wording.result_text("post_message")

    def has_posts(self, agent_id: int) -> bool:
        """Check whether the forum has anything to read."""
        return bool(self._floor.forum.posts)

    def may_borrow(self, agent_id: int) -> bool:
        """Check whether a trader may take a loan now."""
        return self._floor.refusal(agent_id, "loan") is None

    def may_trade(self, agent_id: int) -> bool:
        """Check whether a trader may place an order now."""
        return self._floor.refusal(agent_id, "trade") is None

    def may_estimate(self, agent_id: int) -> bool:
        """Check whether a trader may forecast now."""
        return self._floor.refusal(agent_id, "estimate") is None

    def may_post(self, agent_id: int) -> bool:
        """Check whether a trader may post now."""
        return self._floor.refusal(agent_id, "post") is None

    def end_step(self) -> list[Event]:
        """End the current stage and begin the next.

        Returns:
            Price changes, forced sales, bankruptcies and rate changes; their `time` is the day.
        """
        return [self.wording.event_of(self.name, happening) for happening in self._floor.end_stage()]

    def _check_order(self, agent_id: int, stock: Stock, quantity: int, price: float) -> TradingAccount:
        """Return the account of a trader who may place this order, regardless of its means.

        Raises:
            ToolError: If it may not, or the order is invalid.
        """
        account = self._floor.account_in_turn(agent_id, "trade")
        if stock not in STOCKS:
            raise ToolError(self.wording.reason_text("no_stock", stock=stock))
        self.trading.refuse_flags(quantity, price)
        if not 0 < quantity <= MAX_SHARES or not 0 < price <= MAX_MONEY:
            raise ToolError(self.wording.reason_text("size", quantity=quantity, price=money_text(price)))
        if not is_whole(quantity) and not isinstance(quantity, bool):
            raise ToolError(self.wording.reason_text("fraction", quantity=quantity))
        return account

    def _place(self, agent_id: int, stock: Stock, side: Side, quantity: int, price: float) -> ActionResult:
        """Place an order, and return its immediate trades."""
        match = self.market.place(self.now, agent_id, stock, side, quantity, price)
        self._floor.end_turn(agent_id)
        fills = [{"quantity": fill.quantity, "price": fill.price} for fill in match.fills if fill.quantity]
        is_cancelled = any(order.side == side for order in match.cancelled_orders)
        text = self.wording.outcome_text(agent_id, stock, side, quantity, match)
        return ActionResult(
            text, stock=stock, side=side, quantity=quantity, price=price, fills=fills, is_cancelled=is_cancelled
        )
