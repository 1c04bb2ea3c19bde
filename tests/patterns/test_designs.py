"""Designs: one task under agents of many kinds, none of which the task knows of."""

import json
from contextlib import closing
from dataclasses import replace
from typing import Annotated, Any, Unpack

import pytest
from pydantic import Field
from typer.testing import CliRunner

from mesa_llm import (
    AgentConfig,
    AgentDesign,
    ConfigError,
    Decision,
    Event,
    LLMAgent,
    LLMModel,
    LLMOptions,
    Observation,
    Reply,
    ScriptedLLM,
    ToolCall,
    action,
    quoted,
    tool,
)
from mesa_llm.cli.app import app


class Lake:
    """A stock of fish that grows by a tenth a step."""

    name = "lake"

    def __init__(self) -> None:
        self.tons = 40.0

    def observe(self, agent_id: int) -> Observation:
        return Observation(
            "The season begins.", instructions="You fish on a lake that others fish on, too.", label="season"
        )

    @tool
    def sound(self, agent_id: int) -> str:
        """Estimate how much fish there is."""
        return f"About {self.tons:.0f} tons."

    @action
    def fish(self, agent_id: int, tons: Annotated[int, Field(ge=0, le=10)]) -> str:
        """Catch fish."""
        catch = min(tons, self.tons)
        self.tons -= catch
        return f"You caught {catch:.0f} tons."

    def end_step(self) -> list[Event]:
        self.tons *= 1.1
        return []


class Fisher(LLMAgent):
    """By rule, catches two tons."""

    def rule(self, seen: Observation) -> ToolCall:
        return ToolCall("fish", {"tons": 2})


class LakeModel(LLMModel):
    """Three fishers on a lake; an adviser is there for those who ask."""

    def __init__(
        self, adviser: Any = "rule", llm: Any = "rule", rng: int | None = None, **options: Unpack[LLMOptions]
    ) -> None:
        super().__init__(llm=llm, rng=rng, **options)
        self.adviser, self.lake = adviser, Lake()
        self.worlds = (self.lake,)
        for name in ("Ida", "Jon", "Kim"):
            Fisher(self, config=AgentConfig(name=name, persona="You are greedy.", traits={"boat": "old"}))


async def advised(agent: Any, seen: Observation) -> Any:
    """Decide after somebody else was asked for advice; without it, do nothing."""
    advice = await agent.consult(agent.model.adviser, f"Advise a fisher: {seen.text}", rule=lambda prompt: "Wait.")
    if not isinstance(advice, Decision):
        return None
    return await agent.decide(replace(seen, text=f"{seen.text}\nYou were advised: {quoted(advice.answer)}"))


DESIGNS = {
    "nobody": AgentDesign(persona="none"),
    "inline": AgentDesign(reasoning="inline"),
    "first": AgentDesign(reasoning="first", settings={"temperature": 0.1}),
    "stream": AgentDesign(memory="stream", style="briefly"),
    "advised": AgentDesign(decide=advised),
    "blind": AgentDesign(world_tools=False, memory="none"),
    "all": AgentDesign(persona="none", reasoning="first", memory="stream", world_tools=False, decide=advised),
}


def fishing(request):
    """Catch three tons, after a thought where one is asked for."""
    if not request.tools:
        return "Restraint pays."
    fish = next(one for one in request.tools if one.name == "fish")
    thought = {"reasoning": "Restraint pays."} if "reasoning" in fish.parameters["properties"] else {}
    return Reply(tool_calls=(ToolCall("fish", {**thought, "tons": 3}),))


@pytest.mark.parametrize("name", DESIGNS)
def test_any_design_runs_the_task_and_is_replayed_from_the_command_line(name, tmp_path) -> None:
    llms = {"llm": ScriptedLLM(fishing), "adviser": ScriptedLLM(fishing, name="adviser")}
    with closing(LakeModel(**llms, rng=1, design=DESIGNS[name], log=tmp_path / "run.sqlite")) as model:
        model.run_for(3)
        calls, decisions = model.runlog.calls(), model.runlog.decisions()
        digest = model.runlog.digest
    is_reasoned = DESIGNS[name].reasoning is not None
    n_asked = 9 * (1 + (DESIGNS[name].reasoning == "first") + (DESIGNS[name].decide is not None))
    assert set(decisions["text"]) == {"Restraint pays." if is_reasoned else ""}
    assert (len(calls), len(decisions)) == (n_asked, 9)
    own = calls.query("purpose == 'decide'")["prompt"]
    assert own.str.contains("greedy").any() == (DESIGNS[name].persona == "keep")
    assert own.str.contains("Your name is Ida").any()
    assert calls["parameters"].str.contains("sound").any() == (DESIGNS[name].world_tools is None)
    assert own.str.contains("In step 1 you caught 3 tons").any() == (DESIGNS[name].memory != "none")
    done = CliRunner().invoke(app, ["replay", "--trust", str(tmp_path / "run.sqlite"), "--json"])
    assert json.loads(done.stdout.splitlines()[-1])["digest"] == digest


@pytest.mark.parametrize("name", DESIGNS)
def test_a_design_is_json_and_back(name) -> None:
    written = json.dumps(DESIGNS[name].to_json())
    assert AgentDesign.from_json(json.loads(written)) == DESIGNS[name]


def test_a_design_that_leaves_nothing_to_do_is_an_error() -> None:
    model = LakeModel(llm=ScriptedLLM(fishing), design=AgentDesign(allowed=("sound",)), rng=1)
    with pytest.raises(ConfigError, match="may use none of its actions"):
        model.step()


def test_advice_is_counted_apart_and_asked_of_a_rule_too() -> None:
    model = LakeModel(ScriptedLLM(fishing, delay_s=0.002), rng=1, design=DESIGNS["advised"])
    model.run_for(2)
    assert model.usage_by_purpose["advice"].calls == 6
    assert LakeModel(rng=1, design=DESIGNS["advised"]).run_for(2) is None
