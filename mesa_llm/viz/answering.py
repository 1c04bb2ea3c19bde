"""A form for one question to a person: buttons for what can be done, and fields for what has to be given with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import solara
from reacton import use_memo, use_state
from solara.core import component

from mesa_llm.errors import Refused
from mesa_llm.llm.answers import Answer
from mesa_llm.llm.human import HumanDesk, Question
from mesa_llm.llm.schema import Schema, choice_schema, flat_schema, held_to
from mesa_llm.llm.words import in_words
from mesa_llm.records import Request, ToolCall

SHORT_TEXT = 80
"""A text that may be longer than this gets several lines to write in."""


@dataclass(frozen=True)
class Offer:
    """One thing a person can answer."""

    name: str
    """Name of the action; empty for an answer or a free text."""

    told: str
    """What it does, in words."""

    fields: Mapping[str, Schema]
    """Name of each value to give with it → its flat schema."""

    needed: tuple[str, ...]
    """Names of the values that have to be given."""

    told_of: Mapping[str, str]
    """What is said of each value, where anything is."""

    @property
    def label(self) -> str:
        """What stands on its button."""
        return self.name.replace("_", " ").capitalize() or "Answer"

    def answer(self, values: Mapping[str, Any]) -> Answer:
        """Make the answer out of what was filled in.

        Args:
            values: What stands in the fields, by name.

        Raises:
            ValueError: If a value is missing, or is no JSON where JSON is wanted.
        """
        unticked = {name: False for name, schema in self.fields.items() if schema.get("type") == "boolean"}
        filled = {name: value for name, value in values.items() if value not in (None, "")}
        given = unticked | {name: _read(name, self.fields[name], value) for name, value in filled.items()}
        missing = [name for name in self.needed if name not in given]
        if missing:
            raise ValueError(f"Fill in {', '.join(missing)} first.")
        if self.name:
            return ToolCall(self.name, given)
        return given if self.fields is not FREE_TEXT else str(given["text"])


FREE_TEXT: Mapping[str, Schema] = {"text": {"type": "string"}}
"""The one field of a question that anything answers."""


def offers_of(request: Request) -> list[Offer]:
    """List what a person can answer to a request.

    Args:
        request: What was asked.

    Raises:
        Refused: If nothing can be answered.
    """
    if request.schema is not None:
        schema = held_to(flat_schema(request.schema), request.options)
        if schema is None:
            raise Refused("no answer is possible: what is asked for has no possible value")
        described = _descriptions(request.schema)
        return [Offer("", "", schema.get("properties", {}), tuple(schema.get("required", ())), described)]
    if not request.tools:
        return [Offer("", "", FREE_TEXT, ("text",), {})]
    tools = {tool.name: tool for tool in request.tools}
    offers: list[Offer] = []
    for choice in choice_schema(request.tools, request.options)["anyOf"]:
        name, arguments = choice["properties"]["action"]["enum"][0], choice["properties"]["arguments"]
        told, described = tools[name].description, _descriptions(tools[name].parameters)
        offers.append(Offer(name, told, arguments["properties"], tuple(arguments["required"]), described))
    return offers


def _offers(request: Request) -> tuple[list[Offer], str]:
    """List what can be answered, or say why nothing can."""
    try:
        return offers_of(request), ""
    except Refused as error:
        return [], str(error)


def _descriptions(schema: Mapping[str, Any]) -> dict[str, str]:
    members: Mapping[str, Any] = schema.get("properties", {})
    return {name: inner["description"] for name, inner in members.items() if "description" in inner}


def _read(name: str, schema: Schema, value: Any) -> Any:
    if "enum" in schema or schema.get("type") in ("string", "integer", "number", "boolean"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        raise ValueError(f"{name}: write it as JSON, such as [1, 2] or null.") from None


@component
def AnswerForm(desk: HumanDesk, question: Question) -> None:
    """Let a person answer a question.

    Args:
        desk: Where the question lies.
        question: The question.
    """
    offers, refused = use_memo(lambda: _offers(question.request), [question.question_id])
    picked, pick = use_state(offers[0].name if len(offers) == 1 else "")
    values = solara.use_reactive(dict[str, Any]())
    fault, set_fault = use_state("")

    def send(offer: Offer) -> None:
        try:
            answer = offer.answer(values.peek())
        except ValueError as error:
            set_fault(str(error))
            return
        set_fault("" if desk.answer(question.question_id, answer) else "Too late: the question was withdrawn.")

    def press(offer: Offer) -> None:
        set_fault("")
        values.set({})
        pick(offer.name)
        if not offer.fields:
            send(offer)

    if len(offers) > 1:
        with solara.Row(gap="8px", style={"flex-wrap": "wrap"}):
            for offer in offers:
                _OfferButton(offer, offer.name == picked, press)
    for offer in offers:
        if offer.name == picked and (offer.fields or len(offers) == 1):
            _Fields(offer, values, send)
    if fault or refused:
        solara.Warning(fault or f"{refused}. Press Stop.", dense=True)


@component
def _OfferButton(offer: Offer, is_picked: bool, press: Callable[[Offer], None]) -> None:
    solara.Button(offer.label, on_click=lambda: press(offer), color="primary", outlined=not is_picked)


@component
def _Fields(offer: Offer, values: solara.Reactive[dict[str, Any]], send: Callable[[Offer], None]) -> None:
    def fill(name: str, value: Any) -> None:
        values.set({**values.peek(), name: value})

    if offer.told:
        solara.Text(offer.told, style={"color": "#6b7280"})
    for name, schema in offer.fields.items():
        _Field(label_of(name, offer), schema, values.value.get(name), partial(fill, name))
    with solara.Row():
        solara.Button("Send", icon_name="mdi-send", color="primary", on_click=lambda: send(offer))


def label_of(name: str, offer: Offer) -> str:
    """Say what is to be filled in: its name, what it means or may be, and whether it can stay empty."""
    schema, told = offer.fields[name], offer.told_of.get(name, "").rstrip(".")
    limits = in_words(schema) if not told or schema.get("type") in ("integer", "number") else ""
    meaning = f"{told} ({limits})" if told and limits else told or limits
    label = f"{name.replace('_', ' ')}: {meaning}"
    return label if name in offer.needed else f"{label}, may stay empty"


@component
def _Field(label: str, schema: Schema, value: Any, fill: Callable[[Any], None]) -> None:
    match schema:
        case {"enum": choices}:
            shown = {str(choice): choice for choice in choices}
            solara.Select(
                label, list(shown), None if value is None else str(value), lambda text: fill(shown.get(text or ""))
            )
        case {"type": "boolean"}:
            solara.Checkbox(label=label, value=bool(value), on_value=fill)
        case {"type": "integer"}:
            solara.InputInt(label, value, on_value=fill, optional=True)
        case {"type": "number"}:
            solara.InputFloat(label, value, on_value=fill, optional=True)
        case {"type": "string"} if schema.get("maxLength", SHORT_TEXT + 1) > SHORT_TEXT:
            solara.InputTextArea(label, value or "", on_value=fill, rows=2, continuous_update=True)
        case {"type": "string"}:
            solara.InputText(label, value or "", on_value=fill, continuous_update=True)
        case _:
            solara.InputText(f"{label} (as JSON)", value or "", on_value=fill, continuous_update=True)
