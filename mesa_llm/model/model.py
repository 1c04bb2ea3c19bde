"""A Mesa model whose agents decide together and act in order."""

from __future__ import annotations

import inspect
import time as clock
import weakref
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

from mesa.datacollection import DataCollector

from mesa_llm.agents.agent import LLMMixin, as_decision
from mesa_llm.agents.design import AgentDesign
from mesa_llm.agents.mailbox import Mailbox
from mesa_llm.config import Reasoning, Settings, demand_reasoning
from mesa_llm.engine.activation import Activation, Stage, Turn, everyone, minded
from mesa_llm.engine.collector import collector_paused
from mesa_llm.engine.engine import Engine, run_seed_of
from mesa_llm.engine.survey import JUDGING, Question, consult, survey, tend_memories
from mesa_llm.engine.transports import EngineOptions, written_options
from mesa_llm.errors import ConfigError, DecisionError, Stopped
from mesa_llm.llm.address import written_name
from mesa_llm.llm.protocol import LLM
from mesa_llm.memory import past_memory
from mesa_llm.model.bridge import Bridge
from mesa_llm.model.interventions import Interventions
from mesa_llm.model.options import (
    OnError,
    activation_for,
    check_files,
    constructor,
    identity,
    settle_parameters,
    with_recorded_addresses,
)
from mesa_llm.model.prompts import find_prompt, render_prompt
from mesa_llm.model.scenario import LLMScenario, parameters_of, signature_of
from mesa_llm.model.schedule import WorldSchedule
from mesa_llm.model.step import ResumableModel
from mesa_llm.records import ChatMessage, Decision, Event, Failure, Observation, Outcome, Usage
from mesa_llm.runlog.log import RunLog
from mesa_llm.runlog.versions import versions
from mesa_llm.world import Crowded, World

if TYPE_CHECKING:
    import pandas as pd

USAGE = {
    "calls": "step_calls",
    "tokens": "step_tokens",
    "dollars": "step_dollars",
    "failures": "step_failures",
    "seconds": "step_seconds",
}
"""Columns that every DataCollector of an LLM model collects by itself in each step; no part of the digest."""


