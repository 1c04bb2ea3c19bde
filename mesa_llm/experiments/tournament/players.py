"""Tournament players: known strategies, and files, each in its own process."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import IO, Any, Protocol, cast

from mesa_llm.errors import ConfigError
from mesa_llm.experiments.tournament.game import FORFEIT, Game, Strategy
from mesa_llm.experiments.tournament.seat import MAX_PROCESSES, OVER_MEMORY, OVER_PROCESSES
from mesa_llm.text import printable

SEAT = Path(__file__).with_name("seat.py")
"""Script that plays a file."""

MAX_REPLY = 4_000
"""Maximum number of bytes of a reply; anything longer is not a move."""

MAX_TIMEOUTS = 3
"""Number of timeouts in a match after which a player forfeits the remaining moves."""

MEMORY_MB = 1024
"""Default memory limit of a player's processes together, in units of 2**20 bytes."""

END_LIMIT_S = 10.0
"""Seconds a player's supervisor may take to end the processes the player started."""

PROCESS_ENDED = "its process ended"
"""Fault of a player whose process ended before its reply."""

ENVIRONMENT = {
    **{name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},  # Windows needs it
    **dict.fromkeys(("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
}
"""Environment of a player. Each thread of a numerical library would use memory."""

IS_SUPERVISED = Path("/proc/self/task").is_dir()
"""Whether the operating system reports child processes, as Linux does."""

START_LIMIT_S = 30.0
"""Seconds a process may take to start, before its first move is timed."""


class Player(Protocol):
    """Chooses moves."""

    name: str
    """Name of the player."""

    faults: list[str]
    """Description of each forfeit."""

    def move(self, match: str, seed: int, own: Sequence[str], other: Sequence[str]) -> str:
        """Return the next move in a match.

        Args:
            match: Name of the match. A new name starts a new match.
            seed: Seed of the player's random draws in the match.
            own: The player's moves so far.
            other: The opponent's moves so far.
        """
        ...

    def end_match(self) -> None:
        """End everything the player has started for a match."""
        ...

    def close(self) -> None:
        """Release the player's resources."""
        ...


class KnownPlayer:
    """Plays a known strategy."""

    def __init__(self, name: str, strategy: Strategy) -> None:
        """Set the strategy.

        Args:
            name: Name of the strategy.
            strategy: The strategy.
        """
        self.name = name
        self._strategy = strategy
        self.faults: list[str] = []
        self._match, self._rng = "", Random(0)

    def move(self, match: str, seed: int, own: Sequence[str], other: Sequence[str]) -> str:
        """Return the strategy's move."""
        if match != self._match:
            self._match, self._rng = match, Random(seed)
        return self._strategy(own, other, self._rng)

    def end_match(self) -> None:
        """Do nothing: a strategy starts no processes."""

    def close(self) -> None:
        """Do nothing: a strategy has no resources."""


class FilePlayer:
    """Plays a file in its own process.

    On Linux, everything the process starts ends with the match, in its session or another. Elsewhere, only its process
    group ends, and with the process. Where the operating system supports them, limits apply to memory, processor time
    and file size.
    """

    def __init__(self, game: Game, file: Path, limit_s: float, memory_mb: int = MEMORY_MB) -> None:
        """Set the file. Its process starts with the first move.

        Args:
            game: The game.
            file: The file.
            limit_s: Seconds per move.
            memory_mb: Memory limit of its processes together, in units of 2**20 bytes.
        """
        self.name = file.stem
        self.faults: list[str] = []
        self._moves = game.moves
        self._file, self._limit_s, self._memory_mb = file.resolve(), limit_s, memory_mb
        self._match, self._timeouts = "", 0
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._folder = tempfile.TemporaryDirectory()

    def move(self, match: str, seed: int, own: Sequence[str], other: Sequence[str]) -> str:
        """Return the file's move, or a forfeit."""
        if match != self._match:
            self._match, self._timeouts = match, 0
        if self._timeouts >= MAX_TIMEOUTS:
            return self._forfeit(f"took longer than {self._limit_s:g} s {MAX_TIMEOUTS} times before in this match")
        request = {"match": match, "seed": seed, "own": list(own), "other": list(other)}
        reply = self._reply(json.dumps(request).encode() + b"\n")
        if reply is None:
            return FORFEIT
        match reply:
            case {"move": str(move)} if move in self._moves:
                return move
            case {"move": str(move)}:
                return self._forfeit(f"returned {move!r}, which is none of {', '.join(self._moves)}")
            case {"fault": str(fault)}:
                return self._forfeit(fault)
            case _:
                self._kill()  # later lines could no longer be matched to requests
                return self._forfeit("its process wrote something that is no move")

    def _forfeit(self, fault: str) -> str:
        self.faults.append(printable(fault))
        return FORFEIT

    def _reply(self, request: bytes) -> Any:
        """Send a request to the process, and return its reply; None, which forfeits the move, without a reply."""
        try:
            if self._process is None:
                self._start()
            self._requests.put(request)
            line = self._replies.get(timeout=self._limit_s)
        except queue.Empty:
            self._timeouts += 1
            fault = f"took longer than {self._limit_s:g} s"
        except OSError:
            fault = PROCESS_ENDED
        else:
            if line.endswith(b"\n"):
                try:
                    return json.loads(line)
                except (ValueError, RecursionError):
                    return {}
            fault = PROCESS_ENDED if len(line) < MAX_REPLY else "wrote more than a move"
        reason = self._kill()
        self._forfeit(reason if reason and fault == PROCESS_ENDED else fault)
        return None

    def _start(self) -> None:
        """Start the process, and wait until it is ready.

        Raises:
            OSError: If it does not become ready.
        """
        self._control, other = socket.socketpair() if IS_SUPERVISED else (None, None)
        number = -1 if other is None else other.fileno()
        limits = (str(self._memory_mb), str(self._limit_s), str(number))
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", str(SEAT), str(self._file), *limits],
                cwd=self._folder.name,
                env=ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=() if other is None else (number,),
            )
        finally:
            if other is not None:
                other.close()
        self._process, self._requests, self._replies = process, queue.SimpleQueue(), queue.SimpleQueue()
        threading.Thread(target=_converse, args=(process, self._requests, self._replies), daemon=True).start()
        try:
            self._replies.get(timeout=START_LIMIT_S)
        except queue.Empty:
            raise OSError("the process did not start") from None

    def end_match(self) -> None:
        """End all processes started by the player's."""
        if self._control is None:
            return
        try:
            self._control.settimeout(END_LIMIT_S)
            self._control.sendall(b"e")
            if self._control.recv(1):
                return
        except OSError:  # its supervisor has ended, or is stopped
            pass
        self._kill()

    def _kill(self) -> str:
        """Kill the process and everything it started. Return the reason it had already ended, or an empty text."""
        process, self._process = self._process, None
        control, self._control = self._control, None
        if control is not None:
            control.close()
        if process is None:
            return ""
        if control is not None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_LIMIT_S)
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        status = process.wait()
        self._requests.put(None)
        reasons = {
            OVER_MEMORY: f"used more than {self._memory_mb} MB of memory",
            OVER_PROCESSES: f"started more than {MAX_PROCESSES} processes",
        }
        return reasons.get(status, "")

    def close(self) -> None:
        """End the process."""
        self._kill()
        self._folder.cleanup()


