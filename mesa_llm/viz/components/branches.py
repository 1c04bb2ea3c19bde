"""Branches of a run: fork it at any step with a change, and compare both."""

from __future__ import annotations

from typing import Any

import solara
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.viz.components.interventions import InterventionFields, Progress
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.components.plots import Plot
from mesa_llm.viz.render.branches import branches_figure
from mesa_llm.viz.render.figures import numbers_of
from mesa_llm.viz.session.interventions import BRANCH, InterventionOptions, InterventionRunner
from mesa_llm.viz.session.rw_lock import steady

MAX_STEPS = 50
"""Maximum number of steps that a branch runs on the page."""

DEFAULT_STEPS = 5
"""Number of steps of a branch if its parent has none left."""

LIVE_REPLIES = 100
"""Default maximum number of live requests of a branch."""


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
    is_recorded = model.runlog.mode == "replay"
    last = use_memo(lambda: last_step_of(model), [model, 0 if is_recorded else model.time])
    solara.Text(
        "What if something had been different? Up to the fork, a branch replays this run. After it, it uses the "
        "same seeds and the same replies to identical prompts (common random numbers), so any difference is due to "
        "the change. The run itself is not affected.",
        classes=["mesa-llm-hint"],
    )
    if not last:
        solara.Info("There is no step to fork at yet. Press Step.", dense=True)
        return
    _Fork(model, runner, choices, last)
    Progress(model, runner, BRANCH)
    _Plots(model, runner)


def last_step_of(model: LLMModel) -> int:
    """Return the last step at which a run can be forked; for a recorded run, the last recorded step.

    Args:
        model: The model.
    """
    path = model.runlog.path
    return Recording.read(path).last_step if model.runlog.mode == "replay" and path is not None else int(model.time)


@component
def _Fork(model: LLMModel, runner: InterventionRunner, choices: InterventionOptions, last: int) -> None:
    """Show the fields for the step, the change and the length of a branch."""
    typed, fork_at = use_state(-1)
    chosen, run_for = use_state(0)
    max_calls, set_max = use_state(LIVE_REPLIES)
    asks = model.llm not in ("rule", "random", "human")
    at = last if typed < 0 else min(typed, last)
    steps = chosen or min(last - at, MAX_STEPS) or DEFAULT_STEPS

    def run(intervention: Any) -> None:
        runner.branch(model, intervention, steps, at, max_calls if asks else None)

    with solara.Row(gap="24px", style={"flex-wrap": "wrap"}):
        solara.SliderInt(f"Fork after step {at}", value=at, min=0, max=last, on_value=fork_at)
        solara.SliderInt(f"Steps of the branch: {steps}", value=steps, min=1, max=MAX_STEPS, on_value=run_for)
        if asks:
            solara.InputInt("Maximum live requests", value=max_calls, on_value=set_max)
    InterventionFields(choices, "Run the branch", run, is_off=bool(runner.working), none_is_allowed=True)


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
    Plot(model, branches_figure(name, branches)).key(f"{name} of {len(branches)} branches, {runner.version}")
