"""A budget is never exceeded, and a run stops when it is spent."""

from __future__ import annotations

import asyncio
import json
import logging
import math
from typing import Any

import pytest

from mesa_llm.errors import (
    BadReply,
    BudgetExceeded,
    ConfigError,
    Refused,
)
from mesa_llm.llm.budget import Budget
from mesa_llm.llm.limits import Limits
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.retry import Retry
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.llm.tokens import count_tokens
from mesa_llm.records import Reply, Usage
from tests.faulty_server import CUT_MIDWAY, HANG, NOT_JSON, Fault, FaultyServer, refused
from tests.honest_reply import completion
from tests.llm.human.questions import ask
from tests.llm.layers import PRICED, failing, gathered, served


def test_a_budget_of_calls_holds_with_many_in_flight() -> None:
    with FaultyServer(latency_s=0.01) as server:
        replies = served(server, lambda transport: Budget(Retry(Limits(transport, 64)), calls=50), 200)
    assert sum(isinstance(reply, Reply) for reply in replies) == server.count == 50
    assert sum(isinstance(reply, BudgetExceeded) for reply in replies) == 150


def test_a_budget_of_calls_counts_what_failed() -> None:
    budget = Budget(failing(Refused("no"), Refused("no")), calls=3)
    kinds = [type(gathered(budget, 1)[0]) for _ in range(5)]
    assert kinds == [Refused, Refused, Reply, BudgetExceeded, BudgetExceeded]


@pytest.mark.parametrize(("limit", "answered"), [({"tokens": 31}, 2), ({"dollars": 0.03}, 3), ({"calls": 2}, 2)])
def test_a_spent_budget_stops_what_was_not_sent(limit: dict[str, Any], answered: int) -> None:
    budget = Budget(ScriptedLLM(lambda request: PRICED), **limit)
    kinds = [type(gathered(budget, 1)[0]) for _ in range(5)]
    assert kinds == [Reply] * answered + [BudgetExceeded] * (5 - answered)
    assert (budget.spent.calls, budget.spent.tokens) == (answered, 15 * answered)


UNREADABLE = {"answer": 42, "usage": {"prompt_tokens": 90, "completion_tokens": 10, "cost": 0.1}}
DEAR = completion("hm", prompt_tokens=90, completion_tokens=10, cost=0.1)
BLIND = {name: value for name, value in completion("hm").items() if name != "usage"}


@pytest.mark.parametrize("answer", [DEAR, UNREADABLE, Fault(body=b'data: {"x": ' + json.dumps(UNREADABLE).encode())])
@pytest.mark.parametrize(
    ("limit", "most"), [({"calls": 7}, 7), ({"tokens": 1000}, 10), ({"dollars": 0.95}, 9), ({"dollars": 0.2}, 2)]
)
def test_budget_is_never_exceeded_by_requests_in_flight(answer, limit, most) -> None:
    with FaultyServer(lambda body, number: answer, latency_s=0.002) as server:
        replies = served(server, lambda one: Retry(Budget(Limits(one, 64), **limit), base_s=0.001), 40)
    assert {type(reply) for reply in replies} <= {Reply, BadReply, BudgetExceeded}
    assert 0 < server.count <= most
    assert type(replies[-1]) is BudgetExceeded


def test_requests_in_flight_reserve_their_maximum_tokens() -> None:
    def long_from_the_third_on(body: dict[str, Any], number: int) -> dict[str, Any]:
        return completion("hm", prompt_tokens=20, completion_tokens=5 if number < 3 else 100)

    with FaultyServer(long_from_the_third_on, latency_s=0.005) as server:
        replies = served(server, lambda one: Budget(Limits(one, 64), tokens=1000), 40, max_tokens=100)
    spent = sum(reply.prompt_tokens + reply.reply_tokens for reply in replies if isinstance(reply, Reply))
    assert 700 <= spent <= 1000
    assert server.peak_in_flight > 1


@pytest.mark.parametrize("answer", ["hm", CUT_MIDWAY, NOT_JSON, HANG])
def test_where_an_endpoint_reports_no_usage_tokens_are_counted_here(answer: Any) -> None:
    with FaultyServer(lambda body, number: BLIND if answer == "hm" else answer) as server:
        budgets: list[Budget] = []

        served(server, lambda one: budgets.append(Budget(one, tokens=200)) or budgets[0], 60, timeout_s=0.05)
    assert 0 < server.count <= 200 / count_tokens(ask())
    assert 150 < budgets[0].spent.tokens <= 200


def test_what_an_endpoint_refuses_costs_a_call_and_no_tokens() -> None:
    with FaultyServer(lambda body, number: refused(400, "no seed here") if "seed" in body else "hm") as server:
        budgets: list[Budget] = []
        (reply,) = served(server, lambda one: budgets.append(Budget(one, calls=2)) or budgets[0], 1)
    spent = budgets[0].spent
    assert (spent.requests, spent.calls, server.count) == (2, 1, 2)
    assert spent.prompt_tokens == reply.prompt_tokens


def test_what_is_given_up_is_paid_for() -> None:
    async def give_up() -> Usage:
        budget = Budget(Limits(ScriptedLLM(lambda request: PRICED, delay_s=9)), tokens=10_000)
        asked = asyncio.create_task(budget.reply(ask()))
        await asyncio.sleep(0.01)
        asked.cancel()
        await asyncio.wait([asked])
        return budget.spent

    assert asyncio.run(give_up()) == Usage(prompt_tokens=count_tokens(ask()), requests=1)


def test_a_spent_budget_says_what_was_spent_and_how_to_go_on() -> None:
    budget = Budget(ScriptedLLM(lambda request: PRICED), calls=1)
    gathered(budget, 1)
    (told,) = gathered(budget, 1)
    assert "budget of 1 call is spent: 1 call, 15 tokens, $0.0100" in str(told)
    assert "or a larger one, to go on" in str(told)


def test_several_transports_spend_one_budget() -> None:
    one = Budget(ScriptedLLM(lambda request: PRICED), calls=3)
    other = one.also(ScriptedLLM(lambda request: PRICED))
    kinds = [type(gathered(budget, 1)[0]) for budget in (one, other, one, other, one)]
    assert kinds == [Reply, Reply, Reply, BudgetExceeded, BudgetExceeded]
    assert other.spent is one.spent


def test_unknown_prices_count_as_free_and_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    budget = Budget(ScriptedLLM(lambda request: Reply("hm")), dollars=0.01)
    kinds = {type(reply) for reply in gathered(budget, 5)}
    assert kinds == {Reply}
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


@pytest.mark.parametrize("limit", [{"calls": 0}, {"tokens": -5}, {"dollars": math.nan}, {"dollars": 0.0}])
def test_budgets_of_nothing_are_refused(limit: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="allows nothing"):
        Budget(failing(), **limit)


def test_the_price_an_endpoint_reports_is_spent() -> None:
    priced = completion("hm", prompt_tokens=8, completion_tokens=2, cost=0.5)
    with FaultyServer(lambda body, number: priced) as server:
        replies = served(server, lambda transport: Limits(Retry(Budget(transport, dollars=1.0)), 1), 4)
    assert [type(reply) for reply in replies] == [Reply, Reply, BudgetExceeded, BudgetExceeded]


def test_layers_close_what_they_hold() -> None:
    async def close_all(url: str) -> None:
        llm = Budget(Retry(Limits(OpenAIHTTP("tiny", url))), calls=9)
        await llm.reply(ask())
        await llm.close()

    with FaultyServer(lambda body, number: refused(400, "no seed here") if "seed" in body else "hm") as server:
        asyncio.run(close_all(server.url))
    assert server.count == 2
