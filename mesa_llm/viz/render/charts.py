"""Charts as data: a page draws them in the browser, and Matplotlib for notebooks, reports and downloads."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from typing import Any, Literal

import numpy as np
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mesa_llm.viz.render.style import (
    COLOURS,
    DOLLARS,
    GREY,
    LIGHT,
    Figure,
    legend_below,
    literal,
    marker,
    picture_of,
    sheet,
)

Kind = Literal["line", "area", "bar", "point"]
"""How a series is drawn; an area reaches down to zero, or to the series below it."""

Unit = Literal["", "dollars", "share"]
"""How values are written: as numbers, with a dollar sign, or in percent."""

MAX_LABELS = 40
"""Maximum number of points whose labels are written beside them."""

BAR_INCHES = 0.28
"""Height of a horizontal bar with the gap beside it, in inches."""


@dataclass(frozen=True, kw_only=True)
class ChartSeries:
    """One line, area, row of bars or cloud of points of a chart."""

    values: Sequence[float | None]
    """Its values in order; None where there is none, which is not zero."""

    name: str = ""
    """Its name in the legend; empty: it has none."""

    at: Sequence[float] = ()
    """Place of each value on the axis of steps or names; empty: 0, 1, 2, …"""

    kind: Kind = "line"
    """How it is drawn."""

    colour: str = ""
    """Its colour as `#rrggbb`; empty: the next of the palette."""

    colours: Sequence[str] = ()
    """Colour of each bar or point; empty: all have the colour of the series."""

    is_dashed: bool = False
    """Whether its line is dashed."""

    low: Sequence[float] = ()
    """Lower end of each value's interval, or lower side of an area; empty: no interval, and areas begin at zero."""

    high: Sequence[float] = ()
    """Upper end of each value's interval, or upper side of an area."""

    labels: Sequence[str] = ()
    """Name of each bar or point, shown when the pointer is over it; empty: none."""

    agents: Sequence[int] = ()
    """Mesa `unique_id` of the agent that each bar or point stands for; a click opens it. Empty: none."""

    @property
    def places(self) -> list[float]:
        """Place of each value."""
        return list(self.at) or list(map(float, range(len(self.values))))


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart of a model; a notebook shows it as a picture."""

    title: str
    """What it shows, as one would say it."""

    series: Sequence[ChartSeries]
    """What is drawn, in the order of the legend."""

    x: str = "Step"
    """Label of the axis of places, with the unit."""

    y: str = ""
    """Label of the axis of values, with the unit; empty: the title says it."""

    names: Sequence[str] = ()
    """Names along the axis of places; empty: they are numbers."""

    is_horizontal: bool = False
    """Whether names stand one below the other, the first at the top."""

    is_stacked: bool = False
    """Whether areas and bars stand on each other."""

    low: float | None = None
    """Lower end of the axis of values; None: zero, or lower if a value is."""

    high: float | None = None
    """Upper end of the axis of values; None: as high as the values."""

    start: float | None = None
    """Left end of the axis of places; None: the first place."""

    end: float | None = None
    """Right end of the axis of places; None: the last place."""

    unit: Unit = ""
    """How values are written."""

    has_values: bool = True
    """Whether the axis of values has numbers; if they mean nothing, points have their labels beside them instead."""

    note: str = ""
    """What has to be said to read it; empty: nothing."""

    def coloured(self) -> Chart:
        """Return the chart with a colour for each of its series."""
        free = itertools.cycle(COLOURS)
        series = [each if each.colour else replace(each, colour=next(free)) for each in self.series]
        return replace(self, series=series)

    def data(self) -> dict[str, Any]:
        """Return the chart as values that a browser can read: no infinite numbers, None where a value is missing."""
        return {
            "title": self.title,
            "x": self.x,
            "y": self.y,
            "names": list(self.names),
            "isHorizontal": self.is_horizontal,
            "isStacked": self.is_stacked,
            "low": self.low,
            "high": self.high,
            "start": self.start,
            "end": self.end,
            "unit": self.unit,
            "hasValues": self.has_values,
            "note": self.note,
            "series": [
                {
                    "name": each.name,
                    "kind": each.kind,
                    "colour": each.colour,
                    "colours": list(each.colours),
                    "isDashed": each.is_dashed,
                    "points": list(zip(_finite(each.places), _finite(each.values), strict=True)),
                    "low": _finite(each.low),
                    "high": _finite(each.high),
                    "labels": list(each.labels),
                    "agents": list(each.agents),
                }
                for each in self.coloured().series
            ],
        }

    def table(self) -> str:
        """Return the numbers as CSV: one row for each place, one column for each series."""
        file = StringIO()
        writer = csv.writer(file, lineterminator="\n")
        columns = [dict(zip(each.places, each.values, strict=True)) for each in self.series]
        heading = [each.name or self.y or self.title for each in self.series]
        writer.writerow([self.x or "name", *heading])
        for place in sorted(set(itertools.chain(*columns))):
            label = self.names[int(place)] if self.names else f"{place:g}"
            writer.writerow([label, *("" if (value := each.get(place)) is None else value for each in columns)])
        return file.getvalue()

    def figure(self) -> Figure:
        """Draw the chart as a Matplotlib figure."""
        rows = len(self.names) if self.is_horizontal else 0
        figure, axes = sheet(literal(self.title), height=max(3.6, 1.4 + BAR_INCHES * rows))
        self.draw(axes)
        return figure

    def draw(self, axes: Any) -> None:
        """Draw the chart with Matplotlib.

        Args:
            axes: The axes to draw on.
        """
        below = np.zeros(len(self.names) or max((len(each.values) for each in self.series), default=0))
        for each in self.coloured().series:
            below = _draw(axes, self, each, below)
        axes.set_xlabel(literal(self.x), color=GREY)
        axes.set_ylabel(literal(self.y), color=GREY)
        value_axis, place_axis = (axes.xaxis, axes.yaxis) if self.is_horizontal else (axes.yaxis, axes.xaxis)
        if self.is_horizontal:
            axes.set_xlabel(literal(self.y), color=GREY)
            axes.set_ylabel("")
            axes.invert_yaxis()
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x", color=LIGHT)
        if self.names:
            place_axis.set_ticks(range(len(self.names)), list(map(literal, self.names)))
        else:
            axes.set_xlim(*self._reach())
        if self.unit:
            value_axis.set_major_formatter(DOLLARS if self.unit == "dollars" else PercentFormatter(1, decimals=0))
        else:
            are_whole = all(value is None or float(value).is_integer() for each in self.series for value in each.values)
            value_axis.set_major_locator(MaxNLocator(5, integer=are_whole))
        self._limit(axes.set_xlim if self.is_horizontal else axes.set_ylim, value_axis.get_view_interval())
        if not self.has_values:
            value_axis.set_ticks([])
            self._write_labels(axes)
        if any(each.name for each in self.series):
            legend_below(axes, min(4, len(self.series)))

    def _write_labels(self, axes: Any) -> None:
        for each in self.series:
            if len(each.labels) <= MAX_LABELS:
                for place, value, label in zip(each.places, each.values, each.labels, strict=False):
                    axes.annotate(literal(label), (place, value), (6, 0), textcoords="offset points", va="center")

    def _reach(self) -> tuple[float, float]:
        places = [place for each in self.series for place in each.places]
        start = min(places, default=0.0) if self.start is None else self.start
        end = max(places, default=1.0) if self.end is None else self.end
        return start, max(end, start + 1) if self.end is None else end

    def _limit(self, limit: Any, interval: Sequence[float]) -> None:
        values = [value for each in self.series for value in each.values if value is not None and math.isfinite(value)]
        low = min([0.0, *values]) if self.low is None else self.low
        low = interval[0] if self.low is None and low < 0 else low
        high = self.high if self.high is not None else interval[1] if any(values) else 1.0
        limit(low, high)

    def _repr_png_(self) -> bytes:
        return picture_of(self.figure())


def _finite(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else float(value) for value in values]


def _draw(axes: Any, chart: Chart, series: ChartSeries, below: Any) -> Any:
    """Draw a series on Matplotlib axes, and return what the next one is stacked on."""
    places = np.array(series.places, dtype=float)
    values = np.array([np.nan if value is None else value for value in series.values], dtype=float)
    label = literal(series.name) if series.name else "_"
    colours: Any = list(series.colours) or series.colour
    base: Any = below[: len(values)] if chart.is_stacked else 0
    match series.kind:
        case "bar" if chart.is_horizontal:
            axes.barh(places, values, left=base, color=colours, label=label)
        case "bar":
            axes.bar(places, values, bottom=base, color=colours, label=label)
        case "area":
            lower, upper = (series.low, series.high) if series.low else (base, base + values)
            axes.fill_between(places, lower, upper, color=series.colour, alpha=0.85, linewidth=0, label=label)
        case "point":
            axes.scatter(places, values, c=colours, s=min(60, 6000 / max(1, len(values))), zorder=3, label=label)
        case "line":
            style = "--" if series.is_dashed else "-"
            axes.plot(
                places, values, style, color=series.colour, lw=2.2, marker=marker(series.values), ms=5, label=label
            )
    if series.low and series.kind != "area":
        axes.fill_between(places, series.low, series.high, color=series.colour, alpha=0.15, linewidth=0)
    if chart.is_stacked and series.kind in ("bar", "area"):
        below = below.copy()
        below[: len(values)] += np.nan_to_num(values)
    return below
