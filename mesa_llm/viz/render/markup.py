"""HTML from templates that escape all values, and error messages without secrets."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from mesa_llm.errors import MesaLLMError

logger = logging.getLogger(__name__)

HERE = Path(__file__).parent

BEGINNING = re.compile("(?<=[a-z])(?=[A-Z])")
"""Where a capital letter begins a word: `HaloEffect` is a halo effect."""

CODE, BOLD = re.compile(r"`([^`\n]+)`"), re.compile(r"\*\*([^*\n]+)\*\*")
"""What Markdown sets as code and in bold."""


@lru_cache(maxsize=64)
def _environment(folder: Path) -> jinja2.Environment:
    loaders: list[jinja2.BaseLoader] = [jinja2.FileSystemLoader(path) for path in (folder, HERE / "templates")]
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = prose
    environment.globals["pick"] = pick  # type: ignore[assignment]
    return environment


def prose(text: str) -> Markup:
    """Return a line of Markdown as HTML: what stands between backticks as code, and `**bold**`; all else is escaped.

    Args:
        text: The text.
    """
    return Markup(BOLD.sub(r"<b>\1</b>", CODE.sub(r"<code>\1</code>", str(escape(text)))))


def pick(agent_id: int, step: int = -1) -> Markup:
    """Return the attribute of an element that a click opens an agent from; nothing for agent 0.

    Args:
        agent_id: Mesa `unique_id` of the agent.
        step: Step that is then shown; negative: the latest.
    """
    return Markup(f' data-pick="agent {agent_id:d}{f" {step:d}" if step >= 0 else ""}"' if agent_id else "")


def plain(text: str) -> str:
    """Return a line of Markdown as plain text, without backticks and asterisks.

    Args:
        text: The text.
    """
    return BOLD.sub(r"\1", CODE.sub(r"\1", text))


def markup(template: str | Path, **values: Any) -> str:
    """Render a template; all values are escaped.

    Args:
        template: File of the template; a bare name is one of this package's own.
        **values: Variables of the template.

    Returns:
        HTML.
    """
    path = HERE / "templates" / template
    return _environment(path.parent).get_template(path.name).render(values)


def label_of(name: str) -> str:
    """Return a label for an identifier: `Number of posts` for `n_posts`; capital letters stay, and begin a word."""
    text = " ".join(BEGINNING.sub(" ", name.removeprefix("n_")).split("_")).strip()
    text = f"number of {text}" if name.startswith("n_") else text
    return text[:1].upper() + text[1:]


def fault_text(what: str, fault: Exception, hide: Callable[[str], str]) -> str:
    """Return the message of an exception for a page; unexpected ones are also logged with their traceback.

    Args:
        what: What failed, as the subject of a sentence.
        fault: The exception.
        hide: Removes secrets.
    """
    if isinstance(fault, MesaLLMError):
        return hide(str(fault))
    text = f"{what} failed with {type(fault).__name__}: {fault}"
    logger.error("%s\n%s", hide(text), hide("".join(traceback.format_exception(fault))))
    return hide(text)
