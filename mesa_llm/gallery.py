"""Finds models: ours, and those that other packages add through the entry-point group `mesa_llm.models`.

An entry point names a package. If it has a `model` module, it is a model; if not, the models are looked for in the
packages inside it. A model that cannot be imported is listed with its error, and disturbs nothing.
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module, resources
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from mesa_llm.errors import ConfigError

GROUP = "mesa_llm.models"
"""The entry-point group."""


@dataclass(frozen=True)
class ModelEntry:
    """A model that was found."""

    name: str
    """Name of its folder."""

    package: str
    """Its package: `model` and, if it has a page, `app` are in it."""

    error: str = ""
    """Why it cannot be used; empty if it was found whole."""

    def load(self) -> type[Any]:
        """Import its model class.

        Raises:
            ConfigError: If it cannot be imported, or its module holds not exactly one model.
        """
        from mesa_llm.model import LLMModel

        if self.error:
            raise ConfigError(f"the model {self.name!r} cannot be used: {self.error}")
        try:
            module = import_module(f"{self.package}.model")
        except Exception as error:
            raise ConfigError(f"the model {self.name!r} cannot be imported: {_said(error)}") from error
        own = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if kind.__module__ == module.__name__]
        found = [kind for kind in own if issubclass(kind, LLMModel)]
        if len(found) != 1:
            names = ", ".join(kind.__name__ for kind in found) or "none"
            raise ConfigError(f"{self.package}.model should define one LLMModel, found {names}")
        return found[0]

    @property
    def question(self) -> str:
        """What the model asks: the first line after `## Question` in its README, else of its docstring."""
        readme = resources.files(self.package).joinpath("README.md")
        if readme.is_file():
            lines = [line.strip() for line in readme.read_text(encoding="utf-8").splitlines()]
            for place, line in enumerate(lines):
                if line.lstrip("#").strip() == "Question":
                    return next((text for text in lines[place + 1 :] if text), "")
        return ""

    @property
    def has_page(self) -> bool:
        """True if it has a page of its own."""
        return find_spec(f"{self.package}.app") is not None


def find_models() -> list[ModelEntry]:
    """List all models, by name; of two with one name the first found is kept."""
    found: dict[str, ModelEntry] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        for entry in _models_in(point.name, point.value):
            found.setdefault(entry.name, entry)
    return sorted(found.values(), key=lambda entry: entry.name)


def find_model(name: str) -> ModelEntry:
    """Give a model by name.

    Raises:
        ConfigError: If there is none; the text lists those there are.
    """
    models = {entry.name: entry for entry in find_models()}
    wanted = name.replace("-", "_")
    if wanted not in models:
        raise ConfigError(f"there is no model {name!r}; there are: {', '.join(models) or 'none'}")
    return models[wanted]


def _models_in(name: str, package: str) -> Iterator[ModelEntry]:
    """Give the model that a package is, or those inside it."""
    try:
        if find_spec(f"{package}.model") is not None:
            yield ModelEntry(package.rpartition(".")[2], package)
            return
        module = import_module(package)
    except Exception as error:  # noqa: BLE001 - somebody else's package; it is listed with its error
        yield ModelEntry(name, package, _said(error))
        return
    for inner in pkgutil.iter_modules(getattr(module, "__path__", [])):
        if inner.ispkg:
            yield from _models_in(inner.name, f"{package}.{inner.name}")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
