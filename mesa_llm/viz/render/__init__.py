"""Figures, tables and text about a run, made without Solara; charts and their tools are those of `mesa_llm.charts`."""

from mesa_llm.charts import (
    COLOURS,
    DOLLARS,
    GREY,
    LIGHT,
    Chart,
    ChartSeries,
    Figure,
    LegendEntry,
    SceneAgent,
    SpaceScene,
    frame,
    headline,
    legend_below,
    literal,
    marker,
    picture_of,
    sheet,
    stacked,
)
from mesa_llm.viz.render.agents import option_label
from mesa_llm.viz.render.figures import measure_chart, measure_text, steps_of
from mesa_llm.viz.render.network import scaled_positions
from mesa_llm.viz.render.trace import agent_in

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
    "agent_in",
    "frame",
    "headline",
    "legend_below",
    "literal",
    "marker",
    "measure_chart",
    "measure_text",
    "option_label",
    "picture_of",
    "scaled_positions",
    "sheet",
    "stacked",
    "steps_of",
]
