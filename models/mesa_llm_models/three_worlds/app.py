"""The page of the three worlds: `mesa-llm app models/mesa_llm_models/three_worlds/app.py`."""

from __future__ import annotations

from collections import Counter

from mesa.visualization.utils import update_counter
from solara.core import component

from mesa_llm.model.bridge import wording
from mesa_llm.reports import ActionTables
from mesa_llm.viz import LLMPage, Markup, Row, drawn_by, steady
from mesa_llm_models.three_worlds.bridge import is_newsworthy
from mesa_llm_models.three_worlds.charts import market_figure, money_figure, news_figure, opinion_figure
from mesa_llm_models.three_worlds.model import ThreeWorldsModel

MAX_NEWS = 40
"""Maximum number of pieces of news that are listed, the latest."""


@component
def News(model: ThreeWorldsModel) -> None:
    """Show the news that crossed, newest first, with the number of citizens who heard of it.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        log = [(time, event) for time, event in model.bridge.log if is_newsworthy(event)]
        readers = Counter((delivery.time, delivery.event.text) for delivery in model.bridge.deliveries)
    rows = [
        Row(
            (
                str(time),
                event.source,
                event.kind.replace("_", " "),
                event.text or wording(event),
                str(readers[time, event.text]),
            )
        )
        for time, event in reversed(log[-MAX_NEWS:])
    ]
    columns = ("Step", "From", "Kind", "What", "Heard by")
    Markup("table.html", columns=columns, rows=rows, more=len(log) - len(rows), nothing="Nothing has crossed yet.")


@component
def Posts(model: ThreeWorldsModel) -> None:
    """Show the citizens' posts with the most likes and reposts.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        posts = ActionTables.of(model).top_posts().to_dict("records")
    fields = ("step", "name", "text", "likes", "dislikes", "shares")
    rows = [Row(tuple(str(post[field]) for field in fields)) for post in posts]
    columns = ("Step", "Who", "Post", "Likes", "Dislikes", "Passed on")
    Markup("table.html", columns=columns, rows=rows, more=0, nothing="Nobody has posted yet.")


@component
def Prompt(model: ThreeWorldsModel) -> None:
    """Show the text above every citizen's prompt: the question, the background and the circumstances.

    Args:
        model: The model.
    """
    rows = [Row((line,)) for line in model.instructions_text.splitlines() if line.strip()]
    Markup("table.html", columns=("Everyone reads",), rows=rows, more=0, nothing="")


page = LLMPage(
    ThreeWorldsModel,
    components=[
        drawn_by(market_figure),
        drawn_by(opinion_figure),
        drawn_by(news_figure),
        drawn_by(money_figure),
        (News, "Bridge"),
        (Posts, "Posts"),
        (Prompt, "Prompt"),
    ],
    name="Three worlds",
)
