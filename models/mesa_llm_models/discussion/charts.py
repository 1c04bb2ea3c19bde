"""Charts of a discussion: attitude curves, and who talks how much."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm_models.discussion.scores import choice_shares, curve


def attitude_chart(models: Any, question: str | None = None) -> Chart:
    """Return how the attitudes of each party move, with 95 % intervals over rooms and runs, on the whole scale.

    Where nothing is answered by number, return how many give each answer to a question with choices.

    Args:
        models: A model, or several.
        question: Id of the question; None: the first that is answered by number, else by choice.
    """
    several = models if isinstance(models, Sequence) else [models]
    points = curve(several, question)
    scaled = [one for model in several for one in model.plan.experiment.survey_questions if one.scale is not None]
    asked = next((one for one in scaled if question in (None, one.id)), None)
    if points.empty and asked is None:
        return _choice_chart(choice_shares(several, question))
    return curve_chart(points, None if asked is None else asked.scale)


def curve_chart(points: Any, scale: tuple[int, int] | None = None) -> Chart:
    """Return the means of each party after each number of messages, with their intervals.

    Args:
        points: Table of `mesa_llm_models.discussion.scores.curve`.
        scale: Smallest and largest number that may be answered; None: unknown.
    """
    series = [
        ChartSeries(
            name=str(party or "everyone"),
            values=group["mean"].tolist(),
            at=list(map(float, group["after"])),
            low=group["low"].tolist(),
            high=group["high"].tolist(),
        )
        for party, group in points.groupby("party", sort=False)
    ]
    low, high = scale or (None, None)
    reach: dict[str, Any] = {"start": 0.0, "end": max([1.0, *map(float, points["after"])])}
    label = "mean answer" if scale is None else f"mean answer, {low} to {high}"
    note = "" if series else "Nobody has answered yet."
    look: dict[str, Any] = {"x": "messages so far", "y": label, "note": note}
    return Chart(title="Attitudes, by party", series=series, low=low, high=high, **look, **reach)


def _choice_chart(points: Any) -> Chart:
    if points.empty:
        nothing = "Nothing is answered by number or choice yet."
        return Chart(title="Answers aside", series=[], x="messages so far", note=nothing)
    moments = sorted(set(points["after"]))
    series = [
        ChartSeries(
            name=str(answer), values=group["share"].tolist(), at=[moments.index(n) for n in group["after"]], kind="bar"
        )
        for answer, group in points.groupby("answer", sort=False)
    ]
    return Chart(
        title=f"Answers aside: {points['question'].iloc[0]}",
        series=series,
        names=list(map(str, moments)),
        x="messages so far",
        y="share of those who answered",
        is_stacked=True,
        unit="share",
        high=1,
    )


def talk_chart(model: Any) -> Chart:
    """Return how often each person spoke and kept silent.

    Args:
        model: The model.
    """
    table = model.talk().groupby("name", sort=False)[["messages", "silences"]].sum()
    spoke = ChartSeries(name="spoke", values=table["messages"].tolist(), kind="bar", colour=COLOURS[0])
    silent = ChartSeries(name="kept silent", values=table["silences"].tolist(), kind="bar", colour=GREY)
    look: dict[str, Any] = {"names": list(map(str, table.index)), "is_horizontal": True, "is_stacked": True, "x": ""}
    return Chart(title="Times called on", series=[spoke, silent], y="times", **look)
