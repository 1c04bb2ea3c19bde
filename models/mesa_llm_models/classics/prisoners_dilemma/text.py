"""What players read of a game with one opponent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mesa_llm.text import counted
from mesa_llm_models.classics.people import Traits
from mesa_llm_models.classics.prisoners_dilemma.game import points

TRAITS: Traits = {
    "trust": {
        "trusting": "You think well of people until they prove you wrong.",
        "wary": "You expect people to look after themselves first.",
        "even": "You treat people as they treat you.",
    },
    "aim": {
        "winner": "You like to win.",
        "peaceable": "You would rather get on with people than beat them.",
        "calculating": "You reckon what each choice is worth before you make it.",
    },
}
"""What matters to players when they decide."""


class Games(NamedTuple):
    """What a player knows of the rounds with one opponent."""

    opponent: str
    """How others speak of the opponent."""

    own: Sequence[str]
    """Own moves, first to last."""

    theirs: Sequence[str]
    """The opponent's moves."""

    last_round: int | None
    """Number of rounds; None: nobody knows."""

    n_shown: int
    """Maximum number of rounds that are listed."""

    @property
    def points(self) -> tuple[int, int]:
        """Own points of these rounds, and the opponent's."""
        pairs = list(zip(self.own, self.theirs, strict=True))
        return sum(points(one, other) for one, other in pairs), sum(points(other, one) for one, other in pairs)


def observation_text(games: Games) -> str:
    """Write the history of a game, and ask for a move.

    Args:
        games: The rounds so far.
    """
    opponent, n = games.opponent, len(games.own)
    of_all = f" of {games.last_round}" if games.last_round is not None else ""
    lines = [f"You play with {opponent}. This is round {n + 1}{of_all}{'' if n else ', your first together'}."]
    if n:
        own, theirs = games.points
        lines.append(f"So far you have {counted(own, 'point')} from these rounds, and {opponent} has {theirs}.")
    first = max(0, n - games.n_shown)
    if first:
        own, theirs = (moves[:first].count("cooperate") for moves in (list(games.own), list(games.theirs)))
        rounds = "round 1" if first == 1 else f"rounds 1 to {first}"
        lines.append(f"In {rounds} you cooperated {_times(own)}, and {opponent} {_times(theirs)}.")
    for number in range(first, n):
        lines.append(_round_text(number + 1, opponent, games.own[number], games.theirs[number]))
    return "\n".join([*lines, "What do you do in this round?"])


def _round_text(number: int, opponent: str, own: str, theirs: str) -> str:
    """Write what both did in a round, and what they got for it."""
    mine, yours = counted(points(own, theirs), "point"), points(theirs, own)
    did = {move: f"chose to {move}" for move in ("cooperate", "defect")} | {"forfeit": "made no move"}
    return f"Round {number}: you {did[own]}, {opponent} {did[theirs]}: {mine} for you, {yours} for {opponent}."


def _times(n: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(n, f"{n} times")


def move_text(move: str, opponent: str) -> str:
    """Report a move to its player."""
    return f"You chose to {move} with {opponent}."
