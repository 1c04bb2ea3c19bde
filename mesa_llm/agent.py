"""Agents that think: four components, four mixins, and an ordinary Mesa agent made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import mesa

from mesa_llm.activation import minded
from mesa_llm.canonical import canonical_json
from mesa_llm.config import AgentConfig, ConfigMixin
from mesa_llm.entering import check_components, enter
from mesa_llm.errors import ConfigError, ToolError, TransportError
from mesa_llm.joined import join
from mesa_llm.llm.base import LLM
from mesa_llm.mailbox import Mailbox
from mesa_llm.memory import ChatMemory, Memory, MemoryEntry, MemoryMixin, one_line, open_memory
from mesa_llm.parse import Asking, answer_schema, decide
from mesa_llm.plain import engine_of, has_moved_on
from mesa_llm.records import ChatMessage, Decision, Failure, Observation, Outcome, Request, ToolCall
from mesa_llm.space import describe_surroundings
from mesa_llm.survey import summarise
from mesa_llm.toolbox import ToolBox, checked_tools
from mesa_llm.transports import Opened

A = TypeVar("A", bound="LLMMixin")


class ToolMixin:
    """Gives an agent its tools: its own marked methods, those of its worlds, and the researcher's functions."""

    __slots__ = ()

    tools: tuple[Callable[..., Any], ...]

    def __init__(self, *args: Any, tools: Iterable[Callable[..., Any]] = (), **kwargs: Any) -> None:
        """Keep the researcher's own functions.

        Args:
            *args: Passed on.
            tools: Functions and methods the agent may call; marked with `@action` they are actions.
            **kwargs: Passed on.

        Raises:
            ConfigError: If one of them can be no tool.
        """
        self.tools = checked_tools(tools)
        super().__init__(*args, **kwargs)

    def toolbox(self, seen: Observation) -> ToolBox:
        """Give the tools and actions that may be used on this observation.

        Args:
            seen: What the agent sees; it may name the tools usable now. The researcher's functions, of which no
                world knows, always are.
        """
        agent: Any = self
        box = ToolBox.of(self, agent.unique_id, agent.worlds, self.tools)
        named = seen.tools
        if named is not None and self.tools:
            named = dict.fromkeys((*named, *(function.__name__ for function in self.tools)))
        return box.only(named).only(agent.config.tools).usable


