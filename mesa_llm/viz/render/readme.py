"""The description of a model: its question, its measures, and what its agents see and can do."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_llm.errors import MesaLLMError

QUESTION, MEASURED = "Question", "What is measured"
"""Headings of a model's README that a page shows at its top."""


@dataclass(frozen=True)
class Readme:
    """Description of a model, from the README beside its code or else from its docstring."""

    question: str = ""
    """The model's question."""

    measured: str = ""
    """The first paragraph on what is measured."""

    text: str = ""
    """The whole text, in Markdown."""

    @classmethod
    def of(cls, model: Callable[..., Any]) -> Readme:
        """Read the description of a model.

        Args:
            model: A model class, or a function that makes a model.
        """
        with suppress(OSError, TypeError):
            file = Path(inspect.getfile(model)).parent / "README.md"
            text = file.read_text(encoding="utf-8", errors="replace")
            if paragraph(text, QUESTION):  # the README beside a model may describe something else
                return cls(paragraph(text, QUESTION), paragraph(text, MEASURED), text)
        docstring = model.__doc__ if "__doc__" in vars(model) or not isinstance(model, type) else ""
        text = inspect.cleandoc(docstring or "")
        return cls(text.partition("\n\n")[0].replace("\n", " "), "", text)


def paragraph(text: str, heading: str) -> str:
    """Return the first paragraph under a heading, on one line; empty if there is none.

    Args:
        text: Markdown.
        heading: The heading, without `#`.
    """
    lines: list[str] = []
    is_under = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("#"):
            if is_under:
                break
            is_under = line.lstrip("# ") == heading
        elif is_under and line:
            lines.append(line)
        elif lines:
            break
    return " ".join(lines)


def first_observation(agent: Any) -> tuple[str, str, list[tuple[str, str]]]:
    """Return an agent's instructions, its observation, and the name and description of each tool and action."""
    try:
        seen = agent.observe()
        tools = [(spec.name, spec.description) for spec in agent.toolbox(seen).specs]
    except MesaLLMError as error:
        return "", f"Observation failed: {error}", []
    system = [message.content for message in agent.prompt(seen) if message.role == "system"]
    return "\n\n".join(system), seen.text, tools
