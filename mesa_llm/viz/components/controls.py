"""Buttons that run a model or play a recording, the status of the run, and its cost, estimated and so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import solara
from reacton import ipyvuetify as vuetify
from reacton import use_memo, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.engine.engine import Engine
from mesa_llm.errors import ConfigError
from mesa_llm.model.cost_estimate import CAVEAT
from mesa_llm.model.recording import Recording
from mesa_llm.records import Usage
from mesa_llm.text import counted, noun_for
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import PageState, use_page
from mesa_llm.viz.render.mesa_adapter import runlog_of
from mesa_llm.viz.session import runs
from mesa_llm.viz.session.cost_estimate import summary
from mesa_llm.viz.session.run_settings import RunSettings
from mesa_llm.viz.session.runner import PLAY_S, Runner
from mesa_llm.viz.session.session import PageSession
from mesa_llm.viz.session.status import description_of, done, playback_status, progress, reset_warning, status

PAUSES = MappingProxyType({"none": 0.0, "0.1 s": 0.1, "0.5 s": 0.5, "1 s": 1.0, "2 s": 2.0, "5 s": 5.0})
"""Pause between two steps while playing: label → seconds."""

ESTIMATED_STEPS: tuple[int, ...] = (1, 10, 50, 100)
"""Numbers of steps to estimate the cost for."""


@component
def Controls(
    session: PageSession, choice: solara.Reactive[RunSettings], labels: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Show the current step with the decisions, failures and cost so far, the buttons, and what Step will use.

    Args:
        session: The session.
        choice: Settings that the visitor has chosen.
        labels: Parameter → its label.
    """
    page = use_page(session)
    page.use_moment()
    is_asked, confirm = use_state(False)
    runner = session.runner
    calls = 0 if runner is None else runner.model.usage.calls
    is_changed = choice.value != session.built_from and not session.is_untouched

    def reset() -> None:
        confirm(False)
        session.build(choice.value)

    with solara.Div():  # not a column, which would leave gaps
        with solara.Div(classes=["mesa-llm-run"]):
            if runner is not None:
                solara.Text(f"Step {done(runner.model)}", classes=["mesa-llm-time"])
            with solara.Div(classes=["mesa-llm-buttons"]):
                if runner is not None:
                    _Buttons(page, session, runner, choice, session.state)
                solara.Button(  # stays in place while the lines below change: a new button would miss a click
                    "Reset",
                    icon_name="mdi-restore",
                    on_click=(lambda: confirm(True)) if calls and not is_asked else reset,
                    color="warning" if is_changed else None,
                    outlined=not is_changed,
                    disabled=is_asked,
                )
            if runner is not None:
                CostMeter(runner.model)
        if is_asked and runner is not None:
            with solara.Warning(reset_warning(runner.model), dense=True, icon=False):
                solara.Button("Reset anyway", on_click=reset, color="warning", small=True)
                solara.Button("Cancel", on_click=lambda: confirm(False), text=True, small=True)
        if runner is not None:
            _Progress(progress(runner) if runner.busy else False)
            with solara.Div(classes=["mesa-llm-said"]):
                solara.Text(status(runner), classes=["mesa-llm-status"])
                solara.Text(decided_by(session.built_from, session.llm_labels), classes=["mesa-llm-hint"])
                if (left := session.previous.log) is not None and not done(runner.model):
                    text = f"Your last run was saved: resume it on the Data tab ({left.name})."
                    solara.Text(text, classes=["mesa-llm-hint"])
        if is_changed:
            changes = "; ".join(choice.value.changes_from(session.built_from, session.llm_labels, labels))
            text = f"Step goes on with the settings of this run. Press Reset to apply changes: {changes}."
            solara.Text(text, classes=["mesa-llm-changed"])


@component
def _Progress(value: float | bool) -> None:
    with solara.Div(classes=["mesa-llm-progress"]):
        vuetify.ProgressLinear(
            value=0 if value is True else value,
            indeterminate=value is True,
            active=value is not False,
            attributes={"aria-label": "Progress of the step"},
        )


def decided_by(settings: RunSettings, llm_labels: Mapping[str, str]) -> str:
    """Describe who decides in a run, and its seed.

    Args:
        settings: Settings of the run.
        llm_labels: Language model → its label.
    """
    fixed = settings.parameters.get("llm")  # by the page, in its model_params
    decider = (
        settings.decider(llm_labels) if fixed is None else fixed if isinstance(fixed, str) else "the page's choice"
    )
    number = str(settings.parameters.get("rng", settings.seed)).strip()
    return f"Decisions by {decider}; {f'seed {number}' if number else 'a new seed each time'}."


