"""Charts as data: a page draws them in the browser, and Matplotlib for notebooks, reports and downloads."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np

from mesa_llm.charts.palette import COLOURS, GREY, INK, LIGHT

if TYPE_CHECKING:
    from mesa_llm.charts.style import Figure

Kind = Literal["line", "area", "bar", "point", "level", "moment", "cell"]
"""How a series is drawn; an area reaches down to zero, or to the series below it, a level across the chart, and a
moment upright at each of its places.

Series of cells are the columns of a heat map, whose rows are the names of the chart.
"""

Shape = Literal["o", "D", "|"]
"""Shape of points: a disc, a diamond, or a stroke across a row of names."""

ACROSS = ("level", "moment")
"""Kinds whose values are no data."""

Unit = Literal["", "dollars", "share"]
"""How values are written: as numbers, with a dollar sign, or in percent."""

FEW = 12
"""Maximum number of points of a line that are marked; a line of one point would be invisible."""

EMOJI = re.compile("[\U0001f000-\U0001faff\u200d\ufe0f]")
"""Emoji, joiners and variation selectors."""

MAX_LABELS = 40
"""Maximum number of points whose labels are written beside them."""

BAR_INCHES = 0.28
"""Height of a horizontal bar with the gap beside it, in inches."""

MAX_CELL = 9
"""Maximum number of characters of a column's name in a heat map that is not written aslant."""

ROOM = 0.7
"""Maximum share of a row of names that points of several series take."""

APART = 0.24
"""Maximum distance of points of two series in a row of names, as a share of its height."""


class Interval(Protocol):
    """An estimate with its interval."""

    @property
    def value(self) -> float:
        """The estimate."""
        ...

    @property
    def low(self) -> float | None:
        """Lower end; None: unknown."""
        ...

    @property
    def high(self) -> float | None:
        """Upper end."""
        ...


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

    is_stepped: bool = False
    """Whether its line keeps each value until the next."""

    is_faint: bool = False
    """Whether its lines or points are small and pale, as the ground on which others stand."""

    shape: Shape = "o"
    """Shape of its points."""

    low: Sequence[float | None] = ()
    """Lower end of each value's interval, drawn as a band along lines and as a stroke through points, or lower side of
    an area or a level; empty: no interval, and areas begin at zero."""

    high: Sequence[float | None] = ()
    """Upper end of each value's interval, or upper side of an area or a level."""

    labels: Sequence[str] = ()
    """What each bar or point is, shown when the pointer is over it; empty: nothing. The text of each cell."""

    agents: Sequence[int] = ()
    """Mesa `unique_id` of the agent that each bar or point stands for; a click opens it. Empty: none."""

    def __post_init__(self) -> None:
        """Copy what is given, as its owner may go on to change it, and a page draws only what differs from before."""
        copy_sequences(self, "values", "at", "colours", "low", "high", "labels", "agents")

    @classmethod
    def of(cls, estimates: Iterable[Interval | None], **fields: Any) -> Self:
        """Return a series of estimates with their intervals.

        Args:
            estimates: The estimates in order; None where there is none.
            **fields: Its other fields.
        """
        ends = [(None, None, None) if one is None else (one.value, one.low, one.high) for one in estimates]
        values, low, high = ([end[index] for end in ends] for index in range(3))
        return cls(values=values, low=low, high=high, **fields)

    @property
    def places(self) -> list[float]:
        """Place of each value."""
        return list(self.at) or list(map(float, range(len(self.values))))

    @property
    def ends(self) -> list[float]:
        """Its values and the ends of their intervals, without those that are missing."""
        ends = self.values if self.kind == "area" else (*self.values, *self.low, *self.high)
        return [end for end in ends if end is not None and math.isfinite(end)]


class Picture:
    """What a notebook shows and a file keeps as a picture."""

    def figure(self) -> Figure:
        """Draw it as a Matplotlib figure."""
        raise NotImplementedError

    def savefig(self, file: str | Path, **options: Any) -> None:
        """Write the picture into a file, as Matplotlib does.

        Args:
            file: Its place; the ending says whether as PNG, SVG or PDF.
            **options: As for Matplotlib's `savefig`, such as `dpi`.
        """
        self.figure().savefig(file, **options)

    def _repr_png_(self) -> bytes:
        from mesa_llm.charts.style import picture_of  # Matplotlib takes a second to import

        return picture_of(self.figure())


