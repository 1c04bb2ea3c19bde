"""Options for reaching language models, for budgets and for the run log: each has its name, default, range and meaning
here and nowhere else.

Keyword arguments of models, of `connect` and of `Access`, limits in `mesa-llm.toml`, and options of the command line
are derived from `AccessOptions` and `RunOptions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SkipValidation, TypeAdapter, ValidationError, field_validator
from typing_extensions import TypedDict

from mesa_llm.config import Reasoning
from mesa_llm.errors import ConfigError
from mesa_llm.llm.endpoints import Concurrency, Endpoint, Rate, Timeout
from mesa_llm.llm.probabilities import Scoring
from mesa_llm.llm.protocol import LLM
from mesa_llm.text import suggestion

O = TypeVar("O", bound=BaseModel)  # noqa: E741

OnError = Literal["skip", "rule", "raise"]
"""Reaction to a failed decision: the agent does nothing, its rule twin decides, or the step ends in an error."""


class AccessOptions(BaseModel):
    """How language models are reached, and how much may be spent."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, hide_input_in_errors=True
    )

    endpoints: SkipValidation[Mapping[str, Endpoint]] = Field(default_factory=dict[str, Endpoint])
    """Endpoints by names of your own, in addition to those of `mesa-llm.toml`."""

    api_base: str | None = Field(default=None, repr=False)
    """Base URL of an OpenAI-compatible endpoint, for the models that agents think with. Put no key in it."""

    api_key: str | None = Field(default=None, repr=False)
    """Key for these models. None: from the environment; empty: no key is sent to any model (see `Endpoint`)."""

    timeout_s: Timeout = 60.0
    """Seconds until a request times out."""

    batch: bool = False
    """Send the requests of each stage as one batch of the provider: half the price, and replies within a day."""

    concurrency: Concurrency = 64
    """Maximum number of requests in flight to each model."""

    clients: Annotated[int, Field(ge=0, le=64)] = 0
    """Number of further processes that send the requests to endpoints with a URL; 0: this process sends them itself."""

    attempts: Annotated[int, Field(ge=1)] = 4
    """Maximum number of times that one request is sent."""

    loading_timeout_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 300.0
    """Seconds for which an endpoint may load its model; no attempt is used up meanwhile."""

    requests_per_min: Rate | None = None
    """Maximum number of requests in any minute, to each model."""

    tokens_per_min: Rate | None = None
    """Maximum number of tokens in any minute, of each model."""

    max_calls: Annotated[int, Field(gt=0)] | None = None
    """Budget of requests, including those that are sent again; replies from the run log are free."""

    max_tokens: Annotated[int, Field(gt=0)] | None = None
    """Budget of tokens, in prompts and replies."""

    max_dollars: Annotated[float, Field(gt=0)] | None = None
    """Budget of US dollars."""

    @field_validator("*", mode="before")
    @classmethod
    def _as_number(cls, value: Any) -> Any:
        """Accept numbers of NumPy, and whole numbers written as floats such as 1e6."""
        value = value.item() if isinstance(value, np.generic) else value
        return int(value) if isinstance(value, float) and value.is_integer() else value

    @property
    def access(self) -> dict[str, Any]:
        """Keyword arguments of an `Access`, with their defaults; those that are unset are left out."""
        values = {name: getattr(self, name) for name in AccessOptions.model_fields}
        return {name: value for name, value in values.items() if value is not None and value != {}}

    @property
    def changed(self) -> dict[str, Any]:
        """Options besides those of an `Access` that differ from their defaults."""
        own = [name for name in type(self).model_fields if name not in AccessOptions.model_fields]
        return {name: value for name in own if (value := getattr(self, name)) != option(name).default}

    @property
    def limits(self) -> dict[str, Any]:
        """Limits and budgets as a run log records them: those that are set, without keys and addresses."""
        limits = self.model_dump(exclude={"endpoints", "api_base", "api_key", "clients"}, exclude_none=True)
        for name in ("loading_timeout_s", "batch"):
            if limits[name] == type(self).model_fields[name].default:
                del limits[name]
        return limits