@component
def PlaySpeed(session: PageSession) -> None:
    """Let a visitor set the pause between two steps while playing.

    Args:
        session: The session.
    """
    pause_s = PLAY_S if session.runner is None else session.runner.pause_s
    pause, choose = use_state(next((label for label, each_s in PAUSES.items() if each_s == pause_s), ""))

    def change(label: str) -> None:
        choose(label)
        if session.runner is not None:
            session.runner.pause_s = PAUSES[label]

    with solara.Div(style={"margin-top": "14px"}):
        solara.Select("Pause between steps while playing", list(PAUSES), pause, change, dense=True)


@component
def CostEstimateCard(session: PageSession) -> None:
    """Show an estimate of what the first steps of a run would cost.

    Args:
        session: The session.
    """
    page = use_page(session)
    page.moment()
    steps, choose = use_state(10)
    estimate, runner = session.cost_estimator, session.runner
    if not estimate.is_wanted or runner is None or done(runner.model) or runner.busy:
        return
    with solara.Column(gap="6px"):
        solara.Text("Estimated cost", style={"font-weight": "600"})
        if estimate.steps:
            solara.Text(f"Estimating {counted(estimate.steps, 'step')} …")
        elif estimate.estimate is not None:
            solara.Text(summary(estimate.estimate, is_priced=estimate.is_priced), classes=["mesa-llm-preview"])
        if estimate.error:
            solara.Warning(f"The cost cannot be estimated: {estimate.error}", dense=True)
        with solara.Row(gap="10px", style={"align-items": "center"}):
            with solara.Div(style={"width": "5rem"}):
                solara.Select("Steps", list(ESTIMATED_STEPS), steps, choose, dense=True)
            on_click = page.handler(estimate.estimate_steps, steps)
            solara.Button("Estimate", on_click=on_click, disabled=bool(estimate.steps), small=True)
        with solara.Details("What the estimate leaves out"):
            solara.Text(CAVEAT, classes=["mesa-llm-hint"])


@component
def _Buttons(
    page: PageState,
    session: PageSession,
    runner: Runner,
    choice: solara.Reactive[RunSettings],
    state: tuple[object, ...],
) -> None:
    is_over = not runner.model.running

    def start(steps: int | None) -> None:
        session.start(choice.peek(), steps)
        page.update_text()

    with solara.Div(classes=["mesa-llm-buttons"]):
        solara.Button(
            "Step",
            icon_name="mdi-step-forward",
            on_click=lambda: start(1),
            disabled=runner.busy or is_over,
            color="primary",
        )
        play_button(page, runner, lambda: start(None), is_over=is_over)
        solara.Button(
            "Stop",
            icon_name="mdi-stop",
            on_click=page.handler(runner.stop),
            disabled=not runner.busy or runner.stopping,
            color="error",
            outlined=True,
        )


def play_button(page: PageState, runner: Runner, play: Callable[[], None], *, is_over: bool) -> None:
    """Place the Play or Pause button.

    Args:
        page: The state of the page.
        runner: The runner.
        play: Called when Play is pressed.
        is_over: Whether the run has ended.
    """
    if runner.playing:
        solara.Button("Pause", icon_name="mdi-pause", on_click=page.handler(runner.pause), color="primary")
    else:
        solara.Button(
            "Play",
            icon_name="mdi-play",
            on_click=play,
            disabled=runner.busy or is_over,
            color="primary",
        )


@component
def Alarms(session: PageSession) -> None:
    """Show errors at the top of a page: no model, a failed step, or a step in which most decisions failed.

    Args:
        session: The session.
    """
    use_page(session).moment()
    runner = session.runner
    for fault in filter(None, (session.error, *((runner.error, runner.alarm) if runner else ()))):
        solara.Error(fault)


