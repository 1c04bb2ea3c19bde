"""Replies are read with the original program's own peculiarities."""

from __future__ import annotations

from functools import partial

import pytest

from mesa_llm.errors import ToolError
from tests.golden.stockagent_replies import first_accepted, is_acted_on, read_forecast, read_loan, read_trade

read = partial(read_trade, cash=1000.0, shares={"A": 10, "B": 0})


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("I buy.", "exactly one JSON object"),
        ('{"action_type": "buy", "order": {}}', "exactly one JSON object"),
        ("} {", "no JSON"),
        ('{"action_type": 1}', "action_type is 1"),
        ('{"action_type": "buy", "stock": "A"}', "missing"),
        ('{"action_type": "buy", "stock": "C", "amount": 1, "price": 30}', "choose A or B"),
        ('{"action_type": "sell", "stock": "B", "amount": 1, "price": 40}', "have 0"),
        ('{"action_type": "buy", "stock": "A", "amount": 1, "price": null}', "give a number"),
        (f'{{"action_type": "buy", "stock": "A", "amount": 1{"0" * 400}, "price": 0.5}}', "more than"),
    ],
)
def test_a_refused_reply_says_why(reply: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        read(reply)


def test_blanks_are_dropped_even_within_words() -> None:
    assert read('Sure:\n{"action_ type": "n o"}') == {"action_type": "no"}


def test_capitals_are_accepted_and_then_not_acted_on() -> None:
    assert not is_acted_on(read('{"action_type": "BUY", "stock": "A", "amount": 1, "price": 30}'), "action_type")
    assert not is_acted_on(read_loan('{"loan": "Yes", "loan_type": 0, "amount": 5}', 10.0), "loan")
    assert is_acted_on(read_loan('{"loan": "yes", "loan_type": 0, "amount": 5}', 10.0), "loan")


def test_the_first_reply_that_can_be_read_counts() -> None:
    assert first_accepted(["", "what?", '{"action_type": "no"}'], read) == {"action_type": "no"}
    assert first_accepted(["", "what?"], read) is None


def test_a_forecast_may_say_more_but_only_yes_and_no() -> None:
    said = '{"buy_A": "no", "buy_B": "no", "sell_A": "no", "sell_B": "yes", "loan": "no", "wait": "%s"}'
    assert read_forecast(said % "yes")["wait"] == "yes"
    with pytest.raises(ToolError, match="yes or no"):
        read_forecast(said % "maybe")
