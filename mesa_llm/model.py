"""A Mesa model whose agents decide together and act in order."""

from __future__ import annotations

import inspect
import time as clock
import weakref
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from mesa.datacollection import DataCollector

from mesa_llm.activation import Activation, Stage, everyone, minded
from mesa_llm.agent import AgentDesign, LLMMixin, as_decision
from mesa_llm.bridge import Bridge
from mesa_llm.engine import Engine, run_seed_of
from mesa_llm.errors import ConfigError, DecisionError, Stopped
from mesa_llm.lasting import LastingModel
from mesa_llm.llm.base import LLM
from mesa_llm.mailbox import Mailbox
from mesa_llm.options import OnError, activation_for, constructor, identity, seed_for, shown
from mesa_llm.records import Decision, Event, Failure, Observation, Outcome, Usage
from mesa_llm.runlog import RunLog
from mesa_llm.survey import Question, summarise, survey
from mesa_llm.transports import EngineOptions
from mesa_llm.versions import versions
from mesa_llm.world import World

if TYPE_CHECKING:
    import pandas as pd

USAGE = {
    "calls": "step_calls",
    "tokens": "step_tokens",
    "dollars": "step_dollars",
    "failures": "step_failures",
    "seconds": "step_seconds",
}
"""What every DataCollector of an LLM model collects by itself, for each step; no part of the digest."""


