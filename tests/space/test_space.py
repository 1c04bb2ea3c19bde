"""Seeing and moving in every space of Mesa."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import mesa
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mesa.discrete_space import (
    Cell,
    CellAgent,
    FixedAgent,
    HexGrid,
    Network,
    OrthogonalMooreGrid,
    OrthogonalVonNeumannGrid,
    VoronoiGrid,
)
from mesa.experimental.continuous_space import ContinuousSpace, ContinuousSpaceAgent

from mesa_llm.config import AgentConfig, ConfigMixin
from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.records import ActionResult, ToolCall
from mesa_llm.space import MovesOnGrid, MovesToPlaces, Surroundings, describe_surroundings, surroundings
from mesa_llm.tools.toolbox import ToolBox

pytestmark = pytest.mark.contract

CENTROIDS = [[0, 0], [4, 0], [0, 4], [4, 4], [2, 2]]


class Sheep(CellAgent):
    """Moves, thinks nothing."""


class Grass(FixedAgent):
    """Stays."""


class Walker(MovesOnGrid, CellAgent):
    """Walks by compass."""


class Traveller(MovesToPlaces, CellAgent):
    """Goes to places by name."""


class Boid(ContinuousSpaceAgent):
    """Flies."""


class Meadow(mesa.Model):
    """A model with one space."""

    grid: Any
    space: Any

    def __init__(self) -> None:
        super().__init__(rng=1)

    def put(self, kind: type, *coordinates: Any) -> list[Any]:
        agents = []
        for coordinate in coordinates:
            agent = kind(self)
            agent.cell = self.grid[coordinate]
            agents.append(agent)
        return agents


def meadow(kind: type, *shape: Any, **given: Any) -> Any:
    model = Meadow()
    model.grid = kind(*shape, random=model.random, **given)
    return model


def star() -> Any:
    graph = nx.Graph([("hub", "Ann"), ("hub", "Bob"), ("Bob", "Cid")])
    return meadow(Network, graph, layout=dict.fromkeys(graph, (0, 0)))


def sky(torus: bool = False) -> Any:
    model = Meadow()
    model.space = ContinuousSpace([[0, 10], [0, 10]], torus=torus, random=model.random)
    return model


def fly(model: Any, *points: tuple[float, float]) -> list[Any]:
    boids = [Boid(model.space, model) for _ in points]
    for boid, point in zip(boids, points, strict=True):
        boid.position = np.array(point)
    return boids


def wheres(seen: Surroundings) -> dict[Any, str]:
    return {other.place: other.where for other in seen.neighbours}


@pytest.mark.parametrize("grid", [OrthogonalMooreGrid, OrthogonalVonNeumannGrid])
def test_north_is_the_row_above(grid: type) -> None:
    model = meadow(grid, (5, 5))
    me, *_ = model.put(Sheep, (2, 2), (1, 2), (3, 2), (2, 3), (2, 1))
    assert wheres(surroundings(me)) == {
        (1, 2): "north",
        (3, 2): "south",
        (2, 3): "east",
        (2, 1): "west",
    }


def test_a_diagonal_is_one_direction_where_it_is_one_move() -> None:
    model = meadow(OrthogonalMooreGrid, (5, 5))
    me, *_ = model.put(Sheep, (2, 2), (1, 3), (4, 0), (4, 3), (2, 0))
    assert wheres(surroundings(me, 2)) == {
        (1, 3): "north-east",
        (4, 0): "2 cells south-west",
        (4, 3): "2 south and 1 east",
        (2, 0): "2 cells west",
    }


def test_a_diagonal_is_two_moves_in_a_von_neumann_grid() -> None:
    model = meadow(OrthogonalVonNeumannGrid, (5, 5))
    me, other = model.put(Sheep, (2, 2), (1, 3))
    assert surroundings(me, 1).neighbours == ()
    assert wheres(surroundings(me, 2)) == {(1, 3): "1 north and 1 east"}
    assert surroundings(me, 2).neighbours[0].agent == other.unique_id


@pytest.mark.parametrize(("row", "column"), [(2, 2), (2, 3)])
def test_a_hexagon_touches_six_others_in_six_directions(row: int, column: int) -> None:
    model = meadow(HexGrid, (6, 6))
    (me,) = model.put(Walker, (row, column))
    spots = {spot.where: spot.place for spot in surroundings(me).empty if spot.distance}
    assert sorted(spots) == ["north", "north-east", "north-west", "south", "south-east", "south-west"]
    assert spots["north"] == (row - 1, column)
    assert spots["north-east"] == (row - column % 2, column + 1)


@given(
    st.sampled_from([OrthogonalMooreGrid, OrthogonalVonNeumannGrid, HexGrid]),
    st.tuples(st.integers(0, 5), st.integers(0, 7)),
    st.sampled_from(["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"]),
)
@settings(max_examples=60, deadline=None)
def test_whoever_walks_there_and_back_is_home(grid: type, start: tuple[int, int], way: str) -> None:
    model = meadow(grid, (6, 8), torus=True)
    (me,) = model.put(Walker, start)
    options = describe_surroundings(me).options["direction"]
    if way in options:
        opposite = {"north": "south", "east": "west", "south": "north", "west": "east"}
        back = "-".join(opposite[part] for part in way.split("-"))
        me.move(way)
        assert me.cell.coordinate != start
        me.move(back)
    assert me.cell.coordinate == start


def test_a_torus_is_seen_the_shorter_way_round() -> None:
    model = meadow(OrthogonalMooreGrid, (5, 7), torus=True)
    me, *_ = model.put(Sheep, (0, 0), (4, 0), (0, 6), (3, 5))
    assert wheres(surroundings(me, 2)) == {(4, 0): "north", (0, 6): "west", (3, 5): "2 cells north-west"}


def test_the_edge_of_a_grid_hides_nothing_behind_it() -> None:
    model = meadow(OrthogonalMooreGrid, (5, 5))
    me, *_ = model.put(Sheep, (0, 0), (4, 4))
    assert surroundings(me).neighbours == ()
    assert "Nobody else is within 1 cell." in surroundings(me).text


def test_linked_agents_are_seen_in_a_network() -> None:
    model = star()
    me, *_ = model.put(Sheep, "hub", "Ann", "Cid")
    assert wheres(surroundings(me, 2)) == {"Ann": "linked", "Cid": "2 links away"}


def test_a_network_with_a_grid_for_nodes_is_still_a_network() -> None:
    model = meadow(Network, nx.grid_2d_graph(2, 2), layout=lambda graph: {node: node for node in graph})
    me, *_ = model.put(Sheep, (0, 0), (0, 1))
    assert surroundings(me).kind == "network"
    assert wheres(surroundings(me)) == {(0, 1): "linked"}


def test_neighbouring_regions_are_seen() -> None:
    model = meadow(VoronoiGrid, CENTROIDS)
    me, *_ = model.put(Sheep, 4, 0)
    seen = surroundings(me)
    assert (seen.kind, seen.place) == ("regions", 4)
    assert wheres(seen) == {0: "adjacent"}


def test_distance_and_direction_are_seen_in_the_plane() -> None:
    me, *_ = fly(sky(), (5, 5), (5, 7.5), (6, 4), (0, 0))
    assert wheres(surroundings(me, 3)) == {(6, 4): "1.4 away, south-east", (5, 7.5): "2.5 away, north"}


def test_a_plane_that_wraps_is_seen_the_shorter_way_round() -> None:
    me, _ = fly(sky(torus=True), (0.5, 5), (9.5, 5))
    assert wheres(surroundings(me, 2)) == {(9.5, 5): "1.0 away, west"}


def test_alone_in_the_plane_nobody_is_seen() -> None:
    (me,) = fly(sky(), (5, 5))
    assert surroundings(me, 3).text == "You are at point 5,5.\nNobody else is within a distance of 3."


def test_an_agent_in_no_space_sees_nothing_and_reads_nothing() -> None:
    for agent in (mesa.Agent(Meadow()), Sheep(Meadow()), Walker(Meadow())):
        seen = describe_surroundings(agent)
        assert (seen.text, seen.facts, seen.options) == ("", Surroundings("nowhere"), {})


def test_an_agent_in_no_space_reads_who_else_there_is() -> None:
    model = Meadow()
    me, other, *_ = [Sheep(model) for _ in range(25)]
    assert describe_surroundings(me).text.splitlines()[:2] == ["You are Sheep 1. The others:", "- Sheep 2"]
    assert describe_surroundings(me).text.splitlines()[20:] == ["- Sheep 21", "- and 4 more"]
    assert describe_surroundings(other).text.splitlines()[1] == "- Sheep 3"
    assert "- woolly" in describe_surroundings(me, describe=lambda agent: "woolly\n").text


def test_a_grid_of_three_dimensions_is_seen_along_its_axes() -> None:
    model = meadow(OrthogonalMooreGrid, (3, 3, 3))
    me, *_ = model.put(Sheep, (1, 1, 1), (0, 1, 2))
    assert wheres(surroundings(me)) == {(0, 1, 2): "-1 on axis 0, +1 on axis 2"}


def test_the_nearest_come_first_and_then_the_lower_id() -> None:
    model = meadow(OrthogonalMooreGrid, (5, 5))
    me, *others = model.put(Sheep, (2, 2), (4, 4), (3, 3), (1, 1), (2, 2))
    far, south, north, here = (other.unique_id for other in others)
    assert [other.agent for other in surroundings(me, 2).neighbours] == [here, south, north, far]


def test_only_cells_within_reach_are_visited() -> None:
    visited: list[Any] = []

    class Watched(Cell):
        @property
        def agents(self) -> list[Any]:
            visited.append(self.coordinate)
            return super().agents

    model = meadow(OrthogonalMooreGrid, (30, 30), cell_klass=Watched)
    (me, *_) = model.put(Sheep, *[(row, column) for row in range(30) for column in range(30)])
    surroundings(me, 2)
    assert sorted(visited) == [(row, column) for row in range(3) for column in range(3)]


def test_empty_cells_and_cells_with_room_are_told_apart() -> None:
    model = meadow(OrthogonalVonNeumannGrid, (3, 3), capacity=2)
    me, *_ = model.put(Sheep, (1, 1), (0, 1), (1, 0), (1, 0))
    seen = surroundings(me)
    assert [spot.label for spot in seen.empty] == ["1,2", "2,1"]
    assert [spot.label for spot in seen.open] == ["0,1", "1,2", "2,1"]


def test_property_layers_of_the_own_cell_are_seen() -> None:
    model = meadow(OrthogonalMooreGrid, (3, 3))
    model.grid.create_property_layer("sugar", default_value=2.0)
    model.grid.create_property_layer("burnt", default_value=False, dtype=bool)
    (me,) = model.put(Sheep, (1, 1))
    me.cell.sugar = 3.5
    assert surroundings(me).layers == {"burnt": False, "sugar": 3.5}
    assert "Here: burnt no, sugar 3.5." in surroundings(me).text


def test_plain_properties_of_a_cell_without_layers_are_seen() -> None:
    model = star()
    (me,) = model.put(Sheep, "hub")
    me.cell.properties.update(rent=120, map=[1, 2])
    assert surroundings(me).layers == {"rent": 120}


def test_agents_that_think_nothing_are_named_by_class_and_id() -> None:
    model = meadow(OrthogonalMooreGrid, (3, 3))
    me, *_ = model.put(Sheep, (1, 1))
    model.put(Grass, (1, 1))
    assert "- Grass 2: in your cell (1,1)" in surroundings(me).text


def test_an_agent_with_a_name_goes_by_it() -> None:
    class Resident(ConfigMixin, CellAgent):
        """Has a name."""

    model = meadow(OrthogonalMooreGrid, (3, 3))
    (me,) = model.put(Sheep, (1, 1))
    anna = Resident(model, config=AgentConfig(name="Anna"))
    anna.cell = model.grid[0, 1]
    assert surroundings(me).neighbours[0].description == "Anna (2)"


def test_a_callback_says_what_a_neighbour_is_on_one_line() -> None:
    model = meadow(OrthogonalMooreGrid, (3, 3))
    me, _ = model.put(Sheep, (1, 1), (0, 1))
    seen = surroundings(me, describe=lambda other: f"sheep\n- number {other.unique_id} " + "x" * 999)
    assert seen.neighbours[0].description.startswith("sheep - number 2 xxx")
    assert len(seen.neighbours[0].description) == 300


def test_a_crowd_is_counted_not_listed() -> None:
    model = meadow(OrthogonalMooreGrid, (3, 3))
    me, *_ = model.put(Sheep, *[(1, 1)] * 50)
    assert len(surroundings(me).neighbours) == 49
    assert surroundings(me).text.count("Sheep") == 20
    assert "- and 29 more" in surroundings(me).text


def test_the_whole_text_reads_like_this() -> None:
    model = meadow(OrthogonalVonNeumannGrid, (3, 3), capacity=1)
    me, *_ = model.put(Walker, (1, 1), (0, 1))
    assert describe_surroundings(me).text == (
        "You are in cell 1,1 of a grid; cells are row,column.\n"
        "Within 1 cell:\n"
        "- Walker 2: north (0,1)\n"
        "Empty cells: 1,0 (west); 1,2 (east); 2,1 (south).\n"
        "You can go to: 1,0 (west); 1,2 (east); 2,1 (south)."
    )


def test_looking_changes_nothing_and_always_sees_the_same() -> None:
    model = meadow(OrthogonalMooreGrid, (4, 4))
    me, *_ = model.put(Sheep, (1, 1), (2, 2), (0, 1))
    state = model.random.getstate()
    assert surroundings(me, 2) == surroundings(me, 2)
    assert model.random.getstate() == state


def test_the_space_is_found_under_any_name_of_the_model() -> None:
    model = meadow(OrthogonalMooreGrid, (3, 3))
    model.land, model.grid = model.grid, None
    sheep = Sheep(model)
    sheep.cell = model.land[1, 1]
    assert surroundings(sheep).kind == "grid"


def test_a_space_that_nobody_names_is_an_error_that_says_what_to_do() -> None:
    model = Meadow()
    sheep = Sheep(model)
    sheep.cell = OrthogonalMooreGrid((3, 3), random=model.random)[1, 1]
    with pytest.raises(ConfigError, match=r"store the space as an attribute of the model"):
        surroundings(sheep)


@pytest.mark.skipif(not mesa.__version__.startswith("3"), reason="Mesa 4 has no mesa.space")
def test_an_old_space_is_refused_rather_than_seen_empty() -> None:
    from mesa.space import MultiGrid

    model = Meadow()
    model.grid = MultiGrid(3, 3, torus=False)
    agent = mesa.Agent(model)
    model.grid.place_agent(agent, (1, 1))
    with pytest.raises(ConfigError, match=r"MultiGrid of mesa\.space, which Mesa 4 removed"):
        surroundings(agent)


@pytest.mark.parametrize("radius", [-1, 1.5, float("nan"), float("inf")])
def test_a_radius_that_counts_no_cells_is_refused(radius: float) -> None:
    (me,) = meadow(OrthogonalMooreGrid, (3, 3)).put(Sheep, (1, 1))
    with pytest.raises(ConfigError, match="whole number of 0 or more"):
        surroundings(me, radius)


@pytest.mark.parametrize("radius", [0, -1, float("nan"), float("inf")])
def test_a_radius_that_is_no_distance_is_refused(radius: float) -> None:
    (me,) = fly(sky(), (5, 5))
    with pytest.raises(ConfigError, match="number above 0"):
        surroundings(me, radius)


def act(agent: Any, name: str, **arguments: Any) -> ActionResult:
    return ToolBox.of(agent, agent.unique_id).call(ToolCall(name, arguments))


def test_an_agent_walks_by_compass() -> None:
    (me,) = meadow(OrthogonalMooreGrid, (3, 3)).put(Walker, (1, 1))
    assert act(me, "move", direction="north-east").text == "You moved to 0,2."
    assert me.cell.coordinate == (0, 2)


def test_nobody_walks_over_the_edge() -> None:
    (me,) = meadow(OrthogonalVonNeumannGrid, (3, 3)).put(Walker, (0, 1))
    with pytest.raises(ToolError, match=r"no cell 'north' next to yours; you can go to: 0,0 \(west\)"):
        act(me, "move", direction="north")
    assert me.cell.coordinate == (0, 1)


def test_nobody_walks_into_a_full_cell() -> None:
    model = meadow(OrthogonalVonNeumannGrid, (3, 3), capacity=1)
    me, _ = model.put(Walker, (1, 1), (0, 1))
    with pytest.raises(ToolError, match="the cell 'north' is full; you can go to"):
        act(me, "move", direction="north")


def test_a_walker_with_no_way_out_is_not_offered_to_move() -> None:
    model = meadow(OrthogonalVonNeumannGrid, (1, 2), capacity=1)
    me, _ = model.put(Walker, (0, 0), (0, 1))
    seen = describe_surroundings(me)
    assert list(ToolBox.of(me, me.unique_id).usable) == []
    assert seen.options == {}
    assert seen.text.endswith("You cannot go anywhere now.")


def test_a_walker_is_offered_the_directions_that_are_free() -> None:
    model = meadow(OrthogonalVonNeumannGrid, (3, 3), capacity=1)
    me, _ = model.put(Walker, (0, 1), (1, 1))
    assert describe_surroundings(me).options == {"direction": ("west", "east")}


def test_walking_by_compass_in_a_network_is_a_mistake_that_is_named() -> None:
    (me,) = star().put(Walker, "hub")
    with pytest.raises(ConfigError, match="in a Network use MovesToPlaces"):
        me.can_move()


@pytest.mark.parametrize("moves", [MovesOnGrid, MovesToPlaces])
def test_who_is_in_no_cell_is_told_what_moves_are_for(moves: type) -> None:
    model = sky()
    kite = type("Kite", (moves, Boid), {})(model.space, model)
    kite.position = np.array((1.0, 1.0))
    with pytest.raises(ConfigError, match=r"Kite has no cell to move from: .* are for agents in cells"):
        kite.can_move()


@pytest.mark.parametrize(
    ("space", "start", "place", "end"),
    [
        (star, "hub", "Ann", "Ann"),
        (lambda: meadow(VoronoiGrid, CENTROIDS), 4, 3, 3),
        (lambda: meadow(VoronoiGrid, CENTROIDS), 4, "3", 3),
        (lambda: meadow(OrthogonalMooreGrid, (3, 3)), (1, 1), "0,1", (0, 1)),
        (lambda: meadow(OrthogonalMooreGrid, (3, 3)), (1, 1), "(0, 1)", (0, 1)),
        (lambda: meadow(HexGrid, (4, 4)), (1, 1), [0, 1], (0, 1)),
    ],
)
def test_an_agent_goes_to_a_place_by_its_name(space: Any, start: Any, place: Any, end: Any) -> None:
    (me,) = space().put(Traveller, start)
    assert str(me.cell.coordinate) not in describe_surroundings(me).options["place"]
    act(me, "go_to", place=place)
    assert me.cell.coordinate == end


@pytest.mark.parametrize("place", ["Cid", "hub", "", "nowhere" * 99, "['Ann']"])
def test_nobody_goes_to_a_place_that_is_not_next_to_theirs(place: str) -> None:
    (me,) = star().put(Traveller, "hub")
    with pytest.raises(ToolError, match=r"you can go to: Ann \(linked\); Bob \(linked\)\.") as refusal:
        act(me, "go_to", place=place)
    assert len(str(refusal.value)) < 200


@pytest.mark.parametrize("place", [None, True, 1.5, {"place": "Ann"}])
def test_a_place_that_is_no_name_is_refused(place: Any) -> None:
    (me,) = star().put(Traveller, "hub")
    with pytest.raises(ToolError, match="go_to: place"):
        act(me, "go_to", place=place)


def test_an_agent_in_no_place_goes_nowhere() -> None:
    me = Traveller(Meadow())
    assert not me.can_move()
    with pytest.raises(ToolError, match="no place that you could move from"):
        me.go_to("Ann")


def test_a_traveller_keeps_the_move_of_mesa() -> None:
    model = star()
    (me,) = model.put(Traveller, "hub")
    me.move_to(model.grid["Cid"])
    assert me.cell.coordinate == "Cid"


def test_importing_spaces_loads_no_more_than_mesa_and_pydantic_do() -> None:
    heavy = ("tokenizers", "litellm", "solara", "matplotlib", "jinja2")
    code = f"import sys, mesa_llm.space; sys.exit(str([n for n in {heavy} if n in sys.modules] or ''))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
