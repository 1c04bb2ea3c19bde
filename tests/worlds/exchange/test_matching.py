"""Orders meet by price and time, and what changes hands is neither made nor lost."""

from __future__ import annotations

import pytest
from hypothesis import given

from mesa_llm.errors import ConfigError
from mesa_llm_models.stock_agent.world.book import Order, OrderBook, Quote, Side
from mesa_llm_models.stock_agent.world.matching import Fees, Settlement, TradingRules
from tests.worlds.exchange.small_exchange import NOW, Wish, market_of, place, total, wishes

STRICT = TradingRules(cross=False)
CROSSING = TradingRules()


@given(wishes)
@pytest.mark.parametrize("rules", [STRICT, CROSSING, TradingRules(cross=True, fees=Fees())])
def test_matching_conserves_cash_and_shares(rules: TradingRules, orders: list[Wish]) -> None:
    market = market_of(rules)
    cash, shares = total(market)
    for wish in orders:
        place(market, wish)
    assert total(market) == (pytest.approx(cash, rel=1e-12), shares)


@given(wishes)
@pytest.mark.parametrize("rules", [STRICT, CROSSING, TradingRules(cross=True, fees=Fees()), TradingRules("one_sided")])
def test_no_trader_ever_holds_less_than_nothing(rules: TradingRules, orders: list[Wish]) -> None:
    market = market_of(rules)
    for wish in orders:
        place(market, wish)
        assert all(one.cash >= 0 and min(one.shares.values()) >= 0 for one in market.active_accounts)


@given(wishes)
def test_crossing_leaves_no_bid_at_or_above_an_offer(orders: list[Wish]) -> None:
    market = market_of(CROSSING)
    for wish in orders:
        place(market, wish)
        bid, ask = market.books["A"].quote("buy"), market.books["A"].quote("sell")
        assert bid is None or ask is None or bid.price < ask.price


@given(wishes)
def test_equal_prices_never_rest_on_both_sides_under_strict_rules(orders: list[Wish]) -> None:
    market = market_of(STRICT)
    for wish in orders:
        place(market, wish)
        bids, asks = ({quote.price for quote in side} for side in market.depth("A").values())
        assert not bids & asks


@given(wishes)
def test_better_prices_trade_first_and_older_orders_before_younger(orders: list[Wish]) -> None:
    market = market_of(CROSSING)
    for wish in orders:
        side = "sell" if wish.side == "buy" else "buy"
        queue = [(one.price, one.trader) for one in market.books["A"].ranked(side)]
        trades_before = len(market.history.trades)
        place(market, wish)
        fills = market.history.trades[trades_before:]
        met = iter(queue)
        assert all((fill.price, fill.seller if side == "sell" else fill.buyer) in met for fill in fills)


@given(wishes)
@pytest.mark.parametrize("rules", [STRICT, CROSSING])
def test_strict_books_hold_no_empty_orders(rules: TradingRules, orders: list[Wish]) -> None:
    market = market_of(rules)
    for wish in orders:
        place(market, wish)
    resting = [*market.books["A"].arrived("buy"), *market.books["A"].arrived("sell")]
    assert all(order.quantity > 0 for order in resting)
    assert all(trade.quantity > 0 for trade in market.history.trades)


@given(wishes)
@pytest.mark.parametrize("settlement", ["original", "one_sided"])
def test_levels_match_as_a_plain_scan_of_the_list_does(settlement: Settlement, orders: list[Wish]) -> None:
    market, scan = market_of(TradingRules(settlement)), PlainScan()
    for wish in orders:
        if place(market, wish):
            scan.place(wish)
    assert [trade[3:] for trade in market.history.trades] == scan.fills
    for side, entries in scan.book.items():
        assert [[one.trader, one.quantity, one.price] for one in market.books["A"].arrived(side)] == entries


