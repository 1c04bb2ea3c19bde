"""The page of bounded confidence: `mesa-llm app models/mesa_llm_models/classics/opinion/app.py`."""

from __future__ import annotations

from mesa_llm.charts import COLOURS, Chart, ChartSeries
from mesa_llm_models.classics.charts import classic_page
from mesa_llm_models.classics.opinion.model import OpinionModel


def opinions_chart(model: OpinionModel) -> Chart:
    """Return everybody's opinion over steps."""
    opinions = model.datacollector.get_agent_vars_dataframe()["opinion"].unstack()
    series = [
        ChartSeries(
            values=path.tolist(), colour=COLOURS[3], labels=[f"Person {agent_id}"] * len(path), agents=[agent_id]
        )
        for agent_id, path in opinions.items()
    ]
    return Chart(title="Opinion of each person", series=series, low=0, high=1)


DRAWINGS = (opinions_chart,)
"""What the page draws; the first is its picture elsewhere."""

page = classic_page(OpinionModel, "Bounded confidence", DRAWINGS)
