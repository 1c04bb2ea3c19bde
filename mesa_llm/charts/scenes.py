"""Scenes: a model's space as data, drawn in the browser, and with Matplotlib for notebooks, reports and downloads."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from mesa_llm.charts.chart import Picture, copy_sequences, literal, without_emoji
from mesa_llm.charts.palette import COLOURS, GREY, LIGHT, PALE

if TYPE_CHECKING:
    from mesa_llm.charts.style import Figure

NEW_TIE = COLOURS[2]
"""Colour of ties that are new."""


MAX_NAMES = 40
"""Maximum number of agents whose names are written."""

NAME_POINTS = 9
"""Font size of names, in points."""

DISC_POINTS = 12
"""Diameter of the disc around an agent that names keep clear of, in points."""


class PlacedAgent(NamedTuple):
    """An agent and its position on a plot, in data coordinates."""

    agent: Any
    """The agent."""

    x: float
    """Horizontal coordinate."""

    y: float
    """Vertical coordinate."""


@dataclass(frozen=True, kw_only=True)
class SceneAgent:
    """An agent in a scene."""

    agent: Any
    """The agent."""

    x: float
    """Distance of its centre from the left edge, in units of the scene."""

    y: float
    """Distance of its centre from the upper edge."""

    radius: float
    """Its size, in units of the scene."""

    colour: str
    """Its colour as `#rrggbb`."""

    shape: Any = "o"
    """Its shape: a marker of Matplotlib."""

    name: str = ""
    """Its name, shown when the pointer is over it."""

    edge: str = ""
    """Colour of its rim as `#rrggbb`; empty: that of the page."""

    alpha: float = 1.0
    """Its opacity, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class LegendEntry:
    """What a colour or a shape stands for."""

    text: str
    """What it stands for."""

    colour: str
    """The colour as `#rrggbb`."""

    shape: Any = "s"
    """The shape: a marker of Matplotlib."""

    edge: str = ""
    """Colour of its rim; empty: none."""


@dataclass(frozen=True, kw_only=True)
class SpaceScene(Picture):
    """The space of a model with its agents; a notebook shows it as a picture."""

    title: str
    """What it shows."""

    width: float
    """Its width, in units of its own: cells, where there are any."""

    height: float
    """Its height."""

    agents: Sequence[SceneAgent] = ()
    """The agents, the lowest first."""

    columns: int = 0
    """Number of columns of square cells of size 1; 0: the cells are `polygons`, or there are none."""

    polygons: Sequence[Sequence[tuple[float, float]]] = ()
    """Corners of each cell that is not a square."""

    fills: Sequence[str] = ()
    """Colour of each cell as `#rrggbb`, row by row; empty: that of the page."""

    cells: Sequence[Any] = ()
    """What each cell stands for in the model, in the same order."""

    ties: Sequence[tuple[float, float, float, float]] = ()
    """Both ends of each line: x, y, x, y."""

    new_ties: Sequence[tuple[float, float, float, float]] = ()
    """Both ends of each line that is highlighted, as it is new."""

    texts: Sequence[tuple[float, float, str]] = ()
    """Words at places: x of their left end, y of their middle, the words."""

    legend: Sequence[LegendEntry] = ()
    """What colours and shapes stand for."""

    has_names: bool = False
    """Whether names are written beside agents."""

    note: str = ""
    """What has to be said to read it; empty: nothing."""

    def __post_init__(self) -> None:
        """Copy what is given; see `ChartSeries`."""
        copy_sequences(self, "agents", "polygons", "fills", "cells", "ties", "new_ties", "texts", "legend")
        if self.polygons:
            object.__setattr__(self, "polygons", [tuple(map(tuple, corners)) for corners in self.polygons])

    @property
    def corners(self) -> list[Sequence[tuple[float, float]]]:
        """Corners of each cell."""
        if not self.columns:
            return list(self.polygons)
        places = [divmod(index, self.columns) for index in range(len(self.cells))]
        return [[(x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1)] for y, x in places]

    def draw(self, axes: Any) -> None:
        """Draw the scene with Matplotlib.

        Args:
            axes: The axes to draw on.
        """
        from matplotlib.collections import LineCollection, PathCollection, PolyCollection
        from matplotlib.lines import Line2D
        from matplotlib.transforms import Affine2D

        from mesa_llm.charts.style import MAX_LINE  # Matplotlib takes a second to import

        if self.cells:
            faces = list(self.fills) or ["none"] * len(self.cells)
            look: dict[str, Any] = {"edgecolors": LIGHT, "linewidths": 0.5, "zorder": 0}
            axes.add_collection(PolyCollection(self.corners, facecolors=[face or "none" for face in faces], **look))
        for ties, colour, alpha in ((self.ties, PALE, 0.5), (self.new_ties, NEW_TIE, 0.8)):
            lines = [((x, y), (end_x, end_y)) for x, y, end_x, end_y in ties]
            axes.add_collection(LineCollection(lines, colors=colour, alpha=alpha, linewidths=1, zorder=1))
        for order, each in enumerate(self.agents):
            outline = _outline(each.shape).transformed(Affine2D().scale(each.radius).translate(each.x, each.y))
            rim: dict[str, Any] = {"edgecolors": each.edge or "white", "linewidths": 0.8, "alpha": each.alpha}
            axes.add_collection(PathCollection([outline], facecolors=each.colour, zorder=2 + order * 1e-4, **rim))
        axes.set_xlim(0, self.width)
        axes.set_ylim(self.height, 0)
        axes.set_aspect("equal")
        axes.set_axis_off()
        for x, y, words in self.texts:
            axes.text(x, y, literal(words), va="center", color=GREY)
        if self.has_names:
            write_names(axes, [PlacedAgent(each.agent, each.x, each.y) for each in self.agents if each.name])
        if self.legend:
            handles = [
                Line2D(
                    [],
                    [],
                    ls="",
                    marker=each.shape,
                    color=each.colour,
                    mec=each.edge or each.colour,
                    label=literal(each.text),
                )
                for each in self.legend
            ]
            is_wide = sum(len(each.text) for each in self.legend) > MAX_LINE
            place: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, 0)}
            axes.legend(handles=handles, ncols=1 if is_wide else 3, frameon=False, fontsize=9, **place)

    def figure(self) -> Figure:
        """Draw the scene as a Matplotlib figure."""
        from mesa_llm.charts.style import Figure  # as above

        figure = Figure(figsize=(6.2, 1.0 + 5.2 * min(self.height / self.width, 1.3)), layout="constrained")
        axes: Any = figure.subplots()
        self.draw(axes)
        axes.set_title(literal(self.title), loc="left", color=GREY)
        return figure