class PlainScan:
    """The original's way to match: go through one list, whatever the prices in it."""

    def __init__(self) -> None:
        self.book: dict[Side, list[list[float]]] = {"buy": [], "sell": []}
        self.fills: list[tuple[float, ...]] = []

    def place(self, wish: Wish) -> None:
        left = wish.quantity
        others = self.book["sell" if wish.side == "buy" else "buy"]
        for entry in [entry for entry in others if entry[2] == wish.price]:
            traded = min(left, entry[1])
            pair = (wish.trader, entry[0]) if wish.side == "buy" else (entry[0], wish.trader)
            self.fills.append((*pair, traded, wish.price))
            if left <= traded:
                entry[1] -= traded
                return
            others[:] = [other for other in others if other is not entry]
            left -= int(traded)
        self.book[wish.side].append([wish.trader, left, wish.price])


def test_a_bid_above_an_offer_trades_only_if_crossing_is_allowed() -> None:
    for rules, prices in ((STRICT, []), (CROSSING, [30.0])):
        market = market_of(rules)
        market.place(NOW, 1, "A", "sell", 10, 30.0)
        market.place(NOW, 2, "A", "buy", 10, 31.0)
        assert [trade.price for trade in market.history.trades] == prices


def test_uncovered_offer_is_cancelled_and_the_next_one_trades() -> None:
    market = market_of(STRICT)
    market.place(NOW, 1, "A", "sell", 100, 30.0)
    market.place(NOW, 1, "A", "sell", 80, 30.5)
    market.place(NOW, 3, "A", "sell", 10, 30.5)
    market.place(NOW, 2, "A", "buy", 50, 30.0)
    match = market.place(NOW, 4, "A", "buy", 60, 30.5)
    assert [(fill.seller, fill.quantity) for fill in match.fills] == [(3, 10)]
    assert [(order.trader, order.quantity) for order in match.cancelled_orders] == [(1, 80)]


def test_a_trader_does_not_trade_with_itself_under_strict_rules() -> None:
    market = market_of(STRICT)
    market.place(NOW, 1, "A", "sell", 10, 30.0)
    match = market.place(NOW, 1, "A", "buy", 10, 30.0)
    assert (match.fills, [order.side for order in match.cancelled_orders]) == ([], ["sell"])


def test_the_original_moves_as_many_shares_as_the_price_says() -> None:
    market = market_of(TradingRules("original"))
    market.place(NOW, 1, "A", "sell", 10, 30.5)
    market.place(NOW, 2, "A", "buy", 10, 30.5)
    assert [market.accounts[trader].shares["A"] for trader in (1, 2)] == [69.5, 130.5]
    assert [market.accounts[trader].cash for trader in (1, 2)] == [3305.0, 2695.0]


@pytest.mark.parametrize(("quantity", "fee"), [(10, 1.0), (400, 2.0), (5000, 5.95)])
def test_fees_follow_the_paper_within_their_bounds(quantity: int, fee: float) -> None:
    assert Fees().of(quantity) == pytest.approx(fee)


def test_crossing_and_fees_are_refused_where_the_original_is_repeated() -> None:
    with pytest.raises(ConfigError, match="need settlement 'strict'"):
        TradingRules("original", cross=True)
    with pytest.raises(ConfigError, match="need settlement 'strict'"):
        TradingRules("one_sided", fees=Fees())


def test_a_book_quotes_its_best_price_with_all_shares_at_it() -> None:
    book = OrderBook()
    for price, quantity in ((30.0, 5), (29.0, 7), (30.0, 2)):
        book.rest(Order(1, "buy", price, quantity))
    assert book.quote("buy") == Quote(30.0, 7)
    assert book.depth("buy") == [Quote(30.0, 7), Quote(29.0, 7)]
    assert book.quote("sell") is None


def test_a_quote_passes_over_used_up_orders() -> None:
    market = market_of(TradingRules("one_sided"))
    market.place(NOW, 1, "A", "sell", 10, 30.0)
    market.place(NOW, 2, "A", "buy", 10, 30.0)
    market.place(NOW, 3, "A", "sell", 4, 31.0)
    assert market.books["A"].quote("sell") == Quote(31.0, 4)
    assert [order.quantity for order in market.books["A"].ranked("sell")] == [0, 4]


def test_only_the_oldest_order_at_a_price_can_be_dropped() -> None:
    book = OrderBook()
    first, second = Order(1, "buy", 30.0, 5), Order(2, "buy", 30.0, 5)
    book.rest(first)
    book.rest(second)
    with pytest.raises(ValueError, match="not the oldest"):
        book.drop_oldest(second)
