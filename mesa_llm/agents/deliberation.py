"""How an agent decides: its language model, its prompt, and the check of its decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from types import MappingProxyType
from typing import Any, ClassVar, cast

from mesa_llm.agents.conversion import COMPONENTS
from mesa_llm.agents.dialogue import Dialogue
from mesa_llm.agents.strategies import Decide, open_decide
from mesa_llm.config import AgentConfig, Reasoning, Settings
from mesa_llm.engine.access import OpenedModel
from mesa_llm.engine.decision import FORCED, NOT_ASKED, Query, decide
from mesa_llm.engine.foreign import ForeignCall, recorded
from mesa_llm.engine.numbering import Numbering
from mesa_llm.engine.plain import engine_of
from mesa_llm.engine.prompt import compose_prompt
from mesa_llm.engine.reading.answers import answer_schema
from mesa_llm.engine.reading.parsing import check_decision
from mesa_llm.engine.setup import no_action_warning, options_warning, unrecorded_warning
from mesa_llm.engine.survey import JUDGING, advise, check_purpose
from mesa_llm.errors import ConfigError, ParseError, TransportError
from mesa_llm.llm.protocol import LLM
from mesa_llm.prompts import prompts_of
from mesa_llm.records import ChatMessage, ChoiceSituation, Decision, Failure, Observation, Request, ToolCall, Usage
from mesa_llm.text import suggestion
from mesa_llm.tools.tool import impossible, within
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import tuple_of_worlds


class DeliberationMixin:
    """Decides with a language model, by the rule twin, at random, or with the hook of a design."""

    __slots__ = ()

    is_minded = True
    request_purpose = "decide"
    request_series = ""
    decides_without_llm: ClassVar[bool] = False
    """Whether an own `decide` also decides under `llm="rule"`, in place of the rule twin."""

    _llm: str | LLM | None = None
    _worlds: tuple[Any, ...] | None = None
    _roles: Mapping[str, Any] = MappingProxyType({})
    _resolved: Decision | Failure | None = None  # its last decision that was checked against the observation
    model: Any
    unique_id: Any
    config: AgentConfig
    memory: Any

    def __init__(self, *args: Any, llm: str | LLM | None = None, **kwargs: Any) -> None:
        """Store the agent's language model.

        Args:
            *args: Passed to the next class.
            llm: Model string or transport; None for the choice of the Mesa model.
            **kwargs: Passed to the next class.

        Raises:
            TypeError: If no class of the agent accepts one of them.
        """
        if llm is not None:
            self._llm = llm
        try:
            super().__init__(*args, **kwargs)
        except TypeError as error:
            if not str(error).startswith("object.__init__()"):
                raise
            names = sorted(set(kwargs) - set(COMPONENTS))
            hint = suggestion(names[0], COMPONENTS) if names else ""
            which = f": {'one of ' if len(names) > 1 else ''}{', '.join(names)}{hint}" if names else ", by position"
            raise TypeError(f"{type(self).__name__}() got an argument that none of its classes takes{which}") from None

    # -- language model and worlds

    @property
    def llm(self) -> str | LLM:
        """The agent's language model, `rule` or `random`."""
        if self._llm is not None:
            return self._llm
        choose = getattr(self.model, "llm_of", None)
        return choose(self) if choose is not None else "rule"

    @llm.setter
    def llm(self, llm: str | LLM | None) -> None:
        self._llm = llm

    @property
    def opened(self) -> OpenedModel:
        """The agent's opened language model. Read its capabilities here, never from its name."""
        return engine_of(self.model).open(self.llm)

    @property
    def worlds(self) -> tuple[Any, ...]:
        """The worlds the agent lives in; by default, those of its model. Set them before it observes."""
        own: tuple[Any, ...] | None = self._worlds
        if own is not None:
            return own
        model = self.model
        return tuple(getattr(model, "present_worlds", None) or getattr(model, "worlds", ()))

    @worlds.setter
    def worlds(self, worlds: Iterable[Any] | None) -> None:
        self._worlds = None if worlds is None else tuple_of_worlds(worlds)

    @property
    def roles(self) -> Mapping[str, Any]:
        """Name of a world → the agent's `Role` there, in models that visit their worlds in turn."""
        return self._roles

    @roles.setter
    def roles(self, roles: Mapping[str, Any]) -> None:
        design = getattr(self.model, "design", None)
        if design is not None:
            roles = {world: replace(role, config=design.config_over(role.config)) for world, role in roles.items()}
        self._roles = roles

    @property
    def now(self) -> int:
        """The step being decided."""
        now = getattr(self.model, "now", None)
        return int(self.model.time) if now is None else now

    # -- decide

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Build the prompt: shared instructions, the agent's persona, its memories and the observation."""
        return compose_prompt(self, seen)

    @property
    def waits_by_itself(self) -> bool:
        """Whether its own `decide`, or its design's, may wait for something."""
        return self._decides_itself or self._design_decides is not None or self._has_waiting_tools

    @property
    def _design_decides(self) -> Decide | None:
        design = getattr(self.model, "design", None)
        return None if design is None or design.decide is None else open_decide(design.decide)

    @property
    def _has_waiting_tools(self) -> bool:
        """Whether one of its tools is async, and it may call it at random, without waiting for anything else."""
        if self.opened.llm is None:
            return False
        agent: Any = self
        return ToolBox.of(self, self.unique_id, self.worlds, agent.tools).is_async

    async def resolve(self, seen: Observation, opened: OpenedModel) -> Decision | Failure:
        """Decide on an observation with the language model that was opened for it. Called by the engine.

        The default `decide` returns checked decisions: a rule's is checked on return, a language model's while it is
        parsed.
        """
        decide = self._design_decides
        if decide is not None:
            decision = await self._decided(decide(self, seen), seen, "the design's decide")
        elif not self._decides_itself:
            decision = await self._decide_with(opened, seen)
        elif isawaitable(deciding := cast("Any", self.decide(seen))):
            decision = await self._decided(deciding, seen, f"{type(self).__name__}.decide")
        else:
            raise ConfigError(f"{type(self).__name__}.decide must be async; write async def decide(self, seen)")
        self._resolved = decision = decision.labelled(seen.label)
        return decision

    @property
    def _decides_itself(self) -> bool:
        """Whether its class's own `decide` decides; by rule, its rule twin does, unless the class says otherwise."""
        kind = type(self)
        if "decide" in vars(self):
            return True
        if kind.decide is DeliberationMixin.decide:
            return False
        return kind.decides_without_llm or kind.rule is DeliberationMixin.rule or self.opened.llm is not None

    async def _decided(self, deciding: Awaitable[Any], seen: Observation, whose: str) -> Decision | Failure:
        """Await the decision of own code, and check it; a failed foreign call fails the decision."""
        numbers = Numbering.of_turn.get()
        n_before = 0 if numbers is None else numbers.n_requests
        try:
            decision = self.checked(await deciding, seen, self.opened.name)
        except TransportError as error:
            return Failure(self.unique_id, str(error), type(error).__name__, self.opened.name)
        is_unrecorded = numbers is not None and numbers.n_requests == n_before and decision.by not in ("rule", FORCED)
        if is_unrecorded and self.opened.is_language_model:
            engine_of(self.model).warn_once(unrecorded_warning(whose))
        return decision

    async def decide(self, seen: Observation) -> Decision | Failure:
        """Decide on an observation with one request, plus tool calls and one repair. Reads only.

        If only one decision is possible, or no action is, no request is sent. Override to decide differently. An
        override may also return an action, a list of actions or an answer.

        Raises:
            ConfigError: If the agent's config leaves it no actions.
        """
        return await self._decide_with(self.opened, seen)

    async def _decide_with(self, opened: OpenedModel, seen: Observation) -> Decision | Failure:
        if opened.llm is None:
            return self.rule_decision(seen)
        query = await self._query_to(opened, seen)
        return await decide(query) if isinstance(query, Query) else query

    async def query_for(self, seen: Observation) -> Query | Decision | Failure:
        """Prepare the query for an observation, for your own `decide` or hook.

        Each call numbers a new request and searches the agent's memory.

        Args:
            seen: The agent's observation.

        Returns:
            The query, for `mesa_llm.engine.decision.decide`. If there is nothing to ask, the decision to do nothing or
            the failure of its memory.

        Raises:
            ConfigError: If the agent's config leaves it no actions, or it decides by rule.
        """
        return await self._query_to(self.opened, seen)

    async def opinion_of(self, member: Any, seen: Observation) -> Decision | Failure:
        """Ask another agent what this one should decide, in an own `decide`: a team asks its members.

        The member reads what this agent sees, with its own instructions, memories and persona, and decides with its own
        language model, or its rule twin, out of what this agent may do. Neither acts, and the member remembers nothing
        of it. Await several at once with `asyncio.gather`.

        Args:
            member: The agent to ask.
            seen: What this agent observes.

        Returns:
            The decision, as this agent's own, or the failure.
        """
        opened = member.opened
        if opened.llm is None:
            return replace(self.checked(member.rule(seen), seen, "rule"), agent=self.unique_id)
        query = await self._query_to(opened, seen, member)
        if not isinstance(query, Query):
            return query
        query.request = replace(query.request, salt=query.request.salt._replace(purpose="opinion"))
        return replace(await decide(query), agent=self.unique_id)

    async def _query_to(self, opened: OpenedModel, seen: Observation, member: Any = None) -> Query | Decision | Failure:
        """Prepare the query for an observation, put to this agent or to a member of its team."""
        thinker: Any = self if member is None else member
        engine, config, now = engine_of(self.model), thinker.config, self.now
        agent: Any = self
        box: ToolBox = agent.toolbox(seen)
        limits = {} if engine.runlog.request_version == 1 else seen.limits
        if limits and (refused := impossible(box.specs, limits)):
            box = box.only([name for name in box if name not in refused])
        if seen.answer is None and not box.has_actions:
            agent.require_actions()
            if not (agent._takes_answers or ToolBox.of(self, self.unique_id, self.worlds, agent.tools).has_actions):
                engine.warn_once(no_action_warning(type(self)))
            text, by, reading = "There is no action that could be done now.", opened.name, ""
            if opened.is_language_model:
                by, reading = FORCED if engine.runlog.request_version > 3 else by, NOT_ASKED
            return Decision(self.unique_id, text=text, by=by, reading=reading)
        if agent.servers and opened.is_language_model:
            box = box.joined(await engine.tool_sessions.tools(agent.servers, now)).only(config.tools)
        elif now == 1 and seen.options and seen.answer is None and not agent.servers:
            own = ToolBox.of(self, self.unique_id, self.worlds, agent.tools)
            engine.warn_once(options_warning(type(self), seen.options, own.specs))
        salt = engine.salt(thinker.unique_id, now)
        try:
            prompt = () if opened.capabilities.ignores_prompt else thinker.prompt(seen)
        except TransportError as error:  # the memory uses a remote embedding model
            reason = f"the memory could not be looked up: {error}"
            return Failure(self.unique_id, reason, type(error).__name__, opened.name)
        request = Request(
            opened.named(config.adapter),
            prompt,
            salt,
            tools=within(box.specs, limits) if seen.answer is None else box.readers,
            schema=answer_schema(seen.answer) if seen.answer not in (None, str) else None,
            settings=thinker.request_settings,
            options=seen.options,
            adapter=config.adapter,
            max_actions=seen.max_actions,
            name=config.name,
            prompts=prompts_of(self.model),
            situation=situation_of(seen, config) if opened.capabilities.reads_facts else None,
        )
        request = engine.scored(request, opened)
        return engine.query(opened, seen, box, request, thinker.request_reasoning(opened))

    async def consult(
        self,
        llm: str | LLM,
        prompt: str | Sequence[ChatMessage],
        *,
        answer: Any = str,
        purpose: str = "advice",
        settings: Settings = JUDGING,
        reasoning: Reasoning = "none",
        rule: Callable[[str], Any] | None = None,
    ) -> Decision | Failure:
        """Ask another language model while deciding, in `decide` or a design's hook: an adviser, a critic, a planner.

        The request is recorded, replayed and budgeted like a decision, and counted under its purpose. Reads only;
        between decisions, use `model.consult`.

        Args:
            llm: The language model.
            prompt: A text, or a whole conversation ending with a question.
            answer: Type of the answer; any type pydantic can validate.
            purpose: Purpose of the request, in one word.
            settings: Sampling settings.
            reasoning: How the model reasons before it answers.
            rule: Answers for `llm="rule"`, called with the prompt.

        Returns:
            A decision with the `answer`, or a failure with its reason.

        Raises:
            ConfigError: If the purpose is taken, or `llm` is `rule` and no `rule` is given.
        """
        options = {"answer": answer, "settings": settings, "reasoning": reasoning, "rule": rule}
        return await advise(self, llm, prompt, purpose=purpose, **options)

    async def recorded(
        self,
        name: str,
        call: Callable[..., Any] | Awaitable[Any],
        *arguments: Any,
        result: Any = Any,
        usage: Callable[[Any], Usage] | None = None,
    ) -> Any:
        """Call foreign code while deciding, in `decide`, a design's hook or an async tool: anything that is no model.

        An agent of another framework, a retriever, a web service: what it returns is recorded, replayed, counted under
        its name, and paid from the budget, like a reply. If it raises, so does every replay, and the decision fails.

            hits = await self.recorded("retriever", store.search, seen.text, result=list[str])

        Args:
            name: What is called, in one word; the run log and `usage_by_purpose` name it so.
            call: A function, which may be async; or an awaitable, such as a coroutine.
            *arguments: Arguments of the function: plain values, by which a recorded result is found again.
            result: Type of the result: any type pydantic can read from JSON, in which it is recorded.
            usage: Returns what a result has cost, as a `Usage` with its tokens and dollars; None: one call.

        Returns:
            The result, as it is read back from JSON.

        Raises:
            ConfigError: If the name is taken, or JSON cannot hold an argument or the result.
            TransportError: If it raised; a decision that lets this pass fails with the reason.
            BudgetExceeded: If the budget does not allow the call.
        """
        check_purpose(name)
        foreign = ForeignCall(name, call, arguments, result, usage)
        return await recorded(engine_of(self.model), self.unique_id, self.now, foreign)

    @property
    def request_settings(self) -> Mapping[str, Any]:
        """Sampling settings of its requests: its config's, with the Mesa model's reply length."""
        settings = self.config.settings.sent
        reply_tokens = getattr(self.model, "reply_tokens", None)
        return settings if reply_tokens is None else {**settings, "max_tokens": reply_tokens}

    def request_reasoning(self, opened: OpenedModel) -> Reasoning:
        """Return how the agent reasons before deciding, as set by the Mesa model or else by its config.

        Args:
            opened: Its language model. Rules, people, the random baseline and surrogates do not reason.
        """
        if not opened.is_language_model or opened.capabilities.reads_facts:
            return "none"
        return getattr(self.model, "reasoning", None) or self.config.reasoning

    def rule(self, seen: Observation) -> Any:
        """Decide by rule: the rule twin. Override it; draw random numbers only from `self.random`.

        Returns:
            An action (`ToolCall`), a list of them, an answer of the requested type, or None to do nothing.
        """
        raise ConfigError(f"{type(self).__name__} has no rule twin; define rule(), or choose another llm=")

    def rule_decision(self, seen: Observation) -> Decision | Failure:
        """Return the checked decision of the rule twin.

        Raises:
            ConfigError: If it returned something other than actions where actions are expected.
        """
        is_dialogue = seen.answer is str and isinstance(seen.facts, Dialogue)
        return self.rule_checked(self.rule_utterance(seen.facts) if is_dialogue else self.rule(seen), seen)

    def rule_checked(self, decided: Any, seen: Observation) -> Decision | Failure:
        """Check what the rule twin has returned.

        Args:
            decided: Result of `rule`.
            seen: The observation.

        Raises:
            ConfigError: If it is something other than actions where actions are expected.
        """
        decision = self.checked(decided, seen, "rule")
        if seen.answer is None and isinstance(decision, Failure) and not isinstance(decided, Failure):
            written = as_decision(self.unique_id, decided, "rule")
            if isinstance(written, Decision) and written.has_answer:
                raise ConfigError(
                    f"{type(self).__name__}.rule() returned {decided!r:.60} where an action is expected; return "
                    'ToolCall("name", {"argument": value}), a list of them, or None to do nothing'
                )
        return decision

    def rule_utterance(self, conversation: Dialogue) -> Any:
        """Speak in a conversation by rule: the rule twin of talking. Override it.

        Args:
            conversation: What was said so far, by whom.

        Returns:
            What the agent says; None: nothing; by default a failure.
        """
        kind = type(self).__name__
        reason = f"{kind} thinks by rule, and says nothing by rule; write {kind}.rule_utterance"
        return Failure(self.unique_id, reason, "NoRule", "rule")

    def checked(self, decided: Any, seen: Observation, by: str) -> Decision | Failure:
        """Normalise a decision and check it against the observation. The same for all deciders.

        Args:
            decided: The decision; see `as_decision`.
            seen: The observation it was based on.
            by: Who decided.

        Returns:
            The decision, with typed arguments and answer, or the failure with the reason it cannot be carried out.

        Raises:
            ConfigError: If the agent's config leaves it no actions.
        """
        agent: Any = self
        decision = as_decision(self.unique_id, decided, by, is_answer=seen.answer is not None)
        if decision.agent != self.unique_id or decision.label not in ("", seen.label):
            return _misdirected(decision, self.unique_id, seen.label)
        box: ToolBox = agent.toolbox(seen)
        if seen.answer is None and not box.has_actions:
            agent.require_actions()
        if isinstance(decision, Failure):
            return decision
        if decision.keys and seen.options and box.shows_more:  # its language model may have seen other options
            seen = replace(seen, options={})
        try:
            return check_decision(decision, seen, box)
        except ParseError as error:
            return Failure(self.unique_id, str(error), "Invalid", decision.by, decision.keys)


