"""SimSwarm's tables of a run and its casts: posts, engagement, trajectories, follows, trades; whom a text names."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pytest

from mesa_llm.model.text_extraction import Character, names_in, read_characters
from mesa_llm.reports import ActionTables, LoggedAction
from tests.golden.reading import assert_close, golden, section

CASES: dict[str, Any] = golden("simswarm")

NOT_COMPARED = {
    "*.platform": "which world it was; names of actions tell",
    "*.platforms": "as platform",
    "*.persona": "a sentence made of the numbers",
    "*.timestamp": "always null",
    "posts*": "the posts of top_posts, before they are sorted",
    "trades.trade_id": "the number of a row of the log",
    "trades.amount_requested": "stands in the action",
    "social_graph.edges.follow*_name": "the names of the numbers",
    "graph.nodes.*": "the cast with its counts, which the profiles have",
    "graph.metadata*": "counts of nodes, edges and rounds",
    "r.raises": "the name of an exception of its own",
}
"""Parts of the tables that no test reads → why."""


def actions_of(records: list[Any]) -> list[LoggedAction]:
    return [
        LoggedAction(
            one["round"],
            one["agent"],
            one["agent"].upper(),
            one["type"],
            dict(one["args"].items()),
            one["success"],
            facts_of(one["result"] or {}),
        )
        for one in records
    ]


def facts_of(result: Any) -> dict[str, Any]:
    """Return the result of an action of SimSwarm's as our worlds would, with what was paid or got as `dollars`."""
    return {"dollars" if name in ("cost", "proceeds") else name: value for name, value in result.items()}


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a table as rows, None where there is nothing."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


def named(row: Any, **names: str) -> dict[str, Any]:
    """Return fields of a golden row by our names."""
    return {ours: row[theirs] for ours, theirs in names.items()}


def check_posts(report: ActionTables, case: Any) -> None:
    who = {"agent": "agent_id", "name": "agent_name", "text": "content", "step": "round_num"}
    counts = {"likes": "num_likes", "dislikes": "num_dislikes", "shares": "num_shares", "engagement": "engagement"}
    assert rows(report.top_posts()) == [named(one, post="post_id", **who, **counts) for one in case["top_posts"]]
    told = {"step": "round", "posts": "total_posts", "likes": "total_likes", "replies": "total_comments"}
    assert rows(report.engagement()) == [named(one, **told, active="active_agents") for one in case["engagement"]]


def check_agents(report: ActionTables, case: Any) -> None:
    steps = {"step": "round", "posts": "posts", "actions": "actions"}
    lived = [
        {"agent": one["agent_id"], "name": one["name"], **named(each, **steps), "tone": float(each["sentiment"])}
        for one in case["trajectories"]
        for each in one["rounds"]
    ]
    assert_close(rows(report.trajectories()), lived)
    active = {"agent": "agent_id", "name": "name", "posts": "total_posts", "actions": "total_actions"}
    assert rows(report.profiles()) == [named(one, **active, steps="rounds_active") for one in case["profiles"]]


def check_dealings(report: ActionTables, case: Any) -> None:
    follows, graph = report.follows(), case["graph"]
    edges = [(one["follower_id"], one["followee_id"]) for one in case["social_graph"]["edges"]]
    assert list(zip(follows["follower"], follows["followee"], strict=True)) == edges
    assert follows["is_mutual"].sum() == 2 * case["social_graph"]["n_mutual"]
    fields = {"step": "round_num", "agent": "agent_id", "name": "agent_name", "side": "side", "market": "market_id"}
    fields |= {"outcome": "outcome", "shares": "shares", "dollars": "cost", "price": "price", "ok": "success"}
    assert rows(report.trades()) == [{ours: one[fields[ours]] for ours in report.trades()} for one in case["trades"]]
    cast = {one["id"]: one["label"] for one in graph["nodes"]}
    dealt = [named(one, source="source", target="target", kind="type", weight="weight") for one in graph["edges"]]
    found = [one.get("fact") is not None for one in graph["edges"]]  # what a language model was told to find
    assert {tuple(one.values()) for one in rows(report.interactions(cast))} == {
        tuple(one.values()) for one, is_found in zip(dealt, found, strict=True) if not is_found
    }


@pytest.mark.parametrize("case", section(CASES, "extractors"))
def test_the_tables_of_a_run_are_those_of_simswarm(case: Any) -> None:
    report = ActionTables(actions_of(case["records"]), rules="original")
    check_posts(report, case)
    check_agents(report, case)
    check_dealings(report, case)


def slug_of(name: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", name.lower()).strip("_")


@pytest.mark.parametrize("case", section(CASES, "extract_entities"))
def test_a_cast_is_read_from_a_reply(case: Any) -> None:
    if "raises" in case["r"]:
        with pytest.raises(ValueError, match=r"wanted a JSON list|no character is named"):
            read_characters(case["llm"])
        return
    wanted = case["r"]["ok"]
    cast = read_characters(case["llm"])[: len(wanted)]  # the maximum that SimSwarm was given is not recorded
    for one, theirs in zip(cast, wanted, strict=True):
        assert (one.name, one.type, is_default(one)) == (theirs["name"], theirs["type"], theirs["summary_default"])
        assert theirs["id"].startswith(slug_of(one.name) or "entity_")  # the id is of the whole name


def is_default(one: Character) -> bool:
    return not one.summary


@pytest.mark.parametrize("case", section(CASES, "fallback_entities"))
def test_names_are_found_by_their_capitals(case: Any) -> None:
    found = names_in(case["text"], case["n"]) or ["Entity"]  # the original makes one up
    assert [[slug_of(name), name] for name in found] == case["r"]
