"""A tournament of the iterated prisoner's dilemma between files: `python -m models.classics.tournament FOLDER`.

Each file `NAME.py` of the folder is a player. It defines one function:

    def move(own, other):
        return "cooperate" if not other else other[-1]

`own` and `other` are lists of the moves so far, first to last, of the player and of its opponent; the function returns
its next one: `cooperate` or `defect`. Each file plays in a process of its own, with a time limit for each move, no
environment and an empty working folder, and nothing but its move leaves it. A move that takes too long, raises, or is
none, is forfeited, and the tournament goes on: who forfeits has no points, its opponent has the 3 of mutual
cooperation, and both read it as `cooperate`. This keeps mistakes apart, and no more: a process can read the files that
its user can read, so that files of strangers belong into a container.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from random import Random
from typing import IO, Annotated, Any, Protocol, cast

import numpy as np
import typer

from mesa_llm import ConfigError
from mesa_llm.benchmark.scores import bootstrap
from mesa_llm.text import printable
from models.classics.prisoners_dilemma.game import STRATEGIES, Made, Move, points

SEAT = Path(__file__).with_name("seat.py")
"""The script that plays a file."""

MAX_REPLY = 4_000
"""Maximum number of bytes of a reply; what is longer is no move."""

MAX_TIMEOUTS = 3
"""Number of moves that a player may take too long for in a match; then it forfeits the rest of the match unasked."""

START_LIMIT_S = 30.0
"""Seconds that a process may take to start, which are no part of a move."""


class Player(Protocol):
    """Makes moves."""

    name: str
    """Its name."""

    faults: list[str]
    """Descriptions of its forfeits, one each."""

    def move(self, match: str, seed: int, own: Sequence[Made], other: Sequence[Made]) -> Made:
        """Return its move in a match.

        Args:
            match: Name of the match; another one begins anew.
            seed: Seed of its random draws in the match.
            own: Its moves so far.
            other: Its opponent's.
        """
        ...

    def close(self) -> None:
        """Leave the tournament."""
        ...


class KnownPlayer:
    """Plays one of the known strategies."""

    def __init__(self, name: str) -> None:
        """Choose the strategy.

        Args:
            name: Its name in `STRATEGIES`.
        """
        self.name = name
        self.faults: list[str] = []
        self._match, self._rng = "", Random(0)

    def move(self, match: str, seed: int, own: Sequence[Made], other: Sequence[Made]) -> Made:
        """Return the strategy's move."""
        if match != self._match:
            self._match, self._rng = match, Random(seed)
        return STRATEGIES[self.name](own, other, self._rng)

    def close(self) -> None:
        """Have nothing to leave."""


class FilePlayer:
    """Plays a file, in a process of its own."""

    def __init__(self, file: Path, limit_s: float) -> None:
        """Name the file; its process starts with its first move.

        Args:
            file: The file.
            limit_s: Seconds that a move may take.
        """
        self.name = file.stem
        self.faults: list[str] = []
        self._file, self._limit_s = file.resolve(), limit_s
        self._match, self._timeouts = "", 0
        self._process: subprocess.Popen[bytes] | None = None
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._folder = tempfile.TemporaryDirectory()

    def move(self, match: str, seed: int, own: Sequence[Made], other: Sequence[Made]) -> Made:
        """Return the file's move; a forfeit if it makes none."""
        if match != self._match:
            self._match, self._timeouts = match, 0
        if self._timeouts >= MAX_TIMEOUTS:
            return self._forfeit(f"took longer than {self._limit_s:g} s {MAX_TIMEOUTS} times before in this match")
        request = {"match": match, "seed": seed, "own": list(own), "other": list(other)}
        reply = self._reply(json.dumps(request).encode() + b"\n")
        if reply is None:
            return "forfeit"
        match reply:
            case {"move": "cooperate" | "defect" as made}:
                return made
            case {"move": str(made)}:
                return self._forfeit(f"returned {made!r}, which is neither 'cooperate' nor 'defect'")
            case {"fault": str(fault)}:
                return self._forfeit(fault)
            case _:
                self._kill()  # nobody knows which of its lines would answer what
                return self._forfeit("its process wrote something that is no move")

    def _forfeit(self, fault: str) -> Made:
        self.faults.append(printable(fault))
        return "forfeit"

    def _reply(self, request: bytes) -> Any:
        """Send a request to the process, and return its reply; None if none came, which is noted as a forfeit."""
        try:
            if self._process is None:
                self._start()
            self._requests.put(request)
            line = self._replies.get(timeout=self._limit_s)
        except queue.Empty:
            self._timeouts += 1
            fault = f"took longer than {self._limit_s:g} s"
        except OSError:
            fault = "its process ended"
        else:
            if line.endswith(b"\n"):
                try:
                    return json.loads(line)
                except (ValueError, RecursionError):
                    return {}
            fault = "its process ended" if len(line) < MAX_REPLY else "wrote more than a move"
        self._kill()
        self._forfeit(fault)
        return None

    def _start(self) -> None:
        """Start the process, and wait until it is ready.

        Raises:
            OSError: If it does not become ready.
        """
        command = [sys.executable, "-I", str(SEAT), str(self._file)]
        keep = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # Windows needs it
        process = subprocess.Popen(
            command,
            cwd=self._folder.name,
            env=keep,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._process, self._requests, self._replies = process, queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=_converse, args=(process, self._requests, self._replies), daemon=True).start()
        try:
            self._replies.get(timeout=START_LIMIT_S)
        except queue.Empty:
            raise OSError("the process did not start") from None

    def _kill(self) -> None:
        """End the process, and all that it has started."""
        process, self._process = self._process, None
        if process is None:
            return
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        self._requests.put(None)

    def close(self) -> None:
        """End the process."""
        self._kill()
        self._folder.cleanup()


