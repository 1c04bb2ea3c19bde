"""The page of an account and its followers: `mesa-llm app models/mesa_llm_models/oasis/app.py`."""

from __future__ import annotations

from mesa_llm.model.scenario import controls
from mesa_llm.viz import InterviewForm, LLMPage, drawn_by
from mesa_llm_models.oasis.charts import activity_chart, cascade_chart
from mesa_llm_models.oasis.model import N_USERS, OasisModel
from mesa_llm_models.oasis.spreading import baseline_curves
from mesa_llm_models.social.components import (
    CASCADE_TAB,
    FEED_TAB,
    CascadeTree,
    FeedReader,
    ThreadReader,
    follow_network,
    spread_curves,
)

N_AGENTS = {"type": "SliderInt", "label": "Users", "value": N_USERS, "min": 2, "max": 200, "step": 1}
"""Slider for the number of users; this page invents them."""

page = LLMPage(
    OasisModel,
    model_params={**controls(OasisModel), "n_agents": N_AGENTS},
    components=[
        follow_network(),
        drawn_by(cascade_chart),
        drawn_by(activity_chart),
        (FeedReader, FEED_TAB, "Feed"),
        (ThreadReader, FEED_TAB, "Thread"),
        (CascadeTree, CASCADE_TAB, "Cascade"),
        (spread_curves(baselines=baseline_curves), CASCADE_TAB),
        (InterviewForm, "Agents", "Interview"),
    ],
    name="One account and its followers",
)
