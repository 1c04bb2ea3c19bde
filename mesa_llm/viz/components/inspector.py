"""Inspect one agent: its persona, observations, prompts, replies, decisions and outcomes; and interview it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import solara
from reacton import ipyvuetify as vuetify
from reacton import use_ref, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.errors import ConfigError
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.autocomplete import Autocomplete, Suggestion, options_in
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.render.agents import llm_label, option_label, portrait
from mesa_llm.viz.render.mesa_adapter import has_decided
from mesa_llm.viz.render.trace import AgentStep, agent_steps
from mesa_llm.viz.session.interviews import Interview, InterviewQueue, Waiting, interviews_with
from mesa_llm.viz.session.rw_lock import steady


@component
def AgentInspector(model: Any) -> None:
    """Let a visitor inspect an agent: its persona and, step by step, its prompts, replies, decisions and outcomes.

    Args:
        model: The model.
    """
    page = use_page(model)
    page.moment()
    picked = page.selected("agent").value
    agents = {agent.unique_id: agent for agent in llm_agents(model)}
    if not agents:
        solara.Info("The model has no LLM agents.", dense=True)
        return
    has_left = picked not in agents and has_decided(model, picked)
    agent_id = picked if picked in agents or has_left else next(iter(agents))
    with solara.Column(gap="10px"):
        if picked not in (0, agent_id):
            about = "an account that no agent writes for, such as a newsroom's, or an agent of another run"
            solara.Info(f"{picked} is not an agent of this model: {about}. Shown is agent {agent_id}.", dense=True)
        PickAgent(agents, agent_id, page.inspect_agent)
        steps: list[AgentStep] = []
        with steady(model):
            facts = {} if has_left else portrait(agents[agent_id])
            with suppress(ConfigError):  # Reset may just have closed it; the next drawing shows the new model
                steps = agent_steps(model, agent_id)
        with solara.Div(classes=["mesa-llm-split"]):
            if has_left:
                solara.Info(f"Agent {agent_id} has left the model. What it did before stands beside this.", dense=True)
            else:
                Markup("agent.html", **facts)
            _Steps(steps, page.step.value, page.step.set).key(f"thoughts of {agent_id}")


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

    text = option_label(agents[agent_id]) if agent_id in agents else f"{agent_id} · has left"
    Autocomplete(label, Suggestion(agent_id, text), find, on_pick)


@component
def _Steps(steps: list[AgentStep], picked: int, pick: Callable[[int], None]) -> None:
    if not steps:
        solara.Info("No decisions yet. Press Step.", dense=True)
        return
    by_time = {thought.time: thought for thought in steps}
    newest = steps[0].time
    step = next((time for time in by_time if 0 <= time <= picked), newest)  # the last one up to then
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


@component
@llm_models_only
def InterviewForm(model: LLMModel) -> None:
    """Let a visitor ask one agent a question that no other agent sees and that affects neither its memory nor the run.

    Args:
        model: The model.
    """
    page = use_page(model)
    page.moment()
    selected = page.selected("agent")
    agents = {agent.unique_id: agent for agent in llm_agents(model)}
    if not agents:
        solara.Info("The model has no LLM agents.", dense=True)
        return
    agent_id = selected.value if selected.value in agents else next(iter(agents))
    agent, queue = agents[agent_id], InterviewQueue.of(model)
    PickAgent(agents, agent_id, selected.set, label="Interview with")
    with steady(model):
        llm = llm_label(agent)
    solara.Text(
        f"Private survey: no other agent sees the question, and the run is not affected. Answered by {llm}; a language "
        "model is called once, when you press Ask.",
        classes=["mesa-llm-hint"],
    )
    _Question(lambda text: queue.ask(agent, text))
    if queue.error:
        solara.Error(queue.error, dense=True)
    for job in [job for job in queue.waiting if job.agent_id == agent_id]:
        _Waiting(queue, job)
    interviews: list[Interview] = []
    with suppress(ConfigError), steady(model):  # Reset may just have closed it; the next drawing shows the new model
        interviews = interviews_with(model, agent_id)
    name = agent.config.name or f"agent {agent_id}"
    Markup("interview.html", name=name, interviews=interviews).key(f"interviews with {agent_id}")


@component
def _Question(ask: Callable[[str], None]) -> None:
    """Show a field and a button; after each question the field is replaced with an empty one."""
    asks, count = use_state(0)

    def send(text: str) -> None:
        ask(text)
        if text.strip():
            count(asks + 1)

    _Field(send).key(f"question {asks}")


@component
def _Field(send: Callable[[str], None]) -> None:
    """Show a text field that does not echo what is being typed."""
    typed = use_ref("")

    def type_in(*event: Any) -> None:
        typed.current = str(event[-1] or "")

    with solara.Row(gap="12px", style={"align-items": "flex-start"}):
        field = vuetify.Textarea(
            label="Question", value="", rows=2, auto_grow=True, outlined=True, dense=True, hide_details=True
        )
        use_event(field, "input", type_in)
        solara.Button("Ask", icon_name="mdi-send", color="primary", on_click=lambda: send(typed.current))


@component
def _Waiting(queue: InterviewQueue, job: Waiting) -> None:
    with solara.Row(gap="12px", style={"align-items": "center"}):
        Markup("interview.html", name="", interviews=[Interview(0, job.question, "", "")])
        solara.SpinnerSolara(size="24px")
        solara.Button("Withdraw", on_click=lambda: queue.withdraw(job), text=True, small=True)