def _converse(
    process: subprocess.Popen[bytes], requests: queue.SimpleQueue[bytes | None], replies: queue.SimpleQueue[bytes]
) -> None:
    """Pass requests to a process, and one line of it for each; an empty line once it has ended.

    Both block where the process neither reads nor writes, so that this runs in a thread that nobody waits for.
    """
    with suppress(OSError), cast("IO[bytes]", process.stdout) as stdout, cast("IO[bytes]", process.stdin) as stdin:
        replies.put(stdout.readline(MAX_REPLY))
        while request := requests.get():
            stdin.write(request)
            stdin.flush()
            replies.put(stdout.readline(MAX_REPLY))
        return
    replies.put(b"")


@dataclass(frozen=True)
class Standing:
    """How a player came out."""

    name: str
    """Its name."""

    score: float
    """Points a round, mean over all repeats."""

    low: float | None
    """Lower end of the 95 % interval of the score over repeats; None of fewer than two repeats."""

    high: float | None
    """Upper end."""

    best_rank: int
    """Its rank if all whose intervals overlap with its own come after it."""

    worst_rank: int
    """Its rank if they come before it."""

    cooperation: float
    """Share of its moves that were cooperation."""

    forfeits: int
    """Number of moves that it did not make."""

    fault: str = ""
    """The first reason for a forfeit."""


@dataclass
class Tally:
    """What a player has done so far."""

    points: list[float] = field(default_factory=list)
    """Points a round in each repeat."""

    moves: list[Made] = field(default_factory=list)
    """All its moves."""


