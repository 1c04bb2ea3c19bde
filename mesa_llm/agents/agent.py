"""Agents that think: four components, four mixins, and an ordinary Mesa agent made of them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

import mesa

from mesa_llm.agents.conversion import check_components, enter
from mesa_llm.agents.mailbox import Mailbox
from mesa_llm.agents.observation import join
from mesa_llm.agents.strategies import Decide, is_plan, open_decide
from mesa_llm.agents.tools import ToolMixin
from mesa_llm.canonical import canonical_json
from mesa_llm.config import AgentConfig, ConfigMixin, Reasoning, Settings
from mesa_llm.engine.activation import minded
from mesa_llm.engine.decision import Query, decide
from mesa_llm.engine.plain import engine_of
from mesa_llm.engine.reading import answer_schema, check_decision, plain_answer, written_answer
from mesa_llm.engine.survey import JUDGING, advise, tend_memories
from mesa_llm.engine.transports import OpenedModel
from mesa_llm.errors import ConfigError, ParseError, ToolError, TransportError
from mesa_llm.llm.protocol import LLM
from mesa_llm.memory import ChatMemory, MemoryEntry, MemoryMixin, NoMemory
from mesa_llm.records import (
    ChatMessage,
    Decision,
    Failure,
    Observation,
    Outcome,
    Prompt,
    Request,
    ToolCall,
)
from mesa_llm.space import describe_surroundings
from mesa_llm.text import quoted
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.world import Receiver, unit_of

A = TypeVar("A", bound="LLMMixin")


class LLMMixin:
    """Lets an agent observe, decide and act with a language model, its rule twin, or the random baseline."""

    __slots__ = ()

    is_minded = True
    request_purpose = "decide"
    request_series = ""
    _llm: str | LLM | None = None
    _worlds: tuple[Any, ...] | None = None
    _roles: Mapping[str, Any] = MappingProxyType({})
    _settled: Decision | Failure | None = None  # its last decision that was checked against what it saw
    model: Any
    unique_id: Any
    config: AgentConfig
    memory: Any
    random: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Make the mixin's `step` that of the class, on whichever side of the Mesa class the mixin stands.

        Raises:
            ConfigError: If the class overrides a method that the engine calls.
        """
        super().__init_subclass__(**kwargs)
        for name in ("settle", "checked", "opened", "waits_by_itself"):
            if getattr(cls, name) is not getattr(LLMMixin, name):
                raise ConfigError(f"{cls.__name__}.{name}: the engine calls {name} of agents that think; rename yours")
        steps = next(kind for kind in cls.__mro__ if "step" in vars(kind))
        if not issubclass(steps, LLMMixin):
            cls.step = LLMMixin.step

    def __init__(self, *args: Any, llm: str | LLM | None = None, **kwargs: Any) -> None:
        """Store what the agent thinks with.

        Args:
            *args: Passed on.
            llm: Model string or transport; None: the choice of the Mesa model.
            **kwargs: Passed on.
        """
        if llm is not None:
            self._llm = llm
        super().__init__(*args, **kwargs)

    def __repr__(self) -> str:
        """Return its class, id and name."""
        name = getattr(getattr(self, "config", None), "name", "")
        return f"<{type(self).__name__} {getattr(self, 'unique_id', '?')}{name and f': {name}'}>"

    # -- what it thinks with

    @property
    def llm(self) -> str | LLM:
        """What the agent thinks with."""
        if self._llm is not None:
            return self._llm
        choose = getattr(self.model, "llm_of", None)
        return choose(self) if choose is not None else "rule"

    @llm.setter
    def llm(self, llm: str | LLM | None) -> None:
        self._llm = llm

    @property
    def opened(self) -> OpenedModel:
        """The agent's language model, opened; its capabilities are read here, never off its name."""
        return engine_of(self.model).open(self.llm)

    @property
    def worlds(self) -> tuple[Any, ...]:
        """The worlds the agent lives in, by default those that its model lives in now. Set them before it observes."""
        own: tuple[Any, ...] | None = self._worlds
        if own is not None:
            return own
        model = self.model
        return tuple(getattr(model, "present_worlds", None) or getattr(model, "worlds", ()))

    @worlds.setter
    def worlds(self, worlds: Iterable[Any] | None) -> None:
        self._worlds = None if worlds is None else tuple(worlds)

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
        """The step that is being decided."""
        now = getattr(self.model, "now", None)
        return int(self.model.time) if now is None else now

    # -- observe

    def observe(self) -> Observation:
        """Observe the world; reads only.

        An agent in one world observes that world; in several, all of them; in none, the agents and cells around it.
        Messages and news of other worlds come after. Override to show something else.
        """
        agent: Any = self
        worlds = self.worlds
        if not worlds:
            seen = describe_surroundings(agent)
        elif len(worlds) == 1:
            seen = worlds[0].observe(self.unique_id)
        else:
            seen = join({world.name: world.observe(self.unique_id) for world in worlds}, worlds)
        return self.with_news(seen)

    def with_news(self, seen: Observation) -> Observation:
        """Append to an observation what arrived for the agent: messages, and news of other worlds."""
        parts: list[str] = []
        bridge = getattr(self.model, "bridge", None)
        if inbox := Mailbox.of(self.model).inbox(self.unique_id):
            parts.append("\n".join(f"Message from agent {m.sender}: {quoted(m.text, 1000)}" for m in inbox))
        if bridge is not None and (news := bridge.digest([world.name for world in self.worlds], self.unique_id)):
            parts.append(f"News from elsewhere:\n{news}")
        return _with_text(seen, "\n\n".join(filter(None, (seen.text, *parts)))) if parts else seen

    # -- decide

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Build the prompt: shared instructions first, then who the agent is, its memories, and its observation."""
        shared = getattr(self.model, "instructions_text", "")
        system = "\n\n".join(filter(None, (shared, seen.instructions, self.config.text)))
        remembered = self.memory.recall(seen.cue or seen.text, self.now)
        memory = f"What you remember:\n{remembered}" if remembered else ""
        user = "\n\n".join(filter(None, (memory, seen.text))) or "Decide."
        history = self.memory.messages()
        first = (ChatMessage("system", system),) if system else ()
        return Prompt((*first, *history, ChatMessage("user", user)))

    @property
    def waits_by_itself(self) -> bool:
        """Whether its own `decide`, or that of the design, may wait for something."""
        return type(self).decide is not LLMMixin.decide or self._design_decides is not None

    @property
    def _design_decides(self) -> Decide | None:
        design = getattr(self.model, "design", None)
        return None if design is None or design.decide is None else open_decide(design.decide)

    async def settle(self, seen: Observation) -> Decision | Failure:
        """Decide on an observation, and check the decision, whoever makes it; called by the engine."""
        decide = self._design_decides
        if decide is not None:
            decision = self._checked_again(await decide(self, seen), seen)
        else:
            decision = await self.decide(seen)
            if type(self).decide is not LLMMixin.decide:
                decision = self._checked_again(decision, seen)
        self._settled = decision.labelled(seen.label)
        return self._settled

    def _checked_again(self, decision: Any, seen: Observation) -> Decision | Failure:
        """Check the decision of a custom `decide`, in which tools may have shown a language model more options."""
        agent: Any = self
        if isinstance(decision, Decision) and decision.keys:
            box: ToolBox = agent.toolbox(seen)
            if any(bound.tool.shows_more for bound in box.values()):
                seen = replace(seen, options={})
        return self.checked(decision, seen, self.opened.name)

    async def decide(self, seen: Observation) -> Decision | Failure:
        """Decide on an observation: one request, plus tool calls and one repair; reads only.

        If an action is wanted and none is possible, no language model is asked. Override to decide in another way; an
        override may also return an action, a list of actions or an answer.

        Raises:
            ConfigError: If the agent's config leaves it no action at all.
        """
        opened = self.opened
        if opened.llm is None:
            return self.rule_decision(seen)
        query = await self._query_to(opened, seen)
        return await decide(query) if isinstance(query, Query) else query

    async def query_for(self, seen: Observation) -> Query | Decision | Failure:
        """Prepare what its language model is asked on an observation, for a `decide` or a hook of one's own.

        Each call takes a number for its request, and looks its memory up.

        Args:
            seen: What the agent observes.

        Returns:
            The query, for `mesa_llm.engine.decision.decide`; or, if there is nothing to ask, the decision to do nothing
            or the failure of its memory.

        Raises:
            ConfigError: If the agent's config leaves it no action at all, or it thinks by rule.
        """
        return await self._query_to(self.opened, seen)

    async def _query_to(self, opened: OpenedModel, seen: Observation) -> Query | Decision | Failure:
        engine = engine_of(self.model)
        agent: Any = self
        box: ToolBox = agent.toolbox(seen)
        if seen.answer is None and not box.has_actions:
            agent.demand_actions()
            return Decision(self.unique_id, text="There is no action that could be done now.", by=opened.name)
        if agent.servers and opened.is_language_model:
            box = box.joined(await engine.servers.tools(agent.servers, self.now)).only(agent.config.tools)
        salt = engine.salt(self.unique_id, self.now)
        try:
            prompt = () if opened.capabilities.ignores_prompt else self.prompt(seen)
        except TransportError as error:  # a memory that is looked up by a remote embedding model
            reason = f"the memory could not be looked up: {error}"
            return Failure(self.unique_id, reason, type(error).__name__, opened.name)
        request = Request(
            opened.named(self.config.adapter),
            prompt,
            salt,
            tools=box.specs if seen.answer is None else box.readers,
            schema=answer_schema(seen.answer) if seen.answer not in (None, str) else None,
            settings=self.request_settings,
            options=seen.options,
            adapter=self.config.adapter,
            max_actions=seen.max_actions,
        )
        return engine.query(opened, seen, box, request, self.request_reasoning(opened))

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

        Recorded, replayed and budgeted like decisions, and counted under its purpose. Reads only; between decisions,
        use `model.consult`.

        Args:
            llm: Who is asked.
            prompt: A text, or a whole conversation that ends with a question.
            answer: Type of the answer: anything pydantic can check.
            purpose: What for, in one word.
            settings: How it is sampled.
            reasoning: Whether it reasons before it answers.
            rule: What answers for `llm="rule"`, called with the prompt.

        Returns:
            A decision with the `answer`, or the failure that says why there is none.

        Raises:
            ConfigError: If the purpose is taken, or a rule is consulted and there is none.
        """
        options = {"answer": answer, "settings": settings, "reasoning": reasoning, "rule": rule}
        return await advise(self, llm, prompt, purpose=purpose, **options)

    @property
    def request_settings(self) -> Mapping[str, Any]:
        """Sampling settings of its requests: its config's, with the reply length that the Mesa model sets."""
        settings = self.config.settings.sent
        reply_tokens = getattr(self.model, "reply_tokens", None)
        return settings if reply_tokens is None else {**settings, "max_tokens": reply_tokens}

    def request_reasoning(self, opened: OpenedModel) -> Reasoning:
        """Return how the agent reasons before it decides: as the Mesa model sets, else as its config does.

        Args:
            opened: Its language model; rules, people and the random baseline do not reason.
        """
        if not opened.is_language_model:
            return "none"
        return getattr(self.model, "reasoning", None) or self.config.reasoning

    def rule(self, seen: Observation) -> Any:
        """Decide by rule: the rule twin. Override it; draw only from `self.random`.

        Returns:
            An action (`ToolCall`), a list of them, an answer of the type asked for, or None to do nothing.
        """
        raise ConfigError(f"{type(self).__name__} has no rule twin; define rule(), or choose another llm=")

    def rule_decision(self, seen: Observation) -> Decision | Failure:
        """Return the decision of the rule twin, checked."""
        return self.checked(self.rule(seen), seen, "rule")

    def checked(self, decided: Any, seen: Observation, by: str) -> Decision | Failure:
        """Return a decision that has passed the check; a failure if it does not.

        Args:
            decided: What was decided, see `as_decision`.
            seen: The observation it was decided on.
            by: Who decided.

        Raises:
            ConfigError: If the agent's config leaves it no action at all.
        """
        agent: Any = self
        if seen.answer is None and agent.config.tools is not None:
            agent.demand_actions()
        is_answer = seen.answer is not None and isinstance(decided, list) and not decided
        decision = Decision(self.unique_id, answer=[], by=by) if is_answer else as_decision(self.unique_id, decided, by)
        if decision.agent != self.unique_id or decision.label not in ("", seen.label):
            decision_label, expected_label = (
                f" on {label!r}" if label else "" for label in (decision.label, seen.label)
            )
            reason = (
                f"agent {decision.agent} has decided that{decision_label}, not agent {self.unique_id}{expected_label}"
            )
            return Failure(self.unique_id, reason, "Invalid", decision.by, decision.keys)
        if isinstance(decision, Failure):
            return decision
        try:
            return check_decision(decision, seen, agent.toolbox(seen))
        except ParseError as error:
            return Failure(self.unique_id, str(error), "Invalid", decision.by, decision.keys)

    # -- act

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out a decision; the only place where an agent writes.

        Args:
            decision: The decision, checked against the observation; a failure does nothing.
            seen: The observation, for memories that keep the conversation.

        Returns:
            The outcome of each action, or of the answer; a refused one holds the reason, and does not stop the others.
        """
        if isinstance(decision, Failure):
            self.remember_messages()
            return []
        agent: Any = self
        outcomes: list[Outcome] = []
        if decision.has_answer:
            outcomes.append(self._deliver_answer(decision, seen or Observation()))
        elif decision.actions:
            box: ToolBox = ToolBox.of(self, self.unique_id, self.worlds, agent.tools)
            for call in decision.actions:
                try:
                    ok, result = True, _run_action(box, call, is_checked=decision is self._settled)
                except ToolError as error:
                    ok, result = False, str(error)
                outcomes.append(Outcome(self.unique_id, call.name, call.arguments, ok, result, decision.label))
        self.remember(decision, outcomes, seen)
        return outcomes

    def _deliver_answer(self, decision: Decision, seen: Observation) -> Outcome:
        """Deliver an answer to the world that asked, and return the outcome."""
        try:
            ok, result = True, self.receive(decision.answer, seen.label, seen.world)
        except ToolError as error:
            ok, result = False, str(error)
        arguments = {"answer": plain_answer(decision.answer)}
        return Outcome(self.unique_id, "answer", arguments, ok, result, decision.label)

    def receive(self, answer: Any, label: str, world: str) -> Any:
        """Deliver a typed answer to the world that asked for it. Override for questions of the agent's own.

        Args:
            answer: The answer, of the type asked for.
            label: Label of the observation.
            world: Name of the world that asked; empty: the only one that receives answers, if there is one.

        Returns:
            The result, for the outcome.

        Raises:
            ToolError: If the world refuses the answer.
            ConfigError: If it is not clear which world asked.
        """
        receivers = [
            receiver for receiver in self.worlds if world in ("", receiver.name) and isinstance(receiver, Receiver)
        ]
        if len(receivers) > 1:
            names = ", ".join(receiver.name for receiver in receivers)
            raise ConfigError(f"{names} all receive answers; the observation names its own: Observation(world=…)")
        if world and not receivers:
            raise ConfigError(f"the observation asks for world {world!r}, which receives no answers here")
        return receivers[0].receive(self.unique_id, answer, label) if receivers else ""

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Remember messages, plan, decision and outcomes; a chat memory keeps the whole observation."""
        memory, now, worlds = self.memory, self.now, self.worlds
        if type(memory) is NoMemory:
            return
        world = seen.world if seen is not None else ""
        if not world and len(worlds) == 1:
            world = worlds[0].name
        unit, is_conversation = _unit_in(worlds, world), isinstance(memory, ChatMemory)
        if seen is not None and is_conversation:
            decision_text = (
                written_answer(decision.answer, seen.answer) if decision.has_answer else _actions_text(decision.actions)
            )
            memory.add(MemoryEntry(now, "observation", seen.text, world=world, unit=unit))
            self._remember_plan(decision, world, unit)
            memory.add(MemoryEntry(now, "decision", decision_text, world=world, unit=unit))
        else:
            self.remember_messages()
            self._remember_plan(decision, world, unit)
        for outcome in outcomes:
            result_text = outcome.result if outcome.ok else f"refused: {outcome.result}"
            if outcome.action != "answer":
                arguments = ", ".join(f"{name}={value!r}" for name, value in outcome.arguments.items())
                result_text = f"{outcome.action}({arguments}): {result_text}"
            elif not is_conversation:
                text = f"You answered: {written_answer(decision.answer)}"
                memory.add(MemoryEntry(now, "decision", text[:600], world=world, unit=unit))
            if result_text:
                memory.add(MemoryEntry(now, "outcome", str(result_text)[:600], world=world, unit=unit))

    def _remember_plan(self, decision: Decision, world: str, unit: str) -> None:
        """Remember the plan that a decision was made by, if plans are written."""
        if decision.text and is_plan(self._design_decides):
            self.memory.add(MemoryEntry(self.now, "thought", decision.text[:600], world=world, unit=unit))

    def unit_in(self, world: str = "") -> str:
        """Return the unit of time of a world (`step`, `month`, …); without a name, of all its worlds."""
        return _unit_in(self.worlds, world)

    def remember_messages(self) -> None:
        """Remember the messages of this step, once: at most `mailbox.MAX_INBOX`."""
        for message in Mailbox.of(self.model).take(self.unique_id):
            text = f"agent {message.sender}: {message.text}"
            self.memory.add(MemoryEntry(self.now, "message", text[:600], unit=self.unit_in()))

    def step(self) -> None:
        """Observe, decide and act alone, for plain Mesa models; in an `LLMModel` all decide at once."""
        engine = engine_of(self.model)
        if _has_moved_on(self.model, self.now):
            for message in Mailbox.of(self.model).deliver():
                engine.runlog.add(message, self.now)
            tend_memories(minded(self.model))
        seen = self.observe()
        (decision,) = engine.gather([self], [seen])
        engine.runlog.add(decision, self.now)
        for outcome in self.act(decision, seen):
            engine.runlog.add(outcome, self.now)


