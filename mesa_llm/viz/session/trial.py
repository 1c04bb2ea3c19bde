"""Builds a recorded model in a process with limits first, before a page builds it.

A run log may come from anybody, and its parameters determine the size of its model. A page shares its process with
other pages and cannot stop a build, so a model that takes too long or too much memory is found out here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from inspect import Parameter
from pathlib import Path
from typing import Any, cast

from mesa_llm.errors import ConfigError
from mesa_llm.llm import child_process
from mesa_llm.model.identity import class_named, parameter_as_json
from mesa_llm.model.model import LLMModel
from mesa_llm.model.options import constructor
from mesa_llm.model.recording import Recording
from mesa_llm.runlog.log import RunLog

try:
    import resource
except ImportError:  # Windows
    resource = None


PLAIN_SIZE = 1000
"""Numbers and lengths up to this one need no trial."""

BUILD_S = 10
"""Maximum processor time for building a model, in seconds."""

BUILD_BYTES = 2 * 2**30
"""Maximum memory for building a model, in bytes."""

TRIAL_S = 60.0
"""Maximum duration of a trial including imports, in seconds."""

TOO_LARGE = 3
"""Exit status of a trial that ran out of memory."""


def require_buildable(file: Path, parameters: Mapping[str, Any], kind: type[LLMModel] | None) -> None:
    """Raise unless a page can build the model of a run log; its imports must have been checked before.

    Args:
        file: The run log.
        parameters: Its parameters.
        kind: Class of the model, whose default parameters need no trial; None: unknown.

    Raises:
        ConfigError: If building it takes too long or too much memory.
    """
    size, name = max(_sizes(own_parameters(parameters, kind), ""), default=(0.0, ""))
    if size <= PLAIN_SIZE:
        return
    command = child_process.python(__file__, str(file), str(BUILD_S), str(BUILD_BYTES), *child_process.own_paths())
    try:
        done = subprocess.run(
            command,
            env=child_process.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TRIAL_S,
        )
        is_buildable = done.returncode in (0, 1)  # other errors appear when the page builds it
    except subprocess.TimeoutExpired:
        is_buildable = False
    if not is_buildable:
        raise ConfigError(
            f"{str(file)!r} needs more than {BUILD_S} s or {BUILD_BYTES >> 30} GB to build its model ({name} is "
            f"{size:,.0f}), so a page does not open it; if you trust its source, use mesa-llm replay {file}"
        )


def own_parameters(parameters: Mapping[str, Any], kind: type[LLMModel] | None) -> dict[str, Any]:
    """Return those parameters of a recorded run that differ from the defaults of its model.

    Args:
        parameters: The parameters, as recorded in a run log.
        kind: Class of the model; None: unknown, so that all are its own.
    """
    usual = {} if kind is None else _defaults(kind)
    return {name: value for name, value in parameters.items() if name not in usual or usual[name] != value}


def _defaults(kind: type[LLMModel]) -> dict[str, Any]:
    """Return the default parameters of a model, as recorded in a run log."""
    defaults = {name: parameter.default for name, parameter in constructor(kind).parameters.items()}
    defaults |= {parameter.name: parameter.default for parameter in kind.scenario_class.parameters()}
    return {name: parameter_as_json(default) for name, default in defaults.items() if default is not Parameter.empty}


def _sizes(value: Any, name: str) -> Iterator[tuple[float, str]]:
    """Return all numbers and lengths in a JSON value with their names."""
    match value:
        case bool() | None:
            return
        case int() | float():
            yield min(abs(value), 1e300), name
        case str():
            yield float(len(value)), f"the length of {name}"
            with suppress(ValueError):
                yield min(abs(float(value)), 1e300), name
        case dict():
            fields = cast("dict[str, Any]", value)
            yield float(len(fields)), f"the length of {name}"
            for key, each in fields.items():
                yield from _sizes(each, f"{name}.{key}".lstrip("."))
        case list():
            items = cast("list[Any]", value)
            yield float(len(items)), f"the length of {name}"
            for index, each in enumerate(items):
                yield from _sizes(each, f"{name}[{index}]")
        case _:
            return


def _limit(build_s: int, build_bytes: int) -> None:
    """Limit the time and memory of this process from here on."""
    if resource is None:
        return
    used = 0
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    with suppress(ValueError, OSError):  # macOS
        resource.setrlimit(resource.RLIMIT_AS, (used + build_bytes, used + build_bytes))
    seconds = int(time.process_time()) + 1 + build_s
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))


def main(file: str, build_s: int, build_bytes: int, *own_paths: str) -> None:
    """Build the model of a run log, and exit with `TOO_LARGE` if memory runs out.

    Args:
        file: The run log.
        build_s: Maximum processor time, in seconds.
        build_bytes: Maximum memory, in bytes.
        *own_paths: Where the user's own modules are, if any; see `mesa_llm.llm.child_process`.
    """
    sys.path += own_paths
    with closing(RunLog(file, "read")) as log:
        manifest: Mapping[str, Any] = log.manifest
    kind = class_named(manifest["model"], LLMModel)
    parameters = dict(manifest["parameters"])
    recording = Recording(
        Path(file), manifest["model"], parameters, manifest["rng"], manifest["files"], (), {}, sys.maxsize
    )
    _limit(build_s, build_bytes)
    try:
        recording.rebuilt({"llm": "rule"} if "llm" in parameters else {}, kind, log=None)
    except ConfigError as error:
        if isinstance(error.__cause__, MemoryError):
            os._exit(TOO_LARGE)
        raise
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
