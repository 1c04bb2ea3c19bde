"""Texts and failures on pages: as HTML that is always escaped, and without secrets."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
import solara
from reacton import create_context, use_context
from solara.core import component

from mesa_llm.errors import MesaLLMError

logger = logging.getLogger(__name__)

HERE = Path(__file__).parent


@lru_cache(maxsize=64)
def _environment(folder: Path) -> jinja2.Environment:
    loaders = [jinja2.FileSystemLoader(path) for path in (folder, HERE / "templates")]
    return jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def markup(template: str | Path, **values: Any) -> str:
    """Fill in a template; every value is escaped.

    Args:
        template: File of the template; a bare name is one of this package's own.
        **values: What the template names.

    Returns:
        HTML.
    """
    path = HERE / "templates" / template
    return _environment(path.parent).get_template(path.name).render(values)


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


def label_of(name: str) -> str:
    """Write an identifier as words: `n_posts` as `Number of posts`; capital letters stay."""
    text = " ".join(name.removeprefix("n_").split("_")).strip()
    text = f"number of {text}" if name.startswith("n_") else text
    return text[:1].upper() + text[1:]


def fault_text(what: str, fault: Exception, hide: Callable[[str], str]) -> str:
    """Return the message of an exception for a page; one that is not ours also goes to the server's log, with
    traceback.

    Args:
        what: What failed, as the beginning of a sentence.
        fault: The exception.
        hide: Removes secrets.
    """
    if isinstance(fault, MesaLLMError):
        return hide(str(fault))
    text = f"{what} failed with {type(fault).__name__}: {fault}"
    logger.error("%s\n%s", hide(text), hide("".join(traceback.format_exception(fault))))
    return hide(text)
