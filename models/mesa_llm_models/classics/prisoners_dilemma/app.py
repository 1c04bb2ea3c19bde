"""The page of the prisoner's dilemma: `mesa-llm app models/mesa_llm_models/classics/prisoners_dilemma/app.py`."""

from __future__ import annotations

from typing import Any

from mesa_llm.charts import COLOURS, Chart, ChartSeries
from mesa_llm.viz.render import steps_of
from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.prisoners_dilemma.model import DilemmaModel


def ranking_chart(model: DilemmaModel) -> Chart:
    """Return the points of each player, the best first."""
    names, scores = zip(*model.ranking(), strict=True)
    guests = {guest.name for guest in model.guests}
    points = ChartSeries(
        values=scores, kind="bar", colours=[COLOURS[1] if name in guests else COLOURS[0] for name in names]
    )
    labels = [name.replace("_", " ") for name in names]
    look: dict[str, Any] = {"names": labels, "is_horizontal": True, "x": "", "high": 5}
    note = "Orange: the guest, who decides for itself." if guests else ""
    return Chart(title="Points per round and opponent", series=[points], note=note, **look)


def cooperation_chart(model: DilemmaModel) -> Chart:
    """Return how often players, and the guest among them, have cooperated; nobody has before the first round."""
    drawn = (("cooperation", "all players", COLOURS[0]), ("guests_cooperation", "the guest", COLOURS[1]))
    series: list[ChartSeries] = []
    for name, label, colour in drawn:
        points = steps_of(model, name)
        values = [value if step else None for step, value in zip(points["at"], points["values"], strict=True)]
        series.append(ChartSeries(name=label, colour=colour, values=values, at=points["at"]))
    return Chart(title="Moves so far that were cooperation", series=series, unit="share", high=1)


DRAWINGS = (
    ranking_chart,
    cooperation_chart,
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(DilemmaModel, "Iterated prisoner's dilemma", DRAWINGS)
