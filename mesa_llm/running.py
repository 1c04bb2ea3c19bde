"""Runs a model for the command line: parameters from strings, a progress bar, what happened in words."""

from __future__ import annotations

import json
import logging
import time as clock
import typing
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import to_json
from tqdm import tqdm

from mesa_llm.canonical import plain
from mesa_llm.design import AgentDesign
from mesa_llm.errors import ConfigError, MesaLLMError, NothingDecided
from mesa_llm.gallery import find_models
from mesa_llm.model import LLMModel
from mesa_llm.options import as_given, class_named, constructor
from mesa_llm.records import Usage
from mesa_llm.runlog import RunLog
from mesa_llm.runlog_tables import columns
from mesa_llm.text import counted
from mesa_llm.tools import describe
from mesa_llm.transports import EngineOptions

logger = logging.getLogger(__name__)

Say = Callable[[str], None]

_NOTHING: Mapping[str, Any] = MappingProxyType({})

OWN = {
    "llm",
    "rng",
    "scenario",
    "log",
    "replay",
    "on_error",
    "retry_failures",
    "ask_again",
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
    known = [
        name
        for name, parameter in constructor(kind).parameters.items()
        if name not in OWN and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
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
    if candidates == [text] and (shape := _shape(adapter)):
        fault = f"this is a {shape}, and is written as JSON: --set '{name}={'[…]' if shape == 'list' else '{…}'}'"
    raise ConfigError(f"--set {name}={text}: {fault}")


def _shape(adapter: TypeAdapter[Any]) -> str:
    """Return the kind of a parameter that only JSON can write: `list`, `mapping`, or nothing."""
    for shape, empty in (("list", []), ("mapping", {})):
        try:
            adapter.validate_python(empty)
        except ValidationError:
            continue
        return shape
    return ""


def design_in(file: Path | None) -> AgentDesign | None:
    """Read a design from a JSON file.

    Raises:
        ConfigError: If it cannot be read, or holds no design.
    """
    if file is None:
        return None
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"--design {file}: {error}") from None
    if not isinstance(written, dict):
        raise ConfigError(f"--design {file}: wanted a JSON object with the fields of an AgentDesign")
    return AgentDesign.from_json(cast("dict[str, Any]", written))


def budget(**limits: float | None) -> dict[str, float]:
    """Return the budgets that are set, by name.

    Args:
        **limits: `max_calls`, `max_tokens`, `max_dollars`; None: no budget.

    Raises:
        ConfigError: If one allows nothing.
    """
    for name, limit in limits.items():
        if limit is not None and not limit > 0:
            option = "--" + name.replace("_", "-")
            raise ConfigError(f"{option} {limit:g}: a budget is more than 0; leave {option} out for no budget")
    return {name: limit for name, limit in limits.items() if limit is not None}


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


def run_model(
    name: str,
    model: Any,
    steps: int,
    *,
    as_json: bool,
    say: Say,
    also: Mapping[str, Any] = _NOTHING,
    demands_decisions: bool = False,
) -> dict[str, Any]:
    """Run a model and tell what happened: in words at the end, or in figures however the run ends.

    Args:
        name: What the model is called.
        model: The model.
        steps: Steps to run in all.
        as_json: Tell one line of JSON, also when the run is stopped, and nothing else.
        say: Where words go.
        also: What else is told in figures.
        demands_decisions: Whether a run in which every decision failed is an error.

    Returns:
        What `--json` prints: see `summary`.

    Raises:
        NothingDecided: If `demands_decisions` and every decision failed.
    """
    begun = clock.perf_counter()
    progress = _Progress(model, steps, quiet=as_json)
    model.engine.on_decision = progress.decision
    with closing(model):
        try:
            while model.running and model.time < steps:
                model.step()
                progress.step()
        finally:
            progress.bar.close()
            model.engine.on_decision = None
            told = {**summary(name, model, clock.perf_counter() - begun), **also}
            if as_json:
                say(json.dumps(told))
        if not as_json:
            _tell(model, told, say)
        if demands_decisions:
            _demand_decisions(model)
    return told


def _demand_decisions(model: Any) -> None:
    """Check that not every decision of a run failed, as when the endpoint is dead.

    Raises:
        NothingDecided: If every one did.
    """
    asked: int = model.engine.decisions
    if asked and model.usage.failures >= asked:
        reason = next(iter(model.runlog.failures()), "unknown")
        again = " and --retry-failures, as the log holds the failures" if model.runlog.path is not None else ""
        raise NothingDecided(
            f"none of the {counted(asked, 'decision')} succeeded. The first failed because: {reason[:300]}. Check "
            f"--llm and --api-base with `mesa-llm doctor`, and run the same command again{again}"
        )


def summary(name: str, model: Any, seconds: float) -> dict[str, Any]:
    """Return the figures of a run, or of the part that is over.

    Args:
        name: What the model is called.
        model: The model.
        seconds: How long it ran.

    Returns:
        model, steps, digest, decisions, failures, calls, replayed, tokens, dollars, seconds, log; the model's results
        by name; usage and failures by purpose.
    """
    usage: Usage = model.usage
    by_purpose: dict[str, Usage] = model.usage_by_purpose
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
        "results": _results(model),
        "failures_by_purpose": {purpose: used.failures for purpose, used in by_purpose.items()},
        "usage_by_purpose": {purpose: asdict(used) for purpose, used in by_purpose.items()},
    }