@dataclass(frozen=True, kw_only=True, repr=False)
class Chart(Picture):
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
    """Whether names stand one below the other, the first at the top; for bars, points and levels."""

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

    is_log: bool = False
    """Whether both axes are logarithmic, that of values only above half of `start`, so that it has a zero."""

    unit: Unit = ""
    """How values are written."""

    has_values: bool = True
    """Whether the axis of values has numbers; if they mean nothing, points have their labels beside them instead."""

    note: str = ""
    """What has to be said to read it; empty: nothing."""

    def __post_init__(self) -> None:
        """Copy what is given; see `ChartSeries`."""
        copy_sequences(self, "series", "names")

    def __repr__(self) -> str:
        return f"Chart({self.title!r})"

    @property
    def offsets(self) -> list[float]:
        """How far the points of each series stand below the middle of a row of names, or right of it, as a share of the
        row, so that none covers that of another series; strokes across the row and faint points stand in its middle."""
        beside = [each for each in self.series if each.kind == "point" and each.shape != "|" and not each.is_faint]
        filled = [
            {place for place, value in zip(each.places, each.values, strict=True) if value is not None}
            for each in beside
        ]
        is_alone = not self.names or len(set().union(*filled)) == sum(map(len, filled))
        apart = 0.0 if is_alone else min(APART, ROOM / len(beside))
        order = {id(each): index - (len(beside) - 1) / 2 for index, each in enumerate(beside)}
        return [apart * order.get(id(each), 0.0) for each in self.series]

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
            "isLog": self.is_log,
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
                    "isStepped": each.is_stepped,
                    "isFaint": each.is_faint,
                    "shape": each.shape,
                    "offset": offset,
                    "points": list(zip(_finite(each.places), _finite(each.values), strict=True)),
                    "low": _finite(each.low),
                    "high": _finite(each.high),
                    "labels": list(each.labels),
                    "agents": list(each.agents),
                }
                for each, offset in zip(self.coloured().series, self.offsets, strict=True)
            ],
        }

    def table(self) -> str:
        """Return the numbers as CSV: one row for each place, one column for each series and each end of its intervals.

        Where a series has several values at one place, they stand in several rows.
        """
        columns: list[tuple[str, dict[tuple[float, int], float | None]]] = []
        for each in self.series:
            name = each.name or self.y or self.title
            if each.kind not in ACROSS:
                columns.append((name, _by_place(each, each.values)))
            if each.kind in ("line", "point") and any(end is not None for end in each.low):
                columns += [
                    (f"{name}, {end}", _by_place(each, ends)) for end, ends in (("low", each.low), ("high", each.high))
                ]
        file = StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name" if self.is_horizontal else self.x or "name", *(heading for heading, _ in columns)])
        for place, number in sorted(set(itertools.chain(*(column for _, column in columns)))):
            label = self.names[int(place)] if self.names else f"{place:g}"
            values = [column.get((place, number)) for _, column in columns]
            writer.writerow([label, *("" if value is None else value for value in values)])
        return file.getvalue()

    @property
    def height(self) -> float:
        """Height of its picture, in inches."""
        rows = len(self.names) if self.is_horizontal else 0
        beside = {offset for each, offset in zip(self.series, self.offsets, strict=True) if each.kind == "point"}
        return max(3.6 if not rows else 2.2, 1.4 + BAR_INCHES * max(1, min(6, len(beside)) / 2) * rows)

    def figure(self) -> Figure:
        """Draw the chart as a Matplotlib figure."""
        from mesa_llm.charts.style import sheet  # Matplotlib takes a second to import

        figure, axes = sheet(literal(self.title), height=self.height)
        self.draw(axes)
        return figure

    def draw(self, axes: Any) -> None:
        """Draw the chart with Matplotlib.

        Args:
            axes: The axes to draw on.
        """
        if self.series and self.series[0].kind == "cell":
            self._draw_cells(axes)
            return
        from matplotlib.ticker import MaxNLocator, PercentFormatter  # as above

        from mesa_llm.charts.style import DOLLARS, legend_below

        below = np.zeros(len(self.names) or max((len(each.values) for each in self.series), default=0))
        for each, offset in zip(self.coloured().series, self.offsets, strict=True):
            below = _draw(axes, self, each, below, offset)
        axes.set_xlabel(literal(self.x), color=GREY)
        axes.set_ylabel(literal(self.y), color=GREY)
        value_axis, place_axis = (axes.xaxis, axes.yaxis) if self.is_horizontal else (axes.yaxis, axes.xaxis)
        if self.names:
            (axes.set_ylim if self.is_horizontal else axes.set_xlim)(-0.6, len(self.names) - 0.4)
        if self.is_horizontal:
            axes.set_xlabel(literal(self.y), color=GREY)
            axes.set_ylabel("")
            axes.invert_yaxis()
            axes.grid(visible=False, axis="y")
            axes.grid(axis="x", color=LIGHT)
        if self.names:
            place_axis.set_ticks(range(len(self.names)), list(map(literal, self.names)))
        else:
            start, end = self._reach()
            axes.set_xlim(start, end)
            place_axis.set_major_locator(MaxNLocator(integer=end - start >= 1))
        if self.unit:
            value_axis.set_major_formatter(DOLLARS if self.unit == "dollars" else PercentFormatter(1, decimals=0))
            value_axis.set_major_locator(MaxNLocator(5))
        else:
            are_whole = all(value.is_integer() for each in self.series for value in map(float, each.ends))
            value_axis.set_major_locator(MaxNLocator(5, integer=are_whole))
        self._limit(axes.set_xlim if self.is_horizontal else axes.set_ylim, value_axis.get_view_interval())
        if not self.has_values:
            value_axis.set_ticks([])
            self._write_labels(axes)
        if self.is_log:
            axes.set_xscale("log")
            axes.set_yscale("symlog", linthresh=self._reach()[0] / 2)
        if any(each.name for each in self.series):
            legend_below(axes, min(4, len(self.series)))

    def _draw_cells(self, axes: Any) -> None:
        """Draw the columns of a heat map side by side."""
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "color": INK}
        for index, each in enumerate(self.series):
            colours = list(each.colours)
            axes.barh(each.places, 1, left=index - 0.5, height=1, color=colours, edgecolor=LIGHT, linewidth=0.5)
            for place, text in zip(each.places, each.labels, strict=True):
                axes.text(index, place, literal(text), **look)
        axes.grid(visible=False)
        axes.set_xlim(-0.5, len(self.series) - 0.5)
        axes.set_ylim(len(self.names) - 0.5, -0.5)
        is_long = max((len(each.name) for each in self.series), default=0) > MAX_CELL
        turn: dict[str, Any] = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
        axes.set_xticks(range(len(self.series)), [literal(each.name) for each in self.series], **turn)
        axes.set_yticks(range(len(self.names)), list(map(literal, self.names)))
        axes.set_xlabel(literal(self.y), color=GREY)
        axes.set_ylabel(literal(self.x), color=GREY)

    def _write_labels(self, axes: Any) -> None:
        for each in self.series:
            if len(each.labels) <= MAX_LABELS:
                for place, value, label in zip(each.places, each.values, each.labels, strict=False):
                    axes.annotate(literal(label), (place, value), (6, 0), textcoords="offset points", va="center")

    def _reach(self) -> tuple[float, float]:
        places = [place for each in self.series if each.kind not in ACROSS for place in each.places]
        room = 0.6 if any(each.kind == "bar" for each in self.series) else 0.0  # the first and the last bar are whole
        start = min(places, default=0.0) - room if self.start is None else self.start
        end = max(places, default=1.0) + room if self.end is None else self.end
        return start, max(end, start + 1) if self.end is None else end

    def _limit(self, limit: Any, interval: Sequence[float]) -> None:
        values = [end for each in self.series for end in each.ends]
        low = min([0.0, *values]) if self.low is None else self.low
        low = interval[0] if self.low is None and low < 0 else low
        high = self.high if self.high is not None else interval[1] if any(values) else 1.0
        limit(low, high)


