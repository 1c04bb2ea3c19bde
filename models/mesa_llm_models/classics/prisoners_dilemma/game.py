"""The iterated prisoner's dilemma: moves, points, and the strategies of the first tournaments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal

from mesa_llm.experiments.tournament import Game

Move = Literal["cooperate", "defect"]
"""A possible move."""

Made = Literal["cooperate", "defect", "forfeit"]
"""An entry of the history: a move, or a forfeit if the player made none."""

Strategy = Callable[[Sequence[str], Sequence[str], Random], Move]
"""Chooses a move from one's own earlier moves, those of the opponent, and a source of random draws."""

POINTS: dict[tuple[str, str], int] = {
    ("cooperate", "cooperate"): 3,
    ("cooperate", "defect"): 0,
    ("defect", "cooperate"): 5,
    ("defect", "defect"): 1,
}
"""One's own move and the opponent's → one's own points.

Source:
    Axelrod (1980), Effective Choice in the Prisoner's Dilemma, Journal of Conflict Resolution 24(1).
"""

REWARD = POINTS["cooperate", "cooperate"]
"""Points of a player whose opponent forfeited its move."""


def points(own: str, other: str) -> int:
    """Return a player's points of a round; a forfeit earns none, and its opponent gets those of mutual cooperation.

    Args:
        own: The player's move.
        other: The opponent's move.
    """
    if own == "forfeit":
        return 0
    return REWARD if other == "forfeit" else POINTS[own, other]


def always_cooperate(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Cooperate, whatever happens."""
    return "cooperate"


def always_defect(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Defect, whatever happens."""
    return "defect"


def coin(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Toss a coin."""
    return "cooperate" if rng.random() < 0.5 else "defect"


def tit_for_tat(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Cooperate first, then repeat the opponent's last move."""
    return "defect" if other and other[-1] == "defect" else "cooperate"


def tit_for_two_tats(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Defect only after two defections in a row."""
    return "defect" if list(other[-2:]) == ["defect", "defect"] else "cooperate"


def grudger(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Cooperate until the opponent defects, and never again."""
    return "defect" if "defect" in other else "cooperate"


def pavlov(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Repeat what earned 3 or 5 points, and change what earned less."""
    if not own:
        return "cooperate"
    has_won = other[-1] != "defect"
    return "cooperate" if has_won == (own[-1] == "cooperate") else "defect"


def tester(own: Sequence[str], other: Sequence[str], rng: Random) -> Move:
    """Defect first; make up for it and play tit for tat if the opponent strikes back, else defect every other time."""
    if not own:
        return "defect"
    if "defect" in other:
        return "cooperate" if len(own) <= 2 else tit_for_tat(own, other, rng)
    return "cooperate" if own[-1] == "defect" or len(own) < 3 else "defect"


STRATEGIES: dict[str, Strategy] = {
    strategy.__name__: strategy
    for strategy in (
        always_cooperate,
        always_defect,
        coin,
        tit_for_tat,
        tit_for_two_tats,
        grudger,
        pavlov,
        tester,
    )
}
"""Name → strategy."""

GAME = Game("prisoners_dilemma", ("cooperate", "defect"), points, STRATEGIES)
"""The game of `mesa-llm tournament`."""
