"""Charts and drawings of spaces as data: the browser draws them on pages, and Matplotlib everywhere else."""

from mesa_llm.charts.chart import Chart, ChartSeries
from mesa_llm.charts.scenes import LegendEntry, SceneAgent, SpaceScene
from mesa_llm.charts.style import (
    COLOURS,
    DOLLARS,
    GREY,
    LIGHT,
    Figure,
    frame,
    headline,
    legend_below,
    literal,
    marker,
    picture_of,
    sheet,
    stacked,
)

__all__ = [
    "COLOURS",
    "DOLLARS",
    "GREY",
    "LIGHT",
    "Chart",
    "ChartSeries",
    "Figure",
    "LegendEntry",
    "SceneAgent",
    "SpaceScene",
    "frame",
    "headline",
    "legend_below",
    "literal",
    "marker",
    "picture_of",
    "sheet",
    "stacked",
]
