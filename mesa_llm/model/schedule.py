"""Schedules for agents that visit several worlds of a model in turn, with a role in each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mesa_llm.config import AgentConfig
from mesa_llm.errors import ConfigError
from mesa_llm.memory import Memory
from mesa_llm.world import Finite, World


@dataclass(frozen=True)
class Visit:
    """A visit of the agents to a world."""

    world: str
    """Name of the world."""

    length: int = 1
    """Length of the visit, in steps or in the unit of the model's `visit_length`."""


@dataclass(frozen=True)
class Role:
    """An agent's role in a world, kept until it enters a world where it has another role.

    Roles may share a memory, or have separate ones to keep the worlds apart. The model's design changes the config of
    each role. Derive memory and tools from the agent's own, to which the design has already been applied.
    """

    config: AgentConfig
    """Its config there."""

    memory: Memory
    """Its memory there."""

    tools: tuple[Callable[..., Any], ...] = ()
    """Additional functions, besides the tools of the world."""


class WorldSchedule:
    """Order in which agents visit the worlds of a model: a cycle of visits, repeated until the run ends.

        model.schedule = WorldSchedule([Visit("social"), Visit("exchange", 50)], until="exchange")

    During a visit, agents observe and act in that world only, and only its time passes. Their ids are the same in all
    worlds.

    Attributes:
        visits: The visits of a cycle.
        until: When the run ends: as soon as `any` or `all` of the worlds are over, or the world of this name is.
        n_cycles: Number of completed cycles.
    """

    def __init__(
        self,
        visits: Iterable[Visit],
        until: str = "any",
        members: Mapping[str, Collection[int]] | None = None,
    ) -> None:
        """Create a schedule that begins with the first visit.

        Args:
            visits: The visits of a cycle.
            until: When the run ends: as soon as `any` or `all` of the worlds are over, or the world of this name is.
            members: Name of a world → ids of the agents that visit it; all agents visit worlds not named here.

        Raises:
            ConfigError: If there is no visit, a visit has length 0, or `until` or `members` names a world that is not
                visited.
        """
        self.visits = tuple(visits)
        self.until = until
        self.n_cycles = 0
        self._members = {world: frozenset(ids) for world, ids in (members or {}).items()}
        self._index = self._spent = 0
        names = [visit.world for visit in self.visits]
        if not names or any(visit.length < 1 for visit in self.visits):
            raise ConfigError(f"a schedule needs at least one visit, each of length 1 or more; got {self.visits}")
        if until not in ("any", "all", *names):
            raise ConfigError(f"until must be any, all, or a visited world ({', '.join(names)}); got {until!r}")
        if strangers := sorted(set(self._members) - set(names)):
            raise ConfigError(f"members names {strangers[0]!r}, which is not visited; visited: {', '.join(names)}")

    @property
    def visit(self) -> Visit:
        """The current visit."""
        return self.visits[self._index]

    @property
    def remaining(self) -> int:
        """Remaining length of the current visit."""
        return self.visit.length - self._spent

    def present(self, worlds: Sequence[World]) -> tuple[World, ...]:
        """Return the world of the current visit.

        Args:
            worlds: The worlds of the model.

        Raises:
            ConfigError: If the model has no such world.
        """
        visited = tuple(world for world in worlds if world.name == self.visit.world)
        if not visited:
            names = ", ".join(world.name for world in worlds) or "none"
            raise ConfigError(f"the schedule visits {self.visit.world!r}; the worlds of the model are: {names}")
        return visited

    def includes(self, agent_id: int) -> bool:
        """Check whether an agent visits the current world."""
        members = self._members.get(self.visit.world)
        return members is None or agent_id in members

    def enter(self, agent: Any) -> None:
        """Assign an agent its role in the current world, if it has one."""
        role: Role | None = agent.roles.get(self.visit.world)
        if role is not None:
            agent.config, agent.memory, agent.tools = role.config, role.memory, role.tools

    def advance(self, length: int, worlds: Sequence[World]) -> bool:
        """Advance the visit; when it ends, begin the next visit to a world that is not over.

        Args:
            length: Length that has passed.
            worlds: The worlds of the model.

        Returns:
            Whether the run continues.
        """
        over = {world.name for world in worlds if isinstance(world, Finite) and world.is_over}
        names = {visit.world for visit in self.visits}
        n_over = len(over & names)
        if n_over == len(names) or (n_over if self.until == "any" else self.until in over):
            return False
        self._spent += length
        if self._spent >= self.visit.length:
            self._begin_next_visit()
        while self.visit.world in over:
            self._begin_next_visit()
        return True

    def _begin_next_visit(self) -> None:
        self._spent = 0
        self._index = (self._index + 1) % len(self.visits)
        self.n_cycles += self._index == 0