class LLMMixin:
    """Lets an agent observe, decide and act with a language model, its rule twin, or the random baseline."""

    __slots__ = ()

    is_minded = True
    model: Any
    unique_id: Any
    config: AgentConfig
    memory: Any
    random: Any

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Let an agent with a mind step with it, on whichever side of its Mesa class the mixin stands."""
        super().__init_subclass__(**kwargs)
        steps = next(kind for kind in cls.__mro__ if "step" in vars(kind))
        if not issubclass(steps, LLMMixin):
            cls.step = LLMMixin.step

    def __init__(self, *args: Any, llm: str | LLM | None = None, **kwargs: Any) -> None:
        """Keep what the agent thinks with.

        Args:
            *args: Passed on.
            llm: Model string or transport; None: what the model says.
            **kwargs: Passed on.
        """
        self._llm = llm
        super().__init__(*args, **kwargs)

    # -- what it thinks with

    @property
    def llm(self) -> str | LLM:
        """What the agent thinks with."""
        if self._llm is not None:
            return self._llm
        chosen = getattr(self.model, "llm_of", None)
        return chosen(self) if chosen is not None else "rule"

    @llm.setter
    def llm(self, llm: str | LLM | None) -> None:
        self._llm = llm

    @property
    def opened(self) -> Opened:
        """What the agent thinks with, opened: ask it, and not its name, what it is."""
        return engine_of(self.model).open(self.llm)

    @property
    def worlds(self) -> tuple[Any, ...]:
        """The worlds it lives in; by default all of its model."""
        return tuple(getattr(self.model, "worlds", ()))

    @property
    def now(self) -> int:
        """The step that is being decided."""
        now = getattr(self.model, "now", None)
        return int(self.model.time) if now is None else now

    # -- observe

    def observe(self) -> Observation:
        """Look at the world; reads only.

        An agent in one world sees what that world shows; in several, what all of them show; in none, the agents
        and cells around it. Messages and news of other worlds come after. Override to show something else.
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
        """Put what arrived for the agent after an observation: messages, and news of other worlds."""
        told = [seen.text]
        bridge = getattr(self.model, "bridge", None)
        if inbox := Mailbox.of(self.model).inbox(self.unique_id):
            told.append("\n".join(f"Message from agent {m.sender}: {one_line(m.text)}" for m in inbox))
        if bridge is not None and (news := bridge.digest([world.name for world in self.worlds], self.unique_id)):
            told.append(f"News from elsewhere:\n{news}")
        return seen if len(told) == 1 else _with_text(seen, "\n\n".join(filter(None, told)))

    # -- decide

    def prompt(self, seen: Observation) -> tuple[ChatMessage, ...]:
        """Write the prompt: what all agents share first, then who this one is, what it remembers, and what it sees."""
        system = "\n\n".join(filter(None, (seen.rules, self.config.text)))
        remembered = self.memory.recall(seen.cue or seen.text, self.now)
        memory = f"What you remember:\n{remembered}" if remembered else ""
        user = "\n\n".join(filter(None, (memory, seen.text))) or "Decide."
        history = self.memory.messages()
        first = (ChatMessage("system", system),) if system else ()
        return (*first, *history, ChatMessage("user", user))

    async def decide(self, seen: Observation) -> Decision | Failure:
        """Decide on an observation: one request, plus tools called and one repair; reads only.

        Where an action is wanted and none can be done, nobody is asked.
        """
        engine = engine_of(self.model)
        opened = engine.open(self.llm)
        if opened.llm is None:
            return self.rule_decision(seen)
        agent: Any = self
        box: ToolBox = agent.toolbox(seen)
        if seen.answer is None and not any(spec.is_action for spec in box.specs):
            return Decision(self.unique_id, text="There is no action that could be done now.", by=opened.name)
        salt = engine.salt(self.unique_id, self.now)
        try:
            prompt = () if opened.capabilities.ignores_prompt else self.prompt(seen)
        except TransportError as error:  # a memory that is looked up by a remote embedding model
            reason = f"the memory could not be looked up: {error}"
            return Failure(self.unique_id, reason, type(error).__name__, opened.name)
        request = Request(
            self.config.adapter or opened.name,
            prompt,
            salt,
            tools=box.specs if seen.answer is None else _readers(box),
            schema=answer_schema(seen.answer) if seen.answer not in (None, str) else None,
            settings=self.config.settings.sent,
            options=seen.options,
            adapter=self.config.adapter,
            max_actions=seen.max_actions,
        )
        return await decide(Asking(opened.llm, seen, box, request, engine.parser))

    def rule(self, seen: Observation) -> Any:
        """Decide by rule: the twin of the language model. Override; draws come from `self.random`.

        Returns:
            An action (`ToolCall`), a list of them, an answer of the type asked for, or None to do nothing.
        """
        raise ConfigError(f"{type(self).__name__} has no rule twin; define rule(), or choose another llm=")

    def rule_decision(self, seen: Observation) -> Decision | Failure:
        """Give what the rule twin decides, as a decision."""
        return as_decision(self.unique_id, self.rule(seen), "rule")

    # -- act

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Do what was decided; the only place where an agent writes.

        Args:
            decision: What was decided; a failure does nothing.
            seen: What it was decided on, for memories that keep the conversation.

        Returns:
            What came of each action; a refused one says why, and hinders nobody else.
        """
        if isinstance(decision, Failure):
            self.remember_messages()
            return []
        agent: Any = self
        box: ToolBox = ToolBox.of(self, self.unique_id, self.worlds, agent.tools)
        outcomes: list[Outcome] = []
        for call in decision.actions:
            try:
                ok, result = True, _done(box, call)
            except ToolError as error:
                ok, result = False, str(error)
            outcomes.append(Outcome(self.unique_id, call.name, call.arguments, ok, result))
        self.remember(decision, outcomes, seen)
        return outcomes

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Keep in memory what arrived, what was decided and what came of it; a conversation keeps all that was seen."""
        if seen is not None and isinstance(self.memory, ChatMemory):
            self.memory.add(MemoryEntry(self.now, "observation", seen.text))
            said = _said(decision.actions) if decision.answer is None else str(decision.answer)
            self.memory.add(MemoryEntry(self.now, "decision", said))
        else:
            self.remember_messages()
        for outcome in outcomes:
            told = ", ".join(f"{name}={value!r}" for name, value in outcome.arguments.items())
            came = outcome.result if outcome.ok else f"refused: {outcome.result}"
            text = f"{outcome.action}({told}): {came}"
            self.memory.add(MemoryEntry(self.now, "outcome", text[:600]))
        if decision.answer is not None and not isinstance(self.memory, ChatMemory):
            self.memory.add(MemoryEntry(self.now, "decision", f"You answered: {decision.answer}"[:600]))

    def remember_messages(self) -> None:
        """Keep in memory what arrived for the agent, once a step: at most `mailbox.MAX_INBOX` messages."""
        for message in Mailbox.of(self.model).take(self.unique_id):
            text = f"agent {message.sender}: {message.text}"
            self.memory.add(MemoryEntry(self.now, "message", text[:600]))

    def step(self) -> None:
        """Observe, decide and act alone: what a plain Mesa model activates. `LLMModel` lets all decide at once."""
        engine = engine_of(self.model)
        if has_moved_on(self.model, self.now):
            for message in Mailbox.of(self.model).deliver():
                engine.runlog.add(message, self.now)
            summarise(minded(self.model))
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
        """Give agents that live already a mind: each becomes one of this class, and keeps all it has.

        The class has to name theirs first, and the mind after it: `class Giver(MoneyAgent, Mind)`. The model goes on
        activating them as agents of the class before. Those that are born into this class get the same components,
        but for a callable `config`, which knows only who lives already.

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
    """Read what a rule, a person or an outside controller decided.

    Args:
        agent: Mesa `unique_id`.
        decided: A `Decision` or `Failure`, which stays what it is; an action or a list of them, an answer, or None for
            nothing.
        by: Who decided.
    """
    match decided:
        case Decision() | Failure():
            return decided
        case None:
            return Decision(agent, by=by)
        case ToolCall():
            return Decision(agent, actions=(decided,), by=by)
        case [ToolCall(), *_]:
            return Decision(agent, actions=tuple(decided), by=by)
        case []:
            return Decision(agent, by=by)
        case _:
            return Decision(agent, answer=decided, by=by)


def _done(box: ToolBox, call: ToolCall) -> Any:
    """Run an action, unless its own condition says that it cannot be done now.

    Raises:
        ToolError: If it cannot be done now, or the world refuses.
    """
    if call.name in box and not box[call.name].is_usable:
        raise ToolError(f"{call.name} cannot be done now.")
    return box.call(call)


def _said(actions: Iterable[ToolCall]) -> str:
    """Write actions as a model has to write them; nothing if there are none."""
    said = [{"action": call.name, "arguments": call.arguments} for call in actions]
    return canonical_json(said[0] if len(said) == 1 else {"actions": said}) if said else ""


def _with_text(seen: Observation, text: str) -> Observation:
    return replace(seen, text=text, cue=seen.cue or seen.text)


def _readers(box: ToolBox) -> Any:
    """Tell only of the tools that read: an answer is wanted, no action."""
    return tuple(spec for spec in box.specs if not spec.is_action)


@dataclass(frozen=True)
class AgentDesign:
    """A task-independent choice of the four components: any design runs in any model.

    Source:
        Shachi (2025): the four components and cross-task evaluation.
    """

    llm: str | LLM | None = None
    """What the agents think with; None: what the model says."""

    config: AgentConfig | None = None
    """Settings, style and allowed tools; the model's own personas are kept."""

    memory: str | Callable[[], Memory] | None = None
    """Kind of memory, or what makes one."""

    tools: tuple[Callable[..., Any], ...] = ()
    """The researcher's own functions, besides the model's."""

    def dress(self, agent: Any) -> None:
        """Give an agent the components this design chooses; who it is, it stays."""
        if self.config is not None:
            chosen = {name: getattr(self.config, name) for name in ("style", "tools", "settings", "adapter")}
            agent.config = agent.config.model_copy(update=chosen)
        if self.memory is not None:
            agent.memory = open_memory(self.memory)
        if self.tools:
            agent.tools = (*agent.tools, *checked_tools(self.tools))
