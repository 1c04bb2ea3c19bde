"""Agents that think: four components, four mixins, an ordinary Mesa agent made of them, and a respondent."""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import mesa

from mesa_llm.agents.conversion import check_components, enter, replaced_step_warning
from mesa_llm.agents.deliberation import DeliberationMixin
from mesa_llm.agents.mailbox import Mailbox
from mesa_llm.agents.memory_maintenance import maintain_memories
from mesa_llm.agents.news import with_news
from mesa_llm.agents.observation import join, without_refused
from mesa_llm.agents.strategies import is_plan
from mesa_llm.agents.text import message_text, plan_text, reason_text
from mesa_llm.agents.tools import ToolMixin
from mesa_llm.canonical import canonical_json
from mesa_llm.config import ConfigMixin
from mesa_llm.engine.activation import llm_agents
from mesa_llm.engine.plain import StepLog, engine_of, require_model
from mesa_llm.engine.reading.answers import SCALARS, plain_answer, written_answer
from mesa_llm.engine.reading.reasoning import CUT_MARK
from mesa_llm.engine.setup import require_methods
from mesa_llm.errors import ConfigError, ToolError
from mesa_llm.memory import ChatMemory, MemoryEntry, MemoryMixin, NoMemory, WindowMemory
from mesa_llm.records import ActionResult, Decision, Failure, Observation, Outcome, ToolCall
from mesa_llm.space import describe_surroundings
from mesa_llm.tools.tool import hidden_methods, marked_methods
from mesa_llm.tools.toolbox import ToolBox
from mesa_llm.tools.wording import Sentence, Wording, action_text, answer_text, result_text
from mesa_llm.world import Receiver, moment_of, unit_of

logger = logging.getLogger(__name__)

A = TypeVar("A", bound="Mind")

_FREE = frozenset({"consult", "query_for", "recorded", "step", "unit_in", "wake"})
"""Method names that actions may use: in an `LLMModel`, only the agents' own code calls these methods."""

UNREADABLE = frozenset({"Unparsed", "OffList", "Invalid", "BadReply"})
"""Kinds of failure in which a reply came, but no answer could be read in it."""


