"""Plots of what a model is and measures."""

from __future__ import annotations

from io import BytesIO
from itertools import combinations
from typing import Any

import networkx as nx
import pytest
from matplotlib.figure import Figure as PlainFigure
from mesa.datacollection import DataCollector
from mesa.discrete_space import FixedAgent
from PIL import Image

from mesa_llm.registry import find_models
from mesa_llm.viz.components.space import has_space, plain_renderer, portray, redraw, rendered
from mesa_llm.viz.render.figures import cost_figure, enlarge, measure_figure, numbers_of, title_of
from mesa_llm.viz.render.markup import label_of
from mesa_llm.viz.render.network import lay_out, network_figure, spots_on
from mesa_llm.viz.render.style import Figure, literal, picture_of
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


def test_a_figure_is_shown_by_a_kernel_that_has_not_loaded_matplotlib_s_backend() -> None:
    assert "image/png" in run("-c", FRESH).out
    assert isinstance(Figure(), PlainFigure)


def test_every_number_that_is_collected_is_a_measure_and_what_a_run_costs_is_not() -> None:
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
    axes: Any = measure_figure("mood")(model).axes[0]
    assert list(axes.lines[0].get_xdata()) == [0, 1, 2][not collects_at_start :]
    assert axes.get_ylim()[1] > 5.2


def test_a_measure_that_was_not_always_known_is_drawn() -> None:
    model = stepped()
    model.datacollector.model_vars["greetings"][:2] = [None, float("nan")]
    figure = measure_figure("greetings")(model)
    assert picture_of(figure).startswith(PNG)
    assert title_of(figure) == "Greetings"


def test_what_a_run_costs_is_one_figure() -> None:
    figure = cost_figure(stepped(llm="scripted"))
    assert len(figure.axes) == 5
    assert b"<svg" in picture_of(figure, "svg")


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
    figure, places = network_figure(stepped(), lambda model: [(1, 2), (1, 77)], portray, "Friends")
    assert len(figure.axes[0].collections[0].get_paths()) == 1
    assert [place.agent.unique_id for place in places] == [1, 2, 3, 4]


def test_names_of_agents_who_stand_close_do_not_overlap() -> None:
    places = {1: (0.0, 0.0), 2: (0.03, 0.01), 3: (1.0, 1.0), 4: (-1.0, -1.0)}
    figure, _ = network_figure(stepped(), lambda model: [], portray, positions=places)
    figure.draw_without_rendering()
    names: Any = figure.axes[0].texts
    first, second, *_ = (name.get_window_extent() for name in names)
    assert not first.overlaps(second)


def test_names_in_a_dense_network_cross_no_other() -> None:
    model = stepped(n_agents=24)
    ties = [(first + 1, second + 1) for first, second in nx.gnp_random_graph(24, 0.2, seed=2).edges]
    figure, _ = network_figure(model, lambda _: ties, portray)
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


@pytest.mark.parametrize("entry", find_models(), ids=lambda entry: entry.name)
def test_every_number_that_a_model_collects_is_drawn(entry) -> None:
    model = entry.load()(rng=1)
    model.run_for(2)
    for name in numbers_of(model)[0]:
        figure = measure_figure(name)(model)
        figure.set_layout_engine("none")  # to lay out one plot takes as long as to draw it, and reads no numbers
        figure.draw_without_rendering()
        assert title_of(figure)
