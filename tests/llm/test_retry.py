"""Requests that failed are sent again where that can help, and a refusal that needs a person is told from others."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from mesa_llm.errors import (
    AccessRefused,
    BadReply,
    BudgetExceeded,
    RateLimited,
    Refused,
    ServerError,
    TransportError,
)
from mesa_llm.llm.protocol import LLM
from mesa_llm.llm.retry import MAX_REFUSALS, Refusals, Retry
from mesa_llm.llm.scripted import ScriptedLLM
from mesa_llm.records import Reply, Request
from tests.llm.layers import PRICED, failing, gathered


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


def test_retry_after_is_respected() -> None:
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


UNPAID = AccessRefused("the account is empty", is_out_of_money=True)
NO_KEY = AccessRefused("no such key")


def kinds_of(llm: LLM, number: int) -> list[type[Any]]:
    """Ask one request after another; give the types of what came back."""
    return [type(gathered(llm, 1)[0]) for _ in range(number)]


def test_only_a_refusal_before_the_first_reply_is_a_config_error() -> None:
    answers = iter([NO_KEY, PRICED, NO_KEY, PRICED, UNPAID])
    llm = Refusals(ScriptedLLM(lambda request: next(answers)))
    assert kinds_of(llm, 5) == [AccessRefused, Reply, Refused, Reply, BudgetExceeded]


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
