"""Forms in which a person answers a request, value by value, at a terminal or on a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mesa_llm.llm.schema.description import read_value
from mesa_llm.llm.schema.flat import Schema, choice_schema, flat_schema, narrow
from mesa_llm.records import Request, ToolCall, ToolSpec

PASS = "do_nothing"
"""Name of the action of doing nothing, which is chosen alone."""

SHORT_TEXT = 80
"""Maximum number of characters of a text that gets a single line to write in."""

NUMBERS = frozenset({"integer", "number"})
"""Types of numbers in a JSON schema."""

Control = Literal["tick", "list", "suggestions", "number", "text", "line"]
"""How a form asks for a value: a box to tick, a list, or a field (with suggestions, for a number, text or a line)."""

LEFT_OUT = object()
"""Value of a field that the person leaves out."""


class NotOffered(ValueError):
    """A value is possible, but not among those offered now; the person may mean it all the same."""


@dataclass(frozen=True)
class FormField:
    """One value that a person fills in."""

    path: tuple[str, ...]
    """Names of the objects that it is part of, then its own; empty for the whole answer, or all arguments."""

    schema: Schema
    """Flat schema of possible values."""

    choices: Schema | None
    """The same, narrowed to values offered now; None: none are."""

    full_schema: Mapping[str, Any]
    """The original schema, with its descriptions."""

    is_needed: bool = True
    """Whether it cannot be left out."""

    @property
    def name(self) -> str:
        """Its path as text; `answer` if that is empty."""
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
        """Whether the values offered are only examples, as for amounts."""
        return self.schema.get("type") == "number" and self.choices is not None and self.choices != self.schema

    @property
    def items(self) -> list[str]:
        """Texts to choose from, as `read` reads them; empty if the value is free."""
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
        """Whether only `items` are possible."""
        kinds: list[Schema] = self.schema.get("anyOf", [self.schema])
        is_listed = all("enum" in kind or kind == {"type": "null"} for kind in kinds)
        return is_listed and self.choices in (None, self.schema)

    @property
    def _is_tick(self) -> bool:
        return self.schema.get("type") == "boolean" and self.is_needed and not self.values

    @property
    def parts(self) -> list[FormField] | None:
        """Fields of its properties, if it is a required object with a fixed set of them; None: it is one line."""
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
        """All fields within it that are one line each, in order."""
        return [self] if self.parts is None else [line for part in self.parts for line in part.lines]

    def fill(self, value_of: Callable[[FormField], Any]) -> Any:
        """Assemble the value from its lines.

        Args:
            value_of: Returns the value of a line, or `LEFT_OUT`; called for all `lines`, in order.
        """
        if self.parts is None:
            return value_of(self)
        values = {part.path[-1]: part.fill(value_of) for part in self.parts}
        return {name: value for name, value in values.items() if value is not LEFT_OUT}

    def read(self, line: str, *, is_meant: bool) -> Any:
        """Read the value of one line.

        Args:
            line: What the person wrote.
            is_meant: Whether the person means the value even if it is not offered.

        Raises:
            NotOffered: If it is possible, but not offered, and `is_meant` is False.
            ValueError: If it is not possible; the message says what would be.
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
    """One thing that a person can answer or do."""

    field: FormField
    """Field of the answer, or of the arguments."""

    tool: ToolSpec | None = None
    """The tool or action that is called; None: a typed answer or a text is given."""

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
        request: The request.

    Raises:
        Refused: If no answer is possible.
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
        calls: What the person has chosen so far.
        max_actions: Maximum number of actions in one decision.

    Returns:
        At first all offers; later only further actions, as a tool, or doing nothing, is chosen alone.
    """
    if not calls:
        return list(offers)
    further = [offer for offer in offers if offer.tool is not None and offer.tool.is_action and offer.name != PASS]
    goes_on = len(calls) < max_actions and calls[-1].name in {offer.name for offer in further}
    return further if goes_on else []
