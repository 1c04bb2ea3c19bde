"""Objects that belong to one model: its lock, its interviews, what a page shows of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PerModel[Thing]:
    """An object that every model carries as an attribute, made on first use and dropped with the model."""

    name: str
    """Name of the attribute."""

    make: Callable[[], Thing]
    """Makes the object; of two threads that call it at once, one keeps its result."""

    def of(self, model: Any) -> Thing:
        """Return the object of a model."""
        attributes: dict[str, Any] = vars(model)
        return attributes[self.name] if self.name in attributes else attributes.setdefault(self.name, self.make())

    def put(self, model: Any, thing: Thing) -> None:
        """Replace the object of a model."""
        vars(model)[self.name] = thing
