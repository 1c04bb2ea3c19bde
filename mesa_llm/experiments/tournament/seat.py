"""Child process of a tournament that plays one file and outputs only its moves.

Each input line is a request: the match, its seed, the player's moves so far and the opponent's. Each output line is a
reply: the move, or an error. The file is reloaded for each match, and cannot use standard input and output itself. This
module runs as a script, and imports only the standard library.

On Linux the player is a child of the process that was started. The latter becomes the parent of every process the
player leaves behind, in any session (`PR_SET_CHILD_SUBREAPER`), and ends them after each match and with the tournament.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

try:
    import resource
except ImportError:  # Windows
    resource = None

MAX_FAULT = 200
"""Maximum number of characters of the description of a fault."""

MAX_PROCESSES = 32
"""Maximum number of processes of a player."""

MAX_FILE_BYTES = 64 * 2**20
"""Maximum size of a file written by a player."""

SPARE_CPU_S = 10
"""Processor time in seconds a player may use between two moves, on top of four times the limit per move."""

WATCH_S = 0.25
"""Seconds between checks of a player's processes."""

OVER_MEMORY, OVER_PROCESSES = 3, 4
"""Exit statuses if a player's processes use too much memory, or are too many."""

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER in linux/prctl.h


def load(path: str) -> dict[str, Any]:
    """Run a file, and return the names it defines."""
    with open(path, "rb") as file:
        source = file.read()  # bytes, so Python itself handles a byte order mark and a declared encoding
    names: dict[str, Any] = {"__name__": "player", "__file__": path}
    exec(compile(source, path, "exec"), names)
    return names


def next_move(names: dict[str, Any], request: dict[str, Any]) -> Any:
    """Call the file's `move`."""
    move = names.get("move")
    if move is None:
        raise NameError("the file defines no function move(own, other)")
    return move(list(request["own"]), list(request["other"]))


def answer(path: str, memory_mb: int, limit_s: float) -> None:
    """Answer requests until there are no more.

    Args:
        path: The file that plays.
        memory_mb: Memory limit, in units of 2**20 bytes.
        limit_s: Seconds per move.
    """
    requests, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    names: dict[str, Any] = {}
    match = None
    _limit_size(memory_mb)
    print("{}", file=replies, flush=True)
    for line in requests:
        request = json.loads(line)
        _limit_cpu(limit_s)
        try:
            if request["match"] != match:
                match, names = request["match"], {}
                random.seed(request["seed"])
                names = load(path)
            move = next_move(names, request)
            reply = {"move": move} if isinstance(move, str) else {"fault": f"move() returned {move!r:.80}"}
        except MemoryError:
            match, names = None, {}  # reloaded: the existing state may leave no memory for anything else
            reply = {"fault": f"used more than {memory_mb} MB of memory"}
        except BaseException as error:  # noqa: BLE001 - anybody's code, and whatever it raises costs one move
            reply = {"fault": f"{type(error).__name__}: {error}"}
        print(json.dumps({name: str(text)[:MAX_FAULT] for name, text in reply.items()}), file=replies, flush=True)


def _limit_size(memory_mb: int) -> None:
    """Limit the memory and file size of this process and its children."""
    if resource is not None:
        for limit, value in (
            (resource.RLIMIT_AS, memory_mb * 2**20),
            (resource.RLIMIT_FSIZE, MAX_FILE_BYTES),
            (resource.RLIMIT_CORE, 0),
        ):
            with suppress(ValueError, OSError):  # lower already, or unknown to this system
                resource.setrlimit(limit, (value, value))


def _limit_cpu(limit_s: float) -> None:
    """Limit the processor time of this process and its children until the next move."""
    if resource is not None:
        used_s = time.process_time() + 4 * limit_s + SPARE_CPU_S
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_CPU, (int(used_s) + 1, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def supervise(player: int, control: int, memory_mb: int) -> int:
    """End a player's processes after each match and with the tournament.

    Args:
        player: Process id of the player.
        control: Descriptor of a socket. Each byte received ends the player's other processes and is sent back; closing
            it ends all.
        memory_mb: Memory limit of all of them together, in units of 2**20 bytes.

    Returns:
        The exit status.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # remaining processes are not waited for
    for stream in (0, 1):
        os.close(stream)  # to end with the player
    status = 0
    while not status and os.path.exists(f"/proc/{player}"):
        if not select.select([control], [], [], WATCH_S)[0]:
            status = _excess(memory_mb)
        elif byte := os.read(control, 1):
            end_all(besides=player)
            os.write(control, byte)
        else:
            break
    end_all()
    return status


def _excess(memory_mb: int) -> int:
    """Return the exit status if the player's processes use too much, else 0."""
    processes = descendants()
    if len(processes) > MAX_PROCESSES:
        return OVER_PROCESSES
    return OVER_MEMORY if sum(map(_memory_kb, processes)) > memory_mb * 1024 else 0


def _memory_kb(process: int) -> int:
    """Return the memory of a process, in units of 1024 bytes. Shared memory is divided among its users."""
    with suppress(OSError), open(f"/proc/{process}/smaps_rollup", encoding="ascii", errors="replace") as file:
        return next((int(line.split()[1]) for line in file if line.startswith("Pss:")), 0)
    return 0


def end_all(besides: int = 0) -> None:
    """Kill all descendants of this process.

    Args:
        besides: Process id to spare; 0 for none.
    """
    for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped processes start no others
        treated: set[int] = {besides}
        while pending := set(descendants()) - treated:
            for process in pending:
                with suppress(ProcessLookupError):
                    os.kill(process, number)
            treated |= pending
    while set(descendants()) - {besides}:
        time.sleep(0.001)


def descendants() -> list[int]:
    """Return the process ids of all living descendants of this process."""
    found: list[int] = []
    parents = [os.getpid()]
    while parents:
        tasks = f"/proc/{parents.pop()}/task"
        with suppress(OSError):
            for task in os.listdir(tasks):
                with open(f"{tasks}/{task}/children", encoding="ascii") as file:
                    children = [process for process in map(int, file.read().split()) if _lives(process)]
                found += children
                parents += children
    return found


def _lives(process: int) -> bool:
    """Check whether a process has not ended. An ended one may still be waiting for its parent."""
    with suppress(OSError), open(f"/proc/{process}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    return False


def main(path: str, memory_mb: int, limit_s: float, control: int) -> None:
    """Play a file, supervised if there is a socket.

    Args:
        path: The file that plays.
        memory_mb: Memory limit, in units of 2**20 bytes.
        limit_s: Seconds per move.
        control: Descriptor of the socket of `supervise`; -1 for none, on systems other than Linux.
    """
    if control < 0:
        answer(path, memory_mb, limit_s)
        return
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    player = os.fork()
    if player:
        sys.exit(supervise(player, control, memory_mb))
    os.close(control)
    answer(path, memory_mb, limit_s)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
