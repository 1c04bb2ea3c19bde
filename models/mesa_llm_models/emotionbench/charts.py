"""Figures of how feelings change in situations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mesa_llm.viz import Figure
from mesa_llm.viz.render import COLOURS, GREY, LIGHT, headline
from mesa_llm_models.emotionbench.scores import ScoreChange, published

if TYPE_CHECKING:
    from mesa_llm_models.emotionbench.model import EmotionBenchModel

Z = 1.96
"""Standard errors on each side of a mean in a 95 % interval."""

SUBSCALES_DRAWN = 6
"""Maximum number of scores of an instrument that a plot shows."""


def change_figure(model: EmotionBenchModel) -> Figure:
    """Draw each emotion's change from the default with a 95 % interval, and that of people where it can be compared."""
    rows = [one for one in model.changes() if one.emotion and not one.factor]
    return _intervals(model, rows, "Change from the default (95 % intervals)", [one.emotion for one in rows])


def factor_figure(model: EmotionBenchModel) -> Figure:
    """Draw the change of each kind of situation with a 95 % interval."""
    rows = [one for one in model.changes() if one.factor]
    return _intervals(model, rows, "Change by kind of situation", [f"{one.emotion}: {one.factor}" for one in rows])


def _intervals(model: EmotionBenchModel, rows: list[ScoreChange], title: str, labels: list[str]) -> Figure:
    names = list(dict.fromkeys(labels))
    figure = Figure(figsize=(10, 1.8 + 0.24 * max(len(names), 6)), layout="constrained")
    headline(figure, title)
    axes: Any = figure.subplots()
    axes.axvline(0, color=GREY, lw=1)
    base = {subscale.name: model.default_scores() for subscale in model.instrument.subscales}
    for number, subscale in enumerate(list(base)[:SUBSCALES_DRAWN]):
        own = [(label, one) for label, one in zip(labels, rows, strict=True) if one.subscale == subscale]
        if own:
            heights = [names.index(label) + 0.12 * number for label, _ in own]
            errors = [Z * one.summary.sd / math.sqrt(one.summary.n) if one.summary.n > 1 else 0.0 for _, one in own]
            changes = [one.change for _, one in own]
            colour = COLOURS[number]
            axes.errorbar(changes, heights, xerr=errors, fmt="o", color=colour, capsize=3, label=subscale)
    if model.is_comparable:
        for number, subscale in enumerate(base):
            people = {one.emotion: one.change for one in published() if _is_of_people(one, subscale)}
            shown = [name for name in names if name in people]
            if not shown:
                continue
            axes.plot(
                [people[name] for name in shown],
                [names.index(name) + 0.12 * number for name in shown],
                "x",
                color=COLOURS[number],
                label=f"{subscale}, people",
            )
    if not names:
        axes.text(0.5, 0.5, "no sheet is scored yet", ha="center", transform=axes.transAxes, color=GREY)
        axes.set_xticks([])
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.grid(axis="x", color=LIGHT)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=GREY, length=0)
    if axes.get_legend_handles_labels()[1]:
        figure.legend(*axes.get_legend_handles_labels(), frameon=False, fontsize=9, loc="outside lower center", ncols=6)
    return figure


def _is_of_people(one: Any, subscale: str) -> bool:
    return one.respondent == "human-crowd" and one.subscale == subscale and bool(one.emotion)
