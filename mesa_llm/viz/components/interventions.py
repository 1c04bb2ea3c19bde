"""Forms for interventions in a run or in a branch of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import solara
from reacton import ipyvuetify as vuetify
from reacton import use_ref, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.model.interventions import EVERYONE
from mesa_llm.model.model import LLMModel
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.render.tables import Row
from mesa_llm.viz.session.interventions import (
    CHANGE,
    NEWS,
    NOTHING,
    POST,
    SEND,
    InterventionOptions,
    InterventionRunner,
    intervention_of,
)
from mesa_llm.viz.session.rw_lock import steady


@component
@llm_models_only
def InterventionForm(model: LLMModel) -> None:
    """Let a visitor send news, publish posts and change variables.

    Args:
        model: The model.
    """
    use_page(model).moment()
    runner = InterventionRunner.of(model)
    with steady(model):
        choices = InterventionOptions.of(model)
        rows = [Row((str(one.step), one.text), "failed" if one.refusal else "") for one in model.interventions.log]
    solara.Text(
        "Interventions take effect between steps; they are logged and replayed. To try one without changing this run, "
        "use a branch on the What if tab.",
        classes=["mesa-llm-hint"],
    )
    InterventionFields(choices, "Send", lambda one: runner.send(model, one), is_off=bool(runner.working))
    Progress(model, runner, SEND)
    if rows:
        Markup("table.html", columns=("Step", "Intervention"), rows=rows[::-1], more=0, nothing="")


@component
def Progress(model: LLMModel, runner: InterventionRunner, task: str) -> None:
    """Show the progress and the result of a task.

    Args:
        model: The model.
        runner: The runner of its interventions.
        task: The task: `SEND`, `BRANCH` or `WRITE`.
    """
    use_page(model).moment()
    if runner.task != task:
        return
    if runner.working:
        solara.ProgressLinear(True)
    for text, show in ((runner.working, solara.Info), (runner.error, solara.Error), (runner.note, solara.Success)):
        if text:
            show(text, dense=True)


@component
def InterventionFields(
    choices: InterventionOptions,
    label: str,
    do: Callable[[Any], None],
    *,
    is_off: bool,
    none_is_allowed: bool = False,
) -> None:
    """Show the fields of an intervention; what is being typed is not echoed, so that no step can overwrite it.

    Args:
        choices: What can be chosen.
        label: Label of the button.
        do: Called with the intervention, or with None if none was chosen.
        is_off: Whether the button is disabled.
        none_is_allowed: Whether the visitor may choose no intervention.
    """
    kind, choose = use_state(NEWS)
    reader, set_reader = use_state(EVERYONE)
    variable, set_variable = use_state("")
    fault, set_fault = use_state("")
    text, author = use_ref(""), use_ref("")
    own = variable if variable in choices.variables else next(iter(choices.variables), "")
    target = {NEWS: reader, CHANGE: own}.get(kind, "")

    def turn_to(other: str) -> None:
        text.current = author.current = ""  # another kind has fields of its own
        choose(other)

    def write() -> None:
        try:
            typed = author.current if kind == POST else target
            intervention = None if kind == NOTHING else intervention_of(kind, text.current, typed)
        except ValueError as error:
            set_fault(str(error))
            return
        set_fault("")
        do(intervention)

    kinds = [*choices.kinds, *([NOTHING] if none_is_allowed else [])]
    solara.ToggleButtonsSingle(kind, values=kinds, on_value=turn_to, dense=True)
    if kind == NEWS:
        solara.Select("Readers", list(choices.readers), value=reader, on_value=set_reader, dense=True)
    elif kind == POST:
        _Typed("Account (name of a user, or any other name for a newsroom)", author, rows=0)
    elif kind == CHANGE:
        solara.Select("Variable", list(choices.variables), value=own, on_value=set_variable, dense=True)
        solara.Text(choices.variables.get(own, ""), classes=["mesa-llm-hint"])
    if kind != NOTHING:
        _Typed("New value" if kind == CHANGE else "Text", text, rows=0 if kind == CHANGE else 2).key(kind)
    if not choices.variables:
        solara.Text("No variable of this model can be changed during a run.", classes=["mesa-llm-hint"])
    with solara.Row(gap="12px"):
        solara.Button(label, color="primary", disabled=is_off, on_click=write)
    if fault:
        solara.Error(fault, dense=True)


@component
def _Typed(label: str, typed: Any, rows: int) -> None:
    def type_in(*event: Any) -> None:
        typed.current = str(event[-1] or "")

    options: dict[str, Any] = {"label": label, "value": "", "outlined": True, "dense": True, "hide_details": True}
    field = vuetify.Textarea(rows=rows, auto_grow=True, **options) if rows else vuetify.TextField(**options)
    use_event(field, "input", type_in)