class LLMMixin(DeliberationMixin):
    """Lets an agent observe, decide and act through a language model, its rule twin or the random baseline."""

    __slots__ = ()

    reads_messages: ClassVar[bool] = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Use the mixin's `step`, whether the mixin comes before or after the Mesa class.

        Raises:
            ConfigError: If the class overrides a method that the engine calls, names an action like a method of the
                mixins, inherits an action that another base class hides, lacks one of the mixins, or has an async
                `rule`.
        """
        super().__init_subclass__(**kwargs)
        if inspect.iscoroutinefunction(cls.rule):
            raise ConfigError(f"{cls.__name__}.rule must not be async; write def rule(self, seen)")
        for name in ("resolve", "checked", "opened", "waits_by_itself"):
            if getattr(cls, name) is not getattr(LLMMixin, name):
                raise ConfigError(f"{cls.__name__}.{name}: the engine calls {name} of LLM agents; rename yours")
        mixins: list[type] = [LLMMixin, ConfigMixin, MemoryMixin, ToolMixin]
        for name in marked_methods(cls):
            if name not in _FREE and any(hasattr(mixin, name) for mixin in mixins):
                raise ConfigError(f"{cls.__name__}.{name}: LLM agents already have a method {name}; rename the action")
        for name, (origin, hider) in hidden_methods(cls).items():
            raise ConfigError(
                f"{cls.__name__}: {hider.__name__}.{name} hides the action {origin.__name__}.{name}; name "
                f"{origin.__name__} before {hider.__name__}, or write {name} = {origin.__name__}.{name} in the class"
            )
        lacking = ", ".join(mixin.__name__ for mixin in mixins if not issubclass(cls, mixin))
        if lacking and issubclass(cls, mesa.Agent):
            raise ConfigError(f"{cls.__name__} lacks {lacking}; inherit from Mind, which has all four mixins")
        steps = next(kind for kind in cls.__mro__ if "step" in vars(kind))
        if not issubclass(steps, LLMMixin):
            cls.step = LLMMixin.step
            if steps is not mesa.Agent and (warning := replaced_step_warning(cls, steps)):
                logger.warning(warning)

    def __repr__(self) -> str:
        """Return the class, id and name."""
        name = getattr(getattr(self, "config", None), "name", "")
        return f"<{type(self).__name__} {getattr(self, 'unique_id', '?')}{name and f': {name}'}>"

    # -- observe

    def observe(self) -> Observation:
        """Observe the world; reads only.

        An agent in one world observes that world; an agent in several observes all of them; an agent in none observes
        the agents and cells around it. Messages and news from other worlds follow. Override to show something else.
        """
        agent: Any = self
        worlds = self.worlds
        if not worlds:
            seen = describe_surroundings(agent)
        elif len(worlds) == 1:
            seen = self.observation_of(worlds[0])
        else:
            by_name = {world.name: self.observation_of(world) for world in worlds}
            if len(by_name) < len(worlds):
                names = ", ".join(world.name for world in worlds)
                raise ConfigError(f"{self!r} lives in worlds that share a name ({names}); give each a unique name")
            seen = join(by_name, worlds)
        return self.with_news(seen)

    def observation_of(self, world: Any) -> Observation:
        """Observe one world; reads only. Unless its rule twin decides, nothing is offered that would be refused."""
        seen = world.observe(self.unique_id)
        if not seen.options or self.opened.llm is None or engine_of(self.model).runlog.request_version == 1:
            return seen
        return without_refused(world, self.unique_id, seen)

    with_news = with_news

    # -- act

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Carry out a decision. Agents write to the world only here.

        Args:
            decision: The decision, checked against the observation. After a failure, the agent does nothing.
            seen: The observation, for memories that store the conversation.

        Returns:
            The outcome of each action, or of the answer. A refused action has its reason as the result and does not
            stop the others. An agent removed by one of its actions does nothing more.
        """
        if isinstance(decision, Failure):
            self.remember_messages()
            return []
        if done := getattr(self.model, "require_not_done", None):
            done(decision)
        agent: Any = self
        if (twins := getattr(self.model, "_twins", None)) and (twin := twins.get(type(self))) is not None:
            outcome = twin.outcome(self, decision, seen)
            if outcome is not None:
                return [outcome]
        outcomes: list[Outcome] = []
        if decision.has_answer:
            outcomes.append(self._deliver_answer(decision, seen or Observation(label=decision.label)))
        elif decision.actions:
            box: ToolBox = ToolBox.of(self, self.unique_id, self.worlds, agent.tools)
            is_checked = decision is self._resolved
            for call in decision.actions:
                if outcomes and agent not in agent.model.agents:  # removed by one of its actions
                    break
                try:
                    ok, returned = True, _run_action(box, call, is_checked=is_checked)
                except ToolError as error:
                    ok, returned = False, str(error)
                outcomes.append(outcome_of(self.unique_id, call.name, call.arguments, ok, returned, decision.label))
        self.remember(decision, outcomes, seen)
        return outcomes

    def _deliver_answer(self, decision: Decision, seen: Observation) -> Outcome:
        """Deliver an answer to the world that asked, and return the outcome."""
        try:
            ok, returned = True, self.receive(decision.answer, seen.label, seen.world)
        except ToolError as error:
            ok, returned = False, str(error)
        arguments = {"answer": plain_answer(decision.answer)}
        return outcome_of(self.unique_id, "answer", arguments, ok, returned, decision.label)

    def receive(self, answer: Any, label: str, world: str) -> Any:
        """Deliver a typed answer to the world that asked for it. Override to handle the agent's own questions.

        Args:
            answer: The answer, of the requested type.
            label: Label of the observation.
            world: Name of the world that asked; empty for the only world that receives answers, if there is one.

        Returns:
            The result, for the outcome.

        Raises:
            ToolError: If the world refuses the answer.
            ConfigError: If the world that asked is ambiguous.
        """
        receivers = [
            receiver for receiver in self.worlds if world in ("", receiver.name) and isinstance(receiver, Receiver)
        ]
        if len(receivers) > 1:
            names = ", ".join(receiver.name for receiver in receivers)
            raise ConfigError(f"{names} all receive answers; name one in the observation: Observation(world=…)")
        if world and not receivers:
            raise ConfigError(f"the observation asks for world {world!r}, which receives no answers here")
        return receivers[0].receive(self.unique_id, answer, label) if receivers else ""

    @property
    def _takes_answers(self) -> bool:
        """Whether the agent may be asked for typed answers: by its class, or by a world that receives them."""
        return type(self).receive is not LLMMixin.receive or any(isinstance(world, Receiver) for world in self.worlds)

    def remember(self, decision: Decision, outcomes: Iterable[Outcome], seen: Observation | None = None) -> None:
        """Remember messages, plan, decision and outcomes. A chat memory stores the whole observation."""
        memory = self.memory
        if type(memory) is NoMemory:
            return
        worlds = self.worlds
        world = seen.world if seen is not None else ""
        if not world and len(worlds) == 1:
            world = worlds[0].name
        moment = EntryMoment(
            self.now, world, _unit_in(worlds, world) if worlds else "step", _moment_in(worlds, world, self.model)
        )
        has_plan = bool(decision.text) and not decision.text.endswith(CUT_MARK) and is_plan(self._design_decides)
        is_conversation = ChatMemory in type(memory).__mro__  # isinstance is slow with protocol classes
        if seen is not None and is_conversation:
            decision_text = (
                written_answer(decision.answer, seen.answer) if decision.has_answer else _actions_text(decision.actions)
            )
            memory.add(moment.entry("observation", seen.text))
            if has_plan:
                memory.add(moment.entry("thought", decision.text[:600]))
            memory.add(moment.entry("decision", decision_text))
        else:
            self.remember_messages()
            if has_plan:
                memory.add(moment.entry("thought", plan_text(decision.text), is_sentence=True))
        written = tuple(outcomes)
        remembered = seen.remembered if seen is not None else ""
        sentences = tuple(
            [remembered if one.action == "answer" else self._wording_of(one.action, worlds) for one in written]
        )
        entries = partial(outcome_entries, written, sentences, moment, is_conversation=is_conversation)
        if type(memory) is WindowMemory and False not in [is_unchanging(outcome) for outcome in written]:
            memory.add(entries)
            return
        for entry in entries():
            memory.add(entry)

    def _wording_of(self, action: str, worlds: Sequence[Any]) -> Wording:
        """Return how the agent remembers one of its actions."""
        agent: Any = self
        return ToolBox.of(agent, agent.unique_id, worlds, agent.tools).wording(action)

    def unit_in(self, world: str = "") -> str:
        """Return a world's unit of time (`step`, `month`, …), or without a name the unit of all the agent's worlds."""
        return _unit_in(self.worlds, world)

    def moment_in(self, world: str = "") -> str:
        """Return the words for this moment that a world gives, such as `At 08:30`, or all of the agent's, or its model.

        Empty: memories say the unit and the step, `In month 3`.
        """
        return _moment_in(self.worlds, world, self.model)

    def remember_messages(self) -> None:
        """Remember the messages of this step once, up to `mailbox.MAX_INBOX` of them."""
        mailbox = Mailbox.of(self.model)
        if mailbox.is_empty:
            return
        moment = EntryMoment(self.now, "", self.unit_in(), self.moment_in())
        for message in mailbox.take(self.unique_id):
            text = message_text(mailbox.sender_name(self.model, message.sender), message.sender, message.text)
            self.memory.add(moment.entry("message", text, is_sentence=True))

    def wake(
        self, *, at: float | None = None, after: float | None = None, observation: Observation | None = None
    ) -> Any:
        """Decide at a time to come, together with all that are due in the same window; see `LLMModel.wake`.

        An agent sets its own timer in an action, or is woken by another's: `other.wake()`.

        Args:
            at: Time, in Mesa's unit (steps); None: see `after`.
            after: Time from now; None, and no `at`: now.
            observation: What it decides on; None: the result of its `observe()` then.

        Returns:
            The turn, which `cancel()` takes back.

        Raises:
            ConfigError: If the model is no `LLMModel`, or the time has passed.
        """
        wake = getattr(self.model, "wake", None)
        if wake is None:
            raise ConfigError(f"{type(self.model).__name__} wakes nobody; only the agents of an LLMModel are woken")
        return wake(self, at=at, after=after, observation=observation)

    def step(self) -> None:
        """Observe, decide and act alone, in plain Mesa models. In an `LLMModel` all agents decide together.

        Raises:
            ConfigError: If the model is an `LLMModel`.
        """
        engine = engine_of(self.model)
        if not isinstance(engine.runlog, StepLog):
            raise ConfigError(
                f"{type(self.model).__name__} lets all agents decide together in its own step(); do not override that "
                "or activate agents: what else happens in a step goes into start_step() and end_step() of the model"
            )
        if _has_moved_on(self.model, self.now):
            for message in Mailbox.of(self.model).deliver():
                engine.runlog.add(message, self.now)
            maintain_memories(llm_agents(self.model))
        try:
            seen = self.observe()
        except TypeError:
            require_methods([self])
            raise
        (decision,) = engine.gather([self], [seen])
        engine.runlog.add(decision, self.now)
        if isinstance(decision, Failure):
            engine.warn_of([decision], 1, self.now)
        for outcome in self.act(decision, seen):
            engine.runlog.add(outcome, self.now)


