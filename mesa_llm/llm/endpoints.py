"""Endpoints of language models, by names of the user's own."""

from __future__ import annotations

import logging
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import Address, split_name
from mesa_llm.llm.keys import AGREED_NAME, Origin, environment, has_agreed
from mesa_llm.llm.tokens import prices_of

logger = logging.getLogger(__name__)

CONFIG_FILE = AGREED_NAME
"""File in the working directory from which endpoints are read, unless `MESA_LLM_CONFIG` names another."""

OWN_NAMES = frozenset({"rule", "random", "human", "local", "surrogate"})
"""Names that no endpoint may have, as `llm=` gives them another meaning."""

Concurrency = Annotated[int, Field(ge=1)]
"""Maximum number of requests in flight."""

Rate = Annotated[float, Field(ge=1, allow_inf_nan=False)]
"""Maximum number of requests, or of tokens, in any minute."""

Timeout = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""Seconds until a request times out."""


class Endpoint(BaseModel):
    """A model, the endpoint at which it is asked, and its limits.

    It is given by name in `endpoints={"judge": Endpoint(...)}`, or as a table `[endpoints.judge]` of `mesa-llm.toml`
    with the same fields, and used by that name: `llm="judge"`. A recording names it by model and address, so that it
    can be renamed.

    A key is sent only to the host that it was given for, and only if the name of that host came from you: from this
    command or code, from a variable of the environment, or from a file that you named by `MESA_LLM_CONFIG` or agreed
    to once (`mesa-llm trust`; a `mesa-llm.toml` that just lies in the folder asks for that if it has a `key_env`).
    An address out of a run log that is branched or looked at, from a page or from a redirect gets none:

    | a model named as | is asked at | with the key |
    |---|---|---|
    | `NAME`, with `api_base=` | `api_base` | `api_key=`, else `MESA_LLM_API_KEY` |
    | `NAME@URL` | `URL` | the same, if `URL` is at the host of `api_base=`; without `api_base=`, if it is in `llm=` |
    | name of an `Endpoint` | its `api_base`, or its model's provider | the one that `key_env` names |
    | `ollama/NAME`, without `api_base=` | `OLLAMA_API_BASE`, `OLLAMA_HOST`, or here | `api_key=`, if it is in `llm=` |
    | `PROVIDER/NAME` | `PROVIDER_API_BASE`, else the provider, by litellm | the same; else the provider's own |

    `OPENAI_API_KEY` goes to `https://api.openai.com` alone, however that is named, and for `openai/NAME` to
    `OPENAI_API_BASE` if that is set. A second model (a parser, a judge)
    that is named like one of `llm=` is asked as that one; any other plain name goes to its provider, never to
    `api_base=`. `api_key=""` sends no key at all and looks for none; only endpoints with a URL can be asked then, and
    models on this machine.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    model: str = Field(min_length=1)
    """Name of the model at the endpoint; without `api_base`, its litellm id."""

    api_base: str | None = Field(default=None, repr=False)
    """Base URL of an OpenAI-compatible endpoint; None: the model's provider, by litellm."""

    replicas: Annotated[tuple[str, ...], Field(repr=False)] = ()
    """Base URLs of further servers of the same model. The least busy server is asked, and one that fails is left out
    for a while. Recordings name `api_base` alone, so that servers can come and go."""

    key_env: str | None = None
    """Variable of the environment that holds the key; None: no key is sent to `api_base`."""

    concurrency: Concurrency | None = None
    """Limit of this endpoint alone, as are the next three; None: that of all models (see `AccessOptions`)."""

    requests_per_min: Rate | None = None
    tokens_per_min: Rate | None = None
    timeout_s: Timeout | None = None

    @field_validator("model")
    @classmethod
    def _names_no_address(cls, model: str) -> str:
        if split_name(model)[1] is not None:
            raise ValueError("it holds an address; give that as api_base")
        return model

    @field_validator("key_env")
    @classmethod
    def _is_variable(cls, key_env: str | None) -> str | None:
        if key_env is not None and not re.fullmatch(r"[A-Za-z_]\w*", key_env):  # not quoted: it may well be the key
            raise ValueError("it is the name of a variable of the environment, not the key itself")
        return key_env

    @model_validator(mode="after")
    def _has_first_server(self) -> Endpoint:
        if self.replicas and self.api_base is None:
            raise ValueError("replicas are further servers; give the first one as api_base")
        return self

    @property
    def name(self) -> str:
        """Model and address, which are part of every request's key."""
        if self.api_base is not None:
            return f"{self.model}@{Address.of(self.api_base).base}"
        base = provider_base(self.model)
        return f"{self.model.removeprefix('openai/')}@{Address.of(base).base}" if base else self.model

    @property
    def written(self) -> dict[str, Any]:
        """The fields that are set, without secrets in addresses."""
        fields = self.model_dump(exclude_none=True, exclude_defaults=True)
        if self.replicas:
            fields["replicas"] = [Address.of(base).base for base in self.replicas]
        return fields if self.api_base is None else {**fields, "api_base": Address.of(self.api_base).base}


