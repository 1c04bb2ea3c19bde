"""Figures of caricature: the plane of both scores, and exaggeration by persona and topic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mesa_llm.text import one_line
from mesa_llm.viz import Figure
from mesa_llm.viz.render import COLOURS, GREY, LIGHT, literal
from mesa_llm_models.compost.scores import CHANCE

if TYPE_CHECKING:
    from mesa_llm_models.compost.model import CompostModel

BLUE = COLOURS[0]

INTERVAL = 1.96
"""Standard errors on each side of a mean."""

MAX_LABEL = 28
"""Maximum number of characters of a topic on an axis."""


def plane_figure(model: CompostModel) -> Figure:
    """Draw each persona by both scores: caricatures lie at the upper right."""
    scores = model.scores()
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes: Any = figure.subplots()
    positions: list[float] = []
    for name, row in scores.exaggeration.items():
        individuation = scores.individuation.get(name)
        if individuation is None or math.isnan(row.mean) or math.isnan(individuation.mean):
            continue
        positions.append(individuation.mean)
        axes.plot(individuation.mean, row.mean, "o", color=BLUE, ms=8)
        axes.annotate(_label(name), (individuation.mean, row.mean), (7, 3), textcoords="offset points", fontsize=9)
    axes.axvline(CHANCE, color=GREY, lw=1, ls=":")
    axes.axhline(0, color=GREY, lw=1, ls=":")
    axes.margins(y=0.15)
    if not positions:
        axes.text(0.5, 0.6, "too few texts so far to tell", ha="center", transform=axes.transAxes, color=GREY)
        axes.set_ylim(-1, 1)
    axes.set(
        xlim=(min(0.3, min(positions, default=1.0) - 0.1), 1.2),
        xlabel="individuation (dotted: chance, of many texts; it is less with few)",
        ylabel="exaggeration",
    )
    axes.set_title("Caricatures are told apart and exaggerated", loc="left", fontsize=13, color=GREY)
    _bare(axes)
    return figure


def interval_figure(model: CompostModel) -> Figure:
    """Draw both scores of each persona with their 95 % intervals over topics, beside chance."""
    scores = model.scores()
    names = list(scores.exaggeration)
    figure = Figure(figsize=(6.4, 1.8 + 0.35 * len(names)), layout="constrained")
    parts: Any = figure.subplots(1, 2, sharey=True)
    for axes, title, by_persona in zip(
        parts, ("Individuation", "Exaggeration"), (scores.individuation, scores.exaggeration), strict=True
    ):
        for height, name in enumerate(reversed(names)):
            row = by_persona.get(name)
            if row is not None and not math.isnan(row.mean):
                error = 0.0 if math.isnan(row.error) else INTERVAL * row.error
                axes.errorbar(row.mean, height, xerr=error, fmt="o", color=BLUE)
                axes.vlines(row.chance, height - 0.5, height + 0.5, color=GREY, lw=1, ls=":")
        axes.set_title(title, loc="left", fontsize=12, color=GREY)
        axes.set_ylim(-0.6, len(names) - 0.4)
        _bare(axes)
    parts[0].set_xlabel("dotted: chance, of many texts; it is less with few", color=GREY)
    parts[0].set_yticks(range(len(names)), [_label(name) for name in reversed(names)])
    return figure


def topic_figure(model: CompostModel) -> Figure:
    """Draw the exaggeration of each persona on each topic; white cells could not be scored."""
    scores = model.scores()
    names, topics = list(scores.exaggeration), list(scores.by_topic)
    figure = Figure(figsize=(max(9.0, 2.6 + 0.8 * len(topics)), 2.4 + 0.35 * len(names)), layout="constrained")
    axes: Any = figure.subplots()
    axes.set_title("Exaggeration by topic", loc="left", fontsize=13, color=GREY)
    if not topics:
        axes.text(0.02, 0.5, "No cell can be scored yet: no word tells persona from topic.", color=GREY)
        axes.axis("off")
        return figure
    cells = [[scores.exaggeration[name].by_topic.get(topic, math.nan) for topic in topics] for name in names]
    image = axes.imshow(cells, cmap="coolwarm", vmin=-1, vmax=1, aspect="auto")
    axes.set_xticks(range(len(topics)), [_label(topic) for topic in topics], rotation=30, ha="right")
    axes.set_yticks(range(len(names)), [_label(name) for name in names])
    figure.colorbar(image, ax=axes)
    return figure


def _bare(axes: Any) -> None:
    axes.grid(color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.tick_params(colors=GREY, length=0)


def _label(text: str) -> str:
    return literal(one_line(text, MAX_LABEL))
