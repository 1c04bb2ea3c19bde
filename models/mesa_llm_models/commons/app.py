"""The page of the commons: `mesa-llm app models/mesa_llm_models/commons/app.py`."""

from mesa_llm.charts import COLOURS, GREY, Chart, ChartSeries
from mesa_llm.viz import LLMPage, Measures, Row, drawn_by, table_of
from mesa_llm_models.commons.model import CommonsModel


def lake_chart(model: CommonsModel) -> Chart:
    """Return the fish in the lake at the beginning of each month, and what each has caught."""
    stock = model.datacollector.model_vars["stock"]
    months = [float(month) for month in range(1, len(stock) + 1)]
    past = months[: len(model.shares)]
    lake = ChartSeries(name="in the lake", values=stock, at=months, low=[0.0] * len(stock), high=stock)
    catches = [
        ChartSeries(name=fisher.config.name, values=fisher.catches, at=past, colour=colour)
        for fisher, colour in zip(model.agents, COLOURS[1:] * 3, strict=False)
    ]
    fair = ChartSeries(name="sustainable", values=model.shares, at=past, colour=GREY, is_dashed=True)
    end = float(max(len(stock), 2))
    return Chart(
        title="Fish in the lake, and catches", series=[lake, *catches, fair], x="Month", y="tons", start=1, end=end
    )


def meeting_cells(model: CommonsModel) -> list[Row]:
    """List what was said in the meetings, and who was silent, the latest first."""
    talks = sorted(model.meetings.items(), reverse=True)
    return [
        Row((f"{month}", name, text), agent=speaker.unique_id, step=month)
        for month, talk in talks
        for speaker, name, text in talk.turns
    ]


meetings = table_of(meeting_cells, ("Month", "Who", "What"), nothing="Nobody has spoken yet.")
page = LLMPage(
    CommonsModel, components=[drawn_by(lake_chart), Measures, (meetings, "Data", "Meetings")], name="Commons"
)
