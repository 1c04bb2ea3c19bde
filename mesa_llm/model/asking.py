"""Ask agents anywhere in a run: they decide, act, talk and are woken, and all of it is recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from types import MethodType
from typing import Any, ClassVar, Literal, overload

from mesa.time import Priority

from mesa_llm.agents import dialogue
from mesa_llm.agents.agent import LLMMixin
from mesa_llm.agents.dialogue import Dialogue, Until
from mesa_llm.agents.news import with_announcements
from mesa_llm.agents.rule_stage import RuleTwins, decisions_by_rule
from mesa_llm.engine.activation import Turn
from mesa_llm.engine.engine import Engine
from mesa_llm.engine.options import OnError
from mesa_llm.engine.setup import require_minds, require_rules
from mesa_llm.errors import ConfigError, Stopped, ToolError
from mesa_llm.model.agenda import Agenda, Waking
from mesa_llm.model.bridge import Bridge
from mesa_llm.model.step import ResumableModel
from mesa_llm.records import Decision, Failure, Observation, Outcome, ToolCall
from mesa_llm.runlog.log import RunLog


class AskingModel(ResumableModel):
    """A model whose agents may be asked at any time; `StagedModel` adds the stages of a step."""

    wake_window: ClassVar[float] = 1.0
    """Length of the windows of time in which agents that are woken decide together: 1 (a step), 0.5, 0.25, …"""

    engine: Engine
    runlog: RunLog

    def __init__(self, *, scenario: Any, bridge: Bridge | None, on_error: OnError) -> None:
        """Create what agents are asked with; see `LLMModel`."""
        super().__init__(scenario=scenario)
        self.bridge = bridge or Bridge()
        self.on_error: OnError = on_error
        self.last_decisions: dict[int, Decision | Failure] = {}
        self.last_outcomes: dict[int, list[Outcome]] = {}
        self._outcomes_of = 0  # the step of `last_outcomes`
        self._agenda = Agenda(self.wake_window)
        self._acted: dict[int, Any] = {}
        self._carried_out: list[Decision] = []  # decisions of this step that `ask` has carried out
        self._is_carrying_out = False
        self._twins: dict[type, RuleTwins] = {}
        self._failed: list[Failure] = []
        self._step_decisions: list[Decision | Failure] = []
        self._n_outcomes = 0
        self._refusals: Counter[str] = Counter()
        self._known_kinds: set[type] = set()

    @overload
    def ask(
        self,
        agents: Sequence[Any],
        observations: Sequence[Observation] | None = None,
        *,
        together: Literal[False] = ...,
    ) -> list[Decision | Failure]: ...

    @overload
    def ask(
        self, agents: Sequence[Any], observations: Sequence[Observation] | None = None, *, together: Literal[True]
    ) -> list[Waking]: ...

    def ask(
        self, agents: Sequence[Any], observations: Sequence[Observation] | None = None, *, together: bool = False
    ) -> list[Decision | Failure] | list[Waking]:
        """Let agents decide together and carry out their decisions in order, anywhere in a run.

        It works in the hooks of a step, inside an action, and at the time of an event. Decisions and outcomes are
        recorded as those of the current step, enter the agents' memories, and are replayed and resumed like all
        others. While agents decide, `await agent.consult(…)` asks another language model.

        Args:
            agents: The agents.
            observations: Observation of each; None: its own `observe()`.
            together: Ask them together with all who are asked so by other events of the same window of time
                (`wake_window`), so that all wait once: those without an observation observe when the window ends, on
                the same state; all decide, and then act in the order in which they were asked. One who is asked twice
                without an observation decides once. Otherwise they decide and act now, and the next event waits.

        Returns:
            Decision or failure of each, in the order of the agents, as `decide` returns it; `last_outcomes` has what
            came of them. If they are asked together: their turns, which `cancel()` takes back, as of `wake`.

        Raises:
            ConfigError: If an agent is not an LLM agent.
        """
        if together:
            turns = zip(agents, observations or [None] * len(agents), strict=True)
            return [self.wake(agent, observation=seen) for agent, seen in turns]
        self._check_agents(agents)
        seen = self._views_of([Turn(agent) for agent in agents]) if observations is None else list(observations)
        results = self.decide(agents, seen)
        self._begin_outcomes()
        with self._writing():
            self._carry_out(agents, seen, results)
        self._carried_out += [decision for decision in results if isinstance(decision, Decision)]
        return results

    def decide(
        self, agents: Sequence[Any], observations: Sequence[Observation] | None = None
    ) -> list[Decision | Failure]:
        """Let agents decide together and record their decisions, which nobody carries out; the first half of `ask`.

        Args:
            agents: The agents.
            observations: Observation of each; None: its own `observe()`.

        Returns:
            Decision or failure of each, in the order of the agents; with `on_error="rule"`, the decision of its rule
            twin (its rule-based counterpart) instead of a failure.

        Raises:
            ConfigError: If an agent is not an LLM agent.
        """
        self._check_agents(agents)
        observations = [agent.observe() for agent in agents] if observations is None else observations
        states = self.random.getstate(), self.rng.bit_generator.state
        try:
            if self._stopping and not self._is_writing:
                raise Stopped("stopped before agents decided; the next step() resumes this one")
            results = self._gather(agents, observations)
        except BaseException:
            self._stopping &= self._in_step  # an outside controller has been notified now
            self.random.setstate(states[0])
            self.rng.bit_generator.state = states[1]
            raise
        now = self.now
        if Failure not in set(map(type, results)):
            self.runlog.add_all(results, now)
        else:
            for index, decision in enumerate(results):
                self.runlog.add(decision, now)
                if isinstance(decision, Failure):
                    self._failed.append(decision)
                    if self.on_error == "rule":
                        seen = observations[index]
                        results[index] = agents[index].rule_decision(seen).labelled(seen.label)
                        self.runlog.add(results[index], now)
        self._step_decisions += results
        return results

    def converse(
        self,
        agents: Sequence[Any],
        *,
        turns: int | None = None,
        until: Until | None = None,
        topic: str | Callable[[Any], str] = "",
        sentences: int | None = 2,
    ) -> Dialogue:
        """Let agents talk with each other now, one after another, anywhere in a run.

        Each turn is a decision with a text as its answer: `await agent.decide(…)`, or the language model, says what
        the agent says; under `llm="rule"`, its `rule_utterance(conversation)` does. What is said is recorded, replayed
        and resumed like all decisions, is heard by the others at once, and enters the memories of all in the end.

        Args:
            agents: Who talks, in the order in which they speak.
            turns: Maximum number of turns; None: two for each agent.
            until: Says after each turn whether the conversation is over; None: it goes on to the last turn.
            topic: What it is about: a text that all of them read; or a function that returns what an agent reads, such
                as what it alone knows, or where its group meets.
            sentences: Maximum number of sentences of what is said in a turn; None: no limit. A language model that
                says more, repeats what has been said or what it was told, or speaks for somebody else, is asked once
                more, with the reason; then its line is cut, or it is silent (see `mesa_llm.agents.talk`).

        Returns:
            The conversation. A turn in which nothing could be said is among its `failures`, one in which somebody was
            silent among its `silences`; a conversation in which everybody's first turn failed is over.

        Raises:
            ConfigError: If fewer than two agents talk, or one has no mind.
        """
        return self.converse_in_groups([agents], turns=turns, until=until, topic=topic, sentences=sentences)[0]

    def converse_in_groups(
        self,
        groups: Iterable[Sequence[Any]],
        *,
        turns: int | None = None,
        until: Until | None = None,
        topic: str | Callable[[Any], str] = "",
        sentences: int | None = 2,
    ) -> list[Dialogue]:
        """Let several groups of agents talk at the same time: one request of each is in flight at once.

        Args:
            groups: The agents of each conversation; no agent is in two of them.
            turns: As for `converse`.
            until: As for `converse`.
            topic: As for `converse`.
            sentences: As for `converse`.

        Returns:
            The conversations, in the order of the groups.

        Raises:
            ConfigError: If an agent is in two groups, or as for `converse`.
        """
        conversations = [dialogue.begin(group, topic, sentences) for group in groups]
        everybody = [agent for talk in conversations for agent in talk.agents]
        if len(set(everybody)) < len(everybody):
            raise ConfigError("an agent can be in one conversation at a time; it is in two of the groups")
        self._check_agents(everybody)
        with self._writing():
            going_on = conversations
            while going_on := [
                talk
                for talk in going_on
                if not talk.is_over and talk.n_turns < (2 * len(talk.agents) if turns is None else turns)
            ]:
                speakers = [talk.speaker for talk in going_on]
                decisions = self.decide(speakers, [dialogue.turn_of(talk) for talk in going_on])
                for talk, decision in zip(going_on, decisions, strict=True):
                    for record in dialogue.take_turn(talk, decision):
                        self._n_outcomes += isinstance(record, Outcome)
                        self.runlog.add(record, self.now)
                    if until is not None and not talk.is_over:
                        talk.is_over = until(talk)
            for talk in conversations:
                dialogue.remember(talk)
                self._acted |= {agent.unique_id: agent for agent in talk.agents}
        return conversations

    def wake(
        self,
        agent: Any,
        *,
        at: float | None = None,
        after: float | None = None,
        observation: Observation | None = None,
    ) -> Waking:
        """Let an agent decide at a time to come, whether or not the activation chooses it.

        All that are due in one window of time (`wake_window`) decide together when it ends, and act in the order of
        their times: a window that ends with a step, in the first stage of the step.

        Args:
            agent: The agent.
            at: Time, in Mesa's unit (steps); None: see `after`.
            after: Time from now; None, and no `at`: now, so that it decides when the present window ends.
            observation: What it decides on; None: the result of its `observe()` then.

        Returns:
            The turn, which `cancel()` takes back.

        Raises:
            ConfigError: If the time has passed, or both are given.
        """
        if at is not None and after is not None:
            raise ConfigError("give at= or after=, not both")
        self._check_agents([agent])
        waking = Waking(self.time + (after or 0) if at is None else at, agent, observation)
        ends = self._agenda.add(waking, self.time)
        if ends is not None:
            self.schedule_event(self._ask_woken, at=ends, priority=Priority.LOW)
        return waking

    def schedule_event(self, function: Callable[..., Any], **when: Any) -> Any:
        """Schedule an event, as Mesa does; a lambda or a function within a function also lives until it is called.

        Mesa refuses a lambda, and leaves out a function that nothing else refers to when its time comes.
        """
        if isinstance(function, MethodType) or not callable(function):  # a method goes with its agent
            return super().schedule_event(function, **when)
        kept = partial(function)
        event = super().schedule_event(kept, **when)
        vars(event)["kept"] = kept
        return event

    def _ask_woken(self) -> None:
        """Ask the agents of a window that ends between two steps."""
        turns = [turn for turn in self._agenda.take(self.time) if turn.agent in self.agents]
        if turns and self.running:
            seen = self._views_of(turns)
            keys_of(turns, seen)  # raises if two are the same
            self.ask([turn.agent for turn in turns], seen)

    def act_by_hand(self, agent: Any, call: ToolCall) -> list[Outcome]:
        """Let an agent carry out an action that somebody outside has chosen; recorded like its own decisions.

        Use `inject(ManualAction(…))`, which is also recorded and repeated in a replay.

        Args:
            agent: The agent.
            call: The action.

        Raises:
            ToolError: If the agent could not decide so now.
        """
        seen = agent.observe()
        decision = agent.checked(call, seen, "outside").labelled(seen.label)
        if isinstance(decision, Failure):
            raise ToolError(decision.reason)
        self.runlog.add(decision, self.now)
        self._begin_outcomes()
        with self._writing():
            (outcomes,) = self._carry_out([agent], [seen], [decision])
        return outcomes

    def require_not_done(self, decision: Any) -> None:
        """Check that a decision, which is to be carried out by hand, has not been carried out by `ask`.

        Raises:
            ConfigError: If it has.
        """
        if not self._is_carrying_out and any(decision is done for done in self._carried_out):
            raise ConfigError(
                "ask() has carried this decision out already; leave out agent.act() and apply(), or use decide(), "
                "which only asks"
            )

    def _gather(self, agents: Sequence[Any], observations: Sequence[Observation]) -> list[Decision | Failure]:
        """Let agents decide, except those that have spent their allowance."""
        self._twins = twins = dict[type, RuleTwins]()
        if self.decides_by_rule and (decided := decisions_by_rule(agents, observations, twins)) is not None:
            self.engine.count_at_once(agents, observations, decided)
            return decided
        twins.clear()
        spent = self.engine.allowances.failures(agents) if self.engine.allowances else {}
        if not spent:
            return self.engine.gather(agents, observations)
        asked = [
            (agent, seen) for agent, seen in zip(agents, observations, strict=True) if agent.unique_id not in spent
        ]
        decided = iter(self.engine.gather([agent for agent, _ in asked], [seen for _, seen in asked]))
        results: list[Decision | Failure] = []
        for agent, seen in zip(agents, observations, strict=True):
            failure = spent.get(agent.unique_id)
            if failure is None:
                results.append(next(decided))
            else:
                self.engine.count_failure("decide")
                results.append(failure.labelled(seen.label))
        return results

    @property
    def decides_by_rule(self) -> bool:
        """Whether all agents without a language model of their own are left to their rule twins."""
        return False

    def _views_of(self, turns: Sequence[Turn]) -> list[Observation]:
        """Return the observations of turns, including news from outside the run."""
        has_announcements = self.bridge.has_announcements
        views: list[Observation] = []
        for agent, observation in turns:
            seen = agent.observe() if observation is None else observation
            if has_announcements:
                worlds = agent.worlds if isinstance(agent, LLMMixin) else ()
                seen = with_announcements(agent, [world.name for world in worlds], seen)
            views.append(seen)
        return views

    def _check_agents(self, agents: Sequence[Any]) -> None:
        """Check the classes of agents that are asked for the first time, before any request is sent and paid for."""
        if not self._known_kinds.issuperset(map(type, agents)):
            require_minds(agents)
            if self.on_error == "rule":
                require_rules(agents, LLMMixin.rule)
            self._known_kinds.update(map(type, agents))

    def _carry_out(
        self, agents: Sequence[Any], observations: Sequence[Observation], decisions: Sequence[Decision | Failure]
    ) -> list[list[Outcome]]:
        """Let agents act in order, and record the outcomes."""
        results: list[list[Outcome]] = []
        now, living, last_outcomes, add = self.now, self.agents, self.last_outcomes, self.runlog.add
        twins = {kind: twin for kind, twin in self._twins.items() if kind.act is LLMMixin.act}
        was_carrying_out, self._is_carrying_out = self._is_carrying_out, True
        try:
            for agent, observation, decision in zip(agents, observations, decisions, strict=True):
                if agent not in living:  # agents that acted before it may have removed it
                    outcomes: list[Outcome] = []
                else:
                    twin = twins.get(type(agent))
                    outcome = twin and twin.outcome(agent, decision, observation)
                    outcomes = [outcome] if outcome else agent.act(decision, observation)
                agent_id = agent.unique_id
                self._acted[agent_id] = agent
                self.last_decisions[agent_id] = decision
                if agent_id in last_outcomes:
                    last_outcomes[agent_id].extend(outcomes)
                else:
                    last_outcomes[agent_id] = list(outcomes)
                self._n_outcomes += len(outcomes)
                for outcome in outcomes:
                    if not outcome.ok:
                        self._refusals[outcome.action] += 1
                    add(outcome, now)
                results.append(outcomes)
        finally:
            self._is_carrying_out = was_carrying_out
        return results

    def _begin_outcomes(self) -> None:
        """Forget the outcomes of an earlier step."""
        if self._outcomes_of != self.now:
            self._outcomes_of, self.last_outcomes = self.now, {}

    @contextmanager
    def _run(self) -> Generator[None]:
        with super()._run(), self.engine.interrupts_handled():
            yield

    def _writing(self) -> AbstractContextManager[None]:
        """Mark a block that writes to the model, which must not be stopped, since its changes cannot be undone."""
        return _Writing(self)

    @property
    def _is_to_stop(self) -> bool:
        """Whether to stop the next request; stopping a run does not affect requests made outside of steps."""
        return self._stopping and not self._is_writing and (self._in_step or self._stages is not None)

    @property
    def n_refused(self) -> int:
        """Number of actions and answers refused by the worlds so far."""
        return self._refusals.total()

    @property
    def n_outcomes(self) -> int:
        """Number of actions and answers that reached the worlds so far."""
        return self._n_outcomes

    @property
    def refusals(self) -> Mapping[str, int]:
        """Number of refusals by the worlds so far, by action (`answer` for a typed answer), the most frequent first."""
        return dict(self._refusals.most_common())


class _Writing(AbstractContextManager[None]):
    """A block that writes to a model: several a step, where a generator takes three times as long."""

    __slots__ = ("_deferral", "_model", "_was_writing")

    def __init__(self, model: Any) -> None:
        self._model = model

    def __enter__(self) -> None:
        model = self._model
        self._was_writing, model._is_writing = model._is_writing, True
        try:
            self._deferral = model.engine.defer_interrupts()
        except BaseException:
            model._is_writing = model._in_step
            raise

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        model, is_whole = self._model, False
        try:
            model.engine.end_deferral(self._deferral)
            is_whole = kind is None
        finally:  # the guard of the step reads whether an error came while it was written
            model._is_writing = self._was_writing if is_whole else model._in_step


def keys_of(turns: Sequence[Turn], observations: Sequence[Observation]) -> list[Any]:
    """Return the key of each turn: its agent, or (agent, label) if the agent has several turns."""
    counts = Counter(turn.agent.unique_id for turn in turns)
    keys = [
        turn.agent if counts[turn.agent.unique_id] == 1 else (turn.agent, observation.label)
        for turn, observation in zip(turns, observations, strict=True)
    ]
    if len(set(keys)) < len(keys):
        raise ConfigError("an agent has several turns with the same label; give each Observation its own label=")
    return keys
