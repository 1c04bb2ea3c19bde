"""Charts of the share of problems solved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm.statistics import share_interval

if TYPE_CHECKING:
    from mesa_llm_models.emergent_analogies.model import EmergentAnalogiesModel


def accuracy_chart(model: EmergentAnalogiesModel) -> Chart:
    """Return the accuracy of each category with its 95 % (Wilson) interval, beside that of random answers."""
    return _chart(model, model.categories, "Right answers by category")


def kind_chart(model: EmergentAnalogiesModel) -> Chart:
    """Return the accuracy of each type."""
    kinds = list(dict.fromkeys(problem.kind for problem in model.problems.values()))
    return _chart(model, kinds, "Right answers by type")


def _chart(model: EmergentAnalogiesModel, names: list[str], title: str) -> Chart:
    verdicts = model.verdicts()
    rights = [[right for problem, _, right in verdicts if name in (problem.category, problem.kind)] for name in names]
    ends = [share_interval(sum(each), len(each)) if each else (None, None) for each in rights]
    look: dict[str, Any] = {"kind": "point"}
    chances = [model.chance(name) for name in names]
    own = ChartSeries(
        name="right, with 95 % interval",
        values=[sum(each) / len(each) if each else None for each in rights],
        low=[low for low, _ in ends],
        high=[high for _, high in ends],
        labels=[f"{sum(each)} of {len(each)}" for each in rights],
        colour=COLOURS[0],
        **look,
    )
    return Chart(
        title=title,
        series=[ChartSeries(name="random answers", values=chances, shape="|", colour=GREY, **look), own],
        names=[name.replace("_", " ") for name in names],
        is_horizontal=True,
        low=0,
        high=1,
        unit="share",
    )
