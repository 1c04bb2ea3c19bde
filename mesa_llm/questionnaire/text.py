"""Texts of scales and sheets for respondents."""

from __future__ import annotations

from mesa_llm.questionnaire.instruments import Scale
from mesa_llm.questionnaire.items import Sheet
from mesa_llm.text import quoted, sentences

INSTRUCTIONS = "How well does each statement describe you?"
"""Text before the items of a table that has none."""


def describe_scale(scale: Scale) -> str:
    """Describe the possible numbers, with the meanings of the lowest and the highest."""
    low, high = (
        f"{answer} ({scale.anchors[answer]})" if answer in scale.anchors else str(answer)
        for answer in (scale.low, scale.high)
    )
    return f"Answer with a whole number from {low} to {high}."


def describe_sheet(sheet: Sheet) -> str:
    """Write a sheet for respondents: a single item in quotation marks if a text precedes it, more of them numbered."""
    if len(sheet.items) == 1:
        listed = f"“{sheet.items[0].text}”" if sheet.text else sheet.items[0].text
    else:
        lines = [f"{number}. {item.text}" for number, item in enumerate(sheet.items, 1)]
        listed = "\n".join(["Answer each of these by its number:", *lines])
    return "\n\n".join(filter(None, (sheet.text, listed)))


def missing_text(label: str) -> str:
    """Report an item without an answer."""
    return f"{label}: no answer"


def off_scale_text(label: str, answer: str) -> str:
    """Report an answer that the item does not allow."""
    return f"{label}: {quoted(answer, 40)} is not on the scale"


REASONS = {
    "not_asked": "you were not asked {label!r}, or have answered it.",
}
"""Refusal → why it is refused."""

reason_text = sentences(REASONS)