@component
def Playback(session: PageSession, recording: Recording, leave: Callable[[], None]) -> None:
    """Let a visitor go back and forth in a recorded run.

    Args:
        session: The session.
        recording: The run.
        leave: Called when the visitor wants a new run.
    """
    page = use_page(session)
    page.use_moment()
    description = use_memo(lambda: description_of(recording), [recording])
    runner = session.runner
    if runner is None:
        return
    is_on_its_way = runner.busy and not runner.playing and not runner.finishing
    last = recording.last_step
    step = session.target if is_on_its_way else done(runner.model)

    def go(to: int) -> None:
        page.handler(session.go_to, min(max(to, 0), last))()

    with solara.Div():
        with solara.Div(classes=["mesa-llm-run"]):
            solara.Text(f"Step {step}", classes=["mesa-llm-time"])
            with solara.Div(classes=["mesa-llm-buttons"]):
                solara.Button("Back", icon_name="mdi-chevron-left", on_click=lambda: go(step - 1), disabled=step == 0)
                play_button(page, runner, page.handler(runner.start), is_over=step >= last)
                solara.Button(
                    "Next", icon_name="mdi-chevron-right", on_click=lambda: go(step + 1), disabled=step >= last
                )
                solara.Button("Start a new run", icon_name="mdi-restore", on_click=leave, outlined=True)
            with solara.Div(classes=["mesa-llm-slide"]):
                _Steps(step, last, go).key(f"step {step}")
            CostMeter(runner.model)
        _Progress(is_on_its_way)
        with solara.Div(classes=["mesa-llm-said"]):
            solara.Text(playback_status(runner, done(runner.model), last), classes=["mesa-llm-status"])
            solara.Text(
                "This is a recorded run: no language model is called, and nothing is spent.", classes=["mesa-llm-hint"]
            )
            solara.Text(description, classes=["mesa-llm-hint", "mesa-llm-narrow"])


@component
def _Steps(step: int, last: int, go: Callable[[int], None]) -> None:
    """Show a slider that takes effect when it is released."""

    def let_go(*event: Any) -> None:
        go(int(event[-1]))

    slider = vuetify.Slider(
        v_model=step, min=0, max=last, step=1, label=f"0 to {last}", inverse_label=True, thumb_label=True, dense=True
    )
    use_event(slider, "change", let_go)


class Tile(NamedTuple):
    """One number on display."""

    number: str
    """The number."""

    what: str
    """What it counts."""

    mood: str = ""
    """`failed` highlights it as a failure."""


@component
def CostMeter(model: Any) -> None:
    """Show the decisions, failures, replies, tokens and dollars of a run, even during a step.

    Args:
        model: The model, which may be a plain Mesa model.
    """
    use_page(model).moment()
    engine = Engine.of(model)
    tiles = (
        tiles_of(Usage(), 0)  # no agent has decided yet
        if engine is None
        else tiles_of(
            engine.usage,
            engine.decisions,
            engine.human_timeouts,
            engine.reprompted,
            engine.parsed_leniently,
            {
                "refused by the world": getattr(model, "n_refused", 0),
                "declined by the model": engine.declined,
                "decided without a request": engine.not_asked,
            },
            is_priced=is_priced(model, engine.usage),
        )
    )
    Markup("cost.html", tiles=tiles)


def is_priced(model: Any, usage: Usage) -> bool:
    """Check whether the price of a run's replies is known, as far as its latest ones tell.

    Args:
        model: The model.
        usage: Usage of the run.
    """
    runlog = runlog_of(model)
    if usage.dollars or not usage.calls or runlog is None:
        return True
    with suppress(ConfigError):  # Reset may just have closed it
        return runs.is_priced(runlog)
    return True


def tiles_of(
    usage: Usage,
    decisions: int,
    n_absent: int = 0,
    reprompted: int = 0,
    parsed_leniently: int = 0,
    others: Mapping[str, int] = MappingProxyType({}),
    *,
    is_priced: bool = True,
) -> list[Tile]:
    """Return the numbers of a run.

    Args:
        usage: Usage of the run.
        decisions: Number of decisions.
        n_absent: Number of decisions that people left to the rule twin.
        reprompted: Number of decisions whose first reply was unusable.
        parsed_leniently: Number of decisions whose reply had to be repaired.
        others: What else is counted beside the results → its number.
        is_priced: Whether the price of its replies is known.
    """
    n_failed = usage.failures - n_absent
    price = (f"${usage.dollars:,.4f}" if usage.dollars else "$0", "spent") if is_priced else ("–", "price unknown")
    tiles = [
        _count(decisions, "decision"),
        Tile(f"{n_failed:,}", "failed", "failed" if n_failed else ""),
        _count(usage.calls, "reply", "replies"),
        _count(usage.tokens, "token"),
        Tile(*price),
    ]
    more = {
        "retried": reprompted,
        "repaired replies": parsed_leniently,
        "left to rule twins": n_absent,
        "replayed": usage.replayed,
        **others,
    }
    return [*tiles, *(Tile(f"{count:,}", what) for what, count in more.items() if count)]


def _count(count: int, noun: str, plural: str = "") -> Tile:
    return Tile(f"{count:,}", noun_for(count, noun, plural))
