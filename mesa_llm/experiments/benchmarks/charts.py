"""Charts of benchmarks: errors of tasks, scores beside published values, and designs × tasks as a heat map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mesa_llm.charts.chart import Chart, ChartSeries, limits_of
from mesa_llm.charts.palette import COLOURS, GREY, shade_of
from mesa_llm.charts.panels import Panels
from mesa_llm.experiments.benchmarks.results import TaskReport
from mesa_llm.statistics import Estimate

MAX_ROWS = 24
"""Maximum number of scores drawn in one row each; more are drawn as a scatter plot against the target."""

FAR = 20
"""Ratio of the largest to the smallest target above which axes are logarithmic."""


def errors_chart(candidates: Sequence[str], tasks: Iterable[TaskReport]) -> Panels:
    """Draw the errors of each task on its own scale, since their units differ.

    Args:
        candidates: Names of the candidates.
        tasks: The tasks that have errors.
    """
    return Panels(title="Errors", charts=[_errors(candidates, task) for task in tasks])


def _errors(candidates: Sequence[str], task: TaskReport) -> Chart:
    rows = {one: (task.results[one].error, colour) for one, colour in zip(candidates, COLOURS, strict=False)}
    if task.baseline_result is not None and task.baseline_result.error is not None:
        rows["its baseline"] = (task.baseline_result.error, GREY)
    references = {"constant": task.constant_error, "people": task.people_error}
    if task.published_error is not None:
        references |= {"study: agent": task.published_error.agent, "study: baseline": task.published_error.baseline}
    rows |= {name: (Estimate(value, None, None, 0), GREY) for name, value in references.items() if value is not None}
    errors, colours = [error for error, _ in rows.values()], [colour for _, colour in rows.values()]
    series = ChartSeries.of(errors, kind="point", colour=GREY, colours=colours)
    label = f"error, {task.unit}" if task.unit else "error"
    return Chart(title=task.task, series=[series], names=list(rows), is_horizontal=True, x="", y=label)


def scores_chart(task: TaskReport) -> Chart | Panels:
    """Draw the scores of a task beside the target: one row each, or a scatter plot above `MAX_ROWS` scores.

    Scores of one instrument, as in `Empathy: Overall`, share a scale.

    Args:
        task: The task.
    """
    if len(task.score_names) > MAX_ROWS and task.has_error:
        return _scatter(task)
    groups: dict[str, list[str]] = {}
    for name in task.score_names[: 4 * MAX_ROWS]:
        groups.setdefault(name.rpartition(": ")[0], []).append(name)
    charts = [_rows(task, group, names) for group, names in (groups or {"": []}).items()]
    return Panels(title=f"Scores of {task.task}", charts=charts, columns=1)


def _rows(task: TaskReport, group: str, names: Sequence[str]) -> Chart:
    series = [
        ChartSeries.of([result.scores.get(name) for name in names], name=one, kind="point", colour=colour)
        for (one, result), colour in zip(task.results.items(), COLOURS, strict=False)
    ]
    for values, shape, name in zip(task.published, ("D", "|"), ("target", "people"), strict=True):
        known = [values.get(one) for one in names]
        if any(value is not None for value in known):
            look: dict[str, Any] = {"shape": shape, "colour": GREY}
            series.append(ChartSeries(name=name, values=known, kind="point", **look))
    rows = [name.removeprefix(f"{group}: ") for name in names]
    return Chart(title=group, series=series, names=rows, is_horizontal=True, x="", **limits_of(series))


def _scatter(task: TaskReport) -> Chart:
    target = task.published[0]
    low, high = min(target.values()), max(target.values())
    is_log = low > 0 and high > FAR * low
    ends = [low, high]
    series = [ChartSeries(name="as the target", values=ends, at=ends, colour=GREY)]
    for (one, result), colour in zip(task.results.items(), COLOURS, strict=False):
        scores = {target[name]: score for name, score in result.scores.items() if name in target}
        series.append(ChartSeries.of(scores.values(), name=one, at=list(scores), kind="point", colour=colour))
    room: Any = {"start": low / 1.2, "end": high * 1.2} if is_log else {"start": low, "end": high}
    title = f"Scores of {task.task}"
    return Chart(title=title, series=series, x="target", y="mean over runs", is_log=is_log, **room)


type Cell = tuple[float | None, str]
"""Shade from -1 to 1, None for none; and the text of a cell."""


def heat_map(title: str, note: str, rows: Sequence[str], columns: Mapping[str, Sequence[Cell]]) -> Chart:
    """Draw a heat map.

    Args:
        title: Its title.
        note: Meaning of its marks.
        rows: Names of the rows.
        columns: Name of a column → its cells.
    """
    series = [
        ChartSeries(
            name=name,
            kind="cell",
            values=[shade for shade, _ in cells],
            colours=["#ffffff" if shade is None else shade_of(shade) for shade, _ in cells],
            labels=[text for _, text in cells],
        )
        for name, cells in columns.items()
    ]
    return Chart(title=title, series=series, names=rows, is_horizontal=True, x="", y=note)
