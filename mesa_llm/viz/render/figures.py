"""Plots of the numbers that a model collects, and of a run beside its branches."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple

import matplotlib.figure
import numpy as np
from matplotlib.colors import to_hex

from mesa_llm.charts.chart import FEW, Chart, ChartSeries
from mesa_llm.charts.palette import COLOURS, GREY, INK
from mesa_llm.charts.panels import Panels
from mesa_llm.charts.style import frame
from mesa_llm.model.model import LLMModel
from mesa_llm.model.stages import USAGE
from mesa_llm.text import clip
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.mesa_adapter import steps_over

LEGIBLE = 1.3
"""Size of text relative to Matplotlib's default, so that it is legible from the last row of a classroom."""

MARGIN = 0.05
"""Space above the highest value as a share of a plot's height, as Matplotlib has it."""

Series = dict[int, float]
"""Step → value of a measure after it."""


def title_of(figure: matplotlib.figure.Figure) -> str:
    """Return the title of a figure, or else of its first plot that has one."""
    titles = [axes.get_title(loc=place) for axes in figure.axes for place in ("left", "center", "right")]
    return next(filter(None, [figure.get_suptitle(), *titles]), "").replace(r"\$", "$")


def enlarge(figure: Any) -> None:
    """Make all text larger relative to the plot, which keeps its size on the screen.

    Args:
        figure: A Matplotlib figure.
    """
    figure.set_size_inches(figure.get_size_inches() / LEGIBLE)
    figure.set_dpi(LEGIBLE * figure.get_dpi())


