"""Tournaments of a game between programs: `mesa-llm tournament FOLDER`.

Each file `NAME.py` in the folder is a player. It defines one function, here for the prisoner's dilemma:

    def move(own, other):
        return "cooperate" if not other else other[-1]

`own` and `other` are the previous moves of the player and its opponent, first to last; the function returns the next
move. Each file runs in its own process with limits on time, memory, processes and file size, without the user's
environment, and in an empty working folder. Only its moves leave the process, and everything it started ends with the
match. If a move takes too long or too many resources, raises an error or is invalid, the player forfeits it and the
tournament continues: the game defines the cost of a forfeit, and both players read it as the game's first move. This
isolates mistakes, not attacks: a process can read every file its user can, so run untrusted files in a container.
"""

from mesa_llm.experiments.tournament.game import FORFEIT, Game, Strategy, find_game
from mesa_llm.experiments.tournament.players import FilePlayer, KnownPlayer, Player, find_players
from mesa_llm.experiments.tournament.ranking import Standing, lines_of, play

__all__ = [
    "FORFEIT",
    "FilePlayer",
    "Game",
    "KnownPlayer",
    "Player",
    "Standing",
    "Strategy",
    "find_game",
    "find_players",
    "lines_of",
    "play",
]
