"""Figures, tables and text about a run, made without Solara; this package offers the tools that charts share."""

from mesa_llm.viz.render.agents import option_label
from mesa_llm.viz.render.charts import Chart, ChartSeries
from mesa_llm.viz.render.figures import measure_chart, measure_text, steps_of
from mesa_llm.viz.render.network import scaled_positions
from mesa_llm.viz.render.scenes import LegendEntry, SceneAgent, SpaceScene
from mesa_llm.viz.render.style import (
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
