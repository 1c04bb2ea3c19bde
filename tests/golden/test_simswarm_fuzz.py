"""SimSwarm's recorded cases, perturbed: keys that are missing or in another order, and rounds in another order.

Other recordings of the same program may lack a key that ours have, or list the calls of a round as they were answered.
A missing result leaves the other comparisons; without a missing input a case may come out otherwise, or not at all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.golden import (
    test_simswarm_beliefs,
    test_simswarm_bridge,
    test_simswarm_economy,
    test_simswarm_engine,
    test_simswarm_market,
    test_simswarm_report,
    test_simswarm_runs,
    test_simswarm_social,
)
from tests.golden.reading import NotRecorded, Recorded, golden, section

CASES: dict[str, Any] = golden("simswarm")

NOT_COMPARED: dict[str, str] = {}
"""Parts of a case that no test reads → why."""

Check = Callable[[Any], None]
"""Compares a case with what we compute."""

CHECKS: dict[str, Check] = {
    "amm_single": test_simswarm_market.test_one_trade_with_the_legacy_maker,
    "amm_sequences": test_simswarm_market.test_a_walk_of_the_legacy_maker,
    "floor_shares": test_simswarm_market.test_holdings_are_rounded_down,
    "slug": test_simswarm_market.test_ids_are_made_of_questions,
    "slug_collision": test_simswarm_market.test_equal_questions_get_numbered_ids,
    "demo_trades": test_simswarm_market.check_trades,
    "market_env": test_simswarm_market.test_the_original_environment_replays,
    "social_env": test_simswarm_social.test_a_script_replays_exactly,
    "economic_env": test_simswarm_economy.test_a_script_runs_as_recorded,
    "bridge_format": test_simswarm_bridge.test_the_facts_of_an_event_arrive_as_they_were_told,
    "belief_update": test_simswarm_beliefs.test_one_update,
    "apply_belief": test_simswarm_beliefs.test_a_step_of_posts,
    "stance_vader": test_simswarm_beliefs.test_the_tone_of_a_text,
    "belief_bands": test_simswarm_beliefs.test_positions_in_words,
    "confidence_bands": test_simswarm_beliefs.test_confidence_in_words,
    "story_week_range": test_simswarm_runs.test_days_are_counted_in_weeks,
    "parse_tool_calls": test_simswarm_runs.test_tool_calls_are_read_as_simswarm_does_where_they_can_be_used,
    "extractors": test_simswarm_report.test_the_tables_of_a_run_are_those_of_simswarm,
    "extract_entities": test_simswarm_report.test_a_cast_is_read_from_a_reply,
    "fallback_entities": test_simswarm_report.test_names_are_found_by_their_capitals,
    "engine_runs": test_simswarm_engine.test_deeds_trades_memories_beliefs_and_news_are_those_of_the_run,
}
"""Section of the file → the test of one of its cases."""

RESULTS = (
    *("amm_single.re*", "amm_single.price_*", "amm_sequences.steps.re*", "amm_sequences.steps.price_*"),
    *("demo_trades.n_recorded", "demo_trades.rounds_*", "demo_trades.recorded_*", "demo_trades.final_*"),
    *("*_env.log.r", "*_env.log.events", "*_env.agents", "market_env.final", "market_env.final.n_*"),
    *("market_env.final.markets", "market_env.final.portfolios", "market_env.final.portfolios.*.balance"),
    *("social_env.posts", "social_env.follows", "social_env.posts.*", "social_env.log.events.*"),
    *("economic_env.actors", "economic_env.actors.*.*", "economic_env.policies", "economic_env.policies.*"),
    *("economic_env.variables", "economic_env.log.metrics", "economic_env.log.events.*"),
    *("engine_runs.chat_log", "engine_runs.llm_calls", "engine_runs.memory", "engine_runs.belief"),
    *("engine_runs.snapshots", "engine_runs.raises", "engine_runs.belief.*.n_seen", "engine_runs.belief.*.trust"),
    *("engine_runs.llm_calls.roles", "engine_runs.llm_calls.tool_names", "engine_runs.llm_calls.n_messages"),
    "engine_runs.chat_log.result",
)
"""Patterns of the paths of results, without which all else is compared."""


def cases_of(name: str) -> list[Any]:
    """Return the cases of a section, of which the runs of the engine have names."""
    return list(CASES.get(name, {}).values()) if name == "engine_runs" else section(CASES, name)


def places(value: Any, path: str) -> Iterator[tuple[str, Recorded, str]]:
    """Iterate over the keys of a case: the path of each, the object that has it, and the key."""
    if isinstance(value, Recorded):
        for key in list(value):
            yield f"{path}.{key}", value, key
            yield from places(dict.__getitem__(value, key), f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from places(inner, path)


def is_result(path: str) -> bool:
    return any(fnmatchcase(path, pattern) and path.count(".") == pattern.count(".") for pattern in RESULTS)


def reordered(value: Any, rng: random.Random) -> Any:
    """Return a value whose objects have their keys in another order, at every depth."""
    if isinstance(value, Recorded):
        keys = list(value)
        rng.shuffle(keys)
        return Recorded({key: reordered(dict.__getitem__(value, key), rng) for key in keys})
    return [reordered(inner, rng) for inner in value] if isinstance(value, list) else value


def drawn(data: st.DataObject, name: str) -> Any:
    """Draw a case of a section, and copy it."""
    cases = cases_of(name)
    return deepcopy(cases[data.draw(st.integers(0, len(cases) - 1), label="case")])


def drawn_place(data: st.DataObject, found: list[tuple[str, Recorded, str]]) -> tuple[Recorded, str]:
    """Draw one of some places of a case, by its path first: most paths are of entries of long lists."""
    path = data.draw(st.sampled_from(list(dict.fromkeys(path for path, _, _ in found))), label="path")
    alike = [(of, key) for one, of, key in found if one == path]
    return alike[data.draw(st.integers(0, len(alike) - 1), label="place")]


def in_rounds(data: st.DataObject, rows: list[Any], key: Any) -> list[Any]:
    """Return rows with those of each round in another order."""
    rounds: dict[Any, list[Any]] = {}
    for row in rows:
        rounds.setdefault(row[key], []).append(row)
    return [row for own in rounds.values() for row in data.draw(st.permutations(own))]


sections = pytest.mark.parametrize("name", [name for name in CHECKS if cases_of(name)])


@sections
def test_no_case_here_lacks_what_its_test_needs(name: str) -> None:
    for case in cases_of(name):
        CHECKS[name](deepcopy(case))


@sections
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_case_without_a_result_is_compared_in_all_else(name: str, data: st.DataObject) -> None:
    case = drawn(data, name)
    if found := [place for place in places(case, name) if is_result(place[0])]:
        of, key = drawn_place(data, found)
        del of[key]
    CHECKS[name](case)


@sections
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_case_without_any_key_differs_or_cannot_be_replayed_but_is_no_error(name: str, data: st.DataObject) -> None:
    case = drawn(data, name)
    if found := list(places(case, name)):
        of, key = drawn_place(data, found)
        del of[key]
    with suppress(AssertionError, NotRecorded, pytest.fail.Exception):
        CHECKS[name](case)


@sections
@settings(max_examples=10, deadline=None)
@given(data=st.data(), seed=st.integers(0, 10**6))
def test_the_order_of_keys_means_nothing(name: str, data: st.DataObject, seed: int) -> None:
    CHECKS[name](reordered(drawn(data, name), random.Random(seed)))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_log_may_list_a_round_in_any_order(data: st.DataObject) -> None:
    run = drawn(data, "engine_runs")
    run["chat_log"] = in_rounds(data, run.get("chat_log", []), "round")
    run["llm_calls"] = data.draw(st.permutations(run["llm_calls"]))
    CHECKS["engine_runs"](run)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_trades_may_be_listed_in_any_order_within_a_round(data: st.DataObject) -> None:
    case = drawn(data, "demo_trades")
    case["trades"] = in_rounds(data, case["trades"], 0)
    CHECKS["demo_trades"](case)


@pytest.mark.parametrize("name", ["amm_single", "amm_sequences", "market_env", "belief_update", "engine_runs"])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_number_that_is_another_is_noticed(name: str, data: st.DataObject) -> None:
    case = drawn(data, name)
    if found := [place for place in places(case, name) if is_number(place[0], dict.__getitem__(place[1], place[2]))]:
        of, key = drawn_place(data, found)
        of[key] = dict.__getitem__(of, key) + 1
        with pytest.raises(AssertionError):
            CHECKS[name](case)


def is_number(path: str, value: Any) -> bool:
    """Check whether a key holds a finite number that the program computed."""
    is_finite = isinstance(value, float) and abs(value) < float("inf")
    return is_finite and any(fnmatchcase(path, pattern) for pattern in NUMBERS)


NUMBERS = (
    *("amm_single.result.ok", "amm_single.price_*", "amm_sequences.steps.result", "amm_sequences.steps.price_yes"),
    *("market_env.log.r.*", "market_env.final.*", "belief_update.r.*", "engine_runs.chat_log.result.*"),
    "engine_runs.belief.*",
)
"""Patterns of the paths of numbers of which each is compared."""
