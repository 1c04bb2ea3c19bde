"""Run a model step in stages: the agents of a stage observe and decide together, then act in order."""

from __future__ import annotations

import time as clock
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal

from mesa.datacollection import DataCollector

from mesa_llm.agents.agent import LLMMixin
from mesa_llm.agents.deliberation import as_decision
from mesa_llm.agents.mailbox import Mailbox
from mesa_llm.agents.memory_maintenance import maintain_memories
from mesa_llm.engine.activation import Activation, Stage, Turn, llm_agents, turns_of
from mesa_llm.engine.engine import Engine
from mesa_llm.engine.gc_pause import gc_paused, gc_running
from mesa_llm.engine.options import OnError
from mesa_llm.engine.setup import require_parts
from mesa_llm.errors import ConfigError, DecisionError
from mesa_llm.model.asking import AskingModel, keys_of
from mesa_llm.model.bridge import Bridge
from mesa_llm.model.options import activation_for
from mesa_llm.model.schedule import WorldSchedule
from mesa_llm.records import Decision, Event, Failure, Observation, Outcome, Usage
from mesa_llm.runlog.log import RunLog
from mesa_llm.text import counted
from mesa_llm.world import Crowded, World, events_of, tuple_of_worlds

USAGE = {
    "calls": "step_calls",
    "tokens": "step_tokens",
    "dollars": "step_dollars",
    "failures": "step_failures",
    "seconds": "step_seconds",
}
"""Columns added to every DataCollector of an LLM model; they are not part of the digest."""