class Mind(LLMMixin, ConfigMixin, MemoryMixin, ToolMixin):  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
    """All four mixins, for any Mesa agent class: `class Citizen(Mind, CellAgent)`."""

    __slots__ = ()

    @classmethod
    def enter(cls: type[A], agents: Iterable[Any], **components: Any) -> list[A]:
        """Convert existing agents to this class. Each keeps its attributes.

        The class must inherit from theirs first and from `Mind` second: `class Giver(MoneyAgent, Mind)`. The model
        keeps activating the agents under their former class. Agents created in this class later get the same
        components, except for a callable `config`.

        Args:
            agents: Agents of this class's first base class.
            **components: `llm`, `config`, `memory` and `tools`, as for a new agent. A callable `config` is called with
                each agent.

        Raises:
            ConfigError: If an agent has another class, a component is unknown, or no provider is known for `llm`.
        """
        check_components(components)
        living = list(agents)
        for model in dict.fromkeys(agent.model for agent in living):
            require_model(model, components.get("llm"))
        for agent in living:
            if cls.__base__ is not type(agent):
                body = type(agent).__name__
                if isinstance(agent, Mind):
                    raise ConfigError(
                        f"agent {agent.unique_id} is a {body} and is converted already; set its llm, config, memory or "
                        "tools, or create a new model"
                    )
                if (base := cls.__base__) in set(map(type, living)):
                    raise ConfigError(
                        f"{body} cannot become {cls.__name__}, as {base.__name__} can; convert these alone: "
                        f"{cls.__name__}.enter(model.agents_by_type[{base.__name__}], …)"
                    )
                raise ConfigError(f"{body} cannot become {cls.__name__}; write class {cls.__name__}({body}, Mind)")
        return [enter(cls, agent, components) for agent in living]


