"""Charts of caricature: the plane of both scores, and both by persona and topic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm.text import one_line
from mesa_llm_models.compost.scores import CHANCE, PersonaScore

if TYPE_CHECKING:
    from mesa_llm_models.compost.model import CompostModel

INTERVAL = 1.96
"""Standard errors on each side of a mean."""

MAX_LABEL = 40
"""Maximum number of characters of a persona or topic in a chart."""

CHANCE_NOTE = "Chance is marked as it is with many texts; with few it is lower."
"""Note below a chart with the score that chance gives."""


def plane_chart(model: CompostModel) -> Chart:
    """Return both scores of each persona: caricatures lie at the upper right."""
    scores = model.scores()
    points: list[ChartSeries] = []
    for name, row in scores.exaggeration.items():
        individuation = scores.individuation.get(name)
        if individuation is None or math.isnan(row.mean) or math.isnan(individuation.mean):
            continue
        points.append(ChartSeries(name=_label(name), values=[row.mean], at=[individuation.mean], kind="point"))
    heights = [end for each in points for end in each.ends]
    ends = [min(-0.2, *heights) - 0.05, max(1.0, *heights) + 0.05] if points else [0.0, 1.0]
    chance = ChartSeries(name="chance", values=ends, at=[CHANCE] * 2, colour=GREY, is_dashed=True)
    return Chart(
        title="Caricatures are told apart and exaggerated",
        series=[*points, chance, ChartSeries(values=[0.0], kind="level", colour=GREY)],
        x="individuation: share of texts told apart",
        y="exaggeration",
        start=0,
        end=1,
        note=CHANCE_NOTE if points else "Too few texts so far to tell.",
    )


def individuation_chart(model: CompostModel) -> Chart:
    """Return how well the texts of each persona can be told apart, with 95 % intervals over topics, beside chance."""
    scores = model.scores().individuation
    return replace(_by_persona("Individuation of each persona", "share of texts told apart", scores), low=0, high=1)


def exaggeration_chart(model: CompostModel) -> Chart:
    """Return how far each persona is exaggerated, with 95 % intervals over topics, beside chance."""
    label = "from 0, the default persona, to 1, the persona without a topic"
    return _by_persona("Exaggeration of each persona", label, model.scores().exaggeration)


def _by_persona(title: str, label: str, scores: Mapping[str, PersonaScore]) -> Chart:
    rows = list(scores.values())
    halves = [None if math.isnan(row.error) else INTERVAL * row.error for row in rows]
    look: dict[str, Any] = {"kind": "point"}
    chance = ChartSeries(name="chance", values=[row.chance for row in rows], shape="|", colour=GREY, **look)
    means = ChartSeries(
        name="mean with 95 % interval over topics",
        values=[None if math.isnan(row.mean) else row.mean for row in rows],
        low=[None if half is None else row.mean - half for row, half in zip(rows, halves, strict=True)],
        high=[None if half is None else row.mean + half for row, half in zip(rows, halves, strict=True)],
        colour=COLOURS[0],
        **look,
    )
    note = CHANCE_NOTE if rows else "Nobody has written yet."
    return Chart(
        title=title,
        series=[chance, means],
        names=list(map(_label, scores)),
        is_horizontal=True,
        y=label,
        note=note,
    )


def topic_chart(model: CompostModel) -> Chart:
    """Return the exaggeration of each persona on each topic that could be scored, and the mean of each topic."""
    scores = model.scores()
    topics = list(scores.by_topic)
    look: dict[str, Any] = {"kind": "point"}
    personas = [
        ChartSeries(
            name=_label(name),
            values=[row.by_topic.get(topic) for topic in topics],
            **look,
        )
        for name, row in scores.exaggeration.items()
        if row.by_topic
    ]
    mean = ChartSeries(name="mean", values=list(scores.by_topic.values()), shape="|", colour=GREY, **look)
    return Chart(
        title="Exaggeration by topic",
        series=[mean, *personas],
        names=list(map(_label, topics)),
        is_horizontal=True,
        y="from 0, the default persona, to 1, the persona without a topic",
        note="" if topics else "No topic can be scored yet: no word tells persona from topic.",
    )


def _label(text: str) -> str:
    return one_line(text, MAX_LABEL)
