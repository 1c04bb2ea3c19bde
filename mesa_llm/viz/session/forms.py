"""Form fields for a person's decision: their hints, how they are read, and a draft of the answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mesa_llm.canonical import canonical_json
from mesa_llm.errors import Refused
from mesa_llm.llm.human.forms import LEFT_OUT, NUMBERS, FormField, NotOffered, Offer, offers_of, still_possible
from mesa_llm.llm.human.queue import PendingQuestion
from mesa_llm.llm.schema.description import description_of
from mesa_llm.records import Reply, Request, ToolCall

Path = tuple[str, ...]
"""Path of a field's value within the answer."""

Lines = dict[Path, str]
"""Contents of the fields, or messages about them, by path."""


def read_fields(field: FormField, lines: Mapping[Path, str], last_lines: Mapping[Path, str]) -> tuple[Any, Lines]:
    """Read the fields that a person has filled in.

    Args:
        field: The requested value.
        lines: Contents of the fields; missing fields are empty.
        last_lines: Contents at the last attempt: a value that is not an option is accepted when sent a second time.

    Returns:
        The value, and the errors by field; it is valid if there are none.
    """
    faults: Lines = {}

    def give(line: FormField) -> Any:
        text = lines.get(line.path, "no" if line.control == "tick" else "").strip()
        if not text and not line.is_needed:
            return LEFT_OUT
        if not text and {"type": "null"} not in line.schema.get("anyOf", ()):
            faults[line.path] = "This field is required."
            return LEFT_OUT
        try:
            return line.read(text, is_meant=last_lines.get(line.path, "").strip() == text)
        except NotOffered:
            faults[line.path] = "This is not one of the options. To use it anyway, press the button again."
        except ValueError as error:
            faults[line.path] = str(error)
        return LEFT_OUT

    return field.fill(give), faults


def hint_of(field: FormField) -> str:
    """Describe a field: its meaning, its range unless obvious, and whether it is optional."""
    schema = field.schema
    notes = [description_of(schema)] if schema.get("type") in NUMBERS or not (field.description or field.items) else []
    if schema.get("type") in ("array", "object"):
        is_json = "prefixItems" in schema or schema.get("additionalProperties") is False
        notes = [description_of(field.choices or schema), "as JSON" if is_json else "comma-separated"]
    if field.values and not field.is_closed:
        notes.append("examples are listed" if field.is_free else "options are listed")
    notes += [] if field.is_needed else ["optional"]
    in_brackets = f"({'; '.join(notes)})" if notes else ""
    return f"{field.description} {in_brackets}".strip()


def possible_answers(request: Request) -> tuple[list[Offer], str]:
    """Return the possible answers, or the reason why there are none."""
    try:
        return offers_of(request), ""
    except Refused as error:
        return [], str(error)


class Draft:
    """A student's unfinished answer to one question.

    Attributes:
        question: The question.
        offers: All possible actions.
        refusal: Why there are none; empty if there are.
        calls: Actions chosen so far.
        picked: Name of the action whose fields had errors; None: none had.
        lines: Contents of its fields.
        faults: Errors by field.
    """

    def __init__(self, question: PendingQuestion) -> None:
        """Start with nothing chosen."""
        self.question = question
        self.offers: list[Offer] = []
        self.refusal = ""
        self.calls: list[ToolCall] = []
        self.picked: str | None = None
        self.lines: Mapping[Path, str] = {}
        self.faults: Mapping[Path, str] = {}
        try:
            self.offers = offers_of(question.request)
        except Refused as error:
            self.refusal = str(error)

    @property
    def possible(self) -> list[Offer]:
        """The actions that can be chosen next."""
        return still_possible(self.offers, self.calls, self.question.request.max_actions)

    def choose(self, name: str, lines: Mapping[Path, str]) -> Reply | None:
        """Choose one action.

        Args:
            name: Name of an action; empty for a typed answer.
            lines: Contents of its fields.

        Returns:
            The complete answer if nothing more can be chosen; None if there are errors or more is possible.
        """
        offer = next((each for each in self.possible if each.name == name), None)
        if offer is None:
            return None
        last_lines = self.lines if self.picked == name else {}
        value, self.faults = read_fields(offer.field, lines, last_lines)
        self.picked, self.lines = name, lines
        if self.faults:
            return None
        self.picked, self.lines = None, {}
        if offer.tool is None:
            text = canonical_json(value) if self.question.request.schema is not None else value
            return Reply(text, dollars=0.0, model="human")
        self.calls.append(ToolCall(offer.name, value))
        return None if self.possible else self.reply()

    def reply(self) -> Reply:
        """Return the chosen actions as an answer."""
        return Reply(tool_calls=tuple(self.calls), dollars=0.0, model="human")
