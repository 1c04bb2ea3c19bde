"""Deciders with the memory of another run, or with a placebo."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

from pydantic import Field

from mesa_llm import ConfigError, Label, LLMOptions, Observation
from mesa_llm.experiments.runs.neutral import NEUTRAL
from mesa_llm.memory import (
    AgentMemory,
    SavedMemories,
    estimate_tokens,
    import_memory,
    neutral,
    scrambled,
    within_tokens,
)
from mesa_llm_models.cognitive_biases.agents import Decider
from mesa_llm_models.cognitive_biases.items import BiasTest
from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel, CognitiveBiasesScenario

Arm = Literal["fresh", "carried", "half", "neutral", "shuffled", "other topic"]
"""Memory of the deciders: none; that of another life; its newer half; neutral text of its length; its words in random
order; or that of a life with another topic.
"""

DIRECTIONS: Mapping[str, Mapping[str, int]] = {
    "oasis": {"HyperbolicDiscounting": 1, "InGroupBias": 1},
    "econ_agent": {"EndowmentEffect": 1, "LossAversion": -1, "SurvivorshipBias": -1},
}
"""Source of the life → bias → direction of the memory's effect, as reported by Shachi (Figure 5). The study treats
these as predictions; the rule twins are built to follow them.
"""

CUES: Mapping[str, str] = {"oasis": "a shop with walls and a door", "econ_agent": "Your savings are"}
"""Source of the life → words by which a rule twin recognises its memory."""


class CarriedScenario(CognitiveBiasesScenario):
    """Parameters of tests of cognitive biases with the memory of another life."""

    lives: str | None = None
    """File with the lives, as written by `SavedMemories.write`, searched first beside the run log; None for no
    memories.
    """

    other_lives: str | None = None
    """File with lives on another topic, for the arm `other topic`."""

    carried: Annotated[Arm, Label("Memory of the deciders")] = "carried"
    """Memory of the deciders."""

    memory_tokens: Annotated[int, Field(ge=1), Label("Tokens of memory")] = 2000
    """Maximum number of tokens of a life in memory; the newest are kept."""

    pull: Annotated[float, Field(ge=0, le=1), Label("Rule twins are moved by")] = 0.4
    """Shift in the score of a rule twin that remembers the life, in the biases and directions of Figure 5."""

    noise: Annotated[float, Field(ge=0, le=1), Label("Scatter of rule twins")] = 0.2
    """Standard deviation of a rule twin's target score between tests."""

    susceptibility: Annotated[float, Field(ge=-1, le=1)] = 0.2
    """Target score of a rule twin without a shift."""


class CarriedDecider(Decider):
    """A decider whose rule twin's memory shifts it in the biases of Figure 5, with random noise."""

    model: CarriedModel

    def rule(self, seen: Observation) -> str:
        """Choose like the parent class, shifted by memory, with noise that is the same in all arms."""
        noise = self.model.scenario.noise
        scatter = random.Random(f"{self.model.run_seed} {self.unique_id} {seen.label}").gauss(0, noise)
        test: BiasTest = seen.facts.items[0].facts[0]
        return self.choose(seen, max(-1.0, min(1.0, self.susceptibility + scatter + self._moved(test.bias))))

    def _moved(self, bias: str) -> float:
        messages = [message.content for message in self.memory.messages()]
        text = "\n".join([self.memory.recall("", self.now, aside=True), *messages])
        lived = [place for place, cue in CUES.items() if cue in text]
        return self.model.scenario.pull * sum(DIRECTIONS[place].get(bias, 0) for place in lived)


class CarriedModel(CognitiveBiasesModel):
    """Deciders take bias tests with the memory of another life. The tests add nothing to it.

    The seed draws the lives from those in the file with any memory: the same in all arms.

    Attributes:
        drawn: Life of each decider, in order; empty without a file.
    """

    scenario_class = CarriedScenario
    scenario: CarriedScenario
    decider_class = CarriedDecider

    def __init__(self, scenario: CarriedScenario | None = None, **options: Unpack[LLMOptions]) -> None:
        """Give each decider its memory."""
        super().__init__(scenario, **options)
        chosen = self.scenario
        self.drawn: list[AgentMemory] = []
        if chosen.lives is None:
            return
        n = len(self.agents)
        self.drawn = draw_lives(self._lives_in(chosen.lives), n, random.Random(f"{self.run_seed} lives"))
        if chosen.carried == "fresh":
            return
        lives = self.drawn
        if chosen.carried == "other topic":
            if chosen.other_lives is None:
                raise ConfigError("the arm 'other topic' needs a file with lives of another topic: other_lives=")
            lives = draw_lives(self._lives_in(chosen.other_lives), n, random.Random(f"{self.run_seed} other lives"))
        for agent, life in zip(self.agents, lives, strict=True):
            rng = random.Random(f"{self.run_seed} {agent.unique_id} words")
            import_memory(agent, memory_of(life, chosen.carried, chosen.memory_tokens, rng), "readonly")

    def _lives_in(self, file: str) -> SavedMemories:
        """Read lives from a file beside the run log, so both can be moved, or from the working folder."""
        log = self.runlog.path
        beside = Path(file) if log is None else log.parent / file
        return SavedMemories.read(beside if beside.exists() else file)

    def results(self) -> dict[str, Any]:
        """Return the scores of each bias, and `deciders`: the source of each one's memory, and its mean scores."""
        return {**super().results(), "deciders": [self._decider(index) for index in range(len(self.agents))]}

    def _decider(self, index: int) -> dict[str, Any]:
        agent = list(self.agents)[index]
        life = self.drawn[index] if self.drawn else None
        means: dict[str, float | None] = {}
        for name in self.names:
            valid = [score for score in self.scores_of(agent.unique_id, name) if score is not None]
            means[name] = sum(valid) / len(valid) if valid else None
        saved = agent.memory.to_json().get("entries", [])
        return {
            "agent": None if life is None else life.agent,
            "name": None if life is None else life.name,
            "steps": None if life is None else [life.first_step, life.last_step],
            "characters": sum(len(entry["text"]) for entry in saved),
            "scores": means,
        }


def memory_of(life: AgentMemory, arm: Arm, max_tokens: int, rng: random.Random) -> dict[str, Any]:
    """Return the memory of a life, or a placebo of the same length.

    Args:
        life: The life.
        arm: Treatment of the memory.
        max_tokens: Maximum number of tokens to keep, the newest.
        rng: Random generator.
    """
    memory = within_tokens(life.memory, max_tokens)
    match arm:
        case "half":
            return within_tokens(memory, sum(estimate_tokens(entry["text"]) for entry in memory["entries"]) // 2)
        case "neutral":
            return neutral(memory, NEUTRAL)
        case "shuffled":
            return scrambled(memory, rng)
        case _:
            return memory


def draw_lives(saved: SavedMemories, n: int, rng: random.Random) -> list[AgentMemory]:
    """Draw lives with any memory, without repetition as long as there are enough.

    Args:
        saved: The lives of a run.
        n: Number of lives.
        rng: Random generator.

    Raises:
        ConfigError: If no life has any memory.
    """
    lives = [life for life in saved.lives if life.last_step is not None]
    if not lives:
        raise ConfigError("nobody in this file of lives remembers anything; run the source with a memory")
    drawn: list[AgentMemory] = []
    while len(drawn) < n:
        drawn += rng.sample(lives, min(n - len(drawn), len(lives)))
    return drawn
