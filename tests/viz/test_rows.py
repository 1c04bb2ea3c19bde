"""Rows, messages and posts on the pages of models: a click opens who wrote them, at the step in which they did."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from mesa_llm.registry import find_model
from mesa_llm.viz import Row, markup
from mesa_llm.viz.render.trace import event_row
from mesa_llm_models.commons.app import meeting_cells
from mesa_llm_models.compost.app import text_cells
from mesa_llm_models.discussion.app import CHAT, chat_items
from mesa_llm_models.emergent_analogies.app import answer_cells
from mesa_llm_models.hidden_roles.app import talk_cells
from mesa_llm_models.market.app import trade_cells
from mesa_llm_models.social.components.reader import feed_values, social_world
from mesa_llm_models.stock_agent.app import FORUM, forum_values
from mesa_llm_models.three_worlds.app import post_cells


def picks_in(html: str) -> list[tuple[int, int]]:
    """Return the agents and steps that clicks on HTML open."""
    return [(int(agent_id), int(step)) for agent_id, step in re.findall(r'data-pick="agent (\d+) (\d+)"', html)]


def chat(model: Any) -> str:
    """Return a room as HTML."""
    texts = dict.fromkeys(("topic", "lines", "silences", "now", "end"), "")
    return markup(CHAT, **texts, items=chat_items(model.sessions[0]))


def forum(model: Any) -> str:
    """Return the forum of an exchange as HTML."""
    return markup(FORUM, **forum_values(model.world))


def feed(model: Any) -> str:
    """Return the feed of a user as HTML, without the posts that users begin with."""
    values = feed_values(social_world(model), 1)
    return markup("feed.html", **{**values, "items": [one for one in values["items"] if one.post.step]})


def rows(cells: Callable[[Any], list[Row]]) -> Callable[[Any], str]:
    """Return what shows rows as HTML."""
    return lambda model: markup("table.html", columns=(), rows=cells(model), more=0, nothing="")


def events(model: Any) -> list[Row]:
    """Return the rows of the events."""
    return [event_row(fields) for fields in model.runlog.latest("events", 100)[0]]


@pytest.mark.parametrize(
    ("name", "shows"),
    [
        ("commons", rows(meeting_cells)),
        ("compost", rows(text_cells)),
        ("discussion", chat),
        ("emergent_analogies", rows(answer_cells)),
        ("hidden_roles", rows(talk_cells)),
        ("market", rows(trade_cells)),
        ("social", feed),
        ("stock_agent", forum),
        ("three_worlds", rows(post_cells)),
        ("three_worlds", rows(events)),
        ("auction_arena", rows(events)),
    ],
)
def test_what_an_agent_did_opens_it_at_that_step(name: str, shows: Callable[[Any], str]) -> None:
    model = find_model(name).load()(llm="rule", rng=1)
    model.run_for(7 if name == "stock_agent" else 3)  # its first posts are those of its sixth step
    picks = picks_in(shows(model))
    asked = model.runlog.decisions()
    known = set(zip(asked["agent"], asked["time"], strict=True))
    assert picks
    assert set(picks) <= known, sorted(set(picks) - known)[:5]
    model.close()