_ALIASES = {
    "huggingface": "HF",
    "fireworks_ai": "FIREWORKS",
    "cohere_chat": "COHERE",
    "ollama_chat": "OLLAMA",
    "text-completion-openai": "OPENAI",
    "azure_text": "AZURE",
}
"""Providers whose variable litellm also, or only, knows by another name."""


def provider_base(model: str) -> str | None:
    """Return the address that the environment sets for a litellm provider (`AZURE_API_BASE`, …), if any."""
    if not any(name.endswith(("_API_BASE", "_BASE_URL", "OLLAMA_HOST")) for name in os.environ):
        return None
    provider, slash, _ = model.partition("/")
    if not slash:
        provider = str(prices_of(model).get("litellm_provider") or "")
    names = filter(None, (provider.upper().replace("-", "_"), _ALIASES.get(provider)))
    base = next(filter(None, (environment(f"{name}_API_BASE") for name in names)), "")
    if not base and provider == "openai":
        base = environment("OPENAI_BASE_URL")
    if not base and provider in ("ollama", "ollama_chat") and environment("OLLAMA_HOST"):
        base = ollama_base().removesuffix("/v1")
    return base or None


OLLAMA = "http://localhost:11434/v1"
"""Base URL of Ollama, unless `OLLAMA_API_BASE` or `OLLAMA_HOST` is set."""


def ollama_base() -> str:
    """Return the base URL of Ollama: of `OLLAMA_API_BASE`, of `OLLAMA_HOST` as Ollama's own programs read it, or here.

    Raises:
        ConfigError: If the variable holds no address; the message names it.
    """
    variable = "OLLAMA_API_BASE" if environment("OLLAMA_API_BASE") else "OLLAMA_HOST"
    text = environment(variable).strip("\"' ")
    if not text:
        return OLLAMA
    try:
        base = _ollama_url(text) if variable == "OLLAMA_HOST" else text.rstrip("/")
        address = Address.of(base)
    except (ConfigError, ValueError):
        shown = text.rpartition("@")[2]
        raise ConfigError(
            f"{variable} holds {shown!r}, which is no address; write it as in 127.0.0.1:11434 or "
            "http://gpu.example:11434, or unset it"
        ) from None
    is_whole = address.base != address.origin if variable == "OLLAMA_API_BASE" else base.endswith("/v1")
    return base if is_whole else f"{base}/v1"


def _ollama_url(text: str) -> str:
    """Return the URL in `OLLAMA_HOST`: a host, with or without scheme, port and path.

    Raises:
        ValueError: If its port is no number.
    """
    scheme, _, rest = text.rpartition("://")
    host_and_port, slash, path = rest.partition("/")
    if host_and_port.count(":") > 1 and not host_and_port.startswith("["):  # IPv6
        host_and_port = f"[{host_and_port}]"
    url = urlsplit(f"//{host_and_port}")
    host = url.hostname or "localhost"
    if host in ("0.0.0.0", "::", "*"):  # what a server listens at, where no client can connect to
        host = "localhost"
    port = url.port or {"http": 80, "https": 443}.get(scheme.lower(), 11434)
    user = f"{url.netloc.rpartition('@')[0]}@" if "@" in url.netloc else ""
    host = f"[{host}]" if ":" in host else host
    return f"{scheme.lower() or 'http'}://{user}{host}:{port}{slash}{path}".rstrip("/")


