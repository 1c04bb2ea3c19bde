"""Playback of recorded runs: a slider over the steps, and the status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import solara
from reacton import ipyvuetify as vuetify
from reacton import use_memo
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.model.recording import Recording
from mesa_llm.viz.components.controls import play_button
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.session.session import PageSession
from mesa_llm.viz.session.status import description_of, done, playback_status


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

    with solara.Column(gap="8px"):
        solara.Text(f"Step {step}", classes=["mesa-llm-time"])
        _Steps(step, last, go).key(f"step {step}")
        with solara.Row(gap="6px", style={"flex-wrap": "wrap"}):
            solara.Button("Back", icon_name="mdi-chevron-left", on_click=lambda: go(step - 1), disabled=step == 0)
            play_button(page, runner, is_over=step >= last)
            solara.Button("Next", icon_name="mdi-chevron-right", on_click=lambda: go(step + 1), disabled=step >= last)
        solara.ProgressLinear(is_on_its_way)
        solara.Text(playback_status(runner, done(runner.model), last), classes=["mesa-llm-status"])
        solara.Text(
            "This is a recorded run: no language model is called, and nothing is spent.", classes=["mesa-llm-hint"]
        )
        solara.Text(description, classes=["mesa-llm-hint"])
        solara.Button("Start a new run", icon_name="mdi-restore", on_click=leave, outlined=True, block=True)


@component
def _Steps(step: int, last: int, go: Callable[[int], None]) -> None:
    """Show a slider that takes effect when it is released."""

    def let_go(*event: Any) -> None:
        go(int(event[-1]))

    slider = vuetify.Slider(
        v_model=step, min=0, max=last, step=1, label=f"0 to {last}", inverse_label=True, thumb_label=True, dense=True
    )
    use_event(slider, "change", let_go)
