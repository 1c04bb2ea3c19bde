"""A form for one question: buttons for the possible actions, and fields for their arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import solara
from reacton import ipyvuetify as vuetify
from reacton import use_memo, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.canonical import canonical_json
from mesa_llm.llm.human.forms import NUMBERS, FormField, Offer, still_possible
from mesa_llm.llm.human.queue import HumanQueue, PendingQuestion
from mesa_llm.records import Reply, ToolCall
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.trace import call_text
from mesa_llm.viz.session.forms import Lines, Path, hint_of, possible_answers, read_fields


@component
def AnswerForm(queue: HumanQueue, question: PendingQuestion) -> None:
    """Let a person answer a question, with several actions one after another if allowed.

    Args:
        queue: The queue that holds the question.
        question: The question.
    """
    request = question.request
    offers, refusal = use_memo(lambda: possible_answers(request), [question.question_id])
    calls, set_calls = use_state(list[ToolCall]())
    name, pick = use_state("")
    fault, set_fault = use_state("")
    possible = still_possible(offers, calls, request.max_actions)

    def send(reply: Reply) -> None:
        set_fault("" if queue.answer(question.question_id, reply) else "Too late: the question has been withdrawn.")

    def give(offer: Offer, value: Any) -> None:
        if offer.tool is None:
            send(Reply(canonical_json(value) if request.schema is not None else value, dollars=0.0, model="human"))
            return
        calls_now = [*calls, ToolCall(offer.name, value)]
        if still_possible(offers, calls_now, request.max_actions):
            set_calls(calls_now)
            pick("")
        else:
            finish(calls_now)

    def finish(calls_now: list[ToolCall]) -> None:
        send(Reply(tool_calls=tuple(calls_now), dollars=0.0, model="human"))

    def press(offer: Offer) -> None:
        pick(offer.name)
        if not offer.field.lines:
            give(offer, {})

    _Choices(calls, request.max_actions)
    if offers and offers[0].tool is not None:
        _Buttons(possible, name, press, (lambda: finish(calls)) if calls else None)
    for offer in possible:
        if offer.name == name and offer.field.lines:
            _Fields(offer, partial(give, offer)).key(f"{len(calls)} {offer.name}")
    if fault or refusal:
        solara.Warning(fault or f"{refusal}. Press Stop.", dense=True)


@component
def _Choices(calls: list[ToolCall], maximum: int) -> None:
    """Show the actions chosen so far, and how many more are possible."""
    for index, call in enumerate(calls, 1):
        solara.Text(f"{index}. {call_text(call.name, dict(call.arguments))}", classes=["mesa-llm-chosen"])
    if calls:
        solara.Text(f"then … (up to {maximum - len(calls)} more)", classes=["mesa-llm-hint"])
    elif maximum > 1:
        solara.Text(f"You can choose up to {maximum} actions, one after another.", classes=["mesa-llm-hint"])


@component
def _Buttons(offers: list[Offer], name: str, press: Callable[[Offer], None], finish: Callable[[], None] | None) -> None:
    with solara.Row(gap="8px", style={"flex-wrap": "wrap"}):
        for offer in offers:
            _OfferButton(offer, offer.name == name, press)
        if finish is not None:
            solara.Button("Done", icon_name="mdi-check", color="success", on_click=finish)


@component
def _OfferButton(offer: Offer, is_picked: bool, press: Callable[[Offer], None]) -> None:
    label = label_of(offer.name)
    solara.Button(label, on_click=lambda: press(offer), color="primary", outlined=not is_picked)


@component
def _Fields(offer: Offer, submit_value: Callable[[Any], None]) -> None:
    lines = solara.use_reactive(Lines())
    last_lines, set_tried = use_state(Lines())
    faults, set_faults = use_state(Lines())

    def fill(path: Path, value: Any) -> None:
        text = "" if value is None else str(value)
        if text != lines.peek().get(path, ""):
            lines.set({**lines.peek(), path: text})
            set_faults({other: fault for other, fault in faults.items() if other != path})

    def submit() -> None:
        value, faults_now = read_fields(offer.field, lines.peek(), last_lines)
        set_tried(lines.peek())
        set_faults(faults_now)
        if not faults_now:
            submit_value(value)

    if offer.description:
        solara.Text(offer.description, classes=["mesa-llm-hint"])
    for line in offer.field.lines:
        _Field(line, lines.value.get(line.path, ""), faults.get(line.path, ""), partial(fill, line.path))
    with solara.Row():
        if offer.tool is None:
            solara.Button("Send", icon_name="mdi-send", color="primary", on_click=submit)
        else:
            solara.Button("Do this", icon_name="mdi-check", color="primary", on_click=submit)


@component
def _Field(field: FormField, text: str, fault: str, fill: Callable[[Any], None]) -> None:
    label = label_of(field.name)
    looks: dict[str, Any] = {
        "label": label,
        "v_model": text,
        "on_v_model": fill,
        "hint": hint_of(field),
        "persistent_hint": True,
        "error_messages": fault,
        "class_": "mesa-llm-field",
    }
    is_number = field.schema.get("type") in NUMBERS
    attributes: dict[str, Any] = {"type": "number", "attributes": {"step": "any"}} if is_number else {}
    match field.control:
        case "tick":
            solara.Checkbox(label=f"{label}: {hint_of(field)}", value=text == "yes", on_value=_yes_or_no(fill))
        case "list":
            vuetify.Select(**looks, items=field.items or ["yes", "no"], clearable=True)
        case "suggestions":
            _Suggestions({**looks, **attributes}, field.items, fill)
        case "text":
            vuetify.Textarea(**looks, rows=2, auto_grow=True)
        case "number" | "line":
            vuetify.TextField(**looks, **attributes)


@component
def _Suggestions(looks: dict[str, Any], items: list[str], fill: Callable[[Any], None]) -> None:
    """Show a text field with a list to choose from.

    Typed text is read at once: Vuetify itself reads it only when the field loses focus, which is too late for a quick
    click on a button. It is not echoed while being typed, as that would swallow letters.
    """
    taken, take = use_state(str(looks["v_model"]))

    def leave(text: str | None) -> None:
        take(text or "")
        fill(text)

    def write(*event: Any) -> None:
        text = event[-1]
        if text is not None:
            fill(text)

    properties: dict[str, Any] = {**looks, "v_model": taken, "on_v_model": leave}
    box = vuetify.Combobox(**properties, items=items, clearable=True)
    use_event(box, "update:search-input", write)


def _yes_or_no(fill: Callable[[Any], None]) -> Callable[[bool], None]:
    return lambda ticked: fill("yes" if ticked else "no")
