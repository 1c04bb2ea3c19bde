"""StockAgent's market, replayed from recorded replies and acting orders (authors' code @ 3a991ea)."""

from __future__ import annotations

import random
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from mesa_llm.errors import ToolError
from mesa_llm_models.stock_agent.world.book import SIDES, Order, OrderBook
from mesa_llm_models.stock_agent.world.lending import Lending, liquidate
from mesa_llm_models.stock_agent.world.matching import Settlement, TradingRules
from mesa_llm_models.stock_agent.world.rules import StockMarket
from mesa_llm_models.stock_agent.world.state import (
    FIRST_PRICES,
    Calendar,
    Endowment,
    Loan,
    Moment,
    Stock,
    TradingAccount,
    draw_endowments,
    worth,
)
from mesa_llm_models.stock_agent.world.world import Exchange
from tests.golden.reading import decoded, golden, name_of, section
from tests.golden.stockagent_replies import first_accepted, is_acted_on, read_forecast, read_loan, read_trade

GOLDEN: dict[str, Any] = golden("stockagent")
UNIT: dict[str, Any] = GOLDEN.get("unit", {})
SCENARIOS: list[dict[str, Any]] = section(GOLDEN, "scenarios")


UNIT_SECTIONS = {"cases", "bankruptcy", "validator"}

SETTLEMENTS: dict[str, Settlement] = {"original": "original", "corrected": "one_sided"}
"""Mode of a recorded run → how fills were settled."""

MAX_REPLIES = 4
"""Maximum number of times the original asks for an order."""

NOT_COMPARED = {
    "description": "prose about the case",
    "seed": "the seed of a scenario whose traders were made by hand drew the scripts only, which are recorded",
}
"""Parts of a case that no test reads → why."""


def books_of(book: OrderBook) -> dict[str, list[list[float]]]:
    """Give a book under the names of the recording: resting orders in order of arrival."""
    return {side: [[one.trader, one.quantity, one.price] for one in book.arrived(side)] for side in SIDES}


def shares_of(a: float, b: float) -> dict[Stock, float]:
    return {"A": a, "B": b}


def row_of(account: TradingAccount) -> list[float]:
    return [account.trader, account.cash, account.shares["A"], account.shares["B"]]


@pytest.mark.parametrize("case", section(UNIT, "cases"), ids=lambda case: f"{case['id']}-{case['mode']}")
def test_orders_meet_and_settle_as_recorded(case: dict[str, Any]) -> None:
    starts = [Endowment(trader, "", cash, shares_of(held, 0)) for trader, cash, held in case["agents"]]
    market = StockMarket(starts, TradingRules(SETTLEMENTS[case["mode"]]), Lending())
    now = Moment(1, "trade", 1)
    for side in SIDES:
        for trader, quantity, price in case["book"].get(side, ()):
            market.books["A"].rest(Order(trader, side, price, quantity))
    for step in case["steps"]:
        act = step["action"]
        match = market.place(now, act["agent"], "A", act["action_type"], act["amount"], act["price"])
        assert [list(fill) for fill in match.fills] == step["fills"]
        assert [row_of(account)[:3] for account in market.active_accounts] == step["holdings"]
        assert books_of(market.books["A"]) == step["book"]
    market.close_session(now)
    assert market.prices["A"] == case["close_price"]


@pytest.mark.parametrize("case", section(UNIT, "bankruptcy"), ids=name_of)
def test_a_marked_trader_sells_or_leaves_as_recorded(case: dict[str, Any]) -> None:
    cash, a, b = case["pre"]
    account = TradingAccount(0, "", cash, shares_of(a, b), [], 0.0, 0.0, is_marked=True)
    has_left = liquidate(account, shares_of(*case["prices"]))
    if case.get("error"):
        # The original stops where the whole number it sells exceeds a fraction held; here all of it is sold.
        assert not has_left
        assert min(row_of(account)[1:]) >= 0
        return
    assert row_of(account)[1:] == case["post"]
    assert (has_left, account.is_marked) == (case["quit"], case["still_flagged"])


