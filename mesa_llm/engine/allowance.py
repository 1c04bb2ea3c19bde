"""What one agent, or all agents of a class, may spend in a run; whoever has spent it fails, and the others go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from mesa_llm.errors import ConfigError
from mesa_llm.records import Failure, Usage
from mesa_llm.text import counted
from mesa_llm.tools.tool import describe

SPENT = "AllowanceSpent"
"""Kind of the failure of an agent that has spent its allowance."""


class Allowance(BaseModel, frozen=True, extra="forbid"):
    """The most that an agent, or a class of agents, may spend. None: no limit."""

    calls: Annotated[int, Field(gt=0)] | None = None
    """Maximum number of replies."""

    tokens: Annotated[int, Field(gt=0)] | None = None
    """Maximum number of tokens, read and written."""

    dollars: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Maximum cost in US dollars."""

    def is_spent(self, used: Usage) -> bool:
        """Check whether a usage has reached one of the limits."""
        pairs = ((self.calls, used.calls), (self.tokens, used.tokens), (self.dollars, used.dollars))
        return any(limit is not None and amount >= limit for limit, amount in pairs)

    def __str__(self) -> str:
        """Return the limits: `20 calls, $0.5`."""
        parts = [counted(self.calls, "call")] if self.calls is not None else []
        parts += [counted(self.tokens, "token")] if self.tokens is not None else []
        parts += [f"${self.dollars:g}"] if self.dollars is not None else []
        return ", ".join(parts) or "no limit"


class Allowances:
    """The allowances of a run, by agent or class.

    They are looked at when agents begin to decide together, so that they do not depend on how fast replies arrive: a
    decision that has begun is finished, and a class may exceed its allowance by one decision of each of its agents.
    Recorded replies count as they did when they were paid, so that a resumed or replayed run fails where it did.

    Attributes:
        spent: Agent id → what its replies have taken, recorded ones included.
    """

    def __init__(self, allowances: Mapping[Any, Any] | None = None) -> None:
        """Check the allowances.

        Args:
            allowances: Agent id or class name → `Allowance`, or its fields.

        Raises:
            ConfigError: If one is invalid.
        """
        self._by_name: dict[str, Allowance] = {}
        self.spent: dict[int, Usage] = {}
        self._members: dict[str, set[int]] = {}
        for name, value in (allowances or {}).items():
            try:
                self._by_name[str(name)] = Allowance.model_validate(value)
            except ValidationError as error:
                raise ConfigError(
                    f"allowances: {name!r}: {describe(error)}; write {{'Trader': {{'calls': 20, 'dollars': 0.5}}}}"
                ) from None

    def __bool__(self) -> bool:
        """Check whether there are any."""
        return bool(self._by_name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the agent ids and names of classes."""
        return iter(self._by_name)

    def charge(self, agent_id: int, used: Usage) -> None:
        """Add the usage of a reply.

        Args:
            agent_id: Mesa `unique_id` of the agent that asked.
            used: The usage.
        """
        self.spent[agent_id] = self.spent.get(agent_id, Usage()) + used

    def failures(self, agents: Sequence[Any]) -> dict[int, Failure]:
        """Return the failures of those who have spent their allowance, or that of their class.

        Args:
            agents: The agents that are to decide.

        Returns:
            Agent id → its failure.
        """
        failures: dict[int, Failure] = {}
        for agent in agents:
            kind, agent_id = type(agent).__name__, agent.unique_id
            if kind in self._by_name:
                self._members.setdefault(kind, set()).add(agent_id)
        for agent in agents:
            kind, agent_id = type(agent).__name__, agent.unique_id
            for name, members in ((str(agent_id), (agent_id,)), (kind, self._members.get(kind, ()))):
                allowance = self._by_name.get(name)
                if allowance is None or agent.opened.llm is None:
                    continue
                used = sum((self.spent.get(member, Usage()) for member in members), Usage())
                if allowance.is_spent(used):
                    whose = f"agent {name}" if name != kind else f"all {name} agents"
                    reason = f"the allowance of {whose} is spent ({allowance})"
                    failures[agent_id] = Failure(agent_id, reason, SPENT, agent.opened.name)
        return failures
