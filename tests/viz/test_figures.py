"""Plots of what a model is and measures."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from importlib.metadata import distribution
from inspect import getclosurevars
from io import BytesIO
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure as PlainFigure
from mesa.datacollection import DataCollector
from mesa.discrete_space import FixedAgent, OrthogonalMooreGrid
from mesa.visualization.components import PropertyLayerStyle
from PIL import Image

from mesa_llm.charts.chart import Chart, ChartSeries, literal
from mesa_llm.charts.palette import COLOURS, dark_of
from mesa_llm.charts.panels import Panels
from mesa_llm.charts.scenes import SpaceScene
from mesa_llm.charts.style import Figure, picture_of
from mesa_llm.registry import find_models
from mesa_llm.viz.components.plots import LIBRARY
from mesa_llm.viz.components.space import has_space, is_scene, plain_renderer, portray, redraw, rendered, scene_of
from mesa_llm.viz.render.figures import cost_charts, enlarge, measure_chart, measure_text, numbers_of
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.network import lay_out, network_scene, spots_on
from tests.browser.apps.village import Village
from tests.processes import run

PNG = b"\x89PNG\r\n"

FRESH = """
from mesa_llm.viz import Figure
from IPython.core.formatters import DisplayFormatter
figure = Figure()
figure.subplots().plot([1, 2])
print(sorted(DisplayFormatter().format(figure)[0]))
"""


def stepped(steps: int = 2, **parameters: Any) -> Village:
    """Make a village, and some steps."""
    model = Village(rng=1, **parameters)
    for _ in range(steps):
        model.step()
    return model


def test_figure_is_shown_by_a_kernel_without_matplotlibs_backend() -> None:
    assert "image/png" in run("-c", FRESH).out
    assert isinstance(Figure(), PlainFigure)


def test_collected_numbers_are_measures_and_costs_are_not() -> None:
    model = stepped()
    model.datacollector.model_vars["mood"] = ["good"] * 3
    model.datacollector.model_vars["is_calm"] = [True] * 3
    measures, costs = numbers_of(model)
    assert list(measures) == ["greetings"]
    assert list(costs) == ["calls", "tokens", "dollars", "failures", "seconds"]


@pytest.mark.parametrize("collects_at_start", [False, True])
def test_a_measure_is_drawn_over_its_own_steps_with_room_above_it(collects_at_start: bool) -> None:
    model = Village(rng=1)
    model.datacollector = DataCollector({"mood": lambda model: 5})
    if collects_at_start:
        model.datacollector.collect(model)
    model.run_for(2)
    chart = measure_chart(model, "mood")
    assert chart.series[0].at == [0, 1, 2][not collects_at_start :]
    assert chart.figure().axes[0].get_ylim()[1] > 5.2


def test_a_value_that_is_missing_is_not_zero() -> None:
    model = stepped()
    model.datacollector.model_vars["greetings"][:2] = [None, float("nan")]
    chart = measure_chart(model, "greetings")
    assert [value for _, value in chart.data()["series"][0]["points"]][:2] == [None, None]
    assert chart.table().splitlines()[:2] == ["Step,Greetings", "0,"]
    assert picture_of(chart.figure()).startswith(PNG)


def test_each_cost_of_a_run_has_a_chart() -> None:
    charts = cost_charts(stepped(llm="scripted"))
    assert [chart.title for chart in charts.values()][-1] == "Time for each step"
    assert b"<svg" in picture_of(charts["seconds"].figure(), "svg")


class Measured(Village):
    """A village with measures.

    Attributes:
        n_moves: Number of moves in the last step, of
            all villagers. Not more.
    """

    measures = {"wage": "Mean wage, in dollars"}  # noqa: RUF012
    n_moves = 1

    @property
    def calm(self) -> float:
        """Share of villagers who are calm: 1 if all are."""
        return 0.5


def test_a_measure_is_called_what_the_model_says_it_is() -> None:
    model = Measured(rng=1)
    model.datacollector = DataCollector({"n": "n_moves", "calm": "calm", "wage": lambda model: 7, "n_x": lambda m: 1})
    model.datacollector.collect(model)
    texts = [measure_text(model, name) for name in ("n", "calm", "n_x")]
    moves = "Number of moves in the last step, of all villagers"
    assert texts == [moves, "Share of villagers who are calm", "Number of x"]
    chart = measure_chart(model, "wage")
    assert (chart.title, chart.y) == ("Mean wage", "dollars")


def test_points_with_intervals_stay_in_their_rows() -> None:
    ours = ChartSeries(name="ours", kind="point", values=[0.2, None], low=[-0.1, None], high=[0.3, None])
    people = replace(ours, name="people", shape="D", values=[0.4, 0.5], low=(), high=())
    chance = ChartSeries(name="chance", kind="point", shape="|", values=[0.5, 0.5])
    zero = ChartSeries(kind="level", values=[0.0])
    chart = Chart(title="Scores", series=[zero, chance, ours, people], names=["a", "b"], is_horizontal=True, x="")
    assert chart.offsets == [0, 0, -0.12, 0.12]
    assert replace(chart, series=[zero, chance, ours]).offsets == [0, 0, 0]
    assert chart.table().splitlines() == [
        'name,chance,ours,"ours, low","ours, high",people',
        "a,0.5,0.2,-0.1,0.3,0.4",
        "b,0.5,,,,0.5",
    ]
    axes: Any = chart.figure().axes[0]
    assert axes.get_xlim()[0] < -0.1
    assert [text.get_text() for text in axes.get_yticklabels()] == ["a", "b"]
    json.dumps(chart.data(), allow_nan=False)


def test_colours_of_charts_stand_out_from_light_and_dark_pages() -> None:
    def luminance(colour: str) -> float:
        parts = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
        return float(np.dot(parts, (0.2126, 0.7152, 0.0722)))

    dark = [dark_of(colour) for colour in (*COLOURS, "#000000", "#0f172a", "#2563eb", "#7c3aed")]
    for colours, ground in ((COLOURS, "#ffffff"), (dark, "#1e1e1e")):
        for colour in colours:
            low, high = sorted((luminance(colour), luminance(ground)))
            assert (high + 0.05) / (low + 0.05) >= 3, colour


def test_the_library_that_draws_charts_is_served_from_an_installed_package() -> None:
    files = [str(file) for file in distribution("solara-assets").files or ()]
    assert any(file.endswith(LIBRARY) for file in files)


def test_names_in_code_are_written_as_words_and_keep_their_capitals() -> None:
    assert [label_of(name) for name in ("largest_cascade", "n_posts", "buy_YES")] == [
        "Largest cascade",
        "Number of posts",
        "Buy YES",
    ]


def test_agents_on_a_drawn_space_can_be_clicked_where_they_stand() -> None:
    model = stepped()
    renderer = rendered(plain_renderer, model)
    places = redraw(renderer, model)
    axes: Any = renderer.canvas
    picture_of(axes.get_figure())
    spots = spots_on(axes, places)
    assert has_space(model)
    assert [spot.name for spot in spots] == [f"{number} · Villager {number}" for number in (1, 2, 3, 4)]
    assert all(0 < spot.x < 100 and 0 < spot.y < 100 for spot in spots)


def test_space_is_drawn_from_renderer_portrayals_with_names_and_layers() -> None:
    model: Any = stepped()
    renderer = rendered(plain_renderer, model)
    assert is_scene(renderer)
    network = scene_of(renderer, model)
    assert [each.name for each in network.agents] == [f"{number} · Villager {number}" for number in (1, 2, 3, 4)]
    assert len(network.ties) == 4
    model.grid = OrthogonalMooreGrid((3, 2), random=model.random)
    model.grid.create_property_layer("grass", default_value=0)
    setattr(model.grid[2, 1], "grass", 1)  # noqa: B010
    for villager in model.agents:
        villager.cell = model.grid[0, 0]

    def greened(model: Any) -> Any:
        return plain_renderer(model).setup_propertylayer(PropertyLayerStyle(colormap="Greens", colorbar=False))

    grid = scene_of(rendered(greened, model), model)
    assert [cell.coordinate for cell in grid.cells] == [(0, 1), (1, 1), (2, 1), (0, 0), (1, 0), (2, 0)]  # north is up
    assert [index for index, fill in enumerate(grid.fills) if fill == max(grid.fills, key=grid.fills.count)] == [
        0,
        1,
        3,
        4,
        5,
    ]
    assert {(each.x, each.y) for each in grid.agents} == {(0.5, 1.5)}


def test_what_matplotlib_alone_can_draw_is_left_to_it() -> None:
    model = stepped()
    renderer = rendered(plain_renderer, model)
    renderer.post_process = lambda axes: axes.set_title("Mine")
    assert not is_scene(renderer)


def test_what_thinks_is_drawn_above_what_does_not() -> None:
    model = stepped()
    for villager in list(model.agents):
        FixedAgent(model).cell = villager.cell
    renderer = rendered(plain_renderer, model)
    axes: Any = renderer.canvas
    discs = {drawn.get_zorder(): drawn.get_sizes()[0] for drawn in axes.collections if len(drawn.get_offsets()) == 4}
    assert discs == {1: 1, 2: 50, 4: 160}  # nodes of the network, those without a mind, villagers


def test_what_thinks_has_its_name_however_much_does_not() -> None:
    model = stepped()
    for _ in range(50):
        FixedAgent(model).cell = next(iter(model.agents)).cell
    renderer = rendered(plain_renderer, model)
    redraw(renderer, model)
    names: Any = renderer.canvas
    assert sorted(name.get_text() for name in names.texts) == [f"Villager {number}" for number in (1, 2, 3, 4)]


def test_a_network_that_grows_is_drawn_as_it_is_now() -> None:
    model = stepped()
    renderer = rendered(plain_renderer, model)
    model.grid.G.add_edge(0, 99)
    assert len(redraw(renderer, model)) == 4


def test_agents_keep_their_places_when_ties_change_and_newcomers_find_theirs() -> None:
    places: dict[int, Any] = {}
    lay_out([1, 2, 3], [(1, 2)], places)
    before = {number: tuple(place) for number, place in places.items()}
    lay_out([1, 2, 3, 4], [(1, 3), (3, 4)], places)
    assert {number: tuple(places[number]) for number in before} == before
    assert 4 in places


def test_ties_are_drawn_between_agents_of_the_model_alone() -> None:
    scene = network_scene(stepped(), lambda model: [(1, 2), (1, 77)], portray, "Friends")
    assert len(scene.ties) == 1
    assert [each.agent.unique_id for each in scene.agents] == [1, 2, 3, 4]


def test_names_of_agents_who_stand_close_do_not_overlap() -> None:
    places = {1: (0.0, 0.0), 2: (0.03, 0.01), 3: (1.0, 1.0), 4: (-1.0, -1.0)}
    figure = network_scene(stepped(), lambda model: [], portray, positions=places).figure()
    figure.draw_without_rendering()
    names: Any = figure.axes[0].texts
    first, second, *_ = (name.get_window_extent() for name in names)
    assert not first.overlaps(second)


def test_names_in_a_dense_network_cross_no_other() -> None:
    model = stepped(n_agents=24)
    ties = [(first + 1, second + 1) for first, second in nx.gnp_random_graph(24, 0.2, seed=2).edges]
    figure = network_scene(model, lambda _: ties, portray).figure()
    picture_of(figure)
    boxes = [name.get_window_extent() for name in figure.axes[0].texts]
    assert sum(first.overlaps(second) for first, second in combinations(boxes, 2)) == 0


@pytest.mark.parametrize(("name", "written"), [("Ana 🦊", "Ana"), ("🦊", "🦊"), ("Bo ✓ $5", r"Bo ✓ \$5")])
def test_emoji_which_matplotlib_draws_as_boxes_are_left_out_of_a_name(name: str, written: str) -> None:
    assert literal(name) == written


def test_text_is_enlarged_and_the_size_on_the_screen_stays() -> None:
    figure = Figure(figsize=(7, 3.5), dpi=100, layout="constrained")
    enlarge(figure)
    assert Image.open(BytesIO(picture_of(figure))).size == pytest.approx((700, 350), abs=1)


def drawings_of(entry: Any) -> list[Any]:
    """Return the functions whose charts, scenes and figures the page of a model shows."""
    page = import_module(f"{entry.package}.app").page if entry.has_page else None
    placed = [] if page is None else page.kwargs.get("components", [])
    components = [one[0] if isinstance(one, tuple) else one for one in placed]
    return [getclosurevars(one).nonlocals["draw"] for one in components if getattr(one, "__name__", "") == "Drawing"]


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_every_collected_number_is_drawn_as_a_chart(entry) -> None:
    model = entry.load()(rng=1)
    model.run_for(2)
    for name in numbers_of(model)[0]:
        chart = measure_chart(model, name)
        assert chart.title
        json.dumps(chart.data(), allow_nan=False)
        assert chart.table()
    for draw in drawings_of(entry):
        drawn = draw(model)
        assert isinstance(drawn, Chart | SpaceScene | Panels), f"{draw.__name__} is a picture on the page"
        for one in drawn.charts if isinstance(drawn, Panels) else [drawn]:
            assert not isinstance(one, Chart) or json.dumps(one.data(), allow_nan=False)
        assert picture_of(drawn.figure()).startswith(PNG)


@pytest.mark.parametrize("given", [list, np.array, pd.Series, lambda values: dict(enumerate(values))])
def test_a_chart_keeps_what_it_was_given_when_its_owner_goes_on(given) -> None:
    live = given([1.0, 2.0])
    names = ["a", "b"]
    chart = Chart(title="Bids", series=[ChartSeries(values=live, low=live, high=live, at=live)], names=names)
    before = chart.data()
    live[0] = 7.0
    names.append("c")
    assert chart.data() == before
    assert chart != Chart(title="Bids", series=[ChartSeries(values=live, low=live, high=live, at=live)], names=names)
    assert chart.data()["series"][0]["points"][0][1] == 1.0


def test_a_scene_keeps_what_it_was_given_when_its_owner_goes_on() -> None:
    fills, corners = ["#000000"], [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]
    scene = SpaceScene(title="Field", width=1, height=1, fills=fills, cells=[1], polygons=[corners])
    fills[0] = "#ffffff"
    corners.clear()
    assert (scene.fills, len(scene.corners[0])) == (["#000000"], 3)
