"""Figures of a spreading post, and of the studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.ticker import MaxNLocator

from mesa_llm.charts import COLOURS, GREY, Figure, frame, headline, legend_below, marker, sheet
from mesa_llm.experiments.runs.arms import Band, Bands, bands_of, course, line_of
from mesa_llm.text import counted
from mesa_llm_models.oasis.model import OasisModel
from mesa_llm_models.oasis.spreading import SpreadingModel

LABELS = {"scale": "users (scale)", "max_breadth": "users at one distance (max breadth)", "depth": "distance (depth)"}
"""Measure → name in the legend."""


def cascade_figure(model: OasisModel) -> Figure:
    """Draw scale, max breadth and depth of the influencer's post, step by step."""
    figure, axes = sheet("Spread of the post")
    spread = model.cascade
    steps = spread.steps[: int(model.time) + 1]  # the step in progress has no events yet
    curves = dict(zip(LABELS, (spread.size, spread.breadth, spread.depth), strict=True))
    for (name, label), colour in zip(LABELS.items(), COLOURS, strict=False):
        values = curves[name][: len(steps)]
        axes.plot(steps, values, color=colour, lw=2.2, marker=marker(values), label=f"{label}: {values[-1]}")
    axes.set_ylim(bottom=0)
    axes.set_xlim(right=max(1, steps[-1]))
    legend_below(axes, len(LABELS))
    return figure


def activity_figure(model: OasisModel) -> Figure:
    """Draw the share of active users, step by step."""
    figure, axes = sheet("Users active in each step, %")
    shares = [100 * share for share in model.datacollector.model_vars["activity"][1:]]
    axes.plot(range(1, len(shares) + 1), shares, color=COLOURS[0], lw=2.2, marker=marker(shares))
    axes.set_ylim(0, 100)
    _none_yet(axes, shares)
    return figure


def _none_yet(axes: Any, values: list[float]) -> None:
    """Write into an empty plot that nothing has happened yet."""
    if not values:
        axes.text(0.5, 0.5, "no step yet", ha="center", transform=axes.transAxes, color=GREY)


GROUP_COLOURS = {"up": COLOURS[2], "control": GREY, "down": COLOURS[4], "real": "#0f172a"}
"""Name of a line → colour; other lines take the next of the palette."""

TITLES = {
    "spreading": ("A post that spreads, minute by minute", ""),
    "polarisation": ("Answers to the dilemma, interview by interview", ""),
    "groups": ("Answers to the dilemma, by the number of users", ""),
    "rumours": ("Posts on truths and on rumours", ""),
    "scale": ("Disagreement in comments, by the number of users", ""),
    "ablations": ("Reposts, the largest cascade and active users, with a part taken out", ""),
    "topics": ("Spread of real posts with a part taken out, of the largest real value", ""),
    "herd": ("Score of comments, by their first vote", "score_"),
    "counterfactual": ("Disagreement in comments of a step, by the first vote on all posts", ""),
}
"""Study → title, and the first part of the names of its measures."""


def study_figure(study: str, arms: Bands, n_seeds: int) -> Figure:
    """Draw a study's results by arm, as means over seeds with 95 % intervals.

    Args:
        study: Name of the study.
        arms: Arm → measure → its values over the steps.
        n_seeds: Number of seeds.
    """
    title, prefix = TITLES[study]
    is_spreading = study in ("spreading", "topics")
    figure = Figure(figsize=(3.9 * max(len(arms), 2), 4.6 if is_spreading else 3.9), layout="constrained")
    panels: Any = figure.subplots(1, len(arms), sharey=not is_spreading, squeeze=False)[0]
    for axes, (arm, bands) in zip(panels, arms.items(), strict=True):
        frame(axes, arm)
        axes.set_xlabel("minute" if is_spreading else "step", color=GREY)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        for index, (name, band) in enumerate(bands.items()):
            label = name.removeprefix(prefix).replace("_", " ")
            draw_band(axes, band, label, GROUP_COLOURS.get(label) or COLOURS[index % len(COLOURS)])
        legend_below(axes, 3 if len(bands) <= 3 else 2)
    headline(figure, f"{title} ({counted(n_seeds, 'seed')})")
    return figure


def course_figure(study: str, measures: Sequence[str]) -> Callable[[Any], Figure]:
    """Return a function that draws one run of a study's model in the style of `study_figure`.

    Args:
        study: Name of the study.
        measures: Measures to draw over the steps.
    """

    def draw(model: Any) -> Figure:
        if isinstance(model, SpreadingModel):
            curves = model.curves()
            panels = {name: {"this run": line_of(getattr(curves, name))} for name in measures}
        else:
            panels = {"this run": bands_of(course(model, measures, int(model.time))[None], measures)}
        return study_figure(study, panels, 1)

    return draw


def draw_band(axes: Any, band: Band, label: str, colour: str) -> None:
    """Draw a mean over steps, and its interval.

    Args:
        axes: Matplotlib axes.
        band: The measure.
        label: Name in the legend.
        colour: Colour of the mean and its interval.
    """
    steps = range(len(band.mean))
    axes.fill_between(steps, band.low, band.high, color=colour, alpha=0.2, lw=0)
    axes.plot(steps, band.mean, color=colour, lw=2.2, label=label, zorder=3 if label == "real" else 2)
