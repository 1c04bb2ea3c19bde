"""The page of the town: `mesa-llm app models/mesa_llm_models/town/app.py`."""

from mesa_llm.viz import Figure, LLMPage, Measures, drawn_by, table_of
from mesa_llm.viz.render import COLOURS, GREY, sheet
from mesa_llm_models.town.model import TownModel
from mesa_llm_models.town.text import PLACES


def town_figure(model: TownModel) -> Figure:
    """Draw who is where."""
    figure, axes = sheet("Who is where (orange: has heard of the party)")
    for row, place in enumerate(PLACES):
        axes.text(0, -row, place, color=GREY, fontsize=11)
        for column, one in enumerate(model.grid[place].agents):
            axes.text(3 + 2 * column, -row, one.config.name, color=COLOURS[one.has_heard], fontsize=11, weight="bold")
    axes.set(xlim=(0, 3 + 2 * len(model.agents)), ylim=(-len(PLACES), 1))
    axes.set_axis_off()
    return figure


def talk_cells(model: TownModel) -> list[tuple[str, ...]]:
    """List what was said in the last hour."""
    return [(line.speaker.cell.coordinate, line.name, line.text) for talk in model.talks for line in talk.utterances]


talks = table_of(talk_cells, ("Place", "Who", "What"), nothing="Nobody talked in the last hour.")
page = LLMPage(TownModel, components=[drawn_by(town_figure), Measures, (talks, "Model", "Talks")], name="Town")
