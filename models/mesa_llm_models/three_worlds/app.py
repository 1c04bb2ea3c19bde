"""The page of the three worlds: `mesa-llm app models/mesa_llm_models/three_worlds/app.py`."""

from __future__ import annotations

from collections import Counter

from mesa_llm.model.bridge import wording
from mesa_llm.reports import ActionTables
from mesa_llm.viz import LLMPage, Row, drawn_by, table_of
from mesa_llm.viz.render import agent_in
from mesa_llm_models.three_worlds.bridge import is_newsworthy
from mesa_llm_models.three_worlds.charts import market_chart, money_chart, news_chart, opinion_chart
from mesa_llm_models.three_worlds.model import ThreeWorldsModel


def news_cells(model: ThreeWorldsModel) -> list[Row]:
    """List the news that crossed, newest first, with the number of citizens who heard of it."""
    readers = Counter((delivery.time, delivery.event.text) for delivery in model.bridge.deliveries)
    return [
        Row(
            (
                f"{time}",
                event.source,
                event.kind.replace("_", " "),
                event.text or wording(event),
                f"{readers[time, event.text]}",
            ),
            agent=agent_in(event.facts),
            step=time,
        )
        for time, event in reversed(model.bridge.log)
        if is_newsworthy(event)
    ]


def post_cells(model: ThreeWorldsModel) -> list[Row]:
    """List the citizens' posts with the most likes and reposts."""
    fields = ("step", "name", "text", "likes", "dislikes", "shares")
    posts = ActionTables.of(model).top_posts().to_dict("records")
    return [
        Row(tuple(f"{post[field]}" for field in fields), agent=int(post["agent"]), step=int(post["step"]))
        for post in posts
    ]


def prompt_cells(model: ThreeWorldsModel) -> list[tuple[str, ...]]:
    """List the lines above every citizen's prompt: the question, the background and the circumstances."""
    return [(line,) for line in model.instructions_text.splitlines() if line.strip()]


NEWS = ("Step", "From", "Kind", "What", "Heard by")

POSTS = ("Step", "Who", "Post", "Likes", "Dislikes", "Passed on")

page = LLMPage(
    ThreeWorldsModel,
    components=[
        drawn_by(market_chart),
        drawn_by(opinion_chart),
        drawn_by(news_chart),
        drawn_by(money_chart),
        (table_of(news_cells, NEWS, nothing="Nothing has crossed yet.", max_rows=40), "Data", "News between worlds"),
        (table_of(post_cells, POSTS, nothing="Nobody has posted yet."), "Data", "Posts"),
        (table_of(prompt_cells, ("Everyone reads",), nothing=""), "About", "Prompt"),
    ],
    name="Three worlds",
)