class StagedModel(AskingModel):
    """A model whose step is a series of stages; `LLMModel` adds the language models."""

    worlds: tuple[World, ...] = ()
    schedule: WorldSchedule | None = None
    _parts: ClassVar[Mapping[str, type]] = {
        "engine": Engine,
        "runlog": RunLog,
        "mailbox": Mailbox,
        "bridge": Bridge,
        "schedule": WorldSchedule,
    }

    max_stages: ClassVar[int] = 100
    """Maximum number of stages that `next_stage` may add to a step."""

    goes_on_after_failures: ClassVar[bool] = False
    """Whether `next_stage` is called although every decision of a stage has failed."""

    messages_arrive: ClassVar[Literal["next_step", "next_stage"]] = "next_step"
    """When agents read messages: in the next step, or in the next stage of a step, so that they talk, then decide."""

    def __init__(
        self,
        scenario: Any,
        *,
        worlds: Sequence[World],
        activation: Activation | str,
        bridge: Bridge | None,
        on_error: OnError,
    ) -> None:
        """Create the parts of a step; see `LLMModel`."""
        super().__init__(scenario=scenario, bridge=bridge, on_error=on_error)
        self.worlds = tuple_of_worlds(worlds)
        self.activation = activation_for(activation)
        self.mailbox = Mailbox()
        self.failed_agents: list[Any] = []
        self._n_stages_added = 0
        self._usage_before, self._step_usage, self._step_start = Usage(), Usage(), 0.0
        self.step_seconds = 0.0
        self._datacollector: DataCollector | None = None
        self._is_set_up = False

    def step(self) -> None:
        """Let all due agents decide together and act in order; does nothing if an event has ended the run."""
        if not self.running and self._stages is None:
            return
        with gc_paused():
            self.begin_step()
            while self._stages:
                self._act(self._decide())
                if self._stages:
                    with gc_running():  # the observations of this stage are freed by now
                        self._stop_if_interrupted()
            living = self.agents
            maintain_memories([agent for agent in self._acted.values() if agent in living])
            self._acted = {}
            self._finish_step()
        self._stop_if_interrupted()

    def begin_step(self) -> None:
        """Deliver messages and news, and draw the stages; does nothing if the step has begun or the run is over."""
        if self._stages is not None or not self.running:
            return
        self._require_set_up()
        self._step_start = clock.perf_counter()
        self._usage_before = self.engine.usage
        self._n_stages_added = 0
        self._begin_outcomes()
        with self._writing():
            self._deliver()
            self.start_step()
            if self.schedule is not None:
                for agent in llm_agents(self):
                    self.schedule.enter(agent)
            woken = self._agenda.take(self.time)
            stages = [woken, *(turns_of(stage) for stage in activation_for(self.activation)(self))]
            if self.schedule is not None:
                stages = [[turn for turn in stage if self.schedule.includes(turn.agent.unique_id)] for stage in stages]
        self._stages = [stage for stage in stages if stage]
        if self.now == 1 and not self.agents:
            self.engine.warn("step 1: the model has no agents; their __init__ must call super().__init__(model)")

    def _require_set_up(self) -> None:
        """Check, once, that nothing hides a part of the model."""
        if not self._is_set_up:
            tuple_of_worlds(self.worlds)
            require_parts(self, self._parts)
            self._is_set_up = True

    def _open_interval(self) -> None:
        if type(self).start_interval is not StagedModel.start_interval or "start_interval" in vars(self):
            with self._writing():
                self.start_interval()

    def start_interval(self) -> None:
        """Override to do something at the beginning of an interval, before its events and the step that ends it."""

    def _deliver(self) -> None:
        """Deliver messages and news of other worlds."""
        self._deliver_messages()
        for event in self.bridge.start_step(self.now):
            self.runlog.add(event, self.now)

    def _deliver_messages(self) -> None:
        """Deliver the messages sent so far, and record them."""
        for message in self.mailbox.deliver(keeps_unread=self.messages_arrive == "next_stage"):
            self.runlog.add(message, self.now)

    def start_step(self) -> None:
        """Override to do something before agents are activated, such as changing their worlds."""

    @property
    def present_worlds(self) -> tuple[World, ...]:
        """Worlds that agents live in now: the one that the schedule visits, or all."""
        return self.worlds if self.schedule is None else self.schedule.present(self.worlds)

    @property
    def ending_worlds(self) -> tuple[World, ...]:
        """Worlds whose step ends with this one; override to change the default, the present worlds."""
        return self.present_worlds

    @property
    def visit_length(self) -> int:
        """Length by which this step advances the schedule's visit; override to count units other than steps."""
        return 1

    def _stop_if_interrupted(self) -> None:
        """Raise a Ctrl-C that was deferred during a write to the model."""
        if self.engine.is_interrupted:
            self.engine.is_interrupted = False
            raise KeyboardInterrupt

    def observations(self) -> dict[Any, Observation]:
        """Return the observations of the due agents: the first half of a step, for an outside controller.

        Returns:
            Agent → observation, in the order in which they will act; empty if no agent acts in this step, or the run is
            over. An agent with several turns at once has the keys `(agent, label)`.

        Raises:
            ConfigError: If an earlier step was broken off for good.
        """
        turns, seen = self._look()
        return dict(zip(keys_of(turns, seen), seen, strict=True))

    def _look(self) -> tuple[list[Turn], list[Observation]]:
        """Let the due agents observe, unless they have already."""
        if self._broken_off:
            raise ConfigError(self._broken_off)
        self.begin_step()
        self._stop_if_interrupted()
        turns = self.due_turns
        if self._seen is None:
            self._check_agents([turn.agent for turn in turns])
            # isinstance with a protocol is slow, so one world of each class is checked for all of its class
            one_of_each = {type(world): world for world in self.present_worlds}
            crowded = {kind for kind, world in one_of_each.items() if isinstance(world, Crowded)}
            expecting: list[Any] = [world for world in self.present_worlds if type(world) in crowded]
            for world in expecting:
                world.expect([turn.agent.unique_id for turn in turns if _looks_at(turn, world)])
            self._seen = self._views_of(turns)
            if self._stages:
                self._stages[0] = turns
        return turns, self._seen

    def apply(self, decisions: Mapping[Any, Any]) -> dict[Any, list[Outcome]]:
        """Carry out the decisions of an outside controller: the second half of a step.

        Args:
            decisions: Agent (or its id; `(agent, label)` if it has several turns) → an action (`ToolCall`), a list of
                actions, a typed answer, or a result of `decide`; agents left out do nothing.

        Returns:
            Outcomes by the keys of `observations`. An invalid decision (an action that is not offered, arguments or an
            answer of the wrong type) fails as for a language model: none of it is carried out, and each of its actions
            is returned as refused, with the reason.

        Raises:
            ConfigError: If an agent is not due; nothing is changed then.
        """
        with self._alone():
            self._require_outside()
            keys = list(self.observations())
            by_key = {_id_key(key): decision for key, decision in decisions.items()}
            if strangers := set(by_key) - {_id_key(key) for key in keys}:
                names = ", ".join(sorted(" ".join(map(str, stranger)) for stranger in strangers))
                raise ConfigError(f"not due in this step: agents {names}; see observations()")
            recorded = {id(decision) for decision in self._step_decisions}
            results = [
                self._from_outside(turn, seen, by_key.get(_id_key(key)), recorded)
                for turn, seen, key in zip(self.due_turns, self._seen or (), keys, strict=True)
            ]
            try:
                outcomes = self._act(results)
            except BaseException as error:
                self._end_broken(error)
                raise
            if self._stages is not None and not self._stages:  # also if an action has just ended the run
                self._mesa_step()
            self._stop_if_interrupted()
        return {
            key: outcome_list or _refusals(decision, by_key.get(_id_key(key)))
            for key, outcome_list, decision in zip(keys, outcomes, results, strict=True)
        }

    def _from_outside(self, turn: Turn, seen: Observation, raw: Any, recorded: Collection[int]) -> Decision | Failure:
        """Check and record the decision of an outside controller, unless `decide` made it, by its `id`."""
        self.require_not_done(raw)
        if id(raw) in recorded and (raw.agent, raw.label) == (turn.agent.unique_id, seen.label):
            return raw
        checked = turn.agent.checked(raw, seen, "outside").labelled(seen.label)
        self.runlog.add(checked, self.now)
        if isinstance(checked, Failure):
            self.engine.count_failure("decide")
        return checked

    @property
    def due_turns(self) -> list[Turn]:
        """Turns of the current stage, in acting order, without agents that were removed before it began."""
        stage = self._stages[0] if self._stages else []
        if self._seen is not None:
            return list(stage)
        living = self.agents
        return [turn for turn in stage if turn.agent in living]

    @property
    def due(self) -> list[Any]:
        """Agents of the current stage, in acting order, once for each turn."""
        return [turn.agent for turn in self.due_turns]

    def _decide(self) -> list[Decision | Failure]:
        turns, seen = self._look()
        agents = [turn.agent for turn in turns]
        if len(set(agents)) < len(agents):
            keys_of(turns, seen)  # raises if two are the same
        return self.decide(agents, seen)

    def _act(self, decisions: Sequence[Decision | Failure]) -> list[list[Outcome]]:
        """Let the agents of the current stage act."""
        turns, observations = self.due_turns, self._seen or []
        with self._writing():
            self._seen = None
            was_last = self._stages is not None and len(self._stages) == 1
            if self._stages:
                self._stages.pop(0)
            results = self._carry_out([turn.agent for turn in turns], observations, decisions)
            self.failed_agents = [
                turn.agent for turn, decision in zip(turns, decisions, strict=True) if type(decision) is Failure
            ]
            if self.messages_arrive == "next_stage":
                self._deliver_messages()
            if was_last and (self.goes_on_after_failures or len(self.failed_agents) < len(turns)):
                self._add_stage([turn.agent for turn in turns])
        return results

    def _add_stage(self, acted: list[Any]) -> None:
        """Add the stage that `next_stage` returns, if it does.

        Raises:
            ConfigError: If it has added `max_stages` to this step.
        """
        turns = turns_of(self.next_stage(acted))
        if not turns:
            return
        self._n_stages_added += 1
        if self._n_stages_added > self.max_stages:
            raise ConfigError(
                f"step {self.now}: {type(self).__name__}.next_stage() has added {self.max_stages} stages and goes on; "
                "let it return [] when the step is over (failed_agents says who failed), or raise max_stages"
            )
        self._stages = [turns]

    def next_stage(self, acted: list[Any]) -> Stage:
        """Override to add stages after those of the activation; an empty stage ends the step.

        `self.failed_agents` are those of them whose decision failed. If all did, the step ends without asking, unless
        `goes_on_after_failures`. A step has at most `max_stages` of these stages.

        Args:
            acted: Agents that have just acted, once for each turn.

        Returns:
            Agents, or turns with their observations.
        """
        return []

    def end_step(self) -> None:
        """Override to do something after all agents have acted."""

    def _finish_step(self) -> None:
        self._stages = None
        with self._writing():
            self.end_step()
            length = self.visit_length
            events: list[Event] = [event for world in self.ending_worlds for event in events_of(world)]
            for event in self.bridge.publish(events):
                self.runlog.add(event, self.now)
            usage = self.engine.usage
            self._step_usage = Usage() if usage is self._usage_before else usage - self._usage_before
            self.step_seconds = clock.perf_counter() - self._step_start
            if self._datacollector is not None:
                if self.now <= 2:  # what step() itself collects shows in the next step
                    self._warn_of_rows_collected_twice(self._datacollector)
                self._datacollector.collect(self)
            self.runlog.end_step(self.now, {} if self.runlog.is_light else self._collected())
            if self.schedule is not None and not self.schedule.advance(length, self.worlds):
                self.running = False
        self._is_over = True
        failed, n_decisions = self._failed, len(self._step_decisions)
        self._failed, self._step_decisions, self._carried_out = [], [], []
        if failed:
            self.engine.warn_of(failed, n_decisions, self.now)
        if failed and self.on_error == "raise":
            reasons = "; ".join(f"agent {f.agent}: {f.kind}: {f.reason}" for f in failed[:5])
            raise DecisionError(f"{counted(len(failed), 'decision')} failed in step {self.now}: {reasons}")

    def _warn_of_rows_collected_twice(self, collector: DataCollector) -> None:
        """Warn once if the model calls `collect` in `step` or `end_step`, as plain Mesa models must."""
        times = [*vars(collector).get("_collection_steps", ())[-2:], self.time]
        if len(set(times)) < len(times):
            self.engine.warn_once(
                f"{type(self).__name__} collects each step twice: an LLMModel collects by itself at the end of a step; "
                "leave datacollector.collect(self) out of step() and end_step()"
            )

    def _collected(self) -> dict[str, Any]:
        """Return the data collector's row of this step, without usage."""
        if self._datacollector is None:
            return {}
        fields = vars(self._datacollector)
        cost_attributes = set(USAGE.values())
        reporters = fields["model_reporters"]
        costs = {
            name for name, reporter in reporters.items() if isinstance(reporter, str) and reporter in cost_attributes
        }
        row = {name: values[-1] for name, values in fields["model_vars"].items() if name not in costs and values}
        if agents := fields.get("_agent_records", {}).get(self.time):
            row["agents"] = list(agents)
        if by_type := fields.get("_agenttype_records", {}).get(self.time):
            row["agents_by_type"] = {kind.__qualname__: list(records) for kind, records in by_type.items()}
        return row

    def stop(self, *, gives_up: bool = True) -> None:
        """Stop the run from any thread; a step that is still being decided is undone.

        A step whose agents are acting is finished first, with all its requests.

        Args:
            gives_up: Whether to cancel the requests in flight; else no new ones are sent, but their replies, which
                cost money, are awaited.
        """
        super().stop()
        if not self._is_writing:
            (self.engine.stop if gives_up else self.engine.finish)()

    # -- results of a step

    @property
    def datacollector(self) -> Any:
        """Mesa's data collector, extended by calls, tokens, dollars, failures and seconds of each step."""
        return self._datacollector

    @datacollector.setter
    def datacollector(self, collector: DataCollector) -> None:
        for name, attribute in USAGE.items():
            collector.model_reporters.setdefault(name, attribute)
            collector.model_vars.setdefault(name, [])
        self._datacollector = collector

    @property
    def step_calls(self) -> int:
        """Number of live replies in the last step."""
        return self._step_usage.calls

    @property
    def step_tokens(self) -> int:
        """Number of tokens read and written in the last step."""
        return self._step_usage.tokens

    @property
    def step_dollars(self) -> float:
        """US dollars spent in the last step."""
        return self._step_usage.dollars

    @property
    def step_failures(self) -> int:
        """Number of failed decisions in the last step."""
        return self._step_usage.failures


def _looks_at(turn: Turn, world: World) -> bool:
    """Check whether an agent observes this world itself in its turn."""
    agent = turn.agent
    return turn.observation is None and isinstance(agent, LLMMixin) and any(own is world for own in agent.worlds)


def _id_key(key: Any) -> Any:
    """Replace the agent in a key by its id."""
    agent, *label = key if isinstance(key, tuple) else (key,)
    return (getattr(agent, "unique_id", agent), *label)


def _refusals(decision: Decision | Failure, raw: Any) -> list[Outcome]:
    """Return the actions of an invalid decision as refused outcomes, for an outside controller."""
    if not isinstance(decision, Failure) or isinstance(raw, Failure):
        return []
    decided = as_decision(decision.agent, raw, decision.by)
    calls = decided.actions if isinstance(decided, Decision) else ()
    actions = [(call.name, call.arguments) for call in calls] or [("answer", {"answer": raw})]
    return [
        Outcome(decision.agent, name, arguments, False, decision.reason, decision.label) for name, arguments in actions
    ]
