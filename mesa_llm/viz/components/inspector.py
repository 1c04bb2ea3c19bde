"""Inspect one agent: its persona, observations, prompts, replies, decisions and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import solara
from reacton import use_state
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.viz.components.autocomplete import Autocomplete, Suggestion, options_in
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.render.agents import option_label, portrait
from mesa_llm.viz.render.trace import AgentStep, agent_steps
from mesa_llm.viz.session.rw_lock import steady


@component
def AgentInspector(model: Any) -> None:
    """Let a visitor inspect an agent: its persona and, step by step, its prompts, replies, decisions and outcomes.

    Args:
        model: The model.
    """
    page = use_page(model)
    page.moment()
    selected = page.selected("agent")
    agent_id = selected.value
    agents = {agent.unique_id: agent for agent in llm_agents(model)}
    if not agents:
        solara.Info("The model has no LLM agents.", dense=True)
        return
    agent_id = agent_id if agent_id in agents else next(iter(agents))
    with solara.Column(gap="10px"):
        PickAgent(agents, agent_id, selected.set)
        steps: list[AgentStep] = []
        with steady(model):
            facts = portrait(agents[agent_id])
            with suppress(ConfigError):  # Reset may just have closed it; the next drawing shows the new model
                steps = agent_steps(model, agent_id)
        with solara.Div(classes=["mesa-llm-split"]):
            Markup("agent.html", **facts)
            _Steps(steps).key(f"thoughts of {agent_id}")


@component
def PickAgent(agents: Mapping[int, Any], agent_id: int, on_pick: Callable[[int], None], label: str = "Agent") -> None:
    """Let a visitor pick an agent by its id or name.

    Args:
        agents: Agents by id.
        agent_id: Id of the selected agent.
        on_pick: Called with the id of the newly selected agent.
        label: Label of the field.
    """

    def find(query: str, size: int) -> list[Suggestion]:
        return options_in(((other_id, option_label(agent)) for other_id, agent in agents.items()), query, size)

    Autocomplete(label, Suggestion(agent_id, option_label(agents[agent_id])), find, on_pick)


@component
def _Steps(steps: list[AgentStep]) -> None:
    picked, pick = use_state(-1)
    if not steps:
        solara.Info("No decisions yet. Press Step.", dense=True)
        return
    by_time = {thought.time: thought for thought in steps}
    newest = steps[0].time
    step = picked if picked in by_time else newest
    times = list(by_time)
    index = times.index(step)
    with solara.Column(gap="0px"):
        with solara.Row(gap="4px", style={"align-items": "center"}):
            solara.IconButton(
                "mdi-chevron-left",
                on_click=lambda: pick(times[index + 1]),
                disabled=index + 1 == len(times),
                attributes={"aria-label": "Earlier step"},
            )
            with solara.Div(classes=["mesa-llm-step"]):
                solara.Select("Step", times, step, lambda time: pick(-1 if time == newest else time), dense=True)
            solara.IconButton(
                "mdi-chevron-right",
                on_click=lambda: pick(times[index - 1] if index > 1 else -1),
                disabled=index == 0,
                attributes={"aria-label": "Later step"},
            )
        Markup("agent_step.html", step=by_time[step], open=True)
