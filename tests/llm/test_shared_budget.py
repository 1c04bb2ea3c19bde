"""One purse that several processes spend from."""

from __future__ import annotations

import asyncio
import socket
import threading
from multiprocessing import AuthenticationError

import pytest

from mesa_llm.errors import BudgetExceeded
from mesa_llm.llm.budget import Reservation, SharedBudget
from mesa_llm.llm.shared_budget import RemoteBudget, served
from mesa_llm.records import Usage


def test_whoever_hangs_up_keeps_no_worker_from_the_purse() -> None:
    with served(SharedBudget(calls=1)) as (address, key):
        for _ in range(3):
            socket.create_connection(address).close()
        purse = RemoteBudget(address, key)
        purse.reserve()
        purse.settle(Usage(calls=1))
        with pytest.raises(BudgetExceeded):
            RemoteBudget(address, key).reserve()


def test_silent_or_keyless_connection_does_not_block_the_shared_budget() -> None:
    with served(SharedBudget(calls=1)) as (address, key), socket.create_connection(address):
        with pytest.raises((AuthenticationError, EOFError, OSError)):
            RemoteBudget(address, b"another key")
        RemoteBudget(address, key).reserve()


def test_what_a_killed_worker_had_on_its_way_is_paid_for() -> None:
    with served(SharedBudget(calls=2, tokens=1000)) as (address, key):
        killed, other = RemoteBudget(address, key), RemoteBudget(address, key)
        killed.reserve(Reservation(600, prompt_tokens=100), Reservation(100))
        assert other.reserve(Reservation(600), Reservation(100)) is None
        del killed  # as when its process ends: the connection is closed
        assert asyncio.run(other.reserve_in_turn(lambda: (Reservation(600), Reservation(100)))) == Reservation(600)
        assert (other.spent().requests, other.spent().tokens) == (1, 100)


def test_nothing_listens_any_more_once_a_sweep_is_over() -> None:
    before = set(threading.enumerate())
    with served(SharedBudget()) as (address, _):
        threads = [one for one in threading.enumerate() if one.name == "mesa-llm-purse" and one not in before]
    assert threads  # with one, perhaps, that still ends a connection of an earlier sweep
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(address)
