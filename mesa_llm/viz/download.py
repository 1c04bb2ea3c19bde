"""Pictures on a page, and files to download: plots, measures, runs."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import solara
from reacton import use_state
from solara.core import component

from mesa_llm.errors import MesaLLMError
from mesa_llm.viz.markup import styled

KINDS = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "png": "image/png",
    "sqlite": "application/vnd.sqlite3",
    "svg": "image/svg+xml",
    "zip": "application/zip",
}
"""Ending of a file's name → its media type."""


class Spot(NamedTuple):
    """Position of an agent on a picture."""

    agent_id: int
    """Mesa `unique_id` of the agent."""

    name: str
    """Its name."""

    x: float
    """Distance from the left edge, in percent of the width."""

    y: float
    """Distance from the upper edge, in percent of the height."""


@dataclass(frozen=True)
class Download:
    """A file that a page offers."""

    label: str
    """Label of its button."""

    name: str
    """Name of the file."""

    content: Callable[[], bytes]
    """Makes its contents, when it is downloaded."""


def file_name(*parts: str, suffix: str) -> str:
    """Return the name of a file: letters and digits of any language, with dashes between.

    Args:
        *parts: Texts to join.
        suffix: Ending, without the dot.
    """
    stem = re.sub(r"[\W_]+", "-", " ".join(parts)).strip("-").lower()
    return f"{stem[:100] or 'file'}.{suffix}"


@solara.component_vue("picture.vue")
def _Picture(
    title: str = "",
    src: str = "",
    spots: Sequence[dict[str, Any]] = (),
    labels: Sequence[str] = (),
    file: dict[str, str] | None = None,
    event_pick: Callable[[int], None] | None = None,
    event_save: Callable[[str], None] | None = None,
    event_saved: Callable[[str], None] | None = None,
) -> None:
    """Show a picture with clickable spots and files to download; see `picture.vue`."""


@component
def Picture(
    title: str,
    downloads: Sequence[Download],
    png: bytes = b"",
    spots: Sequence[Spot] = (),
    on_pick: Callable[[int], None] | None = None,
) -> None:
    """Show a picture that fills its card, and offer files to download.

    Args:
        title: Its title.
        downloads: Files to offer.
        png: The picture; empty: none, only the files.
        spots: Agents on it; a click on one calls `on_pick`.
        on_pick: Called with the agent's id.
    """
    file, offer = use_state(cast("dict[str, str] | None", None))
    fault, set_fault = use_state("")

    def save(label: str) -> None:
        wanted = next((download for download in downloads if download.label == label), None)
        if wanted is None:
            return
        try:
            content = base64.b64encode(wanted.content()).decode()
        except (MesaLLMError, OSError) as error:
            set_fault(str(error))
            return
        set_fault("")
        kind = KINDS.get(wanted.name.rpartition(".")[2], "application/octet-stream")
        offer({"name": wanted.name, "type": kind, "content": content})

    def pick(agent_id: Any) -> None:
        if on_pick is not None and type(agent_id) is int:
            on_pick(agent_id)

    with styled():
        _Picture(
            title=title,
            src=f"data:image/png;base64,{base64.b64encode(png).decode()}" if png else "",
            spots=[spot._asdict() for spot in spots],
            labels=[download.label for download in downloads],
            file=file,
            event_pick=pick,
            event_save=save,
            event_saved=lambda _: offer(None),
        )
        if fault:
            solara.Error(fault, dense=True)
