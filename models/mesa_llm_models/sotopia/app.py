"""The page of Sotopia: `mesa-llm app models/mesa_llm_models/sotopia/app.py`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import solara
from mesa.visualization.utils import update_counter
from reacton import use_state
from solara.core import component

from mesa_llm.charts import COLOURS
from mesa_llm.model.quality import judge_text
from mesa_llm.model.scenario import controls
from mesa_llm.text import counted, one_line
from mesa_llm.viz import Clickable, LLMPage, Markup, Row, drawn_by, steady
from mesa_llm_models.discussion.world import Silence
from mesa_llm_models.sotopia.charts import goal_chart, score_chart
from mesa_llm_models.sotopia.episodes import Episode
from mesa_llm_models.sotopia.judge import Dimension
from mesa_llm_models.sotopia.model import SotopiaModel
from mesa_llm_models.sotopia.scores import agreement
from mesa_llm_models.sotopia.visibility import WHOLE, portrait

EPISODE = Path(__file__).parent / "templates" / "episode.html"

MAX_ROWS = 200
"""Maximum number of episodes in the table of scores."""

RELATIONS = {"know_by_name": "They know each other by name", "romantic": "They are a couple"} | {
    name: f"They are {name}s" for name in ("stranger", "acquaintance", "friend")
}
"""Relation → its description on the page."""


def title_of(episode: Episode) -> str:
    """Return the title of an episode for the list of all."""
    names = " & ".join(one.first_name for one in episode.characters)
    situation = one_line(episode.situation.codename or episode.situation.situation_id).replace("_", " ")
    return f"{episode.index + 1}. {situation}: {names}"


def episode_items(episode: Episode) -> list[dict[str, Any]]:
    """Return an episode's lines and silences, oldest first, as values for the template.

    Args:
        episode: The episode.
    """
    room = episode.room
    names = {one.agent_id: one.name for one in room.members.values()}
    colours = {agent_id: COLOURS[index % len(COLOURS)] for index, agent_id in enumerate(room.members)}
    players = {one.unique_id: episode.player(seat).unique_id for seat, one in enumerate(episode.persons)}
    items: list[dict[str, Any]] = []
    for one in room.timeline:
        if isinstance(one, Silence):
            last = room.lines[one.after - 1].turn if one.after else 0
            item = {"name": one.name, "text": one.reason, "turn": f"after {last}" if last else "1", "kind": "none"}
            items.append({**item, "agent": players[one.agent_id], "step": last + 1})
        else:
            hearers = ", ".join(names[viewer] for viewer in one.viewers or () if viewer != one.speaker_id)
            item = {"name": one.speaker, "text": one.text, "turn": one.turn, "kind": one.kind}
            agent = {"agent": players[one.speaker_id], "step": one.turn}
            items.append({**item, **agent, "to": hearers, "colour": colours[one.speaker_id]})
    return items


def person_values(episode: Episode, seat: int, dimensions: Sequence[Dimension]) -> dict[str, Any]:
    """Return a person's portrait, goal, scores and reasons, as values for the template.

    Args:
        episode: The episode.
        seat: Index of its seat.
        dimensions: The dimensions rated.
    """
    own = [one for one in episode.ratings if one.seat == seat]
    judged = [one for one in own if one.scores is not None]
    first = judged[0].scores if judged else None
    return {
        "name": episode.characters[seat].name,
        "agent": episode.player(seat).unique_id,
        "colour": COLOURS[seat % len(COLOURS)],
        "llm": episode.player(seat).opened.name + ("" if seat in episode.tested_seats else " (partner)"),
        "portrait": one_line(portrait(episode.characters[seat], WHOLE).replace("\n", " · ")),
        "goal": one_line(episode.read_by(seat, episode.goals[seat])),
        "scores": " · ".join(f"{one.code} {first[one.name]}" for one in dimensions) if first else "",
        "reasons": [
            {
                "code": one.code,
                "score": rating.scores[one.name],
                "judge": rating.judge,
                "text": rating.reasons[one.name],
            }
            for rating in judged
            for one in dimensions
            if rating.scores is not None
        ],
        "failure": next((one.failure for one in own if one.scores is None), ""),
    }


@component
def Reader(model: SotopiaModel) -> None:
    """Show an episode: who meets, what they want and say, and the judges' ratings.

    Args:
        model: The model.
    """
    update_counter.get()
    picked, pick = use_state("")
    with steady(model):
        episodes = {title_of(episode): episode for episode in model.episodes}
        title = picked if picked in episodes else next(iter(episodes))
        episode = episodes[title]
        values: dict[str, Any] = {
            "text": one_line(episode.read_by(0, episode.situation.text)),
            "relation": RELATIONS.get(episode.situation.relation, "They are of one family"),
            "turns": counted(episode.room.n_turns, "turn"),
            "end": f"Over: {episode.end}." if episode.end else "",
            "persons": [person_values(episode, seat, model.dimensions) for seat in range(len(episode.persons))],
            "items": episode_items(episode),
        }
    solara.Select("Meeting", values=list(episodes), value=title, on_value=pick, dense=True)
    Clickable(EPISODE, model, **values)


@component
def Scores(model: SotopiaModel) -> None:
    """Show the scores of every episode and seat.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        titles = {episode.index: title_of(episode) for episode in model.episodes}
        players = {
            (episode.index, seat): episode.player(seat).unique_id
            for episode in model.episodes
            for seat in range(len(episode.characters))
        }
        table: Any = model.scores()
        judge = model.judge if model.n_judged else None
        checked = judge_text(model)
    judged: Any = table[table["judgements"] > 0]
    names = {one.name: one.code for one in model.dimensions}
    rows = [
        Row(
            (titles[row["episode"]], row["name"], *(f"{row[name]:.1f}" for name in (*names, "overall"))),
            agent=players[row["episode"], row["seat"]],
        )
        for row in judged.to_dict("records")[:MAX_ROWS]
    ]
    if judge:
        solara.Text(f"Judged by {judge}; scores of other judges cannot be compared with these. {checked}.")
    columns = ("Meeting", "Who", *names.values(), "Overall")
    more = max(len(judged) - MAX_ROWS, 0)
    Clickable("table.html", model, columns=columns, rows=rows, more=more, nothing="No meeting has been judged yet.")


@component
def Judges(model: SotopiaModel) -> None:
    """Show how far the judgements agree, where a meeting has several.

    Args:
        model: The model.
    """
    update_counter.get()
    with steady(model):
        table = agreement(model) if model.n_judged else None
    by_dimension = [] if table is None else list(table.to_dict("index").items())
    rows = [
        Row((str(name), *("–" if math.isnan(value) else f"{value:.2f}" for value in row.values())))
        for name, row in by_dimension
        if not all(map(math.isnan, row.values()))
    ]
    columns = ("Dimension", "ICC", "Alpha", "Worth of the first place")
    nothing = "Judgements are compared where a meeting has several: of several judges, or of one."
    Markup("table.html", columns=columns, rows=rows, more=0, nothing=nothing)


CHOICES = {"type": "Select", "label": "Scenes", "value": "own", "values": ["own"]}
"""Scenes visitors may choose. No folders, since these would be read from the server's disk."""

page = LLMPage(
    SotopiaModel,
    model_params={**controls(SotopiaModel), "items": CHOICES, "dimensions": "standard"},
    components=[
        Reader,
        drawn_by(score_chart),
        (drawn_by(goal_chart), "Data"),
        (Scores, "Data", "Scores"),
        (Judges, "Data", "Agreement of judges"),
    ],
    name="Sotopia",
)
