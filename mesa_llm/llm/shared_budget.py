"""Limits that several processes share: each has a part of them, and all spend from one budget, which one serves."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener, answer_challenge, deliver_challenge
from typing import Any

from mesa_llm.errors import BudgetExceeded, ConfigError, Stopped
from mesa_llm.llm.budget import Reservation, SharedBudget
from mesa_llm.records import Usage

BUDGET = ("max_calls", "max_tokens", "max_dollars")
"""Options of the access that set the workers' budget."""

SHARED_OUT = ("concurrency", "requests_per_min", "tokens_per_min")
"""Options of the access that are divided among the workers, so that together they stay within them."""

WAKE_S = 1.0
"""Maximum number of seconds to wait for a connection to the thread that serves a budget, to end it."""

ACCEPT_AGAIN_S = 0.1
"""Seconds to wait after a connection could not be accepted."""


def n_workers_for(workers: int | None, n_jobs: int, access: Mapping[str, Any]) -> int:
    """Return the number of processes that run at once.

    Args:
        workers: Number that was asked for; None: as many as the machine has cores, and the limits allow.
        n_jobs: Number of jobs, beyond which no process is needed.
        access: Options of the access of all processes together.

    Raises:
        ConfigError: If `workers` is below 1, or more than the limits can be shared out among.
    """
    shares = {name: max(int(access[name]), 1) for name in SHARED_OUT if access.get(name) is not None}
    n_workers = min([os.cpu_count() or 1, *shares.values()]) if workers is None else workers
    if n_workers < 1:
        raise ConfigError(f"workers is the number of runs at once, 1 or more; got {workers!r}")
    n_workers = min(n_workers, max(n_jobs, 1))
    for name, n_shares in shares.items():
        if n_workers > n_shares:
            raise ConfigError(
                f"{name}={access[name]} cannot be shared out among {n_workers} workers, of which each needs 1; give "
                f"workers={n_shares}, or a larger limit"
            )
    return n_workers


@contextmanager
def limits_of_each(access: Mapping[str, Any], n_workers: int, host: str) -> Generator[dict[str, Any]]:
    """Yield the options of each worker's access: its share of the limits, and the address of the common budget.

    Args:
        access: Options of the access of all workers together.
        n_workers: Number of workers.
        host: Address of this machine that all of them can reach.

    Raises:
        ConfigError: If a budget is not above zero.
        OSError: If this machine cannot listen at `host`.
    """
    limits = dict(access)
    for name in SHARED_OUT:
        if limits.get(name) is not None:
            limits[name] = limits[name] // n_workers if name == "concurrency" else limits[name] / n_workers
    purse: SharedBudget | None = access.get("purse")
    if purse is None and all(access.get(name) is None for name in BUDGET):
        yield limits
        return
    with served(purse or SharedBudget(*(access.get(name) for name in BUDGET)), host) as address_and_key:
        yield {**limits, "purse": address_and_key}


@contextmanager
def served(purse: SharedBudget, host: str = "127.0.0.1") -> Generator[tuple[Any, bytes]]:
    """Serve a budget to other processes, and yield the address and the key for `RemoteBudget`.

    Args:
        purse: The budget.
        host: Address of this machine to listen on; by default, one that only this machine can reach.

    Raises:
        OSError: If this machine cannot listen there.
    """
    key, is_over = os.urandom(32), threading.Event()
    with Listener((host, 0)) as listener:
        serve = (purse, key, listener, is_over)
        threading.Thread(target=_serve, args=serve, name="mesa-llm-purse", daemon=True).start()
        address: Any = listener.address
        try:
            yield address, key
        finally:
            is_over.set()
            with suppress(OSError), socket.create_connection(address, WAKE_S):
                pass  # wakes the thread, which waits for connections even after the listener is closed


class RemoteBudget(SharedBudget):
    """A budget that another process holds; each call is sent to that process."""

    def __init__(self, address: Any, key: bytes) -> None:
        """Connect to the process that serves it.

        Args:
            address: Address, as `served` yields it.
            key: Key of the connection, as `served` yields it.

        Raises:
            OSError: If it cannot be reached.
        """
        super().__init__()
        self._connection = Client(address, authkey=key)
        self._turn = threading.Lock()

    def spent(self) -> Usage:
        """Return the usage of all workers so far.

        Raises:
            Stopped: If the process that holds the budget has ended.
        """
        return self._call("spent")

    def bounds(self) -> tuple[bool, bool]:
        """Return whether tokens and whether dollars are limited.

        Raises:
            Stopped: If the process that holds the budget has ended.
        """
        return self._call("bounds")

    def reserve(self, most: Reservation = Reservation(), least: Reservation = Reservation()) -> Reservation | None:  # noqa: B008 - immutable
        """Reserve one request, as `SharedBudget.reserve` does.

        Raises:
            BudgetExceeded: If the budget does not allow it.
            Stopped: If the process that holds the budget has ended.
        """
        return self._call("reserve", most, least)

    def settle(self, used: Usage | None, hold: Reservation = Reservation()) -> None:  # noqa: B008 - immutable
        """End a reserved request, as `SharedBudget.settle` does.

        Raises:
            Stopped: If the process that holds the budget has ended.
        """
        self._call("settle", used, hold)
        self.wake()

    def _call(self, method: str, *arguments: Any) -> Any:
        with self._turn:
            try:
                self._connection.send((method, arguments))
                answer = self._connection.recv()
            except (EOFError, OSError):
                raise Stopped("the sweep that this run belongs to has ended") from None
        if isinstance(answer, Exception):
            raise answer
        return answer


def _serve(purse: SharedBudget, key: bytes, listener: Listener, is_over: threading.Event) -> None:
    """Answer the workers, each in a thread of its own, until the sweep is over."""
    while not is_over.is_set():
        try:
            connection = listener.accept()
        except OSError:  # the other side is gone, or this process can open no more files
            is_over.wait(ACCEPT_AGAIN_S)
            continue
        threading.Thread(target=_answer, args=(purse, key, connection), name="mesa-llm-purse", daemon=True).start()


def _answer(purse: SharedBudget, key: bytes, connection: Any) -> None:
    """Answer one worker until it ends; a connection with another key is closed."""
    reserved: list[Reservation] = []
    with suppress(AuthenticationError, EOFError, OSError), connection:
        deliver_challenge(connection, key)
        answer_challenge(connection, key)
        while True:
            method, arguments = connection.recv()
            try:
                answer = getattr(purse, method)(*arguments)
            except BudgetExceeded as error:
                answer = error
            else:
                if method == "reserve" and answer is not None:
                    reserved.append(answer)
                elif method == "settle":
                    reserved.remove(arguments[1])
            connection.send(answer)
    for hold in reserved:  # of a worker that was killed while requests were in flight
        purse.settle(Usage(0, 0, hold.prompt_tokens, requests=1), hold)
