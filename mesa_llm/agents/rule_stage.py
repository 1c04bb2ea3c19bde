"""A stage in which everybody decides by rule: what the agents of a class share is looked up once, not once a decision.

An agent is left to the engine, which does the same for anybody, if it lives in worlds of its own, thinks with something
else than its rule twin, or its class overrides how decisions are made. What a rule returns is checked by look-up; what
is not found at once is checked as everybody's decisions are, with the same result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, cast, get_args, get_origin

from mesa_llm.agents.agent import LLMMixin
from mesa_llm.agents.deliberation import DeliberationMixin
from mesa_llm.agents.dialogue import Dialogue
from mesa_llm.agents.tools import ToolMixin
from mesa_llm.config import ConfigMixin
from mesa_llm.engine.engine import require_observation
from mesa_llm.engine.parsing import check_options
from mesa_llm.errors import ParseError, ToolError
from mesa_llm.records import Decision, Failure, LazyObservation, Observation, ToolCall
from mesa_llm.tools.tool import Tool
from mesa_llm.tools.toolbox import ToolBox

_DEFAULTS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (DeliberationMixin, ("llm", "worlds", "now", "rule_decision", "rule_checked", "request_purpose", "request_series")),
    (ToolMixin, ("toolbox", "require_actions")),
    (ConfigMixin, ("config",)),
)
"""Mixin → names by which a class would change how its decisions are made."""

_OWN = frozenset({"decide", *(name for _, names in _DEFAULTS for name in names)})
"""The same names, which an attribute of one agent may hide."""

_OBSERVATIONS = frozenset({Observation, LazyObservation})


def decisions_by_rule(agents: Sequence[Any], observations: Sequence[Observation]) -> list[Decision | Failure] | None:
    """Let agents decide by rule, in order.

    Args:
        agents: The agents, whose Mesa model leaves all decisions to their rule twins.
        observations: Observation of each of them.

    Returns:
        Decision or failure of each of them; None, before any has decided, if one has to be left to the engine.

    Raises:
        ConfigError: If an observation is not an `Observation`, or a rule returns what is no decision.
    """
    twins: dict[type, RuleTwins] = {}
    for agent in agents:
        kind = type(agent)
        if kind not in twins:
            if not _decides_by_default(kind):
                return None
            twins[kind] = RuleTwins(agent)
        if agent._llm is not None or agent._worlds is not None or agent.tools or not _OWN.isdisjoint(vars(agent)):
            return None
    for agent, seen in zip(agents, observations, strict=True):
        if type(seen) not in _OBSERVATIONS or seen.options or seen.tools is not None:
            require_observation(agent, seen)
    return [twins[type(agent)].decision(agent, seen) for agent, seen in zip(agents, observations, strict=True)]


def _decides_by_default(kind: type[Any]) -> bool:
    """Check whether a class leaves it to the library how its rule twin's decisions are made."""
    if not issubclass(kind, LLMMixin):
        return False
    if kind.decide is not DeliberationMixin.decide and (
        kind.decides_without_llm or kind.rule is DeliberationMixin.rule
    ):
        return False
    return all(getattr(kind, name) is getattr(mixin, name) for mixin, names in _DEFAULTS for name in names)


class RuleTwins:
    """The rule twins of one class in one stage."""

    __slots__ = ("_actions", "_choices", "_worlds")

    def __init__(self, agent: Any) -> None:
        """Look up what all agents of a class share.

        Args:
            agent: One of them.
        """
        self._worlds: tuple[Any, ...] = agent.worlds
        self._actions: Mapping[str, tuple[Tool, int]] = ToolBox.actions_of(type(agent), self._worlds)
        self._choices: dict[int, tuple[Any, frozenset[str]]] = {}

    def decision(self, agent: Any, seen: Observation) -> Decision | Failure:
        """Return an agent's checked decision, which it keeps, as `resolve` does."""
        decision: Decision | Failure | None = None
        if isinstance(seen.facts, Dialogue):
            decision = cast("Decision | Failure", agent.rule_decision(seen)).labelled(seen.label)
        else:
            decided = agent.rule(seen)
            if type(decided) is ToolCall:
                decision = self._action(agent, decided, seen)
            elif type(decided) is str and seen.answer is not None and decided in self._choices_of(seen.answer):
                decision = Decision(agent.unique_id, (), decided, "", "rule", (), seen.label)
            if decision is None:
                decision = cast("Decision | Failure", agent.rule_checked(decided, seen)).labelled(seen.label)
        agent._resolved = decision
        return decision

    def _action(self, agent: Any, call: ToolCall, seen: Observation) -> Decision | None:
        """Return the decision to do one action; None if it has to be looked at more closely."""
        found = self._actions.get(call.name)
        if found is None or seen.answer is not None or seen.tools is not None or seen.max_actions < 1:
            return None
        if agent.config.tools is not None or type(call.arguments) is not dict:
            return None
        tool, owner = found
        if tool.when is not None and not self._is_allowed(agent, tool.when, owner):
            return None
        if call.arguments or tool.takes_arguments:
            try:
                call = ToolCall(call.name, tool.arguments(call.arguments), call.call_id)
                if seen.options:
                    check_options(call, seen.options)
            except (ToolError, ParseError):
                return None
        return Decision(agent.unique_id, (call,), None, "", "rule", (), seen.label)

    def _is_allowed(self, agent: Any, condition: str, owner: int) -> bool:
        """Check whether the condition of an action lets an agent use it now."""
        if not owner:
            check: Callable[..., Any] | None = getattr(agent, condition, None)
            return callable(check) and bool(check())
        check = getattr(self._worlds[owner - 1], condition, None)
        return callable(check) and bool(check(agent.unique_id))

    def _choices_of(self, kind: Any) -> frozenset[str]:
        """Return the texts that a type of answers consists of; none for other types."""
        known = self._choices.get(id(kind))
        if known is None:
            members = get_args(kind) if get_origin(kind) is Literal else ()
            choices = frozenset(members if {str}.issuperset(map(type, members)) else ())
            known = self._choices[id(kind)] = (kind, choices)  # holding the type keeps its id unique
        return known[1]
