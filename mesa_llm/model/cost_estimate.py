"""Cost of a run in advance: prompts are written and counted, rule twins decide, and nothing is sent.

An estimate is no promise; pages and the command line show its `CAVEAT` beside the figures.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import closing
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from mesa_llm.agents.deliberation import as_decision
from mesa_llm.agents.design import AgentDesign
from mesa_llm.agents.strategies import Decide, open_decide
from mesa_llm.canonical import canonical_json
from mesa_llm.engine.access import Access, OpenedModel
from mesa_llm.engine.numbering import purpose_counted
from mesa_llm.engine.options import ACCESS_OPTIONS
from mesa_llm.engine.reading.answers import plain_answer
from mesa_llm.errors import ConfigError, Refused
from mesa_llm.llm import open_simple
from mesa_llm.llm.address import split_name
from mesa_llm.llm.keys import Origin
from mesa_llm.llm.protocol import LLM, Capabilities
from mesa_llm.llm.scripted import RandomLLM
from mesa_llm.llm.tokens import count_tokens, price
from mesa_llm.model.model import LLMModel
from mesa_llm.records import Decision, Failure, Observation, Reply, Request

logger = logging.getLogger(__name__)

THOUGHT = "What matters here is weighed in a few sentences, one after the other. " * 5
"""Stand-in for a reply in free text, which rule twins do not write: about 70 tokens."""

_CAVEAT = (
    "An estimate, for which nothing was sent: the prompts are those of a run in which {}, with the shortest and the "
    "longest replies. Repairs of faulty replies are not counted, and replies that a run log already holds are not "
    "deducted."
)

CAVEAT = _CAVEAT.format("rule twins decide")
"""What an estimate leaves out, for its readers."""

RANDOM_CAVEAT = _CAVEAT.format("decisions are drawn at random")
"""The same, for an estimate without rule twins."""

IN_BATCHES = "Prices are those of the provider's batches."
"""What an estimate with `batch` says besides that."""

OF_THE_LOG = ("log", "replay", "retry_failures", "ask_again", "light", "allow_new_endpoint")
"""Options that an estimate leaves out, as it neither reads nor writes a run log."""

_DECIDING: ContextVar[tuple[Any, Observation] | None] = ContextVar("mesa_llm_deciding", default=None)
"""Agent that decides in this task of the event loop, and its observation."""


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


@dataclass(frozen=True)
class CostEstimate:
    """The requests that a run would send, if it went as with rule twins."""

    steps: int
    """Number of steps of the estimate."""

    decisions: int
    """Number of decisions in it."""

    by_purpose: Mapping[str, Cost] = field(default_factory=dict[str, Cost])
    """Cost of the requests for each purpose: `decide`, `memory`, `judge`, …"""

    unpriced: tuple[str, ...] = ()
    """Language models whose price is not known."""

    first: Request | None = field(default=None, repr=False)
    """The first request for a decision; None if no language model would be asked for one."""

    @property
    def total(self) -> Cost:
        """Cost of the whole run."""
        return sum(self.by_purpose.values(), Cost())

    def to_json(self) -> dict[str, Any]:
        """Return the estimate as JSON values, with the total."""
        return {
            "steps": self.steps,
            "decisions": self.decisions,
            "by_purpose": {purpose: asdict(cost) for purpose, cost in self.by_purpose.items()},
            "total": asdict(self.total),
            "unpriced": list(self.unpriced),
        }


def estimate_cost(make: Callable[..., LLMModel], steps: int | None = None, **arguments: Any) -> CostEstimate:
    """Compute what a run would cost, without sending a request or touching its log.

    The run is made in memory with the decisions of rule twins, or any valid decision for agents without one. Prompts
    and memories are written as in the run, and counted.

        estimate_cost(SocialModel, 20, llm="gpt-4o-mini", n_agents=50, rng=1).total.dollars

    Args:
        make: The model's class, or a function that makes the model from these arguments.
        steps: Maximum number of steps; None: until the model ends by itself.
        **arguments: Arguments of the run: parameters and options, including `llm`.

    Raises:
        ConfigError: If the model cannot be made from these arguments, a model string names nothing, or nobody knows a
            language model's provider.
    """
    arguments = {name: value for name, value in arguments.items() if name not in OF_THE_LOG}
    limits = {name: arguments.pop(name) for name in ACCESS_OPTIONS & set(arguments)}
    access = arguments.pop("access", None)
    design = arguments.pop("design", None) or AgentDesign()
    hook = _Estimated(None if design.decide is None else open_decide(design.decide))
    counting = CountingAccess(access or Access(**limits))
    with closing(make(**arguments, access=counting, design=replace(design, decide=hook))) as model:
        model.engine.warn = logger.debug  # nobody reads this run, in which a twin that does nothing counts as failed
        model.run(steps)
        return CostEstimate(
            int(model.time), model.engine.decisions, counting.costs, tuple(counting.unpriced), counting.first
        )


class _Estimated:
    """Hook of a design: notes agent and observation of each decision, so that the rule twin can decide instead.

    Like a `partial`, it has the wrapped hook as `func`.
    """

    def __init__(self, decide: Decide | None) -> None:
        self.decide = decide
        self.func = getattr(decide, "func", decide)

    async def __call__(self, agent: Any, seen: Observation) -> Any:
        token = _DECIDING.set((agent, seen))
        try:
            return await (agent.decide(seen) if self.decide is None else self.decide(agent, seen))
        finally:
            _DECIDING.reset(token)


class CountingAccess(Access):
    """An access that opens no connection and counts the requests, which get random replies unless a twin decides.

    Attributes:
        costs: Cost so far, by purpose.
        unpriced: Language models without a known price, in the order in which they were asked.
        first: The first request for a decision; None before there is one.
    """

    def __init__(self, real: Access) -> None:
        super().__init__()
        self.real = real
        self.costs: dict[str, Cost] = {}
        self.unpriced: dict[str, None] = {}
        self.first: Request | None = None

    def open(self, llm: str | LLM, *, is_auxiliary: bool = False, origin: Origin = Origin.USER) -> OpenedModel:
        """Open a counter in place of a language model or a person; random choice stays as it is."""
        known = open_simple(llm) if isinstance(llm, str) else llm
        if known is None:
            capabilities = Capabilities(self.real.name_of(str(llm), is_auxiliary=is_auxiliary))
            self.real.require_provider(str(llm), is_auxiliary=is_auxiliary)
            is_batch = self.real.sends_in_batches(str(llm), is_auxiliary=is_auxiliary)
        else:
            capabilities = Capabilities.of(known)
            if capabilities.is_immediate:
                return OpenedModel(capabilities, known, True, 1)
            is_batch = self.real.sends_in_batches(known, is_auxiliary=is_auxiliary)
        counter = _Counter(self, capabilities, is_free=known is not None, is_batch=is_batch)
        return OpenedModel(capabilities, counter, False, 64)

    def name_of(self, text: str, *, is_auxiliary: bool = False) -> str:
        """Return the name that a model string has in a recording."""
        return self.real.name_of(text, is_auxiliary=is_auxiliary)

    def count(self, purpose: str, cost: Cost) -> None:
        """Add to the cost of what is asked for a purpose."""
        self.costs[purpose] = self.costs.get(purpose, Cost()) + cost


class _Counter:
    """Transport that counts each request, and replies with the decision of the rule twin."""

    def __init__(self, access: CountingAccess, capabilities: Capabilities, *, is_free: bool, is_batch: bool) -> None:
        self.access = access
        self.name = capabilities.name
        self.is_person = capabilities.is_person
        self.is_free = is_free
        self.is_batch = is_batch

    async def reply(self, request: Request) -> Reply:
        """Count a request, unless a person would be asked.

        Raises:
            Refused: If the rule twin does nothing, which no reply can express.
        """
        reply = await _reply(request)
        if self.access.first is None and request.salt.purpose == "decide":
            self.access.first = request
        if not self.is_person:
            self.access.count(purpose_counted(request.salt.purpose), self._cost(request, reply))
        if reply is None:
            raise Refused("the rule twin does nothing")
        return reply

    def _cost(self, request: Request, reply: Reply | None) -> Cost:
        calls = "".join(canonical_json(call.arguments) for call in reply.tool_calls) if reply else ""
        n_prompt, n_reply = count_tokens(request), count_tokens((reply.text if reply else "") + calls)
        n_max = max(n_reply, int(request.settings.get("max_tokens") or n_reply))
        return Cost(1, n_prompt, n_reply, n_max, self._price(n_prompt, n_reply), self._price(n_prompt, n_max))

    def _price(self, prompt_tokens: int, reply_tokens: int) -> float | None:
        if self.is_free:
            return 0.0
        is_known = split_name(self.name)[1] is None
        dollars = price(self.name, prompt_tokens, reply_tokens, is_batch=self.is_batch) if is_known else None
        if dollars is None:
            self.access.unpriced[self.name] = None
        return dollars


async def _reply(request: Request) -> Reply | None:
    """Return the rule twin's decision as a reply, or any valid reply; None if the twin does nothing."""
    deciding = _DECIDING.get()
    is_thought = request.schema is None and not any(spec.is_action for spec in request.tools)
    if deciding is None or request.salt.purpose != "decide" or (is_thought and deciding[1].answer is not str):
        return await _any_reply(request)
    agent, seen = deciding
    try:
        decided = as_decision(agent.unique_id, agent.rule(seen), "rule")
    except ConfigError:  # it has no rule twin
        return await _any_reply(request)
    return None if isinstance(decided, Failure) else _written(decided, request)


def _written(decided: Decision, request: Request) -> Reply | None:
    if decided.actions:
        return Reply(tool_calls=decided.actions)
    if not decided.has_answer:
        return None
    answer = plain_answer(decided.answer)
    return Reply(str(answer) if request.schema is None else canonical_json(answer))


async def _any_reply(request: Request) -> Reply:
    if request.schema is None and not any(spec.is_action for spec in request.tools):
        return Reply(THOUGHT)
    return await RandomLLM().reply(request)
