"""Runs a model for the command line: parameters from strings, a progress bar, what happened in words."""

from __future__ import annotations

import inspect
import json
import time as clock
import typing
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from tqdm import tqdm

from mesa_llm.errors import ConfigError
from mesa_llm.records import Usage
from mesa_llm.runlog import RunLog
from mesa_llm.tools import describe
from mesa_llm.transports import EngineOptions

Say = Callable[[str], None]

OWN = {
    "llm",
    "rng",
    "scenario",
    "log",
    "replay",
    "on_error",
    "retry_failures",
    "options",
    *EngineOptions.__annotations__,
}
"""Constructor arguments that have an option of their own."""


def parameters(kind: type[Any], given: Sequence[str], users: Path | None) -> dict[str, Any]:
    """Turn `name=value` strings into constructor arguments of a model.

    Args:
        kind: The model's class.
        given: The strings; a value is JSON where the argument's type wants it.
        users: File with the population, for models that take `users`.

    Raises:
        ConfigError: If a name is unknown or a value does not fit its type.
    """
    known = {name: p for name, p in inspect.signature(kind).parameters.items() if name not in OWN}
    hints = typing.get_type_hints(kind.__init__)
    chosen: dict[str, Any] = {}
    for pair in given:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            raise ConfigError(f"--set {pair}: wanted name=value, with one of the names {', '.join(known)}")
        chosen[name] = _value(name, text, hints.get(name, str))
    if users is not None:
        if "users" not in known:
            raise ConfigError(f"{kind.__name__} takes no --users")
        if not users.is_file():
            raise ConfigError(f"--users: there is no file {str(users)!r}")
        chosen["users"] = str(users)
    return chosen


def _value(name: str, text: str, wanted: Any) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(wanted)
    candidates: list[Any] = [text]
    if text[:1] in "[{" or text in ("null", "true", "false"):
        try:
            candidates.insert(0, json.loads(text))
        except json.JSONDecodeError as error:
            raise ConfigError(f"--set {name}={text}: this is no JSON: {error}") from None
    fault = ""
    for candidate in candidates:
        try:
            return adapter.validate_python(candidate)
        except ValidationError as error:
            fault = describe(error)
    raise ConfigError(f"--set {name}={text}: {fault}")


class _Progress:
    """A bar of steps, with decisions, failures, tokens and dollars."""

    def __init__(self, model: Any, steps: int, *, quiet: bool) -> None:
        self.model, self.decided = model, 0
        self.bar = tqdm(total=steps, unit="step", disable=quiet or None, dynamic_ncols=True)
        self.bar.bar_format = "{l_bar}{bar}| {n:.1f}/{total} steps [{elapsed}<{remaining}] {postfix}"

    def decision(self, usage: Usage) -> None:
        """Show one more decision."""
        self.decided += 1
        due = max(len(self.model.due), 1)
        self.bar.n = min(self.model.now - 1 + self.decided / due, self.model.now)
        self.show(usage)

    def step(self) -> None:
        """Show one more step."""
        self.decided = 0
        self.bar.n = int(self.model.time)
        self.show(self.model.usage)
        self.bar.refresh()

    def show(self, usage: Usage) -> None:
        """Show what was used."""
        told = f"{self.model.engine.decisions} decisions, {usage.failures} failed, {usage.tokens} tokens"
        self.bar.set_postfix_str(told + (f", ${usage.dollars:.4f}" if usage.dollars else ""), refresh=False)
        self.bar.update(0)


def run_model(name: str, model: Any, steps: int, *, quiet: bool, say: Say) -> dict[str, Any]:
    """Run a model and tell what happened.

    Args:
        name: What the model is called.
        model: The model.
        steps: Steps to run in all.
        quiet: Tell nothing.
        say: Where words go.

    Returns:
        What `--json` prints: model, steps, digest, decisions, failures, calls, replayed, tokens, dollars, seconds, log.
    """
    begun = clock.perf_counter()
    progress = _Progress(model, steps, quiet=quiet)
    model.engine.on_decision = progress.decision
    try:
        while model.running and model.time < steps:
            model.step()
            progress.step()
    finally:
        progress.bar.close()
        model.engine.on_decision = None
    told = summary(name, model, clock.perf_counter() - begun)
    if not quiet:
        _tell(model, told, say)
    model.close()
    return told


def summary(name: str, model: Any, seconds: float) -> dict[str, Any]:
    """Say in figures what a run was."""
    usage: Usage = model.usage
    return {
        "model": name,
        "steps": int(model.time),
        "digest": model.runlog.digest,
        "decisions": model.engine.decisions,
        "failures": usage.failures,
        "calls": usage.calls,
        "replayed": usage.replayed,
        "tokens": usage.tokens,
        "dollars": round(usage.dollars, 6),
        "seconds": round(seconds, 3),
        "log": None if model.runlog.path is None else str(model.runlog.path),
    }


def _tell(model: Any, told: dict[str, Any], say: Say) -> None:
    say(model.story())
    say(
        f"\n{told['steps']} step{'s' * (told['steps'] != 1)}, "
        f"{told['decisions']} decisions ({told['failures']} failed), "
        f"{told['calls']} live replies, {told['replayed']} from the log, "
        f"{told['tokens']} tokens, ${told['dollars']}, {told['seconds']} s"
    )
    for reason in list(dict.fromkeys(model.runlog.failures()))[:3]:
        say(f"failed: {reason[:200]}")
    if told["log"]:
        say(
            f"run log: {told['log']} (look into it: mesa-llm inspect {told['log']} --calls; "
            f"run it again: mesa-llm replay {told['log']})"
        )
    say(f"digest: {told['digest']}")
    say("page: mesa-llm app")


def replay_run(file: Path, *, quiet: bool, say: Say) -> dict[str, Any]:
    """Run a recorded run again from its log alone.

    Args:
        file: The run log.
        quiet: Tell nothing.
        say: Where words go.

    Returns:
        The same as `run_model`, and the `recorded_digest`.

    Raises:
        ConfigError: If the file holds no run, or one whose model cannot be made from its parameters.
        ReplayError: If the run asks for something the file does not hold.
    """
    source = RunLog(file, "read")
    manifest, steps = source.manifest, source.steps()
    source.close()
    if not manifest or steps.empty:
        raise ConfigError(f"{str(file)!r} holds no finished step; run it with mesa-llm run … --log {file}")
    module, _, qualname = str(manifest["model"]).partition(":")
    try:
        kind = getattr(import_module(module), qualname)
        model = kind(**manifest["parameters"], rng=manifest["rng"], log=file, replay=True)
    except (ImportError, AttributeError, TypeError) as error:
        raise ConfigError(f"{manifest['model']} cannot be made from the log alone: {error}") from error
    last = steps.iloc[-1]
    told = run_model(qualname, model, int(last["time"]), quiet=quiet, say=say)
    return {**told, "recorded_digest": last["digest"]}
