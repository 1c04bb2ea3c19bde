"""Prompts kept as files, `prompts/*.md` beside a model's code, filled in by jinja2."""

from __future__ import annotations

import inspect
import os
import stat
from contextlib import suppress
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
    found = _found(kind, name)
    return None if found is None else Path(found[0])


def _found(kind: type[Any], name: str) -> tuple[str, int] | None:
    """Return the prompt file of a class and its modification time: prompts may be edited while a model runs."""
    for path in _places(kind, name):
        try:
            state = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(state.st_mode):
            return path, state.st_mtime_ns
    return None


@lru_cache(maxsize=256)
def _places(kind: type[Any], name: str) -> tuple[str, ...]:
    """List where a prompt file of a class may lie, the class's own folder first."""
    places: list[str] = []
    for cls in kind.__mro__:
        if cls.__module__.startswith("mesa_llm."):  # models of users come before the library's own classes
            break
        with suppress(OSError, TypeError):  # built in, or defined in a notebook
            places.append(str(Path(inspect.getfile(cls)).parent / FOLDER / name))
    return tuple(places)


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

    found = _found(kind, name)
    if found is None:
        raise ConfigError(f"{kind.__name__} has no {FOLDER}/{name}; put it beside the file that defines the class")
    try:
        return _template(*found).render(values).strip()
    except TemplateError as error:
        raise ConfigError(f"{found[0]}: {error}") from error


@lru_cache(maxsize=256)
def _template(path: str, _changed: int) -> Template:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    return environment.from_string(Path(path).read_text(encoding="utf-8"))