class EndpointFile(NamedTuple):
    """The endpoints of a file."""

    endpoints: Mapping[str, Endpoint] = MappingProxyType({})
    """Endpoints by name."""

    origin: Origin = Origin.FILE
    """Where their addresses come from: a file that the user named or agreed to, or one that just lies there."""

    path: Path = Path(CONFIG_FILE)
    """The file."""

    content: bytes = b""
    """Its content."""

    @property
    def with_keys(self) -> dict[str, Endpoint]:
        """Its endpoints that are sent a key out of the environment."""
        return {name: endpoint for name, endpoint in self.endpoints.items() if endpoint.key_env is not None}

    def say_where(self, name: str) -> None:
        """Log where the requests to an endpoint go, unless the user has named the file by `MESA_LLM_CONFIG`.

        Args:
            name: Name of the endpoint, which may well be that of a model.
        """
        if self.path == Path(CONFIG_FILE):
            endpoint = self.endpoints[name]
            bases = [Address.of(base).base for base in (endpoint.api_base, *endpoint.replicas) if base is not None]
            where = ", ".join(bases) or f"the provider of {endpoint.model}"
            logger.warning("llm=%r is an endpoint of %s: its requests go to %s", name, self.path.absolute(), where)


def read_endpoints(path: Path | None = None) -> EndpointFile:
    """Read the endpoints of `mesa-llm.toml`, or of the file that `MESA_LLM_CONFIG` names.

    Args:
        path: Another file, which nobody has named; None: one of these two.

    Returns:
        The endpoints; none if there is no file.

    Raises:
        ConfigError: If `MESA_LLM_CONFIG` names no file, or the file holds anything but endpoints.
    """
    path_text = environment("MESA_LLM_CONFIG") if path is None else ""
    path = path or Path(path_text or CONFIG_FILE)
    if not path.is_file():
        if path_text:
            raise ConfigError(f"MESA_LLM_CONFIG names {path_text!r}, which is no file; correct it, or unset it")
        return EndpointFile()
    try:
        content = path.read_bytes()
        tables = tomllib.loads(content.decode("utf-8-sig"))
    except RecursionError:
        raise ConfigError(f"{path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from None
    if unknown := sorted(set(tables) - {"endpoints"}):
        raise ConfigError(f"{path} holds {', '.join(unknown)}; only tables [endpoints.NAME] are read")
    endpoints = checked_endpoints(tables.get("endpoints", {}), str(path))
    origin = Origin.FILE if path_text or has_agreed(content) else Origin.FOLDER
    return EndpointFile(endpoints, origin, path, content)


def checked_endpoints(endpoints: object, source: str) -> dict[str, Endpoint]:
    """Check endpoints by name.

    Args:
        endpoints: Endpoints, or mappings of their fields.
        source: Where they come from, for the messages of errors.

    Raises:
        ConfigError: If a name, a field or an address cannot work; the message says which.
    """
    if not isinstance(endpoints, Mapping):
        raise ConfigError(f"{source}: endpoints are a mapping from names to Endpoint, got {type(endpoints).__name__}")
    checked: dict[str, Endpoint] = {}
    for name, fields in cast("Mapping[object, Any]", endpoints).items():
        if not isinstance(name, str) or name in OWN_NAMES or not re.fullmatch(r"[\w.-]+", name):
            raise ConfigError(f"{source}: {name!r} cannot name an endpoint; use letters, digits, '-', '_' and '.'")
        try:
            endpoint = fields if isinstance(fields, Endpoint) else Endpoint.model_validate(fields)
        except ValidationError as error:
            fault = error.errors(include_input=False, include_url=False)[0]
            field = ".".join(map(str, fault["loc"])) or "its table"
            field_names = f" (fields: {', '.join(Endpoint.model_fields)})" if fault["type"] == "extra_forbidden" else ""
            raise ConfigError(f"{source}: endpoint {name!r}: {field}: {fault['msg']}{field_names}") from None
        for base in (endpoint.api_base, *endpoint.replicas):
            _check_address(base, f"{source}: endpoint {name!r}")
        checked[name] = endpoint
    return checked


def _check_address(base: str | None, endpoint: str) -> None:
    try:
        if base is not None:
            Address.of(base)
    except ConfigError as error:
        raise ConfigError(f"{endpoint}: {error}") from None
