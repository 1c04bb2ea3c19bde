"""What the browser tests open: the gallery, the village under several names, and an empty page."""

from __future__ import annotations

import os

import solara
from mesa.visualization import make_plot_component
from solara.core import component

from mesa_llm.viz import LLMPage, finish
from mesa_llm.viz.server import gallery
from mesa_llm_models.oasis.studies_app import Studies
from tests.browser.apps.village import DELAY, N_AGENTS, Hamlet, Village, renderer


@component
def Fast() -> None:
    """Villagers who reply at once."""
    greetings = make_plot_component("greetings", post_process=finish("Greetings so far"))
    LLMPage(
        Village,
        model_params={"n_agents": N_AGENTS},
        components=[greetings],
        renderer=renderer,
        llm="scripted",
        name="Fast",
    )


@component
def Slow() -> None:
    """Villagers who think for five minutes, unless they are stopped."""
    LLMPage(Village, model_params={"n_agents": 3, "delay_s": DELAY}, renderer=renderer, llm="scripted", name="Slow")


@component
def Rules() -> None:
    """Villagers without a language model."""
    LLMPage(Village, model_params={"n_agents": 3}, renderer=renderer, name="Rules")


@component
def Pondering() -> None:
    """Two villagers without a language model, each of whom ponders for four seconds."""
    LLMPage(Village, model_params={"n_agents": 2, "delay_s": 4.0}, renderer=renderer, name="Pondering")


@component
def Recorded() -> None:
    """Villagers who think for five minutes, and whose run is recorded, once somebody looks."""
    LLMPage(Village, model_params={"n_agents": 3, "delay_s": DELAY, "log": os.environ["VILLAGE_LOG"]}, llm="scripted")


@component
def Newcomer() -> None:
    """Show a model with nothing else said."""
    LLMPage(Hamlet)


@component
def Empty() -> None:
    """Show next to nothing, between two pages."""
    solara.Text("Nothing is here.")


routes = [
    *gallery.routes,
    solara.Route("empty", component=Empty),
    solara.Route("studies", component=Studies),
    solara.Route("fast", component=Fast),
    solara.Route("slow", component=Slow),
    solara.Route("rules", component=Rules),
    solara.Route("pondering", component=Pondering),
    solara.Route("newcomer", component=Newcomer),
    solara.Route("recorded", component=Recorded),
]
