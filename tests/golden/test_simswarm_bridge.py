"""SimSwarm's bridge, as its own code computed it: formatting, filtering, injection.

Our bridge carries the same facts along the same routes. The original's wording is rendered here, from our facts.
"""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import Bridge, Event
from mesa_llm.model.bridge import PAYLOADS
from mesa_llm_models.market.world import PredictionMarkets
from tests.golden.reading import golden, is_same, section

CASES = golden("simswarm")


NOT_COMPARED: dict[str, str] = {}
"""Parts of a case that no test reads → why."""

SOURCES = {"scheduled": "schedule"}
"""What the original calls a source → what we call it."""


def ours(source: str) -> str:
    """Return what we call a source of the original."""
    return SOURCES.get(source, source)


def event_of(case: dict[str, Any], time: int = 0) -> Event:
    return Event(ours(case["source"]), case["type"], case["data"], time=time)


def original_line(event: Event) -> str:
    """Write an event in the original's words, with its defaults for missing facts."""
    facts = event.facts
    source = next((theirs for theirs, ours in SOURCES.items() if ours == event.source), event.source)
    match event.kind:
        case "viral_post":
            text = facts.get("text") or facts.get("content") or ""
            return f'[Social] Trending: "{text[:80]}" by {facts.get("author", "?")}'
        case "price_move":
            direction = "up" if facts.get("delta", 0) > 0 else "down"
            return f"[Market] {facts.get('question', '?')} moved {direction} to {facts.get('price_yes', 0) * 100:.0f}%"
        case "policy_change":
            return f"[Policy] {facts.get('action', 'unknown')}: {dict(facts)}"
        case _:
            return f"[{source}] {event.kind}: {dict(facts)}"


@pytest.mark.parametrize("case", section(CASES, "bridge_format"))
def test_the_facts_of_an_event_arrive_as_they_were_told(case: dict[str, Any]) -> None:
    bridge = Bridge()
    bridge.publish([event_of(case["event"])])
    bridge.start_step(1)
    (heard,) = bridge.heard([])
    assert is_same(dict(heard.facts), case["event"]["data"])
    assert original_line(heard) == case["line"]


def all_sources(cases: list[dict[str, Any]]) -> list[str]:
    """Return the sources of all events that the cases share, in an order that agrees with what each agent hears."""
    told: list[str] = []
    for case in sorted(cases, key=lambda one: -len(one["sources_seen"])):
        place = 0
        for source in case["sources_seen"]:
            try:
                place = told.index(source, place) + 1
            except ValueError:
                told.insert(place, source)
                place += 1
    return told


@pytest.mark.parametrize("case", section(CASES, "bridge_digest"))
def test_a_digest_holds_the_events_of_other_worlds(case: dict[str, Any]) -> None:
    told = all_sources(section(CASES, "bridge_digest"))
    bridge = Bridge(max_events=len(told))
    bridge.publish(event_of({"source": s, "type": f"kind {n}", "data": {}}) for n, s in enumerate(told))
    bridge.start_step(1)
    worlds = [ours(world) for world in case["agent_envs"]]
    heard = [event.source for event in bridge.heard(worlds)]
    assert heard == [ours(source) for source in case["sources_seen"]]
    assert len(bridge.digest(worlds).splitlines()) == case["n_lines"]


@pytest.mark.parametrize("case", section(CASES, "bridge_scheduled"), ids=lambda case: case.get("round"))
def test_scheduled_events_arrive_in_their_step(case: dict[str, Any]) -> None:
    kinds = [(one["round"], kind) for one in section(CASES, "bridge_scheduled") for kind in one["types"]]
    every = [Event("", kind, {"number": number}, time=step) for number, (step, kind) in enumerate(kinds)]
    bridge = Bridge(every)
    assert [event.kind for event in bridge.start_step(case["round"])] == case["types"]
    heard = bridge.heard(["social", "market", "economic"])
    assert [(event.source, event.kind) for event in heard] == [("schedule", kind) for kind in case["types"]]


def test_sources_that_no_single_agent_hears_are_put_together() -> None:
    heard = (["social", "social", "scheduled"], ["market", "economic", "scheduled"], ["economic", "scheduled"])
    told = all_sources([{"sources_seen": sources} for sources in heard])
    assert sorted(told) == ["economic", "market", "scheduled", "social", "social"]
    for sources in heard:
        assert [source for source in told if source in sources] == sources


def test_what_one_world_tells_crosses_to_those_who_live_in_others() -> None:
    market, bridge = PredictionMarkets(["Rain?"]), Bridge(payloads=PAYLOADS)
    market.buy_shares(1, "rain", "yes", 900)
    bridge.publish(market.end_step())
    bridge.start_step(2)
    assert "rose" in bridge.digest(["social"])
    assert bridge.digest(["social", "market"]) == ""
