"""HTML on pages, and the style sheet that goes with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import solara
from reacton import create_context, use_context
from solara.core import component

from mesa_llm.engine.activation import llm_agents
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.render.markup import markup
from mesa_llm.viz.render.mesa_adapter import has_decided

PICK = re.compile(r"([a-z]+) (\d{1,15})(?: (\d{1,15}))?", re.ASCII)
"""What a browser reports of a click: kind, number and perhaps a step."""


@solara.component_vue("style.vue")
def _StyleSheet() -> None:
    """Place the style sheet of all pages, at most once a page."""


_has_style = create_context(False)
"""Whether the page has placed the style sheet."""


def place_style() -> None:
    """Place the style sheet of all pages, for everything within the calling component."""
    _StyleSheet()
    _has_style.provide(True)


@contextmanager
def styled() -> Generator[None]:
    """Place the style sheet with the contents of the block, unless the page has placed it already."""
    if use_context(_has_style):
        yield
        return
    with solara.Div():
        _StyleSheet()
        yield


@component
def Markup(template: str | Path, **values: Any) -> None:
    """Show a rendered template; all values are escaped.

    Args:
        template: File of the template; a bare name is one of this package's own.
        **values: Variables of the template.
    """
    with styled():
        solara.HTML(tag="div", unsafe_innerHTML=markup(template, **values), classes=["mesa-llm"])


@solara.component_vue("clickable.vue")
def _Clickable(html: str = "", event_pick: Callable[[str], None] | None = None) -> None:
    """Show HTML with elements to click; see `clickable.vue`."""


@component
def Clickable(
    template: str | Path, model: Any, on_pick: Callable[[str, int], None] | None = None, **values: Any
) -> None:
    """Show a rendered template in which a click on an agent opens it in the inspector.

    An element is clicked for an agent where the template writes `{{ pick(agent_id, step) }}` into its tag; without a
    step, the inspector shows the agent's latest one. A button inside makes the same possible by keyboard.

    Args:
        template: File of the template; a bare name is one of this package's own.
        model: The model of the agents.
        on_pick: Called with the kind and number of a clicked element that has `data-pick="KIND NUMBER"`; None: it has
            no others than agents.
        **values: Variables of the template; all values are escaped.
    """
    page = use_page(model)

    def click(kind: str, number: int, step: int) -> None:
        if kind != "agent":
            if on_pick is not None:
                on_pick(kind, number)
        elif any(agent.unique_id == number for agent in llm_agents(model)) or has_decided(model, number):
            page.inspect_agent(number, step)

    ClickableHTML(markup(template, **values), click)


@component
def ClickableHTML(html: str, on_pick: Callable[[str, int, int], None]) -> None:
    """Show HTML in which elements with `data-pick="KIND NUMBER"` or `data-pick="KIND NUMBER STEP"` can be clicked.

    Args:
        html: The HTML; values in it must be escaped.
        on_pick: Called with the kind, number and step of the clicked element; the step is -1 where there is none.
    """

    def pick(what: Any) -> None:
        if (clicked := PICK.fullmatch(str(what))) is not None:
            on_pick(clicked[1], int(clicked[2]), int(clicked[3] or -1))

    with styled():
        _Clickable(html=html, event_pick=pick)
