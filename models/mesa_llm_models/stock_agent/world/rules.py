"""Rules of the exchange: the market, and the stages of a trading day."""

from __future__ import annotations

from collections.abc import Iterable

from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.world import RNG
from mesa_llm_models.stock_agent.world.book import SIDES, Order, OrderBook, Quote, Side
from mesa_llm_models.stock_agent.world.lending import Lending, liquidation_of, pay_interest, repay_due
from mesa_llm_models.stock_agent.world.matching import Match, TradingRules, Venue
from mesa_llm_models.stock_agent.world.matching_original import OriginalVenue
from mesa_llm_models.stock_agent.world.state import (
    FIRST_PRICES,
    STOCKS,
    Calendar,
    Cancellation,
    Close,
    DayStage,
    Endowment,
    Forum,
    Happening,
    History,
    Holding,
    Liquidation,
    Moment,
    RateChange,
    Stock,
    StockTrade,
    Submission,
    TradingAccount,
)
from mesa_llm_models.stock_agent.world.text import reason_text


class StockMarket:
    """Accounts, order books, prices and the bank, and the events of a day."""

    def __init__(
        self,
        endowments: Iterable[Endowment],
        rules: TradingRules,
        lending: Lending,
    ) -> None:
        """Open the accounts.

        Raises:
            ConfigError: If there are no traders, or one occurs twice.
        """
        self.prices: dict[Stock, float] = dict(FIRST_PRICES)
        accounts = [TradingAccount.of(start, self.prices) for start in endowments]
        self.accounts = {account.trader: account for account in accounts}
        if not accounts or len(self.accounts) < len(accounts):
            raise ConfigError(f"{len(accounts)} endowments for {len(self.accounts)} traders; give one to each")
        self.rates = lending.rates
        self.lending = lending
        self.history = History()
        self.fees_paid = 0.0
        self.books: dict[Stock, OrderBook] = {stock: OrderBook() for stock in STOCKS}
        venue = Venue if rules.settlement == "strict" else OriginalVenue
        self._venues = {stock: venue(stock, self.books[stock], self.accounts, rules) for stock in STOCKS}
        self.paths: dict[Stock, list[float]] = {stock: [price] for stock, price in self.prices.items()}
        """Session prices so far by stock; the first is the price before any trade."""
        self.day = 1
        self._accrues = rules.settlement == "strict"
        self._accrued_at_start = {trader: self._accrued(account) for trader, account in self.accounts.items()}
        self._trades_before = self._orders_before = 0
        self._cancellations: dict[int, list[Cancellation]] = {}

    @property
    def active_accounts(self) -> list[TradingAccount]:
        """Accounts of the traders still in the market, in opening order."""
        return [account for account in self.accounts.values() if not account.has_left]

    def open_day(self, day: int) -> tuple[list[Liquidation], list[RateChange]]:
        """Empty the books, collect due payments, liquidate traders who cannot pay, then change the rates.

        Returns:
            Forced sales and departures, and rate changes announced today.
        """
        self.day = day
        for stock in STOCKS:
            self.books[stock].clear()
        self._cancellations = {}
        present = self.active_accounts
        for account in present:
            repay_due(account, day, self.rates)
        if self.lending.is_interest_day(day):
            for account in present:
                pay_interest(account, self.rates)
        liquidations = [liquidation_of(day, account, self.prices) for account in present if account.is_marked]
        self.history.liquidations += liquidations
        changes = [change for change in self.lending.rate_changes if change.day == day]
        for change in changes:
            self.rates = change.rates
        return liquidations, changes

    def place(self, now: Moment, trader: int, stock: Stock, side: Side, quantity: int, price: float) -> Match:
        """Match an order with the book at once, and add its rows to the history."""
        order = Order(trader, side, price, quantity)
        match = self._venues[stock].match(order)
        filled = sum(fill.quantity for fill in match.fills)
        self.fees_paid += match.fees
        self.history.orders.append(Submission(now.day, now.session, trader, stock, side, quantity, price, filled))
        self.history.trades += [StockTrade(now.day, now.session, stock, *fill) for fill in match.fills]
        for cancelled in match.cancelled_orders:
            rested = cancelled is not order
            row = Cancellation(
                now.day,
                now.session,
                cancelled.trader,
                stock,
                cancelled.side,
                cancelled.quantity,
                cancelled.price,
                rested,
            )
            self.history.cancellations.append(row)
            if cancelled.trader != trader:
                self._cancellations.setdefault(cancelled.trader, []).append(row)
        return match

    def cancellations_of(self, trader: int) -> tuple[Cancellation, ...]:
        """Return a trader's waiting orders cancelled today on meeting another's order."""
        return tuple(self._cancellations.get(trader, ()))

    def close_session(self, now: Moment) -> list[Close]:
        """Set the session prices, and return a summary of the session for each stock."""
        trades = self.history.trades[self._trades_before :]
        orders = self.history.orders[self._orders_before :]
        self._trades_before, self._orders_before = len(self.history.trades), len(self.history.orders)
        closes = [self._close(now, stock, trades, orders) for stock in STOCKS]
        self.history.closes += closes
        return closes

    def _close(self, now: Moment, stock: Stock, trades: list[StockTrade], orders: list[Submission]) -> Close:
        fills = [trade for trade in trades if trade.stock == stock]
        sides = [order.side for order in orders if order.stock == stock]
        before = self.prices[stock]
        if fills:
            self.prices[stock] = fills[-1].price
        self.paths[stock].append(self.prices[stock])
        bid, ask = self.books[stock].quote("buy"), self.books[stock].quote("sell")
        return Close(
            day=now.day,
            session=now.session,
            stock=stock,
            price=self.prices[stock],
            before=before,
            fills=len(fills),
            volume=sum(trade.quantity for trade in fills),
            buys=sides.count("buy"),
            sells=sides.count("sell"),
            best_bid=bid.price if bid else None,
            best_ask=ask.price if ask else None,
        )

    def depth(self, stock: Stock) -> dict[Side, list[Quote]]:
        """Return the shares resting at each price of a stock, best price first, by side."""
        return {side: self.books[stock].depth(side) for side in SIDES}

    def portfolios(self) -> list[Holding]:
        """Return the assets and debts of each remaining trader, at the latest prices."""
        return [self.holding(account) for account in self.active_accounts]

    def holding(self, account: TradingAccount) -> Holding:
        """Return the assets and debts of a trader, at the latest prices."""
        value, debt = account.property_at(self.prices), account.debt
        accrued = self._accrued(account)
        return Holding(
            trader=account.trader,
            style=account.style,
            cash=account.cash,
            a=account.shares["A"],
            b=account.shares["B"],
            debt=debt,
            property=value,
            profit=value - debt - account.net_at_start - (accrued - self._accrued_at_start[account.trader]),
            accrued=accrued,
        )

    def _accrued(self, account: TradingAccount) -> float:
        """Compute a trader's unpaid interest; 0 under the original rules, which ignore it."""
        return self.lending.accrued(account.loans, self.day, self.rates) if self._accrues else 0.0


