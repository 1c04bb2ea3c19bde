"""The tab Experiment: plan an audit of a model, run it, and read what it found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import solara
from reacton import use_effect, use_memo, use_state
from solara.core import component

from mesa_llm.charts.chart import Chart
from mesa_llm.charts.style import picture_of
from mesa_llm.experiments.audits.claim_findings import forest_chart
from mesa_llm.text import counted, figure_text
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.picture import Picture
from mesa_llm.viz.components.plots import ChartView
from mesa_llm.viz.components.run_settings import NumberField
from mesa_llm.viz.render.downloads import Download, file_name
from mesa_llm.viz.render.trace import Row
from mesa_llm.viz.session.audit_runner import AuditOffer, AuditRunner
from mesa_llm.viz.session.audits import KeptAudit, SavedClaim, change_cells, control_cells, kept_audits
from mesa_llm.viz.session.cost_estimate import price_of
from mesa_llm.viz.session.run_settings import WITHOUT_TEXT, RunSettings
from mesa_llm.viz.session.session import PageSession

MAX_LABEL = 60
"""Maximum number of characters of a name in a plot."""


@component
def Experiment(session: PageSession, auditor: AuditRunner) -> None:
    """Let a visitor audit a measure of the model, and show what earlier audits found.

    Args:
        session: The session.
        auditor: Its audits.
    """
    page = use_page(session)
    page.moment()
    choice = session.built_from
    use_effect(lambda: auditor.prepare(choice), [choice, auditor.form.steps, auditor.working])
    solara.Text(
        "Is a result of this model a finding, or an artefact of how its prompts were written? An audit repeats the run "
        "under changes that should not matter, with the same seeds, and says which of them move the result. It takes "
        "the parameters and the language model that the page shows now.",
        classes=["mesa-llm-hint"],
    )
    if auditor.offer is not None and (auditor.is_current(choice) or auditor.total):
        _Form(auditor, auditor.offer, choice, page.update_text)
    _Progress(auditor, page.handler(auditor.stop))
    if auditor.found is not None:
        _Findings(auditor.found).key(f"{auditor.found.folder} {auditor.found.written}")
    if session.folder is not None:
        finished = auditor.found if auditor.found is not None and not auditor.total else None
        _Earlier(auditor, session, page.update_text).key(f"after {finished}")


@component
def _Form(auditor: AuditRunner, offer: AuditOffer, choice: RunSettings, update: Callable[[], None]) -> None:
    use_page(auditor).moment()
    form = auditor.form
    is_free = choice.llm_kind in WITHOUT_TEXT
    is_priced = auditor.is_priced(choice)
    use_effect(lambda: auditor.estimate(choice) if is_priced else None, [choice, form, auditor.working])

    def change(**fields: Any) -> None:
        auditor.change(**fields)
        update()

    if not offer.measures:
        solara.Info("This model has no results that are numbers, so there is nothing to audit.", dense=True)
        return
    measure = form.measure if form.measure in offer.measures else offer.measures[0]
    with solara.Div(classes=["mesa-llm-fields"]):
        solara.Select("Measure", list(offer.measures), measure, lambda name: change(measure=name))
        NumberField("Smallest change that matters", form.smallest_effect, lambda n: change(smallest_effect=n))
        NumberField("Seeds", form.seeds, lambda n: change(seeds=int(n or 0)))
        NumberField("Steps of a run, at most", form.steps, lambda n: change(steps=int(n or 0)))
        if not is_free and auditor.access is None:
            NumberField("Maximum live requests", auditor.max_calls(), lambda n: change(max_calls=int(n or 0) or None))
        if is_priced and auditor.access is None:
            dollars = form.max_dollars or choice.max_dollars
            NumberField("Maximum cost (US$)", dollars, lambda n: change(max_dollars=n or None))
    _Dimensions(offer, form.left_out, lambda names: change(left_out=names))
    solara.Text(_extent(auditor, offer, choice))
    if not is_free and auditor.access is not None:
        solara.Text("All pages of this server share one budget and its limits.", classes=["mesa-llm-hint"])
    is_known = auditor.is_estimated(choice) if is_priced else True
    is_off = bool(auditor.working) or not auditor.n_runs() or not is_known

    def run() -> None:
        auditor.run(choice)
        update()

    with solara.Row(gap="12px"):
        solara.Button("Run the audit", icon_name="mdi-play", color="primary", disabled=is_off, on_click=run)


@component
def _Dimensions(offer: AuditOffer, left_out: frozenset[str], choose: Callable[[frozenset[str]], None]) -> None:
    """Let a visitor choose the dimensions; each shows its number of changes."""
    solara.Text("Dimensions, with the number of changes in each", classes=["mesa-llm-heading"])
    with solara.Div(classes=["mesa-llm-choices"]):
        for name, n in offer.dimensions.items():

            def turn(is_in: bool, name: str = name) -> None:
                choose(left_out - {name} if is_in else left_out | {name})

            solara.Checkbox(label=f"{name} ({n})", value=name not in left_out, on_value=turn).key(name)


def _extent(auditor: AuditRunner, offer: AuditOffer, choice: RunSettings) -> str:
    """Return how many runs and decisions an audit makes, and what it costs."""
    runs = auditor.n_runs()
    if not runs:
        return "An audit needs 2 seeds and 1 step or more."
    chosen = sum(n for name, n in offer.dimensions.items() if name not in auditor.form.left_out)
    text = (
        f"{counted(chosen, 'change')} of a run with {offer.setting.llm}; with controls and all seeds "
        f"{counted(runs, 'run')}, about {auditor.expected_decisions():,} decisions."
    )
    if choice.llm_kind in WITHOUT_TEXT:
        return f"{text} No language model is called."
    if auditor.cost is not None and auditor.is_estimated(choice):
        price = price_of(auditor.cost, is_priced=auditor.is_priced(choice))
        return f"{text} Estimated: {counted(auditor.cost.requests, 'request')}, {price}."
    return text


@component
def _Progress(auditor: AuditRunner, stop: Callable[[], None]) -> None:
    """Show how far the current task is, and how the last one ended."""
    use_page(auditor).moment()
    if auditor.working:
        solara.ProgressLinear(100 * auditor.done / auditor.total if auditor.total else True)
    if auditor.total:
        with solara.Row(gap="12px", style={"align-items": "center"}):
            text = "Stopping …" if auditor.stopping else f"{auditor.done:,} of {counted(auditor.total, 'run')}"
            solara.Text(text, classes=["mesa-llm-status"])
            solara.Button(
                "Stop the audit",
                icon_name="mdi-stop",
                color="error",
                outlined=True,
                disabled=auditor.stopping,
                on_click=stop,
            )
    elif auditor.working:
        solara.Text(auditor.working, classes=["mesa-llm-status"])
    for text, show in ((auditor.error, solara.Error), (auditor.note, solara.Success)):
        if text:
            show(text, dense=True)


@component
def _Findings(found: KeptAudit) -> None:
    """Show the report of an audit."""
    saved = found.saved
    files = found.downloads()
    solara.Text(saved.description or f"{saved.model} with {saved.llm}", classes=["mesa-llm-hint"])
    for index, claim in enumerate(saved.claims):
        _Claim(claim).key(f"claim {index}")
    Markup("audit_notes.html", notes=saved.notes, methods=saved.methods)
    Picture("Audit", files)


@component
def _Claim(claim: SavedClaim) -> None:
    """Show the verdict on a claim, its forest plot, and its tables."""
    Markup("audit_claim.html", claim=claim, smallest_effect=figure_text(claim.smallest_effect))
    if claim.perturbations:
        chart = saved_chart(claim)

        def file(kind: str) -> bytes:
            return chart.table().encode() if kind == "csv" else picture_of(chart.figure(), kind)

        plots = [
            Download(kind.upper(), file_name("audit", claim.name, suffix=kind), partial(file, kind))
            for kind in ("png", "svg", "csv")
        ]
        with solara.Div(classes=["mesa-llm-forest"]):
            ChartView(chart)
            Picture(chart.title, plots, is_plot=True)
    for columns, rows in (change_cells(claim), control_cells(claim)):
        if rows:
            Markup("table.html", columns=columns, rows=[Row(row) for row in rows], more=0, nothing="")


def saved_chart(claim: SavedClaim) -> Chart:
    """Return the forest plot of a claim that was read from a file.

    Args:
        claim: The claim.
    """
    rows = [(_label(one.perturbation), one) for one in claim.perturbations]
    return forest_chart(_label(claim.measure or claim.name), claim.smallest_effect, rows)


def _label(text: str) -> str:
    """Return a text from a file on one line, without letters that cannot be written."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= MAX_LABEL else f"{line[: MAX_LABEL - 1]}…"


@component
def _Earlier(auditor: AuditRunner, session: PageSession, update: Callable[[], None]) -> None:
    """List the finished audits of the model, and open them."""
    n_looks, look = use_state(0)
    folder, name = session.folder, auditor.kind.__name__
    audits = use_memo(lambda: [] if folder is None else kept_audits(folder, name), [n_looks])

    def open_(one: KeptAudit) -> None:
        auditor.show(one)
        update()

    solara.Text("Finished audits of this model", classes=["mesa-llm-heading"])
    if not audits:
        solara.Text(f"No finished audits in {folder}.", classes=["mesa-llm-hint"])
    for one in audits:
        with solara.Row(gap="8px", style={"align-items": "center", "flex-wrap": "wrap"}).key(str(one.folder)):
            solara.Text(one.description)
            on_click = partial(open_, one)
            solara.Button("Open", icon_name="mdi-eye-outline", on_click=on_click, small=True, text=True)
    with solara.Row():
        solara.Button("Refresh", icon_name="mdi-refresh", text=True, on_click=lambda: look(n_looks + 1))
