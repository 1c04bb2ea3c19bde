"""Options that every LLM model takes besides its own parameters, and the identity of a run in its manifest."""

from __future__ import annotations

import hashlib
import inspect
import math
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from mesa.experimental.scenarios import Scenario

from mesa_llm.agents.design import AgentDesign
from mesa_llm.canonical import canonical_json
from mesa_llm.config import Reasoning
from mesa_llm.engine.activation import ACTIVATIONS, Activation
from mesa_llm.engine.transports import EngineOptions, model_part
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import split_name, written_name
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.model.bridge import Bridge
from mesa_llm.runlog.log import RunLog

N = TypeVar("N", bound=float)
T = TypeVar("T")

OnError = Literal["skip", "rule", "raise"]
"""Reaction to a failed decision: the agent does nothing, its rule twin decides, or the step ends in an error."""


class LLMOptions(EngineOptions, total=False, extra_items=Any):
    """Options of every LLM model, and the fields of its scenario by keyword; see `LLMModel`."""

    activation: Activation | str
    design: AgentDesign | None
    bridge: Bridge | None
    log: str | Path | RunLog | None
    replay: bool
    retry_failures: bool
    ask_again: bool
    on_error: OnError
    reasoning: Reasoning | None
    reply_tokens: int | None
    memories: Mapping[Any, Mapping[str, Any]] | None


OPTIONS = frozenset({"llm", "worlds", "rng", *LLMOptions.__annotations__})
"""Names of the options of all models, which no parameter of a scenario may have."""

RESUME_OPTIONS = frozenset(
    {"log", "replay", "rng", "retry_failures", "ask_again", *EngineOptions.__annotations__} - {"parser"}
)
"""Options that may differ when a run is continued."""


def identity(model: Any, arguments: inspect.BoundArguments, seed: int | None) -> dict[str, Any]:
    """Return the identity of a run, which has to be equal before a recording can be continued.

    Args:
        model: The model.
        arguments: Arguments of its constructor.
        seed: Its seed; None if a scenario brought it.
    """
    kind, scenario = type(model), model.scenario
    arguments.apply_defaults()
    parameters = dict(arguments.arguments)
    for name, parameter in arguments.signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            extra: dict[str, Any] = parameters.pop(name, {})
            parameters |= {key: value for key, value in extra.items() if not _is_default(kind, key, value)}
        elif parameter.kind is parameter.VAR_POSITIONAL and not parameters[name]:
            del parameters[name]
    has_scenario = parameters.pop("scenario", None) is not None
    own = _fields(scenario)
    if isinstance(scenario, kind.scenario_class) and own.keys() - {"rng"} <= set(kind.scenario_class.fields):
        parameters |= {name: own[name] for name in kind.scenario_class.fields}
    elif has_scenario:  # a scenario of another class says what else would be said twice
        parameters = {name: value for name, value in parameters.items() if name not in own}
        parameters["scenario"] = scenario
    passing = RESUME_OPTIONS | {parameter.name for parameter in kind.scenario_class.parameters() if parameter.is_output}
    recorded = {name: parameter_as_json(value) for name, value in sorted(parameters.items()) if name not in passing}
    files = dict(_files(recorded))
    return {"model": name_of(kind), "parameters": recorded, "files": files, "rng": seed, "run_seed": model.run_seed}


def _is_default(kind: type[Any], name: str, value: Any) -> bool:
    """Check whether an option that a constructor passes on has its default."""
    for parent in kind.__mro__:
        parameter = inspect.signature(parent.__init__).parameters.get(name) if "__init__" in vars(parent) else None
        if parameter is not None and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            written = parameter_as_json(value)
            is_same = isinstance(written, str) and written == parameter_as_json(parameter.default)
            return is_same or value is parameter.default
    return False


