"""The pages of the studies, one run at a time: `mesa-llm app models/mesa_llm_models/oasis/studies_app.py`."""

from __future__ import annotations

from typing import Any

import solara
from reacton import use_state
from solara.core import component

from mesa_llm.viz import InterviewForm, LLMPage, drawn_by
from mesa_llm_models.oasis.charts import TITLES, course_chart
from mesa_llm_models.oasis.spreading import SpreadingModel, baseline_curves
from mesa_llm_models.oasis.spreading_studies import CURVES
from mesa_llm_models.oasis.studies import HERD, POLARISATION, RUMOURS
from mesa_llm_models.social.components import (
    CASCADE_TAB,
    FEED_TAB,
    CascadeTree,
    FeedReader,
    ThreadReader,
    spread_curves,
)

PARTS: dict[str, list[Any]] = {
    "spreading": [(CascadeTree, CASCADE_TAB, "Cascade"), (spread_curves(baselines=baseline_curves), CASCADE_TAB)],
    "polarisation": [(InterviewForm, "Agents", "Interview")],
    "rumours": [(CascadeTree, CASCADE_TAB, "Cascade")],
}
"""Study → additional components of its page."""

SHOWN: dict[str, tuple[Any, tuple[str, ...]]] = {
    "herd": (HERD.model, HERD.measures),
    "spreading": (SpreadingModel, CURVES),
    "polarisation": (POLARISATION.model, POLARISATION.measures),
    "rumours": (RUMOURS.model, RUMOURS.measures),
}
"""Study → its model, and the measures to draw."""

PAGES: dict[str, Any] = {
    name: LLMPage(
        model,
        components=[
            drawn_by(course_chart(name, measures)),
            (FeedReader, FEED_TAB, "Feed"),
            (ThreadReader, FEED_TAB, "Thread"),
            *PARTS.get(name, ()),
        ],
        name=TITLES[name][0],
    ).key(name)
    for name, (model, measures) in SHOWN.items()
}
"""Study → page of its model."""


@component
def Studies() -> None:
    """Show the page of the selected study."""
    name, choose = use_state("herd")
    choice = solara.Select("Study", values=list(PAGES), value=name, on_value=choose, dense=True)
    solara.Column(children=[choice, PAGES[name]])


page = Studies()
