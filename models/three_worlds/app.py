"""The page of the three worlds: `solara run models/three_worlds/app.py`."""

from __future__ import annotations

from collections import Counter

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.bridge import wording
from mesa_llm.viz import LLMPage, Markup, drawn_by, steady
from mesa_llm.viz.tables import Row
from models.three_worlds.charts import market_figure, money_figure, news_figure, opinion_figure
from models.three_worlds.crossings import is_worth_telling
from models.three_worlds.model import GOAL, ThreeWorldsModel

NEWS_SHOWN = 40
"""Latest news that are listed."""


@component
def News(model: ThreeWorldsModel) -> None:
    """Show the news that crossed, newest first, and how many heard of it.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        log = [(time, event) for time, event in model.bridge.log if is_worth_telling(event)]
        reached = Counter((one.time, one.event.text) for one in model.bridge.deliveries)
    rows = [
        Row(
            (
                str(time),
                event.source,
                event.kind.replace("_", " "),
                event.text or wording(event),
                str(reached[time, event.text]),
            )
        )
        for time, event in reversed(log[-NEWS_SHOWN:])
    ]
    columns = ("Step", "From", "Kind", "What", "Heard by")
    Markup("table.html", columns=columns, rows=rows, more=len(log) - len(rows), nothing="Nothing has crossed yet.")


@component
def Told(model: ThreeWorldsModel) -> None:
    """Show what every citizen is told: the question, the background and the circumstances.

    Args:
        model: The model.
    """
    rows = [Row((line,)) for line in model.rules.splitlines() if line.strip()]
    Markup("table.html", columns=("Everyone is told",), rows=rows, more=0, nothing="")


model_params = {
    "n_agents": {"type": "SliderInt", "label": "Citizens", "value": 15, "min": 2, "max": 60, "step": 1},
    "goal": {
        "type": "InputText",
        "label": "Question of the town",
        "value": GOAL,
    },
    "bridged": {"type": "Checkbox", "label": "News crosses between the worlds", "value": True},
    "looking": {
        "type": "Select",
        "label": "Citizens look at the worlds",
        "value": "in_turn",
        "values": ["in_turn", "together"],
    },
    "horizon": {
        "type": "SliderInt",
        "label": "Questions answered in step",
        "value": 20,
        "min": 2,
        "max": 60,
        "step": 1,
    },
    "viral_threshold": {
        "type": "SliderInt",
        "label": "Likes and reposts to go viral",
        "value": 3,
        "min": 1,
        "max": 15,
        "step": 1,
    },
    "news_steps": {"type": "SliderInt", "label": "Steps that news is told", "value": 1, "min": 1, "max": 5, "step": 1},
    "crowd_dollars": {
        "type": "SliderFloat",
        "label": "Crowd bets on a viral post, $",
        "value": 50.0,
        "min": 0.0,
        "max": 200.0,
        "step": 10.0,
    },
}

page = LLMPage(
    ThreeWorldsModel,
    model_params=model_params,
    components=[
        drawn_by(market_figure),
        drawn_by(opinion_figure),
        drawn_by(news_figure),
        drawn_by(money_figure),
        (News, "Bridge"),
        (Told, "Prompt"),
    ],
    name="Three worlds",
)