class LLMAgent(Mind, mesa.Agent[Any]):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A Mesa agent that decides with a language model."""


def outcome_of(
    agent_id: int, action: str, arguments: Mapping[str, Any], ok: bool, returned: Any, label: str
) -> Outcome:
    """Return the outcome of an action or answer from its return value or its refusal."""
    if type(returned) is ActionResult:
        return Outcome(agent_id, action, arguments, ok, returned.text, label, returned.facts)
    return Outcome(agent_id, action, arguments, ok, returned, label)


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
        raise ToolError(reason_text("not_now", tool=call.name))
    return box.run(call) if is_checked else box.call(call)


def is_unchanging(outcome: Outcome) -> bool:
    """Check whether an outcome will be the same when somebody reads it later: texts and numbers are, lists may not."""
    arguments = outcome.arguments
    return type(outcome.result) is str and (not arguments or SCALARS.issuperset(map(type, arguments.values())))


class EntryMoment(NamedTuple):
    """When and where something happened."""

    time: int
    """The step."""

    world: str
    """Name of the world; empty: none, or several at once."""

    unit: str
    """The world's unit of time."""

    words: str
    """The world's own words for it; empty: unit and step."""

    def entry(self, kind: str, text: str, *, is_sentence: bool = False) -> MemoryEntry:
        """Return an entry of a memory."""
        return MemoryEntry(
            self.time, kind, text, world=self.world, unit=self.unit, is_sentence=is_sentence, moment=self.words
        )