def find_players(folder: Path, limit_s: float, known: Sequence[str] = tuple(STRATEGIES)) -> list[Player]:
    """Seat the files of a folder, and known strategies beside them.

    Args:
        folder: The folder; files whose names begin with `_` do not play.
        limit_s: Seconds that a move may take.
        known: Names of the known strategies that play.

    Raises:
        ConfigError: If there is no such folder or strategy, no file, or a file with the name of a known strategy.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}")
    if strangers := sorted(set(known) - set(STRATEGIES)):
        raise ConfigError(f"there is no strategy {strangers[0]!r}; there are: {', '.join(STRATEGIES)}")
    files = sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))
    if not files:
        raise ConfigError(f"{str(folder)!r} holds no player; put a NAME.py with a function move(own, other) into it")
    if taken := [file.name for file in files if file.stem in known]:
        raise ConfigError(f"{taken[0]} has the name of a known strategy, which plays too; rename the file")
    return [*(FilePlayer(file, limit_s) for file in files), *map(KnownPlayer, dict.fromkeys(known))]


def play(players: Sequence[Player], *, rounds: int = 50, repeats: int = 10, seed: int = 1) -> list[Standing]:
    """Let each player meet each of the others, several times over, and rank them.

    Args:
        players: At least two.
        rounds: Number of rounds of a match.
        repeats: Number of times that everybody meets everybody.
        seed: Seed; players that draw no random numbers, or only from Python's `random`, play the same again.

    Returns:
        Best first.

    Raises:
        ConfigError: If there are fewer than two players.
    """
    if len(players) < 2:
        raise ConfigError("a tournament needs two players; add a file, or let known strategies play")
    rng = Random(seed)
    tallies = {player.name: Tally() for player in players}
    for repeat in range(repeats):
        sums = dict.fromkeys(tallies, 0)
        for one, other in combinations(players, 2):
            match = f"{repeat} {one.name} {other.name}"
            seeds = (rng.getrandbits(32), rng.getrandbits(32))
            own, its = _matched(one, other, match, seeds, rounds)
            for player, moves, replies in ((one, own, its), (other, its, own)):
                sums[player.name] += sum(map(points, moves, replies))
                tallies[player.name].moves += moves
        for name, tally in tallies.items():
            tally.points.append(sums[name] / (rounds * (len(players) - 1)))
    return _standings(players, tallies)


def _matched(
    one: Player, other: Player, match: str, seeds: tuple[int, int], rounds: int
) -> tuple[list[Made], list[Made]]:
    own: list[Made] = []
    its: list[Made] = []
    for _ in range(rounds):
        histories = (_readable(own), _readable(its))
        moves = (one.move(match, seeds[0], *histories), other.move(match, seeds[1], *reversed(histories)))
        own.append(moves[0])
        its.append(moves[1])
    return own, its


def _readable(moves: Sequence[Made]) -> list[Move]:
    """Return moves as players read them: a forfeit as cooperation, which it was for the opponent's points."""
    return ["cooperate" if move == "forfeit" else move for move in moves]


def _standings(players: Sequence[Player], tallies: Mapping[str, Tally]) -> list[Standing]:
    table = np.array([tally.points for tally in tallies.values()]).T
    means, lows, highs = bootstrap(table)
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
                tally.moves.count("cooperate") / len(tally.moves),
                tally.moves.count("forfeit"),
                next(iter(player.faults), ""),
            )
        )
    return sorted(standings, key=lambda standing: (-standing.score, standing.name))


def table_of(standings: Sequence[Standing]) -> list[str]:
    """Write a ranking as lines of a table.

    Args:
        standings: The players, best first.
    """
    width = max(len("player"), *(len(standing.name) for standing in standings))
    lines = [f"rank  {'player':{width}}  points a round  95 % interval  cooperates  forfeits"]
    for standing in standings:
        ranks = f"{standing.best_rank}-{standing.worst_rank}"
        rank = ranks if standing.best_rank != standing.worst_rank else str(standing.best_rank)
        interval = "" if standing.low is None else f"{standing.low:.3f}-{standing.high:.3f}"
        figures = f"{standing.score:14.3f}  {interval:>13}  {standing.cooperation:10.0%}  {standing.forfeits:8}"
        lines.append(f"{rank:>4}  {standing.name:{width}}  {figures}  {standing.fault}".rstrip())
    return lines


cli = typer.Typer(add_completion=False)


@cli.command()
def main(
    folder: Annotated[Path, typer.Argument(help="Folder with one file a player.")],
    rounds: Annotated[int, typer.Option(min=1, max=1000, help="Rounds of a match.")] = 50,
    repeats: Annotated[int, typer.Option(min=1, help="How often everybody meets everybody.")] = 10,
    rng: Annotated[int, typer.Option(help="Seed.")] = 1,
    limit_s: Annotated[float, typer.Option(min=0.01, help="Seconds that a move may take.")] = 1.0,
    known: Annotated[str, typer.Option(help="Known strategies that play too, by commas; empty: none.")] = ",".join(
        STRATEGIES
    ),
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON, and nothing else.")] = False,
) -> None:
    """Let the files of a folder play an iterated prisoner's dilemma tournament, and rank them."""
    names = [name.strip() for name in known.split(",") if name.strip()]
    players: list[Player] = []
    try:
        players = find_players(folder, limit_s, names)
        standings = play(players, rounds=rounds, repeats=repeats, seed=rng)
    except ConfigError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    finally:
        for player in players:
            player.close()
    if as_json:
        typer.echo(
            json.dumps({"rounds": rounds, "repeats": repeats, "rng": rng, "players": list(map(asdict, standings))})
        )
        return
    for line in table_of(standings):
        typer.echo(line)


if __name__ == "__main__":
    cli()
