"""Describe an agent's surroundings in any Mesa space, and let it move between cells."""

from mesa_llm.space.compass import Direction
from mesa_llm.space.moves import MovesOnGrid, MovesToPlaces, PlaceName, describe_surroundings
from mesa_llm.space.surroundings import Neighbour, Spot, Surroundings
from mesa_llm.space.text import Place, SpaceKind
from mesa_llm.space.view import Describe, description, surroundings

__all__ = [
    "Describe",
    "Direction",
    "MovesOnGrid",
    "MovesToPlaces",
    "Neighbour",
    "Place",
    "PlaceName",
    "SpaceKind",
    "Spot",
    "Surroundings",
    "describe_surroundings",
    "description",
    "surroundings",
]