def _converse(
    process: subprocess.Popen[bytes], requests: queue.SimpleQueue[bytes | None], replies: queue.SimpleQueue[bytes]
) -> None:
    """Pass requests to a process, and return one line of its output for each; an empty line once it has ended.

    Both block if the process neither reads nor writes, so this runs in a thread that is never joined.
    """
    with suppress(OSError), cast("IO[bytes]", process.stdout) as stdout, cast("IO[bytes]", process.stdin) as stdin:
        replies.put(stdout.readline(MAX_REPLY))
        while request := requests.get():
            stdin.write(request)
            stdin.flush()
            replies.put(stdout.readline(MAX_REPLY))
        return
    replies.put(b"")


def find_players(
    game: Game, folder: Path, limit_s: float, known: Sequence[str] | None = None, memory_mb: int = MEMORY_MB
) -> list[Player]:
    """Return the players of a tournament: the files in a folder, and known strategies.

    Args:
        game: The game.
        folder: The folder. Files whose names begin with `_` do not play.
        limit_s: Seconds per move.
        known: Names of the known strategies that play; None for all.
        memory_mb: Memory limit of a file's processes together, in units of 2**20 bytes.

    Raises:
        ConfigError: If the folder or a strategy does not exist, there are no files, or a file is named like a known
            strategy.
    """
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {str(folder)!r}")
    known = list(game.strategies if known is None else dict.fromkeys(known))
    if strangers := [name for name in known if name not in game.strategies]:
        raise ConfigError(f"there is no strategy {strangers[0]!r}; there are: {', '.join(game.strategies) or 'none'}")
    files = sorted(file for file in folder.glob("*.py") if not file.name.startswith("_"))
    if not files:
        raise ConfigError(f"{str(folder)!r} contains no players; add a NAME.py with a function move(own, other)")
    if taken := [file.name for file in files if file.stem in known]:
        raise ConfigError(f"{taken[0]} has the name of a known strategy that also plays; rename the file")
    regulars = (KnownPlayer(name, game.strategies[name]) for name in known)
    return [*(FilePlayer(game, file, limit_s, memory_mb) for file in files), *regulars]
