"""The gallery of `mesa-llm app`: all models and benchmarks on one server.

Models are imported together with this module: elements created while Solara draws a page would end up on that page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import solara.lab
from reacton import use_state
from reacton.core import Element
from solara.core import component
from solara.routing import use_router

from mesa_llm.registry import find_models
from mesa_llm.viz.components.markup import Markup, place_style
from mesa_llm.viz.server.benchmarks import Benchmarks
from mesa_llm.viz.server.model_page import ModelPage, model_page


class GalleryGroup(NamedTuple):
    """Models that stand together in the gallery."""

    title: str
    """Its title."""

    about: str
    """What its models have in common."""

    names: tuple[str, ...]
    """Names of its models, best introduction first."""


GROUPS = (
    (
        "Course",
        "The classics of agent-based modelling, with a rule twin and a recorded language model.",
        (
            *("schelling", "boltzmann_wealth", "epidemic", "opinion", "culture", "el_farol"),
            *("sugarscape", "wolf_sheep", "prisoners_dilemma"),
        ),
    ),
    (
        "Social",
        "Networks, rooms and towns in which agents talk, follow and vote.",
        ("social", "oasis", "discussion", "sotopia", "commons", "town", "hidden_roles", "three_worlds"),
    ),
    (
        "Markets",
        "Prices, auctions, supply chains and whole economies.",
        ("market", "auction_arena", "stock_agent", "economy", "econ_agent", "beer"),
    ),
    (
        "Benchmark",
        "Published tests of what language models do and say, with the published numbers.",
        ("psychobench", "emotionbench", "cognitive_biases", "emergent_analogies", "compost"),
    ),
)
"""Title, description and models of each `GalleryGroup`, in order; the models of other packages come before them."""

START = "schelling"
"""Name of the model that the gallery recommends first."""

BENCHMARKS = "benchmarks"
"""Path of the benchmark page."""


PAGES = tuple(model_page(entry) for entry in find_models())
"""All installed models."""


def groups_of(pages: Sequence[ModelPage], query: str = "") -> list[tuple[GalleryGroup, list[ModelPage]]]:
    """Sort models into the groups of the gallery; those that no group names come first.

    Args:
        pages: The models.
        query: Words that the name, title or question of a model, or the title of its group, has to contain.

    Returns:
        Each group that has models, with its models in order.
    """
    by_name = {page.entry.name: page for page in pages}
    groups = [GalleryGroup(*fields) for fields in GROUPS]
    grouped = {name for group in groups for name in group.names}
    others = tuple(name for name in by_name if name not in grouped)
    mine = GalleryGroup("Your models", "Models of your own packages and of others that are installed.", others)
    words = query.lower().split()

    def is_found(group: GalleryGroup, page: ModelPage) -> bool:
        text = f"{page.entry.name} {page.title} {page.entry.question} {group.title}".lower()
        return all(word in text for word in words)

    found = [
        (group, [by_name[name] for name in group.names if name in by_name and is_found(group, by_name[name])])
        for group in (mine, *groups)
    ]
    return [(group, models) for group, models in found if models]


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
    query, search = use_state("")
    groups = groups_of(PAGES, query)
    with solara.Div(classes=["mesa-llm-gallery"], attributes={"role": "main"}):
        with solara.Div(classes=["mesa-llm-search"]):
            solara.InputText("Search models", value=query, on_value=search, continuous_update=True)
        if not groups:
            solara.Info(f"No model mentions “{query}”.", dense=True)
        for group, pages in groups:
            Markup("gallery_group.html", group=group).key(f"title of {group.title}")
            with solara.Div(classes=["mesa-llm-group"]).key(group.title):
                for item in pages:
                    _Card(item).key(item.entry.name)


@component
def _Card(item: ModelPage) -> None:
    """Show a model, all of it a link to its page; one that cannot be imported is shown with the error."""
    with solara.Card(margin=0, classes=["mesa-llm-entry"]):
        if item.fault:
            Markup("gallery_entry.html", item=item, is_first=False)
            solara.Error(item.fault, dense=True)
        else:
            with solara.Link(f"/{item.entry.name}"):
                Markup("gallery_entry.html", item=item, is_first=item.entry.name == START)


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