class LLMModel(LastingModel):
    """A Mesa model whose agents think.

    A step: messages and news arrive; the activation says who acts; they observe, decide together, and act in order;
    the worlds end their step; data are collected. Override `end_step` for what a model does after everyone has acted.

    Attributes:
        worlds: The worlds its agents live in.
        engine: Asks the language models.
        runlog: What was asked, answered, decided and done.
        mailbox: Messages between agents.
        bridge: News between worlds.
        now: The step that is being decided, from 1.
        last_decisions: What was decided last, by agent number.
        last_outcomes: What came of it, by agent number.
    """

    worlds: tuple[World, ...] = ()
    _given: inspect.BoundArguments

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Note the parameters, so that the run log can say what the run was."""
        model = super().__new__(cls)
        model._given = constructor(cls).bind_partial(*args, **kwargs)
        return model

    def __init__(
        self,
        *,
        llm: str | LLM | Mapping[Any, str | LLM] = "rule",
        worlds: Sequence[World] = (),
        activation: Activation | str = everyone,
        design: AgentDesign | None = None,
        bridge: Bridge | None = None,
        log: str | Path | None = None,
        replay: bool = False,
        retry_failures: bool = False,
        ask_again: bool = False,
        on_error: OnError = "skip",
        rng: int | str | None = None,
        scenario: Any = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        """Set a model up; no language model is opened before the first step.

        Args:
            llm: What agents think with: a model string, a transport, or a mapping from agent number or class name to
                one of these, with `"*"` for all others.
            worlds: The worlds its agents live in.
            activation: Who acts in a step; a callable, or a name in `mesa_llm.activation.ACTIVATIONS`.
            design: Task-independent choice of the agents' components; goes before the model's own.
            bridge: Carries news between worlds; None: a plain one.
            log: File of the run: what it holds is used, the rest is asked for and recorded.
            replay: Ask nobody: every reply comes from `log`.
            retry_failures: Ask again where the log holds a failed request.
            ask_again: Ask again where the log holds another request, as after a prompt was changed.
            on_error: What becomes of an agent whose decision failed.
            rng: Seed; None: that of the log, or a new one.
            scenario: A Mesa scenario, in place of `rng`.
            **options: How language models are reached, and how much may be spent.

        Raises:
            ConfigError: If an option is unknown or cannot be, or the log holds another run.
        """
        unknown = set(options) - set(EngineOptions.__annotations__)
        if unknown:
            raise ConfigError(f"unknown options: {', '.join(sorted(unknown))}; see mesa_llm.transports.EngineOptions")
        if on_error not in ("skip", "rule", "raise"):
            raise ConfigError(f"on_error is 'skip', 'rule' or 'raise', got {on_error!r}")
        if replay and log is None:
            raise ConfigError("replay=True needs the log= of a recorded run")
        self.runlog = RunLog(log, "replay" if replay else "record", retry_failures, ask_again)
        seed = seed_for(rng, self.runlog) if scenario is None else None
        super().__init__(**({"rng": seed} if scenario is None else {"scenario": scenario}))
        self.run_seed = run_seed_of(self)
        self.engine = Engine(self.runlog, self.run_seed, options)
        self.engine.join(self)
        this = weakref.ref(self)  # the engine must not keep its model alive
        self.engine.should_stop = lambda: (model := this()) is not None and model._stopping
        self.llm = llm
        self.design = design
        self.worlds = tuple(worlds)
        self.activation = activation_for(activation)
        self.mailbox = Mailbox()
        self.bridge = bridge or Bridge()
        self.on_error: OnError = on_error
        self.last_decisions: dict[int, Decision | Failure] = {}
        self.last_outcomes: dict[int, list[Outcome]] = {}
        self._failed: list[Failure] = []
        self._asked: dict[int, Decision | Failure] = {}
        self._usage_before, self._step_usage, self._begun = Usage(), Usage(), 0.0
        self.step_seconds = 0.0
        self._datacollector: DataCollector | None = None
        self.runlog.begin(identity(self, self._given, seed), {"versions": versions(), "options": shown(options)})

    # -- set-up

    def register_agent(self, agent: Any) -> None:
        """Register an agent with the model, and let the design choose its components."""
        super().register_agent(agent)
        if self.design is not None and getattr(agent, "is_minded", False):
            self.design.dress(agent)

    def llm_of(self, agent: Any) -> str | LLM:
        """Say what an agent thinks with: the design's choice, or the model's."""
        if self.design is not None and self.design.llm is not None:
            return self.design.llm
        if not isinstance(self.llm, Mapping):
            return self.llm
        for name in (agent.unique_id, str(agent.unique_id), type(agent).__name__, "*"):
            if name in self.llm:
                return self.llm[name]
        raise ConfigError(f"llm= names no model for agent {agent.unique_id} ({type(agent).__name__}); add one for '*'")

    @property
    def datacollector(self) -> Any:
        """Mesa's data collector; calls, tokens, dollars, failures and seconds of each step are collected unasked."""
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
        self.begin_step()
        while self._stages:
            self._act(self._decide())
        summarise(minded(self))
        self._finish_step()

    def begin_step(self) -> None:
        """Deliver messages and news, and find out who acts. Does nothing if the step has begun."""
        if self._stages is not None:
            return
        self._begun = clock.perf_counter()
        self._usage_before = self.engine.usage
        self._failed.clear()
        self._asked.clear()
        for message in self.mailbox.deliver():
            self.runlog.add(message, self.now)
        for event in self.bridge.start_step(self.now):
            self.runlog.add(event, self.now)
        self._stages = [stage for stage in self.activation(self) if stage]

    def observations(self) -> dict[Any, Observation]:
        """Show what each agent that is due sees now: the first half of a step, for a controller from outside.

        Returns:
            Agent → observation, in the order in which they will act; empty if nobody acts in this step.
        """
        self.begin_step()
        if self._seen is None:
            agents = self.due
            self._seen = [agent.observe() for agent in agents]
        return dict(zip(self.due, self._seen, strict=True))

    def apply(self, decisions: Mapping[Any, Any]) -> dict[Any, list[Outcome]]:
        """Do what a controller from outside decided: the second half of a step.

        Args:
            decisions: Agent (or its number) → an action (`ToolCall`), a list of them, a typed answer, or what
                `ask` gave; agents left out do nothing.

        Returns:
            Agent → what came of its actions.
        """
        agents = list(self.observations())
        given = {getattr(agent, "unique_id", agent): decided for agent, decided in decisions.items()}
        strangers = set(given) - {agent.unique_id for agent in agents}
        if strangers:
            raise ConfigError(f"agents {sorted(strangers)} are not due in this step; see observations()")
        decisions_made = [as_decision(a.unique_id, given.get(a.unique_id), "outside") for a in agents]
        for decision in decisions_made:
            if decision is not self._asked.get(decision.agent):
                self.runlog.add(decision, self.now)
        outcomes = self._act(decisions_made)
        if not self._stages:
            self.advance()
        return dict(zip(agents, outcomes, strict=True))

    def ask(self, agents: Sequence[Any], seen: Sequence[Observation] | None = None) -> list[Decision | Failure]:
        """Let agents decide together and note what they decide: the primitive under a step.

        Args:
            agents: Who decides.
            seen: What each sees; None: what it observes.

        Returns:
            Decision or failure of each, in the order asked. With `on_error="rule"` the rule twin has decided for
            those that failed.
        """
        seen = [agent.observe() for agent in agents] if seen is None else seen
        if self._stopping:
            raise Stopped("stopped before agents decided; the next step() goes on with this one")
        self._check_twins(agents)
        kept = self.random.getstate(), self.rng.bit_generator.state
        numbers = self.engine.numbering(agent.unique_id for agent in agents)
        try:
            decided = self.engine.gather(agents, seen)
        except BaseException:
            self.random.setstate(kept[0])
            self.rng.bit_generator.state = kept[1]
            self.engine.renumber(numbers)
            raise
        for place, (agent, decision) in enumerate(zip(agents, decided, strict=True)):
            self.runlog.add(decision, self.now)
            if isinstance(decision, Failure):
                self._failed.append(decision)
                if self.on_error == "rule":
                    decided[place] = agent.rule_decision(seen[place])
                    self.runlog.add(decided[place], self.now)
            self._asked[agent.unique_id] = decided[place]
        return decided

    def _check_twins(self, agents: Sequence[Any]) -> None:
        """Find out before anything is asked and paid for that no rule twin could stand in."""
        for kind in {type(agent): None for agent in agents} if self.on_error == "rule" else ():
            if getattr(kind, "rule", None) is LLMMixin.rule:
                raise ConfigError(f"{kind.__name__} has no rule twin; define rule(), or choose another on_error=")

    @property
    def due(self) -> Stage:
        """Those of the current stage who still live, in the order in which they will act."""
        stage = self._stages[0] if self._stages else []
        return [agent for agent in stage if agent in self.agents]

    def _decide(self) -> list[Decision | Failure]:
        seen = list(self.observations().values())
        return self.ask(self.due, seen)

    def _act(self, decisions: Sequence[Decision | Failure]) -> list[list[Outcome]]:
        """Let the agents of the current stage act."""
        self._is_acting = True
        agents, seen = self.due, self._seen or []
        self._seen = None
        if self._stages:
            self._stages.pop(0)
        done: list[list[Outcome]] = []
        for agent, sight, decision in zip(agents, seen, decisions, strict=True):
            is_alive = agent in self.agents  # those before it in the order may have removed it
            outcomes = agent.act(decision, sight) if is_alive else []
            self.last_decisions[agent.unique_id] = decision
            self.last_outcomes[agent.unique_id] = outcomes
            for outcome in outcomes:
                self.runlog.add(outcome, self.now)
            done.append(outcomes)
        if not self._stages and (following := self.next_stage(agents)):
            self._stages = [following]
        self._is_acting = False
        return done

    def next_stage(self, acted: Stage) -> Stage:
        """Say who decides next in this step, once the stages of the activation are over; nobody ends it. Override.

        Args:
            acted: Who has just acted.
        """
        return []

    def end_step(self) -> None:
        """Do what the model does after everyone has acted; override."""

    def _finish_step(self) -> None:
        self._stages = None
        self.end_step()
        events: list[Event] = [event for world in self.worlds for event in world.end_step()]
        for event in self.bridge.publish(events):
            self.runlog.add(event, self.now)
        self._step_usage = self.engine.usage - self._usage_before
        self.step_seconds = clock.perf_counter() - self._begun
        if self._datacollector is not None:
            self._datacollector.collect(self)
        self.runlog.end_step(self.now, self._collected())
        if self._failed and self.on_error == "raise":
            told = "; ".join(f"agent {f.agent}: {f.kind}: {f.reason}" for f in self._failed[:5])
            raise DecisionError(f"{len(self._failed)} decisions failed in step {self.now}: {told}")

    def _collected(self) -> dict[str, Any]:
        """Give what the data collector collected in this step, without what it cost."""
        if self._datacollector is None:
            return {}
        fields = vars(self._datacollector)
        unasked = set(USAGE.values())
        reporters = fields["model_reporters"]
        costs = {name for name, reporter in reporters.items() if isinstance(reporter, str) and reporter in unasked}
        row = {name: values[-1] for name, values in fields["model_vars"].items() if name not in costs and values}
        if agents := fields.get("_agent_records", {}).get(self.time):
            row["agents"] = list(agents)
        if by_type := fields.get("_agenttype_records", {}).get(self.time):
            row["agents_by_type"] = {kind.__qualname__: list(records) for kind, records in by_type.items()}
        return row

    def stop(self) -> None:
        """Stop the step that is being decided, from any thread; it has then not happened. A run ends with it."""
        super().stop()
        self.engine.stop()

    # -- looking

    @property
    def usage(self) -> Usage:
        """What the run has used so far."""
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
        """Say in words what happened so far; models say it better by overriding this."""
        done: Counter[str] = Counter()
        refused = 0
        for action, ok in self.runlog.actions()[["action", "ok"]].itertuples(index=False):
            done[action] += ok
            refused += not ok
        told = ", ".join(f"{name} {count}" for name, count in done.most_common() if count) or "nothing"
        return f"Done: {told}. Refused by the world: {refused}."

    def survey(self, questions: Iterable[Question | str], agents: Iterable[Any] | None = None) -> pd.DataFrame:
        """Ask agents aside: nothing enters their memory or the run.

        Args:
            questions: What is asked.
            agents: Who is asked; None: everyone who thinks.

        Returns:
            One row an agent and question: time, agent, question, answer, failure.
        """
        return survey(self, questions, agents)

    def close(self) -> None:
        """Close the run log and all connections."""
        self.engine.close()