def with_recorded_addresses(run: dict[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a run, with its language models at the addresses of the recording."""

    def back(now: Any, then: Any) -> Any:
        if isinstance(now, dict) and isinstance(then, dict):
            fields = cast("dict[str, Any]", now)
            return {name: back(value, cast("dict[str, Any]", then).get(name)) for name, value in fields.items()}
        is_same = isinstance(now, str) and isinstance(then, str) and model_part(now) == model_part(then)
        return then if is_same else now

    before = recorded.get("parameters", {})
    models = {
        name: back(run["parameters"][name], before.get(name))
        for name in ("llm", "parser", "design")
        if name in run["parameters"]
    }
    return {**run, "parameters": {**run["parameters"], **models}}


def _files(parameters: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Find the files that parameters name, and compute digests of their contents."""
    if isinstance(parameters, Mapping):
        for key, value in cast("Mapping[str, Any]", parameters).items():
            path = f"{name}.{key}" if name else str(key)
            if path != _SERVERS:
                yield from _files(value, path)
    elif isinstance(parameters, list | tuple):
        for index, value in enumerate(cast("Sequence[Any]", parameters)):
            yield from _files(value, f"{name}.{index}")
    elif isinstance(parameters, str) and _is_file(parameters):
        yield f"{name}={parameters}", hashlib.sha256(Path(parameters).read_bytes()).hexdigest()[:16]


_SERVERS = "design.design.servers"
"""Tool servers in the identity of a run: their programs may change, as what they answered is recorded."""


def _is_file(text: str) -> bool:
    """Check whether a parameter names a file; a bare word is no file name, whatever lies in this folder."""
    return bool(Path(text).suffix or Path(text).name != text) and os.path.isfile(text)


def check_files(runlog: RunLog, run: Mapping[str, Any]) -> None:
    """Check that the files of a replay are those of the recording.

    Raises:
        ConfigError: If one has changed.
    """
    recorded = runlog.manifest.get("files", {}) if runlog.mode == "replay" else {}
    for name, digest in run["files"].items():
        if recorded.get(name, digest) != digest:
            raise ConfigError(f"{name}: the file has changed since the run was recorded; replay it with the old one")


def settle_parameters(
    kind: type[Any],
    scenario: Scenario[Any] | None,
    by_keyword: Mapping[str, Any],
    rng: int | str | None,
    runlog: RunLog,
) -> tuple[Scenario[Any], int | None]:
    """Settle on one scenario and one seed, where parameters come in a scenario and by keyword.

    Args:
        kind: The model's class.
        scenario: The scenario, if there is one; if it has no seed, a copy with the seed is returned.
        by_keyword: Keyword arguments of the model's constructor.
        rng: The seed by keyword.
        runlog: The run log, whose seed counts where none is given.

    Returns:
        The scenario, and the seed; None for a scenario with a generator in place of a seed.

    Raises:
        ConfigError: If a parameter is given both ways, and not equal; or one is unknown, of another type, or out of
            its range.
    """
    if scenario is None:
        seed = seed_for(rng, runlog)
        fields = {name: value for name, value in by_keyword.items() if name in kind.scenario_class.fields}
        return kind.scenario_class(rng=seed, **fields), seed
    own = _fields(scenario)
    seed = None if rng in (None, "") else seed_for(rng, runlog)
    conflicts = {name: value for name, value in by_keyword.items() if name in own and name != "rng"}
    conflicts |= {"rng": seed} if seed is not None and own["rng"] is not None else {}
    for name, value in conflicts.items():
        if value != own[name]:
            raise ConfigError(f"{name} is {value!r} by keyword and {own[name]!r} in the scenario; give it once")
    if isinstance(own["rng"], int | float):
        checked_seed(own["rng"])
    if own["rng"] is not None:
        return scenario, own["rng"] if isinstance(own["rng"], int) else None
    seed = seed_for(rng, runlog)
    return type(scenario)(**(own | {"rng": seed})), seed


def _fields(scenario: Scenario[Any]) -> dict[str, Any]:
    """Return the parameters of a scenario, with its seed."""
    return {name: field for name, field in scenario.to_dict().items() if name not in ("model", "_scenario_id")}


def constructor(kind: type[Any]) -> inspect.Signature:
    """Return the signature of a model's constructor, without `self`.

    The signature of a class that adds none of its own is that of `LLMModel.__new__`, which takes anything.
    """
    signature = inspect.signature(kind.__init__)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def seed_for(rng: int | str | None, runlog: RunLog) -> int:
    """Find the seed: the one given, that of the recording, or a new one.

    Raises:
        ConfigError: If it is no whole number from 0 on.
    """
    if rng is None or rng == "":
        recorded = runlog.manifest.get("rng")
        return recorded if isinstance(recorded, int) else secrets.randbits(31)
    return checked_seed(rng)


def checked_seed(rng: Any) -> int:
    """Return a seed as an integer, also one that a person wrote as text.

    Raises:
        ConfigError: If it is no whole number from 0 on, which is what numpy takes.
    """
    try:
        seed = int(rng)
    except (TypeError, ValueError, OverflowError):
        seed = -1
    if seed < 0 or isinstance(rng, bool) or (isinstance(rng, float) and not rng.is_integer()):
        raise ConfigError(f"rng is the seed, a whole number from 0 on, got {rng!r}; leave it out for a new one")
    return seed


def activation_for(activation: Activation | str) -> Activation:
    if not isinstance(activation, str):
        return activation
    if activation not in ACTIVATIONS:
        raise ConfigError(f"no activation is called {activation!r}; choose one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[activation]


def name_of(kind: type[Any]) -> str:
    """Name a class so that it can be found again: `module:qualname`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def class_named(name: str, parent: type[T]) -> type[T]:
    """Find a class by its `module:qualname`, and check its type before it is called.

    Args:
        name: The name.
        parent: Required base class.

    Raises:
        ConfigError: If there is none, or it has another base class.
    """
    cls = object_named(name)
    if not (isinstance(cls, type) and issubclass(cls, parent)):
        raise ConfigError(f"{name} is no {parent.__name__}")
    return cls


def object_named(name: str) -> Any:
    """Import whatever a `module:qualname` names.

    Raises:
        ConfigError: If there is no such thing.
    """
    module, _, qualname = name.partition(":")
    try:
        return attrgetter(qualname)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{name} cannot be found: {error}") from error


def parameter_from_json(value: Any) -> Any:
    """Return a parameter from its JSON in the manifest: scenarios and designs are built again.

    Raises:
        ConfigError: If it had no seed, or its class cannot be found or is no scenario.
    """
    if isinstance(value, dict) and set(value) == {"design"}:
        return AgentDesign.from_json(value["design"])
    if not (isinstance(value, dict) and set(value) == {"scenario", "fields"}):
        return value
    fields: dict[str, Any] = value["fields"]
    if not isinstance(fields.get("rng"), (int, list)):
        raise ConfigError("the scenario of this run had no seed, so that it is not run again; give scenarios a rng=")
    return class_named(str(value["scenario"]), Scenario)(**fields)


def parameter_as_json(value: Any) -> Any:
    """Return a parameter as JSON for the manifest: a scenario as its class and fields, a transport as its name.

    Any parameter may name a model and its address (`judge="NAME@URL"`), which loses its user and query.
    """
    if isinstance(value, Scenario):
        fields = {name: parameter_as_json(field) for name, field in _fields(value).items()}
        return {"scenario": name_of(type(value)), "fields": fields}
    if isinstance(value, AgentDesign):
        return {"design": value.to_json()}
    for name_of_activation, activation in ACTIVATIONS.items():
        if value is activation:
            return name_of_activation
    if isinstance(value, LLM):
        return Capabilities.of(value).name
    if isinstance(value, str) and len(value.split()) == 1 and split_name(value)[1] is not None:
        return written_name(value)
    if isinstance(value, Mapping):
        items: Mapping[Any, Any] = value
        return {str(key): parameter_as_json(item) for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [parameter_as_json(item) for item in cast("Sequence[Any]", value)]
    return str(value) if isinstance(value, Path) else value


def within(name: str, value: N, low: float, high: float = math.inf) -> N:
    """Check that a parameter lies in its range, which holds neither infinities nor NaN, and return it.

    Args:
        name: Name of the parameter.
        value: Its value.
        low: Minimum.
        high: Maximum.

    Raises:
        ConfigError: If it lies outside.
    """
    if not (low <= value <= high and math.isfinite(value)):
        possible = f"must be {low} or more" if high == math.inf else f"must lie in {low}..{high}"
        raise ConfigError(f"{name} {possible}, got {value!r}")
    return value


def setting_digest(setting: Sequence[Any], options: Mapping[str, Any]) -> str:
    """Return a digest of what makes a run what it is, for the name of its log.

    Args:
        setting: Everything but the options, as JSON can write it.
        options: Options of the model; those that a run may be gone on with otherwise do not count.
    """
    chosen = {name: value for name, value in options.items() if name not in RESUME_OPTIONS}
    return hashlib.sha256(canonical_json([*setting, chosen]).encode()).hexdigest()
