"""One purse for several processes: one keeps it and serves it, the others ask it."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Listener
from typing import Any

from mesa_llm.errors import BudgetSpent, Stopped
from mesa_llm.llm.limits import Purse
from mesa_llm.records import Usage

WAKE_S = 1.0
"""Maximum number of seconds to wait for the thread that serves a purse, when it is to end."""


@contextmanager
def served(purse: Purse, host: str = "127.0.0.1") -> Generator[tuple[Any, bytes]]:
    """Serve a purse to other processes, and yield the address and the key for `RemotePurse`.

    Args:
        purse: The purse.
        host: Address of this machine to listen on; by default one that only this machine can reach.
    """
    key, is_over = os.urandom(32), threading.Event()
    with Listener((host, 0), authkey=key) as listener:
        threading.Thread(target=_serve, args=(purse, listener, is_over), name="mesa-llm-purse", daemon=True).start()
        address: Any = listener.address
        try:
            yield address, key
        finally:
            is_over.set()
            with suppress(OSError), socket.create_connection(address, WAKE_S):
                pass  # wakes the thread, which waits for connections even after the listener is closed


class RemotePurse(Purse):
    """A purse that another process keeps, which allows each request."""

    def __init__(self, address: Any, key: bytes) -> None:
        """Connect to where it is served.

        Args:
            address: Address, as `served` yields it.
            key: Key of the connection, likewise.
        """
        super().__init__()
        self._connection = Client(address, authkey=key)
        self._turn = threading.Lock()

    def spent(self) -> Usage:
        """Return the usage of all workers so far."""
        return self._call("spent")

    def reserve(self) -> None:
        """Allow one more request, or raise `BudgetSpent`."""
        self._call("reserve")

    def settle(self, used: Usage | None) -> None:
        """End a request that was allowed."""
        self._call("settle", used)

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


def _serve(purse: Purse, listener: Listener, is_over: threading.Event) -> None:
    """Answer the workers, each in a thread, until the sweep is over."""
    while not is_over.is_set():
        try:
            connection = listener.accept()
        except (AuthenticationError, EOFError, OSError):  # no worker, or one that ended while it connected
            continue
        threading.Thread(target=_answer, args=(purse, connection), name="mesa-llm-purse", daemon=True).start()


def _answer(purse: Purse, connection: Any) -> None:
    with suppress(EOFError, OSError):  # the worker has ended
        while True:
            method, arguments = connection.recv()
            try:
                answer = getattr(purse, method)(*arguments)
            except BudgetSpent as error:
                answer = error
            connection.send(answer)