class Mind(LLMMixin, ConfigMixin, MemoryMixin, ToolMixin):  # pyright: ignore[reportIncompatibleMethodOverride]
    """All four mixins, for any Mesa agent class: `class Citizen(Mind, CellAgent)`."""

    __slots__ = ()

    @classmethod
    def enter(cls: type[A], agents: Iterable[Any], **components: Any) -> list[A]:
        """Turn existing agents into agents of this class, which has a mind; each keeps its attributes.

        The class has to inherit from theirs first, and from the mind second: `class Giver(MoneyAgent, Mind)`. The model
        goes on activating them as agents of their former class. Agents created in this class later get the same
        components, except for a callable `config`.

        Args:
            agents: Agents of the first base class of this one.
            **components: `llm`, `config`, `memory`, `tools`: as for a new agent. A callable `config` is called with
                each agent.

        Raises:
            ConfigError: If an agent is of another class, or a component is unknown.
        """
        check_components(components)
        living = list(agents)
        for agent in living:
            if cls.__base__ is not type(agent):
                body = type(agent).__name__
                raise ConfigError(f"a {body} cannot become a {cls.__name__}; write class {cls.__name__}({body}, Mind)")
        return [enter(cls, agent, components) for agent in living]


class LLMAgent(Mind, mesa.Agent[Any]):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A Mesa agent that thinks."""


def as_decision(agent: int, decided: Any, by: str) -> Decision | Failure:
    """Convert what a rule, a person or an outside controller decided into a decision.

    Args:
        agent: Mesa `unique_id`.
        decided: A `Decision` or `Failure`, which is returned as it is; an action or a list of actions, an answer, or
            None to do nothing.
        by: Who decided.
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
        case []:
            return Decision(agent, by=by)
        case _:
            return Decision(agent, answer=decided, by=by)


