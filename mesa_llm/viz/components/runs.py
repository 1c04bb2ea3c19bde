"""The runs that a page keeps: how to open them again, their reports, and their downloads."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import solara
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.experiments.runs.recordings import RecordedRun, figures_of
from mesa_llm.model.model import LLMModel
from mesa_llm.model.recording import Recording
from mesa_llm.reports import export
from mesa_llm.viz.components.interventions import Progress
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.render.downloads import Download, file_name
from mesa_llm.viz.session.interventions import WRITE, InterventionRunner
from mesa_llm.viz.session.run_settings import ModelFactory
from mesa_llm.viz.session.runs import KeptRun, available_downloads, kept_runs, recording_facts, run_file
from mesa_llm.viz.session.rw_lock import steady
from mesa_llm.viz.session.session import PageSession
from mesa_llm.viz.session.status import done

RULE, AGENTS_MODEL = "by rules", "by the agents' language model"
"""Authors of a report, as labelled on the page."""


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
            _SavedRuns(factory, folder, path, reopen).key(f"looked {n_looks} times")
            solara.Button("Refresh", icon_name="mdi-refresh", text=True, on_click=lambda: look(n_looks + 1))


@component
def RecordedRuns(session: PageSession, runs: Sequence[RecordedRun], watch: Callable[[RecordedRun], None]) -> None:
    """Offer to play the recorded runs that come with a model, until the visitor begins a run.

    Args:
        session: The session.
        runs: The runs, which have been recorded.
        watch: Called with the run that the visitor chooses.
    """
    summaries = use_memo(lambda: [figures_of(run.file).summary for run in runs], [])
    use_page(session).moment()
    runner = session.runner
    if runner is not None and (runner.busy or done(runner.model)):
        return
    with solara.Div(classes=["mesa-llm-recorded"]):
        for run, summary in zip(runs, summaries, strict=True):
            label = "Watch the recorded run" if len(runs) == 1 else f"Watch: {run.name.replace('_', ' ')}"
            icon, on_click = "mdi-play-circle-outline", partial(watch, run)
            solara.Button(label, icon_name=icon, on_click=on_click, color="primary", outlined=True, small=True)
            text = f"{run.title}. {summary.rstrip('.')}. Replayed from a file: no language model is called."
            solara.Text(text, classes=["mesa-llm-hint"])


@component
def RecordingFacts(recording: Recording, model: LLMModel, title: str, labels: Mapping[str, str]) -> None:
    """Show which recorded run it is that the page replays.

    Args:
        recording: The run.
        model: The model that was rebuilt from it.
        title: What is seen in it; empty: unknown.
        labels: Parameter → its label.
    """
    facts = use_memo(lambda: recording_facts(recording, type(model), title, labels), [recording])
    Markup("recording.html", facts=facts)


@component
def _SavedRuns(factory: ModelFactory, folder: Path, current: Path | None, reopen: Reopen) -> None:
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


@component
@llm_models_only
def ReportCard(model: LLMModel) -> None:
    """Let a visitor request a report of the run so far, and download its tables.

    Args:
        model: The model.
    """
    use_page(model).moment()
    runner = InterventionRunner.of(model)
    writers = [RULE, AGENTS_MODEL] if writer_of(model) else [RULE]
    by, choose = use_state(RULE)
    solara.Text(
        "Verdict, findings, coalitions and story, based on the tables of the run so far. A language model is called "
        "once, when you press the button, and writes the report from the rule-based findings.",
        classes=["mesa-llm-hint"],
    )
    with solara.Row(gap="12px", style={"align-items": "center", "flex-wrap": "wrap"}):
        if len(writers) > 1:
            solara.ToggleButtonsSingle(by, values=writers, on_value=choose, dense=True)
        writer = writer_of(model) if by == AGENTS_MODEL else "rule"
        solara.Button(
            "Write the report",
            color="primary",
            disabled=bool(runner.working) or not model.time,
            on_click=lambda: runner.write(model, writer),
        )
    Progress(model, runner, WRITE)
    name = type(model).__name__
    files = [Download("Tables and graph (zip)", file_name(name, "tables", suffix="zip"), lambda: zipped(model))]
    report = runner.report
    if report is not None:
        solara.HTML(tag="div", unsafe_innerHTML=report.fragment(), classes=["mesa-llm", "mesa-llm-readme"])
        files += [
            Download("HTML", file_name(name, "report", suffix="html"), lambda: report.html().encode()),
            Download("Markdown", file_name(name, "report", suffix="md"), lambda: report.markdown().encode()),
        ]
    if model.time:
        Picture("Report", files)


def writer_of(model: LLMModel) -> str:
    """Return the name of the one language model of all agents; empty if there is none."""
    llm = model.llm
    return llm if isinstance(llm, str) and llm not in ("rule", "random", "human") else ""


def zipped(model: LLMModel) -> bytes:
    """Return the exports of a run so far as a ZIP file."""
    buffer = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        with steady(model):
            counts = export(model, folder)
        for name in counts:
            archive.write(Path(folder) / name, name)
    return buffer.getvalue()