def copy_sequences(record: object, *names: str) -> None:
    """Replace sequences in the fields of a frozen record by lists of their own; a tuple cannot change, and stays.

    Args:
        record: The record, while it is made.
        names: Names of the fields: lists, arrays, columns of a table, the values of a mapping, or what can be counted.
    """
    for name in names:
        given = getattr(record, name)
        if type(given) is not tuple:
            values: Any = given.values() if isinstance(given, Mapping) else given
            object.__setattr__(record, name, values.tolist() if isinstance(values, np.ndarray) else list(values))


def literal(text: str) -> str:
    """Escape a text for Matplotlib, which typesets formulas between dollar signs; emoji are removed.

    Args:
        text: A text from elsewhere, such as a name; one that has only emoji is kept.
    """
    return (without_emoji(text) or text).replace("$", r"\$")


def without_emoji(text: str) -> str:
    """Remove the emoji from a text, as Matplotlib's fonts have none.

    Args:
        text: A text from elsewhere, such as a name.
    """
    return " ".join(EMOJI.sub(" ", text).split()) if EMOJI.search(text) else text


def marker(values: Sequence[Any]) -> str:
    """Return the marker of a line: points are marked if they are few, as a line of one point is invisible."""
    return "o" if len(values) <= FEW else ""


def limits_of(series: Iterable[ChartSeries]) -> dict[str, Any]:
    """Return `low` and `high` of a chart whose differences count and not its distance from zero.

    Args:
        series: Its series.
    """
    ends = [end for each in series for end in each.ends]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return {"low": low - room, "high": high + room}