def write_names(axes: Any, places: list[PlacedAgent]) -> None:
    """Write the names of agents where they overlap the fewest other names and discs, unless there are many.

    Agents at the same position share one label with their number.

    Args:
        axes: Matplotlib axes, with their title and limits set.
        places: Positions of the agents.
    """
    from matplotlib.patheffects import withStroke

    if len(places) > MAX_NAMES:
        return
    names_at: dict[tuple[float, float], list[str]] = {}
    for agent, x, y in places:
        names_at.setdefault((x, y), []).append(short_name(agent))
    axes.get_xlim()  # updates the limits
    per_pixel = 72 / axes.get_figure().dpi
    radius = DISC_POINTS / 2
    points = {place: per_pixel * axes.transData.transform(place) for place in names_at}
    discs = {place: _Box(float(x), float(y), radius, radius) for place, (x, y) in points.items()}
    crossed = list(discs.values())
    for place, names in names_at.items():
        text = names[0] if len(names) == 1 else f"{names[0]} + {len(names) - 1}"
        box = discs[place]._replace(half_width=0.3 * len(text) * NAME_POINTS, half_height=0.6 * NAME_POINTS)
        beside, above = box.half_width + radius + 2, box.half_height + radius
        corners = itertools.product((beside, -beside), (above, -above))
        shifts = [(0, above), (0, -above), (beside, 0), (-beside, 0), *corners]
        across, up = min(shifts, key=lambda shift: box.moved(*shift).n_crossed(crossed))
        crossed.append(box.moved(across, up))
        look = {"ha": "center", "va": "center_baseline", "fontsize": NAME_POINTS, "color": "#334155", "zorder": 5}
        label = axes.annotate(text, place, xytext=(across, up), textcoords="offset points", clip_on=False, **look)
        label.set_path_effects([withStroke(linewidth=2.5, foreground="white", alpha=0.7)])


class _Box(NamedTuple):
    """A rectangle on a plot, in points: its centre, half its width and half its height."""

    x: float
    y: float
    half_width: float
    half_height: float

    def moved(self, across: float, up: float) -> _Box:
        return self._replace(x=self.x + across, y=self.y + up)

    def n_crossed(self, others: Iterable[_Box]) -> int:
        return sum(
            abs(self.x - other.x) < self.half_width + other.half_width
            and abs(self.y - other.y) < self.half_height + other.half_height
            for other in others
        )


@lru_cache(maxsize=64)
def _outline(shape: Any) -> Any:
    """Return the outline of a marker with radius 1, with y downwards."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.transforms import Affine2D

    style = MarkerStyle(shape)
    return style.get_path().transformed(style.get_transform() + Affine2D().scale(2, -2))


@lru_cache(maxsize=64)
def outline_text(shape: Any) -> str:
    """Return the outline of a marker with radius 1 as the `d` of an SVG path; empty: a circle.

    Args:
        shape: A marker of Matplotlib.
    """
    if shape in ("o", "."):
        return ""
    polygons: Any = _outline(shape).to_polygons()
    return "".join("M" + "L".join(f"{x:.3g} {y:.3g}" for x, y in polygon) + "Z" for polygon in polygons)


def short_name(agent: Any) -> str:
    """Return the label of an agent in a drawing: its name, or its id.

    Args:
        agent: The agent.
    """
    name = without_emoji(getattr(getattr(agent, "config", None), "name", "")) or str(agent.unique_id)
    return literal(name if len(name) <= 18 else f"{name[:17]}…")
