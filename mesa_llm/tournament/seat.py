"""A seat in a tournament: the process that plays one file, and writes nothing but moves.

Each line that it reads is a request: the match, its seed, the player's moves so far and the opponent's. Each line that
it writes is a reply: the move, or what went wrong. The file is loaded anew for each match, and cannot use standard
input and output itself. This module is run as a script, and imports only the standard library.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

MAX_FAULT = 200
"""Maximum number of characters of the description of a fault."""


def load(path: str) -> dict[str, Any]:
    """Run a file, and return the names that it defines."""
    with open(path, "rb") as file:
        source = file.read()  # bytes, so that Python itself sees to a byte order mark and a declared encoding
    names: dict[str, Any] = {"__name__": "player", "__file__": path}
    exec(compile(source, path, "exec"), names)
    return names


def next_move(names: dict[str, Any], request: dict[str, Any]) -> Any:
    """Call the file's `move`."""
    move = names.get("move")
    if move is None:
        raise NameError("the file defines no function move(own, other)")
    return move(list(request["own"]), list(request["other"]))


def main(path: str) -> None:
    """Answer requests until there are no more.

    Args:
        path: The file that plays.
    """
    requests, replies = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    names: dict[str, Any] = {}
    match = None
    print("{}", file=replies, flush=True)
    for line in requests:
        request = json.loads(line)
        try:
            if request["match"] != match:
                match, names = request["match"], {}
                random.seed(request["seed"])
                names = load(path)
            move = next_move(names, request)
            reply = {"move": move} if isinstance(move, str) else {"fault": f"move() returned {move!r:.80}"}
        except BaseException as error:  # noqa: BLE001 - anybody's code, and whatever it raises costs one move
            reply = {"fault": f"{type(error).__name__}: {error}"}
        print(json.dumps({name: str(text)[:MAX_FAULT] for name, text in reply.items()}), file=replies, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