def outcome_entries(
    outcomes: Sequence[Outcome],
    sentences: Sequence[Wording | Sentence],
    moment: EntryMoment,
    *,
    is_conversation: bool = False,
) -> list[MemoryEntry]:
    """Write outcomes as entries of a memory, a sentence each; a conversation holds answers already.

    Args:
        outcomes: The outcomes of a decision.
        sentences: How each is remembered: the wording of its action, or the sentence of the observation.
        moment: When and where it was.
        is_conversation: Whether the memory holds the answer as its agent wrote it.
    """
    entries: list[MemoryEntry] = []
    for outcome, sentence in zip(outcomes, sentences, strict=True):
        if isinstance(sentence, Wording):
            entries.append(moment.entry("outcome", action_text(sentence, outcome), is_sentence=True))
        elif not is_conversation:
            entries.append(moment.entry("decision", answer_text(sentence, outcome), is_sentence=True))
        elif text := (result_text(outcome.result) if outcome.ok else answer_text(sentence, outcome)):
            entries.append(moment.entry("outcome", text, is_sentence=True))
    return entries


def _actions_text(actions: Iterable[ToolCall]) -> str:
    """Write actions as JSON, in the form a model has to write them; empty if there are none."""
    entries = [
        f'{{"action":{canonical_json(call.name)},"arguments":{canonical_json(call.arguments)}}}' for call in actions
    ]
    return entries[0] if len(entries) == 1 else f'{{"actions":[{",".join(entries)}]}}' if entries else ""


def _unit_in(worlds: Sequence[Any], name: str) -> str:
    """Return the time unit of one of an agent's worlds, or without a name that of all of them."""
    return unit_of(*_worlds_named(worlds, name))


def _moment_in(worlds: Sequence[Any], name: str, model: Any) -> str:
    """Return the words for this moment of one of an agent's worlds, without a name of all of them, or of its model."""
    moment = getattr(worlds[0], "moment", "") if len(worlds) == 1 else moment_of(*_worlds_named(worlds, name))
    if not moment:
        moment = getattr(model, "moment", "")
    return moment if type(moment) is str else ""


def _worlds_named(worlds: Sequence[Any], name: str) -> Sequence[Any]:
    """Return an agent's world of a name; all without one, or if there is only one."""
    return worlds if not name or len(worlds) == 1 else [world for world in worlds if world.name == name]


def _has_moved_on(model: mesa.Model[Any, Any], step: int) -> bool:
    """Check whether a model without its own mailbox has started a new step. True once per step."""
    if isinstance(getattr(model, "mailbox", None), Mailbox) or _STEPS.get(model) == step:
        return False
    _STEPS[model] = step
    return True


_STEPS: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
"""Plain model → the last step in which one of its agents stepped."""


class Respondent(LLMAgent):
    """Somebody who answers the sheets of a `Questionnaire`, which is its model's `world`."""

    def act(self, decision: Decision | Failure, seen: Observation | None = None) -> list[Outcome]:
        """Hand in the answer; after a failure, report it, and the items of the sheet count as unanswered."""
        if isinstance(decision, Decision):
            self.model.world.weigh(self.unique_id, decision.label, decision.probabilities)
        else:
            is_unparsable, is_off_list = decision.kind in UNREADABLE, decision.kind == "OffList"
            self.model.world.fail(self.unique_id, decision.label, is_unparsable=is_unparsable, is_off_list=is_off_list)
        return super().act(decision, seen)
