"""The runs that a page keeps: their folder, how to open them again, and their downloads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import solara
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.render.downloads import Download
from mesa_llm.viz.session.run_settings import ModelFactory
from mesa_llm.viz.session.runs import KeptRun, available_downloads, kept_runs, run_file


class Reopen(NamedTuple):
    """How to open a saved run again."""

    resume: Callable[[KeptRun], None]
    """Resumes it."""

    view: Callable[[KeptRun], None] | None
    """Replays it; None: not available in a classroom."""


@component
def Runs(model: LLMModel, factory: ModelFactory, folder: Path | None, reopen: Reopen) -> None:
    """Show where the run is saved, offer its files, and let a visitor view and resume earlier runs.

    Args:
        model: The model.
        factory: Builds models.
        folder: Folder for runs; None: they are not saved.
        reopen: How to open an earlier run.
    """
    use_page(model).moment()
    n_looks, look = use_state(0)
    path = model.runlog.path
    with solara.Column(gap="8px"):
        if path is not None:
            solara.Text(f"This run is saved in {path}")
            solara.Text(f"Inspect it from a shell: mesa-llm inspect {path}", classes=["mesa-llm-hint"])
        else:
            solara.Text("This run is not saved.")
        Picture("this run", use_memo(lambda: available_downloads(model), [model, model.now]))
        if folder is not None:
            _RecordedRuns(factory, folder, path, reopen).key(f"looked {n_looks} times")
            solara.Button("Refresh", icon_name="mdi-refresh", text=True, on_click=lambda: look(n_looks + 1))


@component
def _RecordedRuns(factory: ModelFactory, folder: Path, current: Path | None, reopen: Reopen) -> None:
    runs = use_memo(lambda: kept_runs(folder, factory, current), [current])
    solara.Text("Earlier runs of this model", classes=["mesa-llm-heading"])
    if not runs:
        solara.Text(f"No earlier runs in {folder}.", classes=["mesa-llm-hint"])
    for run in runs:
        with solara.Row(gap="8px", style={"align-items": "center", "flex-wrap": "wrap"}).key(run.path.name):
            solara.Text(run.description)
            if reopen.view is not None:
                on_click = partial(reopen.view, run)
                solara.Button("Open", icon_name="mdi-eye-outline", on_click=on_click, small=True, text=True)
            on_click = partial(reopen.resume, run)
            solara.Button("Resume", icon_name="mdi-play", on_click=on_click, small=True, text=True)
            name = run.path.name
            Picture(name, [Download("Download", name, partial(run_file, run.path))])
