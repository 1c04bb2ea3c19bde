"""The page of the hidden roles, with all secrets: `mesa-llm app models/mesa_llm_models/hidden_roles/app.py`."""

from __future__ import annotations

from mesa_llm.viz import LLMPage, Measures, Row, table_of
from mesa_llm_models.hidden_roles.model import HiddenRolesModel


def player_cells(model: HiddenRolesModel) -> list[Row]:
    """List the players with their roles, and when they left."""
    left = {name: f"{when.lower()} {day}" for day, when, name in model.departures}
    return [
        Row((name, one.role, left.get(name, "–"), model.votes.get(name, "–")), agent=one.unique_id)
        for name, one in model.players.items()
    ]


def talk_cells(model: HiddenRolesModel) -> list[Row]:
    """List what was said, and who was silent, the last day first."""
    days = reversed(list(enumerate(model.talks, start=1)))
    return [
        Row((f"{day}", name, text), agent=speaker.unique_id, step=day)
        for day, talk in days
        for speaker, name, text in talk.turns
    ]


PLAYERS = table_of(player_cells, ("Name", "Role", "Left", "Last vote"), nothing="Nobody plays.")
TALK = table_of(talk_cells, ("Day", "Who", "What was said"), nothing="Nobody has said anything yet.")

page = LLMPage(
    HiddenRolesModel, components=[(TALK, "Model", "Talk"), (PLAYERS, "Model", "Players"), Measures], name="Hidden roles"
)
