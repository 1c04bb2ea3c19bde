"""Episodes in the format of Sotopia's own logs: `python -m mesa_llm_models.sotopia.output LOG FILE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from mesa_llm import ConfigError
from mesa_llm.tables import numbered_lines
from mesa_llm.text import one_line
from mesa_llm_models.discussion.world import Line
from mesa_llm_models.exports import export, rerun
from mesa_llm_models.sotopia.episodes import Episode
from mesa_llm_models.sotopia.judge import STANDARD
from mesa_llm_models.sotopia.model import SotopiaModel
from mesa_llm_models.sotopia.scores import OVERALL
from mesa_llm_models.sotopia.visibility import ENVIRONMENT, WHOLE, portrait, visible_text

JUDGE = "Environment"
"""Name of the all-seeing environment in Sotopia's logs."""


def action_text(line: Line | None) -> str:
    """Write an action in the wording of Sotopia's logs.

    Args:
        line: The line; None if the person did nothing.
    """
    if line is None:
        return "did nothing"
    text = one_line(line.text)
    match line.kind:
        case "say":
            return f'said: "{text}"'
        case "gesture":
            return f"[non-verbal communication] {text}"
        case "do":
            return f"[action] {text}"
        case "leave":
            return "left the conversation"


def episode_log(model: SotopiaModel, episode: Episode, tag: str = "") -> dict[str, Any]:
    """Return an episode in the format of Sotopia's `EpisodeLog`.

    The format has no missing scores: without a judgement, `rewards` are 0 and `reasoning` is `not judged`.

    Args:
        model: The model.
        episode: The episode.
        tag: Tag of the log, by which Sotopia groups logs.
    """
    names = [one.name for one in episode.characters]
    scores: Any = model.scores()
    own = scores[scores["episode"] == episode.index].sort_values("seat")
    dimensions = [one.name for one in model.dimensions]
    is_judged = bool(own[OVERALL].notna().all())
    rewards: list[Any] = [0.0] * len(names)
    if is_judged:
        rewards = [
            [row[OVERALL], {**{name: row[name] for name in dimensions}, "overall_score": row[OVERALL]}]
            for row in own.to_dict("records")
        ]
    return {
        "environment": episode.situation.situation_id,
        "agents": list(episode.pairing.character_ids),
        "tag": tag,
        "models": [model.judge or "", *(episode.player(seat).opened.name for seat in range(len(names)))],
        "messages": _messages(episode, names),
        "reasoning": _reasoning(episode) if is_judged else "not judged",
        "rewards": rewards,
        "rewards_prompt": "",
    }


def _messages(episode: Episode, names: list[str]) -> list[list[tuple[str, str, str]]]:
    """Return the messages of each turn: to every person the news of the previous turn, from each its action."""
    n_turns = episode.room.n_turns
    messages: list[list[tuple[str, str, str]]] = []
    for turn in range(n_turns + 1):
        news = _background(episode) if turn == 0 else f"Turn #{turn - 1}: {_of_turn(episode, turn)}"
        messages_of_turn = [(JUDGE, name, news) for name in names]
        if turn < n_turns:
            deeds = {line.speaker: line for line in episode.room.lines if line.turn == turn + 1}
            messages_of_turn += [(name, JUDGE, action_text(deeds.get(name))) for name in names]
        messages.append(messages_of_turn)
    return messages


def _of_turn(episode: Episode, turn: int) -> str:
    return "; ".join(f"{line.speaker} {action_text(line)}" for line in episode.room.lines if line.turn == turn)


def _background(episode: Episode) -> str:
    rules = episode.model.scenario.rules
    lines = [f"Scenario: {visible_text(episode.situation.text, ENVIRONMENT, rules=rules)}"]
    for character, goal in zip(episode.characters, episode.goals, strict=True):
        lines.append(f"{character.name}'s background: {one_line(portrait(character, WHOLE))}")
        lines.append(f"{character.name}'s goal: {visible_text(goal, ENVIRONMENT, rules=rules)}")
    return "\n".join(lines)


def _reasoning(episode: Episode) -> str:
    lines: list[str] = []
    for one in episode.ratings:
        lines.append(f"Agent {one.seat + 1} comments:")
        lines += [f"{name}: {reason}" for name, reason in one.reasons.items()]
    return "\n".join(lines)


def episode_logs(model: SotopiaModel, tag: str = "") -> list[dict[str, Any]]:
    """Return all completed episodes in the format of Sotopia's logs.

    Args:
        model: The model.
        tag: Tag of the logs.
    """
    return [episode_log(model, episode, tag) for episode in model.episodes if episode.end]


def read_episode_logs(path: str | Path) -> pd.DataFrame:
    """Read the scores in Sotopia's episode logs, as a table for `margins` and `interval`.

    Args:
        path: A file with a JSON list of logs, or one log per line.

    Returns:
        One row per episode and seat: episode, situation, pair, seat, tested, judge, each dimension and `overall`. Logs
        without scores are omitted.

    Raises:
        ConfigError: If the file cannot be read, or has other contents.
    """
    try:
        lines = [line for _, line in numbered_lines(path)]
        is_list = bool(lines) and lines[0].lstrip().startswith("[")
        entries = json.loads("\n".join(lines)) if is_list else [json.loads(line) for line in lines]
        rows = [
            {
                "episode": index,
                "situation": entry["environment"],
                "pair": " & ".join(entry["agents"]),
                "seat": seat,
                "tested": True,
                "judge": (entry.get("models") or [""])[0],
                **{one.name: float(reward[1][one.name]) for one in STANDARD},
                OVERALL: float(reward[0]),
            }
            for index, entry in enumerate(entries)
            for seat, reward in enumerate(entry["rewards"])
            if not isinstance(reward, int | float)
        ]
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise ConfigError(f"{path}: these are not Sotopia episode logs ({type(error).__name__}: {error})") from None
    return pd.DataFrame(rows)


def logs_of_run(log: str | Path) -> list[dict[str, Any]]:
    """Return a recorded run in the format of Sotopia's logs, by offline replay.

    Args:
        log: The run log.

    Raises:
        ConfigError: If the log cannot be read, or is not a Sotopia run.
    """
    model = rerun(SotopiaModel, log, "run of Sotopia; make one with mesa-llm run sotopia --log")
    try:
        return episode_logs(model)
    finally:
        model.close()


if __name__ == "__main__":
    sys.exit(export("mesa_llm_models.sotopia.output", logs_of_run, sys.argv[1:]))
