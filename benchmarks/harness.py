"""Harness of the comparison: an environment for each system, and a fresh process for every measurement."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from measurement import Measurement
from mock_server import UNLIMITED, Behaviour, mock_server

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

UPSTREAM_PACKAGES = ("mesa-llm==0.3.2", "mcp")
"""The other package and its undeclared requirement: its `litellm` imports `mcp` when a request has tools."""


class NotRun(Exception):
    """A failed measurement, with the reason as text."""


def environment(python: str = sys.executable) -> dict[str, str]:
    """Return the environment of a measured process: no network at import, compiled modules kept, no key.

    Args:
        python: Its Python; ours imports from this folder, upstream's must not.
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")}
    own = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "models")))} if python == sys.executable else {}
    return {**kept, **own, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENAI_API_KEY": "none"}


@dataclass(frozen=True)
class System:
    """A system under test."""

    name: str
    """Name in the tables."""

    python: str
    """Python of its environment."""

    script: str
    """File that measures it."""

    def measure(
        self, measurement: Measurement, behaviour: Behaviour = UNLIMITED, limit_s: float = 120.0
    ) -> dict[str, Any]:
        """Take one measurement in a fresh process, against a fresh endpoint.

        Args:
            measurement: The measurement.
            behaviour: Behaviour of the endpoint.
            limit_s: Time limit in seconds.

        Raises:
            NotRun: If it takes too long, or ends in an error.
        """
        with mock_server(behaviour) as base:
            command = [self.python, str(HERE / self.script), json.dumps(asdict(replace(measurement, base=base)))]
            return last_line(command, limit_s)

    def cpu_s(self, statement: str, limit_s: float = 60.0) -> dict[str, Any]:
        """Measure the processor time of a fresh process that runs one statement, and which modules it loads."""
        report = (
            "import sys, time, json; print(json.dumps({'cpu_s': time.process_time(), 'modules': list(sys.modules)}))"
        )
        return last_line([self.python, "-c", f"{statement}\n{report}"], limit_s)


def last_line(command: list[str], limit_s: float) -> dict[str, Any]:
    """Run a program, and parse the last line of its output as JSON.

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
        errors = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        raise NotRun(errors[-1][:120])
    return json.loads(lines[-1])


OURS = System("this project", sys.executable, "workload_ours.py")


def upstream() -> System:
    """Return upstream's package, after creating its environment if needed.

    Raises:
        NotRun: If the environment cannot be created.
    """
    python = environment_of(".venv-upstream", UPSTREAM_PACKAGES, constraints=True)
    return System("mesa-llm 0.3.2", python, "workload_upstream.py")


def environment_of(name: str, packages: Sequence[str], *, constraints: bool, version: str | None = None) -> str:
    """Return the Python of an environment with some packages, after creating it if needed.

    Args:
        name: Its folder, in the root of the project.
        packages: Packages to install.
        constraints: Whether to install the project's own pinned versions.
        version: Version of Python; None: this one.

    Raises:
        NotRun: If the environment cannot be created.
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
    """Run a module of this Python, and print the command.

    Raises:
        NotRun: If it fails.
    """
    print("+ python -m " + " ".join(module).replace(str(ROOT) + os.sep, ""), file=sys.stderr, flush=True)
    try:
        subprocess.run([sys.executable, "-m", *module], check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotRun(f"the environment of the other system cannot be created: {error}") from error