def _run_action(box: ToolBox, call: ToolCall, *, is_checked: bool) -> Any:
    """Run an action, unless its own condition forbids it now.

    Args:
        box: Tools and actions of the agent.
        call: The action.
        is_checked: Whether its arguments have been checked.

    Raises:
        ToolError: If it cannot be done now, or the world refuses it.
    """
    if not box.is_usable(call.name):
        raise ToolError(f"{call.name} cannot be done now.")
    return box.run(call) if is_checked else box.call(call)


def _actions_text(actions: Iterable[ToolCall]) -> str:
    """Write actions as JSON, as a model has to write them; empty if there are none."""
    entries = [{"action": call.name, "arguments": call.arguments} for call in actions]
    return canonical_json(entries[0] if len(entries) == 1 else {"actions": entries}) if entries else ""


def _unit_in(worlds: Sequence[Any], name: str) -> str:
    """Return the unit of time of one of an agent's worlds; without a name, of all of them."""
    return unit_of(*(worlds if not name or len(worlds) == 1 else [world for world in worlds if world.name == name]))


def _with_text(seen: Observation, text: str) -> Observation:
    return replace(seen, text=text, cue=seen.cue or seen.text)


def _has_moved_on(model: Any, step: int) -> bool:
    """Check whether a model without a mailbox of its own has begun another step; true once for each step."""
    if isinstance(getattr(model, "mailbox", None), Mailbox) or _STEPS.get(model) == step:
        return False
    _STEPS[model] = step
    return True


_STEPS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""Plain model → the last step in which one of its agents stepped."""
