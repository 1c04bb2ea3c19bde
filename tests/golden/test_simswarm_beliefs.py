"""SimSwarm's belief model, case by case, as its own code computed it."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm.worlds.beliefs import (
    Beliefs,
    Exposure,
    Post,
    apply_posts,
    confidence_band,
    position_band,
    tone,
    update_beliefs,
)
from tests.golden.reading import assert_close, golden, outcome_of

CASES: dict[str, list[dict[str, Any]]] = golden("simswarm")

REL = 1e-12
WRITES = ("create_post", "reply", "post", "comment")


def beliefs_of(state: dict[str, Any]) -> Beliefs:
    names = ("positions", "confidence", "trust")
    return Beliefs(*(state.get(name, {}) for name in names), seen=tuple(state.get("seen", ())))


def written(beliefs: Beliefs) -> dict[str, Any]:
    """Write beliefs down as the golden file does."""
    return {
        "positions": dict(beliefs.positions),
        "confidence": dict(beliefs.confidence),
        "trust": dict(beliefs.trust),
        "n_seen": len(beliefs.seen),
    }


@pytest.mark.parametrize("case", CASES["belief_update"])
def test_one_update(case: dict[str, Any]) -> None:
    met = [
        Exposure(post["author"], post["content_hash"], post["stance"], post.get("likes", 0)) for post in case["posts"]
    ]
    found = outcome_of(
        lambda: written(
            update_beliefs(
                beliefs_of(case["state"]),
                case["topic"],
                met,
                own_likes=case["own_likes"],
                own_dislikes=case["own_dislikes"],
                rules="original",
            )
        )
    )
    assert_close(found, case["r"], REL)


@pytest.mark.parametrize("case", CASES["apply_belief"])
def test_a_step_of_posts(case: dict[str, Any]) -> None:
    agents = {agent: number for number, agent in enumerate(case["r"], 1)}
    posts: list[Post] = []
    for number, record in enumerate(case["records"]):
        if not record["success"] or record["type"].lower() not in WRITES:
            continue
        post_id = (record["result"] or {}).get("post_id")
        likes, dislikes = case["likes"].get(post_id, (0, 0))
        author, text = record["agent"], (record["args"] or {}).get("text") or ""
        writer = agents.setdefault(author, len(agents) + 1)
        identity = str(post_id or number)
        posts.append(Post(identity, writer, text, likes, dislikes, author.upper(), record["round"]))
    believers = {agents[agent]: Beliefs() for agent in case["r"]}
    after = apply_posts(believers, posts, "T", rules="original")
    assert_close({agent: written(after[agents[agent]]) for agent in case["r"]}, case["r"], REL)


@pytest.mark.parametrize("case", CASES["stance_vader"])
def test_the_tone_of_a_text(case: dict[str, Any]) -> None:
    assert tone(case["text"]) == pytest.approx(case["r"], rel=REL)


@pytest.mark.parametrize("case", CASES["belief_bands"])
def test_positions_in_words(case: dict[str, Any]) -> None:
    assert position_band(case["position"]) == case["label"]


@pytest.mark.parametrize("case", CASES["confidence_bands"])
def test_confidence_in_words(case: dict[str, Any]) -> None:
    assert confidence_band(case["confidence"]).split()[0] == case["first_word"]