class LLMModel(ResumableModel):
    """A Mesa model whose agents think.

    A step: messages and news arrive; the activation says who acts; they observe, decide together, and act in order;
    the worlds end their step; data are collected. Override `end_step` for what happens after everyone has acted.

    Attributes:
        scenario_class: Class of its scenario, which declares its parameters.
        option_defaults: Name of an option that every model takes → its default.
        changeable: Fields of the scenario that may be changed during a run, as the model reads them in every step, or
            hands them on in `scenario_changed`.
        instructions: File in the folder `prompts` beside the model's code that all agents read first; empty: none.
        worlds: The worlds its agents live in.
        schedule: Which of the worlds is visited when; None: all of them in every step.
        population: Who its agents are, for agents that look themselves up; None: they know it themselves.
        engine: Asks the language models.
        runlog: Requests, replies, decisions and outcomes of the run.
        mailbox: Messages between agents.
        bridge: News between worlds.
        interventions: What was done to the run from outside.
        now: The step that is being decided, from 1.
        reasoning: How all agents reason before they decide; None: as their configs say.
        reply_tokens: Maximum length of all agents' replies; None: as their configs say.
        last_decisions: Agent id → its last decision or failure.
        last_outcomes: Agent id → outcomes of its actions in the last step.
    """

    scenario_class: ClassVar[type[LLMScenario]] = LLMScenario
    option_defaults: ClassVar[Mapping[str, Any]] = {}
    changeable: ClassVar[tuple[str, ...]] = ()
    instructions: str = "instructions.md"
    worlds: tuple[World, ...] = ()
    schedule: WorldSchedule | None = None
    population: Any = None
    _arguments: inspect.BoundArguments

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Keep the arguments, for the manifest of the run log."""
        model = super().__new__(cls)
        model._arguments = constructor(cls).bind_partial(*args, **kwargs)
        return model

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Set the signature: the scenario's parameters and the options of all models."""
        super().__init_subclass__(**kwargs)
        cls.__signature__ = signature_of(cls)

    def __init__(
        self,
        scenario: Any = None,
        *,
        llm: str | LLM | Mapping[Any, str | LLM] = "rule",
        worlds: Sequence[World] = (),
        activation: Activation | str = everyone,
        design: AgentDesign | None = None,
        bridge: Bridge | None = None,
        log: str | Path | RunLog | None = None,
        replay: bool = False,
        retry_failures: bool = False,
        ask_again: bool = False,
        on_error: OnError = "skip",
        reasoning: Reasoning | None = None,
        reply_tokens: int | None = None,
        memories: Mapping[Any, Mapping[str, Any]] | None = None,
        rng: int | str | None = None,
        **options: Any,
    ) -> None:
        """Set up a model; no language model is opened before the first step.

        Args:
            scenario: The model's parameters; None: made of those given by keyword, and the defaults.
            llm: What agents think with: a model string, a transport, or a mapping from agent id or class name to
                one of these, with `"*"` for all others.
            worlds: The worlds its agents live in.
            activation: Who acts in a step; a callable, or a name in `mesa_llm.engine.activation.ACTIVATIONS`.
            design: Task-independent choice of the agents' components; goes before the model's own.
            bridge: Carries news between worlds; None: a plain one.
            log: File of the run: what it holds is used, the rest is asked for and recorded; or a log that is open.
            replay: Ask nobody: every reply comes from `log`.
            retry_failures: Ask again where the log holds a failed request.
            ask_again: Ask again where the log holds another request, as after a prompt was changed.
            on_error: What an agent does whose decision failed.
            reasoning: How agents reason before they decide: `none`, `inline` or `first`; None: as their configs say.
            reply_tokens: Maximum number of tokens of a reply; None: as agents' settings say.
            memories: Agent (its id or name) → memory of an earlier life, from `to_json`, that it starts with.
            rng: Seed; None: that of the scenario, of the log, or a new one.
            **options: How language models are reached, and how much may be spent; and the fields of the scenario by
                keyword, in place of one.

        Raises:
            ConfigError: If an option is unknown or cannot be, a parameter is given twice and not equal, or the log
                holds another run.
        """
        by_keyword = {name: options.pop(name) for name in self.scenario_class.fields if name in options}
        if unknown := sorted(set(options) - set(EngineOptions.__annotations__)):
            raise ConfigError(_unknown_message(type(self), unknown))
        engine_options = cast("EngineOptions", options)
        if on_error not in get_args(OnError):
            raise ConfigError(f"on_error is one of {', '.join(get_args(OnError))}, got {on_error!r}")
        if reasoning is not None:
            demand_reasoning(reasoning)
        if reply_tokens is not None and not (type(reply_tokens) is int and reply_tokens >= 1):
            raise ConfigError(f"reply_tokens is a whole number, 1 or more, got {reply_tokens!r}")
        if design is not None and not isinstance(cast("Any", design), AgentDesign):
            raise ConfigError(f"design is an AgentDesign, got {design!r:.60}; AgentDesign.from_json makes one of JSON")
        if replay and log is None:
            raise ConfigError("replay=True needs the log= of a recorded run")
        mode = "replay" if replay else "record"
        self.runlog = log if isinstance(log, RunLog) else RunLog(log, mode, retry_failures, ask_again)
        by_keyword |= {name: value for name, value in self._arguments.arguments.items() if name != "scenario"}
        scenario, seed = settle_parameters(type(self), scenario, by_keyword, rng, self.runlog)
        super().__init__(scenario=scenario)
        self.run_seed = run_seed_of(self)
        self.engine = Engine(self.runlog, self.run_seed, engine_options)
        this = weakref.ref(self)  # the engine must not keep its model alive
        self.engine.should_stop = lambda: (model := this()) is not None and model._is_to_stop
        self.llm = llm
        self.engine.declare(llm.values() if isinstance(llm, Mapping) else [llm])
        self.design = design
        self.worlds = tuple(worlds)
        self.activation = activation_for(activation)
        self.mailbox = Mailbox()
        self.bridge = bridge or Bridge()
        self.on_error: OnError = on_error
        self.reasoning: Reasoning | None = reasoning
        self.reply_tokens = reply_tokens
        self._memories = {str(agent): saved for agent, saved in (memories or {}).items()}
        self.last_decisions: dict[int, Decision | Failure] = {}
        self.last_outcomes: dict[int, list[Outcome]] = {}
        self._acted: dict[int, Any] = {}
        self._failed: list[Failure] = []
        self._step_decisions: dict[int, list[Decision | Failure]] = {}
        self._usage_before, self._step_usage, self._step_start = Usage(), Usage(), 0.0
        self.step_seconds = 0.0
        self._n_refused = 0
        self._datacollector: DataCollector | None = None
        run = identity(self, self._arguments, seed)
        if engine_options.get("moved"):
            run = with_recorded_addresses(run, self.runlog.manifest)
        self.runlog.begin(run, {"versions": versions(), "options": written_options(engine_options)})
        check_files(self.runlog, run)
        self.interventions = Interventions(self)

    def __repr__(self) -> str:
        """Return its class, step, number of agents and language model."""
        if not hasattr(self, "llm"):
            return f"<{type(self).__name__}, not set up>"
        choice = "several" if isinstance(self.llm, Mapping) else self.llm
        llm = written_name(choice if isinstance(choice, str) else str(getattr(choice, "name", type(choice).__name__)))
        ended = "" if self.running else ", ended"
        return f"<{type(self).__name__}: step {int(self.time)}{ended}, {len(self.agents)} agents, llm {llm}>"

    # -- set-up

    @cached_property
    def instructions_text(self) -> str:
        """Text that all agents read first: the file `instructions` of the model's folder `prompts`, if there is one."""
        if not self.instructions or find_prompt(type(self), self.instructions) is None:
            return ""
        return self.prompt(self.instructions, model=self, scenario=self.scenario)

    def prompt(self, name: str, **values: Any) -> str:
        """Fill in a file of the model's folder `prompts`.

        Args:
            name: File name, such as `plan.md`.
            **values: Variables of the template.

        Raises:
            ConfigError: If there is no such file, or one of its variables has no value.
        """
        return render_prompt(type(self), name, **values)

    def register_agent(self, agent: Any) -> None:
        """Register an agent: apply the design to it, and load its memory of an earlier life."""
        super().register_agent(agent)
        if not getattr(agent, "is_minded", False):
            return
        if self.design is not None:
            self.design.dress(agent)
        if self._memories:
            names = sorted({str(agent.unique_id), agent.config.name} & set(self._memories))
            if len(names) > 1:
                raise ConfigError(f"memories= names agent {names[0]} twice, as {names[1]!r} too; give it one memory")
            for name in names:
                agent.memory = past_memory(self._memories.pop(name))

    def llm_of(self, agent: Any) -> str | LLM:
        """Return an agent's language model: the one `llm=` names for it, the design's, or the one for all others."""
        design_llm = None if self.design is None else self.design.llm
        if type(self.llm) is str or not isinstance(self.llm, Mapping):
            return self.llm if design_llm is None else design_llm
        for name in (agent.unique_id, str(agent.unique_id), type(agent).__name__):
            if name in self.llm:
                return self.llm[name]
        if design_llm is not None:
            return design_llm
        if "*" in self.llm:
            return self.llm["*"]
        raise ConfigError(f"llm= names no model for agent {agent.unique_id} ({type(agent).__name__}); add one for '*'")

    @property
    def n_refused(self) -> int:
        """Number of actions and answers that the worlds have refused so far."""
        return self._n_refused

    @property
    def datacollector(self) -> Any:
        """Mesa's data collector; it also collects calls, tokens, dollars, failures and seconds of each step."""
        return self._datacollector

    @datacollector.setter
    def datacollector(self, collector: DataCollector) -> None:
        for name, attribute in USAGE.items():
            collector.model_reporters.setdefault(name, attribute)
            collector.model_vars.setdefault(name, [])
        self._datacollector = collector

    # -- the loop

    def step(self) -> None:
        """Let everyone who is due decide together and act in order."""
        with collector_paused():
            self.begin_step()
            while self._stages:
                self._act(self._decide())
                if self._stages:
                    self._stop_if_interrupted()
            tend_memories(agent for agent in self._acted.values() if agent in self.agents)
            self._finish_step()
        self._stop_if_interrupted()

    def begin_step(self) -> None:
        """Deliver messages and news, and draw the stages. Does nothing if the step has begun, or the run is over."""
        if self._stages is not None or not self.running:
            return
        self._step_start = clock.perf_counter()
        self._usage_before = self.engine.usage
        self._failed.clear()
        self._step_decisions.clear()
        self.last_outcomes = {}
        self._acted = {}
        if self._memories and self.now == 1:
            raise ConfigError(f"memories= names {', '.join(sorted(self._memories))}, and there are no such agents")
        with self._writing():
            self.interventions.start_step()
            for message in self.mailbox.deliver():
                self.runlog.add(message, self.now)
            for event in self.bridge.start_step(self.now):
                self.runlog.add(event, self.now)
            self.start_step()
            if self.schedule is not None:
                for agent in minded(self):
                    self.schedule.enter(agent)
            stages = [[Turn.of(item) for item in stage] for stage in self.activation(self)]
            if self.schedule is not None:
                stages = [[turn for turn in stage if self.schedule.includes(turn.agent.unique_id)] for stage in stages]
        self._stages = [stage for stage in stages if stage]

    def start_step(self) -> None:
        """Override for what happens before agents are activated, such as a change of their worlds."""

    @property
    def present_worlds(self) -> tuple[World, ...]:
        """The worlds that agents live in now: the one that the schedule visits, or all."""
        return self.worlds if self.schedule is None else self.schedule.present(self.worlds)

    @property
    def ending_worlds(self) -> tuple[World, ...]:
        """The worlds whose step ends with this one: those that agents live in now. Override."""
        return self.present_worlds

    @property
    def visit_length(self) -> int:
        """Length of the schedule's visit that passes with this step. Override to count something else than steps."""
        return 1

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Mark the block as one that writes: it is not stopped, as what it writes could not be taken back."""
        self._is_writing = True
        try:
            with self.engine.interrupts_deferred():
                yield
        except BaseException:
            self._is_writing = self._in_step  # who guards the step asks for it
            raise
        self._is_writing = False

    @property
    def _is_to_stop(self) -> bool:
        """Whether to stop the next request; a stop of an earlier run does not stop requests made by hand."""
        return self._stopping and not self._is_writing and (self._in_step or self._stages is not None)

    def _stop_if_interrupted(self) -> None:
        """Raise the Ctrl-C that was deferred while the model was written to."""
        if self.engine.is_interrupted:
            self.engine.is_interrupted = False
            raise KeyboardInterrupt

    def observations(self) -> dict[Any, Observation]:
        """Return the observations of the agents that are due: the first half of a step, for an outside controller.

        Returns:
            Agent → observation, in the order in which they will act; empty if nobody acts in this step, or the run is
            over. An agent with several turns at once has the keys `(agent, label)`.

        Raises:
            ConfigError: If an earlier step was broken off for good.
        """
        if self._broken_off:
            raise ConfigError(self._broken_off)
        self.begin_step()
        self._stop_if_interrupted()
        turns = self.due_turns
        if self._seen is None:
            # Whether a world is crowded takes long to find out, so that one of each class is looked at for all of it.
            one_of_each = {type(world): world for world in self.present_worlds}
            crowded = {kind for kind, world in one_of_each.items() if isinstance(world, Crowded)}
            expecting: list[Any] = [world for world in self.present_worlds if type(world) in crowded]
            for world in expecting:
                world.expect([turn.agent.unique_id for turn in turns if _looks_at(turn, world)])
            self._seen = [self._view_of(turn) for turn in turns]
            if self._stages:
                self._stages[0] = turns
        return dict(zip(_keys(turns, self._seen), self._seen, strict=True))

    def _view_of(self, turn: Turn) -> Observation:
        """Return what an agent sees at its turn: its observation, and the news from outside that is not in it."""
        seen = turn.agent.observe() if turn.observation is None else turn.observation
        if not self.bridge.has_announcements:
            return seen
        worlds = turn.agent.worlds if isinstance(turn.agent, LLMMixin) else ()
        news = self.bridge.announcements_for([world.name for world in worlds], turn.agent.unique_id)
        lines = [line for line in map(self.bridge.line, news) if line not in seen.text]
        if not lines:
            return seen
        text = "\n\n".join(filter(None, (seen.text, "\n".join(["News:", *lines]))))
        return replace(seen, text=text, cue=seen.cue or seen.text)

    def apply(self, decisions: Mapping[Any, Any]) -> dict[Any, list[Outcome]]:
        """Carry out the decisions of an outside controller: the second half of a step.

        Args:
            decisions: Agent (or its id; `(agent, label)` if it has several turns) → an action (`ToolCall`), a list of
                actions, a typed answer, or what `ask` returned; agents left out do nothing.

        Returns:
            Outcomes by the keys of `observations`. An invalid decision (an action that is not offered, arguments or an
            answer of the wrong type) fails like that of a language model: nothing of it is carried out, and each of
            its actions is returned as refused, with the reason.

        Raises:
            ConfigError: If an agent is not due; nothing has happened then.
        """
        with self._alone():
            self._demand_outside()
            keys = list(self.observations())
            by_key = {_id_key(key): decision for key, decision in decisions.items()}
            if strangers := set(by_key) - {_id_key(key) for key in keys}:
                names = ", ".join(sorted(" ".join(map(str, stranger)) for stranger in strangers))
                raise ConfigError(f"not due in this step: agents {names}; see observations()")
            results = [
                self._from_outside(turn, seen, by_key.get(_id_key(key)))
                for turn, seen, key in zip(self.due_turns, self._seen or (), keys, strict=True)
            ]
            try:
                outcomes = self._act(results)
            except BaseException as error:
                self._end_broken(error)
                raise
            if self._stages is not None and not self._stages:  # also where an action has just ended the run
                self._mesa_step()
            self._stop_if_interrupted()
        return {
            key: outcome_list or _refusals(decision, by_key.get(_id_key(key)))
            for key, outcome_list, decision in zip(keys, outcomes, results, strict=True)
        }

    def _from_outside(self, turn: Turn, seen: Observation, raw: Any) -> Decision | Failure:
        """Check and record the decision of an outside controller; what `ask` returned is recorded already."""
        if any(
            raw is earlier and raw.label == seen.label for earlier in self._step_decisions.get(turn.agent.unique_id, ())
        ):
            return raw
        checked = turn.agent.checked(raw, seen, "outside").labelled(seen.label)
        self.runlog.add(checked, self.now)
        if isinstance(checked, Failure):
            self.engine.count_failure("decide")
        return checked

    def ask(self, agents: Sequence[Any], observations: Sequence[Observation] | None = None) -> list[Decision | Failure]:
        """Let agents decide together, and record their decisions: the primitive under a step.

        Args:
            agents: Who decides.
            observations: Observation of each; None: its own `observe()`.

        Returns:
            Decision or failure of each, in the order of the agents. With `on_error="rule"`, that of the rule twin for
            those that failed.
        """
        observations = [agent.observe() for agent in agents] if observations is None else observations
        self._check_twins(agents)
        states = self.random.getstate(), self.rng.bit_generator.state
        try:
            if self._stopping and not self._is_writing:
                raise Stopped("stopped before agents decided; the next step() goes on with this one")
            results = self.engine.gather(agents, observations)
        except BaseException:
            self._stopping &= self._in_step  # a controller from outside has been told now
            self.random.setstate(states[0])
            self.rng.bit_generator.state = states[1]
            raise
        now = self.now
        for index, (agent, decision) in enumerate(zip(agents, results, strict=True)):
            self.runlog.add(decision, now)
            if isinstance(decision, Failure):
                self._failed.append(decision)
                if self.on_error == "rule":
                    results[index] = agent.rule_decision(observations[index]).labelled(observations[index].label)
                    self.runlog.add(results[index], now)
            self._step_decisions.setdefault(agent.unique_id, []).append(results[index])
        return results

    def _check_twins(self, agents: Sequence[Any]) -> None:
        """Check that there are rule twins to stand in, before anything is asked and paid for."""
        for kind in {type(agent): None for agent in agents} if self.on_error == "rule" else ():
            if getattr(kind, "rule", None) is LLMMixin.rule:
                raise ConfigError(f"{kind.__name__} has no rule twin; define rule(), or choose another on_error=")

    @property
    def due_turns(self) -> list[Turn]:
        """The turns of the current stage whose agents lived when it began, in the order in which they will act."""
        stage = self._stages[0] if self._stages else []
        return [turn for turn in stage if self._seen is not None or turn.agent in self.agents]

    @property
    def due(self) -> list[Any]:
        """The agents of the current stage, in the order in which they will act, once for each turn."""
        return [turn.agent for turn in self.due_turns]

    def _decide(self) -> list[Decision | Failure]:
        self.observations()
        return self.ask(self.due, self._seen)

    def _act(self, decisions: Sequence[Decision | Failure]) -> list[list[Outcome]]:
        """Let the agents of the current stage act."""
        turns, observations = self.due_turns, self._seen or []
        with self._writing():
            self._seen = None
            was_last = self._stages is not None and len(self._stages) == 1
            if self._stages:
                self._stages.pop(0)
            results: list[list[Outcome]] = []
            now = self.now
            for turn, observation, decision in zip(turns, observations, decisions, strict=True):
                agent = turn.agent
                is_alive = agent in self.agents  # those before it in the order may have removed it
                outcomes = agent.act(decision, observation) if is_alive else []
                self._acted[agent.unique_id] = agent
                self.last_decisions[agent.unique_id] = decision
                self.last_outcomes.setdefault(agent.unique_id, []).extend(outcomes)
                for outcome in outcomes:
                    self._n_refused += not outcome.ok
                    self.runlog.add(outcome, now)
                results.append(outcomes)
            if was_last and (next_turns := self.next_stage([turn.agent for turn in turns])):
                self._stages = [[Turn.of(item) for item in next_turns]]
        return results

    def next_stage(self, acted: list[Any]) -> Stage:
        """Override for further stages after those of the activation; an empty one ends the step.

        Args:
            acted: Agents that have just acted, once for each turn.

        Returns:
            Agents, or turns with their observations.
        """
        return []

    def end_step(self) -> None:
        """Override for what happens after everyone has acted."""

    def _finish_step(self) -> None:
        self._stages = None
        with self._writing():
            self.end_step()
            length = self.visit_length
            events: list[Event] = [event for world in self.ending_worlds for event in world.end_step()]
            for event in self.bridge.publish(events):
                self.runlog.add(event, self.now)
            self._step_usage = self.engine.usage - self._usage_before
            self.step_seconds = clock.perf_counter() - self._step_start
            if self._datacollector is not None:
                self._datacollector.collect(self)
            self.runlog.end_step(self.now, self._collected())
            if self.schedule is not None and not self.schedule.advance(length, self.worlds):
                self.running = False
        self._is_over = True
        if self._failed and self.on_error == "raise":
            reasons = "; ".join(f"agent {f.agent}: {f.kind}: {f.reason}" for f in self._failed[:5])
            raise DecisionError(f"{len(self._failed)} decisions failed in step {self.now}: {reasons}")

    def _collected(self) -> dict[str, Any]:
        """Return the row that the data collector collected in this step, without usage."""
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
        """Stop the step that is being decided, from any thread: it has not happened, and the run ends.

        A step whose agents are acting is finished first, with all its requests.

        Args:
            gives_up: Whether the requests in flight are given up; else nothing more is sent, and their replies are
                waited for, as they are paid for.
        """
        super().stop()
        if not self._is_writing:
            (self.engine.stop if gives_up else self.engine.finish)()

    # -- from outside

    def inject(self, intervention: Any) -> int:
        """Intervene in the run from outside, before the next step.

        It is recorded in the run log: a replay, and a run that goes on with the log, make it again in the same step.

        Args:
            intervention: `News`, `Post` or `Change`; its JSON values; or a text, which is news for everyone.

        Returns:
            First step that it bears on: the next one, or the one after if a step is under way.

        Raises:
            ConfigError: If it is no intervention, the model has nothing that it could bear on, the run is over, or the
                log holds that step without it.
        """
        return self.interventions.add(intervention)

    def scenario_changed(self) -> None:
        """Override to hand fields of the scenario that have changed on to what took them over, such as worlds."""

    def change_minds(self, llm: str | LLM | None = None, design: AgentDesign | None = None) -> None:
        """Let all agents think with something else from now on; used by branches, which record it.

        Args:
            llm: Model string or transport; None: as before.
            design: Design that they are given besides what they have; None: none.
        """
        if llm is not None:
            self.llm = llm
            self.engine.declare([llm])
        if design is not None:
            self.design = design
            for agent in minded(self):
                design.dress(agent)

    # -- looking

    @property
    def usage(self) -> Usage:
        """Calls, tokens and dollars of the run so far."""
        return self.engine.usage

    @property
    def step_calls(self) -> int:
        """Replies that came live in the last step."""
        return self._step_usage.calls

    @property
    def step_tokens(self) -> int:
        """Tokens read and written in the last step."""
        return self._step_usage.tokens

    @property
    def step_dollars(self) -> float:
        """US dollars of the last step."""
        return self._step_usage.dollars

    @property
    def step_failures(self) -> int:
        """Decisions of the last step that failed."""
        return self._step_usage.failures

    def story(self) -> str:
        """Summarise the run so far in words; override for a better summary."""
        counts: Counter[str] = Counter()
        refused = 0
        for action, ok in self.runlog.actions()[["action", "ok"]].itertuples(index=False):
            counts[action] += ok
            refused += not ok
        summary = ", ".join(f"{name} {count}" for name, count in counts.most_common() if count) or "nothing"
        return f"Done: {summary}. Refused by the world: {refused}."

    def stances(self) -> Mapping[int, float]:
        """Return where agents stand on what the run is about, -1 (against) to 1 (for), by number; by default none.

        Override it: reports find coalitions by it, and graphs show it.
        """
        return {}

    @property
    def usage_by_purpose(self) -> dict[str, Usage]:
        """Usage for each purpose (`decide`, `survey`, `memory`, `judge`, …), with its failures."""
        return dict(self.engine.usage_by_purpose)

    def results(self) -> dict[str, Any]:
        """Return the scores of the run by name; by default what the data collector collected last. Override."""
        return {name: value for name, value in self._collected().items() if name not in ("agents", "agents_by_type")}

    def survey(
        self,
        questions: Iterable[Question | str],
        agents: Iterable[Any] | None = None,
        *,
        purpose: str = "survey",
        shows_scene: bool = True,
    ) -> pd.DataFrame:
        """Ask agents aside: nothing enters their memory or the run; see `mesa_llm.engine.survey.survey`.

        Args:
            questions: The questions, or their texts.
            agents: The agents to ask; None: all that think.
            purpose: Name that the survey is counted under.
            shows_scene: Whether the prompt holds what the agent observes now.

        Returns:
            One row an agent and question: time, agent, question, answer, failure, purpose.
        """
        return survey(self, questions, agents, purpose=purpose, shows_scene=shows_scene)

    def consult(
        self,
        llm: str | LLM,
        prompts: Iterable[str | Sequence[ChatMessage]],
        *,
        answer: Any = str,
        purpose: str = "judge",
        settings: Settings = JUDGING,
        reasoning: Reasoning = "none",
        rule: Callable[[str], Any] | None = None,
    ) -> list[Decision | Failure]:
        """Ask a language model that takes no part in the run, such as a judge or an annotator, all prompts at once.

        Recorded, replayed and budgeted like decisions, and counted under its purpose; designs, activations and surveys
        do not concern it.

        Args:
            llm: Who is asked.
            prompts: Texts, or whole conversations that end with a question.
            answer: Type of the answer: anything pydantic can check.
            purpose: What for, in one word.
            settings: How it is sampled.
            reasoning: Whether it reasons before it answers.
            rule: What answers for `llm="rule"`, called with the prompt.

        Returns:
            For each prompt a decision with the `answer`, or the failure that says why there is none.

        Raises:
            ConfigError: If the purpose is taken, or a rule is consulted and there is none.
        """
        how = {"answer": answer, "settings": settings, "reasoning": reasoning, "rule": rule}
        return consult(self, llm, prompts, purpose=purpose, **how)

    def close(self) -> None:
        """Close the run log and all connections."""
        self.engine.close()


LLMModel.option_defaults = {
    name: parameter.default
    for name, parameter in inspect.signature(LLMModel.__init__).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
} | dict.fromkeys(EngineOptions.__annotations__)


def _unknown_message(kind: type[LLMModel], names: Sequence[str]) -> str:
    """Explain that options are unknown, and list those there are."""
    own_names = [parameter.name for parameter in parameters_of(kind)]
    suggestions = get_close_matches(names[0], [*own_names, *kind.option_defaults], n=1)
    hint = f"; did you mean {suggestions[0]}?" if suggestions else ""
    own = f"parameters of {kind.__name__}: {', '.join(own_names) or 'none'}"
    return f"unknown options: {', '.join(names)}{hint} ({own}; options of all models: see mesa_llm.LLMModel)"


def _keys(turns: Sequence[Turn], observations: Sequence[Observation]) -> list[Any]:
    """Return the key of each turn: its agent, or agent and label if the agent has several turns."""
    counts = Counter(turn.agent.unique_id for turn in turns)
    keys = [
        turn.agent if counts[turn.agent.unique_id] == 1 else (turn.agent, observation.label)
        for turn, observation in zip(turns, observations, strict=True)
    ]
    if len(set(keys)) < len(keys):
        raise ConfigError("an agent is asked several things at once under one label; give each Observation its label=")
    return keys


def _looks_at(turn: Turn, world: World) -> bool:
    """Check whether an agent makes its own observation, of this world."""
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
