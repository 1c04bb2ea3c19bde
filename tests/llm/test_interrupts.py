"""Signals that end a command, one at a time."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from mesa_llm.llm.interrupts import ENDING, WorkerInterrupts, interrupting, until_interrupted

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

Send = Callable[[], object]


class _Callback:
    """Sends itself a signal while it is freed, where Python drops every exception."""

    def __init__(self, send: Send) -> None:
        self._send = send

    def __del__(self) -> None:
        self._send()


def _in_except(send: Send) -> None:
    with suppress(BaseException):
        send()


def _in_import(send: Send) -> None:
    try:
        send()
    except KeyboardInterrupt:
        raise ImportError("numpy._core.multiarray failed to import") from None


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Leave the handlers of signals as they were."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
def test_signals_interrupt_and_previous_handlers_are_restored(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in ENDING]
    with pytest.raises(KeyboardInterrupt), interrupting():
        signal.raise_signal(number)
    assert [signal.getsignal(each) for each in ENDING] == before


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("lose", [_Callback, _in_except, _in_import])
def test_a_signal_whose_exception_is_dropped_interrupts_what_follows(
    lose: Any, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: None)  # pytest's own keeps the exception

    def work() -> None:
        lose(lambda: signal.raise_signal(number))
        time.sleep(100)
        pytest.fail("it goes on")

    with pytest.raises(KeyboardInterrupt), interrupting():
        work()


def test_block_ending_before_a_dropped_signal_is_resent_is_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt), interrupting():
        _in_except(lambda: signal.raise_signal(signal.SIGTERM))


def test_what_runs_until_it_is_interrupted_ends_well() -> None:
    with interrupting():
        with until_interrupted():
            signal.raise_signal(signal.SIGTERM)
            pytest.fail("it goes on")
        time.sleep(0.1)


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_that_is_ignored_at_the_start_is_ignored_throughout(number: signal.Signals) -> None:
    signal.signal(number, signal.SIG_IGN)
    with interrupting():
        signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    assert signal.getsignal(number) is signal.SIG_IGN


def test_what_handles_sigterm_handles_sighup() -> None:
    received: list[int] = []
    with interrupting():
        signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
        signal.raise_signal(signal.SIGHUP)
    assert received == [signal.SIGTERM]


def test_a_worker_is_interrupted_in_its_job_once_and_again_only_by_ctrl_c() -> None:
    interrupts = WorkerInterrupts()
    interrupts.install()
    with pytest.raises(KeyboardInterrupt), interrupts.busy():
        signal.raise_signal(signal.SIGHUP)
    with interrupts.busy():
        signal.raise_signal(signal.SIGTERM)  # passed on by the parent, which received the same
    signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interrupts.busy():
        signal.raise_signal(signal.SIGINT)
