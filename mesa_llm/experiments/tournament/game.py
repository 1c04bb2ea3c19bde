"""Games for tournaments: two players who move simultaneously, round after round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from mesa_llm.errors import ConfigError
from mesa_llm.registry import find_parts, part_named, same_name

FORFEIT = "forfeit"
"""Entry in a history for a forfeited move."""

Strategy = Callable[[Sequence[str], Sequence[str], Random], str]
"""Chooses a move from the player's own earlier moves, the opponent's, and a random generator."""


@dataclass(frozen=True)
class Game:
    """A symmetric game of two players.

        GAME = Game("stag_hunt", ("stag", "hare"), points, {"always_hare": always_hare})

    `GAME` in the module `game` of a model's package is found by its name. Name any other as `module:NAME`.

    Raises:
        ConfigError: If there are fewer than two moves, or one is named `forfeit`.
    """

    name: str
    """Name, in one word."""

    moves: tuple[str, ...]
    """Names of the moves. Players read a forfeit as the first of them."""

    points: Callable[[str, str], float]
    """Returns a player's points in a round from its own move and its opponent's. Either may be `forfeit`."""

    strategies: Mapping[str, Strategy]
    """Known strategies by name, which can play alongside the files."""

    def __post_init__(self) -> None:
        """Check the moves."""
        if len(set(self.moves)) < 2 or FORFEIT in self.moves:
            raise ConfigError(f"a game needs two moves or more, none of them {FORFEIT!r}, got {self.moves!r}")


def find_game(name: str | None = None) -> Game:
    """Find a game by its name, or by `module:NAME`.

    Args:
        name: The name; None for the only existing game.

    Raises:
        ConfigError: If there is no such game, or several to choose from. The message lists them.
    """
    if name is not None and ":" in name:
        return part_named(name, Game)
    found, broken = find_parts("game", Game)
    matches = [game for game in found.values() if name is None or same_name(name, game.name)]
    if len(matches) == 1:
        return matches[0]
    fault = "choose a game" if name is None else f"there is no game {name!r}"
    there_are = ", ".join(game.name for game in found.values()) or "none"
    raise ConfigError("; ".join([f"{fault}; there are: {there_are}", *map(" is broken: ".join, broken.items())]))
