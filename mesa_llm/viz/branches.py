"""Branches beside their run: forked at any step with a change, on the same axes, and how far they are apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import solara
from matplotlib.ticker import MaxNLocator
from mesa.visualization.utils import update_counter
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.text import clip
from mesa_llm.viz.figures import Figure, Plot, first_step, numbers_of
from mesa_llm.viz.gate import steady
from mesa_llm.viz.markup import label_of
from mesa_llm.viz.newsdesk import BRANCH, BranchRun, Choices, InterventionFields, NewsDesk, Progress, Series
from mesa_llm.viz.plain import llm_models_only
from mesa_llm.viz.style import FEW, GREY, literal, tidy
from mesa_llm.viz.ticker import words

MAX_STEPS = 50
"""Maximum number of steps that a branch runs on the page."""

DEFAULT_STEPS = 5
"""Number of steps that a branch runs where its run has none left."""

LIVE_REPLIES = 100
"""Maximum number of live replies of a branch, unless another is typed."""

COLOURS = ("#2563eb", "#f97316", "#16a34a", "#9333ea")
"""Colours of branches, oldest first."""


@component
@llm_models_only
def Branches(model: LLMModel) -> None:
    """Let a visitor fork the run, or the recorded one, at any step with a change, and show both beside each other.

    Args:
        model: The model.
    """
    update_counter.get()
    words.get()
    desk = NewsDesk.of(model)
    with steady(model):
        choices = Choices.of(model)
    is_recorded = model.runlog.mode == "replay"
    last = use_memo(lambda: last_step_of(model), [model, 0 if is_recorded else model.time])
    solara.Text(
        "What would have come of a change? Up to the step where it forks, a branch is this run, replayed. After it, "
        "all seeds are this run's, and so are the replies to equal questions (common random numbers): what differs "
        "comes from the change. The run itself stays as it is.",
        classes=["mesa-llm-hint"],
    )
    if not last:
        solara.Info("There is no step to fork at yet; press Step.", dense=True)
        return
    _Fork(model, desk, choices, last)
    Progress(desk, BRANCH)
    _Plots(model, desk)


def last_step_of(model: LLMModel) -> int:
    """Return the last step at which a run can be forked: of a recorded one, its last, whatever is shown of it.

    Args:
        model: The model.
    """
    path = model.runlog.path
    return Recording.read(path).last_step if model.runlog.mode == "replay" and path is not None else int(model.time)


@component
def _Fork(model: LLMModel, desk: NewsDesk, choices: Choices, last: int) -> None:
    """Show where to fork, what to change, and how far to go."""
    typed, fork_at = use_state(-1)
    chosen, run_for = use_state(0)
    max_calls, set_max = use_state(LIVE_REPLIES)
    asks = model.llm not in ("rule", "random", "human")
    at = last if typed < 0 else min(typed, last)
    steps = chosen or min(last - at, MAX_STEPS) or DEFAULT_STEPS

    def run(intervention: Any) -> None:
        desk.branch(model, intervention, steps, at, max_calls if asks else None)

    with solara.Row(gap="24px", style={"flex-wrap": "wrap"}):
        solara.SliderInt(f"Fork after step {at}", value=at, min=0, max=last, on_value=fork_at)
        solara.SliderInt(f"Steps of the branch: {steps}", value=steps, min=1, max=MAX_STEPS, on_value=run_for)
        if asks:
            solara.InputInt("Live replies, at most", value=max_calls, on_value=set_max)
    InterventionFields(choices, "Run the branch", run, is_off=bool(desk.working), none_is_allowed=True)


@component
def _Plots(model: LLMModel, desk: NewsDesk) -> None:
    """Plot one measure of the run and of its branches."""
    update_counter.get()
    words.get()
    chosen, choose = use_state("")
    branches = tuple(desk.branches)
    if not branches:
        return
    with steady(model):
        costs = numbers_of(model)[1]
    names = [name for name in dict.fromkeys(name for run in branches for name in run.values) if name not in costs]
    name = chosen if chosen in names else next(filter(branches[-1].differs, names), next(iter(names), ""))
    if not name:
        solara.Info("The model has collected no numbers that could be compared.", dense=True)
        return
    solara.Select("Measure", names, value=name, on_value=choose, dense=True)
    Plot(model, branches_figure(name, branches)).key(f"{name} of {len(branches)} branches, {desk.version}")


def branches_figure(name: str, branches: Sequence[BranchRun]) -> Callable[[LLMModel], Figure]:
    """Make what draws a measure of a run and of its branches on the same axes, and below how far they are apart.

    Args:
        name: Name of the measure.
        branches: The branches.
    """

    def draw(model: LLMModel) -> Figure:
        figure = Figure(figsize=(8, 5.2), layout="constrained")
        above, below = figure.subplots(2, sharex=True, height_ratios=(2, 1))
        parent = parent_series(model, name, branches)
        _line(above, parent, "#0f172a", "this run", "-")
        for run, colour in zip(branches, COLOURS, strict=False):
            own = {step: value for step, value in run.values.get(name, {}).items() if step >= run.at}
            _line(above, own, colour, f"after step {run.at}: {literal(clip(run.title, 52))}", "--")
            _line(below, {step: value - parent[step] for step, value in own.items() if step in parent}, colour)
            for axes in (above, below):
                axes.axvline(run.at, color=colour, linewidth=0.8, alpha=0.6)
        below.axhline(0, color=GREY, linewidth=0.8)
        above.set_title(f"{label_of(name)}: this run and its branches", loc="left", color=GREY)
        below.set_title("Branch less this run", loc="left", fontsize=10, color=GREY)
        below.set_xlabel("Step", color=GREY)
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        for axes in (above, below):
            tidy(axes)
        figure.legend(*above.get_legend_handles_labels(), loc="outside lower left", fontsize="small", frameon=False)
        return figure

    return draw


def parent_series(model: LLMModel, name: str, branches: Sequence[BranchRun]) -> Series:
    """Return a measure of a run: as it was when it was branched, and how it has gone on since.

    Args:
        model: The run.
        name: Name of the measure.
        branches: Its branches.
    """
    found: Series = {}
    for run in branches:
        found |= run.parent.get(name, {})
    values = [] if model.datacollector is None else list(model.datacollector.model_vars.get(name, []))
    first = first_step(model, values)
    return found | {first + index: float(value) for index, value in enumerate(values) if value is not None}


def _line(axes: Any, series: Series, colour: str, label: str = "", style: str = "-") -> None:
    steps = sorted(series)
    marker = "." if len(steps) <= FEW else ""
    axes.plot(steps, [series[step] for step in steps], color=colour, linestyle=style, marker=marker, label=label or "_")
