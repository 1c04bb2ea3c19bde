"""StockAgent's market, replayed from recorded replies and acting orders (authors' code @ 3a991ea)."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest

from mesa_llm.errors import ToolError
from mesa_llm.worlds.exchange.accounts import Account, Endowment, Loan, Stock, draw_endowments
from mesa_llm.worlds.exchange.book import SIDES, Order, OrderBook
from mesa_llm.worlds.exchange.insolvency import liquidate
from mesa_llm.worlds.exchange.lending import Lending
from mesa_llm.worlds.exchange.market import Market
from mesa_llm.worlds.exchange.replies import first_accepted, is_acted_on, read_forecast, read_loan, read_trade
from mesa_llm.worlds.exchange.schedule import Calendar, Moment
from mesa_llm.worlds.exchange.settlement import TradingRules
from mesa_llm.worlds.exchange.world import Exchange
from tests.golden.reading import golden

GOLDEN: dict[str, Any] = golden("stockagent")
UNIT: dict[str, Any] = GOLDEN["unit"]
SCENARIOS: list[dict[str, Any]] = GOLDEN["scenarios"]

SEEDED = ("trade_10x5_original", "trade_10x5_corrected", "loans_8x160_corrected")
"""Scenarios whose first state was drawn from Python's generator with their seed, not made by hand."""


def books_of(book: OrderBook) -> dict[str, list[list[float]]]:
    """Give a book under the names of the recording: resting orders in order of arrival."""
    return {side: [[one.trader, one.quantity, one.price] for one in book.arrived(side)] for side in SIDES}


def shares_of(a: float, b: float) -> dict[Stock, float]:
    return {"A": a, "B": b}


def row_of(account: Account) -> list[float]:
    return [account.trader, account.cash, account.shares["A"], account.shares["B"]]


@pytest.mark.parametrize("case", UNIT["cases"], ids=lambda case: f"{case['id']}-{case['mode']}")
def test_orders_meet_and_settle_as_recorded(case: dict[str, Any]) -> None:
    starts = [Endowment(trader, "", cash, shares_of(held, 0)) for trader, cash, held in case["agents"]]
    market = Market(starts, TradingRules(case["mode"]), Lending())
    now = Moment(1, "trade", 1)
    for side in SIDES:
        for trader, quantity, price in case["book"].get(side, ()):
            market.books["A"].rest(Order(trader, side, price, quantity))
    for step in case["steps"]:
        act = step["action"]
        match = market.place(now, act["agent"], "A", act["action_type"], act["amount"], act["price"])
        assert [list(fill) for fill in match.fills] == step["fills"]
        assert [row_of(account)[:3] for account in market.remaining] == step["holdings"]
        assert books_of(market.books["A"]) == step["book"]
    market.close_session(now)
    assert market.prices["A"] == case["close_price"]


@pytest.mark.parametrize("case", UNIT["bankruptcy"], ids=lambda case: case["id"])
def test_a_marked_trader_sells_or_leaves_as_recorded(case: dict[str, Any]) -> None:
    cash, a, b = case["pre"]
    account = Account(0, "", cash, shares_of(a, b), [], 0.0, 0.0, is_marked=True)
    has_left = liquidate(account, shares_of(*case["prices"]))
    assert row_of(account)[1:] == case["post"]
    assert (has_left, account.is_marked) == (case["quit"], case["still_flagged"])


@pytest.mark.parametrize("case", UNIT["validator"], ids=lambda case: f"{case['kind']} {case['reply']}")
def test_replies_are_accepted_or_refused_as_recorded(case: dict[str, Any]) -> None:
    match case["kind"]:
        case "action":
            read = partial(read_trade, cash=case["cash"], shares=shares_of(case["A"], case["B"]))
        case "loan":
            read = partial(read_loan, limit=case["max_loan"])
        case _:
            read = read_forecast
    if case["accepted"]:
        assert read(case["reply"]) == case["parsed"]
    else:
        with pytest.raises(ToolError):
            read(case["reply"])


class RecordedOrder:
    """Shuffles as the recorded run did; its orders name the remaining traders or their places."""

    def __init__(self, orders: list[list[int]]) -> None:
        self.orders = iter(orders)

    def shuffle(self, x: list[int]) -> None:
        order = next(self.orders)
        place_of = {name: place for place, name in enumerate(sorted(order))}
        assert sorted(place_of.values()) == x
        x[:] = [place_of[name] for name in order]


