"""SimSwarm's belief model, case by case, as its own code computed it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from mesa_llm.text import tone
from mesa_llm_models.social.belief_text import confidence_band, position_band
from mesa_llm_models.social.beliefs import Beliefs, Exposure, apply_posts, update_beliefs
from tests.golden.beliefs import REL, beliefs_of, posts_of, text_of, written
from tests.golden.reading import assert_close, golden, outcome_of, section

CASES: dict[str, list[dict[str, Any]]] = golden("simswarm")


NOT_COMPARED = {
    "records.args.*": "arguments of actions that write nothing, which move no belief",
    "records.result.*": "what came of actions but the id of a post, which moves no belief",
}
"""Parts of a case that no test reads → why."""


def exposure_of(post: dict[str, Any]) -> Exposure:
    return Exposure(post["author"], post["content_hash"], post["stance"], post.get("likes", 0))


@pytest.mark.parametrize("case", section(CASES, "belief_update"))
def test_one_update(case: dict[str, Any]) -> None:
    found = outcome_of(
        lambda: written(
            update_beliefs(
                beliefs_of(case["state"]),
                case["topic"],
                [exposure_of(post) for post in case["posts"]],
                own_likes=case.get("own_likes", 0),
                own_dislikes=case.get("own_dislikes", 0),
                rules="original",
            )
        )
    )
    assert_close(found, case["r"], REL)


@pytest.mark.parametrize("case", section(CASES, "apply_belief"))
def test_a_step_of_posts(case: dict[str, Any]) -> None:
    agents = {agent: number for number, agent in enumerate(case["r"], 1)}
    posts = posts_of(case["records"], case.get("likes") or {}, agents)
    believers = {agents[agent]: Beliefs() for agent in case["r"]}
    after = apply_posts(believers, posts, "T", rules="original")
    assert_close({agent: written(after[agents[agent]]) for agent in case["r"]}, case["r"], REL)


@pytest.mark.parametrize("number", range(len(section(CASES, "apply_belief"))))
def test_an_argument_called_content_is_a_text_as_well(number: int) -> None:
    case = deepcopy(CASES["apply_belief"][number])
    before = posts_of(case["records"], case.get("likes") or {}, {})
    for record in case["records"]:
        record["args"] = {"content": text_of(record)}
    assert posts_of(case["records"], case.get("likes") or {}, {}) == before


@pytest.mark.parametrize("case", section(CASES, "stance_vader"))
def test_the_tone_of_a_text(case: dict[str, Any]) -> None:
    assert tone(case["text"]) == pytest.approx(case["r"], rel=REL)


@pytest.mark.parametrize("case", section(CASES, "belief_bands"))
def test_positions_in_words(case: dict[str, Any]) -> None:
    assert position_band(case["position"]) == case["label"]


@pytest.mark.parametrize("case", section(CASES, "confidence_bands"))
def test_confidence_in_words(case: dict[str, Any]) -> None:
    assert confidence_band(case["confidence"]).split()[0] == case["first_word"]
