"""Charts read from Matplotlib figures, so that pages draw in the browser what anybody has drawn with Matplotlib.

A figure of lines, points, bars and areas on straight axes holds numbers, names and colours. A figure that holds more
(pictures, polar axes, arrows, notes at a place) stays Matplotlib's, and is shown as a picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib.figure
import numpy as np
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, PercentFormatter, StrMethodFormatter

from mesa_llm.charts.chart import Chart, ChartSeries, Unit

NO_LINE = ("", " ", "None", "none")
"""Styles of Matplotlib that draw no line."""


class _Unreadable(Exception):
    """A figure holds something that a chart has no place for."""


def charts_in(figure: matplotlib.figure.Figure) -> list[Chart]:
    """Return the plots of a figure as charts, one for each; empty if one of them cannot be read as a chart.

    Args:
        figure: The figure.
    """
    plots = [axes for axes in figure.axes if axes.get_visible()]
    try:
        charts = [_chart_in(axes) for axes in plots]
    except _Unreadable:
        return []
    heading = _plain(figure.get_suptitle())
    if heading and len(charts) == 1:
        return [replace(charts[0], title=heading, note=" ".join(filter(None, (charts[0].title, charts[0].note))))]
    return [replace(chart, title=chart.title or heading) for chart in charts]


def _chart_in(axes: Any) -> Chart:
    is_straight = axes.name == "rectilinear" and axes.axison and {axes.get_xscale(), axes.get_yscale()} == {"linear"}
    notes = [_plain(text.get_text()) for text in axes.texts if text.get_transform() == axes.transAxes]
    is_plain = not axes.images and not axes.artists and not axes.tables and len(notes) == len(axes.texts)
    if not is_straight or not is_plain or axes.xaxis_inverted():
        raise _Unreadable
    bars = [each for each in axes.containers if isinstance(each, BarContainer)]
    if len(bars) != len(axes.containers) or len(axes.patches) != sum(map(len, bars)):
        raise _Unreadable
    is_horizontal = any(each.orientation == "horizontal" for each in bars)
    if axes.yaxis_inverted() and not is_horizontal:
        raise _Unreadable
    place_axis, value_axis = (axes.yaxis, axes.xaxis) if is_horizontal else (axes.xaxis, axes.yaxis)
    names = _names_on(place_axis)
    if _has_names(value_axis):
        raise _Unreadable
    areas = [
        area for area in _of(axes.collections, PolyCollection) if area.get_paths()
    ]  # without paths: all is missing
    series = [*map(_area_in, areas), *map(_bars_in, bars)]
    series += [_line_in(axes, line) for line in axes.lines if line.get_visible() and len(line.get_xdata())]
    series += map(_points_in, _of(axes.collections, PathCollection))
    if len(axes.collections) != sum(isinstance(each, PolyCollection | PathCollection) for each in axes.collections):
        raise _Unreadable
    if is_horizontal and any(each.kind != "bar" for each in series):
        raise _Unreadable
    if is_horizontal and names and not axes.yaxis_inverted():  # the first stands at the bottom
        names = names[::-1]
        series = [replace(each, at=[len(names) - 1 - place for place in each.places]) for each in series]
    labels = (axes.get_ylabel(), axes.get_xlabel()) if is_horizontal else (axes.get_xlabel(), axes.get_ylabel())
    titles = [axes.get_title(loc=place) for place in ("left", "center", "right")]
    first, *others = [*filter(None, map(_plain, titles)), ""]
    low, high = (axes.get_xlim if is_horizontal else axes.get_ylim)()
    is_free = axes.get_autoscalex_on() if is_horizontal else axes.get_autoscaley_on()
    return Chart(
        title=first,
        series=series,
        x=_plain(labels[0]),
        y=_plain(labels[1]),
        names=names,
        is_horizontal=is_horizontal,
        is_stacked=_are_stacked(bars),
        low=None if is_free or float(low) == 0 else float(low),
        high=None if is_free else float(high),
        unit=_unit_of(value_axis),
        note=" ".join(filter(None, [*others, *notes])),
    )


def _of(artists: Sequence[Any], kind: type) -> list[Any]:
    return [artist for artist in artists if isinstance(artist, kind) and artist.get_visible()]


def _plain(text: str) -> str:
    return " ".join(text.replace(r"\$", "$").split())


def _name_of(artist: Any) -> str:
    name = str(artist.get_label() or "")
    return "" if name.startswith("_") else _plain(name)


def _numbers(values: Any) -> list[float]:
    try:
        return [float(value) for value in np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)]
    except (TypeError, ValueError):
        raise _Unreadable from None


def _line_in(axes: Any, line: Line2D) -> ChartSeries:
    xs, ys = _numbers(line.get_xdata()), _numbers(line.get_ydata())
    if line.get_transform() == axes.get_yaxis_transform():  # a level across the plot
        left, right = axes.get_xlim()
        xs = [left + share * (right - left) for share in xs]
    elif line.get_transform() == axes.get_xaxis_transform():  # one from bottom to top
        low, high = axes.get_ylim()
        ys = [low + share * (high - low) for share in ys]
    elif line.get_transform() != axes.transData:
        raise _Unreadable
    colour = to_hex(line.get_color())
    if line.get_linestyle() in NO_LINE:
        return ChartSeries(name=_name_of(line), at=xs, values=ys, kind="point", colour=colour)
    if str(line.get_drawstyle()) == "steps-post":
        xs, ys = _steps(xs, ys)
    is_dashed = line.get_linestyle() != "-"
    return ChartSeries(name=_name_of(line), at=xs, values=ys, colour=colour, is_dashed=is_dashed)


def _steps(xs: list[float], ys: list[float]) -> tuple[list[float], list[float]]:
    """Return the corners of a line that keeps each value until the next."""
    return [xs[0], *np.repeat(xs[1:], 2).tolist()], [*np.repeat(ys[:-1], 2).tolist(), ys[-1]]


def _points_in(points: PathCollection) -> ChartSeries:
    places: Any = np.ma.filled(points.get_offsets(), np.nan)
    colours = [to_hex(colour) for colour in points.get_facecolors()]  # pyright: ignore[reportAttributeAccessIssue]
    if not colours:
        raise _Unreadable
    own = colours if len(colours) == len(places) > 1 else []
    xs, ys = (_numbers(places[:, index]) for index in (0, 1))
    return ChartSeries(name=_name_of(points), at=xs, values=ys, kind="point", colour=colours[0], colours=own)


def _area_in(area: PolyCollection) -> ChartSeries:
    paths = area.get_paths()
    if len(paths) != 1:
        raise _Unreadable
    corners: Any = paths[0].vertices
    size = (
        len(corners) - 3
    ) // 2  # there along one side, back along the other, with a corner at each end and a last one
    below, above = corners[1 : size + 1], corners[size + 2 : 2 * size + 2][::-1]
    if len(above) != size or not np.array_equal(below[:, 0], above[:, 0]):
        raise _Unreadable
    alpha = area.get_alpha()
    kind = "area" if alpha is None or float(alpha) > 0.5 else "line"
    sides = (np.minimum(below[:, 1], above[:, 1]), np.maximum(below[:, 1], above[:, 1]))
    low, high = (_numbers(side) for side in sides)
    face: Any = area.get_facecolor()
    colour = to_hex(face[0])
    at, name = _numbers(below[:, 0]), _name_of(area)
    if kind == "line":  # a band beside a line of its own
        return ChartSeries(name=name, at=at, values=[None] * len(at), low=low, high=high, colour=colour)
    return ChartSeries(name=name, at=at, values=high, low=low, high=high, kind="area", colour=colour)


def _bars_in(bars: BarContainer) -> ChartSeries:
    is_flat = bars.orientation == "horizontal"
    boxes = list(bars.patches)
    at = [box.get_y() + box.get_height() / 2 if is_flat else box.get_x() + box.get_width() / 2 for box in boxes]
    values = [float(box.get_width() if is_flat else box.get_height()) for box in boxes]
    colours = [to_hex(box.get_facecolor()) for box in boxes]
    own = colours if len(set(colours)) > 1 else []
    colour = colours[0] if colours else ""
    return ChartSeries(name=_name_of(bars), at=at, values=values, kind="bar", colour=colour, colours=own)


def _are_stacked(bars: Sequence[BarContainer]) -> bool:
    """Check whether bars stand on each other; raise if they begin anywhere else."""
    starts = [
        float(box.get_x() if each.orientation == "horizontal" else box.get_y()) for each in bars for box in each.patches
    ]
    if any(starts) and len(bars) == 1:
        raise _Unreadable
    return any(starts)


def _names_on(axis: Any) -> list[str]:
    """Return the names at 0, 1, 2, … of an axis; empty if it has numbers."""
    formatter = axis.get_major_formatter()
    units = getattr(axis, "units", None)
    mapping = getattr(units, "_mapping", None)
    if mapping is not None:  # texts as places
        return [_plain(str(name)) for name in mapping]
    if not _has_names(axis):
        return []
    places = [float(place) for place in axis.get_majorticklocs()]
    if places != list(map(float, range(len(places)))):
        raise _Unreadable
    return [_plain(str(formatter(place, index))) for index, place in enumerate(places)]


def _has_names(axis: Any) -> bool:
    """Check whether somebody has written texts at places of an axis, as `set_ticks(places, texts)` does."""
    is_written = isinstance(axis.get_major_formatter(), FixedFormatter | FuncFormatter)
    return is_written and isinstance(axis.get_major_locator(), FixedLocator) and len(axis.get_majorticklocs()) > 0


def _unit_of(axis: Any) -> Unit:
    formatter = axis.get_major_formatter()
    if isinstance(formatter, PercentFormatter):
        if formatter.xmax != 1:
            raise _Unreadable
        return "share"
    return "dollars" if isinstance(formatter, StrMethodFormatter) and formatter.fmt.startswith("$") else ""
