"""Human players: questions that wait for an answer, each with a form of buttons and fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import solara
from reacton import ipyvuetify as vuetify
from reacton import use_memo, use_state
from reacton.ipyvue import use_event
from solara.core import component

from mesa_llm.canonical import canonical_json
from mesa_llm.engine.activation import llm_agents
from mesa_llm.llm.human.forms import NUMBERS, FormField, Offer, still_possible
from mesa_llm.llm.human.queue import HumanQueue, PendingQuestion
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Reply, ToolCall
from mesa_llm.viz.components.markup import Markup
from mesa_llm.viz.components.page_state import use_page
from mesa_llm.viz.components.placement import llm_models_only
from mesa_llm.viz.render.agents import agent_label
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.trace import call_text
from mesa_llm.viz.session.forms import Lines, Path, hint_of, possible_answers, read_fields
from mesa_llm.viz.session.session import human_queues

NOBODY: tuple[int, int] = (0, 0)
"""Initial selection of agent and question: none."""


@component
@llm_models_only
def HumanPanel(model: LLMModel) -> None:
    """Show the questions that wait for the visitor, with a form to answer them.

    Args:
        model: A model with human players.
    """
    use_page(model).moment()
    queues = use_memo(lambda: human_queues(model), [model])
    picked, pick = use_state(NOBODY)
    questions = [(queue, question) for queue in queues for question in queue.pending]
    if not questions:
        solara.Info("You are playing. Press Step, and your agent's next decision will appear here.", dense=True)
        return
    of_agent = [pair for pair in questions if pair[1].agent == picked[0]] or questions
    queue, question = next((pair for pair in of_agent if pair[1].question_id == picked[1]), of_agent[0])
    with solara.Card(f"Your turn: {_name(model, question)}", classes=["mesa-llm-human"]):
        if len(questions) > 1:
            names = button_names([(other, _name(model, other)) for _, other in questions])
            with solara.Row(gap="6px", style={"flex-wrap": "wrap"}):
                for (_, other), name in list(zip(questions, names, strict=True))[:30]:
                    _PickButton(name, other, other is question, pick)
        rules = "\n\n".join(m.content for m in question.request.messages if m.role == "system")
        Markup("question.html", rules=rules, text=question.text)
        AnswerForm(queue, question).key(f"question {question.question_id}")


@component
def _PickButton(name: str, question: PendingQuestion, is_picked: bool, pick: Callable[[tuple[int, int]], None]) -> None:
    picked = (question.agent, question.question_id)
    solara.Button(name, on_click=lambda: pick(picked), outlined=not is_picked, small=True)


def button_names(questions: Sequence[tuple[PendingQuestion, str]]) -> list[str]:
    """Return a label for each question: the agent, and a number if the agent has several.

    Args:
        questions: Waiting questions, each with the name of its agent.
    """
    numbers = Counter[int]()
    n_of = Counter(question.agent for question, _ in questions)
    names: list[str] = []
    for question, name in questions:
        numbers[question.agent] += 1
        is_alone = n_of[question.agent] == 1
        names.append(name if is_alone else f"{name}: {numbers[question.agent]} of {n_of[question.agent]}")
    return names


def _name(model: LLMModel, question: PendingQuestion) -> str:
    agent = next((agent for agent in llm_agents(model) if agent.unique_id == question.agent), None)
    return f"agent {question.agent}" if agent is None else agent_label(agent)


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
