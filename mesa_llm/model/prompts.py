"""Prompts kept as files, `prompts/*.md` beside a model's code, filled in by jinja2."""

from __future__ import annotations

import inspect
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from mesa_llm.errors import ConfigError

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


def _found(kind: type[Any], name: str) -> tuple[str, int, int] | None:
    """Return the prompt file of a class, its modification time and its size: it may be edited while a model runs."""
    for path in _places(kind, name):
        try:
            state = os.stat(path)
        except OSError:
            continue
        if stat.S_ISREG(state.st_mode):
            return path, state.st_mtime_ns, state.st_size
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


def open_prompt(kind: type[Any], name: str) -> PromptFile:
    """Read a prompt file of a class; see `find_prompt`.

    Args:
        kind: The class.
        name: File name.

    Raises:
        ConfigError: If there is no such file, or it is no template.
    """
    found = _found(kind, name)
    if found is None:
        raise ConfigError(f"{kind.__name__} has no {FOLDER}/{name}; put it beside the file that defines the class")
    return _opened(*found)


class PromptFile:
    """The text of a prompt file, with variables.

    Attributes:
        path: The file.
    """

    __slots__ = ("_template", "path")

    def __init__(self, path: str) -> None:
        """Read the file.

        Args:
            path: The file.

        Raises:
            ConfigError: If it is no template.
        """
        from jinja2 import Environment, StrictUndefined, TemplateError

        self.path = path
        environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
        try:
            self._template = environment.from_string(Path(path).read_text(encoding="utf-8"))
        except TemplateError as error:
            raise ConfigError(f"{path}: {error}") from error

    def fill(self, values: Mapping[str, Any]) -> str:
        """Fill in the variables, and strip the text.

        Args:
            values: Variables of the template.

        Raises:
            ConfigError: If a variable has no value.
        """
        from jinja2 import TemplateError

        try:
            return self._template.render(values).strip()
        except TemplateError as error:
            raise ConfigError(f"{self.path}: {error}") from error


@lru_cache(maxsize=256)
def _opened(path: str, _changed: int, _size: int) -> PromptFile:
    return PromptFile(path)
