"""Rows of the tables of a run."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from mesa_llm.canonical import legible_json
from mesa_llm.viz.render.trace import call_text, shortened


class Row(NamedTuple):
    """One row of a table."""

    cells: tuple[str, ...]
    """Text of each cell."""

    mood: str = ""
    """`failed` highlights it as a failure."""


def event_row(fields: dict[str, Any]) -> Row:
    """Return the row of an event: step, world, text."""
    text = fields["text"] or f"{fields['kind']} {fields['facts']}"
    return Row((str(fields["time"]), fields["source"], shortened(text)))


def action_row(fields: dict[str, Any], names: dict[int, str]) -> Row:
    """Return the row of an action: step, agent, action, result.

    Args:
        fields: The row of the run log.
        names: Names of agents by id.
    """
    agent_name = names.get(fields["agent"]) or f"agent {fields['agent']}"
    result = json.loads(fields["result"])
    text = result if isinstance(result, str) else legible_json(result)
    action_text = call_text(fields["action"], json.loads(fields["arguments"]))
    return Row((str(fields["time"]), agent_name, action_text, shortened(text)), "" if fields["ok"] else "failed")
