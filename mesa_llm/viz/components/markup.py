"""HTML on pages, and the style sheet that goes with it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import solara
from reacton import create_context, use_context
from solara.core import component

from mesa_llm.viz.render.markup import markup


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
def Clickable(template: str | Path, on_pick: Callable[[str, int], None], **values: Any) -> None:
    """Show a rendered template in which elements with `data-pick="KIND NUMBER"` can be clicked.

    Args:
        template: File of the template; a bare name is one of this package's own.
        on_pick: Called with the kind and number of the clicked element.
        **values: Variables of the template; all values are escaped.
    """
    ClickableHTML(markup(template, **values), on_pick)


@component
def ClickableHTML(html: str, on_pick: Callable[[str, int], None]) -> None:
    """Show HTML in which elements with `data-pick="KIND NUMBER"` can be clicked.

    Args:
        html: The HTML; values in it must be escaped.
        on_pick: Called with the kind and number of the clicked element.
    """

    def pick(what: Any) -> None:
        kind, _, number = str(what).partition(" ")
        if kind.isidentifier() and number.isascii() and number.isdecimal() and len(number) < 16:
            on_pick(kind, int(number))

    with styled():
        _Clickable(html=html, event_pick=pick)
