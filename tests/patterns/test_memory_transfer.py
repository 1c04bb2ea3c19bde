"""Lives: agents carry their memory from one run into the next, live in several worlds in turn, and share one purse."""

import json
from typing import Annotated, Any, Unpack

import pytest
from pydantic import Field

from mesa_llm import (
    Access,
    AgentConfig,
    BudgetExceeded,
    ConfigError,
    DoNothing,
    Event,
    LLMAgent,
    LLMModel,
    LLMOptions,
    Observation,
    ScriptedLLM,
    ToolCall,
    action,
)


class Place(DoNothing):
    """A place where one works, and something grows."""

    def __init__(self, name: str, crop: str) -> None:
        self.name, self.crop = name, crop
        self.baskets: dict[int, int] = {}
        self.n_steps = 0

    def observe(self, agent_id: int) -> Observation:
        return Observation(f"You have {self.baskets.get(agent_id, 0)} baskets of {self.crop}.", label=self.name)

    @action
    def work(self, agent_id: int, hours: Annotated[int, Field(ge=1, le=8)]) -> str:
        """Work for some hours."""
        self.baskets[agent_id] = self.baskets.get(agent_id, 0) + hours
        return f"You brought in {hours} baskets of {self.crop}."

    def end_step(self) -> list[Event]:
        self.n_steps += 1
        return []


class Worker(LLMAgent):
    """By rule, works one hour."""

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("work", {"hours": 1})


class LivesModel(LLMModel):
    """Two workers, who spend odd steps on a farm and even ones at the sea."""

    def __init__(
        self, memory: str = "window", llm: Any = "rule", rng: int | None = None, **options: Unpack[LLMOptions]
    ) -> None:
        super().__init__(llm=llm, rng=rng, **options)
        self.worlds = (Place("farm", "apples"), Place("sea", "crabs"))
        for name in ("Ada", "Ben"):
            Worker(self, config=AgentConfig(name=name), memory=memory)

    def start_step(self) -> None:
        for agent in self.agents:
            agent.worlds = (self.worlds[(self.now + 1) % 2],)


def lived(steps: int = 2, **options: Any) -> dict[str, Any]:
    """Return the memories of a life, by name."""
    model = LivesModel(rng=1, **options)
    model.run_for(steps)
    return {agent.config.name: json.loads(json.dumps(agent.memory.to_json())) for agent in model.agents}


PAST = lived()
"""A life of two steps, by rule."""


def test_agents_live_in_their_worlds_in_turn() -> None:
    model = LivesModel(rng=1)
    model.run_for(5)
    assert [place.baskets for place in model.worlds] == [{1: 3, 2: 3}, {1: 2, 2: 2}]
    assert [place.n_steps for place in model.worlds] == [5, 5]
    first = model.runlog.decisions().query("agent == 1")
    assert list(first["label"]) == ["farm", "sea", "farm", "sea", "farm"]


@pytest.mark.parametrize("memory", ["window", "stream", "summary"])
def test_what_was_lived_in_another_life_is_read_with_its_world(memory) -> None:
    asked = ScriptedLLM(lambda request: ToolCall("work", {"hours": 2}))
    model = LivesModel(llm=asked, rng=2, memories={"Ada": lived(memory=memory)["Ada"]})
    model.run_for(2)
    prompts = model.runlog.calls()
    ada, ben = (prompts["prompt"][prompts["agent"] == number].iloc[-1] for number in (1, 2))
    assert "In an earlier life in farm, in step 1 you brought in 1 baskets" in ada
    assert "In an earlier life in sea, in step 2 you brought in 1 baskets" in ada
    assert "In step 1 you brought in 2 baskets of apples." in ada
    assert "earlier life" not in ben


def test_entries_know_their_world_and_a_third_life_knows_both_before() -> None:
    second = lived(memories=PAST)
    entries = second["Ada"]["entries"]
    assert [entry["world"] for entry in entries if entry["kind"] == "outcome"] == ["farm", "sea"] * 2
    n_past = len(entries) // 2
    assert [entry.get("is_past", False) for entry in entries] == [True] * n_past + [False] * n_past
    assert len(lived(memories=second)["Ben"]["entries"]) == 3 * n_past


def test_another_past_is_another_run_and_a_stranger_has_none(tmp_path) -> None:
    LivesModel(rng=1, memories=PAST, log=tmp_path / "run.sqlite").close()
    with pytest.raises(ConfigError, match="another run"):
        LivesModel(rng=1, memories={"Ada": PAST["Ada"]}, log=tmp_path / "run.sqlite")
    with pytest.raises(ConfigError, match="names Eve, and there are no such agents"):
        LivesModel(rng=1, memories={"Eve": PAST["Ada"]}).step()


def test_two_models_spend_from_one_purse(tmp_path) -> None:
    llm = ScriptedLLM(lambda request: ToolCall("work", {"hours": 2}))
    access = Access(max_calls=6)
    models = [LivesModel(llm=llm, rng=seed, access=access, log=tmp_path / f"{seed}.sqlite") for seed in (1, 2)]
    models[0].run_for(2)
    with pytest.raises(BudgetExceeded):
        models[1].run_for(2)
    assert [model.usage.calls for model in models] == [4, 2]
    models[1].close()
    again = LivesModel(llm=llm, rng=2, access=Access(max_calls=6), log=tmp_path / "2.sqlite")
    again.run_for(2)
    assert (again.usage.calls, again.usage.replayed) == (2, 2)
