"""The buttons that run a model, and what the run does now, in words."""

from __future__ import annotations

from collections.abc import Callable

import solara
from reacton import use_effect
from solara.core import component

from mesa_llm.model import LLMModel
from mesa_llm.viz.parameters import Choice
from mesa_llm.viz.runner import Runner
from mesa_llm.viz.session import Session
from mesa_llm.viz.ticker import moment, words
from mesa_llm.wording import counted


@component
def Controls(session: Session, chosen: solara.Reactive[Choice]) -> None:
    """Show the buttons, the time, the progress of the step, and errors.

    Args:
        session: What is run.
        chosen: What Reset builds from.
    """
    shown = moment()
    use_effect(lambda: setattr(session, "shown", shown), [shown])  # runs once all of the page is drawn
    runner = session.runner
    with solara.Column(gap="8px"):
        if runner is not None:
            solara.Text(f"Step {done(runner.model)}", classes=["mesa-llm-time"])
            _Buttons(runner, session.state)
        is_changed = chosen.value != session.built_from
        solara.Button(
            "Reset",
            icon_name="mdi-restore",
            on_click=lambda: session.build(chosen.value),
            color="warning" if is_changed else None,
            outlined=not is_changed,
            block=True,
        )
        solara.Text(
            "Reset takes the new choices." if is_changed else "", style={"color": "#92400e", "font-size": "0.9rem"}
        )
        if runner is not None:
            solara.ProgressLinear(progress(runner) if runner.busy else False)
            solara.Text(status(runner), classes=["mesa-llm-status"])
        for fault in filter(None, (session.error, runner.error if runner else "")):
            solara.Error(fault, dense=True)


@component
def _Buttons(runner: Runner, state: tuple[object, ...]) -> None:
    is_over = not runner.model.running
    with solara.Row(gap="6px", style={"flex-wrap": "wrap"}):
        solara.Button(
            "Step",
            icon_name="mdi-step-forward",
            on_click=lambda: _say(runner.start, 1),
            disabled=runner.busy or is_over,
            color="primary",
        )
        if runner.playing:
            solara.Button("Pause", icon_name="mdi-pause", on_click=lambda: _say(runner.pause), color="primary")
        else:
            solara.Button(
                "Play",
                icon_name="mdi-play",
                on_click=lambda: _say(runner.start),
                disabled=runner.busy or is_over,
                color="primary",
            )
        solara.Button(
            "Stop",
            icon_name="mdi-stop",
            on_click=lambda: _say(runner.stop),
            disabled=not runner.busy or runner.stopping,
            color="error",
            outlined=True,
        )


def _say(do: Callable[..., None], *arguments: int) -> None:
    """Do what a click asks for, and show at once that it was heard."""
    do(*arguments)
    words.set(object())


def progress(runner: Runner) -> float | bool:
    """Give how far the step that runs has come, in percent; True if nobody knows."""
    asked = due(runner.model)
    return min(100.0, 100.0 * runner.decided / asked) if asked else True


def done(model: LLMModel) -> int:
    """Count the steps that are over; Mesa's own time moves on when a step begins."""
    return model.now - 1


def due(model: LLMModel) -> int:
    """Count the agents that decide in the stage that runs."""
    return len(model.due)


def status(runner: Runner) -> str:
    """Say in words what a run does now.

    Args:
        runner: What runs it.
    """
    if not runner.busy:
        return runner.note or ended(runner.model)
    if runner.stopping:
        return "Stopping …"
    pulse, asked = runner.pulse, due(runner.model)
    if pulse.seconds is None:
        return "Playing …"
    told = f"Step {runner.model.now}"
    if asked:
        told += f": {min(pulse.decided, asked)} of {asked} have decided"
    told += f", {pulse.seconds} s" if pulse.seconds else " …"
    return f"{told}; pausing after it." if runner.finishing else told


def ended(model: LLMModel) -> str:
    """Say what became of the last step.

    Args:
        model: A model that stands still.
    """
    if not done(model):
        return "Ready."
    failures = model.step_failures
    if not failures:
        return f"Step {done(model)} is done."
    return f"Step {done(model)} is done, but {counted(failures, 'decision')} failed; the tab Agents says why."
