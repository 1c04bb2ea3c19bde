"""Figures of the scores: a radar of each group, and every score within its range, beside chance and norms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mesa_llm.viz import Figure
from mesa_llm.viz.render import COLOURS, GREY, LIGHT, headline, literal

if TYPE_CHECKING:
    from mesa_llm_models.psychobench.model import PsychoBenchModel
    from mesa_llm_models.psychobench.scores import ScoreRow

BLUE, ORANGE = COLOURS[:2]

MAX_ROWS = 45
"""Maximum number of scores on one plot of intervals."""

RADARS_A_ROW = 2
"""Maximum number of radars side by side."""

WIDTH = 5.4
"""Width of a figure that has another beside it, in inches."""

RADARS_WIDTH = 7.0
"""Width of the radars, in inches, with room for names between two of them."""

INTERVAL = 1.96
"""Standard errors on each side of a mean."""


def radar_figure(model: PsychoBenchModel) -> Figure:
    """Draw each instrument of three subscales or more as a radar, from lowest to highest possible score."""
    rows = model.scores()
    names = [one.name for one in model.instruments if 3 <= len(one.subscales) <= 12]
    if not names:
        return _note("No questionnaire here has three to twelve scores, as a radar needs.")
    n_rows = math.ceil(len(names) / RADARS_A_ROW)
    height = 0.5 + 2.1 * n_rows
    figure = Figure(
        figsize=(RADARS_WIDTH, height)
    )  # names beside the circles would make an automatic layout shrink these
    figure.subplots_adjust(0.19, 0.75 / height, 0.81, 1 - 0.6 / height, wspace=1.8, hspace=0.75)
    for number, name in enumerate(names, 1):
        axes: Any = figure.add_subplot(n_rows, RADARS_A_ROW, number, projection="polar")
        _radar(axes, name, [row for row in rows if row.instrument == name])
    key = {text: line for axes in figure.axes for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(key.values(), key.keys(), frameon=False, fontsize=9, loc="lower center", ncols=3)
    return figure


def _radar(axes: Any, name: str, rows: list[ScoreRow]) -> None:
    turn = math.pi / 2 - math.pi / len(rows)  # no axis lies flat, where its name would need most room
    angles = [turn + 2 * math.pi * index / len(rows) for index in range(len(rows))]
    around = [*angles, angles[0]]
    chance = [row.share(row.random_mean) for row in rows]
    axes.plot(around, [*chance, chance[0]], color=GREY, lw=1, ls=":", label="at random")
    norms = [row.share(row.norms[0].norm.mean) for row in rows if row.norms]
    if len(norms) == len(rows):
        axes.plot(around, [*norms, norms[0]], color=ORANGE, lw=1.6, label="people")
    if all(row.n for row in rows):
        shares = [row.share(row.mean) for row in rows]
        axes.plot(around, [*shares, shares[0]], color=BLUE, lw=2.2, label="respondents")
        axes.fill(around, [*shares, shares[0]], color=BLUE, alpha=0.15)
    axes.set_ylim(0, 1)
    axes.set_yticks([0.25, 0.5, 0.75], [])
    axes.set_xticks(angles, [literal(row.subscale) for row in rows], fontsize=7.5, color=GREY)
    for label, angle in zip(axes.get_xticklabels(), angles, strict=True):
        offset = math.cos(angle)
        label.set_horizontalalignment("left" if offset > 0.1 else "right" if offset < -0.1 else "center")
    axes.tick_params(axis="x", pad=-2)
    axes.set_title(literal(name), color=GREY, fontsize=11)
    axes.spines["polar"].set_color(LIGHT)


def interval_figure(model: PsychoBenchModel) -> Figure:
    """Draw the mean of each score with its 95 % interval, beside chance and the mean and SD of people."""
    rows = [row for row in model.scores() if row.instrument not in _wide(model)] or model.scores()
    return _intervals(rows[:MAX_ROWS], "Scores, from lowest to highest possible")


def interest_figure(model: PsychoBenchModel) -> Figure:
    """Draw the scores of the questionnaires with more than twelve of them."""
    wide = _wide(model)
    rows = [row for row in model.scores() if row.instrument in wide]
    if not rows:
        return _note("No questionnaire here has more than twelve scores.")
    return _intervals(rows[:MAX_ROWS], ", ".join(wide))


def _wide(model: PsychoBenchModel) -> list[str]:
    return [one.name for one in model.instruments if len(one.subscales) > 12]


def _intervals(rows: list[ScoreRow], title: str) -> Figure:
    figure = Figure(figsize=(WIDTH, 1.3 + 0.22 * len(rows)), layout="constrained")
    headline(figure, title)
    axes: Any = figure.subplots()
    for height, row in enumerate(reversed(rows)):
        _interval(axes, height, row)
    names = [literal(f"{row.instrument}: {row.subscale}") for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), names, fontsize=8.5, color=GREY)
    axes.set_ylim(-0.7, len(rows) - 0.3)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 0.5, 1], ["lowest", "middle", "highest"], color=GREY)
    axes.grid(axis="x", color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    people = "   ◆ people, SD" if any(row.norms for row in rows) else ""
    figure.supxlabel(f"● respondents, 95 % interval   | at random{people}", fontsize=9, color=GREY)
    return figure


def _interval(axes: Any, height: int, row: ScoreRow) -> None:
    span = row.highest - row.lowest
    axes.plot(row.share(row.random_mean), height, "|", color=GREY, ms=10)
    for against in row.norms[:1]:
        norm = against.norm
        axes.errorbar(row.share(norm.mean), height - 0.25, xerr=norm.sd / span, fmt="D", color=ORANGE, ms=3.5, lw=1)
    if row.n:
        error = 0.0 if math.isnan(row.sd) else INTERVAL * row.sd / math.sqrt(row.n) / span
        axes.errorbar(row.share(row.mean), height, xerr=error, fmt="o", color=BLUE, ms=5, lw=1.8)


def _note(text: str) -> Figure:
    figure = Figure(figsize=(6, 1), layout="constrained")
    axes: Any = figure.subplots()
    axes.axis("off")
    axes.text(0, 0.5, text, color=GREY)
    return figure