class Replay:
    """One recorded run, played again through the world's own actions."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.scenario = scenario
        self.world = Exchange(
            [endowment_of(first) for first in scenario["init"]],
            RecordedOrder(scenario["acting_order"]),  # type: ignore[arg-type]
            rules="original" if scenario["mode"] == "original" else "corrected",
            trading=TradingRules(scenario["mode"]),
            calendar=Calendar(scenario["days"], scenario["sessions"]),
        )
        self.accounts = self.world.market.accounts
        events = scenario["events"]
        self.days = {event["date"]: event for event in events if event["ev"] == "day"}
        self.decisions = {
            (event["date"], event["session"], event["agent"]): event for event in events if event["ev"] == "decision"
        }
        self.checks = [event for event in events if event["ev"] == "bankrupt_check"]

    def run(self) -> None:
        """Play every day, comparing each state and decision with the recording."""
        while not self.world.is_over:
            if self.world.now.stage == "loan" and self.world.now.day in self.days:
                self.play_loans(self.days[self.world.now.day])
            for trader in self.world.turn_order if self.world.takes_turns else ():
                now = self.world.now
                event = self.decisions.pop((now.day, now.session, trader), None)
                if event is not None:
                    self.play_decision(event)
            self.world.end_step()

    def play_loans(self, event: dict[str, Any]) -> None:
        rows = {account.trader: row_of(account) for account in self.world.market.remaining}
        assert [rows[state[0]] for state in event["state"]] == event["state"]
        assert all(self.accounts[trader].has_left for trader in self.accounts.keys() - rows.keys())
        for asked in event["loans"]:
            account = self.accounts[asked["agent"]]
            # Only a first reply can be accepted: later checks in the original have their arguments swapped.
            read = partial(read_loan, limit=account.loan_limit)
            fields: dict[str, Any] = first_accepted(asked["replies"][:1], read) or {"loan": "no"}
            borrowed = 0.0
            if is_acted_on(fields, "loan"):
                borrowed = fields["amount"]
                self.world.take_loan(asked["agent"], fields["loan_type"], borrowed)
                fields = {**fields, "repayment_date": account.loans[-1].due_day}
            # The recorder took the limit after the decision and added the new loan.
            assert account.loan_limit + borrowed == asked["max_loan"]
            assert (loan_done(fields), account.cash) == (loan_done(asked["result"]), asked["cash_after"])

    def play_decision(self, event: dict[str, Any]) -> None:
        account = self.accounts[event["agent"]]
        assert row_of(account)[1:] == event["pre"]
        read = partial(read_trade, cash=account.cash, shares=account.shares)
        fields: dict[str, Any] = first_accepted(event["replies"][:4], read) or {"action_type": "no"}
        if fields["action_type"] != "no" and not is_acted_on(fields, "action_type"):
            fields = {"action_type": "no"}
        assert {key: fields[key] for key in event["action"]} == event["action"]
        if not is_acted_on(fields, "action_type"):
            return
        trades_before = len(self.world.history.trades)
        place = self.world.buy if fields["action_type"] == "buy" else self.world.sell
        place(event["agent"], fields["stock"], fields["amount"], fields["price"])
        fills = [list(trade[3:]) for trade in self.world.history.trades[trades_before:]]
        assert fills == event["fills"]
        assert {trader: row_of(self.accounts[int(trader)])[1:] for trader in event["post"]} == event["post"]
        if "book" in event:
            assert books_of(self.world.market.books[fields["stock"]]) == event["book"]


def loan_done(fields: dict[str, Any]) -> dict[str, Any]:
    """Give a loan as the original acts on it: "Yes" and "NO" are accepted, and then no loan."""
    return fields if is_acted_on(fields, "loan") else {"loan": "no"}


def endowment_of(first: dict[str, Any]) -> Endowment:
    debts = first["debt"] if isinstance(first["debt"], list) else [first["debt"]]
    loans = [Loan(debt["amount"], debt["loan_type"], debt["repayment_date"]) for debt in debts if debt]
    shares = shares_of(first["A"], first["B"])
    return Endowment(first["agent"], first["style"], first["cash"], shares, tuple(loans), first["initial_property"])


@pytest.mark.parametrize(
    "scenario", [one for one in SCENARIOS if one["id"] in SEEDED], ids=lambda scenario: scenario["id"]
)
def test_endowments_are_drawn_as_recorded(scenario: dict[str, Any]) -> None:
    drawn = draw_endowments(range(scenario["n_agents"]), random.Random(scenario["seed"]))
    recorded = [endowment_of({**first, "initial_property": None}) for first in scenario["init"]]
    assert drawn == recorded


@pytest.mark.parametrize("said", ['{"loan":"NO"}', '{"loan":"Yes","loan_type":1,"amount":10}'])
def test_a_loan_in_other_letters_is_accepted_and_not_made(said: str) -> None:
    replay = Replay(SCENARIOS[0])
    account = replay.world.market.remaining[0]
    states = [row_of(one) for one in replay.world.market.remaining]
    asked = {"agent": account.trader, "replies": [said], "max_loan": account.loan_limit, "cash_after": account.cash}
    for result in (read_loan(said, account.loan_limit), {"loan": "no"}):
        replay.play_loans({"state": states, "loans": [{**asked, "result": result}]})
    assert account.loans == [*endowment_of(SCENARIOS[0]["init"][0]).loans]


@pytest.fixture(scope="module", params=SCENARIOS, ids=lambda scenario: scenario["id"])
def replay(request: pytest.FixtureRequest) -> Replay:
    played = Replay(request.param)
    played.run()
    return played


def test_every_recorded_decision_came_to_its_turn(replay: Replay) -> None:
    assert replay.decisions == {}


def test_fills_and_session_prices_are_the_recorded_ones(replay: Replay) -> None:
    history = replay.world.history
    prices: dict[tuple[int, int], list[float]] = {}
    for close in history.closes:
        prices.setdefault((close.day, close.session), []).append(close.price)
    assert [list(trade) for trade in history.trades] == replay.scenario["trades"]
    assert [[*when, *both] for when, both in prices.items()] == replay.scenario["prices"]


def test_forced_sales_and_leavings_are_the_recorded_ones(replay: Replay) -> None:
    settled = replay.world.history.liquidations
    found = [(one.trader, list(one[2:5]), list(one[5:8]), one.has_left) for one in settled]
    assert found == [(check["agent"], check["pre"], check["post"], check["quit"]) for check in replay.checks]
