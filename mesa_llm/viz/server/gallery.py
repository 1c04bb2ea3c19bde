"""The gallery of `mesa-llm app`: all models and benchmarks on one server.

Models are imported together with this module: elements created while Solara draws a page would end up on that page.
"""

from __future__ import annotations

from typing import Any

import solara.lab
from reacton.core import Element
from solara.core import component
from solara.routing import use_router

from mesa_llm.registry import ModelEntry, find_models
from mesa_llm.viz.components.markup import Markup, place_style
from mesa_llm.viz.server.benchmarks import Benchmarks
from mesa_llm.viz.server.model_page import ModelPage, model_page

ORDER = (
    "social",
    "schelling",
    "prisoners_dilemma",
    "oasis",
    "commons",
    "town",
    "market",
    "discussion",
    "sotopia",
    "auction_arena",
    "beer",
    "hidden_roles",
    "emotionbench",
    "psychobench",
    "cognitive_biases",
    "compost",
    "emergent_analogies",
    "economy",
    "econ_agent",
    "stock_agent",
    "three_worlds",
    "boltzmann_wealth",
    "opinion",
    "culture",
    "el_farol",
    "epidemic",
    "sugarscape",
    "wolf_sheep",
)
"""Names of models in the order of the gallery, best introduction first; all others follow."""

BENCHMARKS = "benchmarks"
"""Path of the benchmark page."""


def gallery_order(entry: ModelEntry) -> tuple[int, str]:
    """Return the sort key of a model in the gallery.

    Args:
        entry: The model.
    """
    return (ORDER.index(entry.name) if entry.name in ORDER else len(ORDER), entry.name)


PAGES = tuple(model_page(entry) for entry in sorted(find_models(), key=gallery_order))
"""All installed models, in the order of the gallery."""


@component
def Layout(children: list[Any] = []) -> None:  # noqa: B006 - Solara's signature of a layout
    """Place a page under a bar with a link back to the gallery.

    Args:
        children: The page.
    """
    is_gallery = not use_router().path.strip("/")
    with solara.AppLayout(navigation=False, title="mesa_llm"):
        if not is_gallery:
            with solara.AppBar(), solara.Link("/"):
                solara.Button("All models", icon_name="mdi-view-grid-outline", text=True, dark=True)
        for child in children:
            solara.display(child)


@component
def Gallery() -> None:
    """List all models; those that cannot be imported are shown with the error."""
    place_style()
    with solara.AppBar():
        solara.AppBarTitle("Models")
        with solara.Link(f"/{BENCHMARKS}"):
            solara.Button("Benchmarks", icon_name="mdi-chart-bar", text=True, dark=True)
        solara.lab.ThemeToggle()
    with solara.Div(classes=["mesa-llm-gallery"]):
        first = next((item for item in PAGES if not item.fault), None)
        for item in PAGES:
            with solara.Card(item.title, margin=0, classes=["mesa-llm-entry"]):
                if item.fault:
                    solara.Error(item.fault, dense=True)
                    continue
                Markup("gallery_entry.html", picture=item.picture, question=item.entry.question, is_first=item is first)
                with solara.Link(f"/{item.entry.name}"):
                    solara.Button("Open", icon_name="mdi-arrow-right", color="primary")


def page_of(item: ModelPage) -> Any:
    """Return the component that shows a model.

    Args:
        item: The model.
    """

    @component
    def Page() -> None:
        if item.fault:
            solara.Error(item.fault)
        elif isinstance(item.page, Element):  # visitors would share it: create a new one for each
            item.page.component(*item.page.args, **item.page.kwargs)
        else:
            item.page()

    return Page


routes = (
    solara.Route("/", component=Gallery, layout=Layout, label="Models"),
    *(solara.Route(item.entry.name, component=page_of(item), label=item.title) for item in PAGES),
    solara.Route(BENCHMARKS, component=Benchmarks, label="Benchmarks"),
)
"""Routes for Solara: the gallery, each model under its name, and the benchmarks."""
