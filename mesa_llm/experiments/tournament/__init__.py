"""Tournaments of a game between files: `mesa-llm tournament FOLDER`.

Each file `NAME.py` of the folder is a player. It defines one function, as here for the prisoner's dilemma:

    def move(own, other):
        return "cooperate" if not other else other[-1]

`own` and `other` are lists of the moves so far, first to last, of the player and of its opponent; the function returns
its next one. Each file plays in a process of its own, with limits to time, memory, processes and the size of files,
none of the user's environment and an empty working folder, and nothing but its moves comes out; what it starts ends
with the match. If a move takes too long or too much, raises an error or is invalid, the player forfeits it, and the
tournament goes on: the game says what a forfeit costs, and both players read it as the game's first move. This isolates
mistakes, not attacks: a process can read all files that its user can read, so run the files of strangers in a
container.
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
