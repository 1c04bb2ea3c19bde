"""Forms for a person who answers a request, value by value; the terminal or the page shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mesa_llm.llm.schema.description import read_value
from mesa_llm.llm.schema.flat import Schema, choice_schema, flat_schema, narrow
from mesa_llm.records import Request, ToolCall, ToolSpec

PASS = "do_nothing"
"""The action that leaves nothing else to do."""

SHORT_TEXT = 80
"""A text that may be longer than this gets several lines to write in."""

NUMBERS = frozenset({"integer", "number"})
"""Types of numbers in a JSON schema."""

Control = Literal["tick", "list", "suggestions", "number", "text", "line"]
"""How a form asks for a value: a box to tick, a list, a field with suggestions, one for a number, a text, a line."""

LEFT_OUT = object()
"""Stands for a value that the person leaves out."""


class NotOffered(ValueError):
    """A value is possible, but none of those offered now; the person may mean it all the same."""


@dataclass(frozen=True)
class FormField:
    """One value that a person fills in."""

    path: tuple[str, ...]
    """Names of what it is a part of, and its own; empty: it is the whole answer, or all arguments."""

    schema: Schema
    """Flat schema of its values."""

    choices: Schema | None
    """The same, narrowed to what is offered now; None: nothing is."""

    full_schema: Mapping[str, Any]
    """The original schema, with its descriptions."""

    is_needed: bool = True
    """False if it can be left out."""

    @property
    def name(self) -> str:
        """Its name; a part follows the name of the whole."""
        return ", ".join(self.path) or "answer"

    @property
    def description(self) -> str:
        """Its description; empty if it has none."""
        return self.full_schema.get("description", "").rstrip(".")

    @property
    def values(self) -> list[Any]:
        """The values that are offered one by one, if any."""
        choices: Schema = self.choices or {}
        return [value for schema in (choices, *choices.get("anyOf", ())) for value in schema.get("enum", ())]

    @property
    def is_free(self) -> bool:
        """Whether the choices are only examples, as for amounts."""
        return self.schema.get("type") == "number" and self.choices is not None and self.choices != self.schema

    @property
    def items(self) -> list[str]:
        """What the value can be chosen from, as `read` reads it."""
        values = self.values or self.schema.get("enum", [])
        return [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]

    @property
    def control(self) -> Control:
        """How a form asks for the value."""
        kind = self.schema.get("type")
        if self._is_tick:
            return "tick"
        if self.is_closed or kind == "boolean":
            return "list"
        if self.items:
            return "suggestions"
        if kind in NUMBERS:
            return "number"
        is_long = kind == "string" and self.schema.get("maxLength", SHORT_TEXT + 1) > SHORT_TEXT
        return "text" if is_long else "line"

    @property
    def is_closed(self) -> bool:
        """Whether nothing fits but one of its `items`."""
        kinds: list[Schema] = self.schema.get("anyOf", [self.schema])
        is_listed = all("enum" in kind or kind == {"type": "null"} for kind in kinds)
        return is_listed and self.choices in (None, self.schema)

    @property
    def _is_tick(self) -> bool:
        return self.schema.get("type") == "boolean" and self.is_needed and not self.values

    @property
    def parts(self) -> list[FormField] | None:
        """Fields of its parts: the properties of a needed object that names them all; None: it is one line."""
        if not self.is_needed or self.schema.get("additionalProperties") is not False:
            return None
        return [self._part(name) for name in self.schema["properties"]]

    def _part(self, name: str) -> FormField:
        choices: Schema = self.choices or {}
        return FormField(
            (*self.path, name),
            self.schema["properties"][name],
            choices.get("properties", {}).get(name),
            self.full_schema.get("properties", {}).get(name, {}),
            name in self.schema["required"],
        )

    @property
    def lines(self) -> list[FormField]:
        """All fields of one line, in order."""
        return [self] if self.parts is None else [line for part in self.parts for line in part.lines]

    def fill(self, value_of: Callable[[FormField], Any]) -> Any:
        """Assemble the value from its lines.

        Args:
            value_of: Returns the value of one of its `lines`, or `LEFT_OUT`.
        """
        if self.parts is None:
            return value_of(self)
        values = {part.path[-1]: part.fill(value_of) for part in self.parts}
        return {name: value for name, value in values.items() if value is not LEFT_OUT}

    def read(self, line: str, *, is_meant: bool) -> Any:
        """Read the value.

        Args:
            line: What the person wrote.
            is_meant: Whether the person means the value even if it is not offered.

        Raises:
            ValueError: If it does not fit.
            NotOffered: If it fits, but is not offered, and not meant for sure.
        """
        try:
            return read_value(line, self.schema if self.choices is None or self.is_free else self.choices)
        except ValueError as error:
            try:
                value = read_value(line, self.schema)
            except ValueError:
                raise error from None
            if is_meant:
                return value
            raise NotOffered(str(error)) from None


@dataclass(frozen=True)
class Offer:
    """One thing that a person can answer."""

    field: FormField
    """Field of the answer, or of the arguments."""

    tool: ToolSpec | None = None
    """The tool or action that is called; None: the question wants an answer, or any text."""

    @property
    def name(self) -> str:
        """Name of the tool or action; empty for an answer."""
        return self.tool.name if self.tool else ""

    @property
    def description(self) -> str:
        """Description of the tool or action."""
        return self.tool.description if self.tool else ""


def offers_of(request: Request) -> list[Offer]:
    """List what a person can answer to a request.

    Args:
        request: What was asked.

    Raises:
        Refused: If nothing can be answered.
    """
    if request.schema is not None:
        schema = flat_schema(request.schema)
        return [Offer(FormField((), schema, narrow(schema, request.options), request.schema))]
    if not request.tools:
        return [Offer(FormField((), {"type": "string"}, None, {}))]
    alternatives = choice_schema(request.tools, request.options)["anyOf"]
    arguments = {
        choice["properties"]["action"]["enum"][0]: choice["properties"]["arguments"] for choice in alternatives
    }
    return [_offer(tool, arguments[tool.name]) for tool in request.tools if tool.name in arguments]


def _offer(tool: ToolSpec, arguments: Schema) -> Offer:
    return Offer(FormField((), flat_schema({"type": "object", **tool.parameters}), arguments, tool.parameters), tool)


def still_possible(offers: Sequence[Offer], calls: Sequence[ToolCall], max_actions: int) -> list[Offer]:
    """List what a person can choose next.

    Args:
        offers: All that can be done.
        calls: What is chosen already.
        max_actions: How many actions one decision may hold.

    Returns:
        At first all; then further actions, as what only reads, or does nothing, is done alone.
    """
    if not calls:
        return list(offers)
    further = [offer for offer in offers if offer.tool is not None and offer.tool.is_action and offer.name != PASS]
    goes_on = len(calls) < max_actions and calls[-1].name in {offer.name for offer in further}
    return further if goes_on else []
