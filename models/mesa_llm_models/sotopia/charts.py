"""Charts of Sotopia: scores by dimension and person, and goals by scene."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm.text import clip
from mesa_llm_models.sotopia.scores import GOAL, OVERALL, interval, normalised

if TYPE_CHECKING:
    from mesa_llm_models.sotopia.judge import Dimension
    from mesa_llm_models.sotopia.model import SotopiaModel

MAX_ROWS = 24
"""Maximum number of scenes in a chart."""

NOTHING = "Nothing is judged yet."

SEATS = ("first person", "second person")
"""Seat → its name in a chart."""


def score_chart(model: SotopiaModel) -> Chart:
    """Return the mean of each dimension on its own range, with 95 % intervals over scenes."""
    scores: Any = model.scores()
    tested: Any = scores[scores["tested"]].dropna(subset=[OVERALL])
    rows = [] if tested.empty else list(model.dimensions)
    means = [float(tested[one.name].mean()) for one in rows]
    ends = [interval(tested, one.name) for one in rows]
    points = ChartSeries(
        name="mean with 95 % interval over scenes",
        values=[_share(one, mean) for one, mean in zip(rows, means, strict=True)],
        low=[_share(one, low) for one, (low, _) in zip(rows, ends, strict=True)],
        high=[_share(one, high) for one, (_, high) in zip(rows, ends, strict=True)],
        labels=[f"{mean:.2f} between {one.low} and {one.high}" for one, mean in zip(rows, means, strict=True)],
        kind="point",
        colour=COLOURS[0],
    )
    return Chart(
        title=f"Scores, judged by {model.judge or 'nobody'}" if model.n_judged else "Scores",
        series=[points],
        names=[f"{_words(one.name)}, {one.low} to {one.high}".replace("-", "−") for one in rows],
        is_horizontal=True,
        y="from the lowest possible score, 0 %, to the highest, 100 %",
        low=0,
        high=1,
        unit="share",
        note="" if rows else NOTHING,
    )


def _share(dimension: Dimension, score: float) -> float | None:
    return None if math.isnan(score) else normalised({dimension.name: score}, [dimension])[dimension.name]


def _words(name: str) -> str:
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:]


def goal_chart(model: SotopiaModel) -> Chart:
    """Return each person's goal score by scene, and the mean of each scene, the lowest first."""
    scores: Any = model.scores()
    goal = next((one for one in model.dimensions if one.name == GOAL), None)
    if goal is None or scores[GOAL].isna().all():
        return Chart(title="Goals reached, by scene", series=[], note=NOTHING)
    judged: Any = scores.dropna(subset=[GOAL])
    means: Any = judged.groupby("situation", sort=False)[GOAL].mean().sort_values()[:MAX_ROWS]
    keys = list(means.index)
    look: dict[str, Any] = {"kind": "point"}
    series = [ChartSeries(name="mean", values=means.tolist(), shape="|", colour=GREY, **look)]
    for seat, group in judged[judged["situation"].isin(keys)].groupby("seat"):
        name = SEATS[seat] if seat < len(SEATS) else f"person {seat + 1}"
        at = [float(keys.index(key)) for key in group["situation"]]
        series.append(ChartSeries(name=name, values=group[GOAL].tolist(), at=at, labels=group["name"].tolist(), **look))
    names = {key: one.codename or key for key, one in model.scenes.situations.items()}
    hard = {one.situation.situation_id for one in model.episodes if one.situation.is_hard}
    return Chart(
        title="Goals reached, by scene",
        series=series,
        names=[_words(clip(names[key], 40)) + (" (hard)" if key in hard else "") for key in keys],
        is_horizontal=True,
        y="score for the goal",
        low=goal.low,
        high=goal.high,
    )
