"""Pictures with clickable agents and download buttons."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any, cast

import solara
from reacton import use_state
from solara.core import component

from mesa_llm.errors import MesaLLMError
from mesa_llm.viz.components.markup import styled
from mesa_llm.viz.render.downloads import KINDS, Download
from mesa_llm.viz.render.network import ClickableSpot


@solara.component_vue("picture.vue")
def _Picture(
    title: str = "",
    src: str = "",
    is_plot: bool = False,
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
    spots: Sequence[ClickableSpot] = (),
    on_pick: Callable[[int], None] | None = None,
    *,
    is_plot: bool = False,
) -> None:
    """Show a picture that fills its card, with files to download.

    Args:
        title: Its title.
        downloads: Files to offer.
        png: The picture; empty: only the files are shown.
        spots: Agents on it; a click on one calls `on_pick`.
        on_pick: Called with the agent's id.
        is_plot: Whether the files show a plot that is drawn above them.
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
            is_plot=bool(png) or is_plot,
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