class RunOptions(AccessOptions):
    """Options of every run that can be written down, and so have an option on the command line."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    parser: SkipValidation[str | LLM | None] = None
    """Model that repairs malformed replies."""

    on_error: OnError = "skip"
    """What a failed decision becomes: `skip` (the agent does nothing), `rule` (its rule twin decides) or `raise`."""

    reasoning: Reasoning | None = None
    """How agents reason before they decide: `none`, `inline` or `first`; by default as their configs say."""

    reply_tokens: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of tokens in a reply; by default as the agents' settings say."""

    scoring: Scoring | None = None
    """What a decision of few choices is scored by: the choice in its reply (`replies`, the default), or the
    `probabilities` that the language model gives to all of them."""

    replay: bool = False
    """Send no request: every reply comes from the run log."""

    retry_failures: bool = False
    """Send requests again that failed in the run log."""

    ask_again: bool = False
    """Send requests again that differ from those in the run log, as after a prompt was changed."""

    light: bool = False
    """Keep no log and no digest, only results: for runs by rule that nobody replays. No language model may be asked."""

    labels: str | Path | None = None
    """Table of people's labels, with which the judgements of language models are compared."""

    allow_new_endpoint: bool = False
    """Continue a run log although one of its models is now at another address."""

    @property
    def of_logs(self) -> dict[str, Any]:
        """Options besides those of an `Access` as the names of the logs of sweeps hold them: with `on_error`."""
        return {"on_error": self.on_error, **self.changed}


class AccessKeywords(TypedDict, total=False):
    """Keyword arguments of `Access`, for type checkers; see `AccessOptions`."""

    endpoints: Mapping[str, Endpoint] | None
    api_base: str | None
    api_key: str | None
    timeout_s: float
    batch: bool
    concurrency: int
    clients: int
    attempts: int
    loading_timeout_s: float
    requests_per_min: float | None
    tokens_per_min: float | None
    max_calls: int | None
    max_tokens: int | None
    max_dollars: float | None


ACCESS_OPTIONS = frozenset(AccessOptions.model_fields)
"""Names of the options that an `Access` takes."""


class Option(NamedTuple):
    """One option, as a command line or a page shows it."""

    default: Any
    """Its default."""

    meaning: str
    """Its meaning, without Markdown."""

    minimum: float | None
    """Its smallest value; None: none, or not a number."""

    kind: type
    """Its type: `bool`, `int`, `float`, `str`, or `Path` for the name of a file."""

    choices: tuple[str, ...]
    """Its values; empty: any of its type."""


@cache
def option(name: str) -> Option:
    """Return the default, meaning and range of an option of `RunOptions`.

    Args:
        name: Its name.

    Raises:
        KeyError: If there is no such option.
    """
    field = RunOptions.model_fields[name]
    kinds = list(_members(field.annotation))
    kind = next((one for one in (Path, bool, int, float) if one in kinds), str)
    choices = tuple(one for one in kinds if isinstance(one, str))
    schema = TypeAdapter(field.rebuild_annotation()).json_schema() if name not in _OBJECTS else {}
    schema = next((one for one in schema.get("anyOf", ()) if one.get("type") != "null"), schema)
    meaning = " ".join((field.description or "").replace("`", "").split())
    default = None if field.default_factory else field.default
    return Option(default, meaning, schema.get("minimum"), kind, choices)


def _members(annotation: Any) -> Iterator[Any]:
    """Return the types of a union, and the values of a `Literal`."""
    if isinstance(annotation, type | str) or not (inner := get_args(annotation)):
        yield annotation
    else:
        for one in inner[:1] if get_origin(annotation) is Annotated else inner:
            yield from _members(one)


_OBJECTS = frozenset({"endpoints", "parser"})
"""Options whose values may be objects without a JSON schema."""


def keyword_parameters(kind: type[BaseModel]) -> list[inspect.Parameter]:
    """Return options as keyword parameters of a signature, for `help` and editors.

    Args:
        kind: `AccessOptions` or `RunOptions`.
    """
    return [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=option(name).default)
        for name in kind.model_fields
    ]


def checked_options(kind: type[O], options: Mapping[str, Any]) -> O:
    """Check options, and fill in the defaults of those that are None or absent.

    Args:
        kind: `AccessOptions` or `RunOptions`.
        options: Options by name.

    Raises:
        ConfigError: If one is unknown, of another type, or out of its range.
    """
    try:
        return kind.model_validate({name: value for name, value in options.items() if value is not None})
    except ValidationError as error:
        fault = error.errors(include_url=False, include_context=False)[0]
        name = str(fault["loc"][0])
        if fault["type"] == "extra_forbidden":
            raise ConfigError(f"unknown option: {name}{suggestion(name, kind.model_fields)}") from None
        message = f"{name}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"
        is_secret = not kind.model_fields[name].repr
        raise ConfigError(message if is_secret else f"{message}, got {fault['input']!r:.60}") from None
