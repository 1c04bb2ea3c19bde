"""Servers of the Model Context Protocol (MCP), whose tools agents may call while they decide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from mesa_llm.errors import ConfigError
from mesa_llm.llm.address import secret_in

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


class ToolServer(BaseModel):
    """A server of tools over MCP: a program that is started here, or one that is reached over HTTP.

        AgentDesign(servers=(ToolServer(name="weather", command=("uvx", "mcp-weather"), tools=("forecast",)),))
        AgentDesign(servers=(ToolServer(name="law", url="https://mcp.example.org/mcp", key_env="LAW_KEY"),))

    A program is started when an agent first decides, and asked over stdin and stdout; it runs with your rights: name
    programs that you trust. A URL is asked over streamable HTTP. Its tools read: agents call them while they decide, by
    names such as `weather_forecast`. What a server answers is shortened, quoted, and recorded, so that a replay does
    without it. One that ends, or cannot be reached, is tried anew with the next call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    command: tuple[str, ...] = ()
    """Program, and its arguments."""

    url: str = ""
    """Its address, in place of a command."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,23}$")] = "server"
    """Name that its tools begin with."""

    tools: tuple[str, ...] | None = None
    """Its tools that agents may call; None: those that it declares to read only (`readOnlyHint`)."""

    env: tuple[str, ...] = ()
    """Names of environment variables that a program is given, such as that of a key, besides `PATH` and the like."""

    key_env: str | None = None
    """Variable of the environment that holds the key for a URL, which is sent as `Authorization: Bearer …`."""

    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Seconds until a call is given up, or a URL that does not answer; the start of a program has two minutes."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if secret := secret_in(url):
            raise ValueError(f"it holds {secret}, and logs name it; put the key into a variable, named by key_env")
        if url and not (urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname and url.isprintable()):
            raise ValueError("it must be a URL such as http://localhost:8000/mcp")
        return url

    @model_validator(mode="after")
    def _is_one_server(self) -> ToolServer:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either a command or a url")
        if self.env if self.url else self.key_env:
            raise ValueError("env is for a command, and key_env for a url")
        return self

    @property
    def place(self) -> str:
        """The command, or the address."""
        return self.url or " ".join(self.command)

    def tool_name(self, own_name: str) -> str:
        """Return what a tool is called in prompts.

        Args:
            own_name: What the server calls it.
        """
        return _NOT_IN_NAMES.sub("_", f"{self.name}_{own_name}")[:64]


def checked_servers(servers: Iterable[ToolServer | Mapping[str, Any]]) -> tuple[ToolServer, ...]:
    """Return servers, made of JSON where they come from a file.

    Raises:
        ConfigError: If one cannot be, or two have one name.
    """
    try:
        checked = tuple(ToolServer.model_validate(server) for server in servers)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]  # the input may hold a key
        what = ": ".join([".".join(map(str, fault["loc"])), fault["msg"]]).removeprefix(": ")
        raise ConfigError(f"servers= takes ToolServer(command=(…) or url=…, name=…): {what}") from None
    names = [server.name for server in checked]
    if len(set(names)) < len(names):
        raise ConfigError(f"servers= has two of one name ({', '.join(names)}); give each another name=")
    return checked
