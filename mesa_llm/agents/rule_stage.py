"""A stage in which everybody decides by rule: what the agents of a class share is looked up once, not once a decision.

An agent is left to the engine, which does the same for anybody, if it lives in worlds of its own, thinks with something
else than its rule twin, or its class overrides how decisions are made. What a rule returns is checked by look-up; what
is not found at once is checked as everybody's decisions are, with the same result. So are single actions carried out
and remembered, unless a class overrides how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, cast, get_args, get_origin

from mesa_llm.agents.agent import EntryMoment, LLMMixin, is_unchanging, outcome_entries, outcome_of
from mesa_llm.agents.deliberation import DeliberationMixin
from mesa_llm.agents.dialogue import Dialogue
from mesa_llm.agents.mailbox import Mailbox
from mesa_llm.agents.tools import ToolMixin
from mesa_llm.config import ConfigMixin
from mesa_llm.engine.engine import require_observation
from mesa_llm.engine.reading.parsing import check_options
from mesa_llm.errors import ParseError, ToolError
from mesa_llm.memory import MemoryMixin, WindowMemory
from mesa_llm.records import Decision, Failure, LazyObservation, Observation, Outcome, ToolCall
from mesa_llm.tools.tool import Tool
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import unit_of

_DEFAULTS = {
    name: getattr(mixin, name)
    for mixin, names in (
        (DeliberationMixin, "llm worlds now rule_decision rule_checked request_purpose request_series"),
        (ToolMixin, "toolbox require_actions"),
        (ConfigMixin, "config"),
    )
    for name in names.split()
}
"""What a class would override to change how its decisions are made, by name."""

_ACTS = {
    "remember": LLMMixin.remember,
    "remember_messages": LLMMixin.remember_messages,
    "memory": MemoryMixin.memory,
}
"""What a class would override to change how its decisions are carried out and remembered, by name."""

_OWN = frozenset({"act", "decide", *_DEFAULTS, *_ACTS})
"""The same names, which an attribute of one agent may hide."""

_OBSERVATIONS = frozenset({Observation, LazyObservation})


def decisions_by_rule(
    agents: Sequence[Any], observations: Sequence[Observation], twins: dict[type, RuleTwins]
) -> list[Decision | Failure] | None:
    """Let agents decide by rule, in order.

    Args:
        agents: The agents, whose Mesa model leaves all decisions to their rule twins.
        observations: Observation of each of them.
        twins: Takes what the agents of each class share.

    Returns:
        Decision or failure of each of them; None, before any has decided, if one has to be left to the engine.

    Raises:
        ConfigError: If an observation is not an `Observation`, or a rule returns what is no decision.
    """
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
    return False not in [getattr(kind, name) is default for name, default in _DEFAULTS.items()]


class RuleTwins:
    """The rule twins of one class in one stage."""

    __slots__ = ("_actions", "_acts_by_default", "_choices", "_moment", "_now", "_worlds")

    def __init__(self, agent: Any) -> None:
        """Look up what all agents of a class share.

        Args:
            agent: One of them.
        """
        self._worlds: tuple[Any, ...] = agent.worlds
        self._actions: Mapping[str, tuple[Tool, int]] = ToolBox.actions_of(type(agent), self._worlds)
        self._choices: dict[int, tuple[Any, frozenset[str]]] = {}
        self._now: int = agent.now
        kind = type(agent)
        self._acts_by_default = False not in [getattr(kind, name) is default for name, default in _ACTS.items()]
        world: str = self._worlds[0].name if len(self._worlds) == 1 else ""
        self._moment = EntryMoment(self._now, world, unit_of(*self._worlds), agent.moment_in(world))

    def decision(self, agent: Any, seen: Observation) -> Decision | Failure:
        """Return an agent's checked decision, which it keeps, as `resolve` does."""
        decision: Decision | Failure | None = None
        if seen.answer is str and isinstance(seen.facts, Dialogue):
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
        if found is None or seen.answer is not None or seen.max_actions < 1:
            return None
        if seen.tools is not None and call.name not in seen.tools:
            return None
        if agent._config.tools is not None or type(call.arguments) is not dict:
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

    def outcome(self, agent: Any, decision: Decision | Failure, seen: Observation | None) -> Outcome | None:
        """Carry out a decision of this stage to do one action, and remember it, as `LLMMixin.act` does.

        Args:
            agent: The agent.
            decision: Its decision, or failure.
            seen: Its observation.

        Returns:
            The outcome; None, before anything is done, if the decision has to be looked at more closely.
        """
        if decision is not agent._resolved or type(decision) is not Decision or seen is None or seen.world:
            return None
        if len(decision.actions) != 1 or not self._acts_by_default or decision.by != "rule":
            return None
        call = decision.actions[0]
        found = self._actions.get(call.name)
        if found is None:
            return None
        tool, owner = found
        if tool.when is not None and not self._is_allowed(agent, tool.when, owner):
            return None
        agent_id = agent.unique_id
        leading = (self._worlds[owner - 1], agent_id) if owner else (agent,)
        try:
            ok, returned = True, tool.function(*leading, **call.arguments)
        except ToolError as error:
            ok, returned = False, str(error)
        outcome = outcome_of(agent_id, call.name, call.arguments, ok, returned, decision.label)
        memory = agent.memory
        if type(memory) is not WindowMemory or not Mailbox.of(agent.model).is_empty or not is_unchanging(outcome):
            agent.remember(decision, [outcome], seen)
        else:
            memory.add(partial(outcome_entries, (outcome,), (tool.wording,), self._moment))
        return outcome

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
