"""A Sotopia dyad: two persons with private goals act in turn, and a judge rates the whole conversation at its end."""

from typing import Annotated, Any, Unpack

import pytest
from pydantic import BaseModel, Field

from mesa_llm import (
    LLM,
    Decision,
    DoNothing,
    Event,
    LLMAgent,
    LLMModel,
    LLMOptions,
    Observation,
    ScriptedLLM,
    ToolCall,
    action,
    one_line,
    quoted,
)

Text = Annotated[str, Field(min_length=1, max_length=200)]


class Ratings(BaseModel, frozen=True):
    believability: Annotated[int, Field(ge=0, le=10)]
    relationship: Annotated[int, Field(ge=-5, le=5)]
    secret: Annotated[int, Field(ge=-10, le=0)]
    goal: Annotated[int, Field(ge=0, le=10)]


AVERAGE = Ratings(believability=5, relationship=0, secret=-5, goal=5)


class Scene(DoNothing):
    """What happened between two persons, each of whom has a goal that the other does not know."""

    name = "scene"

    def __init__(self, goals: dict[int, str]) -> None:
        self.goals = goals
        self.turns: list[str] = []
        self.has_left = False

    def observe(self, agent_id: int) -> Observation:
        text = "\n".join([f"Your goal: {self.goals[agent_id]}", *self.turns])
        return Observation(text, instructions="Two neighbours meet at the fence.", label=f"turn {len(self.turns) + 1}")

    def happened(self, what: str) -> str:
        self.turns.append(f"Turn {len(self.turns) + 1}: {what}")
        return "Done."

    @action
    def speak(self, agent_id: int, text: Text) -> str:
        """Say something."""
        return self.happened(f"person {agent_id} said {quoted(text)}")

    @action
    def gesture(self, agent_id: int, text: Text) -> str:
        """Communicate without words, as by a smile."""
        return self.happened(f"person {agent_id} [{one_line(text)}]")

    @action
    def act(self, agent_id: int, text: Text) -> str:
        """Do something."""
        return self.happened(f"person {agent_id} does: {quoted(text)}")

    @action
    def leave(self, agent_id: int) -> str:
        """Leave; the conversation is over."""
        self.has_left = True
        return self.happened(f"person {agent_id} left")

    @action
    def do_nothing(self, agent_id: int) -> str:
        """Let the other go on."""
        return self.happened(f"person {agent_id} did nothing")

    def end_step(self) -> list[Event]:
        return []


class Neighbour(LLMAgent):
    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("gesture", {"text": "nods"})


class DyadModel(LLMModel):
    """An episode of at most `max_turns` turns, and what a judge thinks of each of the two."""

    def __init__(
        self,
        judge: str | LLM = "rule",
        max_turns: int = 8,
        llm: Any = "rule",
        rng: int | None = None,
        **options: Unpack[LLMOptions],
    ) -> None:
        options.setdefault("activation", "in_turn")
        super().__init__(llm=llm, rng=rng, **options)
        self.judge, self.max_turns = judge, max_turns
        self.persons = list(Neighbour.create_agents(self, 2, config=["You are Ann.", "You are Bob."]))
        goals = ("get the ladder back", "keep the ladder, and hide that it is broken")
        self.scene = Scene({one.unique_id: goal for one, goal in zip(self.persons, goals, strict=True)})
        self.worlds = (self.scene,)
        self.ratings: dict[int, Ratings | None] = {}

    def end_step(self) -> None:
        if not self.scene.has_left and self.time < self.max_turns:
            return
        self.running = False
        story = "\n".join(self.scene.turns)
        prompts = [f"{story}\nRate person {number}, who wanted to {goal}." for number, goal in self.scene.goals.items()]
        judged = self.consult(self.judge, prompts, answer=Ratings, rule=lambda prompt: AVERAGE)
        for number, rating in zip(self.scene.goals, judged, strict=True):
            self.ratings[number] = rating.answer if isinstance(rating, Decision) else None

    def results(self) -> dict[str, Any]:
        rated = self.ratings.items()
        return {f"{name}_{one}": getattr(rating, name, None) for one, rating in rated for name in Ratings.model_fields}


def judge(request):
    goal = 11 if "person 2" in request.messages[0].content.splitlines()[-1] else 9
    return {"believability": 8, "relationship": -2, "secret": 0, "goal": goal}


def test_a_score_that_the_judge_misses_stays_missing() -> None:
    model = DyadModel(ScriptedLLM(judge, name="judge"), rng=1)
    model.run()
    assert model.ratings == {1: Ratings(believability=8, relationship=-2, secret=0, goal=9), 2: None}
    assert (model.results()["goal_1"], model.results()["goal_2"]) == (9, None)
    assert model.usage_by_purpose["judge"].failures == 1
    assert "goal: input should be less than or equal to 10" in model.runlog.failures()[0]


def test_a_goal_is_read_by_its_owner_and_the_judge_alone() -> None:
    model = DyadModel(ScriptedLLM(judge, name="judge"), llm=ScriptedLLM(lambda request: ToolCall("leave")), rng=1)
    model.run()
    prompts = model.runlog.calls()["prompt"]
    assert ["keep the ladder" in prompt for prompt in prompts] == [False, False, True, True]


@pytest.mark.parametrize("llm", ["rule", "random"])
def test_an_episode_ends_by_itself_without_a_language_model(llm) -> None:
    model = DyadModel(llm=llm, rng=2)
    model.run()
    assert (model.running, len(model.scene.turns), len(model.results())) == (False, model.time, 8)
