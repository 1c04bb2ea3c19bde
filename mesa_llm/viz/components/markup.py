"""Texts and failures on pages: as HTML that is always escaped, and without secrets."""

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
    """Place the style sheet of all pages; a page has it once, however many components place it."""


_has_style = create_context(False)
"""Whether the page has placed the style sheet."""


def bring_style() -> None:
    """Place the style sheet of all pages, for everything within the calling component."""
    _StyleSheet()
    _has_style.provide(True)


@contextmanager
def styled() -> Generator[None]:
    """Place the style sheet together with the contents of the block, unless the page has placed it."""
    if use_context(_has_style):
        yield
        return
    with solara.Div():
        _StyleSheet()
        yield


@component
def Markup(template: str | Path, **values: Any) -> None:
    """Show a filled-in template; every value is escaped.

    Args:
        template: File of the template; a bare name is one of this package's own.
        **values: What the template names.
    """
    with styled():
        solara.HTML(tag="div", unsafe_innerHTML=markup(template, **values), classes=["mesa-llm"])


@solara.component_vue("clickable.vue")
def _Clickable(html: str = "", event_pick: Callable[[str], None] | None = None) -> None:
    """Show HTML with elements to click; see `clickable.vue`."""


@component
def Clickable(template: str | Path, on_pick: Callable[[str, int], None], **values: Any) -> None:
    """Show a filled-in template, in which anything with `data-pick="KIND NUMBER"` can be clicked.

    Args:
        template: File of the template; a bare name is one of this package's own.
        on_pick: Called with the kind and the number of what was clicked.
        **values: What the template names; every value is escaped.
    """
    ClickableHTML(markup(template, **values), on_pick)


@component
def ClickableHTML(html: str, on_pick: Callable[[str, int], None]) -> None:
    """Show HTML in which anything with `data-pick="KIND NUMBER"` can be clicked.

    Args:
        html: The HTML, in which every value is escaped.
        on_pick: Called with the kind and the number of what was clicked.
    """

    def pick(what: Any) -> None:
        kind, _, number = str(what).partition(" ")
        if kind.isidentifier() and number.isascii() and number.isdecimal() and len(number) < 16:
            on_pick(kind, int(number))

    with styled():
        _Clickable(html=html, event_pick=pick)
