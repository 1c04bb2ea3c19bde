"""The page of the commons: `mesa-llm app models/mesa_llm_models/commons/app.py`."""

from mesa_llm.viz import Figure, LLMPage, Measures, Row, drawn_by, table_of
from mesa_llm.viz.render import COLOURS, GREY, legend_below, marker, sheet
from mesa_llm_models.commons.model import CommonsModel


def lake_figure(model: CommonsModel) -> Figure:
    """Draw the fish in the lake at the beginning of each month, and what each has caught, in tons."""
    figure, axes = sheet("Fish in the lake, and catches, in tons")
    stock, months = model.datacollector.model_vars["stock"], range(1, len(model.shares) + 1)
    axes.fill_between(range(1, len(stock) + 1), stock, color=COLOURS[0], alpha=0.15, label="in the lake")
    for fisher, colour in zip(model.agents, COLOURS * 2, strict=False):
        axes.plot(months, fisher.catches, color=colour, marker=marker(months), label=fisher.config.name)
    axes.plot(months, model.shares, color=GREY, ls="--", label="sustainable")
    axes.set(xlim=(0.9, max(len(stock), 2) + 0.1), ylim=(0, None), xlabel="month")
    legend_below(axes, 4)
    return figure


def meeting_cells(model: CommonsModel) -> list[Row]:
    """List what was said in the meetings, the latest first."""
    talks = sorted(model.meetings.items(), reverse=True)
    return [
        Row((f"{month}", line.name, line.text), agent=line.speaker.unique_id, step=month)
        for month, talk in talks
        for line in talk.utterances
    ]


meetings = table_of(meeting_cells, ("Month", "Who", "What"), nothing="Nobody has spoken yet.")
page = LLMPage(
    CommonsModel, components=[drawn_by(lake_figure), Measures, (meetings, "Data", "Meetings")], name="Commons"
)
