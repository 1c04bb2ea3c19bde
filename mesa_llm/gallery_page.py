"""The page of all models, as `mesa-llm app` serves it. Each model opens on the same server.

All models are imported when this module is: what Solara makes while it draws a page would land on that page.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import solara
from reacton.core import Element
from solara.core import component
from solara.routing import use_router

from mesa_llm.errors import ConfigError
from mesa_llm.gallery import ModelEntry, find_models
from mesa_llm.viz.markup import CSS
from mesa_llm.viz.page import LLMPage

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Exhibit:
    """A model in the gallery."""

    entry: ModelEntry
    """The model, as it was found."""

    page: Any = None
    """What shows it: an element or a component; None if it cannot be shown."""

    fault: str = ""
    """Why it cannot be shown; empty if it can."""

    @property
    def title(self) -> str:
        """Its name, to be read."""
        return self.entry.name.replace("_", " ").capitalize()


def exhibit(entry: ModelEntry) -> Exhibit:
    """Import a model and its page; one that brings no page gets a plain one.

    Args:
        entry: The model.
    """
    try:
        model = entry.load()
        page = import_module(f"{entry.package}.app").page if entry.has_page else LLMPage(model)
    except ConfigError as error:
        return Exhibit(entry, fault=str(error))
    except Exception as error:  # a model is anybody's code; the gallery tells what it raised, and shows the others
        logger.exception("the page of %s cannot be imported", entry.name)
        return Exhibit(entry, fault=f"its page cannot be imported: {type(error).__name__}: {error}")
    return Exhibit(entry, page)


EXHIBITS = [exhibit(entry) for entry in find_models()]
"""All models that are installed."""


@component
def Layout(children: list[Any] = []) -> None:  # noqa: B006 - Solara's signature of a layout
    """Put a page under a bar that leads back to all models.

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
    """List all models; a broken one with its error."""
    solara.Style(CSS)
    with solara.AppBar():
        solara.AppBarTitle("Models whose agents think")
    with solara.Div(classes=["mesa-llm-gallery"]):
        for shown in EXHIBITS:
            with solara.Card(shown.title, margin=0, classes=["mesa-llm-entry"]):
                if shown.fault:
                    solara.Error(shown.fault, dense=True)
                    continue
                solara.Text(shown.entry.question)
                with solara.Link(f"/{shown.entry.name}"):
                    solara.Button("Open", icon_name="mdi-arrow-right", color="primary")


def page_of(shown: Exhibit) -> Any:
    """Make the component that shows a model.

    Args:
        shown: The model.
    """

    @component
    def ModelPage() -> None:
        if shown.fault:
            solara.Error(shown.fault)
        elif isinstance(shown.page, Element):  # all visitors share it: make each one of his own
            shown.page.component(*shown.page.args, **shown.page.kwargs)
        else:
            shown.page()

    return ModelPage


routes = [
    solara.Route("/", component=Gallery, layout=Layout, label="Models"),
    *(solara.Route(shown.entry.name, component=page_of(shown), label=shown.title) for shown in EXHIBITS),
]
"""What Solara serves: the gallery, and each model under its name."""
