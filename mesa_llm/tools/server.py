"""Servers of the Model Context Protocol (MCP), whose tools agents may call while they decide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.tools.tool import describe

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


class ToolServer(BaseModel):
    """A program that offers tools over MCP: it is started when an agent first decides, and asked over stdin and stdout.

        AgentDesign(servers=(ToolServer(name="weather", command=("uvx", "mcp-weather"), tools=("forecast",)),))

    Its tools read: agents call them while they decide, by names such as `weather_forecast`. What it answers is
    shortened, quoted, and recorded, so that a replay does without it. It runs with your rights: name programs that you
    trust. A server that ends is started anew with the next call.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Annotated[tuple[str, ...], Field(min_length=1)]
    """Program, and its arguments."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,23}$")] = "server"
    """Name that its tools begin with."""

    tools: tuple[str, ...] | None = None
    """Its tools that agents may call; None: those that it declares to read only (`readOnlyHint`)."""

    env: tuple[str, ...] = ()
    """Names of environment variables that it is given, such as that of a key, besides `PATH` and the like."""

    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Seconds until a call is given up; a start has two minutes."""

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
        raise ConfigError(f"servers= takes ToolServer(command=(…), name=…): {describe(error)}") from None
    names = [server.name for server in checked]
    if len(set(names)) < len(names):
        raise ConfigError(f"servers= has two of one name ({', '.join(names)}); give each another name=")
    return checked
