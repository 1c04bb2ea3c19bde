"""The chart of the scores of each bias."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm_models.cognitive_biases.scores import published

if TYPE_CHECKING:
    from mesa_llm_models.cognitive_biases.model import CognitiveBiasesModel

Z = 1.96
"""Standard errors on each side of a mean in a 95 % interval."""

COMPARED = "GPT-4o-mini"
"""The published model that is drawn beside, where the tests are the original's."""


def bias_chart(model: CognitiveBiasesModel) -> Chart:
    """Return the mean score of each bias with its 95 % interval, beside what random choices would have."""
    scores = model.scores()
    others = published(COMPARED) if model.scenario.tests else {}
    look: dict[str, Any] = {"kind": "point"}
    series = [
        ChartSeries(values=[0.0], kind="level", colour=GREY),
        ChartSeries(name="random choices", values=[one.random for one in scores], shape="|", colour=GREY, **look),
    ]
    if others:
        theirs = [others.get(one.bias) for one in scores]
        series.append(ChartSeries(name=COMPARED, values=theirs, shape="D", colour=COLOURS[1], **look))
    own = ChartSeries(
        name="mean with 95 % interval",
        values=[one.mean if one.n else None for one in scores],
        low=[one.mean - Z * one.se if one.n > 1 else None for one in scores],
        high=[one.mean + Z * one.se if one.n > 1 else None for one in scores],
        colour=COLOURS[0],
        **look,
    )
    return Chart(
        title="Mean score of each bias",
        series=[*series, own],
        names=[_words(one.bias) for one in scores],
        is_horizontal=True,
        y="score: 1 as the bias predicts, 0 without bias, −1 the opposite",
        low=-1,
        high=1,
    )


def _words(name: str) -> str:
    """Return a name such as `NotInventedHere` as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
