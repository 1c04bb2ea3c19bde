"""Runs by rule of which only the results are wanted, and the lean path that rule twins take."""

from __future__ import annotations

from typing import Any

import pytest

from mesa_llm import ConfigError, Decision, Failure, LazyObservation, LLMAgent, LLMModel, Observation, ToolCall, action
from mesa_llm.experiments.runs.sweep import sweep
from tests.pot import PotModel


def test_a_light_run_has_the_same_results_and_no_log() -> None:
    light, recorded = PotModel(rng=3, light=True), PotModel(rng=3)
    for model in (light, recorded):
        model.run_for(4)
    assert light.results() == recorded.results()
    assert [agent.memory.recall("", 5) for agent in light.agents] == [
        agent.memory.recall("", 5) for agent in recorded.agents
    ]
    assert light.engine.decisions == recorded.engine.decisions == 16
    assert (light.runlog.digest, len(light.runlog.decisions()), len(recorded.runlog.decisions())) == ("", 0, 16)


@pytest.mark.parametrize("options", [{"log": "run.sqlite"}, {"log": "run.sqlite", "replay": True}])
def test_a_light_run_takes_no_log(tmp_path, monkeypatch, options) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"light=True \(--light\) keeps no log"):
        PotModel(light=True, **options)


def test_a_light_run_asks_no_language_model_as_its_replies_would_be_lost() -> None:
    with pytest.raises(ConfigError, match="keeps no replies, and those of mine@"):
        PotModel(light=True, llm="mine@http://localhost:9/v1").step()


def test_a_sweep_may_be_light(tmp_path) -> None:
    made = sweep(PotModel, {"n_agents": [2, 3]}, seeds=1, steps=2, folder=tmp_path, workers=1, options={"light": True})
    assert (made.n_failed, list(made.table["digest"]), list(tmp_path.glob("*.sqlite"))) == (0, ["", ""], [])


class Digger(LLMAgent):
    """Digs as its class says."""

    n_dug = 0
    decided: Any = ToolCall("dig", {"depth": 2})

    def observe(self) -> Observation:
        return LazyObservation(lambda: pytest.fail("nobody reads this"), options={"depth": (1, 2)})

    def rule(self, seen: Observation) -> Any:
        return self.decided

    def can_dig(self) -> bool:
        return self.n_dug < 2

    @action(when="can_dig")
    def dig(self, depth: int) -> str:
        """Dig."""
        self.n_dug += 1
        return f"You dug {depth} deep."

    @action
    def rest(self) -> str:
        """Rest."""
        return "You rested."


def run(kind: type[Digger], steps: int = 1) -> Any:
    model = LLMModel(rng=1)
    kind(model)
    model.run_for(steps)
    return model


def test_a_text_that_nobody_reads_is_never_made() -> None:
    assert run(Digger, 2).agents[0].n_dug == 2


@pytest.mark.parametrize(
    ("decided", "reason"),
    [
        (ToolCall("dig", {"depth": 3}), "3' is not possible now; possible: 1, 2"),
        (ToolCall("dig", {"depth": "deep"}), "valid integer"),
        (ToolCall("dig"), "depth"),
        (ToolCall("fly"), "there is no tool 'fly'"),
        ([ToolCall("rest"), ToolCall("rest")], "at most 1"),
    ],
)
def test_what_a_rule_may_not_do_fails_with_its_reason(decided, reason) -> None:
    (failure,) = run(type("Wrong", (Digger,), {"decided": decided})).runlog.failures()
    assert reason in failure


def test_an_action_that_its_condition_forbids_fails() -> None:
    model = run(Digger, 3)
    assert len(model.runlog.failures()) == 1
    assert model.agents[0].n_dug == 2


def test_what_a_class_overrides_is_used() -> None:
    class Own(Digger):
        def toolbox(self, seen: Observation) -> Any:
            return super().toolbox(seen).only(["rest"])

        def act(self, decision: Decision | Failure, seen: Observation | None = None) -> Any:
            self.acted = decision
            return super().act(decision, seen)

        def remember(self, decision: Decision, outcomes: Any, seen: Observation | None = None) -> None:
            raise AssertionError("it has done nothing")

    agent = run(Own).agents[0]
    assert isinstance(agent.acted, Failure)


def test_agents_with_a_language_model_of_their_own_think_with_it() -> None:
    model = LLMModel(rng=1)
    for llm in (None, "random"):
        Digger(model, llm=llm)
    model.step()
    assert sorted(decision.by for decision in model.last_decisions.values()) == ["random", "rule"]
