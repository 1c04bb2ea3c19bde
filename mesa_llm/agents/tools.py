"""An agent's tools: its own, its worlds', the researcher's, and those of tool servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from mesa_llm.config import AgentConfig
from mesa_llm.engine.tool_server import ToolServer, checked_servers
from mesa_llm.errors import ConfigError
from mesa_llm.records import Observation
from mesa_llm.tools.toolbox import ToolBox, checked_tools


class ToolMixin:
    """Provides an agent's tools: its own marked methods, those of its worlds, and the researcher's functions."""

    __slots__ = ()

    tools: tuple[Callable[..., Any], ...] = ()
    servers: tuple[ToolServer, ...] = ()

    def __init__(
        self,
        *args: Any,
        tools: Iterable[Callable[..., Any]] = (),
        servers: Iterable[ToolServer] = (),
        **kwargs: Any,
    ) -> None:
        """Store the researcher's own functions and tool servers.

        Args:
            *args: Passed to the next class.
            tools: Functions and methods the agent may call. Those marked with `@action` are actions.
            servers: MCP servers whose tools a language model may call while deciding.
            **kwargs: Passed to the next class.

        Raises:
            ConfigError: If one of them cannot be a tool, or is not a server.
        """
        if tools != () and (own := checked_tools(tools)):
            self.tools = own
        if servers != () and (others := checked_servers(servers)):
            self.servers = others
        super().__init__(*args, **kwargs)

    def toolbox(self, seen: Observation) -> ToolBox:
        """Return the tools and actions usable on this observation.

        Args:
            seen: The agent's observation, which may list the tools usable now. The researcher's own functions always
                are.
        """
        agent: Any = self
        config: AgentConfig = agent.config
        box = ToolBox.of(self, agent.unique_id, agent.worlds, self.tools)
        if not config.world_tools:
            box = box.without_tools_of_worlds
        names = seen.tools
        if names is not None and self.tools:
            names = dict.fromkeys((*names, *(function.__name__ for function in self.tools)))
        return box.only(names).only(config.tools).usable

    def require_actions(self) -> None:
        """Check that the agent's config leaves it at least one action.

        Raises:
            ConfigError: If it has actions but may use none of them.
        """
        agent: Any = self
        box = ToolBox.of(self, agent.unique_id, agent.worlds, self.tools)
        actions = [spec.name for spec in box.specs if spec.is_action]
        if actions and not box.only(agent.config.tools).has_actions:
            raise ConfigError(
                f"agent {agent.unique_id} may use none of its actions ({', '.join(actions)}), and so can do "
                f"nothing: its config, or the design, allows only {list(agent.config.tools)}; add an action to these"
            )