@pytest.mark.parametrize("case", section(UNIT, "validator"), ids=lambda case: f"{case['kind']} {case['reply']}")
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
        assert case["parsed"] is None
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
            trading=TradingRules(SETTLEMENTS[scenario["mode"]]),
            calendar=Calendar(scenario["days"], scenario["sessions"]),
        )
        self.accounts = self.world.market.accounts
        assert scenario["n_agents"] == len(scenario["init"])
        self.days: dict[int, dict[str, Any]] = {}
        self.decisions: dict[tuple[int, int, int], dict[str, Any]] = {}
        self.checks: list[tuple[range, dict[str, Any]]] = []
        """Days on which a forced sale can have been → the sale; of events of other kinds the fixture warns."""
        day, mornings = 0, list[dict[str, Any]]()
        for event in scenario["events"]:
            if event["ev"] == "bankrupt_check":
                mornings.append(event)  # it has no date, and stands before the other events of its day
            if event["ev"] not in ("day", "decision"):
                continue
            self.checks += [(range(day + 1, event["date"] + 1), check) for check in mornings]
            day, mornings = event["date"], []
            if event["ev"] == "day":
                self.days[day] = event
            else:
                self.decisions[day, event["session"], event["agent"]] = event
        self.checks += [(range(day + 1, scenario["days"] + 1), check) for check in mornings]

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
        rows = {account.trader: row_of(account) for account in self.world.market.active_accounts}
        assert [rows[state[0]] for state in event["state"]] == event["state"]
        assert all(self.accounts[trader].has_left for trader in self.accounts.keys() - rows.keys())
        for asked in event.get("loans", ()):
            account = self.accounts[asked["agent"]]
            # Only a first reply can be accepted: later checks in the original have their arguments swapped.
            read = partial(read_loan, limit=account.loan_limit)
            fields: dict[str, Any] = first_accepted(asked.get("replies", [])[:1], read) or {"loan": "no"}
            borrowed = 0.0
            if is_acted_on(fields, "loan"):
                borrowed = fields["amount"]
                self.world.take_loan(asked["agent"], fields["loan_type"], borrowed)
                fields = {**fields, "repayment_date": account.loans[-1].due_day}
            # The recorder took the limit after the decision and added the new loan.
            assert account.loan_limit + borrowed == pytest.approx(asked["max_loan"], rel=1e-12, abs=1e-6)
            assert account.cash == asked["cash_after"]
            check_done(asked["result"], fields, "loan")

    def play_decision(self, event: dict[str, Any]) -> None:
        account = self.accounts[event["agent"]]
        assert row_of(account)[1:] == event["pre"]
        read = partial(read_trade, cash=account.cash, shares=account.shares)
        fields: dict[str, Any] = first_accepted(event["replies"][:MAX_REPLIES], read) or {"action_type": "no"}
        check_done(event["action"], fields, "action_type")
        assert is_acted_on(fields, "action_type") == ("fills" in event) == ("post" in event)
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


def check_done(done: Any, fields: dict[str, Any], key: str) -> None:
    """Check what was done with an accepted reply: "Yes", "NO" and "BUY" are accepted, and then nothing is done."""
    done.read_all()
    if is_acted_on(fields, key):
        assert {name: fields[name] for name in done} == done
    else:
        assert not is_acted_on(done, key)


