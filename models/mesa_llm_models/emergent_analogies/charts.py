"""Figures of the share of problems solved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mesa_llm.statistics import share_interval
from mesa_llm.viz import Figure
from mesa_llm.viz.render import COLOURS, GREY, LIGHT

if TYPE_CHECKING:
    from mesa_llm_models.emergent_analogies.model import EmergentAnalogiesModel

BLUE = COLOURS[0]


def accuracy_figure(model: EmergentAnalogiesModel) -> Figure:
    """Draw the accuracy of each category with its 95 % (Wilson) interval, beside that of random answers."""
    return _bars(model, model.categories, "Right answers by category")


def kind_figure(model: EmergentAnalogiesModel) -> Figure:
    """Draw the accuracy of each type."""
    kinds = list(dict.fromkeys(problem.kind for problem in model.problems.values()))
    return _bars(model, kinds, "Right answers by type")


def _bars(model: EmergentAnalogiesModel, names: list[str], title: str) -> Figure:
    figure = Figure(figsize=(7.5, 1.4 + 0.3 * max(len(names), 3)), layout="constrained")
    axes: Any = figure.subplots()
    axes.set_title(title, loc="left", fontsize=13, color=GREY)
    verdicts = model.verdicts()
    for height, name in enumerate(names):
        rights = [right for problem, _, right in verdicts if name in (problem.category, problem.kind)]
        if rights:
            share, (low, high) = sum(rights) / len(rights), share_interval(sum(rights), len(rights))
            axes.barh(height, share, color=BLUE, alpha=0.8, height=0.6)
            axes.plot([low, high], [height, height], color=GREY, lw=1.5)
        axes.plot([model.chance(name)] * 2, [height - 0.35, height + 0.35], color="#dc2626", lw=2)
    axes.set_yticks(range(len(names)), [name.replace("_", " ") for name in names])
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("grey: 95 % interval, red: random answers", color=GREY)
    axes.grid(axis="x", color=LIGHT)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(colors=GREY, length=0)
    return figure
