"""Round-robin matches, and the ranking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from random import Random

import numpy as np

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.tournament.game import FORFEIT, Game
from mesa_llm.experiments.tournament.players import Player
from mesa_llm.statistics import mean_intervals
from mesa_llm.text import table


@dataclass(frozen=True)
class Standing:
    """A player's result."""

    name: str
    """Name of the player."""

    score: float
    """Points per round, mean over all repeats."""

    low: float | None
    """Lower end of the 95 % interval of the score over repeats; None with fewer than two repeats."""

    high: float | None
    """Upper end."""

    best_rank: int
    """Rank if all players with overlapping intervals come after it."""

    worst_rank: int
    """Rank if they all come before it."""

    shares: Mapping[str, float]
    """Move → its share of the player's moves. The remainder was forfeited."""

    forfeits: int
    """Number of forfeited moves."""

    fault: str = ""
    """Reason for the first forfeit."""


@dataclass
class Tally:
    """Points and moves of a player so far."""

    points: list[float] = field(default_factory=list)
    """Points per round in each repeat."""

    moves: list[str] = field(default_factory=list)
    """All moves."""


def play(
    game: Game, players: Sequence[Player], *, rounds: int = 50, repeats: int = 10, seed: int = 1
) -> list[Standing]:
    """Play every pair several times and rank the players. All players are closed at the end.

    Args:
        game: The game.
        players: At least two.
        rounds: Number of rounds of a match.
        repeats: Number of matches per pair.
        seed: Seed. Players without random numbers, or with only Python's `random`, repeat their moves.

    Returns:
        The results, best first.

    Raises:
        ConfigError: If there are fewer than two players.
    """
    try:
        if len(players) < 2:
            raise ConfigError("a tournament needs two players; add a file, or let known strategies play")
        return _standings(game, players, _tallies(game, players, rounds, repeats, Random(seed)))
    finally:
        for player in players:
            player.close()


def _tallies(game: Game, players: Sequence[Player], rounds: int, repeats: int, rng: Random) -> dict[str, Tally]:
    """Play all matches."""
    tallies = {player.name: Tally() for player in players}
    for repeat in range(repeats):
        sums = dict.fromkeys(tallies, 0.0)
        for one, other in combinations(players, 2):
            match = f"{repeat} {one.name} {other.name}"
            seeds = (rng.getrandbits(32), rng.getrandbits(32))
            moves, others = _play_match(game, one, other, match, seeds, rounds)
            for player, own, opposing in ((one, moves, others), (other, others, moves)):
                sums[player.name] += sum(map(game.points, own, opposing))
                tallies[player.name].moves += own
        for name, tally in tallies.items():
            tally.points.append(sums[name] / (rounds * (len(players) - 1)))
    return tallies


def _play_match(
    game: Game, one: Player, other: Player, match: str, seeds: tuple[int, int], rounds: int
) -> tuple[list[str], list[str]]:
    """Play one match, and return the moves of both players."""
    moves: list[str] = []
    others: list[str] = []
    for _ in range(rounds):
        histories = (_readable(game, moves), _readable(game, others))
        next_moves = (one.move(match, seeds[0], *histories), other.move(match, seeds[1], *reversed(histories)))
        moves.append(next_moves[0])
        others.append(next_moves[1])
    one.end_match()
    other.end_match()
    return moves, others


def _readable(game: Game, moves: Sequence[str]) -> list[str]:
    """Return moves as players read them, with a forfeit as the game's first move."""
    return [game.moves[0] if move == FORFEIT else move for move in moves]


def _standings(game: Game, players: Sequence[Player], tallies: Mapping[str, Tally]) -> list[Standing]:
    means, lows, highs = mean_intervals(np.array([tally.points for tally in tallies.values()]).T)
    standings: list[Standing] = []
    for index, player in enumerate(players):
        tally = tallies[player.name]
        has_interval = bool(np.isfinite(lows[index]))
        standings.append(
            Standing(
                player.name,
                float(means[index]),
                float(lows[index]) if has_interval else None,
                float(highs[index]) if has_interval else None,
                1 + int(np.sum(lows > highs[index]) if has_interval else np.sum(means > means[index])),
                len(players) - int(np.sum(highs < lows[index]) if has_interval else np.sum(means < means[index])),
                {move: tally.moves.count(move) / len(tally.moves) for move in game.moves},
                tally.moves.count(FORFEIT),
                next(iter(player.faults), ""),
            )
        )
    return sorted(standings, key=lambda standing: (-standing.score, standing.name))


def lines_of(standings: Sequence[Standing]) -> list[str]:
    """Format a ranking as lines of a table.

    Args:
        standings: The players, best first.
    """
    head = ("rank", "player", "points a round", "95 % interval", *standings[0].shares, "forfeits", "first fault")
    rows: list[tuple[str, ...]] = []
    for standing in standings:
        ranks = dict.fromkeys((standing.best_rank, standing.worst_rank))
        interval = "" if standing.low is None else f"{standing.low:.3f}-{standing.high:.3f}"
        figures = (f"{standing.score:.3f}", interval, *(f"{share:.0%}" for share in standing.shares.values()))
        rows.append(("-".join(map(str, ranks)), standing.name, *figures, str(standing.forfeits), standing.fault))
    return table(head, rows)
