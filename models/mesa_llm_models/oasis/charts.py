"""Charts of a spreading post, and of the studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mesa_llm.charts import COLOURS, GREY, INK, Chart, ChartSeries, Panels
from mesa_llm.experiments.runs.arms import Band, Bands, bands_of, course, line_of
from mesa_llm.text import counted
from mesa_llm_models.oasis.model import OasisModel
from mesa_llm_models.oasis.spreading import SpreadingModel

LABELS = {"size": "users (scale)", "breadth": "users at one distance (max breadth)", "depth": "distance (depth)"}
"""Measure of the cascade → name in the legend."""


def cascade_chart(model: OasisModel) -> Chart:
    """Return scale, max breadth and depth of the influencer's post, step by step."""
    spread = model.cascade
    steps = spread.steps[: int(model.time) + 1]  # the step in progress has no events yet
    series: list[ChartSeries] = []
    for name, label in LABELS.items():
        values = getattr(spread, name)[: len(steps)]
        series.append(ChartSeries(name=f"{label}: {values[-1]}", values=values, at=steps))
    return Chart(title="Spread of the post", series=series)


def activity_chart(model: OasisModel) -> Chart:
    """Return the share of active users, step by step."""
    shares = model.datacollector.model_vars["activity"][1:]
    series = ChartSeries(values=shares, at=range(1, len(shares) + 1))
    note = "" if shares else "No step yet."
    return Chart(title="Users active in each step", series=[series], unit="share", high=1, note=note)


GROUP_COLOURS = {"up": COLOURS[2], "control": GREY, "down": COLOURS[4], "real": INK}
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


def study_chart(study: str, arms: Bands, n_seeds: int) -> Panels:
    """Return a study's results by arm, as means over seeds with 95 % intervals.

    Args:
        study: Name of the study.
        arms: Arm → measure → its values over the steps.
        n_seeds: Number of seeds.
    """
    title, prefix = TITLES[study]
    is_spreading = study in ("spreading", "topics")
    charts: list[Chart] = []
    for arm, bands in arms.items():
        series: list[ChartSeries] = []
        for index, (name, band) in enumerate(bands.items()):
            label = name.removeprefix(prefix).replace("_", " ")
            colour = GROUP_COLOURS.get(label) or COLOURS[index % len(COLOURS)]
            series.append(band_series(band, label, colour))
        charts.append(Chart(title=arm, series=series, x="minute" if is_spreading else "step"))
    heading = f"{title} ({counted(n_seeds, 'seed')})"
    return Panels(title=heading, charts=charts, columns=4, has_one_scale=not is_spreading)


def course_chart(study: str, measures: Sequence[str]) -> Callable[[Any], Panels]:
    """Return a function that draws one run of a study's model in the style of `study_chart`.

    Args:
        study: Name of the study.
        measures: Measures to draw over the steps.
    """

    def draw(model: Any) -> Panels:
        if isinstance(model, SpreadingModel):
            curves = model.curves()
            panels = {name: {"this run": line_of(getattr(curves, name))} for name in measures}
        else:
            panels = {"this run": bands_of(course(model, measures, int(model.time))[None], measures)}
        return study_chart(study, panels, 1)

    return draw


def band_series(band: Band, name: str, colour: str) -> ChartSeries:
    """Return a mean over steps, and its interval.

    Args:
        band: The measure.
        name: Name in the legend.
        colour: Colour of the mean and its interval.
    """
    return ChartSeries(
        name=name, values=band.mean.tolist(), low=band.low.tolist(), high=band.high.tolist(), colour=colour
    )
