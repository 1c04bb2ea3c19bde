"""Prompts kept as files: `prompts/*.md` beside a model's code, filled in by jinja2."""

from __future__ import annotations

import inspect
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mesa_llm.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Template

FOLDER = "prompts"
"""Name of the folder beside the code."""


def find_prompt(kind: type[Any], name: str) -> Path | None:
    """Find a prompt file of a class, or of the first class that it inherits from and that has one.

    Args:
        kind: The class; the folder `prompts` lies beside the file that defines it.
        name: File name, such as `instructions.md`.

    Returns:
        The file; None if no class has one.
    """
    for cls in kind.__mro__:
        if cls.__module__.startswith("mesa_llm."):  # what comes after it is no model of anybody's
            break
        try:
            path = Path(inspect.getfile(cls)).parent / FOLDER / name
            if path.is_file():
                return path
        except (OSError, TypeError):  # built in, or defined in a notebook
            continue
    return None


def render_prompt(kind: type[Any], name: str, **values: Any) -> str:
    """Fill in a prompt file of a class; see `find_prompt`.

    Args:
        kind: The class.
        name: File name.
        **values: Variables of the template.

    Returns:
        The text, stripped.

    Raises:
        ConfigError: If there is no such file, or one of its variables has no value.
    """
    from jinja2 import TemplateError

    path = find_prompt(kind, name)
    if path is None:
        raise ConfigError(f"{kind.__name__} has no {FOLDER}/{name}; put it beside the file that defines the class")
    try:
        return _template(path, path.stat().st_mtime_ns).render(values).strip()
    except TemplateError as error:
        raise ConfigError(f"{path}: {error}") from error


@lru_cache(maxsize=256)
def _template(path: Path, _changed: int) -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return environment.from_string(path.read_text(encoding="utf-8"))
