"""A disk that runs out of room, and what a run leaves on it: whether the log is whole, and which replies it holds."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mesa_llm import ConfigError
from mesa_llm.records import Reply, Request
from mesa_llm.testing import honest_reply
from tests.pot import PotModel

NO_LIMIT = 64_000_000
"""Bytes that are as good as no limit."""


class CountingLLM:
    """Answers honestly, several at a time, and keeps which requests would have been paid for."""

    name = "counting"

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def reply(self, request: Request) -> Reply:
        self.keys.append(request.key)
        for _ in range(len(self.keys) % 5):  # replies arrive in another order, some of them together
            await asyncio.sleep(0)
        return honest_reply(request)


def play(log: Path, llm: Any, **options: Any) -> str:
    """Run a model to its end, or go on with its run, and return why it ended early; empty if it did not."""
    model, fault = None, ""
    try:
        model = PotModel(6, llm, rng=3, log=log, **options)
        model.run_for(3)
    except ConfigError as error:
        fault = str(error)
    try:
        if model is not None:
            model.close()
    except ConfigError as error:
        fault = str(error)
    return fault


def keys_in(log: Path) -> list[str] | None:
    """Return the keys of the replies in a log and its write-ahead log; None if it is damaged."""
    with tempfile.TemporaryDirectory() as folder:
        for file in log, log.with_name(f"{log.name}-wal"):
            if file.exists():
                shutil.copy(file, folder)
        with closing(sqlite3.connect(Path(folder, log.name))) as copy:
            try:
                is_whole = copy.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                is_log = copy.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchone()
                keys = [key.hex() for (key,) in copy.execute("SELECT key FROM calls")] if is_log else []
            except sqlite3.DatabaseError:
                return None
    return keys if is_whole else None


@dataclass(frozen=True)
class Interrupted:
    """A run on a disk without room, and the same run when there is room."""

    fault: str
    """What the first said."""

    is_whole: bool
    """Whether its log, with its write-ahead log, was sound."""

    n_lost: int
    """Number of replies that came and were on no disk."""

    n_twice: int
    """Number of requests that were sent again."""

    digest: str
    """Digest of the finished run."""


def interrupted(log: Path, limit: Callable[[int], object], room: int, **options: Any) -> Interrupted:
    """Run a model where there is so much room, then again where there is enough.

    Args:
        log: The log.
        limit: Sets how many bytes may be written.
        room: This number.
        **options: Options of the model.
    """
    before, after = CountingLLM(), CountingLLM()
    limit(room)
    fault = play(log, before, **options)
    kept, aside = keys_in(log), spilled()
    limit(NO_LIMIT)
    assert play(log, after, **options) == "", log
    with closing(sqlite3.connect(log)) as database:
        ((digest,),) = database.execute("SELECT digest FROM steps ORDER BY time DESC LIMIT 1").fetchall()
    assert not spilled()
    lost = set(before.keys) - set(kept or ()) - set(aside)
    return Interrupted(fault, kept is not None, len(lost), len({*before.keys} & {*after.keys}), digest)


def spilled() -> list[str]:
    """Return the keys of replies that are on another disk than their log."""
    files = Path(tempfile.gettempdir()).glob("mesa-llm-unsaved*/*.sqlite")
    return [key for file in files for key in keys_in(file) or ()]


def limit_files(size: int = NO_LIMIT) -> None:
    """Set how large a file of this process may become, in bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


class SmallDisk:
    """A file system in memory, for this process alone, which needs no rights where users may have namespaces.

    Attributes:
        folder: Where it is.
    """

    def __init__(self, folder: Path) -> None:
        """Mount it.

        Raises:
            OSError: If this machine does not let users do so.
        """
        self.folder = folder
        user, group = os.geteuid(), os.getegid()
        os.unshare(os.CLONE_NEWNS | (os.CLONE_NEWUSER if user else 0))
        if user:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        _mount("--make-rprivate", "/")
        _mount("-t", "tmpfs", "tmpfs", str(folder))

    def limit(self, size: int) -> None:
        """Set its size, in bytes."""
        _mount("-o", f"remount,size={size}", str(self.folder))

    def fill(self) -> None:
        """Leave no room."""
        self.limit(16_000_000)
        with (self.folder / "full").open("wb", buffering=0) as file, suppress(OSError):
            while file.write(bytes(4096)):
                pass


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr)
