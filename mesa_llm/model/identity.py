"""Compute the identity of a run for its manifest and log name, and restore parameters from a manifest."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar, cast

import mesa
from mesa.experimental.scenarios import Scenario

from mesa_llm._deprecated import current_name
from mesa_llm.agents.design import AgentDesign
from mesa_llm.canonical import canonical_json
from mesa_llm.engine.access import EngineOptions
from mesa_llm.engine.activation import ACTIVATIONS
from mesa_llm.engine.opening import model_part
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import split_name, written_name
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.llm.surrogate.names import PREFIX, file_in, with_file
from mesa_llm.model.options import constructor, fields_of
from mesa_llm.runlog.log import RunLog

T = TypeVar("T")

RESUME_OPTIONS = frozenset(
    {"log", "replay", "rng", "retry_failures", "ask_again", "light", "labels", *EngineOptions.__annotations__}
    - {"parser"}
)
"""Options that may differ when a run is resumed."""


def identity(model: Any, arguments: inspect.BoundArguments, seed: int | None) -> dict[str, Any]:
    """Return the identity of a run; a recording can only be resumed by a run with the same identity.

    Args:
        model: The model.
        arguments: Arguments of its constructor.
        seed: Its seed; None if it comes from a scenario.
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
    own = fields_of(scenario)
    if isinstance(scenario, kind.scenario_class) and own.keys() - {"rng"} <= set(kind.scenario_class.fields):
        parameters |= {name: own[name] for name in kind.scenario_class.fields}
    elif has_scenario:  # a scenario of another class already has the other values
        parameters = {name: value for name, value in parameters.items() if name not in own}
        parameters["scenario"] = scenario
    passing = RESUME_OPTIONS | {parameter.name for parameter in kind.scenario_class.parameters() if parameter.is_output}
    recorded = {name: parameter_as_json(value) for name, value in sorted(parameters.items()) if name not in passing}
    files = dict(_files(recorded))
    return {"model": name_of(kind), "parameters": recorded, "files": files, "rng": seed, "run_seed": model.run_seed}


def _is_default(kind: type[Any], name: str, value: Any) -> bool:
    """Check whether an option that a constructor passes on has its default value."""
    for parent in kind.__mro__:
        parameter = constructor(parent).parameters.get(name) if "__init__" in vars(parent) else None
        if parameter is not None and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            written = parameter_as_json(value)
            is_same = isinstance(written, str) and written == parameter_as_json(parameter.default)
            return is_same or value is parameter.default
    return False


def with_recorded_parameters(run: dict[str, Any], recorded: Mapping[str, Any], kind: type[Any]) -> dict[str, Any]:
    """Return the identity of a run without parameters that are newer than the recording, where they have their default.

    Args:
        run: The identity.
        recorded: Manifest of the recording.
        kind: Class of the model.
    """
    before: Any = recorded.get("parameters")
    if not isinstance(before, dict):
        return run
    defaults = {one.name: parameter_as_json(one.default) for one in kind.scenario_class.parameters()}
    kept = {
        name: value
        for name, value in run["parameters"].items()
        if name in before or name not in defaults or value != defaults[name]
    }
    return {**run, "parameters": kept}


