"""Whole runs of SimSwarm's engine with scripted replies: what agents believe in the end, and what the bridge tells.

The engine itself is not rebuilt: our agents decide together and act in order, and their prompts are our own.
"""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import Bridge, Event
from mesa_llm.worlds.beliefs import Beliefs, apply_posts
from tests.golden.beliefs import REL, posts_of, written
from tests.golden.reading import Recorded, assert_close, golden

RUNS: dict[str, Recorded] = golden("simswarm").get("engine_runs", Recorded({}))


NOT_COMPARED = {
    "llm_calls.n_messages": "our prompts are one system and one user message, and a conversation",
    "llm_calls.roles": "as the number of messages",
    "llm_calls.tool_names": "our worlds offer typed actions under the names of their own",
    "memory": "the engine remembers the last 20 calls of tools; memories here are components",
    "snapshots": "the engine's own report of progress",
    "raises": "one wrong reply ends the original's run; here it is a failure of one decision",
    "chat_log.platform": "the world that was asked; the scripts of the worlds are replayed on their own",
    "chat_log.args.*": "as the platform; texts of posts are read",
    "chat_log.result.*": "as the platform; ids of posts are read",
}
"""Parts of a run that no test reads → why."""

WORLDS = ("social", "market", "economic")

runs = pytest.mark.parametrize("run", RUNS.values(), ids=list(RUNS))


def liked_by(log: list[dict[str, Any]], step: int) -> dict[str, tuple[int, int]]:
    """Count likes and dislikes of every post up to the end of a step."""
    counts: dict[str, tuple[int, int]] = {}
    for record in log:
        if record["type"] == "vote" and record["success"] and record["round"] <= step:
            likes, dislikes = counts.get(record["args"]["post_id"], (0, 0))
            is_like = record["args"].get("value", 1) > 0
            counts[record["args"]["post_id"]] = (likes + is_like, dislikes + (not is_like))
    return counts


def check_beliefs(run: dict[str, Any]) -> None:
    log, wanted = run["chat_log"], run["belief"]
    numbers = {agent: number for number, agent in enumerate(wanted, 1)}
    believers = {number: Beliefs() for number in numbers.values()}
    topic = next((topic for one in wanted.values() for topic in one["positions"]), "goal")
    for step in sorted({record["round"] for record in log}):
        records = [record for record in log if record["round"] == step]
        posts = posts_of(records, liked_by(log, step), numbers)
        believers = apply_posts(believers, posts, topic, rules="original")
    assert_close({agent: written(believers[numbers[agent]]) for agent in wanted}, wanted, REL)


def check_bridge(run: dict[str, Any]) -> None:
    """Check that an agent hears of what is scheduled for the step, and of nothing that its own worlds tell."""
    scheduled = {call["call"] for call in run["llm_calls"] if call["user_has_bridge"]}
    bridge = Bridge([Event("", "shock", time=step) for step in scheduled])
    for step in sorted({call["call"] for call in run["llm_calls"]}):
        bridge.start_step(step)
        for call in run["llm_calls"]:
            worlds = [world for world in WORLDS if f"[{world}]" in call["env_headers"]]
            assert call["agent"]
            if call["call"] == step:
                assert bool(bridge.digest(worlds)) == call["user_has_bridge"]
        in_all = [w for w in WORLDS if all(f"[{w}]" in call["env_headers"] for call in run["llm_calls"])]
        bridge.publish([Event(world, "news", time=step) for world in in_all])


@runs
def test_beliefs_and_news_are_those_of_the_run(run: dict[str, Any]) -> None:
    check_bridge(run)
    if "chat_log" in run:
        check_beliefs(run)
