"""Several charts in one picture."""

from __future__ import annotations

import itertools
import math
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mesa_llm.charts.chart import Chart, Picture, copy_sequences, literal
from mesa_llm.charts.palette import GREY
from mesa_llm.charts.scenes import SpaceScene

if TYPE_CHECKING:
    from mesa_llm.charts.style import Figure

INCHES = 4.4
"""Width of a panel that stands beside others, in inches."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Panels(Picture):
    """Charts and scenes side by side; a page shows them one after the other, and a notebook as one picture."""

    title: str
    """What they show together; empty: each says it."""

    charts: Sequence[Chart | SpaceScene]
    """What is drawn; a row that is not full is as wide as the others."""

    columns: int = 3
    """Maximum number of panels side by side."""

    has_one_scale: bool = False
    """Whether all charts have the same axis of values."""

    def __post_init__(self) -> None:
        """Copy what is given; see `ChartSeries`."""
        copy_sequences(self, "charts")
        if self.has_one_scale:
            ends = [end for one in self.charts if isinstance(one, Chart) for each in one.series for end in each.ends]
            low, high = min([0.0, *ends]), max(ends, default=1.0)
            room = 0.05 * (high - low)
            scale = {"low": low - room if low < 0 else low, "high": high + room}
            charts = [replace(one, **scale) if isinstance(one, Chart) else one for one in self.charts]
            object.__setattr__(self, "charts", charts)

    def __repr__(self) -> str:
        return f"Panels({self.title!r})"

    def figure(self) -> Figure:
        """Draw the charts as one Matplotlib figure."""
        from mesa_llm.charts.style import Figure, headline, tidy  # Matplotlib takes a second to import

        rows = list(itertools.batched(self.charts, self.columns))
        heights = [max(_height(one, is_wide=len(row) == 1 < len(self.charts)) for one in row) for row in rows]
        width = 8.0 if self.columns == 1 else INCHES * max(2, *map(len, rows))
        figure = Figure(figsize=(width, sum(heights) + 0.4), layout="constrained")
        n_columns = math.lcm(*map(len, rows))
        grid = figure.add_gridspec(len(rows), n_columns, height_ratios=heights)
        plots: list[Any] = []
        for index, row in enumerate(rows):
            span = n_columns // len(row)
            for place, chart in enumerate(row):
                axes: Any = figure.add_subplot(grid[index, place * span : (place + 1) * span])
                axes.set_title(literal(chart.title), loc="left", fontsize=11, color=GREY)
                tidy(axes)
                chart.draw(axes)
                plots.append(axes)
        keys = [_key_of(one) for one in self.charts]
        if len(plots) > 1 and keys[0] and all(key == keys[0] for key in keys):
            for axes in plots:
                axes.get_legend().remove()
            look: dict[str, Any] = {"ncols": min(4, len(keys[0])), "frameon": False, "fontsize": 9}
            figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", **look)
        if self.title:
            headline(figure, literal(self.title))
        return figure


type Drawn = Chart | SpaceScene | Panels
"""What is drawn in the browser, and by Matplotlib with its `figure()`."""


def data_url(drawn: Drawn) -> str:
    """Return a picture as the data URL of an SVG image.

    Args:
        drawn: What is drawn.
    """
    from mesa_llm.charts.style import picture_of  # as above

    return f"data:image/svg+xml;base64,{b64encode(picture_of(drawn.figure(), 'svg')).decode()}"


def _height(drawn: Chart | SpaceScene, *, is_wide: bool) -> float:
    """Return the height of a panel in inches; a wide one needs less of it."""
    if isinstance(drawn, Chart):
        return drawn.height if drawn.is_horizontal or not is_wide else 0.65 * drawn.height
    return 0.8 + 0.8 * INCHES * min(drawn.height / drawn.width, 1.3)


def _key_of(drawn: Chart | SpaceScene) -> list[tuple[str, str]]:
    """Return the names and the colours of the legend of a chart; those of scenes are their own."""
    series = drawn.coloured().series if isinstance(drawn, Chart) else ()
    return [(each.name, each.colour) for each in series if each.name and each.kind != "cell"]