def _finite(values: Iterable[float | None]) -> list[float | None]:
    return [None if value is None or not math.isfinite(value) else float(value) for value in values]


def _by_place(series: ChartSeries, values: Sequence[float | None]) -> dict[tuple[float, int], float | None]:
    """Return values by place, and by their number at that place."""
    seen = Counter[float]()
    keyed: dict[tuple[float, int], float | None] = {}
    for place, value in zip(series.places, values, strict=True):
        keyed[place, seen[place]] = value
        seen[place] += 1
    return keyed


def _missing_as_nan(values: Iterable[float | None]) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def _draw(axes: Any, chart: Chart, series: ChartSeries, below: Any, offset: float) -> Any:
    """Draw a series on Matplotlib axes, and return what the next one is stacked on."""
    places = np.array(series.places, dtype=float)
    values, low, high = map(_missing_as_nan, (series.values, series.low, series.high))
    label = literal(series.name) if series.name else "_"
    colours: Any = list(series.colours) or series.colour
    base: Any = below[: len(values)] if chart.is_stacked else 0
    match series.kind:
        case "bar" if chart.is_horizontal:
            axes.barh(places, values, left=base, color=colours, label=label)
        case "bar":
            axes.bar(places, values, bottom=base, color=colours, label=label)
        case "area":
            lower, upper = (low, high) if series.low else (base, base + values)
            if len(places) == 1:  # an area needs two points
                places, lower, upper = ([*one, *one] for one in (places, np.broadcast_to(lower, 1), upper))
                places = [places[0], places[0] + 1]
            axes.fill_between(places, lower, upper, color=series.colour, alpha=0.85, linewidth=0, label=label)
        case "point":
            _draw_points(axes, chart, series, (places + offset, values, low, high), label)
        case "level":
            line, span = (axes.axvline, axes.axvspan) if chart.is_horizontal else (axes.axhline, axes.axhspan)
            if series.low:
                span(low[0], high[0], color=series.colour, alpha=0.15, linewidth=0, label=label)
            for value in values:
                name = "_" if series.low else label
                line(value, color=series.colour, lw=1.2, ls="--" if series.is_dashed else "-", label=name)
        case "moment":
            for place in places:
                axes.axvline(place, color=series.colour, lw=1.2, ls=":", label="_")
        case "line" | "cell":
            look: dict[str, Any] = {"lw": 0.9, "ms": 3, "alpha": 0.45} if series.is_faint else {"lw": 2.2, "ms": 5}
            look |= {
                "ls": "--" if series.is_dashed else "-",
                "marker": "" if series.is_stepped else marker(series.values),
            }
            look["drawstyle"] = "steps-post" if series.is_stepped else "default"
            axes.plot(places, values, color=series.colour, label=label, **look)
    if series.low and series.kind == "line":
        axes.fill_between(places, low, high, color=series.colour, alpha=0.15, linewidth=0)
    if chart.is_stacked and series.kind in ("bar", "area"):
        below = below.copy()
        below[: len(values)] += np.nan_to_num(values)
    return below


def _draw_points(axes: Any, chart: Chart, series: ChartSeries, numbers: Sequence[Any], label: str) -> None:
    """Draw points on Matplotlib axes, with strokes from the lower to the upper ends of their intervals."""
    places, values, low, high = numbers
    is_stroke = series.shape == "|"
    if series.low:
        strokes = axes.hlines if chart.is_horizontal else axes.vlines
        strokes(places, low, high, color=list(series.colours) or series.colour, lw=1.8)
    look: dict[str, Any] = {"s": min(60, 6000 / max(1, len(values))), "marker": series.shape}
    look |= {"s": 20, "alpha": 0.35, "linewidths": 0} if series.is_faint else {}
    look["clip_on"] = not chart.names  # a point at the edge is whole
    if is_stroke:
        look = {"s": 150, "linewidths": 2, "marker": "|" if chart.is_horizontal else "_"}
    x, y = (values, places) if chart.is_horizontal else (places, values)
    axes.scatter(x, y, c=list(series.colours) or series.colour, zorder=2.5 if is_stroke else 3, label=label, **look)
