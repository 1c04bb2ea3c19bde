"""The state of the exchange: accounts, books, prices and the bank, and how a day moves them."""

from __future__ import annotations

from collections.abc import Iterable

from mesa_llm.errors import ConfigError
from mesa_llm.worlds.exchange.accounts import FIRST_PRICES, STOCKS, Account, Endowment, Stock
from mesa_llm.worlds.exchange.book import SIDES, Order, OrderBook, Quote, Side
from mesa_llm.worlds.exchange.history import Cancelled, Close, History, Holding, Submitted, Trade
from mesa_llm.worlds.exchange.insolvency import Liquidation, liquidation_of
from mesa_llm.worlds.exchange.lending import Lending, Policy, pay_interest, repay_due
from mesa_llm.worlds.exchange.matching import Match, Venue
from mesa_llm.worlds.exchange.schedule import Moment
from mesa_llm.worlds.exchange.settlement import TradingRules


class Market:
    """Two stocks, their traders, and the bank."""

    def __init__(
        self,
        endowments: Iterable[Endowment],
        rules: TradingRules,
        lending: Lending,
    ) -> None:
        """Open the accounts.

        Raises:
            ConfigError: If there is no trader, or one occurs twice.
        """
        self.prices = dict(FIRST_PRICES)
        opened = [Account.of(start, self.prices) for start in endowments]
        self.accounts = {account.trader: account for account in opened}
        if not opened or len(self.accounts) < len(opened):
            raise ConfigError(f"{len(opened)} endowments for {len(self.accounts)} traders; give one to each")
        self.rates = lending.rates
        self.lending = lending
        self.history = History()
        self.fees_paid = 0.0
        self.books: dict[Stock, OrderBook] = {stock: OrderBook() for stock in STOCKS}
        self._venues = {stock: Venue(stock, self.books[stock], self.accounts, rules) for stock in STOCKS}
        self.paths = {stock: [price] for stock, price in self.prices.items()}
        """Session prices so far by stock; the first is the price before any trade."""
        self.day = 1
        self._accrues = rules.settlement == "strict"
        self._accrued_at_start = {number: self._accrued(account) for number, account in self.accounts.items()}
        self._trades_before = self._orders_before = 0
        self._told: dict[int, list[Cancelled]] = {}

    @property
    def remaining(self) -> list[Account]:
        """List the accounts of traders who have not left, as they were opened."""
        return [account for account in self.accounts.values() if not account.has_left]

    def open_day(self, day: int) -> tuple[list[Liquidation], list[Policy]]:
        """Empty the books, collect what is due, settle those who cannot pay, then change the rates.

        Returns:
            Forced sales and leavings, and the policies that begin today.
        """
        self.day = day
        for stock in STOCKS:
            self.books[stock].clear()
        self._told = {}
        present = self.remaining
        for account in present:
            repay_due(account, day, self.rates)
        if self.lending.is_interest_day(day):
            for account in present:
                pay_interest(account, self.rates)
        settled = [liquidation_of(day, account, self.prices) for account in present if account.is_marked]
        self.history.liquidations += settled
        begun = [policy for policy in self.lending.policies if policy.day == day]
        for policy in begun:
            self.rates = policy.rates
        return settled, begun

    def place(self, now: Moment, trader: int, stock: Stock, side: Side, quantity: int, price: float) -> Match:
        """Let an order meet the book at once, and write down what came of it."""
        order = Order(trader, side, price, quantity)
        match = self._venues[stock].match(order)
        filled = sum(fill.quantity for fill in match.fills)
        self.fees_paid += match.fees
        self.history.orders.append(Submitted(now.day, now.session, trader, stock, side, quantity, price, filled))
        self.history.trades += [Trade(now.day, now.session, stock, *fill) for fill in match.fills]
        for one in match.cancelled:
            gone = Cancelled(
                now.day, now.session, one.trader, stock, one.side, one.quantity, one.price, one is not order
            )
            self.history.cancelled.append(gone)
            if one.trader != trader:
                self._told.setdefault(one.trader, []).append(gone)
        return match

    def cancelled_today(self, trader: int) -> tuple[Cancelled, ...]:
        """List a trader's waiting orders of today that were cancelled as somebody else's met them."""
        return tuple(self._told.get(trader, ()))

    def close_session(self, now: Moment) -> list[Close]:
        """Set the session prices, and write down how the session went."""
        trades = self.history.trades[self._trades_before :]
        orders = self.history.orders[self._orders_before :]
        self._trades_before, self._orders_before = len(self.history.trades), len(self.history.orders)
        closes = [self._close(now, stock, trades, orders) for stock in STOCKS]
        self.history.closes += closes
        return closes

    def _close(self, now: Moment, stock: Stock, trades: list[Trade], orders: list[Submitted]) -> Close:
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
        """Add up the resting orders of a stock at each price, best price first, by side."""
        return {side: self.books[stock].depth(side) for side in SIDES}

    def portfolios(self) -> list[Holding]:
        """Value what each remaining trader has."""
        return [self.holding(account) for account in self.remaining]

    def holding(self, account: Account) -> Holding:
        """Value what a trader has at the latest prices."""
        owned, debt = account.property_at(self.prices), account.debt
        accrued = self._accrued(account)
        return Holding(
            trader=account.trader,
            style=account.style,
            cash=account.cash,
            a=account.shares["A"],
            b=account.shares["B"],
            debt=debt,
            property=owned,
            profit=owned - debt - account.net_at_start - (accrued - self._accrued_at_start[account.trader]),
            accrued=accrued,
        )

    def _accrued(self, account: Account) -> float:
        """Compute the unpaid interest of a trader; none where the original is repeated, which ignores it."""
        return self.lending.accrued(account.loans, self.day, self.rates) if self._accrues else 0.0
