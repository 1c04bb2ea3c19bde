"""The page of the social network: `mesa-llm app models/mesa_llm_models/social/app.py`."""

from __future__ import annotations

from mesa.visualization import make_plot_component

from mesa_llm.charts import COLOURS
from mesa_llm.model.scenario import controls
from mesa_llm.viz import InterviewForm, LLMPage, finish
from mesa_llm_models.oasis.spreading import baseline_curves
from mesa_llm_models.social.components import (
    CASCADE_TAB,
    FEED_TAB,
    CascadeTree,
    Colouring,
    FeedReader,
    ThreadReader,
    follow_network,
    opinion,
    spread_curves,
)
from mesa_llm_models.social.model import SocialModel

N_AGENTS = {
    "type": "Select",
    "label": "Users",
    "value": 20,
    "values": [2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000],
}
"""Slider for the number of users; this page invents them."""

ACTIVITY = ("posts", "replies", "likes")
"""Measures of what users do."""

activity = make_plot_component(
    dict(zip(ACTIVITY, COLOURS, strict=False)),
    post_process=finish("Activity in each step", labels={name: name for name in ACTIVITY}, per_step=True),
)
spread = make_plot_component(
    {"largest_cascade": COLOURS[3], "reposts": COLOURS[7]},
    post_process=finish(
        "Spread", labels={"largest_cascade": "users in the largest cascade", "reposts": "reposts so far"}
    ),
)


def positions(model: SocialModel) -> dict[str, Colouring]:
    """Return the users' positions on the topic as node colours; empty without beliefs.

    Args:
        model: The model.
    """
    opinions = model.opinions
    return {} if opinions is None else {f"position on {opinions.topic}": opinion(lambda user: user.position)}


components = [
    follow_network(positions),
    activity,
    spread,
    (FeedReader, FEED_TAB, "Feed"),
    (ThreadReader, FEED_TAB, "Thread"),
    (CascadeTree, CASCADE_TAB, "Cascade"),
    (spread_curves(baselines=baseline_curves), CASCADE_TAB),
    (InterviewForm, "Agents", "Interview"),
]

page = LLMPage(
    SocialModel,
    model_params={**controls(SocialModel), "n_agents": N_AGENTS},
    components=components,
    name="Social network",
)
