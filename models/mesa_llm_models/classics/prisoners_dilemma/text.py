"""What players read of a game with one opponent."""

from __future__ import annotations

from collections.abc import Sequence


def observation_text(opponent: int, rounds: Sequence[tuple[int, str, str]], now: int) -> str:
    """Write the history of a game, and ask for a move.

    Args:
        opponent: Id of the other player.
        rounds: Number of a round, own move, and the other player's move; the latest last.
        now: Number of the round that begins.
    """
    lines = [f"You play with player {opponent}. This is round {now}."]
    lines += [f"Round {number}: you chose to {own}, player {opponent} to {other}." for number, own, other in rounds]
    return "\n".join([*lines, "What do you do in this round?"])


def move_text(move: str, opponent: int) -> str:
    """Report a move to its player."""
    return f"You chose to {move} with player {opponent}."