@dataclass(frozen=True)
class Finish:
    """A `post_process` for Mesa's `make_plot_component`; pages of this package draw such a plot in the browser."""

    title: str
    """Title of the plot."""

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Measure → its label in the legend."""

    per_step: bool = False
    """Whether to show the change of each measure in each step instead of its value."""

    def __call__(self, axes: Any) -> None:
        """Finish a plot of Mesa's.

        Args:
            axes: Matplotlib axes.
        """
        for line in axes.lines:
            if self.per_step:
                line.set_data(line.get_xdata()[1:], np.diff(line.get_ydata()))
            line.set_linewidth(2.2)
            line.set_marker("o" if len(line.get_xdata()) <= FEW else "")
            line.set_label(self.labels.get(line.get_label(), line.get_label()))
        axes.relim()
        axes.autoscale()
        low, high = axes.get_ylim()
        axes.set_ylim(min(0, low), high + MARGIN * max(0, low) if high >= 1 else 1)
        if max((len(line.get_xdata()) for line in axes.lines), default=0) < 2:
            axes.set_xlim(-0.05, 1.05)
        axes.set_ylabel("")
        frame(axes, self.title, legend=axes.get_legend() is not None)
        axes.get_figure().set_size_inches(7, 3.6)
        enlarge(axes.get_figure())

    def chart(self, model: Any, colours: Mapping[str, str | None]) -> Chart:
        """Return the plot as a chart.

        Args:
            model: The model.
            colours: Measure → its colour; None: the next of the palette.
        """
        drawn: list[ChartSeries] = []
        for name, colour in colours.items():
            points = steps_of(model, name)
            if self.per_step:
                values = points["values"]
                changes = [None if None in pair else pair[1] - pair[0] for pair in itertools.pairwise(values)]
                points: dict[str, Any] = {"values": changes, "at": points["at"][1:]}
            label = self.labels.get(name) or (measure_text(model, name) if len(colours) > 1 else "")
            drawn.append(ChartSeries(name=label, colour=to_hex(colour) if colour else "", **points))
        names = list(colours)
        text, unit = split_unit(measure_text(model, names[0])) if len(names) == 1 else (", ".join(names), "")
        return Chart(title=self.title or text, series=drawn, y="" if self.per_step else unit)


def finish(title: str, *, labels: Mapping[str, str] | None = None, per_step: bool = False) -> Finish:
    """Return a `post_process` for Mesa's `make_plot_component`.

    Args:
        title: Title of the plot.
        labels: Measure → its label in the legend.
        per_step: Whether to show the change of each measure in each step instead of its value.
    """
    return Finish(title, labels or {}, per_step)


# -- the numbers that a model collects


def numbers_of(model: Any) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """Return the numbers that a model's data collector has collected, separated from the usage.

    Args:
        model: The model.

    Returns:
        Measure → its values in order; and the same for the usage in each step.
    """
    collector = getattr(model, "datacollector", None)
    if collector is None:
        return {}, {}
    reporters: dict[str, Any] = collector.model_reporters
    collected: dict[str, list[Any]] = collector.model_vars
    costs = {name for name, attribute in USAGE.items() if reporters.get(name) == attribute}
    numbers = {name: values for name, values in collected.items() if _are_numbers(values)}
    return (
        {name: values for name, values in numbers.items() if name not in costs},
        {name: values for name, values in numbers.items() if name in costs},
    )


def _are_numbers(values: Sequence[Any]) -> bool:
    sample: list[Any] = [value for value in (*values[:1], *values[-1:]) if value is not None]
    return bool(sample) and all(isinstance(value, Real) for value in sample) and bool not in map(type, sample)


def measure_text(model: Any, name: str) -> str:
    """Return what a measure is in words, with its unit: as the model says it, or else its name as words.

    A model says it in `measures` of its class (measure → text), in the docstring of the property or function that
    reports it, or under `Attributes` in its own docstring; of a docstring, the first sentence up to a colon counts.

    Args:
        model: The model.
        name: Name of the measure in its data collector.
    """
    declared = getattr(type(model), "measures", None)
    if isinstance(declared, Mapping) and name in declared:
        return str(declared[name])
    reporter: Any = model.datacollector.model_reporters.get(name)
    if isinstance(reporter, str):
        described = next((kind.__dict__[reporter] for kind in type(model).__mro__ if reporter in kind.__dict__), None)
        text = described.__doc__ if isinstance(described, property) else _attribute_text(type(model), reporter)
    else:
        text = getattr(reporter, "__doc__", None) if inspect.isroutine(reporter) else None
    return _SENTENCE_END.split(" ".join((text or "").split()), maxsplit=1)[0] or label_of(name)


_SENTENCE_END = re.compile(r"[.:;](?:\s|$)")
"""What ends the part of a docstring that names a measure."""


def _attribute_text(kind: type, name: str) -> str:
    """Return what the docstring of a class says of an attribute; empty if it says nothing."""
    for each in kind.__mro__:
        found = re.search(
            rf"^\s+{re.escape(name)}: (.+(?:\n\s{{8,}}.+)*)", inspect.cleandoc(each.__doc__ or ""), re.MULTILINE
        )
        if found:
            return found[1]
    return ""


def measure_chart(model: Any, *names: str, title: str = "", **look: Any) -> Chart:
    """Return a chart of one or more measures of a model over steps.

    Args:
        model: The model.
        *names: Names of the measures in its data collector.
        title: Title of the chart; empty: what its only measure is.
        **look: Other fields of the chart.
    """
    texts = {name: measure_text(model, name) for name in names}
    series = [ChartSeries(name=texts[name] if len(names) > 1 else "", **steps_of(model, name)) for name in names]
    text, unit = split_unit(next(iter(texts.values()))) if len(names) == 1 else ("", "")
    fields: dict[str, Any] = {"y": unit} | look
    return Chart(title=title or text, series=series, **fields)


def steps_of(model: Any, name: str) -> dict[str, Any]:
    """Return a measure of a model as `values` and `at` of a series of a chart: None where it had no value.

    Args:
        model: The model.
        name: Name of the measure in its data collector.
    """
    values = model.datacollector.model_vars[name]
    first = first_step(model, values)
    return {
        "values": [None if value is None else float(value) for value in values],
        "at": list(map(float, range(first, first + len(values)))),
    }


def split_unit(text: str) -> tuple[str, str]:
    """Split the text of a measure, such as `Mean wage, in dollars`, into what it is and its unit; empty: none.

    Args:
        text: The text.
    """
    head, comma, unit = text.rpartition(", in ")
    return (head, unit) if comma and len(unit.split()) <= 3 else (text, "")


COST_TEXTS = MappingProxyType(
    {
        "calls": "Replies in each step",
        "tokens": "Tokens read and written in each step",
        "dollars": "Cost of each step",
        "failures": "Failed decisions in each step",
        "seconds": "Time for each step, in seconds",
    }
)
"""Column of the usage → title of its chart."""


def cost_charts(model: Any) -> dict[str, Chart]:
    """Return the charts of the usage of a run in each step: replies, tokens, dollars, failures and seconds.

    Args:
        model: The model.

    Returns:
        Name of the column → its chart.
    """
    charts: dict[str, Chart] = {}
    for name in numbers_of(model)[1]:
        title, unit = split_unit(COST_TEXTS[name])
        look = {"unit": "dollars"} if name == "dollars" else {"y": unit}
        charts[name] = measure_chart(model, name, title=title, **look)
    return charts


def first_step(model: Any, values: Sequence[Any]) -> int:
    """Return the step of the first value that a model has collected, one per step: usually 0 or 1.

    Args:
        model: The model; an unfinished step does not count.
        values: The collected values.
    """
    return max(0, steps_over(model) + 1 - len(values))


class BranchRun(NamedTuple):
    """A finished branch."""

    title: str
    """Description of its change."""

    at: int
    """Last step in common with its parent."""

    values: dict[str, Series]
    """Measure → its values."""

    parent: dict[str, Series]
    """Measure → its values in the parent, and after its last step in the unchanged control branch."""

    calls: int
    """Number of live replies."""

    copied: int
    """Number of replies from the parent's log."""

    def differs(self, name: str) -> bool:
        """Check whether a measure ever differs from the parent's."""
        own, parent = self.values[name], self.parent.get(name, {})
        return any(value != parent.get(step, value) for step, value in own.items())


