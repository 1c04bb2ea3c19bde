"""`mesa-llm tournament`: files that play a game against each other."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from mesa_llm.cli.command import command, look_here, say
from mesa_llm.cli.options import AsJson
from mesa_llm.experiments.tournament import find_game, find_players, lines_of, play


@command("tournament")
def hold_tournament(
    folder: Annotated[
        Path, typer.Argument(help="Folder with one file per player: NAME.py, which defines move(own, other).")
    ],
    game: Annotated[
        str | None, typer.Option(help="Name of the game, or MODULE:NAME for any other; optional if there is only one.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Number of rounds in a match.")] = 50,
    repeats: Annotated[int, typer.Option(min=1, help="Number of times that everybody meets everybody.")] = 10,
    rng: Annotated[int, typer.Option(min=0, help="Seed.")] = 1,
    limit_s: Annotated[float, typer.Option(min=0.01, help="Time limit of a move in seconds.")] = 1.0,
    memory_mb: Annotated[
        int, typer.Option(min=64, help="Memory limit of a file and of all that it starts, in MB (of 2**20 bytes).")
    ] = 1024,
    known: Annotated[
        str | None, typer.Option(help="Known strategies that also play, separated by commas; '' for none.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let files play a game against each other and against known strategies, and rank them.

    Each file plays in its own process, with limits on time and memory. A file
    that fails forfeits its move; the match goes on. Processes that it starts
    end with the match, except outside Linux those that leave its group.
    """
    if game is not None and ":" in game:
        look_here()
    chosen = find_game(game)
    names = None if known is None else [name.strip() for name in known.split(",") if name.strip()]
    players = find_players(chosen, folder, limit_s, names, memory_mb)
    standings = play(chosen, players, rounds=rounds, repeats=repeats, seed=rng)
    if as_json:
        figures = {"game": chosen.name, "rounds": rounds, "repeats": repeats, "rng": rng}
        say(json.dumps({**figures, "players": list(map(asdict, standings))}))
    else:
        for line in lines_of(standings):
            say(line)
