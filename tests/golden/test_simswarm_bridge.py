"""SimSwarm's bridge, as its own code computed it: formatting, filtering, injection.

Our bridge carries the same facts along the same routes. The original's wording is rendered here, from our facts.
"""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import Bridge, Event
from mesa_llm.bridge import PAYLOADS
from mesa_llm.worlds.market import PredictionMarkets
from tests.golden.reading import golden, is_same

CASES = golden("simswarm")

SOURCES = {"scheduled": "schedule"}
"""What the original calls a source → what we call it."""


def event_of(case: dict[str, Any], time: int = 0) -> Event:
    source: str = case["source"]
    return Event(SOURCES.get(source, source), case["type"], case["data"], time=time)


def original_line(event: Event) -> str:
    """Write an event in the original's words, with its defaults for missing facts."""
    facts = event.facts
    source = next((theirs for theirs, ours in SOURCES.items() if ours == event.source), event.source)
    match event.kind:
        case "viral_post":
            return f'[Social] Trending: "{facts.get("text", "")[:80]}" by {facts.get("author", "?")}'
        case "price_move":
            direction = "up" if facts.get("delta", 0) > 0 else "down"
            return f"[Market] {facts.get('question', '?')} moved {direction} to {facts.get('price_yes', 0) * 100:.0f}%"
        case "policy_change":
            return f"[Policy] {facts.get('action', '?')}: {dict(facts)}"
        case _:
            return f"[{source}] {event.kind}: {dict(facts)}"


@pytest.mark.parametrize("case", CASES["bridge_format"])
def test_the_facts_of_an_event_arrive_as_they_were_told(case: dict[str, Any]) -> None:
    bridge = Bridge()
    bridge.publish([event_of(case["event"])])
    bridge.start_step(1)
    (heard,) = bridge.heard([])
    assert is_same(dict(heard.facts), case["event"]["data"])
    assert original_line(heard) == case["line"]


@pytest.mark.parametrize("case", CASES["bridge_digest"])
def test_a_digest_holds_the_events_of_other_worlds(case: dict[str, Any]) -> None:
    told = max((one["sources_seen"] for one in CASES["bridge_digest"]), key=len)
    bridge = Bridge(most_events=len(told))
    bridge.publish(event_of({"source": s, "type": f"kind {n}", "data": {}}) for n, s in enumerate(told))
    bridge.start_step(1)
    heard = [event.source for event in bridge.heard(case["agent_envs"])]
    assert heard == [SOURCES.get(source, source) for source in case["sources_seen"]]
    assert len(bridge.digest(case["agent_envs"]).splitlines()) == case["n_lines"]


@pytest.mark.parametrize("case", CASES["bridge_scheduled"], ids=lambda case: case["round"])
def test_scheduled_events_arrive_in_their_step(case: dict[str, Any]) -> None:
    every = [Event("", kind, time=one["round"]) for one in CASES["bridge_scheduled"] for kind in one["types"]]
    bridge = Bridge(every)
    assert [event.kind for event in bridge.start_step(case["round"])] == case["types"]
    heard = bridge.heard(["social", "market", "economic"])
    assert [(event.source, event.kind) for event in heard] == [("schedule", kind) for kind in case["types"]]


def test_a_scheduled_event_is_told_in_its_step_and_no_other() -> None:
    calls = CASES["engine_runs"]["scheduled_event_visible_that_round_only"]["llm_calls"]
    bridge = Bridge([Event("", "shock", time=2)])
    for call in calls:
        bridge.start_step(call["call"])
        assert bool(bridge.digest(["social"])) == call["user_has_bridge"]


def test_events_cross_here_and_never_there() -> None:
    calls = CASES["engine_runs"]["events_never_reach_digest"]["llm_calls"]
    assert not any(call["user_has_bridge"] for call in calls)
    market, bridge = PredictionMarkets(["Rain?"]), Bridge(payloads=PAYLOADS)
    market.buy_shares(1, "rain", "yes", 900)
    bridge.publish(market.end_step())
    bridge.start_step(2)
    assert "rose" in bridge.digest(["social"])
    assert bridge.digest(["social", "market"]) == ""
