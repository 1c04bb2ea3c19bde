"""Asking again, asking slowly enough, and stopping when the budget is spent."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from mesa_llm.errors import (
    AccessRefused,
    BadReply,
    BudgetExceeded,
    ConfigError,
    RateLimited,
    Refused,
    ServerError,
    TransportError,
)
from mesa_llm.llm import rate_control
from mesa_llm.llm.limits import MAX_REFUSALS, Budget, Limits, Refusals, Retry
from mesa_llm.llm.openai.client import OpenAIHTTP
from mesa_llm.llm.protocol import LLM
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.llm.tokens import count_tokens
from mesa_llm.records import ChatMessage, Reply, Request, Usage
from tests.faulty_server import CUT_MIDWAY, HANG, NOT_JSON, Fault, FaultyServer, rate_limited, refused
from tests.honest_reply import completion
from tests.llm.human.questions import ask

PRICED = Reply("hm", prompt_tokens=10, reply_tokens=5, dollars=0.01, model="tiny")


def failing(*errors: TransportError) -> ScriptedLLM:
    """Fail with these, one after another, then reply."""
    left = list(errors)
    return ScriptedLLM(lambda request: left.pop(0) if left else PRICED)


def gathered(llm: LLM, number: int, text: str = "It rains.") -> list[Any]:
    """Ask a number of requests at once; give replies and errors."""

    async def ask_all() -> list[Any]:
        requests = [ask(ChatMessage("user", text), agent=agent) for agent in range(1, number + 1)]
        return await asyncio.gather(*map(llm.reply, requests), return_exceptions=True)

    return asyncio.run(ask_all())


def served(
    server: FaultyServer, around: Callable[[LLM], LLM], number: int, timeout_s: float = 10.0, **settings: Any
) -> list[Any]:
    """Ask a server through layers; give replies and errors."""
    transport = OpenAIHTTP("tiny", server.url, timeout_s=timeout_s)

    async def ask_all() -> list[Any]:
        llm = around(transport)
        requests = [replace(ask(agent=agent), settings=settings) for agent in range(1, number + 1)]
        try:
            return await asyncio.gather(*map(llm.reply, requests), return_exceptions=True)
        finally:
            await transport.close()

    return asyncio.run(ask_all())


def test_the_latency_of_a_reply_is_that_of_its_call_and_not_of_its_turn() -> None:
    async def all_at_once() -> list[Reply]:
        llm = Limits(ScriptedLLM(lambda request: "Fine.", delay_s=lambda request: 0.05), concurrency=1)
        return await asyncio.gather(*(llm.reply(ask(agent=agent)) for agent in range(5)))

    begun = time.perf_counter()
    replies = asyncio.run(all_at_once())
    assert sum(reply.latency_s for reply in replies) <= time.perf_counter() - begun


@pytest.mark.parametrize("error", [RateLimited("slow"), ServerError("gone"), BadReply("html")])
def test_what_may_pass_is_asked_again_and_counted(error: TransportError) -> None:
    (reply,) = gathered(Retry(failing(error, error), base_s=0), 1)
    assert (reply.text, reply.attempts) == ("hm", 3)


@pytest.mark.parametrize(("error", "sent"), [(RateLimited, 4), (ServerError, 4), (BadReply, 3), (Refused, 1)])
def test_attempts_are_bounded(error: type[TransportError], sent: int) -> None:
    asked: list[Request] = []
    llm = ScriptedLLM(lambda request: asked.append(request) or error("no"))
    (raised,) = gathered(Retry(llm, attempts=4, base_s=0), 1)
    assert (type(raised), len(asked)) == (error, sent)


def test_one_error_raised_for_many_requests_says_the_same_of_each() -> None:
    error = RateLimited("slow", 0.001)
    raised = gathered(Retry(ScriptedLLM(lambda request: error), attempts=2, base_s=0), 3)
    assert [str(one) for one in raised] == ["slow (requests sent: 2)"] * 3
    assert (str(error), raised[0].retry_after_s) == ("slow", 0.001)


def test_the_endpoints_wish_to_be_left_alone_is_kept() -> None:
    started = time.perf_counter()
    gathered(Retry(failing(RateLimited("slow", 0.2)), base_s=0), 1)
    assert time.perf_counter() - started >= 0.2


def test_waits_double_differ_and_have_a_bound() -> None:
    waits: list[list[float]] = []
    for seed in range(20):
        asked: list[float] = []
        llm = ScriptedLLM(lambda request, asked=asked: asked.append(time.perf_counter()) or ServerError("gone"))
        gathered(Retry(llm, attempts=5, base_s=0.01, max_wait_s=0.02, seed=seed), 1)
        waits.append([later - sooner for sooner, later in pairwise(asked)])
    assert len({round(first, 5) for first, *_ in waits}) > 5
    assert all(first >= 0.005 and all(wait >= 0.01 for wait in rest) for first, *rest in waits)
    assert min(max(one) for one in waits) < 0.04


@pytest.mark.parametrize("options", [{"attempts": 0}, {"base_s": -1}, {"max_wait_s": math.nan}])
def test_retries_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Retry(failing(), **options)


UNPAID = AccessRefused("the account is empty", is_out_of_money=True)
NO_KEY = AccessRefused("no such key")


def kinds_of(llm: LLM, number: int) -> list[type[Any]]:
    """Ask one request after another; give the types of what came back."""
    return [type(gathered(llm, 1)[0]) for _ in range(number)]


def test_a_refusal_before_any_reply_is_for_a_person_and_one_in_the_middle_is_not() -> None:
    answers = iter([NO_KEY, PRICED, NO_KEY, PRICED, UNPAID])
    llm = Refusals(ScriptedLLM(lambda request: next(answers)))
    assert kinds_of(llm, 5) == [AccessRefused, Reply, Refused, Reply, ServerError]


def test_refusals_that_do_not_end_are_for_a_person_after_all() -> None:
    answers = iter([PRICED, *[NO_KEY] * 20])
    llm = Refusals(ScriptedLLM(lambda request: next(answers)))
    assert kinds_of(llm, 18) == [Reply, *[Refused] * MAX_REFUSALS, AccessRefused]


def test_refusals_of_requests_in_flight_together_count_once() -> None:
    answers = iter([PRICED, *[NO_KEY] * 64 * (MAX_REFUSALS + 1)])
    llm = Refusals(ScriptedLLM(lambda request: next(answers), delay_s=0.001))
    assert kinds_of(llm, 1) == [Reply]
    kinds = [{type(reply) for reply in gathered(llm, 64)} for _ in range(MAX_REFUSALS + 1)]
    assert kinds == [{Refused}] * MAX_REFUSALS + [{AccessRefused}]


def test_an_account_that_runs_out_of_money_stops_the_run_and_fails_no_decision() -> None:
    answers = iter([PRICED, *[UNPAID] * 9])
    llm = Retry(Refusals(ScriptedLLM(lambda request: next(answers))), attempts=4, base_s=0)
    assert kinds_of(llm, 3) == [Reply, BudgetExceeded, BudgetExceeded]


def test_no_more_are_in_flight_than_allowed() -> None:
    with FaultyServer(latency_s=0.01) as server:
        replies = served(server, lambda transport: Limits(transport, concurrency=5), 40)
    assert all(isinstance(reply, Reply) for reply in replies)
    assert server.peak_in_flight == 5


@pytest.mark.parametrize("taken", [4, 16, 40])
def test_a_limit_in_flight_costs_few_requests(taken: int) -> None:
    with FaultyServer(latency_s=0.01, max_in_flight=taken) as server:
        replies = served(server, lambda transport: Retry(Limits(transport, 64), base_s=0.05), 400)
    assert sum(isinstance(reply, Reply) for reply in replies) == 400
    assert server.count <= 480
    assert server.peak_in_flight <= taken + 1


@pytest.mark.parametrize(("retry_after", "most"), [(1, 480), (None, 600)])
def test_a_limit_per_second_costs_few_requests(retry_after: float | None, most: int) -> None:
    with FaultyServer(latency_s=0.02, max_per_s=200, retry_after=retry_after) as server:
        replies = served(server, lambda transport: Retry(Limits(transport, 64)), 400)
    assert sum(isinstance(reply, Reply) for reply in replies) == 400
    assert server.count <= most


def test_a_learned_limit_lasts() -> None:
    async def rounds(url: str) -> list[int]:
        transport = OpenAIHTTP("tiny", url)
        llm = Retry(Limits(transport, 64), base_s=0.02)
        refusals: list[int] = []
        for agent in range(4):
            await asyncio.gather(*(llm.reply(ask(agent=100 * agent + n)) for n in range(60)))
            refusals.append(server.refusals)
        await transport.close()
        return refusals

    with FaultyServer(latency_s=0.01, max_in_flight=6) as server:
        first, *_, last = asyncio.run(rounds(server.url))
    assert last - first <= 4


def test_an_endpoint_that_always_limits_ends_in_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_control, "PATIENCE_S", 0.02)
    with FaultyServer(lambda body, number: rate_limited()) as server:
        replies = served(server, lambda transport: Retry(Limits(transport, 8), attempts=2, base_s=0.01), 4)
    assert [type(reply) for reply in replies] == [RateLimited] * 4
    assert server.count == 8


def test_tokens_a_minute_slow_long_requests_down() -> None:
    # 12,000 a minute: 600 at once, then 190 a second; each of these takes about 100.
    llm = Limits(ScriptedLLM(lambda request: Reply("hm", prompt_tokens=90, reply_tokens=10)), tokens_per_min=12_000)
    started = time.perf_counter()
    gathered(llm, 7, "word " * 80)
    assert time.perf_counter() - started > 0.25


@pytest.mark.parametrize(
    "options",
    [{"concurrency": 0}, {"requests_per_min": 0}, {"tokens_per_min": -1}, {"requests_per_min": math.nan}],
)
def test_limits_that_cannot_work_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Limits(failing(), **options)


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
def test_no_budget_is_exceeded_however_replies_read_and_however_many_are_in_flight(answer, limit, most) -> None:
    with FaultyServer(lambda body, number: answer, latency_s=0.002) as server:
        replies = served(server, lambda one: Retry(Budget(Limits(one, 64), **limit), base_s=0.001), 40)
    assert {type(reply) for reply in replies} <= {Reply, BadReply, BudgetExceeded}
    assert 0 < server.count <= most
    assert type(replies[-1]) is BudgetExceeded


def test_requests_in_flight_together_fit_the_budget_with_the_longest_replies_that_they_allow() -> None:
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
