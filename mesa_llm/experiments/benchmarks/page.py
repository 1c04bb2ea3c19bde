"""Benchmark report as an HTML file with plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from matplotlib.figure import Figure

from mesa_llm.charts import COLOURS, GREY, LIGHT
from mesa_llm.experiments.benchmarks.report import BenchmarkReport, TaskReport
from mesa_llm.experiments.charts import picture
from mesa_llm.experiments.findings import framed, rendered
from mesa_llm.statistics import Estimate

MAX_ROWS = 24
"""Maximum number of scores drawn in one row each; more are drawn as a scatter plot against the target."""

NO_PICKS: Mapping[str, int] = MappingProxyType({})
"""Runs that can be opened from a saved page: none."""

FAR = 20
"""Ratio of the largest to the smallest target above which axes are logarithmic."""


def page(report: BenchmarkReport) -> str:
    """Render a report as a self-contained HTML page."""
    return framed(f"Benchmark of {report.candidate}", fragment(report))


def fragment(report: BenchmarkReport, picks: Mapping[str, int] = NO_PICKS) -> str:
    """Render a report as a fragment of a page.

    Args:
        report: The report.
        picks: Path of a run log → number of the run, for runs that can be opened from the page.
    """
    plots = {task.task: picture(plot_of(task)) for task in report.tasks}
    compared = [task for task in report.tasks if task.has_error]
    errors = picture(error_plot(report, compared)) if compared else ""
    return rendered("benchmarks/report.html", report=report, plots=plots, errors=errors, picks=picks)


def error_plot(report: BenchmarkReport, tasks: list[TaskReport]) -> Figure:
    """Draw the errors of each task on its own scale, since their units differ."""
    columns = min(3, len(tasks))
    rows = -(-len(tasks) // columns)
    height = 0.9 + 0.24 * (len(report.candidates) + 4)
    figure = Figure(figsize=(4.1 * columns, height * rows), layout="constrained")
    plots: Any = figure.subplots(rows, columns, squeeze=False)
    for axes, task in zip(plots.flat, tasks, strict=False):
        marks: list[tuple[str, Estimate | None, str]] = [
            (one, task.results[one].error, colour) for one, colour in zip(report.candidates, COLOURS, strict=False)
        ]
        result = task.baseline_result
        if result is not None and result.error is not None:
            marks.append(("its baseline", result.error, GREY))
        references = {"constant": task.constant_error, "people": task.people_error}
        if task.published_error is not None:
            references |= {"study: agent": task.published_error.agent, "study: baseline": task.published_error.baseline}
        marks += [(name, _point(value), GREY) for name, value in references.items() if value is not None]
        _dots(axes, marks)
        axes.set_xlim(left=0)
        axes.set_title(task.task, loc="left", color=GREY)
        axes.set_xlabel(f"error, {task.unit}" if task.unit else "error", color=GREY)
    for axes in list(plots.flat)[len(tasks) :]:
        axes.set_visible(False)
    return figure


def _point(value: float) -> Estimate:
    return Estimate(value, None, None, 0)


def _dots(axes: Any, marks: list[tuple[str, Estimate | None, str]]) -> None:
    """Draw a row for each estimate, with its interval."""
    for row, (_, estimate, colour) in enumerate(marks):
        if estimate is not None:
            _dot(axes, estimate, row, colour)
    axes.set_yticks(range(len(marks)), [name for name, _, _ in marks])
    axes.set_ylim(len(marks) - 0.5, -0.5)
    _tidy(axes)


def _dot(axes: Any, estimate: Estimate, row: float, colour: str, label: str = "") -> None:
    if estimate.low is not None and estimate.high is not None:
        axes.plot([estimate.low, estimate.high], [row, row], color=colour, linewidth=2, solid_capstyle="round")
    axes.plot([estimate.value], [row], "o", color=colour, markersize=5, label=label or "_")


def _tidy(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.tick_params(colors=GREY)
    axes.grid(axis="x", color=LIGHT, linewidth=0.8)
    axes.set_axisbelow(True)


def plot_of(task: TaskReport) -> Figure:
    """Draw the scores of a task beside the target: one row each, or a scatter plot above `MAX_ROWS` scores."""
    if len(task.score_names) > MAX_ROWS and task.has_error:
        return _scatter(task)
    return _rows(task)


def _rows(task: TaskReport) -> Figure:
    """Draw a row for each score. Scores of one instrument, as in `Empathy: Overall`, share a scale."""
    groups: dict[str, list[str]] = {}
    for name in task.score_names[: 4 * MAX_ROWS]:
        groups.setdefault(name.rpartition(": ")[0], []).append(name)
    groups = groups or {"": []}
    heights = [0.3 * len(names) + (0.75 if group else 0.3) for group, names in groups.items()]
    figure = Figure(figsize=(8.6, 1.0 + sum(heights)), layout="constrained")
    plots: Any = figure.subplots(len(groups), squeeze=False, height_ratios=heights)
    for axes, (group, names) in zip(plots.flat, groups.items(), strict=True):
        _scores(axes, task, names)
        axes.set_yticks(range(len(names)), [name.removeprefix(f"{group}: ") for name in names])
        axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
        axes.set_title(group, loc="left", color=GREY, fontsize=10)
        _tidy(axes)
    key = {text: mark for axes in plots.flat for mark, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(key.values(), key, loc="outside lower center", ncols=len(key), frameon=False)
    return figure


def _scores(axes: Any, task: TaskReport, names: Sequence[str]) -> None:
    spread = 0.5 / max(len(task.results), 1)
    for index, ((one, result), colour) in enumerate(zip(task.results.items(), COLOURS, strict=False)):
        scores = result.scores
        for row, name in enumerate(names):
            if name in scores:
                _dot(axes, scores[name], row + (index - (len(task.results) - 1) / 2) * spread, colour)
        axes.plot([], [], "o", color=colour, label=one)
    for values, marker, label in zip(task.published, "Dx", ("target", "people"), strict=True):
        points = [(row, values[name]) for row, name in enumerate(names) if name in values]
        if points:
            axes.plot([value for _, value in points], [row for row, _ in points], marker, color=GREY, label=label)


def _scatter(task: TaskReport) -> Figure:
    target = task.published[0]
    figure = Figure(figsize=(6.4, 5.4), layout="constrained")
    axes: Any = figure.subplots()
    for (one, result), colour in reversed(list(zip(task.results.items(), COLOURS, strict=False))):
        scores = {name: score for name, score in result.scores.items() if name in target}
        for name, score in scores.items():
            if score.low is not None and score.high is not None:
                axes.plot([target[name]] * 2, [score.low, score.high], color=colour, alpha=0.4)
        values = [score.value for score in scores.values()]
        axes.plot([target[name] for name in scores], values, "o", color=colour, markersize=4, label=one)
    ends = [min(target.values()), max(target.values())]
    axes.plot(ends, ends, color=GREY, linewidth=1, label="as the target")
    if ends[0] > 0 and ends[1] > FAR * ends[0]:
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=ends[0] / 2)
    axes.set_xlabel("target", color=GREY)
    axes.set_ylabel("mean over runs", color=GREY)
    _tidy(axes)
    figure.legend(loc="outside lower center", ncols=len(task.results) + 1, frameon=False)
    return figure
