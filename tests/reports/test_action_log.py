"""Tables of actions: they are read from facts, in whatever words a world reports to its agents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mesa_llm import ActionResult, ConfigError, LLMAgent, LLMModel, Observation, RunLog, ToolCall
from mesa_llm.reports import ActionTables
from mesa_llm.tools.tool import action
from mesa_llm_models.market.world import PredictionMarkets
from mesa_llm_models.social.world import SocialWorld


class German(SocialWorld):
    """The social world, which reports in German, with numbers in its sentences that mean nothing."""

    @action
    def create_post(self, agent_id: int, content: str) -> ActionResult:
        """Veröffentliche einen Beitrag."""
        return ActionResult("Dein Beitrag steht auf Platz 9.", **super().create_post(agent_id, content).facts)

    @action
    def reply(self, agent_id: int, post_id: int, content: str) -> ActionResult:
        """Antworte auf einen Beitrag."""
        return ActionResult("Antwort auf post 77.", **super().reply(agent_id, post_id, content).facts)


class GermanMarkets(PredictionMarkets):
    """The markets, which report in German."""

    @action
    def buy_shares(self, agent_id: int, market_id: str, outcome: Any, amount: float) -> ActionResult:
        """Kaufe Anteile."""
        return ActionResult("Gekauft für 1 Euro.", **super().buy_shares(agent_id, market_id, outcome, amount).facts)


class Trader(LLMAgent):
    """Posts first, and then answers the first post and bets on it."""

    def observe(self) -> Observation:
        return Observation(max_actions=2)

    def rule(self, seen: Observation) -> list[ToolCall]:
        if self.now == 1:
            return [ToolCall("create_post", {"content": "It will rain."})]
        bet = {"market_id": "rain", "outcome": "yes", "amount": 10.0}
        return [ToolCall("reply", {"post_id": 1, "content": "Never."}), ToolCall("buy_shares", bet)]


def tables(social: type[SocialWorld], markets: type[PredictionMarkets], **options: Any) -> ActionTables:
    worlds = (social("simswarm", rng=1), markets(["Rain?"]))
    model = LLMModel(rng=1, worlds=worlds, activation="in_order", **options)
    for agent in Trader.create_agents(model, 2):
        worlds[0].sign_up(agent.unique_id)
    model.run_for(2)
    return ActionTables.of(model)


def test_a_world_may_report_in_any_language() -> None:
    ours, theirs = tables(SocialWorld, PredictionMarkets), tables(German, GermanMarkets)
    for name in ("top_posts", "engagement", "trajectories", "trades", "interactions"):
        assert getattr(ours, name)().equals(getattr(theirs, name)())
    assert theirs.top_posts()["post"].tolist() == [1, 2]
    assert theirs.interactions().to_dict("records") == [{"source": 2, "target": 1, "kind": "reply", "weight": 1}]
    assert min(theirs.trades()["shares"]) > 10


def test_facts_stand_in_the_log(tmp_path) -> None:
    kept = tables(German, GermanMarkets, log=tmp_path / "run.sqlite").entries
    facts = RunLog(tmp_path / "run.sqlite", "read").actions()["facts"].map(json.loads).tolist()
    assert facts == [entry.facts for entry in kept]
    assert facts[:2] == [{"post_id": 1}, {"post_id": 2}]


def test_facts_are_what_json_reads_back() -> None:
    assert ActionResult("", cells=((1, 2), (3, 4))).facts == {"cells": [[1, 2], [3, 4]]}
    with pytest.raises(ConfigError, match=r"the fact 'who' of an action is .* which JSON cannot represent"):
        ActionResult("", who={1, 2})
