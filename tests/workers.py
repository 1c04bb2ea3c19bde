"""Tests in several processes, forked from one that has imported and collected all of them: `pytest --workers 3`.

A process takes the next file when it has run one: the tests of a file share its fixtures. Only Linux forks safely from
a process that has loaded the libraries of a system; elsewhere the tests run one after another.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any

import pytest

from tests.processes import fork_from_here

INDEX_BYTES = 2
POLL_S = 1.0
"""How often a process that is silent is looked after: it may have died."""

ENDING_S = 60
"""How long a process that is interrupted may take to end its servers."""


class Worker:
    """A process that runs tests, as its parent sees it."""

    def __init__(self, number: int, config: pytest.Config, files: Sequence[list[pytest.Item]], order: int) -> None:
        """Start it."""
        self.reports, sender = connection.Pipe(duplex=False)
        folder: Path = config._tmp_path_factory.getbasetemp() / f"worker-{number}"  # type: ignore[attr-defined]
        arguments = (config, files, order, sender, folder)
        self.process: Any = get_context("fork").Process(target=work, args=arguments)
        self.process.start()
        sender.close()
        self.has_ended = False
        self.test = ""
        """The one that it runs."""

    def messages(self) -> Iterator[tuple[str, Any]]:
        """Yield the hooks that it has called with what it gave them; if it has died, that its test failed."""
        died = not self.process.is_alive()
        try:
            while self.reports.poll():
                hook, values = self.reports.recv()
                self.test = values.get("nodeid", self.test)
                yield hook, values
        except EOFError:
            self.process.join()
            died = True
        if died:
            self.has_ended = True
            if self.process.exitcode:
                text = f"The process of this test ended with status {self.process.exitcode}."
                place = (self.test, None, self.test)
                yield "pytest_runtest_logreport", pytest.TestReport(self.test, place, {}, "failed", text, "call")

    def end(self) -> None:
        """End it, with what its test has started."""
        if self.process.is_alive():
            os.kill(self.process.pid, signal.SIGINT)
            self.process.join(ENDING_S)
            self.process.kill()


class Sender:
    """Sends what is reported in a worker to its parent."""

    def __init__(self, config: pytest.Config, pipe: Any) -> None:
        """Send to this pipe."""
        self.config, self.pipe = config, pipe

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Send that a test begins."""
        self.pipe.send(("pytest_runtest_logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send the result of a part of a test."""
        values = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self.pipe.send(("pytest_runtest_logreport", values))

    def pytest_warning_recorded(self, warning_message: Any, when: Any, nodeid: str, location: Any) -> None:
        """Send a warning."""
        told = warning_message
        plain = warnings.WarningMessage(str(told.message), told.category, told.filename, told.lineno)
        values = {"warning_message": plain, "when": when, "nodeid": nodeid, "location": location}
        self.pipe.send(("pytest_warning_recorded", values))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Share the tests among processes."""
    parser.addoption("--workers", type=int, default=1, metavar="N", help="number of processes that share the tests")


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the collected tests in several processes, if so many are wanted, and report what these report."""
    config, n_workers = session.config, int(session.config.getoption("--workers") or 1)
    if n_workers < 2 or sys.platform != "linux" or session.testsfailed or config.option.collectonly:
        return None
    files: dict[Path, list[pytest.Item]] = {}
    for item in session.items:
        files.setdefault(item.path, []).append(item)
    order, writer = os.pipe()
    os.write(writer, b"".join(index.to_bytes(INDEX_BYTES) for index in range(len(files))))
    os.close(writer)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is multi-threaded")  # threads of compiled parts, which expect forks
        workers = [Worker(number, config, list(files.values()), order) for number in range(n_workers)]
    try:
        while running := [worker for worker in workers if not worker.has_ended]:
            connection.wait([worker.reports for worker in running], POLL_S)
            for hook, values in chain.from_iterable(worker.messages() for worker in running):
                report(config, hook, values)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
    finally:
        for worker in workers:
            worker.end()
    return True


def report(config: pytest.Config, hook: str, values: Any) -> None:
    """Call a hook that a worker has called."""
    if hook == "pytest_runtest_logreport":
        found = values
        if isinstance(values, dict):
            found = config.hook.pytest_report_from_serializable(config=config, data=values)
        config.hook.pytest_runtest_logreport(report=found)
    elif hook == "pytest_warning_recorded":
        config.hook.pytest_warning_recorded.call_historic(kwargs=values)
    else:
        getattr(config.hook, hook)(**values)


def work(config: pytest.Config, files: Sequence[list[pytest.Item]], order: int, pipe: Any, folder: Path) -> None:
    """Run tests in this process, until none is left."""
    warnings.filterwarnings("ignore", ".* is multi-threaded")
    fork_from_here()
    manager: Any = config.pluginmanager
    captured = manager.getplugin("capturemanager")  # its files are those of the parent
    captured.stop_global_capturing()
    captured.start_global_capturing()
    captured.suspend_global_capture()
    manager.getplugin("terminalreporter")._tw._file = open(os.devnull, "w")  # noqa: SIM115
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    manager.register(Sender(config, pipe))
    try:
        for item, following in pairwise(chain(taken(files, order), [None])):
            config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    except KeyboardInterrupt:
        files[0][0].session._setupstate.teardown_exact(None)
    finally:
        atexit._run_exitfuncs()


def taken(files: Sequence[list[pytest.Item]], order: int) -> Iterator[pytest.Item]:
    """Yield the tests of files that no other process takes; each index in the pipe is read once."""
    while index := os.read(order, INDEX_BYTES):
        yield from files[int.from_bytes(index)]
