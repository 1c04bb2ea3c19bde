"""Figures, tables and text about a run, made without Solara; the charts are those of `mesa_llm.charts`."""

from mesa_llm.charts.style import Figure
from mesa_llm.viz.render.agents import option_label
from mesa_llm.viz.render.figures import measure_chart, measure_text, steps_of
from mesa_llm.viz.render.network import scaled_positions
from mesa_llm.viz.render.trace import agent_in

__all__ = [
    "Figure",
    "agent_in",
    "measure_chart",
    "measure_text",
    "option_label",
    "scaled_positions",
    "steps_of",
]
