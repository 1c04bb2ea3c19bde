"""Processes of Python that start at once: forked from one that has imported, once, what most of them need.

Where nothing can be forked each is a new one. What a test says about a fresh process needs `subprocess`.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

IS_FORKED = "forkserver" in multiprocessing.get_all_start_methods()
CONTEXT: Any = multiprocessing.get_context("forkserver" if IS_FORKED else "spawn")
IMPORTED = [
    "mesa.visualization",
    "mesa_llm.cli.run",
    "mesa_llm.viz.server.gallery",
    "mesa_llm_models.compost.scores",
    "mesa_llm_models.social.model",
    "mesa_llm_models.sotopia.scores",
    "uvicorn",
    "tests.frozen",
]
"""What takes long to import, and starts no threads: a process that is forked has none of them."""

if IS_FORKED:
    CONTEXT.set_forkserver_preload(IMPORTED)


class Python:
    """A process of `python ARGUMENTS`, used as one of `subprocess.Popen`; it has no pipes."""

    stdin = stdout = stderr = None

    def __init__(
        self,
        *arguments: str | Path,
        log: Path | None = None,
        env: dict[str, str] | None = None,
        cwd: str | Path | None = None,
    ) -> None:
        """Start it.

        Args:
            *arguments: `-m MODULE …`, `-c CODE …`, or `FILE …`.
            log: File for all that it writes; None: `out` and `err` have it.
            env: All of its environment; None: that of this process.
            cwd: Its working folder; None: that of this process.
        """
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # gone with this object
        self._out, self._err = (log or Path(self._folder.name, name) for name in ("out", "err"))
        environment = dict(os.environ) if env is None else env
        place = (str(self._out), str(self._err), environment, str(cwd or Path.cwd()))
        self._process = CONTEXT.Process(target=_become, args=([*map(str, arguments)], *place))
        self._process.start()
        self.pid: int = self._process.pid or 0

    @property
    def out(self) -> str:
        """What it has written so far."""
        return self._out.read_text() if self._out.exists() else ""

    @property
    def err(self) -> str:
        """The errors that it has written so far."""
        return self._err.read_text() if self._err.exists() else ""

    @property
    def returncode(self) -> int | None:
        """Its exit status; None until it has ended."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return its exit status; None until it has ended."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return its exit status."""
        self._process.join(timeout)
        if self.returncode is None:
            raise TimeoutError(f"process {self.pid} has not ended after {timeout} s")
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Tell it to end."""
        self._process.terminate()

    def kill(self) -> None:
        """End it."""
        self._process.kill()


def run(*arguments: str | Path, timeout: float = 250, **place: object) -> Python:
    """Run `python ARGUMENTS` to its end.

    Args:
        *arguments: As of `Python`.
        timeout: Seconds after which it is ended, and the test fails.
        **place: As of `Python`.
    """
    process = Python(*arguments, **place)  # type: ignore[arg-type]
    try:
        process.wait(timeout)
    finally:
        process.kill()
    return process


def _become(command: list[str], out: str, err: str, environment: dict[str, str], folder: str) -> None:
    """Become a process of `python COMMAND`, as far as what it runs can see."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in (1, out), (2, err):
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1)  # noqa: SIM115
    if "matplotlib" in sys.modules and "MPLBACKEND" in environment:  # it is read where Matplotlib is imported
        sys.modules["matplotlib"].rcParams["backend"] = environment["MPLBACKEND"]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _run(command)
    finally:
        atexit._run_exitfuncs()


def _run(command: list[str]) -> None:
    match command:
        case ["-m", module, *_]:
            sys.argv = command[1:]
            sys.modules.pop(module if "." in module else f"{module}.__main__", None)  # else runpy warns
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.argv = ["-c", *rest]
            exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
        case _:
            sys.argv = command
            sys.path.insert(0, str(Path(command[0]).parent))
            runpy.run_path(command[0], run_name="__main__")
