"""Numbers of requests are unique and ordered, and follow-ups belong to their decision."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesa_llm.engine.decision import MAX_TOOL_ROUNDS
from mesa_llm.engine.numbering import (
    CALLS_PER_REPLY,
    NUMBERS_PER_REQUEST,
    NUMBERS_PER_TURN,
    Numbering,
    SeriesKey,
    follow_up,
    parsing,
    purpose_counted,
    tool_call,
)
from mesa_llm.engine.reading.tool_calls import MAX_CALLS
from mesa_llm.errors import ConfigError
from mesa_llm.records import Salt

keys = st.tuples(st.integers(0, 3), st.sampled_from(["decide", "judge"]), st.sampled_from(["", "a", "b"]))
turns = st.lists(st.tuples(keys, st.integers(1, 4)), max_size=30)


def numbers_of(turns: list[tuple[SeriesKey, int]], step: int = 1) -> list[tuple[int, str, int]]:
    """Number the requests of turns and their follow-ups, each with its agent and purpose."""
    found: list[tuple[int, str, int]] = []
    with Numbering().reserved((key, step) for key, _ in turns) as reserved:
        for (key, n_requests), numbers in zip(turns, reserved, strict=True):
            for _ in range(n_requests):
                salt = Salt(0, key[0], step, key[1], numbers.take())
                for _ in range(NUMBERS_PER_REQUEST):
                    found.append((salt.agent, salt.purpose, salt.call))
                    salt = follow_up(salt)
    return found


@given(turns)
def test_no_two_requests_of_an_agent_and_a_purpose_have_one_number(turns) -> None:
    numbers = numbers_of(turns)
    assert len(set(numbers)) == len(numbers)


@given(turns)
def test_numbers_of_a_series_rise_in_the_order_asked(turns) -> None:
    for key in {key for key, _ in turns}:
        of_series = numbers_of([turn for turn in turns if turn[0] == key])
        assert all(before < after for before, after in pairwise(of_series))


@given(turns)
def test_turns_that_failed_get_the_same_numbers_again(turns) -> None:
    numbering, taken = Numbering(), []
    for _ in range(2):
        with suppress(KeyError), numbering.reserved((key, 1) for key, _ in turns) as reserved:
            taken.append([numbers.take() for numbers in reserved])
            raise KeyError
    assert taken[0] == taken[1]


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, MAX_CALLS - 1)), unique=True, max_size=50))
def test_no_two_tool_calls_share_a_number(places) -> None:
    salts = [tool_call(Salt(0, 1, 1, "decide", request), index) for request, index in places]
    assert len(set(salts)) == len(salts)


def test_a_decision_never_runs_out_of_numbers_for_its_follow_ups() -> None:
    reasoning, repair = 1, 1
    assert reasoning + MAX_TOOL_ROUNDS + repair < NUMBERS_PER_REQUEST
    assert MAX_CALLS <= CALLS_PER_REPLY


def test_a_turn_that_asks_too_much_is_an_error() -> None:
    with Numbering().reserved([((1, "decide", ""), 1)]) as (numbers,):
        for _ in range(NUMBERS_PER_TURN // NUMBERS_PER_REQUEST):
            numbers.take()
        with pytest.raises(ConfigError, match="more than 128 questions"):
            numbers.take()


def test_numbers_start_over_in_each_step_and_depend_on_the_series() -> None:
    numbering = Numbering()
    assert [numbering.take(7, step, "memory") for step in (1, 1, 2)] == [0, 1024, 0]
    with numbering.reserved([((7, "decide", "item 3"), 2)]) as (numbers,):
        assert numbers.take() == 0xB312F0A << 20


def test_parsing_keeps_the_number_and_counts_under_the_purpose_of_the_reply() -> None:
    salt = Salt(0, 1, 1, "judge", 16)
    assert parsing(salt).call == 16
    assert purpose_counted(parsing(salt).purpose) == "judge"
