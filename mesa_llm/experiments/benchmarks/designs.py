"""Designs for any task: those of the four agents that Shachi compares, and ablations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal

from mesa_llm.agents.design import AgentDesign
from mesa_llm.engine.activation import llm_agents
from mesa_llm.experiments.benchmarks.task import Task
from mesa_llm.experiments.runs.listening import ListeningAccess
from mesa_llm.memory import NoMemory
from mesa_llm.prompts import prompts_of
from mesa_llm.records import Request
from mesa_llm.tools.toolbox import ToolBox

ORIGINAL_DESIGNS: Mapping[str, AgentDesign] = {
    "emergent_analogies": AgentDesign(persona="none", style="", memory="none", world_tools=False),
    "stock_agent": AgentDesign(memory="window:3", world_tools=True),
    "auction_arena": AgentDesign(memory="chat:10000:9", world_tools=False),
    "sotopia": AgentDesign(persona="none", style="", memory="chat:16000", world_tools=False),
}
"""The agents of Shachi's Table 2 by the task that each was made for: a language model alone; with config, memory and
tools; with config and memory; with memory.

Source:
    Shachi (2025), Table 2 and appendix. Its memories are StockAgent's buffer of three, AuctionArena's window of 20
    messages (nine exchanges and the current request) in 10,000 tokens, and Sotopia's 16,000 tokens.
"""

PUBLISHED_RATIOS: Mapping[str, Mapping[str, float]] = {
    "emergent_analogies": {"emergent_analogies": 1.0, "stock_agent": 1.08, "auction_arena": 0.62, "sotopia": 1.01},
    "stock_agent": {"emergent_analogies": 1.01, "stock_agent": 1.0, "auction_arena": 0.99, "sotopia": 1.0},
    "auction_arena": {"emergent_analogies": 1.0, "stock_agent": 0.93, "auction_arena": 1.0, "sotopia": 0.99},
    "sotopia": {"emergent_analogies": 1.0, "stock_agent": 0.93, "auction_arena": 0.92, "sotopia": 1.0},
}
"""Design → task → its measure, divided by that of the task's own design; with GPT-4o.

Source:
    Shachi (2025), Table 2.
"""

WITHOUT: Mapping[str, Mapping[str, Any]] = {
    "config": {"persona": "none", "style": ""},
    "memory": {"memory": "none"},
    "tools": {"world_tools": False, "tools": (), "servers": ()},
}
"""Component → fields of a design that remove it. Language model, sampling, reasoning and adapter are unchanged."""

Use = Literal["used", "ignored", "absent"]
"""`used`: the design has the component in the task; `ignored`: the task's own agents have it, but the design does not;
`absent`: neither has it.
"""


@dataclass(frozen=True)
class Installation:
    """Which components a design uses in a task."""

    config: Use
    """Personas, traits, styles and roles. A design without config that still sends words of the task's has one."""

    memory: Use
    """Memory from step to step."""

    tools: Use
    """Read-only tools. Actions belong to the task, and every design has them."""


def ablations(name: str, design: AgentDesign | None) -> dict[str, AgentDesign | None]:
    """Return a design and copies of it, each without one component.

        ablations("own", None)  # own, own without config, own without memory, own without tools

    Args:
        name: Name of the design.
        design: The design; None for each model's own components.
    """
    short = {f"{name} without {component}": without(design, component) for component in WITHOUT}
    return {name: design, **short}


def without(design: AgentDesign | None, *components: str) -> AgentDesign:
    """Return a copy of a design without some components.

    Args:
        design: The design; None for each model's own components.
        *components: `config`, `memory` or `tools`.
    """
    fields = {name: value for component in components for name, value in WITHOUT[component].items()}
    return replace(design or AgentDesign(), **fields)


def installations(task: Task, designs: Mapping[str, AgentDesign | None]) -> dict[str, Installation]:
    """Find out which components each design uses in a task, from the requests that it would send; none is sent.

    Args:
        task: The task, with its parameters.
        designs: Designs by name; None for the model's own components.

    Returns:
        Name of the design → its components in the task.

    Raises:
        ConfigError: If the task's parameters are invalid.
    """
    own = _Trial(task, None)
    offered = own.components(own.words)

    def use(component: str, used: set[str]) -> Use:
        if component in used:
            return "used"
        return "ignored" if component in offered else "absent"

    by_name: dict[str, Installation] = {}
    for name, design in designs.items():
        used = offered if design is None else _Trial(task, design).components(own.words)
        by_name[name] = Installation(use("config", used), use("memory", used), use("tools", used))
    return by_name


def requests_in(task: Task, design: AgentDesign | None = None, *, max_steps: int = 1) -> list[Request]:
    """Return the requests that agents are sent in the first steps of the small version of a task.

    Replies are drawn at random, so nothing is sent anywhere.

    Args:
        task: The task, with its parameters.
        design: The agents' design, whose language model is not used; None for the model's own components.
        max_steps: Maximum number of steps.

    Raises:
        ConfigError: If the task's parameters are invalid.
    """
    return _Trial(task, design, max_steps).requests


class _Trial:
    """First steps of the small version of a task, with all requests to its agents.

    Attributes:
        requests: The requests, in order.
        words: Id of an agent → what its config says of it besides its name, in the words of the prompt.
        parts: Components that at least one agent has, apart from its config.
    """

    def __init__(self, task: Task, design: AgentDesign | None, max_steps: int = 1) -> None:
        task, access = task.as_quick(), ListeningAccess()
        own = {} if design is None else {"design": replace(design, llm=None)}
        setting = {**task.setting, **own, "llm": "random", "rng": 1, "access": access}
        with closing(access), closing(task.make(**setting)) as model:
            agents = list(llm_agents(model))
            self.words = {agent.unique_id: set(_config_texts(agent)) for agent in agents}
            self.parts = {name for agent in agents for name in _parts_of(agent)}
            model.run(max_steps)
        self.requests = access.listener.requests

    def components(self, words_of_task: Mapping[int, set[str]]) -> set[str]:
        """Return the components that agents have: a config if any of its words, or of the task's own, are sent.

        Args:
            words_of_task: `words` of the model's own agents.
        """
        is_told = any(
            text in message.content
            for request in self.requests
            for text in self.words.get(request.salt.agent, set()) | words_of_task.get(request.salt.agent, set())
            for message in request.messages
        )
        return self.parts | ({"config"} if is_told else set())


def _config_texts(agent: Any) -> Iterator[str]:
    """Return the texts that an agent's config adds to its prompts, apart from its name."""
    roles = [role.config for role in agent.roles.values()] if agent.roles else []
    for config in (agent.config, *roles):
        text = config.model_copy(update={"name": ""}).text_in(prompts_of(agent.model)).strip()
        yield from filter(None, (text, *map(str, config.role.values())))


def _parts_of(agent: Any) -> Iterator[str]:
    config, box = agent.config, ToolBox.of(agent, agent.unique_id, agent.worlds, agent.tools)
    box = box if config.world_tools else box.without_tools_of_worlds
    if not isinstance(agent.memory, NoMemory):
        yield "memory"
    if agent.servers or any(not spec.is_action for spec in box.only(config.tools).specs):
        yield "tools"
