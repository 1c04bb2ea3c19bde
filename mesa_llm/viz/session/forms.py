"""Fields of the form for one decision of a person: their hints, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mesa_llm.errors import Refused
from mesa_llm.llm.human.questions import LEFT_OUT, NUMBERS, FormField, NotOffered, Offer, offers_of
from mesa_llm.llm.schema.description import description_of
from mesa_llm.records import Request

Path = tuple[str, ...]
"""Path of a field's value within the answer."""

Lines = dict[Path, str]
"""Texts of the fields, or about them."""


def read_fields(field: FormField, lines: Mapping[Path, str], last_lines: Mapping[Path, str]) -> tuple[Any, Lines]:
    """Read the fields that a person filled in.

    Args:
        field: The value that was asked for.
        lines: Texts of the fields; a field that is not named is empty.
        last_lines: Texts at the last attempt: a value that is not among the options is accepted if it is repeated.

    Returns:
        The value, and its faults by field; it is valid if there are none.
    """
    faults: Lines = {}

    def give(line: FormField) -> Any:
        text = lines.get(line.path, "no" if line.control == "tick" else "").strip()
        if not text and not line.is_needed:
            return LEFT_OUT
        if not text and {"type": "null"} not in line.schema.get("anyOf", ()):
            faults[line.path] = "Fill this in first."
            return LEFT_OUT
        try:
            return line.read(text, is_meant=last_lines.get(line.path, "").strip() == text)
        except NotOffered:
            faults[line.path] = "This is not among what is offered. If you mean it all the same, press once more."
        except ValueError as error:
            faults[line.path] = str(error)
        return LEFT_OUT

    return field.fill(give), faults


def hint_of(field: FormField) -> str:
    """Describe a field: its meaning, its range if that is not obvious, and whether it may be left empty."""
    schema = field.schema
    notes = [description_of(schema)] if schema.get("type") in NUMBERS or not (field.description or field.items) else []
    if schema.get("type") in ("array", "object"):
        is_json = "prefixItems" in schema or schema.get("additionalProperties") is False
        notes = [description_of(field.choices or schema), "as JSON" if is_json else "commas between"]
    if field.values and not field.is_closed:
        notes.append("the list holds examples" if field.is_free else "the list holds what is offered")
    notes += [] if field.is_needed else ["may stay empty"]
    in_brackets = f"({'; '.join(notes)})" if notes else ""
    return f"{field.description} {in_brackets}".strip()


def _offers(request: Request) -> tuple[list[Offer], str]:
    """List the possible answers, or return the reason why there are none."""
    try:
        return offers_of(request), ""
    except Refused as error:
        return [], str(error)
