"""What a benchmark would cost: its prompts are written and counted, nobody is asked, and rule twins decide."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from mesa_llm.agents.agent import as_decision
from mesa_llm.agents.design import AgentDesign, Decide
from mesa_llm.benchmark.runs import Plan
from mesa_llm.engine.access import Access, Route
from mesa_llm.engine.decision import plain_answer
from mesa_llm.errors import ConfigError, Refused
from mesa_llm.llm import open_simple
from mesa_llm.llm.address import split_name
from mesa_llm.llm.litellm import count_tokens, price
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.llm.schema.sampling import sample_value
from mesa_llm.records import Decision, Failure, Observation, Reply, Request, canonical_json

THOUGHT = "What matters here is weighed in a few sentences, one after the other. " * 5
"""What stands for a reply in free text that no rule twin writes: about 70 tokens."""

_DECIDING: ContextVar[tuple[Any, Observation] | None] = ContextVar("mesa_llm_deciding", default=None)
"""The agent that is deciding here, and what it sees."""


@dataclass(frozen=True)
class Cost:
    """What something would cost. Sums with `+`."""

    requests: int = 0
    """Number of requests, without repairs of faulty replies."""

    prompt_tokens: int = 0
    """Tokens of prompts, tools and schemas."""

    reply_tokens: int = 0
    """Tokens of replies that say no more than what rule twins decide."""

    max_reply_tokens: int = 0
    """Tokens of replies that are as long as they may be."""

    dollars: float | None = 0.0
    """US dollars with the short replies; None where a price is not known."""

    max_dollars: float | None = 0.0
    """US dollars with the long replies."""

    def __add__(self, other: Cost) -> Cost:
        """Add two costs, field by field; what is not known makes the sum not known."""
        return Cost(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            self.max_reply_tokens + other.max_reply_tokens,
            None if self.dollars is None or other.dollars is None else self.dollars + other.dollars,
            None if self.max_dollars is None or other.max_dollars is None else self.max_dollars + other.max_dollars,
        )


def rehearse(plans: Sequence[Plan], access: Access, **options: Any) -> dict[str, Cost]:
    """Work out what runs would cost, and ask nobody.

    Of each task the first run is made, in memory; its others are taken to cost as much. Rule twins decide what happens
    in it. What run logs hold already is not taken off.

    Args:
        plans: The runs.
        access: What they would ask through.
        **options: Options of all models.

    Returns:
        Name of the task → cost of its runs together.

    Raises:
        ConfigError: If a task's parameters cannot be, or a model string names nothing.
    """
    each: dict[str, Cost] = {}
    costs: dict[str, Cost] = {}
    for plan in plans:
        name = plan.task.name
        if name not in each:
            each[name] = _cost_of(plan, access, options)
        costs[name] = costs.get(name, Cost()) + each[name]
    return costs


def _cost_of(plan: Plan, access: Access, options: dict[str, Any]) -> Cost:
    design = plan.candidate.design or AgentDesign()
    candidate = replace(plan.candidate, design=replace(design, decide=_Rehearsed(design.decide)))
    counting = _CountingAccess(access)
    with closing(plan._replace(candidate=candidate).make(access=counting, **options)) as model:
        model.run(plan.task.max_steps)
    return counting.cost


class _Rehearsed:
    """Hook of a design: notes who decides, and on what, so that the rule twin can be asked in place of the model."""

    def __init__(self, decide: Decide | None) -> None:
        self.decide = decide

    async def __call__(self, agent: Any, seen: Observation) -> Any:
        token = _DECIDING.set((agent, seen))
        try:
            return await (agent.decide(seen) if self.decide is None else self.decide(agent, seen))
        finally:
            _DECIDING.reset(token)


class _CountingAccess(Access):
    """An access that opens nothing and counts what it is asked.

    Attributes:
        cost: What has been counted.
    """

    def __init__(self, real: Access) -> None:
        super().__init__()
        self.real = real
        self.cost = Cost()

    def open(self, llm: str | LLM, *, is_second: bool = False) -> Route:
        """Open what counts in place of a language model; chance stays what it is."""
        known = open_simple(llm) if isinstance(llm, str) else llm
        if known is None:
            capabilities = Capabilities(self.real.name_of(str(llm), is_second=is_second))
        else:
            capabilities = Capabilities.of(known)
            if capabilities.is_immediate:
                return Route(capabilities, known, 1)
        return Route(capabilities, _Counter(self, capabilities.name, is_free=known is not None), 64)

    def name_of(self, text: str, *, is_second: bool = False) -> str:
        """Return the name that a model string has in a recording."""
        return self.real.name_of(text, is_second=is_second)


class _Counter:
    """Stands where a transport would be: counts each request, and replies what the rule twin decides."""

    def __init__(self, access: _CountingAccess, name: str, *, is_free: bool) -> None:
        self.access = access
        self.priced_as = name if split_name(name)[1] is None else None
        self.is_free = is_free

    async def reply(self, request: Request) -> Reply:
        """Count a request.

        Raises:
            Refused: If the rule twin does nothing, for which there is no reply.
        """
        reply = _reply(request)
        calls = "".join(canonical_json(call.arguments) for call in reply.tool_calls) if reply else ""
        asked, told = count_tokens(request), count_tokens((reply.text if reply else "") + calls)
        longest = max(told, int(request.settings.get("max_tokens") or told))
        self.access.cost += Cost(1, asked, told, longest, self._price(asked, told), self._price(asked, longest))
        if reply is None:
            raise Refused("the rule twin does nothing")
        return reply

    def _price(self, asked: int, told: int) -> float | None:
        if self.is_free:
            return 0.0
        return None if self.priced_as is None else price(self.priced_as, asked, told)


def _reply(request: Request) -> Reply | None:
    """Return what the rule twin would reply, or any reply that fits; None if the twin does nothing."""
    deciding = _DECIDING.get()
    is_thought = request.schema is None and not any(spec.is_action for spec in request.tools)
    if deciding is None or request.salt.purpose != "decide" or (is_thought and deciding[1].answer is not str):
        return _any_reply(request)
    agent, seen = deciding
    try:
        decided = as_decision(agent.unique_id, agent.rule(seen), "rule")
    except ConfigError:  # it has no rule twin
        return _any_reply(request)
    if isinstance(decided, Failure):
        return None
    return _written(decided, request)


def _written(decided: Decision, request: Request) -> Reply | None:
    if decided.actions:
        return Reply(tool_calls=decided.actions)
    if not decided.has_answer:
        return None
    answer = plain_answer(decided.answer)
    return Reply(str(answer) if request.schema is None else canonical_json(answer))


def _any_reply(request: Request) -> Reply:
    if request.schema is None:
        return Reply(THOUGHT)
    return Reply(canonical_json(sample_value(request.schema, random.Random(request.salt.seed), request.options)))