def with_recorded_addresses(run: dict[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a run with the recorded addresses of its language models."""

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


def _files(parameters: Any) -> Iterator[tuple[str, str]]:
    """Find the files named in parameters, and compute digests of their contents."""
    for name, text in _texts(parameters):
        if _is_file(text) or (text.startswith(PREFIX) and os.path.isfile(file_in(text))):
            yield f"{name}={text}", _digest(file_in(text))


def _texts(parameters: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in parameters with their parameter names, except those about tool servers."""
    if isinstance(parameters, Mapping):
        for key, value in cast("Mapping[str, Any]", parameters).items():
            path = f"{name}.{key}" if name else str(key)
            if path != _SERVERS:
                yield from _texts(value, path)
    elif isinstance(parameters, list | tuple):
        for index, value in enumerate(cast("Sequence[Any]", parameters)):
            yield from _texts(value, f"{name}.{index}")
    elif isinstance(parameters, str):
        yield name, parameters


@lru_cache(maxsize=256)
def code_digests(kind: type[Any]) -> dict[str, str]:
    """Return a digest of each file of a model's code, to tell later which have changed.

    These are the modules of its classes, and the modules beside each if that is in a package; those of `mesa_llm` are
    known by its version.

    Args:
        kind: Class of the model.
    """
    digests: dict[str, str] = {}
    for parent in kind.__mro__:
        module = sys.modules.get(parent.__module__)
        file, package = getattr(module, "__file__", None), getattr(module, "__package__", None)
        if not file or parent.__module__.partition(".")[0] in _KNOWN_BY_VERSION:
            continue
        beside = sorted(Path(file).parent.glob("*.py")) if package else [Path(file)]
        digests |= {f"{f'{package}/' if package else ''}{path.name}": _digest(path) for path in beside}
    return digests


_KNOWN_BY_VERSION = frozenset({"mesa_llm", "mesa", "builtins", "typing"})
"""Packages whose code is that of a version in the manifest."""


def _digest(path: str | Path) -> str:
    """Return the first digits of the SHA-256 of a file; empty if the file does not exist."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]
    except (OSError, ValueError):
        return ""


_SERVERS = "design.design.servers"
"""Tool servers in the identity of a run. Their programs may change, since their answers are recorded."""


def _is_file(text: str) -> bool:
    """Check whether a parameter names a file; a bare word does not, even if such a file exists."""
    return bool(Path(text).suffix or Path(text).name != text) and os.path.isfile(text)


def with_recorded_paths(run: dict[str, Any], recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Return the identity of a run with the recorded paths of files whose contents are unchanged."""
    before = {name: (text, digest) for name, text, digest in _split(recorded.get("files", {}))}
    if not before:
        return run

    def back(name: str, text: str) -> str:
        path, digest = before.get(name, (text, ""))
        return path if run["files"].get(f"{name}={text}") == digest else text

    files = {f"{name}={back(name, text)}": digest for name, text, digest in _split(run["files"])}
    return {**run, "parameters": _with_texts(run["parameters"], back), "files": files}


def located(parameters: Mapping[str, Any], files: Mapping[str, str], log: Path) -> dict[str, Any]:
    """Return the parameters of a recorded run with the present locations of its files.

    Args:
        parameters: Parameters from the manifest.
        files: Digests of their files, from the manifest.
        log: The run log; files not in the current folder are searched in the folder of the log and its parents.
    """

    def present_path(name: str, text: str) -> str:
        digest = files.get(f"{name}={text}")
        found = None if digest is None else _location(file_in(text), digest, log)
        return text if found is None else with_file(text, found)

    return _with_texts(parameters, present_path)


def present_files(files: Mapping[str, str], log: Path) -> dict[str, Path | None]:
    """Return where the files of a recorded run are now; None: nowhere that a replay looks.

    Args:
        files: Digests of its files, from the manifest: `parameter=path` → digest.
        log: The run log.
    """
    locations = {f"{name}={text}": _location(file_in(text), digest, log) for name, text, digest in _split(files)}
    return {name: None if location is None else Path(location) for name, location in locations.items()}


def _location(file: str, digest: str, log: Path) -> str | None:
    """Find a file with this content: as it is named, or in the folder of a log or above it."""
    candidates = (file, *(str(folder / file) for folder in log.absolute().parents))
    return next((path for path in candidates if _digest(path) == digest), None)


def with_moved_files(
    parameters: Mapping[str, Any], files: Mapping[str, str], moved: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the parameters and the files of a recorded run with other paths of its files.

    Args:
        parameters: Parameters from the manifest.
        files: Digests of their files, from the manifest: `parameter=path` → digest.
        moved: `parameter=path` → the new path.
    """

    def new_path(name: str, text: str) -> str:
        path = moved.get(f"{name}={text}")
        return text if path is None else with_file(text, path)

    renamed = {f"{name}={new_path(name, text)}": digest for name, text, digest in _split(files)}
    return _with_texts(dict(parameters), new_path), renamed


def missing_file(parameters: Mapping[str, Any], files: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the first file of a recorded run that is missing, as `parameter=path`, with its digest.

    Args:
        parameters: The parameters, with present locations of files.
        files: Digests of the recorded files.
    """
    named = (f"{name}={text}" for name, text in _texts(parameters) if not os.path.isfile(file_in(text)))
    return next(((file, files[file]) for file in named if file in files), None)


def _split(files: Any) -> Iterator[tuple[str, str, str]]:
    """Yield parameter name, path and digest of each file in a manifest, which may be damaged."""
    for key, digest in cast("dict[str, str]", files).items() if isinstance(files, dict) else ():
        name, _, text = key.partition("=")
        yield name, text, digest


def _with_texts(parameters: Any, change: Callable[[str, str], str], name: str = "") -> Any:
    """Return parameters with all texts replaced by `change(parameter name, text)`."""
    match parameters:
        case dict():
            fields = cast("dict[str, Any]", parameters)
            return {key: _with_texts(value, change, f"{name}.{key}" if name else key) for key, value in fields.items()}
        case list():
            items = cast("list[Any]", parameters)
            return [_with_texts(item, change, f"{name}.{index}") for index, item in enumerate(items)]
        case str():
            return change(name, parameters)
        case _:
            return parameters


def check_files(runlog: RunLog, run: Mapping[str, Any]) -> None:
    """Check that the files of a replay match the recording.

    Raises:
        ConfigError: If one has changed.
    """
    recorded = runlog.manifest.get("files", {}) if runlog.mode == "replay" else {}
    for name, digest in run["files"].items():
        if recorded.get(name, digest) != digest:
            raise ConfigError(f"{name}: the file has changed since the run was recorded; replay it with the old one")


def setting_digest(setting: Sequence[Any], options: Mapping[str, Any], parameters: Mapping[str, Any]) -> str:
    """Return a digest of the settings of a run, for the name of its log.

    Args:
        setting: JSON-compatible settings other than options.
        options: Options of the model; those that may differ when a run is resumed are ignored.
        parameters: Parameters of its scenario; the contents of files they name are included.
    """
    chosen = {name: value for name, value in options.items() if name not in RESUME_OPTIONS}
    files = dict(_files(parameters))
    return hashlib.sha256(canonical_json([*setting, chosen, *([files] if files else [])]).encode()).hexdigest()


def name_of(kind: type[Any]) -> str:
    """Return the import name of a class: `module:qualname`."""
    return f"{kind.__module__}:{kind.__qualname__}"


def class_named(name: str, parent: type[T]) -> type[T]:
    """Import a class by its `module:qualname`, and check its base class.

    Args:
        name: The name.
        parent: Required base class.

    Raises:
        ConfigError: If it does not exist, or has another base class.
    """
    cls = object_named(name)
    if not (isinstance(cls, type) and issubclass(cls, parent)):
        is_plain = isinstance(cls, type) and issubclass(cls, mesa.Model)
        hint = ", but a plain Mesa model; replay it from Python with connect(model, log=…, replay=True)"
        raise ConfigError(f"{name} is not a subclass of {parent.__name__}{hint * is_plain}")
    return cls


def object_named(name: str) -> Any:
    """Import the object named by a `module:qualname`.

    Raises:
        ConfigError: If it does not exist.
    """
    module, _, qualname = current_name(name).partition(":")
    try:
        return attrgetter(qualname)(import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"{name} cannot be found: {error}") from error


def parameter_from_json(value: Any) -> Any:
    """Restore a parameter from its JSON in the manifest, including scenarios and designs.

    Raises:
        ConfigError: If a scenario had no seed, or its class cannot be found or is not a scenario.
    """
    if isinstance(value, dict) and set(value) == {"design"}:
        return AgentDesign.from_json(value["design"])
    if not (isinstance(value, dict) and set(value) == {"scenario", "fields"}):
        return value
    fields: dict[str, Any] = value["fields"]
    if not isinstance(fields.get("rng"), (int, list)):
        raise ConfigError("the scenario of this run had no seed, so it cannot be run again; give scenarios a rng=")
    return class_named(str(value["scenario"]), Scenario)(**fields)


def parameter_as_json(value: Any) -> Any:
    """Serialise a parameter for the manifest: a scenario as its class and fields, a transport as its name.

    Any parameter may name a model and its address (`judge="NAME@URL"`); user and query are removed from the address.
    """
    if isinstance(value, Scenario):
        fields = {name: parameter_as_json(field) for name, field in fields_of(value).items()}
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
