"""One purse that several processes spend from."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from multiprocessing import AuthenticationError

import pytest

from mesa_llm.errors import BudgetSpent
from mesa_llm.llm.limits import Purse
from mesa_llm.llm.purse import RemotePurse, served
from mesa_llm.records import Usage


def test_whoever_hangs_up_keeps_no_worker_from_the_purse() -> None:
    with served(Purse(calls=1)) as (address, key):
        for _ in range(3):
            socket.create_connection(address).close()
        purse = RemotePurse(address, key)
        purse.reserve()
        purse.settle(Usage(calls=1))
        with pytest.raises(BudgetSpent):
            RemotePurse(address, key).reserve()


def test_who_connects_and_says_nothing_or_has_no_key_keeps_no_worker_from_the_purse() -> None:
    with served(Purse(calls=1)) as (address, key), socket.create_connection(address):
        with pytest.raises((AuthenticationError, EOFError, OSError)):
            RemotePurse(address, b"another key")
        RemotePurse(address, key).reserve()


def test_what_a_killed_worker_had_reserved_is_free_again() -> None:
    with served(Purse(calls=1)) as (address, key):
        killed, other = RemotePurse(address, key), RemotePurse(address, key)
        killed.reserve()
        with pytest.raises(BudgetSpent, match="1 on their way"):
            other.reserve()
        del killed  # as when its process ends: the connection is closed
        for _ in range(200):
            with suppress(BudgetSpent):
                return other.reserve()
            time.sleep(0.05)
        return other.reserve()


def test_nothing_listens_any_more_once_a_sweep_is_over() -> None:
    before = set(threading.enumerate())
    with served(Purse()) as (address, _):
        threads = [one for one in threading.enumerate() if one.name == "mesa-llm-purse" and one not in before]
    assert threads  # with one, perhaps, that still ends a connection of an earlier sweep
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address)