def situation_of(seen: Observation, config: AgentConfig) -> ChoiceSituation:
    """Return what an agent decides about and who it is, as values."""
    return ChoiceSituation(seen.facts, seen.label, config.persona, config.traits)


def _misdirected(decision: Decision | Failure, agent: int, label: str) -> Failure:
    """Return the failure for a decision by another agent, or on another observation."""
    labels = (f" on {one!r}" if one else "" for one in (decision.label, label))
    reason = f"agent {decision.agent} has decided that{next(labels)}, not agent {agent}{next(labels)}"
    return Failure(agent, reason, "Invalid", decision.by, decision.keys)


def as_decision(agent: int, decided: Any, by: str, *, is_answer: bool = False) -> Decision | Failure:
    """Convert the decision of a rule, a person or an outside controller to a `Decision`.

    Args:
        decided: A `Decision` or `Failure`, which is returned unchanged; an action or a list of actions; an answer; or
            None to do nothing.
        by: Who decided.
        is_answer: Whether an answer is wanted, so that an empty list is one.
    """
    match decided:
        case Decision() | Failure():
            return decided
        case None:
            return Decision(agent, by=by)
        case ToolCall():
            return Decision(agent, actions=(decided,), by=by)
        case [*calls] if calls and all(isinstance(call, ToolCall) for call in calls):
            return Decision(agent, actions=tuple(calls), by=by)
        case [] if not is_answer:
            return Decision(agent, by=by)
        case _:
            return Decision(agent, answer=decided, by=by)
