"""Cost of a benchmark in advance: prompts are written and counted, rule twins decide, and nothing is sent."""

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
"""Stand-in for a reply in free text that no rule twin writes: about 70 tokens."""

_DECIDING: ContextVar[tuple[Any, Observation] | None] = ContextVar("mesa_llm_deciding", default=None)
"""Agent that is deciding in this task of the event loop, and its observation."""


@dataclass(frozen=True)
class Cost:
    """Expected cost. Sums with `+`."""

    requests: int = 0
    """Number of requests, without repairs of faulty replies."""

    prompt_tokens: int = 0
    """Tokens of prompts, tools and schemas."""

    reply_tokens: int = 0
    """Tokens of replies that hold the decisions of rule twins and nothing else."""

    max_reply_tokens: int = 0
    """Tokens of replies of the maximum length."""

    dollars: float | None = 0.0
    """US dollars with short replies; None without a known price."""

    max_dollars: float | None = 0.0
    """US dollars with replies of the maximum length."""

    def __add__(self, other: Cost) -> Cost:
        """Add two costs, field by field; an unknown price makes the sum unknown."""
        return Cost(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.reply_tokens + other.reply_tokens,
            self.max_reply_tokens + other.max_reply_tokens,
            None if self.dollars is None or other.dollars is None else self.dollars + other.dollars,
            None if self.max_dollars is None or other.max_dollars is None else self.max_dollars + other.max_dollars,
        )


def rehearse(plans: Sequence[Plan], access: Access, **options: Any) -> dict[str, Cost]:
    """Compute the cost of runs in advance, without sending a request.

    The first run of each task and candidate is made in memory, with the decisions of rule twins; the others are assumed
    to cost as much. Replies that run logs already hold are not deducted.

    Args:
        plans: The runs.
        access: Access that the runs would use.
        **options: Options of all models.

    Returns:
        Name of the task → cost of its runs together.

    Raises:
        ConfigError: If a task's parameters cannot be, or a model string names nothing.
    """
    each: dict[tuple[str, str], Cost] = {}
    costs: dict[str, Cost] = {}
    for plan in plans:
        name, key = plan.task.name, (plan.task.name, plan.candidate.name)
        if key not in each:
            each[key] = _cost_of(plan, access, options)
        costs[name] = costs.get(name, Cost()) + each[key]
    return costs


def _cost_of(plan: Plan, access: Access, options: dict[str, Any]) -> Cost:
    design = plan.candidate.design or AgentDesign()
    candidate = replace(plan.candidate, design=replace(design, decide=_Rehearsed(design.decide)))
    counting = _CountingAccess(access)
    with closing(plan._replace(candidate=candidate).make(access=counting, **options)) as model:
        model.run(plan.task.max_steps)
    return counting.cost


class _Rehearsed:
    """Hook of a design: notes agent and observation of each decision, for the rule twin to decide instead."""

    def __init__(self, decide: Decide | None) -> None:
        self.decide = decide

    async def __call__(self, agent: Any, seen: Observation) -> Any:
        token = _DECIDING.set((agent, seen))
        try:
            return await (agent.decide(seen) if self.decide is None else self.decide(agent, seen))
        finally:
            _DECIDING.reset(token)


class _CountingAccess(Access):
    """An access that opens no connection and counts the requests.

    Attributes:
        cost: Cost so far.
    """

    def __init__(self, real: Access) -> None:
        super().__init__()
        self.real = real
        self.cost = Cost()

    def open(self, llm: str | LLM, *, is_second: bool = False) -> Route:
        """Open a counter in place of a language model; random choice stays as it is."""
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
    """Transport that counts each request, and replies with the decision of the rule twin."""

    def __init__(self, access: _CountingAccess, name: str, *, is_free: bool) -> None:
        self.access = access
        self.priced_as = name if split_name(name)[1] is None else None
        self.is_free = is_free

    async def reply(self, request: Request) -> Reply:
        """Count a request.

        Raises:
            Refused: If the rule twin does nothing, which no reply can say.
        """
        reply = _reply(request)
        calls = "".join(canonical_json(call.arguments) for call in reply.tool_calls) if reply else ""
        n_prompt, n_reply = count_tokens(request), count_tokens((reply.text if reply else "") + calls)
        n_max = max(n_reply, int(request.settings.get("max_tokens") or n_reply))
        dollars, max_dollars = self._price(n_prompt, n_reply), self._price(n_prompt, n_max)
        self.access.cost += Cost(1, n_prompt, n_reply, n_max, dollars, max_dollars)
        if reply is None:
            raise Refused("the rule twin does nothing")
        return reply

    def _price(self, prompt_tokens: int, reply_tokens: int) -> float | None:
        if self.is_free:
            return 0.0
        return None if self.priced_as is None else price(self.priced_as, prompt_tokens, reply_tokens)


def _reply(request: Request) -> Reply | None:
    """Return the rule twin's decision as a reply, or any valid reply; None if the twin does nothing."""
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
