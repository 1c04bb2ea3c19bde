"""Charts of how feelings change in situations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm_models.emotionbench.scores import ScoreChange, published

if TYPE_CHECKING:
    from mesa_llm_models.emotionbench.model import EmotionBenchModel

Z = 1.96
"""Standard errors on each side of a mean in a 95 % interval."""

SUBSCALES_DRAWN = 6
"""Maximum number of scores of an instrument that a chart shows."""


def change_chart(model: EmotionBenchModel) -> Chart:
    """Return each emotion's change from the default with its 95 % interval, and that of people where it is known."""
    rows = [one for one in model.changes() if one.emotion and not one.factor]
    return _chart(model, rows, "Change of feelings by emotion", [one.emotion for one in rows])


def factor_chart(model: EmotionBenchModel) -> Chart:
    """Return the change of each kind of situation with its 95 % interval."""
    rows = [one for one in model.changes() if one.factor]
    return _chart(
        model, rows, "Change of feelings by kind of situation", [f"{one.emotion}: {one.factor}" for one in rows]
    )


def _chart(model: EmotionBenchModel, rows: list[ScoreChange], title: str, labels: list[str]) -> Chart:
    names = list(dict.fromkeys(labels))
    series = [ChartSeries(values=[0.0], kind="level", colour=GREY)]
    subscales = [subscale.name for subscale in model.instrument.subscales][:SUBSCALES_DRAWN]
    for subscale, colour in zip(subscales, COLOURS, strict=False):
        own = {label: one for label, one in zip(labels, rows, strict=True) if one.subscale == subscale}
        look: dict[str, Any] = {"kind": "point", "colour": colour}
        if own:
            low, high = ([_end(one, side) for one in own.values()] for side in (-1, 1))
            at, changes = [float(names.index(label)) for label in own], [one.change for one in own.values()]
            series.append(ChartSeries(name=subscale, values=changes, at=at, low=low, high=high, **look))
        people = {one.emotion: one.change for one in published() if _is_of_people(one, subscale)}
        known = [name for name in names if name in people] if model.is_comparable else []
        if known:
            at, changes = [float(names.index(name)) for name in known], [people[name] for name in known]
            series.append(ChartSeries(name=f"{subscale}, people", values=changes, at=at, shape="D", **look))
    return Chart(
        title=title,
        series=series,
        names=names,
        is_horizontal=True,
        y="change from the default sheets, with 95 % intervals",
        note="" if names else "No sheet is scored yet.",
    )


def _end(one: ScoreChange, side: int) -> float | None:
    summary = one.summary
    return one.change + side * Z * summary.sd / math.sqrt(summary.n) if summary.n > 1 else None


def _is_of_people(one: Any, subscale: str) -> bool:
    return one.respondent == "human-crowd" and one.subscale == subscale and bool(one.emotion)
