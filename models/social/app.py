"""The page of the social network: `mesa-llm app models/social/app.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mesa.visualization import SpaceRenderer, make_plot_component
from mesa.visualization.components import AgentPortrayalStyle
from mesa.visualization.utils import update_counter
from reacton import ipyvuetify as vuetify
from reacton import use_state
from solara.core import component

from mesa_llm.model.scenario import controls
from mesa_llm.viz import LLMPage, Markup, finish, steady
from mesa_llm.viz.figures import enlarge
from models.social.model import SocialModel

FEED = Path(__file__).parent / "templates" / "feed.html"

ACTIVE, IDLE = "#f97316", "#60a5fa"
"""Colours of who did something in the last step, and of who did not."""


def portray(user: Any) -> AgentPortrayalStyle:
    """Draw a user: larger with more followers, orange if it did something in the last step."""
    outcomes = user.model.last_outcomes.get(user.unique_id, ())
    is_active = any(outcome.action != "do_nothing" for outcome in outcomes)
    followers = user.model.world.users.get("followers", user.unique_id)
    return AgentPortrayalStyle(
        color=ACTIVE if is_active else IDLE,
        size=40 + 25 * followers,
        edgecolors="white",
        zorder=3,
    )


def network(model: Any) -> SpaceRenderer:
    """Draw who followed whom at the start, where the model has laid it out."""
    renderer = SpaceRenderer(model)
    renderer.setup_structure(
        node_kwargs={"node_size": 1, "alpha": 0.0}, edge_kwargs={"alpha": 0.35, "style": "-", "edge_color": "#94a3b8"}
    )
    renderer.setup_agents(portray)
    axes: Any = renderer.canvas
    axes.get_figure().set_size_inches(7, 6.4)
    enlarge(axes.get_figure())
    axes.set_title("Users (larger: more followers; orange: active)", loc="left", color="#475569", fontsize=13)
    return renderer


@component
def Feed(model: SocialModel) -> None:
    """Show the feed of a user as that user sees it.

    Args:
        model: The model.
    """
    update_counter.get()
    number, choose = use_state(0)
    names = model.world.names
    user = number if number in names else min(names)
    vuetify.Autocomplete(
        label="Feed of",
        items=[{"text": f"{user_id} · {name}", "value": user_id} for user_id, name in names.items()],
        v_model=user,
        on_v_model=lambda picked: choose(picked or 0),
        outlined=True,
        dense=True,
        hide_details=True,
    )
    with steady(model):
        facts = model.world.facts(user)
    Markup(FEED, items=facts.feed, followers=facts.followers, followings=facts.followings)


N_AGENTS = {"type": "SliderInt", "label": "Users", "value": 20, "min": 2, "max": 200, "step": 1}
"""Control of the number of users, which are invented on this page."""

activity = make_plot_component(
    {"posts": "#2563eb", "replies": "#16a34a", "likes": "#f97316"},
    post_process=finish("Activity in each step", per_step=True),
)
spread = make_plot_component(
    {"largest_cascade": "#7c3aed", "reposts": "#94a3b8"},
    post_process=finish(
        "Spread", labels={"largest_cascade": "users in the largest cascade", "reposts": "reposts so far"}
    ),
)

page = LLMPage(
    SocialModel,
    model_params={**controls(SocialModel), "n_agents": N_AGENTS},
    components=[activity, spread, (Feed, "Feed")],
    renderer=network,
    name="Social network",
)
