"""The page of a model: in the gallery, for a classroom, or with a recorded run."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module, resources
from typing import Any

from reacton.core import Element

from mesa_llm.errors import ConfigError
from mesa_llm.registry import ModelEntry
from mesa_llm.viz.classroom.lesson import Lesson
from mesa_llm.viz.render.markup import fault_text, label_of
from mesa_llm.viz.render.thumbnail import placeholder
from mesa_llm.viz.server.page import LLMPage, declared_controls, initial_settings
from mesa_llm.viz.session.run_settings import RunSettings


@dataclass(frozen=True)
class ModelPage:
    """A model and its page."""

    entry: ModelEntry
    """Registry entry of the model."""

    page: Any = None
    """Its page, an element or a component; None if it cannot be shown."""

    fault: str = ""
    """Why it cannot be shown; empty if it can."""

    @property
    def title(self) -> str:
        """Its title: that of its page, else the name of the model."""
        name = getattr(self.page, "kwargs", {}).get("name")
        return name or label_of(self.entry.name)

    @property
    def picture(self) -> str:
        """Its thumbnail as a data URL: the file `picture.svg` of its package, or a placeholder."""
        file = resources.files(self.entry.package).joinpath("picture.svg") if self.entry.package else None
        svg = file.read_text(encoding="utf-8") if file is not None and file.is_file() else placeholder(self.entry.name)
        return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"

    def element(self, **options: Any) -> Element[Any]:
        """Return an element that shows the page of this model.

        Args:
            **options: Options of `LLMPage` besides those of the model's own page.

        Raises:
            ConfigError: If it cannot be shown.
        """
        if self.fault:
            raise ConfigError(self.fault)
        arguments, named = self._arguments()
        return LLMPage(*arguments, **{**named, **options})

    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of the model's own page, or of a default one."""
        named: dict[str, Any] = {"name": self.title}
        if isinstance(self.page, Element) and self.page.component is LLMPage:
            return tuple(self.page.args), {**named, **self.page.kwargs}
        return (self.entry.load(),), named

    def seating(self, lesson: Lesson, **options: Any) -> str:
        """Describe in a sentence how many seats a class gets in the first model, and who decides for the other agents.

        Args:
            lesson: The lesson.
            **options: Options of `LLMPage` besides those of the model's own page.

        Raises:
            ConfigError: If the model cannot be built, or nobody can play in it.
        """
        arguments, named = self._arguments()
        named |= options
        factory = arguments[0] if arguments else named["model"]
        params = named.get("model_params")
        choice = initial_settings(
            declared_controls(factory) if params is None else params,
            **{name: named[name] for name in ("llm", "rng") if name in named},
            parameters=named.get("parameters", {}),
        )
        return lesson.seating(factory, choice.arguments(factory)).summary

    def placing(self, **options: Any) -> Callable[[], Any]:
        """Return a function that places the page of this model, for `PageServer`.

        Args:
            **options: Options of `LLMPage` besides those of the model's own page.

        Raises:
            ConfigError: If it cannot be shown.
        """
        if self.fault:
            raise ConfigError(self.fault)
        return partial(self.element, **options)


def model_page(entry: ModelEntry) -> ModelPage:
    """Import a model and its page; a model without one gets a default page.

    Args:
        entry: The model.
    """
    try:
        model = entry.load()
        page = import_module(f"{entry.package}.app").page if entry.has_page else LLMPage(model)
    except Exception as error:  # noqa: BLE001 - a model is anybody's code; the gallery shows what it raised
        return ModelPage(entry, fault=fault_text(f"Importing the page of {entry.name}", error, RunSettings().hide))
    return ModelPage(entry, page)
