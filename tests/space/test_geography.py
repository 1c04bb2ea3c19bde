"""Seeing on maps of mesa-geo."""

from __future__ import annotations

from typing import Any

import geopandas
import mesa
import numpy as np
import pytest
from mesa_geo import GeoAgent, GeoSpace, RasterLayer
from shapely import Point, box

from mesa_llm import LLMAgent, LLMModel, Observation
from mesa_llm.errors import ConfigError
from mesa_llm.space import describe_surroundings, surroundings

METRES, DEGREES = "epsg:32633", "epsg:4326"


class Town(mesa.Model):
    """A model with one map."""

    def __init__(self, *shapes: Any, crs: str = METRES, layers: Any = ()) -> None:
        super().__init__()
        self.town = GeoSpace(crs=crs)
        self.town.add_agents([GeoAgent(self, shape, crs) for shape in shapes])
        for layer in layers:
            self.town.add_layer(layer)

    def text(self, radius: float | None = None) -> str:
        return describe_surroundings(self.town.agents[0], radius).text


def test_points_are_seen_nearest_first_with_distance_and_direction() -> None:
    town = Town(Point(1_500_000, 20), Point(1_500_000, 320.5), Point(1_499_970, 20), Point(1_500_000, 20))
    assert town.text().splitlines() == [
        "You are at point 1500000,20 of a map.",
        "Around you, nearest first:",
        "- GeoAgent 4: in the same place (1500000,20)",
        "- GeoAgent 3: 30.0 metres away, west (1499970,20)",
        "- GeoAgent 2: 300.5 metres away, north (1500000,320.5)",
    ]
    assert "GeoAgent 2" not in town.text(radius=100)
    assert Town(Point(0, 0)).text().endswith("\nNobody else is on the map.")
    assert Town(Point(0, 0)).text(5).endswith("\nNobody else is within a distance of 5 metres.")


def test_a_distance_is_that_of_the_map() -> None:
    lines = Town(Point(13.40496, 52.52), Point(13.40496, 52.53), crs=DEGREES).text().splitlines()
    assert lines[0] == "You are at point 13.40496,52.52 of a map."
    assert lines[2] == "- GeoAgent 2: 0.01 degrees away, north (13.40496,52.53)"


def test_areas_touch_contain_and_overlap() -> None:
    town = Town(box(0, 0, 2, 2), box(2, 0, 4, 2), box(-9, -9, 9, 9), box(0.5, 0.5, 1, 1), box(1, 1, 3, 3), Point(9, 1))
    assert [
        (other.agent, other.where, other.distance) for other in surroundings(town.town.agents[0], 5).neighbours
    ] == [
        (2, "touching, east", 0),
        (3, "around you", 0),
        (4, "inside your area", 0),
        (5, "overlapping your area", 0),
    ]
    assert town.text().startswith("Your area lies around point 1,1 of a map.")


def test_an_agent_that_moved_is_seen_where_it_is() -> None:
    town = Town(Point(0, 0), Point(1, 0))
    assert "GeoAgent 2" in town.text(5)
    town.town.agents[1].geometry = Point(50, 0)
    assert "GeoAgent 2" not in town.text(5)


def test_layers_are_read_at_the_own_point() -> None:
    raster = RasterLayer(2, 2, METRES, [0, 0, 4, 4], mesa.Model())
    raster.apply_raster(np.array([[[1.0, 2.0], [3.0, 4.0]]]), attr_name="height")
    zones = geopandas.GeoDataFrame({"zone": ["old"]}, geometry=[box(2, 2, 9, 9)], crs=METRES)
    assert surroundings(Town(Point(3, 3), layers=[raster, zones]).town.agents[0]).layers == {
        "height": 2.0,
        "zone": "old",
    }
    assert surroundings(Town(Point(1, 1), layers=[raster, zones]).town.agents[0]).layers == {"height": 3.0}
    assert surroundings(Town(Point(-1, 1), layers=[raster, zones]).town.agents[0]).layers == {}


@pytest.mark.parametrize("radius", [-1, float("nan"), float("inf")])
def test_a_radius_that_is_no_distance_is_refused(radius: float) -> None:
    with pytest.raises(ConfigError, match="a radius on a map"):
        Town(Point(0, 0)).text(radius)


def test_a_shape_on_no_map_is_an_error_that_says_what_to_do() -> None:
    agent = GeoAgent(mesa.Model(), Point(0, 0), METRES)
    with pytest.raises(ConfigError, match="no GeoSpace of its model holds it; store the space"):
        surroundings(agent)


def test_agents_with_minds_see_the_map_by_themselves() -> None:
    class Resident(GeoAgent, LLMAgent):
        def rule(self, seen: Observation) -> None:
            assert "metres away" in seen.text

    class Quarter(LLMModel):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.space = GeoSpace(crs=METRES)
            self.space.add_agents([Resident(self, Point(10 * n, 0), METRES) for n in range(3)])

    model = Quarter(llm="rule", rng=1)
    assert "- Resident 2: 10.0 metres away, east (10,0)" in model.space.agents[0].observe().text
    model.step()
    assert model.usage.failures == 0
