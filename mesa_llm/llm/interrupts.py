"""Signals that end a command: Ctrl-C, SIGTERM, and SIGHUP, which a closed terminal and a lost connection send."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time as clock
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import ClassVar

ENDING = tuple(signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if name in signal.Signals.__members__)
"""The signals; Windows has no SIGHUP."""

AGAIN_AFTER_S = 0.02
"""Seconds after which a signal is sent again whose exception was dropped."""


class Interrupted(KeyboardInterrupt):
    """A signal that ends a command has arrived."""


@contextmanager
def interrupting() -> Generator[None]:
    """Raise `KeyboardInterrupt` in this block for each signal that ends a command.

    SIGHUP becomes SIGTERM. Signals that the process ignores are still ignored, as SIGHUP is after `nohup`. Only the
    main thread receives signals: in others, the block changes nothing.

    Raises:
        KeyboardInterrupt: Also at the end of the block, if some code in it has caught all others.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupts = _Interrupts.of_command = _Interrupts()
    previous = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in previous.items():
        if handler not in (signal.SIG_IGN, None):  # None: a handler in C
            signal.signal(number, interrupts.handle)
    try:
        yield
    except ImportError as error:  # how a module in C reports what interrupts its import
        raise KeyboardInterrupt if interrupts.have_begun else error from error
    else:
        if interrupts.have_begun:
            raise KeyboardInterrupt
    finally:
        interrupts.are_over, _Interrupts.of_command = True, None
        for number, handler in previous.items():
            if handler is not None:
                signal.signal(number, handler)


class _Interrupts:
    """Handles the signals that end a command, and sends one again if it is lost.

    Python drops an exception that is raised in a callback of an import or of the garbage collector; code in C, or
    `except:` in Python, may drop it anywhere.

    Attributes:
        have_begun: Whether there was a signal.
        are_over: Whether none is sent again.
    """

    of_command: ClassVar[_Interrupts | None] = None
    """Those of the current command."""

    def __init__(self) -> None:
        self.have_begun = self.are_over = False
        self._terminals = [number for number in (0, 1, 2) if _is_terminal(number)]
        self._first: weakref.ref[Interrupted] | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Raise `Interrupted`."""
        if number not in (signal.SIGINT, signal.SIGTERM):
            self._leave_terminals()
            signal.raise_signal(signal.SIGTERM)
            return
        self.have_begun = True
        raise self._watched(number)  # by no name, as its traceback would keep it alive

    def _watched(self, number: int) -> Interrupted:
        """Return an exception; if it is the first one, `_drop` is called once nothing refers to it any more."""
        interrupted = Interrupted()
        if self._first is None:
            self._first = weakref.ref(interrupted, lambda reference: self._drop(number))
        return interrupted

    def _drop(self, number: int) -> None:
        """Send the first signal again, which was dropped, unless the engine or a server handles signals by now."""
        if self.are_over or signal.getsignal(number) != self.handle:
            return
        self._first = None
        with suppress(RuntimeError):  # the interpreter is ending
            _thread.start_new_thread(
                self._send_again, (number,)
            )  # not here, where its exception would be dropped as well

    def _send_again(self, number: int) -> None:
        clock.sleep(AGAIN_AFTER_S)
        if not self.are_over:
            send_to_main_thread(number)

    def _leave_terminals(self) -> None:
        """Write to closed terminals no more, which would be an error."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in self._terminals:
            os.dup2(nowhere, number)
        os.close(nowhere)


@contextmanager
def until_interrupted() -> Generator[None]:
    """Leave this block at a signal that ends a command, which then goes on to its end."""
    try:
        yield
    except KeyboardInterrupt:
        if (interrupts := _Interrupts.of_command) is not None:
            interrupts.have_begun, interrupts.are_over = False, True


class WorkerInterrupts:
    """Signals in a worker process: the first one interrupts the job that it is doing.

    More of them follow where a signal is sent to the worker and to its parent, which passes it on: then only Ctrl-C
    counts again.
    """

    def __init__(self) -> None:
        """Start without a job."""
        self._is_busy = False
        self._n = 0

    def install(self) -> None:
        """Handle signals from now on."""
        for number in ENDING:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                signal.signal(number, self._handle)

    @contextmanager
    def busy(self) -> Generator[None]:
        """Do a job in this block."""
        self._is_busy = True
        try:
            yield
        finally:
            self._is_busy = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._n += 1
        if self._is_busy and (self._n == 1 or number == signal.SIGINT):
            raise KeyboardInterrupt


def send_to_main_thread(number: int) -> None:
    """Let the main thread of this process receive a signal; it wakes from what it waits for, except on Windows."""
    if sys.platform == "win32":
        _thread.interrupt_main(number)
    elif (main := threading.main_thread().ident) is not None:
        signal.pthread_kill(main, number)


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False
