"""Interventions in a run, and branches: fork the run at any step with a change, and compare both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import solara
from reacton import ipyvuetify as vuetify
from reacton import use_ref, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.model.interventions import EVERYONE
from mesa_llm.model.model import LLMModel
from mesa_llm.text import counted
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.components.plots import Plot
from mesa_llm.viz.render.figures import branches_chart, numbers_of
from mesa_llm.viz.render.trace import Row
from mesa_llm.viz.session.interventions import (
    BRANCH,
    CHANGE,
    NEWS,
    POST,
    SEND,
    InterventionOptions,
    InterventionRunner,
    intervention_of,
    last_fork_of,
    last_step_of,
    live_replies,
)
from mesa_llm.viz.session.run_settings import WITHOUT_TEXT
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm.viz.session.session import human_queues

MAX_STEPS = 50
"""Maximum number of steps that a branch runs on the page."""

DEFAULT_STEPS = 5
"""Number of steps of a branch if its parent has none left."""


@component
@llm_models_only
def InterventionForm(model: LLMModel) -> None:
    """Let a visitor send news, publish posts and change variables.

    Args:
        model: The model.
    """
    use_page(model).moment()
    runner = InterventionRunner.of(model)
    with steady(model):
        choices = InterventionOptions.of(model)
        rows = [Row((str(one.step), one.text), "failed" if one.refusal else "") for one in model.interventions.log]
    solara.Text(
        "Interventions take effect between steps; they are logged and replayed. To try one without changing this run, "
        "use a branch under What if.",
        classes=["mesa-llm-hint"],
    )
    InterventionFields(choices, "Send", lambda one: runner.send(model, one), is_off=bool(runner.working))
    Progress(model, runner, SEND)
    if rows:
        Markup("table.html", columns=("Step", "Intervention"), rows=rows[::-1], more=0, nothing="")


@component
def Progress(model: LLMModel, runner: InterventionRunner, task: str) -> None:
    """Show the progress and the result of a task.

    Args:
        model: The model.
        runner: The runner of its interventions.
        task: The task: `SEND`, `BRANCH` or `WRITE`.
    """
    use_page(model).moment()
    if runner.task != task:
        return
    if runner.working:
        solara.ProgressLinear(True)
    for text, show in ((runner.working, solara.Info), (runner.error, solara.Error), (runner.note, solara.Success)):
        if text:
            show(text, dense=True)


@component
def InterventionFields(
    choices: InterventionOptions,
    label: str,
    do: Callable[[Any], None],
    *,
    is_off: bool,
) -> None:
    """Show the fields of an intervention; what is being typed is not echoed, so that no step can overwrite it.

    Args:
        choices: What can be chosen.
        label: Label of the button.
        do: Called with the intervention.
        is_off: Whether the button is disabled.
    """
    kind, choose = use_state(NEWS)
    reader, set_reader = use_state(EVERYONE)
    variable, set_variable = use_state("")
    fault, set_fault = use_state("")
    text, author = use_ref(""), use_ref("")
    own = variable if variable in choices.variables else next(iter(choices.variables), "")
    target = {NEWS: reader, CHANGE: own}.get(kind, "")

    def turn_to(other: str) -> None:
        text.current = author.current = ""  # another kind has fields of its own
        choose(other)

    def write() -> None:
        try:
            typed = author.current if kind == POST else target
            intervention = intervention_of(kind, text.current, typed)
        except ValueError as error:
            set_fault(str(error))
            return
        set_fault("")
        do(intervention)

    solara.ToggleButtonsSingle(kind, values=choices.kinds, on_value=turn_to, dense=True)
    if kind == NEWS:
        solara.Select("Readers", list(choices.readers), value=reader, on_value=set_reader, dense=True)
    elif kind == POST:
        _Typed("Account", author, rows=0)
        solara.Text("The name of a user, or any other name for a newsroom.", classes=["mesa-llm-hint"])
    elif kind == CHANGE:
        solara.Select("Variable", list(choices.variables), value=own, on_value=set_variable, dense=True)
        solara.Text(choices.variables.get(own, ""), classes=["mesa-llm-hint"])
    _Typed("New value" if kind == CHANGE else "Text", text, rows=0 if kind == CHANGE else 2).key(kind)
    if not choices.variables:
        solara.Text("No variable of this model can be changed during a run.", classes=["mesa-llm-hint"])
    with solara.Row(gap="12px"):
        solara.Button(label, color="primary", disabled=is_off, on_click=write)
    if fault:
        solara.Error(fault, dense=True)


@component
def _Typed(label: str, typed: Any, rows: int) -> None:
    def type_in(*event: Any) -> None:
        typed.current = str(event[-1] or "")

    options: dict[str, Any] = {"label": label, "value": "", "outlined": True, "dense": True, "hide_details": True}
    field = vuetify.Textarea(rows=rows, auto_grow=True, **options) if rows else vuetify.TextField(**options)
    use_event(field, "input", type_in)


@component
@llm_models_only
def Branches(model: LLMModel) -> None:
    """Let a visitor fork a run, live or recorded, at any step with a change, and compare both.

    Args:
        model: The model.
    """
    use_page(model).moment()
    runner = InterventionRunner.of(model)
    with steady(model):
        choices = InterventionOptions.of(model)
    solara.Text(
        "What if something had been different? Up to the fork, a branch replays this run. After it, an unchanged "
        "control and the branch use the same seeds, and the same replies to identical prompts (common random numbers), "
        "so any difference between them is due to the change. A placebo shows how much any text would do. One run of "
        "each shows no effect: that takes several seeds. The run itself is not affected.",
        classes=["mesa-llm-hint"],
    )
    last = last_fork_of(model)
    if human_queues(model):
        solara.Info("A branch cannot be run while you play: it would ask you everything again.", dense=True)
    elif last < 0:
        none = "There is no step to fork at yet. Press Step." if model.running else "No step can follow in this run."
        solara.Info(none, dense=True)
    else:
        _Fork(model, runner, choices, last)
    Progress(model, runner, BRANCH)
    _Plots(model, runner)


@component
def _Fork(model: LLMModel, runner: InterventionRunner, choices: InterventionOptions, last: int) -> None:
    """Show the fields for the step, the change and the length of a branch."""
    typed, fork_at = use_state(-1)
    chosen, run_for = use_state(0)
    typed_max, set_max = use_state(0)
    placebo, set_placebo = use_state(True)
    asks = model.llm not in WITHOUT_TEXT
    is_limited = asks and runner.access is None
    at = last if typed < 0 else min(typed, last)
    recorded = last_step_of(model)
    steps = chosen or min(recorded - at, MAX_STEPS) or DEFAULT_STEPS
    max_calls = typed_max or live_replies(model, steps, at, placebo=placebo)

    def run(intervention: Any) -> None:
        runner.branch(model, intervention, steps, at, max_calls if is_limited else None, placebo=placebo)

    with solara.Row(gap="24px", style={"flex-wrap": "wrap"}):
        if last:
            solara.SliderInt(f"Fork after step {at}", value=at, min=0, max=last, on_value=fork_at)
        solara.SliderInt(f"Steps of the branch: {steps}", value=steps, min=1, max=MAX_STEPS, on_value=run_for)
        if is_limited:
            solara.InputInt("Maximum live requests", value=max_calls, on_value=lambda n: set_max(max(n or 0, 0)))
        solara.Checkbox(label="With a placebo: a neutral text in its place", value=placebo, on_value=set_placebo)
    if at + steps > recorded:
        extra = counted(at + steps - recorded, "step")
        solara.Text(f"The unchanged control makes the {extra} after step {recorded} too.", classes=["mesa-llm-hint"])
    InterventionFields(choices, "Run the branch", run, is_off=bool(runner.working))
    if runner.working and runner.task == BRANCH:
        solara.Button("Stop the branch", icon_name="mdi-stop", color="error", outlined=True, on_click=runner.stop)


@component
def _Plots(model: LLMModel, runner: InterventionRunner) -> None:
    """Plot one measure of the run and its branches."""
    use_page(model).moment()
    chosen, choose = use_state("")
    branches = tuple(runner.branches)
    if not branches:
        return
    with steady(model):
        costs = numbers_of(model)[1]
    names = [name for name in dict.fromkeys(name for run in branches for name in run.values) if name not in costs]
    name = chosen if chosen in names else next(filter(branches[-1].differs, names), next(iter(names), ""))
    if not name:
        solara.Info("The model has collected no numbers to compare.", dense=True)
        return
    solara.Select("Measure", names, value=name, on_value=choose, dense=True)
    Plot(model, branches_chart(name, branches)).key(f"{name} of {len(branches)} branches, {runner.version}")
