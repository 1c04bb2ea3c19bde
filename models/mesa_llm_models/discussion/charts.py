"""Figures of a discussion: attitude curves, and who talks how much."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from mesa_llm.viz import Figure
from mesa_llm.viz.render import GREY, literal
from mesa_llm_models.discussion.scores import choice_shares, curve

COLOURS = ("#2563eb", "#dc2626", "#16a34a", "#9333ea", "#ea580c", "#0891b2", "#be185d", "#4d7c0f")
"""Colours of persons and parties, in the order of seats."""


def attitude_figure(models: Any, question: str | None = None) -> Figure:
    """Draw how the attitudes of each party move, with 95 % intervals over rooms and runs.

    Where nothing is answered by number, draw how many give each answer to a question with choices.

    Args:
        models: A model, or several.
        question: Id of the question; None: the first that is answered by number, else by choice.
    """
    several = models if isinstance(models, Sequence) else [models]
    points = curve(several, question)
    return _choice_figure(choice_shares(several, question)) if points.empty else curve_figure(points)


def curve_figure(points: Any) -> Figure:
    """Draw the means of each party after each number of messages, with their intervals.

    Args:
        points: Table of `mesa_llm_models.discussion.scores.curve`.
    """
    figure = Figure(figsize=(7, 3.6))
    axes = figure.subplots()
    for colour, (party, group) in zip(cycle(COLOURS), points.groupby("party", sort=False), strict=False):
        label = literal(str(party or "everyone"))
        axes.plot(group["after"], group["mean"], color=colour, marker="o", label=label, clip_on=False)
        axes.fill_between(group["after"], group["low"], group["high"], color=colour, alpha=0.15, linewidth=0)
    _finish(axes, "Attitudes, by party", "messages so far")
    axes.legend(frameon=False)
    axes.set_xlim(right=max(1.0, *map(float, points["after"])))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


def _choice_figure(points: Any) -> Figure:
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    heading = "" if points.empty else f": {points['question'].iloc[0]} (shares of those who answered)"
    _finish(axes, literal(f"Answers aside{heading}"), "messages so far")
    below = np.zeros(points["after"].nunique())
    for colour, (answer, group) in zip(cycle(COLOURS), points.groupby("answer", sort=False), strict=False):
        ticks = [str(after) for after in group["after"]]
        axes.bar(ticks, group["share"], bottom=below, color=colour, width=0.6, label=literal(str(answer)))
        below = below + group["share"].to_numpy()
    if points.empty:
        nothing = "nothing is answered by number or choice yet"
        axes.text(0.5, 0.5, nothing, ha="center", transform=axes.transAxes, color=GREY)
    else:
        axes.set_ylim(0, 1)
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def talk_figure(model: Any) -> Figure:
    """Draw how often each person spoke and kept silent.

    Args:
        model: The model.
    """
    table = model.talk().groupby("name", sort=False)[["messages", "silences"]].sum()
    figure = Figure(figsize=(7, 3.6))
    axes = figure.subplots()
    heights = np.arange(len(table))
    axes.barh(heights, table["messages"], color=[COLOURS[i % len(COLOURS)] for i in heights], label="spoke")
    axes.barh(heights, table["silences"], left=table["messages"], color="#e2e8f0", label="kept silent")
    axes.set_yticks(heights, map(literal, table.index))
    axes.invert_yaxis()
    axes.set_xlim(0, max(1.0, axes.get_xlim()[1]))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _finish(axes, "Times called on: spoke (colour), kept silent (grey)", "times called on")
    return figure


def _finish(axes: Any, title: str, label: str) -> None:
    axes.set_title(title, loc="left", fontsize=13, color=GREY)
    axes.set_xlabel(label, color=GREY)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=GREY, length=0)
    axes.grid(axis="x" if "Times" in title else "y", color="#e2e8f0")
    axes.set_axisbelow(True)
