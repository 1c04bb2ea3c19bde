"""The page of the epidemic: `mesa-llm app models/mesa_llm_models/classics/epidemic/app.py`."""

from __future__ import annotations

from types import MappingProxyType

import networkx as nx

from mesa_llm.charts import COLOURS, INK, Chart, ChartSeries, LegendEntry, SceneAgent, SpaceScene
from mesa_llm.viz.render import option_label, scaled_positions, steps_of
from mesa_llm.viz.session.per_model import PerModel
from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.epidemic.model import EpidemicModel

HEALTH = MappingProxyType({"susceptible": COLOURS[0], "infected": COLOURS[1], "resistant": COLOURS[2]})
"""Health of a person → its colour."""

HEALTH_TEXTS = MappingProxyType({"infected": "ill", "susceptible": "can catch the virus", "resistant": "resistant"})
"""Health of a person → what it means; stacked in this order, the ill at the bottom."""

_places: PerModel[dict[int, tuple[float, float]]] = PerModel("_scene_places", dict)
"""Positions of the people of a network, which keep them."""


def contacts(model: EpidemicModel) -> SpaceScene:
    """Draw the people of the network by their health."""
    places, graph = _places.of(model), model.grid.G
    if not places:
        tied = nx.Graph(graph)
        tied.add_edges_from(
            ("middle", min(part)) for part in nx.connected_components(graph)
        )  # keeps the parts together
        spread = nx.spring_layout(tied, k=1.6 / len(tied) ** 0.5, iterations=120, seed=0)
        places |= scaled_positions({node: spread[node] for node in graph})
    people = [
        SceneAgent(
            agent=person,
            x=places[person.cell.coordinate][0],
            y=places[person.cell.coordinate][1],
            radius=0.22 if len(graph) <= 60 else 0.14,
            colour=HEALTH[person.health],
            shape={"infected": "D", "resistant": "s"}.get(person.health, "o"),
            edge="" if not person.is_out else INK,
            name=option_label(person),
        )
        for person in model.agents
    ]
    legend = [
        LegendEntry(text=text, colour=HEALTH[health], shape={"infected": "D", "resistant": "s"}.get(health, "o"))
        for health, text in HEALTH_TEXTS.items()
    ]
    ties = [(*places[first], *places[second]) for first, second in graph.edges()]
    return SpaceScene(
        title="",
        width=11,
        height=10,
        agents=people,
        ties=ties,
        legend=[*legend, LegendEntry(text="rim: went out", colour="#ffffff", shape="o", edge=INK)],
    )


def health_chart(model: EpidemicModel) -> Chart:
    """Return the shares of people who are ill, can fall ill, and no longer can, stacked over steps."""
    series = [
        ChartSeries(name=text, colour=HEALTH[health], kind="area", **steps_of(model, health))
        for health, text in HEALTH_TEXTS.items()
    ]
    return Chart(title="Who is ill, and who can fall ill", series=series, is_stacked=True, unit="share", high=1)


DRAWINGS = (
    contacts,
    health_chart,
)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(EpidemicModel, "Epidemic on a network", DRAWINGS)
