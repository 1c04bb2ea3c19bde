"""Collect an agent's surroundings on a map of mesa-geo: other shapes near its own, and what the layers say there."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from mesa_llm.errors import ConfigError
from mesa_llm.space.text import MAX_SHOWN

_UNITS = {"metre": "metres", "degree": "degrees", "foot": "feet", "US survey foot": "US survey feet"}

_OF_MESA = frozenset({"model", "pos", "unique_id"})


def is_on_map(agent: Any) -> bool:
    """Check whether an agent is a `GeoAgent` of mesa-geo that has a shape."""
    mesa_geo = sys.modules.get("mesa_geo")  # nobody is on a map before it is imported
    return mesa_geo is not None and isinstance(agent, mesa_geo.GeoAgent) and agent.geometry is not None


def map_of(agent: Any) -> Any:
    """Find the map that holds an agent: its own `space`, or an attribute of its model.

    Raises:
        ConfigError: If neither holds it.
    """
    geo_space: Any = sys.modules["mesa_geo"].GeoSpace
    space: Any
    for space in (getattr(agent, "space", None), *vars(agent.model).values()):
        if isinstance(space, geo_space) and any(other is agent for other in space.agents):
            return space
    raise ConfigError(
        f"{type(agent).__name__} {agent.unique_id} has a shape, but no GeoSpace of its model holds it; store the "
        "space as an attribute of the model (`self.space`), and add the agent with add_agents()"
    )


def unit_of_map(agent: Any) -> str:
    """Return the unit of distances in an agent's coordinate reference system: `metres`, `degrees`."""
    axes: Any = agent.crs.axis_info
    unit = axes[0].unit_name if axes else ""
    return _UNITS.get(unit, unit)


def shapes_near(agent: Any, space: Any, radius: float | None) -> list[tuple[Any, float]]:
    """Return the other agents on a map and their distances, nearest first, then by id.

    The distance of each is computed: the index of a `GeoSpace` does not follow an agent whose `geometry` is replaced.

    Args:
        agent: The observer.
        space: Its map.
        radius: Maximum distance between its shape and another, in units of the map; None for the nearest
            `MAX_SHOWN` at any distance.
    """
    import shapely

    others = [other for other in space.agents if other is not agent and other.geometry is not None]
    distances = shapely.distance(agent.geometry, [other.geometry for other in others]).tolist() if others else []
    near = sorted(zip(others, distances, strict=True), key=lambda pair: (pair[1], pair[0].unique_id))
    return near[:MAX_SHOWN] if radius is None else [pair for pair in near if pair[1] <= radius]


def point_of(shape: Any) -> tuple[float, float]:
    """Return a point inside a shape."""
    point = shape.representative_point()
    return (float(point.x), float(point.y))


def relation_words(shape: Any, other: Any) -> str:
    """Describe how a shape that is no distance away lies to one's own; empty if only its direction says so."""
    if shape.equals(other):
        return "in the same place"
    if other.contains(shape):
        return "around you"
    if shape.contains(other):
        return "inside your area"
    return "" if shape.touches(other) else "overlapping your area"


def layers_at(space: Any, point: tuple[float, float]) -> dict[str, Any]:
    """Return the values of a map's raster and vector layers at a point, by name."""
    import shapely

    values: dict[str, Any] = {}
    for layer in space.layers:
        if hasattr(layer, "cells"):
            values |= _raster_values(layer, point)
        elif hasattr(layer, "geometry"):
            inside = layer[layer.geometry.contains(shapely.Point(point))]
            if len(inside):
                values |= inside.drop(columns=layer.geometry.name).iloc[0].to_dict()
    return values


def _raster_values(layer: Any, point: tuple[float, float]) -> Mapping[str, Any]:
    """Return the attributes of the raster cell at a point; none outside."""
    from rasterio.transform import rowcol

    row, column = (int(part) for part in rowcol(layer.transform, *point))
    place = (column, layer.height - row - 1)  # rows count from the top, cells from the bottom
    if layer.out_of_bounds(place):
        return {}
    cell = vars(layer.cells[place[0]][place[1]])
    return {name: value for name, value in cell.items() if not name.startswith("_") and name not in _OF_MESA}
