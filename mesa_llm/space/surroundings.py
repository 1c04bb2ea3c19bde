"""The surroundings of an agent, as records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mesa_llm.space.text import Place, SpaceKind, place_label, surroundings_text


@dataclass(frozen=True, slots=True)
class Spot:
    """One cell near an agent."""

    place: Place
    """Coordinate of the cell, or its name in a network."""

    where: str
    """Its direction from the agent."""

    distance: int
    """Its distance in moves."""

    @property
    def label(self) -> str:
        """Name of the cell in texts and action arguments: `2,3`, `5`, `Anna`."""
        return place_label(self.place)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """One agent near another."""

    agent: int
    """Mesa `unique_id`."""

    description: str
    """Its description."""

    where: str
    """Its direction from the agent."""

    distance: float
    """Its distance: in moves, or in units of a continuous space or map."""

    place: Place
    """Its coordinates."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of an agent."""

    kind: SpaceKind
    """Kind of space."""

    place: Place | None = None
    """The agent's own place; None if it is in no space."""

    radius: float = 0
    """Range of sight: in moves, or in units of a continuous space or map; infinite if the nearest are seen."""

    neighbours: tuple[Neighbour, ...] = ()
    """The agents within the radius, nearest first, then by id."""

    empty: tuple[Spot, ...] = ()
    """The empty cells within the radius, nearest first."""

    open: tuple[Spot, ...] = ()
    """The cells one move away that have room."""

    layers: Mapping[str, Any] = field(default_factory=dict)
    """Property layers and other plain properties of its cell, or layers of a map at its point: name → value."""

    unit: str = ""
    """Unit of distances on a map: `metres`."""

    @property
    def text(self) -> str:
        """The surroundings as lines to read; empty if the agent is in no space."""
        return surroundings_text(self)
