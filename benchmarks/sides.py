"""The two sides of the comparison: an environment each, and a fresh process for everything that is measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cell import Cell
from stub import FREE, Terms, endpoint

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

PEER_PACKAGES = ("mesa-llm==0.3.2", "mcp")
"""The other package, and what it does not start without: its `litellm` imports `mcp` when a request has tools."""


class NotRun(Exception):
    """A measurement that did not come about; the text says why."""


def environment(python: str = sys.executable) -> dict[str, str]:
    """Return the environment of a process that is measured: no network at import, compiled modules kept, no key.

    Args:
        python: Its Python; ours finds this folder's modules, the other side's must find its own.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    own = {"PYTHONPATH": str(ROOT)} if python == sys.executable else {}
    return {**kept, **own, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none"}


@dataclass(frozen=True)
class Side:
    """One of the two."""

    name: str
    """Its name in the tables."""

    python: str
    """The Python of its environment."""

    script: str
    """The file that measures it."""

    def measure(self, cell: Cell, terms: Terms = FREE, limit_s: float = 120.0) -> dict[str, Any]:
        """Do one cell in a fresh process, against a fresh endpoint.

        Args:
            cell: What is measured.
            terms: What the endpoint grants.
            limit_s: Seconds after which it is given up.

        Raises:
            NotRun: If it takes too long, or ends in an error.
        """
        with endpoint(terms) as base:
            command = [self.python, str(HERE / self.script), json.dumps(asdict(replace(cell, base=base)))]
            return last_line(command, limit_s)

    def cpu_s(self, statement: str, limit_s: float = 60.0) -> dict[str, Any]:
        """Measure the processor time of a fresh process that runs one statement, and which modules it loads."""
        told = "import sys, time, json; print(json.dumps({'cpu_s': time.process_time(), 'modules': list(sys.modules)}))"
        return last_line([self.python, "-c", f"{statement}\n{told}"], limit_s)


def last_line(command: list[str], limit_s: float) -> dict[str, Any]:
    """Run a program, and read the JSON that is the last line of its output.

    Raises:
        NotRun: If it takes too long, or ends in an error.
    """
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=limit_s, env=environment(command[0]), cwd=HERE, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotRun(f"took over {limit_s:.0f} s") from None
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        told = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise NotRun(told[-1][:120])
    return json.loads(lines[-1])


OURS = Side("this project", sys.executable, "ours.py")


def peer() -> Side:
    """Return the other side; its environment is made when it is first used.

    Raises:
        NotRun: If it cannot be made.
    """
    python = environment_of(".venv-peer", PEER_PACKAGES, constraints=True)
    return Side("mesa-llm 0.3.2", python, "peer.py")


def environment_of(name: str, packages: Sequence[str], *, constraints: bool, version: str | None = None) -> str:
    """Return the Python of an environment with these packages, which is made unless it is there.

    Args:
        name: Its folder, in the root of the project.
        packages: What is installed.
        constraints: Whether the project's own versions hold in it.
        version: Version of Python; None: this one.

    Raises:
        NotRun: If it cannot be made.
    """
    folder = ROOT / name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = folder / ".ready"
    wanted = " ".join((*packages, version or sys.version))
    if not ready.exists() or ready.read_text() != wanted:
        pins = ["--constraints", str(ROOT / "constraints.txt")] if constraints else []
        if version is None:
            run("venv", "--clear", "--without-pip", str(folder))
        else:
            run("uv", "venv", "--quiet", "--clear", "--python", version, str(folder))
        run("uv", "pip", "install", "--quiet", *pins, "--python", str(python), *packages)
        ready.write_text(wanted)
    return str(python)


def run(*module: str) -> None:
    """Run a module of this Python, and say so.

    Raises:
        NotRun: If it fails.
    """
    print("+ python -m " + " ".join(module).replace(str(ROOT) + os.sep, ""), file=sys.stderr, flush=True)
    try:
        subprocess.run([sys.executable, "-m", *module], check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotRun(f"the environment of the other side cannot be made: {error}") from error
