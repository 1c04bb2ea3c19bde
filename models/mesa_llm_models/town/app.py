"""The page of the town: `mesa-llm app models/mesa_llm_models/town/app.py`."""

from mesa_llm.charts import COLOURS, LegendEntry, SceneAgent, SpaceScene
from mesa_llm.viz import LLMPage, Measures, Row, drawn_by, table_of
from mesa_llm.viz.render import option_label
from mesa_llm_models.town.model import TownModel
from mesa_llm_models.town.text import PLACES

LABELS, SEAT = 2.4, 1.6
"""Width of the column of places, and of the room for a person, in units of a row."""


def town_scene(model: TownModel) -> SpaceScene:
    """Draw who is where: a row for each place."""
    width = LABELS + SEAT * len(model.agents)
    people = [
        SceneAgent(
            agent=one,
            x=LABELS + SEAT * (column + 0.5),
            y=row + 0.6,
            radius=0.16,
            colour=COLOURS[one.has_heard],
            shape="D" if one.has_heard else "o",
            name=option_label(one),
        )
        for row, place in enumerate(PLACES)
        for column, one in enumerate(model.grid[place].agents)
    ]
    rows = range(len(PLACES))
    return SpaceScene(
        title="Who is where",
        width=width,
        height=len(PLACES),
        agents=people,
        polygons=[[(0, row), (width, row), (width, row + 1), (0, row + 1)] for row in rows],
        cells=[model.grid[place] for place in PLACES],
        texts=[(0.15, row + 0.5, place) for row, place in enumerate(PLACES)],
        legend=[
            LegendEntry(text="has heard of the party", colour=COLOURS[1], shape="D"),
            LegendEntry(text="has not", colour=COLOURS[0], shape="o"),
        ],
        has_names=True,
    )


def talk_cells(model: TownModel) -> list[Row]:
    """List what was said in the last hour, and who was silent."""
    return [
        Row((speaker.cell.coordinate, name, said), agent=speaker.unique_id)
        for talk in model.talks
        for speaker, name, said in talk.turns
    ]


talks = table_of(talk_cells, ("Place", "Who", "What"), nothing="Nobody talked in the last hour.")
page = LLMPage(TownModel, components=[drawn_by(town_scene), Measures, (talks, "Model", "Talks")], name="Town")