def _results(model: Any) -> dict[str, Any]:
    """Return the model's results as JSON values, in which what is infinite or no number is null."""
    try:
        return json.loads(to_json(model.results(), fallback=plain, inf_nan_mode="null"))
    except Exception:  # the model's own code; a run that was stopped early may lack what it needs
        logger.exception("%s.results() raised", type(model).__name__)
        return {}


def _tell(model: Any, told: dict[str, Any], say: Say) -> None:
    say(model.story())
    say(
        f"\n{counted(told['steps'], 'step')}, "
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


class _Recording(BaseModel, strict=True):
    """What the manifest of a run has to hold for it to be run again."""

    model: str
    parameters: dict[str, Any]
    rng: int | None


def replay_run(file: Path, *, as_json: bool, say: Say, trust: bool = False) -> dict[str, Any]:
    """Run a recorded run again from its log alone.

    Args:
        file: The run log.
        as_json: Tell one line of JSON and nothing else.
        say: Where words go.
        trust: Import the classes that the log names, whatever they are; else only those of listed models.

    Returns:
        The same as `run_model`, and the `recorded_digest`.

    Raises:
        ConfigError: If the file holds no run, one whose model is not listed, or one whose model cannot be made from
            its parameters.
        ReplayError: If the run asks for something the file does not hold.
    """
    source = RunLog(file, "read")
    try:
        manifest = source.manifest
        ends = [(step, digest) for step, _, digest in source.rows("steps")]
        by = columns()["decisions"].index("by")
        is_driven = any(row[by] == "outside" for row in source.rows("decisions"))
    finally:
        source.close()
    if not manifest or not ends:
        raise ConfigError(f"{str(file)!r} holds no finished step; run it with mesa-llm run … --log {file}")
    try:
        recording = _Recording.model_validate(manifest)
    except ValidationError as error:
        raise ConfigError(f"{str(file)!r} is damaged: what the run was cannot be read: {describe(error)}") from error
    if is_driven:
        raise ConfigError(
            f"{str(file)!r} holds decisions from outside, which only the program that made them can make again: run it "
            "with replay=True and this log="
        )
    steps, digest = ends[-1]
    if not isinstance(steps, int) or steps > 2 * len(ends) + 100:  # steps that broke leave gaps, but not such a one
        raise ConfigError(f"{str(file)!r} is damaged: it holds {len(ends)} steps, the last of which is step {steps}")
    if not trust:
        _demand_listed(recording, file)
    model = _made_again(recording, file)
    also = {"recorded_digest": str(digest)}
    try:
        return run_model(_listed_as(recording.model), model, steps, as_json=as_json, say=say, also=also)
    except (MesaLLMError, KeyboardInterrupt):
        raise
    except Exception as error:  # a damaged log may bring any model into any state
        raise ConfigError(f"the replay of {str(file)!r} broke: {type(error).__name__}: {error}") from error


def _demand_listed(recording: _Recording, file: Path) -> None:
    """Check that all that would be imported belongs to models that are listed.

    Raises:
        ConfigError: If something does not.
    """
    entries = find_models()
    packages = {"mesa_llm.memory", *(entry.package for entry in entries if entry.package)}
    written = [cast("dict[str, Any]", value) for value in recording.parameters.values() if isinstance(value, dict)]
    names = [str(value["scenario"]) for value in written if "scenario" in value]
    for design in (value["design"] for value in written if isinstance(value.get("design"), dict)):
        names += AgentDesign.imports(design)
    for name in names:
        module = name.partition(":")[0]
        if not any(module == package or module.startswith(f"{package}.") for package in packages):
            raise ConfigError(_untrusted(name, file))
    module, _, qualname = recording.model.partition(":")
    if not any(entry.module == module and entry.qualname in ("", qualname) for entry in entries):
        raise ConfigError(_untrusted(recording.model, file))


def _untrusted(name: str, file: Path) -> str:
    return (
        f"{str(file)!r} names {name}, which belongs to none of the models of `mesa-llm list`, and a replay would "
        "import and run it; if you know where this log comes from, add --trust"
    )


def _made_again(recording: _Recording, file: Path) -> LLMModel:
    """Make the model of a recorded run, to be replayed."""
    kind = class_named(recording.model, LLMModel)
    try:
        given = {name: as_given(value) for name, value in recording.parameters.items()}
        positional: list[Any] = []
        taken = list(constructor(kind).parameters.values())
        for place, parameter in enumerate(taken):
            if parameter.kind is parameter.VAR_POSITIONAL and parameter.name in given:
                positional = [given.pop(before.name) for before in taken[:place]] + given.pop(parameter.name)
        return kind(*positional, **given, rng=recording.rng, log=file, replay=True)
    except MesaLLMError:
        raise
    except Exception as error:  # any model, with parameters out of a file
        raise ConfigError(f"{recording.model} cannot be made from the log alone: {error}") from error


def _listed_as(made: str) -> str:
    """Return the name by which a model is run: that of the list, or of its class if it is not in it."""
    module, _, qualname = made.partition(":")
    names = [entry.name for entry in find_models() if entry.module == module and entry.qualname in ("", qualname)]
    return names[0] if names else qualname
