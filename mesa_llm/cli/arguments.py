"""Values typed on the command line: parameters, budgets, designs, interventions."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from mesa_llm.agents.design import OWN_DESIGN, AgentDesign
from mesa_llm.agents.strategies import STRATEGIES
from mesa_llm.canonical import member_value
from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import secret_in, split_name
from mesa_llm.llm.endpoints import CONFIG_FILE
from mesa_llm.model.interventions import variables
from mesa_llm.model.scenario import Parameter, parameters_of
from mesa_llm.tables import read_json
from mesa_llm.text import clip, suggestion, table
from mesa_llm.tools.tool import describe

MAX_CELL = 60
"""Maximum number of characters of a default or a range in a table."""

ALL_ORIGINAL = "original"
"""Name that stands for all four original designs."""


def parameters(
    kind: type[Any],
    assignments: Sequence[str],
    users: Path | None,
    config: str | None = None,
    option: str = "--set",
    others: Iterable[Parameter] = (),
) -> dict[str, Any]:
    """Turn `name=value` strings into constructor arguments of a model.

    Args:
        kind: The model's class.
        assignments: The strings; a value is JSON if the argument's type requires it.
        users: File with the population, for models that take `users`.
        config: File that describes the run, for models that take `config`.
        option: Option that the strings belong to, for errors.
        others: Parameters besides those of the model.

    Raises:
        ConfigError: If a name is unknown or a value does not fit its type.
    """
    by_name = {parameter.name: parameter for parameter in (*parameters_of(kind), *others)}
    arguments: dict[str, Any] = {}
    for pair in assignments:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in by_name:
            names = f"expected name=value, where name is one of {', '.join(by_name)}"
            is_seed = name in ("rng", "seed")
            hint = "; the seed is --rng, and a sweep has --seeds" if is_seed else suggestion(name, by_name)
            raise ConfigError(f"{option} {pair}: {names if by_name else f'{kind.__name__} has no parameters'}{hint}")
        value_type = by_name[name].kind
        arguments[name] = _value(name, text, str if value_type is Any else value_type, option)
    if users is not None:
        if "users" not in by_name:
            raise ConfigError(f"{kind.__name__} takes no --users")
        if not users.is_file():
            raise ConfigError(f"--users: there is no file {str(users)!r}")
        arguments["users"] = str(users)
    if config is not None:
        if "config" not in by_name:
            raise ConfigError(f"{kind.__name__} takes no --config; set its parameters with --set")
        if arguments.setdefault("config", config) != config:
            another = arguments["config"]
            raise ConfigError(f"--config {config}: --set gives another one, {another!r}; leave one of them out")
    return arguments


def parameter_table(kind: type[Any]) -> list[str]:
    """Write the parameters of a model as a table: name, default, range and meaning, one line each.

    Args:
        kind: The model's class.
    """
    rows: list[tuple[str, str, str, str]] = []
    for parameter in parameters_of(kind):
        default = member_value(parameter.default)
        default = "" if default is inspect.Parameter.empty else clip(str(default), MAX_CELL)
        rows.append((parameter.name, default, clip(parameter.range, MAX_CELL), parameter.meaning))
    if not rows:
        return [f"{kind.__name__} has no parameters of its own", "", changeable_line(kind)]
    return [*table(("name", "default", "range", "meaning"), rows), "", changeable_line(kind)]


def changeable_line(kind: type[Any]) -> str:
    """List the variables of a model, made with its defaults, that may be changed in the middle of a run.

    Args:
        kind: The model's class.
    """
    with closing(kind(rng=1)) as model:
        names = [f"{world}.{name}" if world else name for world, name in variables(model)]
    if not names:
        return "Nothing can be changed during a run, but news can be sent."
    return f"Can be changed during a run (branch --set, run --inject): {', '.join(names)}"


LLM_OF = re.compile(r"\s*(main|others|\*|[1-9]\d*(?:/[1-9]\d*)?|[A-Za-z]\w*)\s*=\s*(.+?)\s*")
"""One of several language models: for whom, and its name."""


def llm_in(text: str) -> str | dict[str, str]:
    """Read the value of `--llm`, which names one language model, or one for each of several kinds of agents.

    Args:
        text: A name; or `WHO=NAME` with commas between them, where `WHO` is `main` (agent 1), `others` (all that no
            other name fits), the number of an agent, a name that the model knows (of a class, or of a role), or a
            share: `1/2` is every second agent from the first, `2/2` every second from the second.

    Returns:
        The name, or names by the keys that `llm=` of a model takes.

    Raises:
        ConfigError: If one of several parts does not say for whom it is, or two are for the same agents.
    """
    parts = text.split(",")
    found = [LLM_OF.fullmatch(part) for part in parts]
    if not any(found):
        return text
    names: dict[str, str] = {}
    for part, match in zip(parts, found, strict=True):
        if match is None:
            raise ConfigError(
                f"--llm {part.strip()}: expected WHO=NAME in each part, such as main=gpt-4o,others=rule or "
                "1/2=gpt-4o,2/2=gpt-4o-mini"
            )
        who = {"main": "1", "others": "*"}.get(match[1], match[1])
        if who in names:
            raise ConfigError(f"--llm names two language models for {match[1]}")
        index, slash, count = who.partition("/")
        if slash and int(index) > int(count):
            raise ConfigError(f"--llm {part.strip()}: shares go from 1/{count} to {count}/{count}")
        names[who] = match[2]
    return names


def llms_in(text: str) -> list[str | dict[str, str]]:
    """Read the value of `--llm` where runs with several language models are compared.

    Args:
        text: Names with commas between them; or, with semicolons between them, values that `llm_in` takes.

    Raises:
        ConfigError: As for `llm_in`.
    """
    parts = [part.strip() for part in text.split(";") if part.strip()]
    if len(parts) > 1:
        return [llm_in(part) for part in parts]
    llm = llm_in(text)
    return [name.strip() for name in text.split(",")] if isinstance(llm, str) else [llm]


def require_no_secrets(typed: Mapping[str, Any]) -> None:
    """Check that no argument holds an address with a key in it.

    Args:
        typed: Arguments by the names of their options: `api_base` is an address; texts may hold one (`NAME@URL`), as
            may the values of lists of `name=value`, which may be JSON.

    Raises:
        ConfigError: If one holds a key, which the message does not repeat.
    """
    texts = [(name, text) for name, text in typed.items() if isinstance(text, str)]
    texts += [
        (name, pair.partition("=")[2]) for name, pairs in typed.items() if isinstance(pairs, list) for pair in pairs
    ]
    for name, text in texts:
        for address in [text] if name == "api_base" else _addresses(text):
            if secret := secret_in(address):
                raise ConfigError(
                    f"--{name.strip('_').replace('_', '-')}: the address holds {secret}, and everybody on this machine "
                    f"can read command lines; put the key into MESA_LLM_API_KEY, or the endpoint into {CONFIG_FILE} "
                    "([endpoints.NAME], with key_env) and use --llm NAME"
                )


def _addresses(text: str) -> Iterator[str]:
    """Find the addresses in an argument."""
    try:
        values = [json.loads(text)]
    except (ValueError, RecursionError):
        values = [text]
    while values:
        value = values.pop()
        if isinstance(value, dict | list):
            values += value.values() if isinstance(value, dict) else value
        elif isinstance(value, str) and len(value.split()) == 1:
            address = split_name(value)[1]
            if address is not None or "://" in value:
                yield value if address is None else address


def _value(name: str, text: str, parameter: Any, option: str) -> Any:
    adapter: TypeAdapter[Any] = TypeAdapter(parameter)
    candidates: list[Any] = [text]
    if text[:1] in "[{" or text in ("null", "true", "false"):
        try:
            candidates.insert(0, json.loads(text))
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{option} {name}={text:.200}: this is not JSON: {error}") from None
    fault = ""
    for candidate in candidates:
        try:
            value = adapter.validate_python(candidate)
        except ValidationError as error:
            fault = describe(error, root="")
            continue
        if isinstance(value, bool) or not isinstance(candidate, bool):  # pydantic takes true for the number 1
            return value
    if candidates == [text] and (shape := _shape(adapter)):
        fault = f"this is a {shape}, written as JSON: --set '{name}={'[…]' if shape == 'list' else '{…}'}'"
    raise ConfigError(f"{option} {name}={text}: {fault}")


def _shape(adapter: TypeAdapter[Any]) -> str:
    """Return `list` or `mapping` for a parameter that must be written as JSON, else an empty text."""
    for shape, empty in (("list", []), ("mapping", {})):
        try:
            adapter.validate_python(empty)
        except ValidationError:
            continue
        return shape
    return ""


def design_in(typed: str | None) -> AgentDesign | None:
    """Find one design as `designs_in` does; None: the model's own.

    Raises:
        ConfigError: If it cannot be found or read, or there are several.
    """
    designs = designs_in([] if typed is None else [typed])
    if len(designs) > 1:
        raise ConfigError(f"--design {typed}: expected one design, got {', '.join(designs)}")
    return next(iter(designs.values()), None)


def designs_in(typed: Sequence[str], option: str = "--design") -> dict[str, AgentDesign | None]:
    """Find designs by name, or read them from JSON files, whose names they get.

    Args:
        typed: Names and paths, with commas between them: `own` stands for each model's own components, a strategy
            (`plan`, `react`, `vote:7`) for a design with that strategy alone, `original` for the four designs that
            Shachi compares, each of which also has a name of its own.
        option: Option that they belong to, for errors.

    Raises:
        ConfigError: If one cannot be found or read, or two have the same name.
    """
    designs: dict[str, AgentDesign | None] = {}
    for text in (part.strip() for pair in typed for part in pair.split(",") if part.strip()):
        for name, design in _designs_named(text, option).items():
            if name in designs:
                raise ConfigError(f"{option} {text}: two designs are named {name!r}; rename one of the files")
            designs[name] = design
    return designs


def _designs_named(text: str, option: str) -> dict[str, AgentDesign | None]:
    from mesa_llm.experiments.benchmarks.designs import ORIGINAL_DESIGNS  # the benchmarks load for a second

    if text == OWN_DESIGN:
        return {OWN_DESIGN: None}
    if text == ALL_ORIGINAL:
        return dict(ORIGINAL_DESIGNS)
    if text in ORIGINAL_DESIGNS:
        return {text: ORIGINAL_DESIGNS[text]}
    path = Path(text)
    if path.exists() or path.suffix:
        return {path.stem: _design_of(path, option)}
    if text.partition(":")[0] in STRATEGIES:
        return {text: AgentDesign(decide=text)}
    known = ", ".join((OWN_DESIGN, ALL_ORIGINAL, *ORIGINAL_DESIGNS, *STRATEGIES))
    raise ConfigError(f"{option} {text}: there is no such design or file; expected a JSON file, or {known}")


def _design_of(file: Path, option: str) -> AgentDesign:
    """Read a design from a JSON file.

    Raises:
        ConfigError: If it cannot be read, or holds no design.
    """
    document = read_json(file)
    if not isinstance(document, dict):
        raise ConfigError(f"{option} {file}: expected a JSON object with the fields of an AgentDesign")
    return AgentDesign.from_json(cast("dict[str, Any]", document))


def intervention_in(text: str) -> Any:
    """Read an intervention: JSON with a `kind`, or a text, which is news.

    Raises:
        ConfigError: If it begins like JSON, but is not.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--inject {text:.200}: this is not JSON: {error}") from None


def scheduled(texts: Iterable[str]) -> list[tuple[int, Any]]:
    """Read interventions, each with the step before which it is made, as in `3: the news`.

    Raises:
        ConfigError: If one names no step, or is no intervention.
    """
    schedule: list[tuple[int, Any]] = []
    for text in texts:
        step, colon, intervention = text.partition(":")
        if not (colon and step.strip().isdecimal() and step.isascii() and int(step) > 0 and intervention.strip()):
            raise ConfigError(
                f"--inject {text}: expected STEP: followed by news or an intervention as JSON, such as '3: It snows.'"
            )
        schedule.append((int(step), intervention_in(intervention.strip())))
    return schedule
