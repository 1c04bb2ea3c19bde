"""Figures, tables and text about a run, made without Solara; this package offers the tools that charts share."""

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

__all__ = [
    "COLOURS",
    "DOLLARS",
    "GREY",
    "LIGHT",
    "Figure",
    "frame",
    "headline",
    "legend_below",
    "literal",
    "marker",
    "picture_of",
    "sheet",
    "stacked",
]
