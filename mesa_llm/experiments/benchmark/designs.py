"""Designs for any task: those of the four agents that Shachi compares, and ablations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal

from mesa_llm.agents.design import AgentDesign
from mesa_llm.engine.activation import llm_agents
from mesa_llm.experiments.benchmark.task import Task
from mesa_llm.memory import NoMemory
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
    """Personas, traits and styles."""

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
    base = design or AgentDesign()
    short = {f"{name} without {component}": replace(base, **fields) for component, fields in WITHOUT.items()}
    return {name: design, **short}


def installations(task: Task, designs: Mapping[str, AgentDesign | None]) -> dict[str, Installation]:
    """Find out which components each design uses in a task, without sending a request.

    Args:
        task: The task, with its parameters.
        designs: Designs by name; None for the model's own components.

    Returns:
        Name of the design → its components in the task.

    Raises:
        ConfigError: If the task's parameters are invalid.
    """
    offered = _components(task, None)

    def use(component: str, used: set[str]) -> Use:
        if component in used:
            return "used"
        return "ignored" if component in offered else "absent"

    by_name: dict[str, Installation] = {}
    for name, design in designs.items():
        used = offered if design is None else _components(task, design)
        by_name[name] = Installation(use("config", used), use("memory", used), use("tools", used))
    return by_name


def _components(task: Task, design: AgentDesign | None) -> set[str]:
    """Return the components that at least one agent has at the start."""
    own = {} if design is None else {"design": replace(design, llm=None)}
    with closing(task.make(**{**task.setting, **own, "llm": "rule", "rng": 1})) as model:
        return {name for agent in llm_agents(model) for name in _components_of(agent)}


def _components_of(agent: Any) -> Iterator[str]:
    config, box = agent.config, ToolBox.of(agent, agent.unique_id, agent.worlds, agent.tools)
    box = box if config.world_tools else box.without_tools_of_worlds
    if config.persona or config.traits or config.style:
        yield "config"
    if not isinstance(agent.memory, NoMemory):
        yield "memory"
    if agent.servers or any(not spec.is_action for spec in box.only(config.tools).specs):
        yield "tools"