class Floor:
    """Runs the stages of a day: the order of turns, and the events at the end of each stage."""

    def __init__(self, market: StockMarket, calendar: Calendar, rng: RNG) -> None:
        """Open on the morning of day 1.

        Args:
            market: The market.
            calendar: Days and sessions.
            rng: Random generator for the acting order, drawn anew for every session.
        """
        self.market = market
        self.calendar = calendar
        self.forum = Forum()
        self.now = Moment(1, "loan", 0)
        self.turn_order: tuple[int, ...] = ()
        self._rng = rng
        self._acted: set[int] = set()
        self._open_stage()

    def end_stage(self) -> list[Happening]:
        """End the current stage and begin the next.

        Returns:
            Price changes, forced sales, departures and rate changes.
        """
        happenings: list[Happening] = []
        if self.now.stage == "trade":
            happenings += [close for close in self.market.close_session(self.now) if close.price != close.before]
        elif self.now.stage == "post":
            self.forum.next_day()
        self.now = self.calendar.after(self.now)
        return happenings + self._open_stage()

    def refusal(self, agent_id: int, stage: DayStage) -> str | None:
        """Return why a trader may not act in a stage, or None if it may."""
        account = self.market.accounts.get(agent_id)
        if account is None:
            return reason_text("no_trader", agent_id=agent_id)
        if account.has_left:
            return reason_text("insolvent")
        if stage != self.now.stage:
            return reason_text("wrong_stage", stage=stage, now=self.now.stage)
        if agent_id in self._acted:
            return reason_text("acted")
        if stage == "loan" and account.loan_limit <= 0:
            return reason_text("no_credit")
        return None

    def account_in_turn(self, agent_id: int, stage: DayStage) -> TradingAccount:
        """Return the account of a trader whose turn it is.

        Raises:
            ToolError: If it may not act now.
        """
        refusal = self.refusal(agent_id, stage)
        if refusal is not None:
            raise ToolError(refusal)
        return self.market.accounts[agent_id]

    def end_turn(self, agent_id: int) -> None:
        """Record that a trader has used its turn in this stage."""
        self._acted.add(agent_id)

    def _open_stage(self) -> list[Happening]:
        """Begin a stage: settle due payments in the morning, and set the order of turns."""
        self._acted = set()
        happenings = self._open_day() if self.now.stage == "loan" else []
        present = [] if self.now.stage == "closed" else self.market.active_accounts
        if self.now.stage == "loan":
            present = [account for account in present if account.loan_limit > 0]
        elif self.now.stage == "trade":
            indices = list(range(len(present)))
            self._rng.shuffle(indices)
            present = [present[index] for index in indices]
        self.turn_order = tuple(account.trader for account in present)
        return happenings

    def _open_day(self) -> list[Happening]:
        """Settle due payments, and announce rate changes on the forum."""
        liquidations, changes = self.market.open_day(self.now.day)
        for change in changes:
            self.forum.announce(self.now.day, change.text)
        return [*liquidations, *changes]