def branches_chart(name: str, branches: Sequence[BranchRun]) -> Callable[[LLMModel], Panels]:
    """Return a function that draws a measure of a run and its branches, with the differences below.

    Args:
        name: Name of the measure.
        branches: The branches.
    """

    def draw(model: LLMModel) -> Panels:
        curves = [_curve(parent_series(model, name, branches), name="this run, unchanged", colour=INK)]
        moments: list[ChartSeries] = []
        changes: list[ChartSeries] = []
        for run, colour in zip(branches, COLOURS, strict=False):
            own = {step: value for step, value in run.values.get(name, {}).items() if step >= run.at}
            text = f"after step {run.at}: {clip(run.title, 52)}"
            curves.append(_curve(own, name=text, colour=colour, is_dashed=True))
            same = run.parent.get(name, {})
            changes.append(_curve({step: value - same[step] for step, value in own.items() if step in same}, colour))
            moments.append(ChartSeries(values=[None], at=[run.at], kind="moment", colour=colour))
        steps = [place for each in curves for place in each.places]
        reach: dict[str, Any] = {"start": min(steps, default=0.0), "end": max(steps, default=1.0)}
        zero = ChartSeries(values=[0], kind="level", colour=GREY)
        above = Chart(title=f"{label_of(name)}: this run and its branches", series=[*curves, *moments], **reach)
        below = Chart(title="Branch minus unchanged run", series=[*changes, *moments, zero], **reach)
        return Panels(title="", charts=[above, below], columns=1)

    return draw


def _curve(values: Series, colour: str, **look: Any) -> ChartSeries:
    steps = sorted(values)
    return ChartSeries(values=[values[step] for step in steps], at=steps, colour=colour, **look)


def parent_series(model: LLMModel, name: str, branches: Sequence[BranchRun]) -> Series:
    """Return a measure of a run: its values when it was branched, and those collected since.

    Args:
        model: The run.
        name: Name of the measure.
        branches: Its branches.
    """
    series: Series = {}
    for run in branches:
        series |= run.parent.get(name, {})
    values = [] if model.datacollector is None else list(model.datacollector.model_vars.get(name, []))
    first = first_step(model, values)
    return series | {first + index: float(value) for index, value in enumerate(values) if value is not None}