def debts_of(first: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a trader owes at the start: nothing, one debt, or a list of them."""
    owed = first.get("debt") or []
    return [debt for debt in (owed if isinstance(owed, list) else [owed]) if debt and debt.get("loan", "yes") == "yes"]


def endowment_of(first: dict[str, Any]) -> Endowment:
    loans = [Loan(debt["amount"], debt["loan_type"], debt["repayment_date"]) for debt in debts_of(first)]
    shares = shares_of(first["A"], first["B"])
    bound = first.get("initial_property")
    return Endowment(first["agent"], first.get("style", ""), first["cash"], shares, tuple(loans), bound)


def is_drawn(scenario: dict[str, Any]) -> bool:
    """Check whether the first state was drawn by a seed, as the original draws, and no part of it made by hand."""
    starts = [endowment_of(first) for first in scenario["init"]]
    return isinstance(scenario.get("seed"), int) and all(map(_can_be_drawn, starts))


def _can_be_drawn(start: Endowment) -> bool:
    """Check for one debt within the property, a style, and fractions of a cent."""
    sums = (start.cash, *(loan.principal for loan in start.loans))
    total = worth(start.shares, FIRST_PRICES) + start.cash
    is_complete = len(start.loans) == 1 and start.style != "" and start.loans[0].principal <= total
    return is_complete and all(round(amount, 4) != amount for amount in sums)


@pytest.mark.parametrize("said", ['{"loan":"NO"}', '{"loan":"Yes","loan_type":1,"amount":10}'])
@pytest.mark.parametrize("number", range(len(SCENARIOS)), ids=[name_of(one) for one in SCENARIOS])
def test_a_loan_in_other_letters_is_accepted_and_not_made(number: int, said: str) -> None:
    scenario = deepcopy(SCENARIOS[number])
    replay = Replay(scenario)
    account = next(iter(replay.world.market.active_accounts), None)
    if account is None:
        pytest.skip("nobody is left on the first day of this scenario")
    account.property_at_start = account.debt + 100
    states, loans = [row_of(one) for one in replay.world.market.active_accounts], [*account.loans]
    asked = {"agent": account.trader, "replies": [said], "max_loan": account.loan_limit, "cash_after": account.cash}
    for result in map(decoded, (read_loan(said, account.loan_limit), {"loan": "no"})):
        replay.play_loans({"state": states, "loans": [{**asked, "result": result}]})
    assert account.loans == loans


def check_draws(scenario: dict[str, Any]) -> None:
    drawn = draw_endowments([first["agent"] for first in scenario["init"]], random.Random(scenario["seed"]))
    assert drawn == [replace(endowment_of(first), property_at_start=None) for first in scenario["init"]]


def check_history(replay: Replay) -> None:
    """Compare fills, session prices, forced sales and leavings with the recorded ones."""
    history = replay.world.history
    prices: dict[tuple[int, int], list[float]] = {}
    for close in history.closes:
        prices.setdefault((close.day, close.session), []).append(close.price)
    assert [list(trade) for trade in history.trades] == replay.scenario["trades"]
    assert [[*when, *both] for when, both in prices.items()] == replay.scenario["prices"]
    for one, (days, check) in zip(history.liquidations, replay.checks, strict=True):
        opening = [list(FIRST_PRICES.values()), *(both for (day, _), both in prices.items() if day < one.day)][-1]
        found = [one.trader, opening, list(one[2:5]), list(one[5:8]), one.has_left]
        assert found == [check[key] for key in ("agent", "prices", "pre", "post", "quit")]
        assert one.day in days


def varied(scenario: dict[str, Any]) -> dict[str, Any]:
    """Write a scenario as another recording could: other names, keys that may lack left out, debts as lists."""
    other: dict[str, Any] = {**deepcopy(scenario), "id": "another", "description": ""}
    for first in other.get("init", ()):
        first["debt"] = debts_of(first)
    for event in other.get("events", ()):
        if not any(is_acted_on(asked["result"], "loan") for asked in event.get("loans", ())):
            event.pop("loans", None)
        event.pop("book", None)
        if event["ev"] == "decision" and not is_acted_on(event["action"], "action_type"):
            event["replies"] = ["", "no JSON", '{"action_type":"BUY","stock":"A","amount":1,"price":0.1}']
        elif event["ev"] == "decision":
            spare = MAX_REPLIES - len(event["replies"])
            event["replies"] = [*["no JSON", '{"action_type":"buy"}'][:spare], *event["replies"]]
    return other


@pytest.mark.parametrize("scenario", SCENARIOS, ids=name_of)
def test_a_recorded_run_replays(scenario: dict[str, Any]) -> None:
    other = varied(scenario)
    if is_drawn(scenario):
        check_draws(scenario)
    for recorded in (scenario, other):
        replay = Replay(recorded)
        replay.run()
        assert replay.decisions == {}, "every recorded decision comes to its turn"
        check_history(replay)


def test_all_sections_of_the_unit_cases_are_read() -> None:
    assert UNIT.keys() <= UNIT_SECTIONS
